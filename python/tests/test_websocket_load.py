"""Many WebSockets: a message a second each, what an idle one costs, and workers that are replaced below them. In short, or with MAITRED_LONG=1."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from conftest import PATIENCE, Serve
from crews import Crew, Start, crew
from operation_clients import allow_descriptors, processor_seconds
from test_websocket_cases import APP
from websocket_frames import Opcode, close, pong, split, text
from websocket_wire import complaints, request

__all__ = ["crew"]

LONG = "MAITRED_LONG" in os.environ
SOCKETS, SECONDS = (5000, 10) if LONG else (1000, 3)
#: Python's objects for its task and messages, TLS and compression aside, and what the engine keeps.
MOST_PER_SOCKET = 32 << 10

pytestmark = pytest.mark.timeout(300)


class Peer(asyncio.Protocol):
    """One WebSocket that says how often it has said something, and looks whether the same comes back."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.opened = asyncio.get_running_loop().create_future()
        self.said = self.heard = 0
        self.said_at = 0.0
        self.code: int | None = None
        self._received = bytearray()
        self._is_accepted = self._has_left = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(request("/"))

    def say(self) -> None:
        if self._is_accepted and not self._has_left and self.code is None:
            self.said += 1
            self.said_at = time.monotonic()
            self.transport.write(text(f"message {self.said}"))

    def leave(self) -> None:
        self._has_left = True
        self.transport.write(close())

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_accepted:
            head, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            self._received, self._is_accepted = rest, head.startswith(b"HTTP/1.1 101 ")
            if not self._is_accepted:
                return self.fail(f"not accepted: {bytes(head[:60])!r}")
            self.opened.set_result(self)
        while (found := split(self._received)) is not None:
            self._take(found.opcode, found.payload)

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == Opcode.TEXT:
            self.heard += 1
            self.crowd.latencies.append(time.monotonic() - self.said_at)
            if payload != b"message %d" % self.heard:
                self.fail(f"{payload!r}, and not message {self.heard}")
        elif opcode == Opcode.PING:
            self.transport.write(pong(payload))
        elif opcode == Opcode.CLOSE:
            self.code = int.from_bytes(payload[:2], "big")
            self.crowd.codes[self.code] += 1
            if not self._has_left:
                self.transport.write(close(self.code))

    def connection_lost(self, error: Exception | None) -> None:
        if self.code is None:
            self.fail(f"ended without a close: {error!r}")
        self.crowd.gone(self)

    def fail(self, why: str) -> None:
        self.crowd.failed[why] += 1
        self.transport.abort()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(why))


@dataclass
class Crowd:
    port: int
    #: Those that a 1012 has closed come again.
    comes_again: bool = False
    peers: set[Peer] = field(default_factory=set)
    latencies: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    coming: set[asyncio.Task[None]] = field(default_factory=set)
    came_again: int = 0

    async def open(self, count: int) -> None:
        """Fifty at a time."""
        slots = asyncio.Semaphore(50)

        async def one() -> None:
            async with slots:
                await self.come()

        await asyncio.gather(*(one() for _ in range(count)))

    async def come(self) -> None:
        try:
            _, peer = await asyncio.get_running_loop().create_connection(lambda: Peer(self), "127.0.0.1", self.port)
            await peer.opened
            self.peers.add(peer)
        except OSError as error:
            self.failed[repr(error)] += 1

    def gone(self, peer: Peer) -> None:
        self.peers.discard(peer)
        if self.comes_again and peer.code == 1012:
            self.came_again += 1
            task = asyncio.get_running_loop().create_task(self.come())
            self.coming.add(task)
            task.add_done_callback(self.coming.discard)

    async def talk(self, seconds: float, period: float) -> None:
        """Each says something once in a period, all of them evenly over it."""
        began, at = time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            peers = list(self.peers)
            until_here = int(now / period * len(peers))
            for number in range(at, until_here):
                peers[number % len(peers)].say()
            at = max(at, until_here)
            await asyncio.sleep(0.005)

    async def settle(self, what: str, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, (what, self.failed, self.codes)
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        self.comes_again = False
        for peer in list(self.peers):
            peer.leave()
        await self.settle("all are closed", lambda: not self.peers and not self.coming)


def run(talk: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(talk, 200))


def test_many_sockets_with_a_message_a_second_each(serve_asgi: Serve) -> None:
    allow_descriptors(SOCKETS + 200)
    server = serve_asgi("--max-connections", str(2 * SOCKETS), source=APP)
    crowd = Crowd(server.port)

    async def talk() -> None:
        await crowd.open(10)
        before = server.settled_memory()
        await crowd.open(SOCKETS - 10)
        assert not crowd.failed
        idle = server.memory()
        per_socket = (idle - before) / SOCKETS
        spent = processor_seconds(server.process.pid)
        await crowd.talk(SECONDS, 1)
        await crowd.settle("all is answered", lambda: all(peer.said == peer.heard for peer in crowd.peers))
        spent = processor_seconds(server.process.pid) - spent
        crowd.latencies.sort()
        count = len(crowd.latencies)
        assert count >= SOCKETS * (SECONDS - 1), count
        print(
            f"{SOCKETS} sockets: {per_socket / 1024:.1f} KiB each idle, {(server.memory() - before) / SOCKETS / 1024:.1f} KiB each after"
            f" {count} messages; {spent / count * 1e6:.0f} us of processor each;"
            f" latency median {crowd.latencies[count // 2] * 1000:.1f} ms, 99 % {crowd.latencies[count * 99 // 100] * 1000:.1f} ms"
        )
        assert per_socket < MOST_PER_SOCKET
        await crowd.close()

    run(talk())
    assert not crowd.failed
    assert crowd.codes == {1000: SOCKETS}
    assert server.stop() == 0
    assert not complaints(server.said), complaints(server.said)


def test_a_stop_closes_many(serve_asgi: Serve) -> None:
    count = SOCKETS // 2
    allow_descriptors(count + 200)
    server = serve_asgi("--max-connections", str(2 * count), source=APP)
    crowd = Crowd(server.port)

    async def talk() -> None:
        await crowd.open(count)
        server.process.send_signal(signal.SIGTERM)
        await crowd.settle("all are closed", lambda: not crowd.peers)

    run(talk())
    assert server.process.wait(PATIENCE) == 0
    assert not crowd.failed
    assert crowd.codes == {1012: count}
    assert not complaints(server.said), complaints(server.said)


def test_workers_are_replaced_under_load(crew: Start) -> None:
    """Each client hears of it by a 1012, comes again, and goes on."""
    count, rounds = (1000, 4) if LONG else (200, 2)
    allow_descriptors(count * 2 + 200)
    server = crew("--max-connections", str(4 * count), source=APP)
    crowd = Crowd(server.port, comes_again=True)

    async def talk() -> None:
        await crowd.open(count)
        for _ in range(rounds):
            before, heard = server.workers(), sum(crowd.codes.values())
            talking = asyncio.ensure_future(crowd.talk(PATIENCE, 0.5))
            server.tell(signal.SIGHUP)
            await crowd.settle("the workers are replaced", lambda: replaced(server, before))
            await crowd.settle("all are back", lambda: len(crowd.peers) == count and not crowd.coming)
            talking.cancel()
            assert sum(crowd.codes.values()) - heard >= count, "each heard of it"
        await crowd.settle("all is answered", lambda: all(peer.said == peer.heard for peer in crowd.peers))
        await crowd.talk(1, 0.5)
        await crowd.settle("all go on", lambda: all(peer.said == peer.heard > 0 for peer in crowd.peers))
        await crowd.close()

    run(talk())
    print(f"{count} sockets, {rounds} times new workers: {crowd.came_again} came again, {len(crowd.latencies)} messages, {crowd.failed.total()} failed")
    assert not crowd.failed
    assert crowd.codes[1000] == count and set(crowd.codes) == {1000, 1012}
    assert not complaints(server.said), complaints(server.said)
    server.ends()


def replaced(server: Crew, before: set[int]) -> bool:
    now = server.workers()
    return len(now) == 2 and not now & before
