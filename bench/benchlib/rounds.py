"""Rounds: every contender once, in turn, again and again, so that what changes on the machine hits all alike."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from . import figures, load, machine, servers
from .report import say

T = TypeVar("T")


class Missing(Exception):
    """Something the bench cannot do without is not installed."""


@dataclass(frozen=True)
class Options:
    """What the command line says; `None` leaves the choice to the bench."""

    smoke: bool = False
    pairs: int | None = None
    seconds: float | None = None
    only: tuple[str, ...] = ()
    threads: int = 1
    load: str = "wrk"
    #: The interpreter of the Python benches.
    python: Path | None = None
    #: The pages of `pages`; all of them without one.
    pages: tuple[str, ...] = ()
    #: Of the benches that have both forms, only the one that users run.
    unpinned: bool = False
    #: Of `mixed`: seconds of another load before a measured one.
    before: float | None = None

    def rounds(self, full: int, smoke: int = 2) -> int:
        return self.pairs or (smoke if self.smoke else full)

    def duration(self, full: float, smoke: float = 1.0) -> float:
        return self.seconds or (smoke if self.smoke else full)


@dataclass(frozen=True)
class Timed(Generic[T]):
    """What a piece of work returned, and what it cost."""

    outcome: T
    cpu_ns: int
    others: float


def need(*programs: str) -> None:
    """Raise `Missing` unless every program is installed."""
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        raise Missing(f"not installed: {', '.join(absent)}")


class Candidate(Protocol):
    """A server or a client that may be measured."""

    @property
    def name(self) -> str: ...

    def absent(self) -> str | None:
        """What it needs and is not there."""


C = TypeVar("C", bound=Candidate)


def present(options: Options, candidates: Sequence[C]) -> tuple[list[C], list[str]]:
    """The candidates that can run, and a line for each that cannot."""
    chosen = [each for each in candidates if not options.only or each.name in options.only]
    unknown = set(options.only) - {each.name for each in candidates}
    if unknown:
        raise Missing(f"no such contender: {', '.join(sorted(unknown))}; there are "
                      + ", ".join(each.name for each in candidates))
    found = [each for each in chosen if not each.absent()]
    lines = [f"skipped: {each.name} ({absent} is not installed or not built)"
             for each in chosen if (absent := each.absent())]
    for line in lines:
        say(line)
    if not found:
        raise Missing("no contender can run")
    return found, lines


@contextlib.contextmanager
def all_running(contenders: Sequence[servers.Contender], root: Path, folder: Path,
                connections: int = 512) -> Iterator[list[servers.Server]]:
    """All contenders at once; the ones not loaded sleep."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(servers.running(each, root, folder, connections)) for each in contenders]


#: Between two looks whether a server has come to rest, the share of a core below which it has, and how long that may take.
REST_LOOK_S, IDLE_SHARE, MOST_REST_S = 0.05, 0.2, 30.0


class Meter:
    """CPU time of a server's process tree between `start` and `stop`."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server
        self._from = (0, 0, 0, 0)
        self.cpu_ns = 0
        #: Share of the server's core that went to anything but the server (other processes, interrupts, steal); of a
        #: server that is not held to it the share of both cores that went to nothing the bench started.
        self.others = 0.0

    def start(self) -> None:
        self._from = self._read()

    def stop(self) -> None:
        self.cpu_ns, ours, busy, wall = (end - start for end, start in zip(self._read(), self._from, strict=True))
        self.others = max(0, busy - ours) / wall

    def _read(self) -> tuple[int, int, int, int]:
        """CPU time of the server, of what counts as ours on its core, and all of it; and the time."""
        cpu = machine.cpu_ns(self._server.pid)
        if self._server.pinned:
            return cpu, cpu, machine.core_busy_ns(machine.cores()[0]), time.monotonic_ns()
        both = len(set(machine.cores()))
        return cpu, machine.cpu_ns(os.getpid()), machine.cores_busy_ns(), both * time.monotonic_ns()


def rest(server: servers.Server) -> None:
    """Wait until the server has ended what it was asked in its window: the next one is measured on the same core."""
    until = time.monotonic() + MOST_REST_S
    meter = Meter(server)
    while time.monotonic() < until:
        meter.start()
        time.sleep(REST_LOOK_S)
        meter.stop()
        if meter.cpu_ns < IDLE_SHARE * REST_LOOK_S * 1e9:
            return


def timed(server: servers.Server, work: Callable[[], T]) -> Timed[T]:
    """Run `work` and account the CPU time that the server's process tree used meanwhile (its warm-up included)."""
    meter = Meter(server)
    meter.start()
    outcome = work()
    meter.stop()
    return Timed(outcome, meter.cpu_ns, meter.others)


def busy(options: Options, server: servers.Server, path: str, size: int, connections: int, seconds: float,
         folder: Path) -> tuple[load.Closed, Meter]:
    """Keep so many connections busy with one path, by the generator that the options say, and account for it."""
    meter = Meter(server)
    if options.load == "own":
        marks = {"measuring": meter.start, "measured": meter.stop}
        return load.busy(server.port, load.one_path(path, size), connections, 1, seconds, seconds / 4, marks), meter
    meter.start()
    closed = load.wrk(server.port, path, connections, seconds, folder)
    meter.stop()
    return closed, meter


#: In the place of a ratio to a CPU time of zero.
TOO_SHORT = "too short"


def against(samples: dict[str, list[float]], name: str, base: str) -> str:
    """The ratio name / base as a table cell: median of the pairs and its interval."""
    if base not in samples or name == base:
        return "–"
    return ratio_text(figures.ratios(samples[name], samples[base]))


def ratio_text(ratio: figures.Spread) -> str:
    """A ratio with its interval."""
    if math.isnan(ratio.median):
        return TOO_SHORT
    return f"{ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f})"


def others_text(shares: Sequence[float], where: str = "the server's core") -> str:
    """The line every report carries about disturbance."""
    return (f"Other work on {where} while measuring: median {100 * figures.spread(shares).median:.0f} %, "
            f"most {100 * max(shares):.0f} % (other processes, interrupts, stolen time).")


def verdict(words: str, value: float, limit: float, least: bool = False) -> str:
    """A gate or goal with the figure beside it; `least`: the figure must reach the limit, not stay below."""
    if math.isnan(value):
        return f"- {words}: {TOO_SHORT}"
    met = value >= limit if least else value <= limit
    return f"- {words}: {value:.3f} against {'at least ' * least}{limit:.3f}: **{'met' if met else 'not met'}**"


INTERVAL_NOTE = ("Medians with quartiles in brackets; ratios are formed pair by pair (same round), median with the "
                 "interval that holds the true median with 95 % confidence (the whole range below six pairs).")
