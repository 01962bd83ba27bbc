"""A connection for each request: what one costs in CPU, beside nginx and h2o."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers
from benchlib.compare import running
from benchlib.report import Report, say

TITLE = "A connection for each request"
#: At a time.
CONNECTIONS, SECONDS, PAIRS = (8, 64), 2.0, 9
PATH, LENGTH = "/a.txt", 1024
OURS = "maitred"
#: CPU against nginx, and against h2o.
GATE, GOAL = 1.0, 1.0
HEADS = ("server", "CPU µs per connection", "maitred / this (CPU)", "connections/s", "failed")


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
                ratios = {server: figures.ratios(cpu[OURS], values).median for server, values in cpu.items() if server != OURS}
                gates += [rounds.verdict(f"{kind}, CPU against {server}, {name}", ratios[server], limit)
                          for kind, server, limit in (("Gate", servers.NGINX.name, GATE), ("Goal", servers.H2O.name, GOAL)) if server in ratios]
                groups.append((name, [chart.Bar(server, *spread(values)) for server, values in cpu.items()]))
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "CPU µs per connection", groups))


def spread(values: list[float]) -> tuple[float, float, float]:
    of = figures.spread(values)
    return of.median, of.lower, of.upper


def measure(options: rounds.Options, up: list[servers.Server], count: int, name: str, folder: Path, report: Report) -> dict[str, list[float]]:
    """CPU microseconds for each connection, by server, and their table in the report."""
    cpu: dict[str, list[float]] = {server.name: [] for server in up}
    rate: dict[str, list[float]] = {server.name: [] for server in up}
    failed = dict.fromkeys(cpu, 0)
    shares = []
    for server in up:
        load.verify(server.name, server.port, PATH, b"x" * LENGTH, LENGTH)
    for number in range(options.rounds(PAIRS, smoke=1)):
        say(f"{name}: round {number + 1}")
        for server in up:
            meter = rounds.Meter(server)
            meter.start()
            closed = load.wrk(server.port, PATH, count, options.duration(SECONDS, 1), folder, ["Connection: close"], pinned=server.pinned)
            meter.stop()
            if not closed.requests:
                raise load.WrongAnswer(f"{server.name}, {name}: no answer")
            cpu[server.name].append(meter.cpu_ns / closed.requests / 1e3)
            rate[server.name].append(closed.rate)
            failed[server.name] += closed.failed
            shares.append(meter.others)
            rounds.rest(server)
    rows = []
    for server, values in cpu.items():
        median, lower, upper = spread(values)
        ratio = "–" if server == OURS else rounds.ratio_text(figures.ratios(cpu[OURS], values))
        rows.append([server, f"{median:.2f} [{lower:.2f}, {upper:.2f}]", ratio, f"{figures.spread(rate[server]).median:,.0f}",
                     str(failed[server])])
    report.text(f"## {name}, {options.rounds(PAIRS, smoke=1)} rounds")
    report.table(HEADS, rows)
    report.text(rounds.others_text(shares, "the server's core"))
    return cpu
