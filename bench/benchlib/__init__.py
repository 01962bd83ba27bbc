"""What every bench shares: servers, CPU accounting, load, alternation, statistics, reports."""
