"""Calls that are cancelled or run out of time at any point leave nothing behind: no slot of the pool, no descriptor, no object."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import open_files
from crews import until
from upstreams import Upstream, upstream

from maitred._engine import HttpFailure, HttpOrigin, HttpPool, HttpResponse

LONG = bool(os.environ.get("MAITRED_LONG"))
CALLS = 10_000 if LONG else 1_500
THREADS, TASKS = 16, 32
#: Fewer than threads and tasks, so that calls wait for a slot, too.
SLOTS = 12
PATHS = ("/hello", "/hello", "/chunked", "/bytes/100000", "/late", "/sleep", "/dribble", "/stop", "/cut", "/reset", "/reset-body", "/close", "/once",
         "/nonsense", "/echo")
ENDLESS = {"/sleep", "/dribble", "/stop"}
#: What may end a call here.
KINDS = {"timeout", "connect", "protocol", "read", "write", "closed"}
Timeouts = tuple[float | None, float | None, float | None, float | None, float | None, float | None]
PATIENT: Timeouts = (5.0, 5.0, 5.0, 5.0, 5.0, 10.0)


class Body:
    """The body of a request in parts; it has to be forgotten with its call."""

    def __init__(self, alive: weakref.WeakSet[Body], parts: int) -> None:
        self._parts = parts
        alive.add(self)

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._parts):
            yield bytes(1000)

    async def __aiter__(self) -> object:
        for part in self:
            await asyncio.sleep(0)
            yield part


class Calls:
    """Random calls by one pool, and what must be left of them."""

    def __init__(self, service: Upstream) -> None:
        self.pool = HttpPool(per_host=SLOTS, total=SLOTS)
        self.origin = HttpOrigin("http", "127.0.0.1", service.port)
        self.bodies: weakref.WeakSet[Body] = weakref.WeakSet()
        self.ends: dict[str, int] = {}
        self._lock = threading.Lock()

    def ended(self, how: str) -> None:
        with self._lock:
            self.ends[how] = self.ends.get(how, 0) + 1

    def arguments(self, chance: random.Random) -> tuple[object, ...]:
        """A random request: method, target, fields, body, limits."""
        path = chance.choice(PATHS)
        body = Body(self.bodies, chance.randrange(40)) if path == "/echo" else None
        method, fields = ("POST", [(b"Transfer-Encoding", b"chunked")]) if body else ("GET", [])
        # Most calls that can end have the time for it: else the service has always more connections to accept than it can.
        hurry = path in ENDLESS or chance.randrange(3) == 0
        slot, first_byte, progress, total = (chance.choice(some) if hurry else 10.0 for some in
                                             ((0.001, 0.05, None), (0.002, 0.02, None), (0.002, 0.02, None), (0.004, 0.02, 0.05)))
        limits = (slot, 10.0, 10.0, first_byte, progress, total)
        return self.origin, method, path.encode(), [(b"Host", b"localhost"), *fields], body, limits

    def hello(self, target: bytes = b"/hello", limits: Timeouts = PATIENT) -> HttpResponse:
        return self.pool.send(self.origin, "GET", target, [(b"Host", b"localhost")], None, limits)

    def assert_whole(self) -> None:
        """Every slot is free, and no more than there are."""
        held = [self.hello(b"/bytes/1000000") for _ in range(SLOTS)]
        with pytest.raises(HttpFailure) as failure:
            self.hello(limits=(0.05, 5.0, 5.0, 5.0, 5.0, 5.0))
        assert (failure.value.kind, failure.value.phase) == ("timeout", "slot")
        for response in held:
            assert len(response.read()) == 1_000_000
        assert self.hello().read() == b"hello"

    def assert_nothing_is_left(self, service: Upstream, before: int) -> None:
        self.assert_whole()
        gc.collect()
        assert self.pool.used == 0
        assert not self.bodies, f"{len(self.bodies)} bodies of requests are kept"
        # Not isinstance(): it asks an object for its class, and lazy objects of other tests (settings of Django) make themselves then.
        assert not [each for each in gc.get_objects() if type(each) is HttpResponse]
        self.pool.close()
        until("the descriptors are closed", lambda: len(open_files(os.getpid())) <= before)
        asker = HttpPool(per_host=1)

        def others() -> bool:
            answer = asker.send(self.origin, "GET", b"/connections", [(b"Host", b"localhost")], None, PATIENT)
            return answer.read() == b"1"

        until("the service has no other connection", others)
        asker.close()


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def test_calls_of_threads_with_random_limits_leave_nothing(service: Upstream) -> None:
    chance = random.Random(44)
    calls = Calls(service)
    assert calls.hello().read() == b"hello"
    calls.pool.close()
    before = len(open_files(os.getpid()))

    def call(seed: int) -> None:
        own = random.Random(seed)
        try:
            response = calls.pool.send(*calls.arguments(own))  # type: ignore[arg-type]
            fate = own.randrange(4)
            if fate == 0:
                # It is dropped unread.
                return calls.ended("dropped")
            if fate == 1:
                response.read(own.randrange(1, 600))
                response.close()
                return calls.ended("closed")
            while response.read(65536):
                pass
            calls.ended("complete")
        except HttpFailure as failure:
            assert failure.kind in KINDS, (failure.kind, failure)
            calls.ended(failure.kind)

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(call, [chance.getrandbits(32) for _ in range(CALLS)]):
            pass
    assert sum(calls.ends.values()) == CALLS
    assert {"complete", "dropped", "closed", "timeout", "read"} <= calls.ends.keys(), calls.ends
    calls.assert_nothing_is_left(service, before)


def test_calls_that_are_cancelled_at_random_awaits_leave_nothing(service: Upstream) -> None:
    calls = Calls(service)
    before = 0

    async def call(own: random.Random) -> None:
        response = await calls.pool.send_async(*calls.arguments(own))
        if own.randrange(4) == 0:
            return
        while await response.read_async(own.choice((100, 65536))):
            pass

    async def cancelled(own: random.Random) -> None:
        task = asyncio.ensure_future(call(own))
        if own.randrange(3):
            # So many turns of the loop: each await of the call is met by some.
            for _ in range(own.randrange(30)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(own.random() * 0.02)
        task.cancel()
        try:
            await task
            calls.ended("complete")
        except asyncio.CancelledError:
            calls.ended("cancelled")
        except HttpFailure as failure:
            assert failure.kind in KINDS, (failure.kind, failure)
            calls.ended(failure.kind)

    async def all_of_them() -> None:
        nonlocal before
        seeds = iter([random.Random(44 + number) for number in range(CALLS)])
        response = await calls.pool.send_async(calls.origin, "GET", b"/hello", [(b"Host", b"localhost")], None, PATIENT)
        assert await response.read_async() == b"hello"
        calls.pool.close()
        before = len(open_files(os.getpid()))

        async def some() -> None:
            for own in seeds:
                await cancelled(own)

        await asyncio.gather(*(some() for _ in range(TASKS)))
        # The pool is whole for awaiting callers, too.
        held = [await calls.pool.send_async(calls.origin, "GET", b"/bytes/100000", [(b"Host", b"localhost")], None, PATIENT) for _ in range(SLOTS)]
        for response in held:
            body = b""
            while part := await response.read_async():
                body += part
            assert len(body) == 100_000

    asyncio.run(all_of_them())
    assert sum(calls.ends.values()) == CALLS
    assert {"cancelled", "timeout"} <= calls.ends.keys(), calls.ends
    calls.assert_nothing_is_left(service, before)


def test_a_call_within_a_streaming_call_of_a_full_pool_ends_by_its_own_limit_and_names_the_holder(service: Upstream) -> None:
    pool = HttpPool(per_host=1)
    origin = HttpOrigin("http", "127.0.0.1", service.port)
    fields = [(b"Host", b"localhost")]
    with contextlib.closing(pool.send(origin, "GET", b"/bytes/1000000", fields, None, PATIENT)) as outer:
        assert outer.read(100)
        with pytest.raises(HttpFailure) as failure:
            pool.send(origin, "GET", b"/hello", fields, None, (0.05, None, None, None, None, None))
        assert (failure.value.kind, failure.value.phase) == ("timeout", "slot")
        assert f"1 of 1 connections to http://127.0.0.1:{service.port} are held: 1 by thread {threading.get_native_id()} (" in str(
            failure.value
        )
    assert pool.send(origin, "GET", b"/hello", fields, None, PATIENT).read() == b"hello"
