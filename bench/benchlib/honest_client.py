"""An honest client beside attackers: the latency of its requests, and the memory of the server meanwhile.

The client runs on the server's core, in real time, so that it waits for nothing but the server; the attackers have the other core.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import figures, machine, rounds

#: From the end of one request to the next.
EVERY_S = 0.001
#: A request that takes longer is lost.
PATIENCE_S = 10.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def p99(port: int, seconds: float, context: ssl.SSLContext | None = None) -> tuple[float, int]:
    """Ask for the hello again and again on a kept connection: the p99 in milliseconds, and how many requests had no answer."""
    taken, lost = [], 0
    until = time.monotonic() + seconds
    peer = _connect(port, context)
    try:
        with machine.on_core(machine.cores()[0]), at_once():
            while time.monotonic() < until:
                begun = time.perf_counter()
                try:
                    _ask(peer)
                    taken.append(time.perf_counter() - begun)
                except OSError:
                    lost += 1
                    peer.close()
                    peer = _connect(port, context)
                time.sleep(EVERY_S)
    finally:
        peer.close()
    return 1e3 * figures.percentile(sorted(taken) or [PATIENCE_S], 0.99), lost


def _connect(port: int, context: ssl.SSLContext | None) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(peer, server_hostname="localhost") if context else peer


def _ask(peer: socket.socket) -> None:
    """The answer has a length, and 200."""
    peer.sendall(REQUEST)
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(peer)
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise OSError(head[:100])
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _more(peer)


def _more(peer: socket.socket) -> bytes:
    part = peer.recv(65536)
    if not part:
        raise OSError("the connection has ended")
    return part


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """The calling thread runs as soon as it can, whatever else would."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        raise rounds.Missing("a thread in real time, which needs CAP_SYS_NICE") from None
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def apart(play: Callable[..., None], *arguments: object, limit: float) -> Iterator[Callable[[], Any]]:
    """Run `play` in a process of its own, so that none of its work is the honest client's.  It gets a pipe behind its arguments, and sends a word when it
    begins and its result at the end, which the given function waits for.  It is killed after `limit` seconds from the end of the block."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=play, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.recv()
    try:
        yield ours.recv
    finally:
        process.join(limit)
        process.kill()


@contextlib.contextmanager
def watching(pid: int) -> Iterator[Callable[[], float]]:
    """The largest resident memory of the process, in bytes, within the block."""
    most = [machine.resident(pid)]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            most[0] = max(most[0], machine.resident(pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield lambda: most[0]
    finally:
        ended.set()
        watcher.join()
