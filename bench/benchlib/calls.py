"""Clients as contenders: a process of `bench/callers` for each, on the load's core, which calls one address by one library."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from . import load, machine, peers

CALLERS = machine.REPOSITORY / "bench/callers"
#: A first call comes after imports.
START_S = 30.0


@dataclass(frozen=True)
class Library:
    """A contender: what it imports, and how it is called."""

    environment: peers.Environment
    #: Its name in `bench/callers`.
    name: str
    #: Modules that it needs, or a program.
    modules: tuple[str, ...] = ()
    program: str | None = None
    #: It has packages that may not stand beside those of the others (`peers.Environment.alone`).
    alone: bool = False

    def absent(self) -> str | None:
        """The name of what it needs, if that is not there."""
        if self.program is not None:
            return None if shutil.which(self.program) else self.program
        return next((module for module in self.modules if not _has(self.environment, module, self.alone)), None)


@functools.cache
def _has(environment: peers.Environment, module: str, alone: bool) -> bool:
    return environment.has(module, alone=alone)


@dataclass(frozen=True)
class Measured:
    """One measurement: CPU and latencies in microseconds."""

    calls: int
    cpu: float
    p50: float
    p99: float
    #: Share of the callers' core that went to anything else.
    others: float


class Caller:
    """A running process, which waits for its turn."""

    def __init__(self, library: Library, form: str, callers: int, size: int, url: str) -> None:
        self.name = library.name
        environment = library.environment
        command = [*machine.pinned(machine.cores()[1]), environment.program("python"), CALLERS, library.name, form, str(callers), str(size), url]
        variables = {"PYTHONPATH": str(environment.alone)} if library.alone else {}
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=os.environ | variables)
        try:
            self._line(START_S)
        except BaseException:
            self.end()
            raise

    def measure(self, seconds: float) -> Measured:
        busy, ours, begun = self._spent()
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        said = json.loads(self._line(2 * seconds + load.SPARE_S))
        busy, ours, took = (after - before for after, before in zip(self._spent(), (busy, ours, begun), strict=True))
        return Measured(said["calls"], said["cpu_ns"] / said["calls"] / 1e3, said["p50_ns"] / 1e3, said["p99_ns"] / 1e3,
                        max(0, busy - ours) / took)

    def _spent(self) -> tuple[int, int, int]:
        """How long the core was busy, the CPU time of this process, and the time."""
        return machine.core_busy_ns(machine.cores()[1]), machine.cpu_ns(self.process.pid), time.monotonic_ns()

    def _line(self, limit: float) -> str:
        """The next line of the process. Raise if it has ended or takes too long."""
        assert self.process.stdout is not None and self.process.stderr is not None
        if not select.select([self.process.stdout], [], [], limit)[0]:
            raise load.WrongAnswer(f"{self.name}: no answer of the callers within {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read().strip().splitlines()
            raise load.WrongAnswer(f"{self.name}: {said[-1] if said else 'the callers have ended'}")
        return line

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def running(library: Library, form: str, callers: int, size: int, url: str) -> Iterator[Caller]:
    caller = Caller(library, form, callers, size, url)
    try:
        yield caller
    finally:
        caller.end()
