"""An outside count of idle threads: how often a request waits beside a thread that could run it although nobody computes.

Every two milliseconds it is looked how many requests the load has sent without an answer, how many threads are inside the application (both
say so in files), and what the kernel says each thread of the server does: `running`, or the system call in which it sleeps. A request waits
if more are on their way than are inside; a thread is idle if fewer are inside than there are; nobody computes if no thread of the server is
`running`. While the load itself runs, an answer may be on its way, and nothing is counted. The parts of a look are not read at the same
moment: it counts if neither the load nor the application has told anything else meanwhile, and the threads still sleep. A thread that is
woken on a halted processor sleeps until that has come back, which a virtual machine shows as a per cent or two of very short requests. On a
busy machine looks come late, and so rather too often when nobody computes.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import machine

LOOK_S = 0.002
#: How often threads and processes that are new are looked for.
LIST_S = 0.1
#: The size of the file of a process, in records.
MOST_THREADS = 64
_RECORD = struct.Struct("<II")


@dataclass(frozen=True)
class Found:
    """Of so many looks those in which a request waited beside an idle thread, and those of them in which nobody computed."""

    looks: int
    held: int
    idle: int

    @property
    def held_share(self) -> float:
        return self.held / max(1, self.looks)

    @property
    def idle_share(self) -> float:
        return self.idle / max(1, self.looks)


@dataclass(frozen=True)
class Place:
    """What is watched: a server's process, its threads for the application in all workers, and where the application and the load tell
    what they do."""

    pid: int
    threads: int
    folder: Path
    outstanding: Path


@dataclass(frozen=True)
class State:
    """What the load and the application told, as they wrote it."""

    load: bytes
    application: tuple[bytes, ...]

    @property
    def inside(self) -> int:
        return sum(flag for records in self.application for _, flag in _RECORD.iter_unpack(records))

    @property
    def waiting(self) -> int:
        outstanding, _sent = _RECORD.unpack(self.load)
        return outstanding - self.inside


class Watch:
    """Looks again and again from `start` to `stop`, on a thread of its own."""

    def __init__(self, place: Place, load: int) -> None:
        """`load` is the process that sends the requests."""
        self._place = place
        self._load = os.open(f"/proc/{load}/syscall", os.O_RDONLY)
        self._outstanding = os.open(place.outstanding, os.O_RDONLY)
        self._states: dict[str, int] = {}
        self._insides: dict[Path, int] = {}
        self._listed = -LIST_S
        self._looks = self._held = self._idle = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def found(self) -> Found:
        return Found(self._looks, self._held, self._idle)

    def close(self) -> None:
        for file in (self._load, self._outstanding, *self._states.values(), *self._insides.values()):
            os.close(file)

    def look(self) -> None:
        if time.monotonic() - self._listed > LIST_S:
            self._list()
            self._listed = time.monotonic()
        self._looks += 1
        before = self._state()
        if before and before.waiting > 0 and before.inside < self._place.threads:
            self._held += 1
            self._idle += self._sleeps() and self._state() == before and self._sleeps()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()

    def _list(self) -> None:
        for member in machine.process_tree(self._place.pid):
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{member}/task"):
                    path = f"/proc/{member}/task/{thread}/syscall"
                    if path not in self._states:
                        self._states[path] = os.open(path, os.O_RDONLY)
        for path in self._place.folder.glob("inside-*"):
            if path not in self._insides:
                self._insides[path] = os.open(path, os.O_RDONLY)

    def _state(self) -> State | None:
        """Nothing while the load runs."""
        if _running(self._load):
            return None
        return State(os.pread(self._outstanding, 8, 0),
                     tuple(os.pread(file, MOST_THREADS * _RECORD.size, 0) for file in self._insides.values()))

    def _sleeps(self) -> bool:
        """Whether no thread of the server computes."""
        return not any(_running(file) for file in self._states.values())


def _running(file: int) -> bool:
    try:
        return os.pread(file, 16, 0).startswith(b"running")
    except ProcessLookupError:
        # It has ended.
        return False
