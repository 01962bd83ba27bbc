"""Clients that are slow on purpose: some send a request in drips, some read an answer in sips, all at the same time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import machine
from .load import WrongAnswer

#: Each client does something so often, seconds; they are spread over that time.
TICK_S = 0.1
#: As on an Ethernet: the loopback's segments are so large that whole answers would fit into the kernel's buffers.
SEGMENT, RECEIVE_BUFFER = 1448, 16 << 10


@dataclass(frozen=True)
class Kind:
    """So many clients with this request, and the most bytes that one sends and reads in a second."""

    count: int
    wire: bytes
    sends: int
    reads: int


class _Client:
    """One connection, which asks the same again and again."""

    def __init__(self, port: int, kind: Kind) -> None:
        self._kind = kind
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._begin()

    def _begin(self) -> None:
        self._unsent = self._kind.wire
        self._head = b""
        self._missing: int | None = None

    def tick(self) -> None:
        # Whoever is not let send or has nothing to read waits for the next turn.
        with contextlib.suppress(BlockingIOError):
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent[:int(self._kind.sends * TICK_S)]):]
        with contextlib.suppress(BlockingIOError):
            self._take(self._socket.recv(max(1, int(self._kind.reads * TICK_S))))

    def _take(self, data: bytes) -> None:
        if not data:
            raise WrongAnswer("a slow client's connection was closed")
        if self._missing is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            if not head.startswith(b"HTTP/1.1 200 "):
                raise WrongAnswer(f"a slow client was answered {head[:200]!r}")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            self._missing = int(fields[b"content-length"])
        self._missing -= len(data)
        if not self._missing:
            self._begin()

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def running(port: int, kinds: Sequence[Kind], pinned: bool = True) -> Iterator[None]:
    """All of them from here on, on the load's core or (not `pinned`) on any; at the end their connections are closed, whatever is under way.

    Raises `WrongAnswer` at the end if one was answered wrongly or turned away."""
    ended = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        clients = pool.submit(_run, port, kinds, ended, pinned)
        try:
            yield
        finally:
            ended.set()
        clients.result()


def _run(port: int, kinds: Sequence[Kind], ended: threading.Event, pinned: bool) -> None:
    place = machine.on_core(machine.cores()[1]) if pinned else contextlib.nullcontext()
    with place, contextlib.ExitStack() as stack:
        clients = [_Client(port, kind) for kind in kinds for _ in range(kind.count)]
        for client in clients:
            stack.callback(client.close)
        due = time.monotonic()
        while True:
            for client in clients:
                due += TICK_S / len(clients)
                if ended.wait(max(0.0, due - time.monotonic())):
                    return
                client.tick()
