"""Clients that read nothing of responses without end, as many as there are threads: a request beside them is answered."""

from __future__ import annotations

import contextlib
import re
import socket

import by_h2
import pytest
import secured
from conftest import PATIENCE, Serve, Server

APP = """
import itertools
closed = []

class Endless:
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        return itertools.repeat(b"x" * 100_000)

    def close(self):
        closed.append(self.path)

def app(environ, start_response):
    path = environ["PATH_INFO"]
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/hello":
        return [b" ".join([b"hello", *(path.encode() for path in closed)])]
    if path.startswith("/write"):
        while True:
            write(b"x" * 100_000)
    return Endless(path)
"""

#: Less than the 30 s of `body-timeout`, after which the threads are free anyway.
LIMIT = 20.0


def ask(server: Server, path: str) -> socket.socket:
    """Reads the first bytes: the application has the request."""
    peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert peer.recv(15) == b"HTTP/1.1 200 OK"
    return peer


def hello(server: Server) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), LIMIT) as peer:
        peer.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: peer.recv(65536), b""))


@pytest.mark.parametrize("path", ["/iterable", "/write"])
@pytest.mark.parametrize("room", ["1g", "1m"])
def test_a_request_gets_the_thread_of_a_client_that_reads_nothing(serve: Serve, path: str, room: str) -> None:
    # One thread has no reserve thread beside it. With little room in files the application waits; else it makes blocks.
    server = serve("--max-threads", "1", "--response-file", room, source=APP, checked=False)
    with ask(server, path) as peer:
        assert b"hello" in hello(server)
        server.wait_for(r"127\.0\.0\.1: nothing was taken of a response while requests waited for its thread; closed \(--max-threads\)")
        # Python's ssl tells a reset as an end, and over HTTP/2 the stream alone is reset.
        with contextlib.nullcontext() if secured.WANTED or by_h2.WANTED else pytest.raises(ConnectionResetError):
            while peer.recv(1 << 20):
                pass


def test_the_reserve_thread_is_held_too_and_given_back(serve: Serve) -> None:
    server = serve("--max-threads", "2", "--response-file", "1m", source=APP, checked=False)
    with contextlib.ExitStack() as peers:
        for path in ("/first", "/first", "/second"):
            peers.enter_context(ask(server, path))
        said = hello(server)
        assert b"hello" in said
        assert len(re.findall(rb"/(?:first|second)", said)) < 3, "no more than requests waited"


def test_a_client_that_reads_keeps_its_response(serve: Serve) -> None:
    server = serve("--max-threads", "2", "--response-file", "1m", source=APP, checked=False)
    with ask(server, "/idle"), socket.create_connection(("127.0.0.1", server.port), PATIENCE) as reader:
        reader.sendall(b"GET /read HTTP/1.1\r\nHost: a\r\n\r\n")
        assert reader.recv(15) == b"HTTP/1.1 200 OK"
        with socket.create_connection(("127.0.0.1", server.port), LIMIT) as idle:
            # It holds the reserve thread, or waits.
            idle.sendall(b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n")
            with socket.create_connection(("127.0.0.1", server.port), LIMIT) as asks:
                asks.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
                asks.setblocking(False)
                answer = b""
                while b"hello" not in answer:
                    assert reader.recv(1 << 16), "its response goes on"
                    with contextlib.suppress(BlockingIOError):
                        answer += asks.recv(65536)
        assert b"/read" not in answer
        for _ in range(100):
            assert reader.recv(1 << 16)
