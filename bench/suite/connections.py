"""A connection for each request: what one costs in CPU, beside nginx and h2o."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from benchlib import costs, load, machine, rounds, servers
from benchlib.compare import running
from benchlib.report import Report

TITLE = "A connection for each request"
#: At a time.
CONNECTIONS, SECONDS, PAIRS = (8, 64), 2.0, 9
PATH, LENGTH = "/a.txt", 1024
OURS = "maitred"
#: CPU against nginx, and against h2o.
GATE, GOAL = 1.0, 1.0


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "wrk")
    (folder / PATH[1:]).write_bytes(b"x" * LENGTH)
    report.text(f"A file of {LENGTH} bytes; the client (wrk) asks to close after each request, and so connects for each. On one core and the "
                "load on the other, and all on both, where nginx and h2o have a worker for each core. CPU is user and system of the server's "
                f"processes. {rounds.INTERVAL_NOTE}")
    gates, groups = [], []
    for pinned in (False,) if options.unpinned else (False, True):
        workers = 1 if pinned else len(set(machine.cores()))
        contenders = [dataclasses.replace(each, pinned=pinned, options={**each.options, "workers": workers})
                      for each in (servers.maitred(workers), servers.NGINX, servers.H2O)]
        contenders, skipped = rounds.present(options, contenders)
        report.text(*skipped)
        with running(contenders, OURS, folder, report) as up:
            for count in CONNECTIONS[:1] if options.smoke else CONNECTIONS:
                name = f"{count} at a time, {'one core' if pinned else 'both cores'}"
                cpu = measure(options, up, count, name, folder, report)
                ratios = costs.ratios(cpu, OURS)
                gates += [rounds.verdict(f"{kind}, CPU against {server}, {name}", ratios[server], limit)
                          for kind, server, limit in (("Gate", servers.NGINX.name, GATE), ("Goal", servers.H2O.name, GOAL)) if server in ratios]
                groups.append((name, cpu))
    report.text("## Gates", "", *gates)
    report.chart(costs.bars(TITLE, "CPU µs per connection", groups))


def measure(options: rounds.Options, up: list[servers.Server], count: int, name: str, folder: Path, report: Report) -> dict[str, list[float]]:
    """CPU microseconds for each connection, by server, and their table in the report."""
    for server in up:
        load.verify(server.name, server.port, PATH, b"x" * LENGTH, LENGTH)

    def work(server: servers.Server) -> load.Closed:
        return load.wrk(server.port, PATH, count, options.duration(SECONDS, 1), folder, ["Connection: close"], pinned=server.pinned)

    columns = costs.Columns("CPU µs per connection", 1e3, 2, "connections/s")
    return costs.measure(name, up, OURS, options.rounds(PAIRS, smoke=1), work, columns, report)
