"""A pool for slow reports: does the rest notice fifty clients that ask for nothing else?"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, load, rounds, servers, traffic, workbench
from benchlib.report import Report, say
from benchlib.series import Schedule, Series, on_schedule

TITLE = "Pools: the rest beside fifty clients of a slow report"
HELLO = workbench.HELLO
POOL = ("--pool", "reports,max-threads=2,path=/report")
REST = traffic.bare("/", HELLO)
#: What a report does; the gate is about the first: who burns takes the core from the rest, wherever he waits.
SLEEPS, BURNS = "sleeps 100 ms", "burns 100 ms"
REPORTS = {SLEEPS: traffic.bare("/report", HELLO), BURNS: traffic.bare("/report?burn", HELLO)}
CLIENTS = 50
#: The rest: requests a second.
SCHEDULE = Schedule(200, 5.0)
PAIRS = 5
#: Percentile and how often its idle value.
SHARE, GATE = 0.9, 1.5
#: Reports per second when both threads of the pool sleep all the time, less a tenth.
BOTH_AT_WORK = 18.0
#: How much longer than the rest the reports are asked for: the start of the generator.
SPARE_S = 1.0


@dataclass
class Beside:
    """All rounds of one server with one kind of report."""

    idle: Series = field(default_factory=Series)
    rest: Series = field(default_factory=Series)
    #: Reports per second.
    reports: list[float] = field(default_factory=list)

    def ratio(self) -> figures.Spread:
        return figures.ratios(self.rest.percentiles[SHARE], self.idle.percentiles[SHARE])


#: By kind of report and server.
Table = dict[tuple[str, str], Beside]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    contenders, lines = _contenders(options)
    chosen, skipped = rounds.present(options, contenders)
    report.text(
        f"`/report` is asked for by {CLIENTS} clients, each again as soon as it is answered. In the servers called "
        f"\"with a pool\" it has one of its own: `{' '.join(POOL)}`. The rest is {SCHEDULE.rate:g} requests/s of a "
        "fast path (Poisson, latency from the scheduled time), measured idle and beside the reports. The server is on "
        f"one core, both loads are on another. {rounds.INTERVAL_NOTE}")
    report.text(*lines, *skipped)
    table: Table = {}
    with rounds.all_running(chosen, folder, folder) as up:
        for kind, slow in REPORTS.items():
            _measure(options, up, kind, slow, table, folder)
    _write(report, table)
    report.text("## Gates", "", *_gates(table))
    groups = [(f"{name}, report {kind}: p90 of the rest in ms", _bars(beside))
              for (kind, name), beside in table.items()]
    report.chart(chart.bars(TITLE, "", groups))


def _contenders(options: rounds.Options) -> tuple[list[servers.Contender], list[str]]:
    lines: list[str] = []
    contenders = []
    for name, environment in workbench.languages(options, lines).items():
        contenders.append(workbench.contender(environment, name))
        if servers.offers(contenders[-1].program, POOL[0]):
            contenders.append(workbench.contender(environment, _with_pool(name), POOL))
        else:
            workbench.left_out(lines, f"{_with_pool(name)} (this build has no {POOL[0]})")
    return contenders, lines


def _with_pool(language: str) -> str:
    return f"{language}, with a pool"


def _measure(options: rounds.Options, up: Sequence[servers.Server], kind: str, slow: traffic.Request, table: Table,
             folder: Path) -> None:
    rest, reports = traffic.write(folder / "rest", [REST]), traffic.write(folder / "reports", [slow])
    for number in range(options.rounds(PAIRS, smoke=1)):
        say(f"pools, report {kind}: round {number + 1}")
        for server in up:
            # Nothing is left of the round before: what its clients have asked for is run although they have left.
            rounds.rest(server)
            try:
                traffic.settle(server.name, server.port, [slow, REST])
            except load.WrongAnswer as error:
                if server.name.endswith(_with_pool("")):
                    raise
                say(f"left out of a round, it still works on the one before: {error}")
                continue
            beside = table.setdefault((kind, server.name), Beside())
            on_schedule(options, SCHEDULE, server, rest, number, beside.idle, folder)
            with _busy(options, server, reports, beside.reports):
                on_schedule(options, SCHEDULE, server, rest, number, beside.rest, folder, may_starve=True)


@contextlib.contextmanager
def _busy(options: rounds.Options, server: servers.Server, reports: Path, rates: list[float]) -> Iterator[None]:
    """All clients ask for reports; appended to `rates`, how many there were in a second."""
    busy = threading.Event()
    seconds = sum(SCHEDULE.lengths(options)) + SPARE_S
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        closed = pool.submit(load.busy, server.port, load.listed(reports), CLIENTS, 1, seconds, SPARE_S,
                             {"measuring": busy.set}, spin=False)
        # A generator that fails never says that it measures.
        closed.add_done_callback(lambda _: busy.set())
        busy.wait()
        yield
        outcome = closed.result()
    # None in a short window is a result too: fifty wait for their turn.
    if outcome.failed:
        raise load.WrongAnswer(f"{server.name}: {outcome.requests} reports, {outcome.failed} failed")
    rates.append(outcome.rate)


def _write(report: Report, table: Table) -> None:
    rows = []
    for (kind, name), beside in table.items():
        idle, rest = (figures.spread(series.percentiles[SHARE]) for series in (beside.idle, beside.rest))
        rows.append([name, kind, *(f"{of.median:.2f} [{of.lower:.2f}, {of.upper:.2f}]" for of in (idle, rest)),
                     rounds.ratio_text(beside.ratio()), f"{beside.idle.at(0.99):.2f}", f"{beside.rest.at(0.99):.2f}",
                     f"{figures.spread(beside.reports).median:.1f}", f"{100 * beside.rest.median('finished'):.0f} %"])
    report.table(["server", "report", "p90 idle ms", "p90 beside ms", "beside / idle", "p99 idle ms", "p99 beside ms",
                  "reports/s", "rest answered"], rows)


def _gates(table: Table) -> list[str]:
    lines = []
    for (kind, name), beside in table.items():
        if name.endswith(_with_pool("")):
            words = "Gate" if kind == SLEEPS else "For comparison"
            what = f"{words}, {name}, report {kind}: p90 of the rest to idle"
            lines.append(rounds.verdict(what, beside.ratio().median, GATE))
            if kind == SLEEPS:
                what = f"For comparison, {name}, report {kind}: reports/s of two threads"
                lines.append(rounds.verdict(what, figures.spread(beside.reports).median, BOTH_AT_WORK, least=True))
    return lines or ["- No server has a pool: nothing to judge."]


def _bars(beside: Beside) -> list[chart.Bar]:
    bars = []
    for name, series in (("idle", beside.idle), ("beside", beside.rest)):
        of = figures.spread(series.percentiles[SHARE])
        bars.append(chart.Bar(name, of.median, of.lower, of.upper))
    return bars
