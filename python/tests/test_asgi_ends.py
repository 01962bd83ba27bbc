"""How an exchange with an ASGI application ends: by a client that leaves early, by an exception at any point, or well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from conftest import needs
from sites import RAW_COMMON, Site, asgi_site, streamed

needs("anyio")

SOURCE = RAW_COMMON + """
import anyio

@route
async def stream(scope, receive, send):
    await begin(send, 200, [(b"content-type", b"text/plain")])
    async for row in rows():
        await block(send, row)
    await finish(send)

open_streams = 0

@route
async def endless_stream(scope, receive, send):
    global open_streams
    open_streams += 1
    try:
        await begin(send)
        while True:
            # A server of an older specification says nothing when it cannot send.
            gone = asyncio.ensure_future(receive_disconnect(receive))
            while not gone.done():
                await block(send, b"x" * 65536)
                await asyncio.sleep(0)
            return
    finally:
        gone.cancel()
        open_streams -= 1
        happen("left")

async def receive_disconnect(receive):
    while (await receive())["type"] != "http.disconnect":
        pass

@route
async def open_streams_(scope, receive, send):
    await reply(send, open_streams)

@route
async def send_until_it_fails(scope, receive, send):
    await begin(send)
    try:
        while True:
            await block(send, b"x" * 65536)
            await asyncio.sleep(0)
            if counts["leaving"] and tuple(map(int, scope["asgi"]["spec_version"].split("."))) < (2, 4):
                return happen("send failed")  # There, send does nothing.
    except OSError:
        happen("send failed")
        raise

@route
async def leaving(scope, receive, send):
    happen("leaving")
    await reply(send)

@route
async def wait_for_disconnect(scope, receive, send):
    await read(receive)
    happen("waiting")
    message = await asyncio.wait_for(receive(), PATIENCE)
    again = await asyncio.wait_for(receive(), PATIENCE)
    happen(f"{message['type']}, {again['type']}")

@route
async def receive_cancelled(scope, receive, send):
    await read(receive)
    for _ in range(10):
        with anyio.move_on_after(0.001):
            await receive()
    with anyio.CancelScope() as cancelled:
        cancelled.cancel()
        await receive()
    task = asyncio.create_task(receive())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    happen("receive cancelled")
    message = await asyncio.wait_for(receive(), PATIENCE)
    happen("then " + message["type"])

@route
async def two_receivers(scope, receive, send):
    await read(receive)
    waiting = [asyncio.create_task(receive()) for _ in range(2)]
    await asyncio.sleep(0)
    await reply(send, "sent while receiving")
    for task in waiting:
        happen("two " + (await asyncio.wait_for(task, PATIENCE))["type"])

@route
async def after_the_response(scope, receive, send):
    await read(receive)
    await reply(send)
    message = await asyncio.wait_for(receive(), PATIENCE)
    happen("after " + message["type"])

# Exceptions

@route
async def fail_before(scope, receive, send):
    raise ValueError("before the response")

@route
async def fail_later(scope, receive, send):
    await asyncio.sleep(0)
    await read(receive)
    raise ValueError("later, but before the response")

@route
async def fail_after_start(scope, receive, send):
    await begin(send)
    raise ValueError("after the start")

@route
async def fail_in_the_middle(scope, receive, send):
    await begin(send)
    await block(send, b"x" * 1000)
    await asyncio.sleep(0)
    raise ValueError("in the middle")

@route
async def fail_with_length(scope, receive, send):
    await begin(send, 200, [(b"content-length", b"2000")])
    await block(send, b"x" * 1000)
    raise ValueError("before its length")

@route
async def fail_after_end(scope, receive, send):
    await reply(send, "complete")
    raise ValueError("after the end")

@route
async def fail_in_group(scope, receive, send):
    async def fail():
        await asyncio.sleep(0)
        raise ValueError("a child failed")
    async with anyio.create_task_group() as group:
        group.start_soon(fail)

@route
async def return_nothing(scope, receive, send):
    pass

@route
async def return_in_the_middle(scope, receive, send):
    await begin(send)
    await block(send, b"x" * 1000)

@route
async def strange(scope, receive, send):
    class Strange(BaseException):
        pass
    raise Strange("no Exception")

@route
async def cancelled(scope, receive, send):
    raise asyncio.CancelledError("by nobody")

@route
async def generator_exit(scope, receive, send):
    await begin(send)
    await block(send, b"x" * 1000)
    raise GeneratorExit("by nobody")

@route
async def cancelled_when_the_client_leaves(scope, receive, send):
    await read(receive)
    happen("to be cancelled")
    await receive()
    happen("cancelled")
    raise asyncio.CancelledError("by the client")

def plain(scope, receive, send):
    raise ValueError("no coroutine was made")

routes["/plain"] = plain
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    yield from asgi_site(tmp_path_factory.mktemp("ends"), "site_ends", SOURCE, loop)


def said_before(ends: Site, mark: str, start: int) -> str:
    """What the server has said from ``start`` up to a request for ``mark``, which the site does not have: an error, and the
    log's lines come in their order."""
    assert ends.server.fetch(f"/{mark}").status == 500
    ends.server.wait_for(f"KeyError: '/{mark}'", start)
    return ends.server.said[start : ends.server.said.index(f"GET /{mark}: ", start)]


def test_a_stream_arrives_block_by_block(ends: Site) -> None:
    streamed(ends.client, "/stream", [b"first\n", b"second\n"])


def test_clients_that_leave_early(ends: Site) -> None:
    for times in range(1, 21):
        ends.leave("/endless_stream")
        assert ends.seen("left", times)
    assert ends.json("/open_streams_") == 0


def test_clients_that_leave_at_the_same_time(ends: Site) -> None:
    before = ends.json("/seen", params={"name": "left", "times": 0})

    async def leave(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", "/endless_stream") as response:
            async for _ in response.aiter_raw():
                break

    async def ask() -> None:
        async with ends.asynchronous() as client:
            await asyncio.gather(*(leave(client) for _ in range(20)))

    asyncio.run(ask())
    assert ends.seen("left", before + 20)
    assert ends.json("/open_streams_") == 0


def test_send_fails_when_the_client_has_left(ends: Site) -> None:
    at = len(ends.server.said)
    ends.leave("/send_until_it_fails")
    assert ends.json("/leaving") is None
    assert ends.seen("send failed")
    assert ends.json("/hello") == "hello"
    assert "Traceback" not in said_before(ends, "after_a_failed_send", at), "an error of send that comes back is no error"


def test_receive_tells_that_the_client_has_left(ends: Site) -> None:
    with ends.connection() as peer:
        peer.sendall(b"GET /wait_for_disconnect HTTP/1.1\r\nHost: a\r\n\r\n")
        assert ends.seen("waiting")
    assert ends.seen("http.disconnect, http.disconnect")


def test_a_receive_may_be_cancelled(ends: Site) -> None:
    with ends.connection() as peer:
        peer.sendall(b"POST /receive_cancelled HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        assert ends.seen("receive cancelled")
    assert ends.seen("then http.disconnect")


def test_receive_tells_that_the_response_is_complete(ends: Site) -> None:
    assert ends.json("/after_the_response") is None
    assert ends.seen("after http.disconnect")
    assert ends.json("/two_receivers") == "sent while receiving"
    assert ends.seen("two http.disconnect", 2)


@pytest.mark.parametrize("path", ["/fail_before", "/fail_later", "/strange", "/plain", "/fail_in_group"])
def test_an_exception_before_the_response_is_a_500(ends: Site, path: str) -> None:
    start = len(ends.server.said)
    assert ends.server.fetch(path).status == 500
    name = path.lstrip("/") if path != "/fail_in_group" else "fail"
    ends.server.wait_for(rf"(?s)Traceback.*in {name}\n.*(ValueError|Strange): ", start)
    assert ends.server.fetch("/hello").body == b'"hello"'


def test_a_request_that_nobody_has_cancelled_is_told(ends: Site) -> None:
    start = len(ends.server.said)
    assert ends.server.fetch("/cancelled").status == 500
    ends.server.wait_for(r"error GET /cancelled: the application raised an exception\n  Traceback(.|\n)*: by nobody\n", start)


def test_an_exit_of_a_generator_is_told_with_its_request(ends: Site) -> None:
    start = len(ends.server.said)
    with pytest.raises(httpx.RemoteProtocolError):
        ends.client.get("/generator_exit")
    entry = r"error GET /generator_exit: the application raised an exception\n  Traceback(.|\n)*: by nobody\n"
    ends.server.wait_for(entry, start)
    assert "never retrieved" not in said_before(ends, "after_an_exit", start)


def test_a_request_that_is_cancelled_because_its_client_left_is_not_told(ends: Site) -> None:
    start = len(ends.server.said)
    with ends.connection() as peer:
        peer.sendall(b"GET /cancelled_when_the_client_leaves HTTP/1.1\r\nHost: a\r\n\r\n")
        assert ends.seen("to be cancelled")
    assert ends.seen("cancelled")
    assert "CancelledError" not in said_before(ends, "after_a_cancellation", start)


def test_an_application_that_returns_without_an_answer_is_a_500(ends: Site) -> None:
    assert ends.server.fetch("/return_nothing").status == 500


def test_an_exception_after_the_start_is_no_success(ends: Site) -> None:
    # Nothing is sent before the first block, so that a 500 is still possible.
    try:
        assert ends.client.get("/fail_after_start").status_code == 500
    except httpx.RemoteProtocolError:
        pass
    ends.server.wait_for("ValueError: after the start")


@pytest.mark.parametrize("path", ["/fail_in_the_middle", "/fail_with_length", "/return_in_the_middle"])
def test_a_response_that_is_not_finished_is_cut(ends: Site, path: str) -> None:
    received = b""
    with pytest.raises(httpx.RemoteProtocolError), ends.client.stream("GET", path) as response:
        for block in response.iter_raw():
            received += block
    assert received == b"x" * 1000, "but all that was sent"
    assert ends.server.fetch("/hello").body == b'"hello"'


def test_an_exception_after_the_end_changes_nothing(ends: Site) -> None:
    assert ends.server.fetch("/fail_after_end").body == b'"complete"'
    ends.server.wait_for("ValueError: after the end")
    # On a connection of its own: a server may close that of an application that failed.
    assert ends.server.fetch("/hello").body == b'"hello"'
