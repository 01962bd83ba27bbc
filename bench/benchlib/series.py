"""What one server does with one workload, round after round: CPU, throughput, latency, context switches."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import chart, compare, figures, load, machine, rounds, servers, traffic

#: The percentiles that are kept.
SHARES = (0.5, 0.9, 0.99, 0.999)
SMOKE_SCHEDULE_S = 0.5


@dataclass
class Series:
    """All rounds of one server with one workload; latencies in milliseconds."""

    #: CPU-seconds per 100,000 requests.
    cpu: list[float] = field(default_factory=list)
    #: The same of the load, in a closed loop.
    load: list[float] = field(default_factory=list)
    #: Right answers per second; of a schedule, its rate.
    rate: list[float] = field(default_factory=list)
    #: Percentiles of each round, by their shares.
    percentiles: dict[float, list[float]] = field(default_factory=lambda: {share: [] for share in SHARES})
    #: Context switches per request: a thread that went to sleep has been woken, or will be.
    voluntary: list[float] = field(default_factory=list)
    involuntary: list[float] = field(default_factory=list)
    #: Share of the schedule that was answered.
    finished: list[float] = field(default_factory=list)
    #: Of a schedule: every latency of a fast request, sorted, by round; microseconds.
    latencies: list[list[float]] = field(default_factory=list)
    #: What else was asked meanwhile, if the bench keeps it: all rounds, milliseconds.
    beside: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        """A percentile: the median of the rounds'."""
        return figures.spread(self.percentiles[share]).median

    def together(self, share: float) -> float:
        """A percentile of all rounds of a schedule together; of a closed loop as `at`."""
        if not self.latencies:
            return self.at(share)
        return figures.percentile(list(heapq.merge(*self.latencies)) or [float("inf")], share) / 1e3

    def median(self, name: str) -> float:
        """Of one of the lists above."""
        return figures.spread(getattr(self, name)).median


@dataclass(frozen=True)
class Schedule:
    """So many requests a second, at random intervals, after a warm-up at the same rate."""

    rate: float
    seconds: float = 6.0
    #: Its length as a share of `seconds`.
    warm_up: float = 1 / 6

    def lengths(self, options: rounds.Options) -> tuple[float, float]:
        """Seconds measured and of warm-up in this run."""
        seconds = options.duration(self.seconds, SMOKE_SCHEDULE_S)
        return seconds, seconds * self.warm_up


@dataclass(frozen=True)
class Workload:
    """What is sent: on a schedule, or else in a closed loop."""

    name: str
    requests: Sequence[traffic.Request]
    schedule: Schedule | None = None


#: By workload and server.
Table = dict[tuple[str, str], Series]


class Watch:
    """CPU time and context switches of a server between `start` and `stop`."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server
        self.meter = rounds.Meter(server)
        self.switches = machine.Switches()
        self._before: dict[int, machine.Switches] = {}

    def start(self) -> None:
        self._before = machine.context_switches(self._server.pid)
        self.meter.start()

    def stop(self) -> None:
        self.meter.stop()
        self.switches = machine.switched(self._before, machine.context_switches(self._server.pid))



@dataclass(frozen=True)
class Loop:
    """So many connections that are busy all the time."""

    connections: int = compare.CONNECTIONS
    seconds: float = compare.SECONDS
    #: Its length as a share of `seconds`.
    warm_up: float = 1 / 4
    #: The generator polls; otherwise it sleeps when nothing has come.
    spin: bool = True
    #: It has a core of its own; otherwise it may use the server's too.
    pinned: bool = True


def in_closed_loop(options: rounds.Options, server: servers.Server, requests: Path, series: Series,
                   loop: Loop = Loop()) -> Watch:
    """One round with all connections busy."""
    watch = Watch(server)
    seconds = options.duration(loop.seconds, compare.SMOKE_SECONDS)
    closed = load.busy(server.port, load.listed(requests), loop.connections, 1, seconds, seconds * loop.warm_up,
                       {"measuring": watch.start, "measured": watch.stop}, loop.spin, loop.pinned)
    if closed.failed or not closed.requests:
        raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests, {closed.requests} right ones")
    _note(series, watch, closed.requests)
    series.load.append(closed.cpu_ns / closed.requests / 1e4)
    series.rate.append(closed.rate)
    for share, value in ((0.5, closed.p50), (0.99, closed.p99), (0.999, closed.p999)):
        series.percentiles[share].append(value / 1e3)
    series.finished.append(1.0)
    return watch


def on_schedule(options: rounds.Options, schedule: Schedule, server: servers.Server, requests: Path, seed: int,
                series: Series, folder: Path, may_starve: bool = False, pinned: bool = True) -> Watch:
    """One round on a schedule, the same one for the same seed; CPU and switches include the warm-up.

    With `may_starve`, a server that answers nothing has a latency of the whole schedule; else that is an error. Without
    `pinned` the generator may use the server's core too.
    """
    seconds, warm_up = schedule.lengths(options)
    watch = Watch(server)
    watch.start()
    outcome = load.openloop(server.port, load.listed(requests), schedule.rate, seconds, warm_up, compare.CONNECTIONS,
                            folder, poisson=seed, pinned=pinned)
    watch.stop()
    if outcome.wrong or outcome.broken or not (outcome.answered or may_starve):
        raise load.WrongAnswer(f"{server.name}: {outcome.wrong} wrong answers, {outcome.broken} connections broke, "
                               f"{outcome.answered} right answers")
    _note(series, watch, max(1, outcome.answered + int(schedule.rate * warm_up)))
    series.rate.append(schedule.rate)
    for share in SHARES:
        series.percentiles[share].append(figures.percentile(outcome.latencies or [seconds * 1e6], share) / 1e3)
    series.finished.append(outcome.answered / outcome.scheduled)
    series.latencies.append(outcome.latencies)
    return watch


def _note(series: Series, watch: Watch, requests: int) -> None:
    series.cpu.append(watch.meter.cpu_ns / requests / 1e4)
    series.voluntary.append(watch.switches.voluntary / requests)
    series.involuntary.append(watch.switches.involuntary / requests)


def bars(table: Table, workload: str, what: str | float = "cpu") -> list[chart.Bar]:
    """A group of a chart: for every server with this workload a list of its `Series`, or a percentile by its share."""
    spreads = {server: figures.spread(getattr(series, what) if isinstance(what, str) else series.percentiles[what])
               for (name, server), series in table.items() if name == workload}
    return [chart.Bar(server, of.median, of.lower, of.upper) for server, of in spreads.items()]
