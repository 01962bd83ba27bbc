"""WebSockets: the contenders that have them, the messages, and the load: sockets that are busy all the time, or idle."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import struct
import subprocess
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import clients, h2, load, machine, python_servers, rounds
from .peers import Environment
from .servers import Contender, Server

APPLICATION = "echo_sockets:application"
PATH = "/echo"
PLAIN, DEFLATE = "plain", "deflate"
#: All messages together have about so many bytes: more than any window of a compression, and less than a processor's cache.
SET_BYTES = 512 << 10
FEWEST, MOST = 8, 4096
#: As a power of two, the window of the messages: the smallest that a contender wants.
WINDOW_BITS = 12
#: An idle load ends by itself after so many seconds.
IDLE_LIMIT_S = 300.0
OPEN_LIMIT_S = 120.0


def contenders(environment: Environment) -> list[Contender]:
    """All run one worker with their defaults; peregrine alone is told to compress.  uvicorn runs with the loop and protocol that it
    chooses by itself, and with each other one that its extra "standard" installs."""
    uvicorn, *others, ours = python_servers.asgi(environment, APPLICATION)
    hypercorn = h2.python(environment, APPLICATION, "asgi")[0]
    peers = [_with(each, "--ws-compress") if each.name == "peregrine" else each for each in others]
    return [uvicorn, *(_uvicorn(uvicorn, *form) for form in (("websockets", "uvloop"), ("wsproto", "uvloop"), ("websockets", "asyncio"),
                                                             ("wsproto", "asyncio"))),
            hypercorn, *peers, ours]


def _uvicorn(plain: Contender, protocol: str, loop: str) -> Contender:
    name = f"{plain.name}, {protocol}{'' if loop == 'uvloop' else f', {loop}'}"
    # The later one of two options counts.
    return dataclasses.replace(_with(plain, "--ws", protocol, "--loop", loop), name=name)


def _with(contender: Contender, *more: str) -> Contender:
    words = contender.options["words"]
    assert isinstance(words, list)
    return dataclasses.replace(contender, options={**contender.options, "words": [*words, *more]})


# Messages


def texts(length: int) -> list[bytes]:
    """Different texts of this length that look like JSON."""
    return [_text(number, length) for number in range(max(FEWEST, min(MOST, SET_BYTES // length)))]


def _text(number: int, length: int) -> bytes:
    if length < 64:
        return b'{"n": %0*d}' % (length - 7, number)
    # What an application tells its clients about: records with the same names, and values that differ.
    parts, size, turn = [b'{"type": "update", "rows": ['], 0, 0
    while size < length:
        value = zlib.crc32(b"%d %d" % (number, turn))
        parts.append(b'{"id": %d, "name": "item %04d", "price": %d.%02d, "stock": %d, "tags": ["%s", "sale"], "ok": true}, '
                     % (value, value % 5000, value % 977, value % 100, value % 31, (b"red", b"green", b"blue", b"grey")[value % 4]))
        size, turn = size + len(parts[-1]), turn + 1
    return b"".join(parts)[: length - 2] + b"]}"


def deflated(text: bytes) -> bytes:
    """A message by itself (RFC 7692 §7.2.1)."""
    compressor = zlib.compressobj(wbits=-WINDOW_BITS)
    return (compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


def write(path: Path, messages: Sequence[bytes]) -> Path:
    """The file that the load reads: each text and its compressed form, each behind its length."""
    path.write_bytes(b"".join(struct.pack("<I", len(part)) + part for text in messages for part in (text, deflated(text))))
    return path


# Load


@dataclass(frozen=True)
class Load:
    """So many sockets; each sends one message of the file after the other, as soon as the last one has come back."""

    messages: Path
    connections: int
    form: str = PLAIN


@dataclass(frozen=True)
class Outcome:
    closed: load.Closed
    #: Of an answer's payload, as it came.
    answer_bytes: float
    #: Of the answers: those that were compressed.
    compressed: float
    #: Of the time: that in which the load had nothing to do.
    idle: float


def run(server: Server, what: Load, seconds: float) -> rounds.Timed[Outcome]:
    """Load the server for so long, and account for it behind the warm-up.  Raise `clients.CannotDo` where it opens no socket of this
    form."""
    words = [str(server.port), PATH, str(what.messages), str(what.connections), what.form, "load", str(seconds)]
    said, meter = clients.play("sockets", server, words, 2 * seconds)
    answered, size = int(said["answered"]), int(said["bytes"])
    count = max(answered, 1)
    outcome = Outcome(load.Closed(answered, float(said["seconds"]), 0, size), size / count, int(said["compressed"]) / count, float(said["idle"]))
    return rounds.Timed(outcome, meter.cpu_ns, meter.others)


@contextlib.contextmanager
def idle(server: Server, what: Load) -> Iterator[None]:
    """Hold so many sockets open that have had one answer each and are silent."""
    words = [str(server.port), PATH, str(what.messages), str(what.connections), what.form, "idle", str(IDLE_LIMIT_S)]
    process = subprocess.Popen(clients.command("sockets", words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(OPEN_LIMIT_S, process.kill)
    limit.start()
    try:
        assert process.stdout is not None and process.stderr is not None
        opened = process.stdout.readline()
        limit.cancel()
        if opened.strip() != "open":
            raise clients.CannotDo(process.stderr.read().strip() or "took too long")
        yield
        if process.poll() is not None:
            raise load.WrongAnswer(f"{server.name}: idle sockets: {process.stderr.read().strip() or 'ended'}")
    finally:
        limit.cancel()
        process.kill()
        process.wait()


def per_socket(server: Server, few: Load, more: Load) -> float:
    """Bytes of memory for each of `more` sockets beside a `few`."""
    with idle(server, few):
        before = machine.settled_memory(server.pid)
        with idle(server, more):
            return (machine.settled_memory(server.pid).pss - before.pss) / more.connections


@dataclass(frozen=True)
class Objects:
    """What Python has for a socket, in bytes: all that its allocators have given, and some of the objects that are in it."""

    traced: float
    scope: int
    task: int
    coroutine: int


def objects(server: Server, few: Load, more: Load) -> Objects:
    """The same of what Python's allocators give; for a server with PYTHONTRACEMALLOC=1."""
    with idle(server, few):
        before = _sizes(server)
        with idle(server, more):
            after = _sizes(server)
    return Objects((after["traced"] - before["traced"]) / more.connections, after["scope"], after["task"], after["coroutine"])


def _sizes(server: Server) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        # The first one may make what stays.
        for _ in range(2):
            connection.request("GET", "/memory")
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise load.WrongAnswer(f"{server.name} answered /memory with {answer.status}")
        sizes: dict[str, int] = json.loads(said)
        return sizes
    finally:
        connection.close()
