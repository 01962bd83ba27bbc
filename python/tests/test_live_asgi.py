"""Listeners without read-ahead: ``receive`` brings the body of an ASGI request while it comes."""

from __future__ import annotations

import hashlib
import http.client
import socket
from pathlib import Path

import by_h2
import pytest
from conftest import PATIENCE, Serve, Server, needs
from test_slow_readers import until

APP = """
import hashlib

SEEN = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    await globals()[scope["path"][1:]](scope, receive, send)

async def answer(send, text, status=200):
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})

async def echo(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            SEEN.append("echo: disconnect")
            return
        if message["body"]:
            await send({"type": "http.response.body", "body": message["body"], "more_body": True})
        if not message["more_body"]:
            return await send({"type": "http.response.body", "body": b""})

async def digest(scope, receive, send):
    digest, parts, length = hashlib.sha256(), 0, 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            SEEN.append(f"digest: disconnect after {length}")
            return
        digest.update(message["body"])
        parts, length = parts + 1, length + len(message["body"])
        if not message["more_body"]:
            break
    await answer(send, f"{digest.hexdigest()} {length} {parts > 1}".encode())

async def refuse(scope, receive, send):
    await answer(send, b"too much", 413)

async def early(scope, receive, send):
    await answer(send, b"early")
    SEEN.append((await receive())["type"])

async def late(scope, receive, send):
    first = await receive()
    await answer(send, b"got " + first["body"])

async def fields(scope, receive, send):
    names = sorted(name.decode() for name, _ in scope["headers"])
    while (await receive())["more_body"]:
        pass
    await answer(send, " ".join(names).encode())

async def seen(scope, receive, send):
    await answer(send, repr(SEEN).encode())
"""


WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/seen":
        yield b"seen []"
        return
    while part := environ["wsgi.input"].read(3):
        yield part
"""


OPTIONS = ("--listen", "127.0.0.1:0,read-ahead=off", "--max-body", "30m")


@pytest.fixture
def live(serve_asgi: Serve) -> Server:
    return serve_asgi(*OPTIONS, source=APP)


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def read_until(stream: socket.socket, end: bytes) -> bytes:
    got = b""
    while not got.endswith(end):
        part = stream.recv(65536)
        assert part, got
        got += part
    return got


def rest(stream: socket.socket) -> bytes:
    got = b""
    while part := stream.recv(65536):
        got += part
    return got


def assert_nothing_has_come(stream: socket.socket) -> None:
    stream.setblocking(False)
    with pytest.raises(BlockingIOError):
        stream.recv(1)
    stream.setblocking(True)


def head(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: t", *fields, "", ""]).encode()


def test_the_first_part_is_there_while_the_last_has_not_been_sent(live: Server) -> None:
    with connect(live) as stream:
        stream.sendall(head("/echo", "Content-Length: 9") + b"one")
        assert read_until(stream, b"\r\n3\r\none\r\n").startswith(b"HTTP/1.1 200")
        stream.sendall(b"two")
        assert read_until(stream, b"two\r\n") == b"3\r\ntwo\r\n"
        stream.sendall(b"end")
        assert read_until(stream, b"0\r\n\r\n") == b"3\r\nend\r\n0\r\n\r\n"
        stream.sendall(head("/late", "Content-Length: 2") + b"xy")
        assert read_until(stream, b"got xy").startswith(b"HTTP/1.1 200"), "the connection is kept"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_whole(live: Server, chunked: bool) -> None:
    body = bytes(range(256)) * 80_000
    client = http.client.HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
    for _ in range(2):
        parts = (body[at : at + 300_000] for at in range(0, len(body), 300_000)) if chunked else body
        client.request("POST", "/digest", parts, encode_chunked=chunked)
        answer = client.getresponse().read().decode()
        assert answer == f"{hashlib.sha256(body).hexdigest()} {len(body)} True"


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
def test_a_filter_says_where_bodies_are_read_as_they_come(
    serve: Serve, serve_asgi: Serve, tmp_path: Path, interface: str
) -> None:
    source = APP if interface == "asgi" else WSGI
    (tmp_path / "maitred.toml").write_text('[[filter]]\npath = "/echo"\nread-ahead = "off"\n')
    server = (serve_asgi if interface == "asgi" else serve)(source=source)
    with connect(server) as stream:
        stream.sendall(head("/echo", "Content-Length: 6") + b"one")
        assert read_until(stream, b"one\r\n").startswith(b"HTTP/1.1 200"), "before the rest has been sent"
        stream.sendall(b"two")
        assert read_until(stream, b"0\r\n\r\n").startswith(b"3\r\ntwo")
        stream.sendall(head("/seen", "Content-Length: 6") + b"one")
        server.fetch("/seen")
        assert_nothing_has_come(stream)
        stream.sendall(b"two")
        assert read_until(stream, b"[]" if interface == "asgi" else b"0\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.0.0.1:0,read-ahead=on"])
def test_a_long_body_comes_as_it_is_received(serve_asgi: Serve, listen: str) -> None:
    server = serve_asgi("--listen", listen, "--body-memory", "2048", source=APP)
    with connect(server) as stream:
        stream.sendall(head("/echo", "Content-Length: 2048") + b"one")
        server.fetch("/seen")
        assert_nothing_has_come(stream)
        stream.sendall(bytes(2045))
        assert read_until(stream, b"0\r\n\r\n").startswith(b"HTTP/1.1 200")
        stream.sendall(head("/echo", "Content-Length: 2049") + b"one")
        server.fetch("/seen")
        if listen.endswith("on"):
            assert_nothing_has_come(stream)
        else:
            assert read_until(stream, b"one\r\n").startswith(b"HTTP/1.1 200"), "before the rest has been sent"
        stream.sendall(bytes(2046))
        read_until(stream, b"0\r\n\r\n")


def test_a_listener_without_read_ahead_has_it_where_a_filter_says_so(serve_asgi: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text('[[filter]]\npath = "/seen"\nread-ahead = "on"\n')
    server = serve_asgi("--listen", "127.0.0.1:0,read-ahead=off", source=APP)
    with connect(server) as stream:
        stream.sendall(head("/seen", "Content-Length: 6") + b"one")
        server.fetch("/refuse")
        assert_nothing_has_come(stream)
        stream.sendall(b"two")
        assert read_until(stream, b"[]").startswith(b"HTTP/1.1 200")


def test_continue_is_sent_with_the_first_receive(live: Server) -> None:
    with connect(live) as stream:
        stream.sendall(head("/late", "Content-Length: 3", "Expect: 100-continue"))
        assert read_until(stream, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        stream.sendall(b"now")
        assert read_until(stream, b"got now").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("expect", [[], ["Expect: 100-continue"]])
def test_an_early_refusal_leaves_before_the_body_is_sent(live: Server, expect: list[str]) -> None:
    with connect(live) as stream:
        stream.sendall(head("/refuse", "Content-Length: 20000000", *expect))
        assert by_h2.refused(stream) == (413, b"too much")


def test_after_an_early_answer_the_rest_of_the_body_is_dropped_and_the_connection_goes_on(live: Server) -> None:
    with connect(live) as stream:
        stream.sendall(head("/early", "Content-Length: 100000"))
        assert read_until(stream, b"early").startswith(b"HTTP/1.1 200")
        stream.sendall(b"x" * 100_000 + b"GET /seen HTTP/1.1\r\nHost: t\r\n\r\n")
        assert read_until(stream, b"['http.disconnect']").startswith(b"HTTP/1.1 200")


def test_a_peer_that_leaves_inside_its_body_is_a_disconnect(live: Server) -> None:
    with connect(live) as stream:
        stream.sendall(head("/echo", "Content-Length: 9") + b"one")
        read_until(stream, b"one\r\n")
    until("the application is told", lambda: b"echo: disconnect" in live.fetch("/seen").body)


def test_a_body_that_does_not_come_is_a_408(serve_asgi: Serve) -> None:
    server = serve_asgi(*OPTIONS, "--body-timeout", "0.3", source=APP)
    with connect(server) as stream:
        stream.sendall(head("/digest", "Content-Length: 9") + b"one")
        assert by_h2.refused(stream)[0] == 408
    assert b"digest: disconnect after 3" in server.fetch("/seen").body


def test_a_body_that_is_malformed_or_too_long_is_refused(live: Server) -> None:
    for tail, status in [(b"3\r\none\r\nx\r\n", b"400"), (b"1e00001\r\n" + b"x" * 0x1E00001, b"413")]:
        with connect(live) as stream:
            stream.sendall(head("/digest", "Transfer-Encoding: chunked"))
            try:
                stream.sendall(tail)
            except ConnectionError:
                pass
            assert rest(stream).startswith(b"HTTP/1.1 " + status), status


def test_a_chunked_body_has_no_length_of_ours(live: Server) -> None:
    with connect(live) as stream:
        stream.sendall(head("/fields", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n")
        assert read_until(stream, b"transfer-encoding").endswith(b"host transfer-encoding")


def test_a_stream_of_fastapi_has_the_first_part_before_the_last_is_sent(serve_asgi: Serve) -> None:
    needs("fastapi")
    server = serve_asgi("--listen", "127.0.0.1:0,read-ahead=off", source=FASTAPI)
    with connect(server) as stream:
        stream.sendall(head("/upload", "Content-Length: 6") + b"one")
        until("the application has it", lambda: server.fetch("/seen").body == b'"one"')
        stream.sendall(b"two")
        assert read_until(stream, b'"onetwo"').startswith(b"HTTP/1.1 200")


FASTAPI = """
from fastapi import FastAPI, Request

app = FastAPI()
seen = b""

@app.post("/upload")
async def upload(request: Request) -> str:
    global seen
    async for part in request.stream():
        seen += part
    return seen.decode()

@app.get("/seen")
async def what() -> str:
    return seen.decode()
"""
