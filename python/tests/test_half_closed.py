"""Clients that end their sending side behind their request (``shutdown(SHUT_WR)``, close_notify) and read the answer, at every stage at
which a request can wait."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import frames
import pytest
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, Serve, Server
from test_pools import wait_for_figure

__all__ = ["authority"]

#: ``/stay`` holds the only thread, or the loop, until the file ``go`` is there.
COMMON = """
import os, time

def act(path, read):
    if path == "/stay":
        print("stays", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    return b"answered %d" % read
"""

WSGI = COMMON + """
def app(environ, start_response):
    read = len(environ["wsgi.input"].read())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [act(environ["PATH_INFO"], read)]
"""

ASGI = COMMON + """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    read, more = 0, True
    while more:
        message = await receive()
        read, more = read + len(message["body"]), message["more_body"]
    body = act(scope["path"], read)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""

PLACES = {
    "default": (WSGI, "--max-threads", "1"),
    "named": (WSGI, "--pool", "named,max-threads=1,path=/*"),
    "loop": (ASGI,),
}

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % length + b"x" * length


#: What is sent at once, and the answers.
REQUESTS = {
    "one": (GET, [b"answered 0"]),
    "pipelined": (GET * 3, [b"answered 0"] * 3),
    "with a body": (post(10_000), [b"answered 10000"]),
    "with a body in a file": (post(1_000_000) + GET, [b"answered 1000000", b"answered 0"]),
}


class Half:
    """A client that has ended its sending side."""

    def __init__(self, server: Server, request: bytes, tls: ssl.SSLContext | None) -> None:
        self.peer = socket.create_connection(("127.0.0.1", server.ports[tls is not None]), PATIENCE)
        self.tls = None
        if tls is None:
            self.peer.sendall(request)
            self.peer.shutdown(socket.SHUT_WR)
            return
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self._until(self.tls.do_handshake)
        self.tls.write(request)
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self._send()
        # Behind close_notify, the end of TCP's direction as well.
        self.peer.shutdown(socket.SHUT_WR)

    def _send(self) -> None:
        if made := self.outgoing.read():
            self.peer.sendall(made)

    def _until(self, step) -> bytes:  # type: ignore[no-untyped-def]
        while True:
            try:
                return step()  # type: ignore[no-any-return]
            except ssl.SSLWantReadError:
                self._send()
                received = self.peer.recv(65536)
                if not received:
                    return b""
                self.incoming.write(received)
            finally:
                self._send()

    def answers(self) -> list[bytes]:
        """The bodies of all that comes until the server closes."""
        received = b""
        while True:
            try:
                part = self.peer.recv(65536) if self.tls is None else self._until(lambda: self.tls.read(65536))
            except ssl.SSLZeroReturnError:
                part = b""
            if not part:
                self.peer.close()
                return [b"answered " + each.split(b"HTTP/")[0] for each in received.split(b"answered ")[1:]]
            received += part


@contextmanager
def held(server: Server) -> Iterator[None]:
    """The application is busy until the end of this."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"GET /stay HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.wait_for("stays")
        yield


@needs_openssl
@pytest.mark.parametrize("way", ["clear", "tls"])
@pytest.mark.parametrize("requests", REQUESTS)
@pytest.mark.parametrize("place", PLACES)
def test_who_has_ended_its_side_is_answered(
    place: str, requests: str, way: str, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    source, *options = PLACES[place]
    # Long bodies go through files.
    options += ["--body-memory", "64k", "--body-budget", "0", "--metrics-path", "/metrics"]
    for scheme in ("http", "https"):
        options += ["--listen", f"{scheme}://127.0.0.1:0,read-ahead=on"]
    certificate = authority.issue("localhost").options
    server = serve(*options, *certificate, source=source, checked=False)  # An ASGI application is none of WSGI.
    request, expected = REQUESTS[requests]
    context = authority.client() if way == "tls" else None
    with held(server):
        half = Half(server, request, context)
        wait_for_figure(server, "named" if place == "named" else "default", "queued", 1)
        (tmp_path / "go").touch()
        assert half.answers() == expected
    assert Half(server, request, context).answers() == expected
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("place", PLACES)
def test_streams_of_a_connection_that_has_ended_are_answered(place: str, serve: Serve, tmp_path: Path) -> None:
    source, *options = PLACES[place]
    server = serve(*options, "--metrics-path", "/metrics", source=source, checked=False)  # As above.
    with held(server), frames.Connection.to(server.port) as peer:
        streams = [peer.ask("/") for _ in range(3)]
        peer.peer.shutdown(socket.SHUT_WR)
        wait_for_figure(server, "named" if place == "named" else "default", "queued", 3)
        (tmp_path / "go").touch()
        assert [bytes(peer.answer(stream).body) for stream in streams] == [b"answered 0"] * 3
    assert server.stop() == 0, server.said


ENDLESS = {
    "wsgi": """
import itertools
def app(environ, start_response):
    start_response("200 OK", [])
    return itertools.repeat(b"x" * 1000)
""",
    "asgi": """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
""",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_stream_ends_that_waits_for_a_window_of_who_has_ended(kind: str, serve: Serve) -> None:
    # No limit of time ends it instead.
    server = serve("--min-rate-out", "0", "--body-timeout", "600", source=ENDLESS[kind], checked=False)  # As above.
    for ends_first in (True, False):
        with frames.Connection.to(server.port, grants=False) as peer:
            stream = peer.ask("/")
            if ends_first:
                peer.peer.shutdown(socket.SHUT_WR)
            while len(peer.answers[stream].body) < frames.WINDOW:
                peer.take()
            if not ends_first:
                peer.peer.shutdown(socket.SHUT_WR)
            assert peer.answer(stream).reset == frames.Code.CANCEL
            peer.ended()
    assert server.stop() == 0, server.said
