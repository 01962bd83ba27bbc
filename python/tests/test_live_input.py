"""Listeners without read-ahead: wsgi.input reads the body from the connection while it comes."""

from __future__ import annotations

import hashlib
import http.client
import socket
import time

import by_h2
import pytest
from conftest import PATIENCE, Serve, Server

APP = """
import hashlib, threading

SEEN = []
WAITS = threading.Event()

def app(environ, start_response):
    return globals()[environ["PATH_INFO"][1:]](environ["wsgi.input"], start_response)

def start(start_response, length=None):
    start_response("200 OK", [("Content-Type", "text/plain"), *([("Content-Length", length)] if length else [])])

def lines(stream, start_response):
    start(start_response)
    return (b"got " + line for line in stream)

def digest(stream, start_response):
    digest = hashlib.sha256()
    while part := stream.read(10_000):
        digest.update(part)
    start(start_response)
    return [digest.hexdigest().encode()]

def parts(stream, start_response):
    parts = list(iter(lambda: stream.read(65_536), b""))
    start(start_response)
    return [f"{hashlib.sha256(b''.join(parts)).hexdigest()} {[len(part) for part in parts]}".encode()]

def mixed(stream, start_response):
    digest = hashlib.sha256()
    sizes = [1, 100, 65_536, 10_000, 70_000, 65_535]
    while part := stream.readline() + stream.read(sizes[0]):
        digest.update(part)
        sizes.append(sizes.pop(0))
    start(start_response)
    return [digest.hexdigest().encode()]

def attempt(stream, start_response):
    WAITS.set()
    try:
        stream.read(1_000_000)
        told = "complete"
    except OSError as error:
        told = f"{type(error).__name__}: {error}"
        try:
            stream.readline()
        except OSError as again:
            assert str(again) == str(error)
    SEEN.append(told)
    start(start_response)
    return [told.encode()]

def fails(stream, start_response):
    WAITS.set()
    try:
        stream.read(1_000_000)
    finally:
        SEEN.append("failed")

def first(stream, start_response):
    part = stream.read(3)
    start(start_response)
    return [part]

def nothing(stream, start_response):
    start(start_response)
    return [b"nothing"]

def seen(stream, start_response):
    start(start_response)
    return [repr(SEEN).encode()]

def waits(stream, start_response):
    start(start_response)
    return [repr(WAITS.wait(30)).encode()]
"""


OPTIONS = ("--listen", "127.0.0.1:0,read-ahead=off", "--listen", "127.0.0.1:0", "--max-body", "20m", "--max-threads", "2")


@pytest.fixture
def live(serve: Serve) -> Server:
    return serve(*OPTIONS, source=APP)


def connect(server: Server, listener: int = 0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.ports[listener]), PATIENCE)


def post(path: str, *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: t", *fields]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def answer(peer: socket.socket) -> tuple[bytes, bool]:
    """The body of a response, and whether it is the last one of its connection."""
    response = http.client.HTTPResponse(peer)
    response.begin()
    assert response.status == 200
    return response.read(), response.will_close


def test_the_application_answers_each_line_while_the_next_is_not_sent(live: Server) -> None:
    with connect(live) as peer:
        peer.sendall(post("/lines", "Transfer-Encoding: chunked"))
        response = None
        for line in (b"one\n", b"two\n", b"three\n"):
            peer.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            if response is None:
                response = http.client.HTTPResponse(peer)
                response.begin()
            assert response.read(4 + len(line)) == b"got " + line
        peer.sendall(b"0\r\n\r\n")
        assert response.read() == b""
    # The other listener waits for the whole body, as ever.
    with connect(live, 1) as peer:
        peer.sendall(post("/lines", "Transfer-Encoding: chunked") + b"4\r\none\n\r\n")
        assert live.fetch("/nothing").body == b"nothing"
        peer.sendall(b"0\r\n\r\n")
        assert answer(peer)[0] == b"got one\n"


def test_a_large_body_arrives_whole_on_connections_that_stay(live: Server) -> None:
    body = bytes(range(256)) * 64 * 1024
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
    for _ in range(2):
        for sent in (body, iter([body[:1], body[1:70_000], body[70_000:]])):
            connection.request("POST", "/digest", sent)
            assert connection.getresponse().read().decode() == hashlib.sha256(body).hexdigest()
    connection.close()


def test_continue_is_sent_when_the_application_reads(live: Server) -> None:
    with connect(live) as peer:
        peer.sendall(post("/first", "Expect: 100-continue", "Content-Length: 3"))
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b"abc")
        assert answer(peer) == (b"abc", False)
        peer.sendall(post("/nothing", "Expect: 100-continue", "Content-Length: 3"))
        assert answer(peer) == (b"nothing", True)


def test_what_the_application_leaves_is_dropped_or_ends_the_connection(live: Server) -> None:
    with connect(live) as peer:
        for size in (4, 1_000, 200_000):
            peer.sendall(post("/first", f"Content-Length: {size}") + b"x" * size)
            assert answer(peer) == (b"xxx", False)
        peer.sendall(post("/first", "Content-Length: 9000000") + b"x" * 100_000)
        assert answer(peer) == (b"xxx", True)


@pytest.mark.parametrize(
    ("fields", "sent", "told"),
    [
        ("Content-Length: 10", b"abc", b"TimeoutError: nothing of the request body came within the time limit"),
        ("Transfer-Encoding: chunked", b"5\r\nabc", b"TimeoutError: nothing of the request body came"),
        ("Transfer-Encoding: chunked", b"5\r\nabcdefgh", b"OSError: chunk data does not end in CRLF"),
    ],
)
def test_a_body_that_does_not_come_is_an_os_error(serve: Serve, fields: str, sent: bytes, told: bytes) -> None:
    with connect(serve(*OPTIONS, "--body-timeout", "0.3", source=APP)) as peer:
        peer.sendall(post("/attempt", fields) + sent)
        body, last = answer(peer)
        assert body.startswith(told), body
        assert last


def test_a_body_that_is_too_large_is_an_os_error_or_a_413(serve: Serve) -> None:
    server = serve("--listen", "127.0.0.1:0,read-ahead=off", "--max-body", "1000", source=APP)
    with connect(server) as peer:
        peer.sendall(post("/attempt", "Transfer-Encoding: chunked") + b"3e9\r\n" + b"x" * 1001)
        assert answer(peer)[0].startswith(b"OSError: the request body is larger than the limit (--max-body)")
    with connect(server) as peer:
        peer.sendall(post("/attempt", "Content-Length: 1001"))
        assert by_h2.refused(peer)[0] == 413


@pytest.mark.parametrize("path", ["/attempt", "/fails"])
def test_a_client_that_leaves_ends_the_read(live: Server, path: str) -> None:
    with connect(live) as peer:
        peer.sendall(post(path, "Content-Length: 10") + b"abc")
        assert live.fetch("/waits").body == b"True"
    # By TLS it leaves tickets behind that it has not read, so that its end is a reset.
    expected = b"ConnectionResetError: the c" if path == "/attempt" else b"failed"
    until = time.monotonic() + PATIENCE
    while expected not in live.fetch("/seen").body:
        assert time.monotonic() < until, live.said
    assert "Traceback" not in live.said, "the application can do nothing about it"


def test_reading_waits_without_the_interpreter(serve: Serve) -> None:
    server = serve("--listen", "127.0.0.1:0,read-ahead=off", "--max-threads", "2", source=APP)
    with connect(server) as peer:
        peer.sendall(post("/first", "Content-Length: 3") + b"ab")
        for _ in range(50):
            assert server.fetch("/nothing").body == b"nothing"
        peer.sendall(b"c")
        assert answer(peer) == (b"abc", False)
    # One that reads when the server ends is told so.
    with connect(server) as peer:
        peer.sendall(post("/attempt", "Content-Length: 3") + b"ab")
        assert server.fetch("/waits").body == b"True"
        server.process.terminate()
        server.wait_for("draining")
        peer.sendall(b"c")
        assert answer(peer) == (b"complete", True)
    assert server.process.wait(PATIENCE) == 0, server.said


@pytest.mark.parametrize("length", [1, 65_535, 65_536, 65_537, 300_000, 3 << 20])
def test_parts_have_the_length_that_is_asked_for_and_nothing_behind_the_body_is_read(live: Server, length: int) -> None:
    body = bytes(position * 7 % 251 for position in range(length))
    request = post("/parts", f"Content-Length: {length}") + body + post("/digest", "Content-Length: 3") + b"ab"
    with connect(live) as peer:
        # Not in the steps of the reads, and the begin of the next request with the end of the body.
        for at in range(0, len(request), 50_001):
            peer.sendall(request[at : at + 50_001])
        full, rest = divmod(length, 65_536)
        lengths = [65_536] * full + [rest] * (rest > 0)
        assert answer(peer)[0].decode() == f"{hashlib.sha256(body).hexdigest()} {lengths}"
        peer.sendall(b"c")
        assert answer(peer)[0].decode() == hashlib.sha256(b"abc").hexdigest()


def test_reads_of_all_sizes_continue_each_other(live: Server) -> None:
    body = b"".join(b"%d\n" % number for number in range(60_000))
    with connect(live) as peer:
        peer.sendall(post("/mixed", f"Content-Length: {len(body)}") + body)
        assert answer(peer)[0].decode() == hashlib.sha256(body).hexdigest()
