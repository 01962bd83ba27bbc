"""Calls that end from elsewhere, or fail: by the handler of a signal, by another thread, before there is a connection."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from answering import answering, chunked, ok
from conftest import PATIENCE

import maitred.http as http
from maitred._engine import HttpFailure, HttpOrigin, HttpPool, HttpResponse

LIMITS = (PATIENCE,) * 5 + (None,)
CHUNKED = [(b"Transfer-Encoding", b"chunked")]


# ---- Threads ----


def unfinished(connection: socket.socket) -> bytes:
    """A response without its last bytes; the connection stays open."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart"


@pytest.fixture
def response() -> Iterator[HttpResponse]:
    with answering(unfinished) as server:
        yield HttpPool().send(HttpOrigin("http", "127.0.0.1", server.port), "GET", b"/", [], None, LIMITS)


def is_read(response: HttpResponse) -> bool:
    """Whether another thread reads."""
    try:
        response.read(0)
    except RuntimeError:
        return True
    return False


def read_alone(response: HttpResponse) -> bytes:
    """Reads when no other thread does."""
    while True:
        try:
            return response.read()
        except RuntimeError as error:
            assert str(error) == "another thread reads this response"


def test_the_handler_of_a_signal_closes_the_response_that_is_read(response: HttpResponse) -> None:
    seen: list[Any] = []

    def handle(*_: Any) -> None:
        seen.extend((is_read(response), response.report["reused"], response.trailers))
        response.close()

    def send() -> None:
        while not is_read(response):
            pass
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        threading.Thread(target=send, daemon=True).start()
        with pytest.raises(HttpFailure) as failure:
            read_alone(response)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (failure.value.kind, seen) == ("closed", [True, False, []])


def ended(act: Callable[[], Any]) -> threading.Thread:
    """A thread in which ``act`` fails since its response is closed; its name tells the kind of the failure."""

    def run() -> None:
        try:
            act()
        except HttpFailure as failure:
            threading.current_thread().name = failure.kind

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_a_response_that_is_closed_by_another_thread_ends_its_read(response: HttpResponse) -> None:
    reader = ended(lambda: read_alone(response))
    while not is_read(response):
        pass
    response.close()
    reader.join(PATIENCE)
    assert reader.name == "closed"


def test_the_body_of_a_request_closes_the_response() -> None:
    """A server that answers early and reads on: the rest of the body is made while the response is read."""
    held: list[HttpResponse] = []

    def parts() -> Iterator[bytes]:
        for _ in range(100_000):
            if held:
                held[0].close()
            yield b"x" * 1000

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart")
            while connection.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        origin = HttpOrigin("http", "127.0.0.1", listener.getsockname()[1])
        held.append(HttpPool().send(origin, "POST", b"/", CHUNKED, parts(), LIMITS))
        reader = ended(held[0].read)
        reader.join(PATIENCE)
        assert reader.name == "closed"
        thread.join(PATIENCE)


# ---- The account behind the end ----


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])
def test_timings_and_trailers_stay_behind_the_end(is_async: bool) -> None:
    async def go() -> http.Response:
        async with http.AsyncClient(trust_env=False, follow_redirects=True) as client, client.stream("GET", server.url) as response:
            await response.aread()
        return response

    trailing = chunked(b"all")[:-2] + b"x-sum: 7\r\n\r\n"
    with answering(ok(b"", b"Location: /there", status=b"302 Found"), trailing) as server:
        if is_async:
            response = asyncio.run(go())
        else:
            with http.Client(trust_env=False, follow_redirects=True) as client, client.stream("GET", server.url) as response:
                response.read()
        assert response.trailers["x-sum"] == "7"
        for each in (response, *response.history):
            before = dict(each.timings)
            assert before["received"] and before["total"] and before["sent"]
            each.close()
            assert each.timings == before
        assert response.trailers["x-sum"] == "7" and len(response.history) == 1


# ---- Bodies that a task brings ----


def test_a_failed_connect_takes_no_part_of_the_body() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def go() -> bytes:
        pool, made = HttpPool(), parts()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            dead = HttpOrigin("http", "127.0.0.1", taken.getsockname()[1])
            with pytest.raises(HttpFailure) as failure:
                await pool.send_async(dead, "POST", b"/", CHUNKED, made, LIMITS)
        assert failure.value.kind == "connect"
        # That of the body.
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
        response = await pool.send_async(HttpOrigin("http", "127.0.0.1", server.port), "POST", b"/", CHUNKED, made, LIMITS)
        return await response.read_async()

    with answering(ok()) as server:
        assert asyncio.run(go()) == b"ok"
        assert server.requests[0].endswith(b"onetwo")


def test_a_call_that_its_body_has_failed_is_forgotten() -> None:
    part = b"more than was declared" * 1000

    async def parts() -> AsyncIterator[bytes]:
        yield part

    async def go() -> None:
        pool, before = HttpPool(), sys.getrefcount(part)
        for _ in range(5):
            with pytest.raises(HttpFailure) as failure:
                await pool.send_async(HttpOrigin("http", "127.0.0.1", server.port), "POST", b"/", [(b"Content-Length", b"4")], parts(), LIMITS)
            assert failure.value.kind == "request"
        failure = None  # type: ignore[assignment]
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        assert sys.getrefcount(part) == before

    with answering(ok()) as server:
        asyncio.run(go())


def test_an_answer_of_many_bytes_to_a_body_in_parts_has_its_end() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"part"

    async def go() -> int:
        async with http.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            return sum([len((await client.post(server.url, content=parts())).content) for _ in range(5)])

    with answering(chunked(b"x" * 131072)) as server:
        assert asyncio.run(go()) == 5 * 131072
