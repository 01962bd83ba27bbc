//! Orders against a CA in memory, and schedules by virtual time.
