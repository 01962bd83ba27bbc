"""Awaitable calls: cancellation, back-pressure, several loops, uvloop, the end of a loop."""

from __future__ import annotations

import asyncio
import gc
import random
import re
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop
from answering import answering, ok
from conftest import PATIENCE, Serve

import maitred.http as http
from maitred._engine import HttpOrigin, HttpPool

#: More than the buffers of two sockets hold.
PARTS = 300
#: Turns of a loop in which nothing happens any more.
QUIET = 200

LIMITS = (PATIENCE, PATIENCE, PATIENCE, PATIENCE, PATIENCE, None)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    return asyncio.run if request.param == "asyncio" else uvloop.run


def client(**options: Any) -> http.AsyncClient:
    return http.AsyncClient(trust_env=False, timeout=PATIENCE, **options)


def test_many_calls_at_once(run: Any) -> None:
    async def go() -> None:
        async with client(limits=http.Limits(per_host=10)) as calls:
            answers = await asyncio.gather(*(calls.get(server.url) for _ in range(100)))
            assert [answer.content for answer in answers] == [b"x" * 5000] * 100
            assert calls._settings.pool.used == 0

    with answering(ok(b"x" * 5000)) as server:
        run(go())
        assert server.connections <= 10


def test_a_cancelled_task_gives_its_connection_back_at_once(run: Any) -> None:
    async def go() -> None:
        pool = HttpPool(per_host=1)
        origin = HttpOrigin("http", "127.0.0.1", server.port)

        async def call() -> Any:
            return await pool.send_async(origin, "GET", b"/", [], None, LIMITS)

        for _ in range(3):
            task = asyncio.ensure_future(call())
            assert await asyncio.to_thread(arrived.wait, PATIENCE)
            waiting = asyncio.ensure_future(call())
            await asyncio.sleep(0)
            for cancelled in (waiting, task):
                cancelled.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await cancelled
            assert (pool.used, pool.idle) == (0, 0)
            arrived.clear()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call(), 0.01)
        assert pool.used == 0

    arrived = threading.Event()

    def never(connection: socket.socket) -> None:
        arrived.set()
        server.wait(connection)

    with answering(never) as server:
        run(go())


def test_random_cancellations_leave_nothing() -> None:
    async def go() -> None:
        chance = random.Random(7)
        async with client(limits=http.Limits(per_host=5)) as calls:

            async def one() -> None:
                task = asyncio.ensure_future(calls.get(server.url))
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass

            for _ in range(40):
                await asyncio.gather(*(one() for _ in range(25)))
            assert calls._settings.pool.used == 0
            assert (await calls.get(server.url)).status == 200

    with answering(ok(b"x" * 20_000)) as server:
        asyncio.run(go())


def test_a_body_is_made_as_fast_as_it_is_taken(run: Any) -> None:
    """The server reads nothing until it is told to: the parts that were made fit into the buffers of a socket."""
    made = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(PARTS):
            made += 1
            yield b"x" * 65536

    listener = socket.create_server(("127.0.0.1", 0))
    may_read = threading.Event()
    received: list[int] = []

    def serve() -> None:
        connection, _ = listener.accept()
        may_read.wait(PATIENCE)
        with connection, connection.makefile("rb") as file:
            while file.readline() != b"\r\n":
                pass
            while size := int(file.readline(), 16):
                received.append(len(file.read(size)))
                file.readline()
            connection.sendall(ok(b"taken"))

    async def go() -> str:
        async with client() as calls:
            task = asyncio.ensure_future(calls.post(f"http://127.0.0.1:{listener.getsockname()[1]}/", content=parts()))
            # A turn of the loop sends what a socket takes: behind many turns without a new part it is full.
            before, turns = 0, 0
            while turns < QUIET:
                await asyncio.sleep(0)
                before, turns = made, turns + 1 if made == before and made else 0
            assert made < PARTS
            may_read.set()
            return (await task).text

    thread = threading.Thread(target=serve)
    thread.start()
    assert run(go()) == "taken"
    thread.join()
    listener.close()
    assert received == [65536] * PARTS


def test_a_response_is_received_as_fast_as_it_is_read(run: Any) -> None:
    sent = 0
    is_over = threading.Event()

    def much(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n")
        connection.settimeout(0.5)
        try:
            while sent < 200_000_000:
                sent += connection.send(b"x" * 65536)
        except OSError:
            is_over.set()

    async def go() -> None:
        async with client() as calls, calls.stream("GET", server.url) as response:
            parts = response.aiter_raw()
            assert await parts.__anext__()
            await asyncio.to_thread(is_over.wait, PATIENCE)
            assert sent < 100_000_000

    with answering(much) as server:
        run(go())


def test_an_early_answer_ends_the_body(run: Any) -> None:
    closed = asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def go() -> None:
        async with client() as calls:
            response = await calls.post(listener_url, content=parts())
            assert (response.status, response.text) == (413, "enough")
            await asyncio.wait_for(closed.wait(), PATIENCE)

    listener = socket.create_server(("127.0.0.1", 0))
    listener_url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            head = b""
            # An answer to the head alone would come before the first part is asked for.
            while b"\r\n\r\n" not in head or not head.endswith(b"x\r\n"):
                head += connection.recv(1000)
            connection.sendall(ok(b"enough", status=b"413 Content Too Large"))
            connection.settimeout(PATIENCE)
            while connection.recv(65536):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    run(go())
    thread.join()
    listener.close()


def test_a_body_that_does_not_go_on_ends_with_the_time_of_the_call(run: Any) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    async def go() -> None:
        async with client() as calls:
            with pytest.raises(http.TotalTimeout):
                await calls.post(server.url, content=parts(), timeout=http.Timeout(PATIENCE, total=0.05))
            assert calls._settings.pool.used == 0

    with answering(ok()) as server:
        run(go())


def test_loops_one_after_the_other_and_at_once(run: Any) -> None:
    async def go() -> bytes:
        return (await calls.get(server.url)).content

    calls = client()
    with answering(ok()) as server:
        assert [run(go()) for _ in range(3)] == [b"ok"] * 3
        results: list[bytes] = []
        threads = [threading.Thread(target=lambda: results.extend(run(go()) for _ in range(10))) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert results == [b"ok"] * 40


def test_a_closed_loop_gives_everything_back() -> None:
    with answering(lambda connection: server.wait(connection)) as server:
        pool = HttpPool()
        origin = HttpOrigin("http", "127.0.0.1", server.port)
        loop = asyncio.new_event_loop()

        async def begin() -> Any:
            waiting = pool.send_async(origin, "GET", b"/", [], None, LIMITS)
            return waiting, waiting.__await__().__next__()  # type: ignore[attr-defined]

        waiting, future = loop.run_until_complete(begin())
        assert pool.used == 1
        loop.close()
        gc.collect()
        assert pool.used == 0
        del waiting, future


def test_without_a_loop_of_asyncio_the_error_says_what_to_do() -> None:
    origin = HttpOrigin("http", "127.0.0.1", 1)
    with pytest.raises(RuntimeError, match="event loop of asyncio"):
        HttpPool().send_async(origin, "GET", b"/", [], None, LIMITS)


def test_two_tasks_cannot_read_one_response() -> None:
    def slow(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        server.wait(connection)

    async def go() -> None:
        async with client() as calls, calls.stream("GET", server.url) as response:
            first = asyncio.ensure_future(response.aread())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="another task"):
                await response.aread()
            first.cancel()

    with answering(slow) as server:
        asyncio.run(go())


APPLICATION = """
import os
import maitred.http as http

client = http.AsyncClient(trust_env=False, base_url=os.environ["UPSTREAM"])
quiet = http.AsyncClient(trust_env=False, base_url=os.environ["UPSTREAM"], propagate=False)

async def app(scope, receive, send):
    assert scope["type"] == "http"
    first = await client.get("/loud")
    await quiet.get("/quiet")
    await client.get("/moved", follow_redirects=True)
    body = first.content
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""

WSGI = """
import os
import maitred.http as http

client = http.Client(trust_env=False, base_url=os.environ["UPSTREAM"])
quiet = http.Client(trust_env=False, base_url=os.environ["UPSTREAM"], propagate=False)

def app(environ, start_response):
    first = client.get("/loud")
    quiet.get("/quiet")
    client.get("/moved", follow_redirects=True)
    start_response("200 OK", [("Content-Length", str(len(first.content))), ("Content-Type", "text/plain")])
    return [first.content]
"""


@pytest.mark.parametrize("application", [APPLICATION, WSGI], ids=["asgi", "wsgi"])
def test_trace_and_number_of_the_request_go_along(serve: Serve, application: str) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with answering(ok(b"elsewhere")) as other, answering(ok(b"from there"), ok()) as upstream:
        upstream.answers += [ok(b"", b"Location: " + place, status=b"302 Found") for place in (b"/here", other.url.encode())]
        server = serve(source=application, checked=application is WSGI, UPSTREAM=upstream.url)
        reply = server.fetch("/", traceparent=trace, tracestate="a=1", X_Request_ID="number-7", Cookie="a=b")
        assert reply.body == b"from there", server.said
        loud, quiet, moved, here = upstream.requests
        for sent in (loud, moved, here):
            assert b"\r\ntraceparent: " + trace.encode() + b"\r\ntracestate: a=1\r\n" in sent and b"\r\nx-request-id: number-7\r\n" in sent
        assert b"Cookie" not in loud
        assert all(b"trace" not in sent and b"number-7" not in sent for sent in (quiet, *other.requests)) and other.requests
        upstream.requests.clear()
        assert server.fetch("/").body == b"from there"
        assert b"traceparent" not in upstream.requests[0]
        assert re.search(rb"\r\nx-request-id: [0-9a-f]{8}-[0-9a-f]{12}\r\n", upstream.requests[0])
        upstream.requests.clear()
        assert server.fetch("/", X_Request_ID="<not> an id").body == b"from there"
        assert re.search(rb"\r\nx-request-id: [0-9a-f]{8}-[0-9a-f]{12}\r\n", upstream.requests[0])
