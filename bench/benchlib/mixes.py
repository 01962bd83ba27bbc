"""The mixes of `bench/run mixes`: which pages are asked for at once, by how many clients, of servers with how many threads; and their load."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import load, machine

APPLICATION = "mixes:application"
HELLO = b"Hello, world!"
#: Connections of a class that comes on a schedule: more than it needs unless the server is stuck.
SCHEDULE_CLIENTS = 64

_PART = re.compile(r"([a-z]+)([\d.]*)([*@])([\d.]+)")
#: What a page is called with; `{}` is the number behind its name, milliseconds.
_PATHS = {"wait": "/wait?ms={}", "compute": "/compute?ms={}", "waits": "/waits?ms=0.3", "compress": "/compress", "hash": "/hash?ms={}",
          "read": "/read", "write": "/write", "row": "/row", "lock": "/lock?ms={}", "keeps": "/keeps?ms={}", "hello": "/hello"}


@dataclass(frozen=True)
class Class:
    """One kind of pages in a mix: so many clients in a closed loop, or so many requests a second."""

    name: str
    path: str
    clients: int
    rate: float | None = None

    @property
    def words(self) -> str:
        """As the generator wants it."""
        schedule = "" if self.rate is None else f"rate={self.rate:g} "
        return f"{self.name} {schedule}clients={self.clients} {self.path}"


@dataclass(frozen=True)
class Mix:
    name: str
    #: In each worker.
    threads: int
    #: `NAME*CLIENTS` in a closed loop, `NAME@RATE` on a schedule; a name has milliseconds behind it.
    parts: str
    workers: int = 1

    @property
    def classes(self) -> list[Class]:
        return [_class(part) for part in self.parts.split()]

    @property
    def title(self) -> str:
        workers = f", {self.workers} workers" * (self.workers > 1)
        parts = (f"{each.name} ({f'{each.rate:g}/s' if each.rate else each.clients})" for each in self.classes)
        return f"{', '.join(parts)}; {self.threads} threads{workers}"


def _class(part: str) -> Class:
    found = _PART.fullmatch(part)
    assert found, part
    name, number, loop, count = found.groups()
    if name == "page":
        # Computes, waits, computes: half of its time each.
        path = f"/both?compute_ms={float(number) / 4:g}&wait_ms={float(number) / 2:g}"
    else:
        path = _PATHS[name].format(number)
    if loop == "*":
        return Class(name + number, path, int(count))
    return Class(name + number, path, SCHEDULE_CLIENTS, float(count))


#: The first of them are known to have starved a class, or to be uniform.
MIXES = (
    Mix("wait50-compute20", 10, "wait50*6 compute20*4"),
    Mix("wait5-compute20-hello", 10, "wait5*8 compute20*1 hello*1"),
    Mix("waits-compute20", 10, "waits*8 compute20*2"),
    Mix("compress-hello", 10, "compress*4 hello*4"),
    Mix("hash-compute20", 10, "hash20*5 compute20*5"),
    Mix("page20-compute50", 10, "page20*6 compute50*1"),
    Mix("wait5", 10, "wait5*10"),
    Mix("wait50-compute5", 10, "wait50*8 compute5*2"),
    Mix("page8-wait100", 10, "page8*16 wait100*8"),
    Mix("compress", 10, "compress*10"),
    Mix("read", 10, "read*10"),
    Mix("write", 10, "write*10"),
    Mix("row", 10, "row*10"),
    Mix("row-compute20-hello", 10, "row*4 compute20*2 hello*2"),
    Mix("read-write", 4, "read*6 write*4"),
    Mix("lock-hello", 10, "lock5*6 hello*4"),
    Mix("lock-compute20-wait5", 10, "lock5*4 compute20*2 wait5*4"),
    Mix("keeps-wait5-hello", 10, "keeps20*2 wait5*6 hello*2"),
    Mix("keeps-hello", 4, "keeps20*4 hello*4"),
    Mix("wait1-many", 10, "wait1*40"),
    Mix("wait100-hello-many", 10, "wait100*30 hello*10"),
    Mix("all-many", 10, "wait5*16 compute5*8 compress*4 read*4 hello*8"),
    Mix("wait50-compute20-four", 4, "wait50*6 compute20*4"),
    Mix("wait50-compute20-two", 2, "wait50*3 compute20*1"),
    Mix("compute50-hello-two", 2, "compute50*1 hello*1"),
    Mix("compute1", 4, "compute1*4"),
    Mix("page8-alone", 10, "page8*1"),
    Mix("hello-alone", 10, "hello*1"),
    Mix("schedule-wait50-compute5", 10, "wait50@60 compute5@40 hello@200"),
    Mix("schedule-waits-compute20", 10, "waits@50 compute20@20 hello@400"),
    Mix("schedule-compress-wait5", 4, "compress@30 wait5@150 hello@100"),
    Mix("schedule-hash-keeps", 10, "hash20@20 keeps20@10 wait5@100"),
    Mix("workers-wait50-compute20", 4, "wait50*6 compute20*4", 2),
    Mix("workers-hash-compute20", 4, "hash20*5 compute20*5", 2),
    Mix("workers-compute5-hello", 4, "compute5*10 hello*10", 2),
    Mix("workers-schedule", 4, "page8@80 compute20@20 hello@200", 2),
)


@dataclass(frozen=True)
class Outcome:
    """What a class got in one run; latencies in milliseconds."""

    rate: float
    p50: float
    p99: float
    wrong: int
    broken: int


@dataclass(frozen=True)
class Window:
    """How long a mix is loaded, in seconds, and the seed of its schedules."""

    seconds: float
    warm_up: float
    seed: int


def play(mix: Mix, port: int, window: Window, outstanding: Path, marks: dict[str, Callable[[int], None]]) -> dict[str, Outcome]:
    """Load the server with a mix; `marks` are called at "measuring" and "measured", with the id of the load's process.  `outstanding` tells meanwhile how many
    requests have no answer yet."""
    classes = [word for each in mix.classes for word in ("--class", each.words)]
    command = [*machine.pinned(*machine.cores()), str(load.GENERATOR), "--connect", f"127.0.0.1:{port}", *classes, "--length",
               str(len(HELLO)), "--seconds", str(window.seconds), "--warm-up", str(window.warm_up), "--poisson", str(window.seed),
               "--outstanding", str(outstanding)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(window.seconds + window.warm_up + load.SPARE_S, process.kill)
    limit.start()
    found = {}
    schedules = {each.name: each.rate for each in mix.classes}
    try:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            word, *rest = line.split()
            if word in marks:
                marks[word](process.pid)
            elif word == "class":
                found[rest[0]] = _outcome(dict(zip(rest[1::2], rest[2::2], strict=True)), schedules[rest[0]])
        if process.wait():
            raise load.WrongAnswer(f"{mix.name}: {process.stderr.read().strip() or 'took too long'}")
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    return found


def _outcome(said: dict[str, str], schedule: float | None = None) -> Outcome:
    """A server that works off what it has left waiting before is not faster than the `schedule`, in requests a second."""
    rate = min(float(said["rate"]), schedule or float("inf"))
    return Outcome(rate, float(said["p50_us"]) / 1e3, float(said["p99_us"]) / 1e3, int(said["wrong"]), int(said["broken"]))
