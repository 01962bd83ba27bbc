"""The order in which requests begin: those of one connection as they have come, and a batch of streams takes turns with other connections."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import frames
import pytest
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, Serve, Server
from frames import Connection
from test_pools import wait_for_figure

__all__ = ["authority"]

#: ``/begun`` tells which requests have begun, in their order; ``/stay`` waits for the file ``go``.
COMMON = """
import os, time
begun = []

def act(path, number):
    if path == "/begun":
        told = ",".join(begun)
        begun.clear()
        return told.encode()
    begun.append(number)
    if path == "/stay":
        print("stays", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    return b"answered"
"""

WSGI = COMMON + """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [act(environ["PATH_INFO"], environ.get("HTTP_X_NUMBER", ""))]
"""

ASGI = COMMON + """
async def app(scope, receive, send):
    if scope["type"] == "http":
        body = act(scope["path"], dict(scope["headers"]).get(b"x-number", b"").decode())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
"""

#: One thread each: which request it runs next is certain.
PLACES = {
    "default": (WSGI, "--max-threads", "1"),
    "named": (WSGI, "--pool", "named,max-threads=1,path=/*"),
    "loop": (ASGI,),
}

Start = Callable[..., Server]


@pytest.fixture
def start(serve: Serve) -> Start:
    def start(place: str, *arguments: str) -> Server:
        source, *options = PLACES[place]
        return serve(*options, "--metrics-path", "/metrics", *arguments, source=source, checked=False)  # An ASGI application is none of WSGI.

    return start


def asked(peer: Connection, path: str, numbers: list[str]) -> list[int]:
    """The streams of these requests, which are sent at once."""
    streams = {peer.stream(): number for number in numbers}
    peer.send(*(frames.headers(stream, peer.block(path, fields=[("x-number", number)]), end=True) for stream, number in streams.items()))
    return list(streams)


def answered(peer: Connection, streams: list[int]) -> None:
    assert {bytes(peer.answer(stream).body) for stream in streams} == {b"answered"}


@contextmanager
def connected(server: Server, tls: Authority | None) -> Iterator[Connection]:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
        # Whole batches, and at once.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is None:
            yield Connection(plain)
            return
        context = tls.client()
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            yield Connection(peer)


@needs_openssl
@pytest.mark.parametrize("way", ["clear", "tls"])
@pytest.mark.parametrize("place", PLACES)
def test_streams_that_come_at_once_begin_in_their_order(place: str, way: str, start: Start, authority: Authority) -> None:
    server = start(place, *(authority.issue("localhost").options if way == "tls" else ()))
    with connected(server, authority if way == "tls" else None) as peer:
        for count in [2, 3, 4, 8, 20, 50] * 4:
            numbers = [str(number) for number in range(count)]
            answered(peer, asked(peer, "/", numbers))
            assert peer.fetch("/begun").body.decode().split(",") == numbers
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("place", PLACES)
def test_requests_that_are_pipelined_begin_in_their_order(place: str, start: Start) -> None:
    server = start(place)
    numbers = [str(number) for number in range(50)]
    requests = "".join(f"GET / HTTP/1.1\r\nHost: localhost\r\nX-Number: {number}\r\n\r\n" for number in numbers)
    last = "GET /begun HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    received = server.raw((requests + last).encode())
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 51
    assert ",".join(numbers).encode() in received
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_of_streams_takes_turns_with_other_connections(place: str, start: Start, tmp_path: Path) -> None:
    """All are of one route. Those that come last do not wait for the whole batch."""
    server = start(place)
    pool = "named" if place == "named" else "default"
    with connected(server, None) as batch, connected(server, None) as other, closing(server.connect()) as single:
        staying = asked(batch, "/stay", ["stay"])
        server.wait_for("stays")
        streams = asked(batch, "/", [str(number) for number in range(90)])
        wait_for_figure(server, pool, "queued", 90)
        others = asked(other, "/", ["other"])
        wait_for_figure(server, pool, "queued", 91)
        single.request("GET", "/", headers={"X-Number": "single"})
        wait_for_figure(server, pool, "queued", 92)
        (tmp_path / "go").touch()
        answered(other, others)
        assert single.getresponse().read() == b"answered"
        answered(batch, staying + streams)
        begun = batch.fetch("/begun").body.decode().split(",")
    assert [number for number in begun if number.isdigit()] == [str(number) for number in range(90)]
    # One that stays, four that waited before they were sorted, and two turns.
    assert begun.index("other") < 10 and begun.index("single") < 10, begun
    assert server.stop() == 0, server.said
