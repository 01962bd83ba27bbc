"""Contenders against each other over workloads, in a closed loop: CPU, throughput, latency, and our ratio to each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import chart, figures, load, rounds, servers, traffic
from .report import Report, say

CONNECTIONS = 64
SECONDS, SMOKE_SECONDS = 3.0, 0.3

HEADS = ("server", "CPU-s per 100,000", "maitred / this (CPU)", "requests/s", "maitred / this (requests/s)", "p50 ms",
         "p99 ms", "failed")


@dataclass(frozen=True)
class Workload:
    name: str
    requests: Sequence[traffic.Request]
    #: The load polls; otherwise it sleeps when nothing has come, and the server pays for waking it.
    spin: bool = True


@dataclass(frozen=True)
class Form:
    """Where server and load run, and how often they are measured."""

    name: str
    pinned: bool
    pairs: int


#: As users run it: the server shares both cores with its load, which sleeps when nothing has come.
USERS = Form("both cores", False, 5)
#: Steadier, and the way to see what a request costs.
PINNED = Form("one core", True, 9)


def forms(options: rounds.Options) -> list[Form]:
    """Those of this run, the one that users run first."""
    return [USERS] if options.unpinned else [USERS, PINNED]


@dataclass(frozen=True)
class Sample:
    """One measurement; latencies in milliseconds."""

    #: CPU-seconds per 100,000 right answers.
    cpu: float
    rate: float
    p50: float
    p99: float
    failed: int


@dataclass(frozen=True)
class Result:
    #: With the form.
    workload: str
    #: By contender, in the order of the rounds.
    samples: dict[str, list[Sample]]

    def cpu(self, name: str) -> list[float]:
        return [each.cpu for each in self.samples[name]]

    def rate(self, name: str) -> list[float]:
        return [each.rate for each in self.samples[name]]

    def ratio(self, ours: str, theirs: str) -> float:
        """Ours to theirs in CPU: the median of the pairs."""
        return figures.ratios(self.cpu(ours), self.cpu(theirs)).median


def method(options: rounds.Options) -> str:
    """For the report: how the figures of `measure` come about."""
    return (f"One worker process; {CONNECTIONS} keep-alive connections that are busy all the time, from our own generator. "
            f"\"{USERS.name}\" is the form that users run: the server shares them with the load, which sleeps when nothing "
            f"has come. \"{PINNED.name}\" is the server's; the load is on the other, and polls unless a workload says that it "
            "sleeps (then a server pays for waking it, and one that answers in batches pays less). CPU-seconds are user and system of all processes of the server. Latency "
            f"is that of the closed loop. {rounds.INTERVAL_NOTE}")


@contextlib.contextmanager
def running(contenders: Sequence[servers.Contender], ours: str, folder: Path, report: Report,
            root: Path | None = None) -> Iterator[list[servers.Server]]:
    """All contenders at once, with this root or the folder itself; a peer that does not start is left out with a line."""
    with contextlib.ExitStack() as stack:
        up = []
        for each in contenders:
            try:
                up.append(stack.enter_context(servers.running(each, root or folder, folder)))
            except servers.CannotStart as error:
                if each.name == ours:
                    raise
                line = f"skipped: {error}".replace("\n", " ")
                say(line)
                report.text(line)
        yield up


def settled(up: Sequence[servers.Server], ours: str, workload: str, wanted: Sequence[traffic.Request], folder: Path,
            report: Report) -> tuple[list[servers.Server], Path]:
    """The servers that answer everything right, and the file with the requests."""
    requests = list(wanted)
    right = []
    for server in up:
        try:
            requests = traffic.settle(server.name, server.port, requests)
            right.append(server)
        except load.WrongAnswer as error:
            if server.name == ours:
                raise
            say(f"left out: {error}")
            report.text(f"left out of {workload}: {error}")
    return right, traffic.write(folder / "requests", requests)


def measure(options: rounds.Options, up: Sequence[servers.Server], ours: str, workload: Workload, form: Form,
            folder: Path, report: Report) -> Result:
    """Rounds of every server with this workload, and their table in the report."""
    name = f"{workload.name}, {form.name}"
    right, requests = settled(up, ours, name, workload.requests, folder, report)
    samples: dict[str, list[Sample]] = {server.name: [] for server in right}
    shares = []
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    for number in range(options.rounds(form.pairs, smoke=1)):
        say(f"{name}: round {number + 1}")
        for server in right:
            meter = rounds.Meter(server)
            closed = load.busy(server.port, load.listed(requests), CONNECTIONS, 1, seconds, seconds / 4,
                               {"measuring": meter.start, "measured": meter.stop}, workload.spin and form.pinned,
                               form.pinned)
            if closed.wrong or (closed.failed and server.name == ours) or not closed.requests:
                raise load.WrongAnswer(f"{server.name}, {name}: {closed.requests} right answers, "
                                       f"{closed.wrong} wrong ones, {closed.failed} failed requests")
            samples[server.name].append(Sample(meter.cpu_ns / closed.requests / 1e4, closed.rate, closed.p50 / 1e3,
                                               closed.p99 / 1e3, closed.failed))
            shares.append(meter.others)
            rounds.rest(server)
    result = Result(name, samples)
    _write(report, result, ours, "both cores" if not form.pinned else "the server's core", shares)
    return result


def _write(report: Report, result: Result, ours: str, where: str, shares: Sequence[float]) -> None:
    rows = []
    for name, samples in result.samples.items():
        of = figures.spread(result.cpu(name))
        cpu = rate = "–"
        if ours in result.samples and name != ours:
            cpu = rounds.ratio_text(figures.ratios(result.cpu(ours), result.cpu(name)))
            rate = rounds.ratio_text(figures.ratios(result.rate(ours), result.rate(name)))
        rows.append([name, f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]", cpu,
                     f"{figures.spread(result.rate(name)).median:,.0f}", rate,
                     *(f"{figures.spread(values).median:.2f}" for values in (
                         [each.p50 for each in samples], [each.p99 for each in samples])),
                     str(sum(each.failed for each in samples))])
    report.text(f"## {result.workload[0].upper()}{result.workload[1:]}, {len(next(iter(result.samples.values())))} rounds")
    report.table(HEADS, rows)
    report.text(rounds.others_text(shares, where))


def gates(report: Report, results: Sequence[Result], ours: str, below: Sequence[str], goal: float | None) -> None:
    """Below each of these everywhere; the goal is a ratio to the best of all the others, everywhere."""
    lines = []
    for name in below:
        ratios = [(result.ratio(ours, name), result.workload) for result in results
                  if ours in result.samples and name in result.samples]
        if ratios:
            worst, workload = max(ratios)
            lines.append(rounds.verdict(f"Gate, CPU below {name} everywhere; highest ratio ({workload})", worst, 1.0))
    if goal is not None:
        best = [(max(result.ratio(ours, name) for name in others), result.workload) for result in results
                if ours in result.samples
                and (others := [name for name in result.samples if not name.startswith(ours)])]
        if best:
            worst, workload = max(best)
            lines.append(rounds.verdict(f"Goal, CPU against the best peer everywhere; highest ratio ({workload})", worst,
                                        goal))
    if lines:
        report.text("## Gates", "", *lines)


def bars(title: str, results: Sequence[Result]) -> str:
    """The chart: CPU of every contender for every workload."""
    groups = []
    for result in results:
        spreads = {name: figures.spread(result.cpu(name)) for name in result.samples}
        groups.append((result.workload, [chart.Bar(name, of.median, of.lower, of.upper)
                                         for name, of in spreads.items()]))
    return chart.bars(title, "CPU-seconds per 100,000 requests", groups)
