"""The probe table: beside a dozen clients of each slow kind, a normal request is answered, with two threads.

If a kind held threads, the answer would not come before the slow clients are done, and they are done only afterwards.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server
from test_protection import Finish, body_of, connect, half_head, half_upload, unread

CLIENTS = 12
#: Much more than waits in memory for a reader that takes nothing.
GENERATED = 20_000_000
FILE = 30_000_000

APP = """
import hashlib, threading
from pathlib import Path

LARGE = b"x" * 50_000_000
go = threading.Event()

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/generate":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "20000000")])
        return (b"g" * 10_000 for _ in range(2_000))
    if path == "/file":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "30000000")])
        return environ["wsgi.file_wrapper"](open(Path(__file__).with_name("file"), "rb"))
    if path == "/digest":
        digest = hashlib.sha256()
        while part := environ["wsgi.input"].read(65536):
            digest.update(part)
        body = digest.hexdigest().encode()
    elif path == "/waits":
        go.wait(60)
        body = b"waited"
    elif path == "/go":
        go.set()
        body = b"went"
    else:
        body = LARGE if path == "/large" else b"hello"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


def unread_of(path: str, length: int, byte: bytes) -> Callable[[Server, int, ExitStack], Finish]:
    def begin(server: Server, number: int, stack: ExitStack) -> Finish:
        peer = stack.enter_context(connect(server, receive_buffer=4096))
        peer.sendall(b"GET %s HTTP/1.1\r\nHost: t\r\n\r\n" % path.encode())
        assert peer.recv(12, socket.MSG_WAITALL | socket.MSG_PEEK) == b"HTTP/1.1 200"

        def finish() -> None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            assert body_of(peer) == byte * length

        return finish

    return begin


def idle(server: Server, number: int, stack: ExitStack) -> Finish:
    """A connection that has had an answer, and may want another one."""
    peer = stack.enter_context(connect(server))
    peer.sendall(b"GET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
    assert body_of(peer) == b"hello"

    def finish() -> None:
        peer.sendall(b"GET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
        assert body_of(peer) == b"hello"

    return finish


def slow_call(server: Server, number: int, stack: ExitStack) -> Finish:
    """One of them waits in the application, the others are not there."""
    if number > 0:
        return lambda: None
    peer = stack.enter_context(connect(server))
    peer.sendall(b"GET /waits HTTP/1.1\r\nHost: t\r\n\r\n")

    def finish() -> None:
        assert server.fetch("/go").body == b"went"
        assert body_of(peer) == b"waited"

    return finish


KINDS = {
    "half-sent heads": half_head,
    "half-sent uploads": half_upload,
    "unread bytes": unread,
    "generator": unread_of("/generate", GENERATED, b"g"),
    "file": unread_of("/file", FILE, b"f"),
    "idle keep-alives": idle,
    "one slow call": slow_call,
}


def plain(server: Server, _: http.client.HTTPConnection) -> None:
    assert server.fetch("/hello", Connection="close").body == b"hello"


def keep_alive(_: Server, kept: http.client.HTTPConnection) -> None:
    """On a connection that was there before the slow clients."""
    kept.request("GET", "/hello")
    assert kept.getresponse().read() == b"hello"


def pipelined(server: Server, _: http.client.HTTPConnection) -> None:
    last = b"GET /hello HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
    answers = server.raw(b"GET /hello HTTP/1.1\r\nHost: t\r\n\r\n" * 4 + last)
    assert answers.count(b"HTTP/1.1 200 ") == answers.count(b"hello") == 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_normal_request_is_answered_beside(serve: Serve, tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_bytes(b"f" * FILE)
    server = serve("--max-threads", "2", "--spool", str(tmp_path), source=APP, checked=False)
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    keep_alive(server, kept)
    with ExitStack() as stack:
        stack.callback(kept.close)
        finishes = [KINDS[kind](server, number % 4 if kind != "one slow call" else number, stack)
                    for number in range(CLIENTS)]
        for probe in (plain, keep_alive, pipelined) * 3:
            probe(server, kept)
        # They were all unfinished, and none has lost anything.
        for finish in finishes:
            finish()
    assert server.stop() == 0, server.said
