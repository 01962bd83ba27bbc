"""The named locks: who waits for them under mixed load, and at saturation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, compare, load, metrics, rounds, servers, traffic, workbench
from benchlib.report import Report, say

TITLE = "Named locks: acquisitions, contention and waits"
HELLO = workbench.HELLO
#: Five minutes of requests at so many a second; then a closed loop.
RATE, SECONDS = 120, 300.0
SATURATION_S = 20.0
#: Share of the mixed load's length that is not measured first, and of that of saturation.
WARM_UP = 0.02
THREADS, SATURATION_THREADS = 20, 30
#: Gates: acquisitions for each contended one; lock waits to CPU time.
GATE_CONTENDED, GATE_WAIT = 20_000, 0.01


def _blend(*parts: tuple[str, float]) -> list[traffic.Request]:
    return traffic.blend([(traffic.bare(path, HELLO), share) for path, share in parts])


MIXED = _blend(("/", 0.7), ("/cpu/200", 0.1), ("/sleep/1", 0.1), ("/sleep/50", 0.1))
#: Sleepers that are short enough for the rest to keep the core busy.
SATURATING = _blend(("/", 0.88), ("/cpu/200", 0.1), ("/sleep/1", 0.02))


#: A server by its name and options.
Program = Callable[[str, Sequence[str]], servers.Contender]


@dataclass(frozen=True)
class Phase:
    """One server under one load, start to end."""

    name: str
    locks: dict[str, metrics.Lock]
    requests: int
    cpu_s: float

    @property
    def waited_s(self) -> float:
        return sum(lock.wait for lock in self.locks.values())


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    lines: list[str] = []
    report.text(
        f"Mixed load: {RATE} requests/s (Poisson) for {options.duration(SECONDS):g} s, {THREADS} threads; 70 % hello, "
        "10 % 200 µs of CPU, 10 % sleep 1 ms, 10 % sleep 50 ms. Saturation: "
        f"{compare.CONNECTIONS} busy connections, {SATURATION_THREADS} threads; 88 % hello, 10 % 200 µs of CPU, 2 % "
        "sleep 1 ms. Both with the server on all cores and the load on one of them. Counts are those of the measured "
        f"time, from `{metrics.PATH}`; the longest wait is that since the server started, which is new for each load. A "
        f"lock that was taken less than {GATE_CONTENDED:,} times meets its gate only without any contention.")
    phases = []
    for program_name, program in _programs(options, lines).items():
        if not servers.offers(program(program_name, []).program, metrics.OPTION):
            workbench.left_out(lines, f"{program_name} (this build has no {metrics.OPTION})")
            continue
        for load_name, threads, work in (("mixed", THREADS, _mixed), ("saturation", SATURATION_THREADS, _saturation)):
            name = f"{program_name}, {load_name}"
            words = ["--min-threads", str(threads), "--max-threads", str(threads), *metrics.WORDS]
            chosen, _ = rounds.present(rounds.Options(), [program(name, words)])
            with rounds.all_running(chosen, folder, folder) as (server,):
                say(f"locks: {name}")
                phases.append(work(options, server, folder))
    report.text(*lines)
    if not phases:
        raise rounds.Missing("; ".join(lines))
    report.table(["load", "lock", "acquisitions", "a request", "contended", "one in", "total wait ms",
                  "longest wait µs"], [row for phase in phases for row in _rows(phase)])
    report.table(["load", "requests", "CPU s", "total lock wait s", "wait / CPU"],
                 [[phase.name, f"{phase.requests:,}", f"{phase.cpu_s:.2f}", f"{phase.waited_s:.6f}",
                   f"{100 * phase.waited_s / phase.cpu_s:.4f} %"] for phase in phases])
    report.text("## Gates", "", *_gates(phases))
    report.chart(chart.bars(TITLE, "contended per million acquisitions", [
        (phase.name, [_bar(name, lock) for name, lock in phase.locks.items()]) for phase in phases]))


def _programs(options: rounds.Options, lines: list[str]) -> dict[str, Program]:
    """What is loaded, by name: the product in each language."""
    return {language: functools.partial(workbench.contender, environment, pinned=False)
            for language, environment in workbench.languages(options, lines).items()}


class _Measured:
    """The locks and the CPU time of a server between `start` and `stop`."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server
        self._meter = rounds.Meter(server)
        self._before: dict[str, metrics.Lock] = {}
        self._after: dict[str, metrics.Lock] = {}

    def start(self) -> None:
        self._before = self._read()
        self._meter.start()

    def stop(self) -> None:
        self._meter.stop()
        self._after = self._read()

    def phase(self, requests: int) -> Phase:
        locks = {name: lock - self._before.get(name, metrics.Lock()) for name, lock in self._after.items()}
        return Phase(self._server.name, locks, requests, self._meter.cpu_ns / 1e9)

    def _read(self) -> dict[str, metrics.Lock]:
        locks = metrics.locks(metrics.read(self._server.port))
        if not locks:
            raise load.WrongAnswer(f"{self._server.name}: {metrics.PATH} names no lock")
        return locks


def _requests(server: servers.Server, wanted: Sequence[traffic.Request], folder: Path) -> list[str]:
    requests = traffic.settle(server.name, server.port, wanted)
    return load.listed(traffic.write(folder / "requests", requests))


def _mixed(options: rounds.Options, server: servers.Server, folder: Path) -> Phase:
    requests = _requests(server, MIXED, folder)
    seconds = options.duration(SECONDS)
    # The threads are made and the connections accepted before it counts.
    load.openloop(server.port, requests, RATE, max(1.0, seconds * WARM_UP), 0, compare.CONNECTIONS, folder, poisson=1)
    measured = _Measured(server)
    measured.start()
    outcome = load.openloop(server.port, requests, RATE, seconds, 0, compare.CONNECTIONS, folder, poisson=2)
    measured.stop()
    if outcome.answered < outcome.scheduled:
        raise load.WrongAnswer(f"{server.name}: {outcome.answered} of {outcome.scheduled} requests answered")
    return measured.phase(outcome.answered)


def _saturation(options: rounds.Options, server: servers.Server, folder: Path) -> Phase:
    requests = _requests(server, SATURATING, folder)
    seconds = min(options.duration(SATURATION_S), SATURATION_S)
    measured = _Measured(server)
    closed = load.busy(server.port, requests, compare.CONNECTIONS, 1, seconds, max(0.5, seconds * WARM_UP),
                       {"measuring": measured.start, "measured": measured.stop})
    if closed.failed or not closed.requests:
        raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests, {closed.requests} right ones")
    return measured.phase(closed.requests)


def _rows(phase: Phase) -> list[list[str]]:
    return [[phase.name, name, f"{lock.acquisitions:,}", f"{lock.acquisitions / phase.requests:.3f}",
             f"{lock.contended:,}", _one_in(lock), f"{lock.wait * 1e3:.3f}", f"{lock.longest * 1e6:.0f}"]
            for name, lock in phase.locks.items()]


def _one_in(lock: metrics.Lock) -> str:
    return f"{lock.acquisitions / lock.contended:,.0f}" if lock.contended else "–"


def _gates(phases: Sequence[Phase]) -> list[str]:
    lines = []
    for phase in phases:
        if phase.name.endswith("mixed"):
            # The lock that is nearest to the limit.
            rate, name = max((lock.contended * GATE_CONTENDED / max(1, lock.acquisitions), name)
                             for name, lock in phase.locks.items())
            what = f"Gate, {phase.name}: contended acquisitions in {GATE_CONTENDED:,}, worst lock ({name})"
            lines.append(rounds.verdict(what, rate, 1.0))
        else:
            lines.append(rounds.verdict(f"Gate, {phase.name}: total lock wait in % of CPU time",
                                        100 * phase.waited_s / phase.cpu_s, 100 * GATE_WAIT))
    return lines


def _bar(name: str, lock: metrics.Lock) -> chart.Bar:
    share = 1e6 * lock.contended / max(1, lock.acquisitions)
    return chart.Bar(name, share, share, share)
