"""What one request of a wrk load costs in CPU: rounds of all servers in turn, and their table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import chart, figures, load, rounds, servers
from .report import Report, say


@dataclass(frozen=True)
class Columns:
    """What the table counts, and in which units."""

    #: The head of the CPU time of a request, how many nanoseconds its unit has, and how many digits are shown behind the point.
    cpu: str
    nanoseconds: float
    digits: int
    #: The head of the throughput, and how much of its unit a request is.
    rate: str
    of_request: float = 1.0


def measure(name: str, up: Sequence[servers.Server], ours: str, count: int, work: Callable[[servers.Server], load.Closed],
            columns: Columns, report: Report) -> dict[str, list[float]]:
    """CPU time of a request in each of so many rounds, by server, and their table in the report."""
    def timed(server: servers.Server) -> rounds.Timed[load.Closed]:
        return rounds.timed(server, functools.partial(work, server))

    return measure_timed(name, up, ours, count, timed, columns, report)


def measure_timed(name: str, up: Sequence[servers.Server], ours: str, count: int,
                  work: Callable[[servers.Server], rounds.Timed[load.Closed]], columns: Columns, report: Report) -> dict[str, list[float]]:
    """The same where the work says itself what it cost: its warm-up is not counted."""
    cpu: dict[str, list[float]] = {server.name: [] for server in up}
    rate: dict[str, list[float]] = {server.name: [] for server in up}
    failed = dict.fromkeys(cpu, 0)
    shares = []
    for number in range(count):
        say(f"{name}: round {number + 1}")
        for server in up:
            done = work(server)
            closed = done.outcome
            if not closed.requests:
                raise load.WrongAnswer(f"{server.name}, {name}: no answer")
            cpu[server.name].append(done.cpu_ns / closed.requests / columns.nanoseconds)
            rate[server.name].append(closed.rate * columns.of_request)
            failed[server.name] += closed.failed
            shares.append(done.others)
            rounds.rest(server)
    rows = []
    for who, values in cpu.items():
        of = figures.spread(values)
        median, lower, upper = (f"{value:.{columns.digits}f}" for value in (of.median, of.lower, of.upper))
        ratio = rounds.against(cpu, ours, who) if ours in cpu else "–"
        rows.append([who, f"{median} [{lower}, {upper}]", ratio, f"{figures.spread(rate[who]).median:,.0f}",
                     str(failed[who])])
    report.text(f"## {name}, {count} rounds")
    report.table(["server", columns.cpu, f"{ours} / this (CPU)", columns.rate, "failed"], rows)
    report.text(rounds.others_text(shares, "the server's core"))
    return cpu


def ratios(cpu: dict[str, list[float]], ours: str) -> dict[str, float]:
    """Ours to each of the others, the median of the pairs; nothing if ours is not there."""
    if ours not in cpu:
        return {}
    return {server: figures.ratios(cpu[ours], values).median for server, values in cpu.items() if server != ours}


def bars(title: str, unit: str, groups: Sequence[tuple[str, dict[str, list[float]]]]) -> str:
    """The chart: CPU time of every server, by group."""
    spreads = [(name, {server: figures.spread(values) for server, values in cpu.items()}) for name, cpu in groups]
    return chart.bars(title, unit, [(name, [chart.Bar(server, of.median, of.lower, of.upper) for server, of in each.items()])
                                    for name, each in spreads])
