"""Compression of what Python applications answer, as clients see it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import zlib

import pytest
import secured
from conftest import PATIENCE, Serve, Server

WSGI = """
import json, queue, threading
from wsgiref.validate import validator

NEXT = queue.Queue()

def app(environ, start_response):
    path = environ["PATH_INFO"]
    headers = [("Content-Type", "application/json"), ("ETag", '"tag"')]
    if path == "/accepts":
        accepts = environ["maitred.accepts_encoding"]
        assert isinstance(accepts, tuple)
        start_response("200 OK", headers)
        return [json.dumps(accepts).encode()]
    if path == "/next":
        NEXT.put(environ["QUERY_STRING"])
        start_response("200 OK", headers)
        return [b"{}"]
    if path == "/events":
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return events()
    if path == "/busy":
        start_response("200 OK", headers)
        return [BODY * 20]
    start_response("200 OK", headers)
    if path == "/list":
        return [BODY[:5000], BODY[5000:]]
    return [BODY]

def events():
    while (event := NEXT.get(timeout=30)) != "end":
        yield f"data: {event}\\n\\n".encode()

BODY = json.dumps([{"number": number, "text": "some words"} for number in range(2000)]).encode()
"""

ASGI = """
import asyncio, json

BODY = json.dumps([{"number": number, "text": "some words"} for number in range(2000)]).encode()
NEXT = asyncio.Queue()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"]
    headers = [(b"content-type", b"application/json"), (b"etag", b'"tag"')]
    if path == "/events":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        while (event := await NEXT.get()) != "end":
            await send({"type": "http.response.body", "body": f"data: {event}\\n\\n".encode(), "more_body": True})
        return await send({"type": "http.response.body"})
    body = BODY * 20 if path == "/busy" else BODY
    if path == "/accepts":
        accepts = scope["extensions"]["maitred.accepts_encoding"]
        assert isinstance(accepts, tuple)
        body = json.dumps(accepts).encode()
    if path == "/next":
        await NEXT.put(scope["query_string"].decode())
        body = b"{}"
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/list":
        await send({"type": "http.response.body", "body": body[:5000], "more_body": True})
        body = body[5000:]
    await send({"type": "http.response.body", "body": body})
"""

BODY = json.dumps([{"number": number, "text": "some words"} for number in range(2000)]).encode()


@pytest.fixture(params=["wsgi", "asgi"])
def source(request: pytest.FixtureRequest) -> str:
    return WSGI if request.param == "wsgi" else ASGI


@pytest.fixture
def server(serve: Serve, source: str) -> Server:
    # The validator turns lists into iterators, which have no length.
    return serve("--compress", source=source, checked=False)


def gunzip(body: bytes) -> bytes:
    inflate = zlib.decompressobj(wbits=31)
    plain = inflate.decompress(body)
    assert inflate.eof and not inflate.unused_data
    return plain


def test_a_large_body_is_compressed_while_others_ask(server: Server) -> None:
    """Beyond 32 KiB WSGI releases the interpreter meanwhile; many at a time would stand still if a lock were held."""
    peers = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(12)]
    for peer in peers:
        peer.sendall(b"GET /busy HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
    for peer in peers:
        received = b""
        while part := peer.recv(65536):
            received += part
        peer.close()
        assert gunzip(received.split(b"\r\n\r\n", 1)[1]) == BODY * 20


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is absent")
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_curl_decodes_it(server: Server, coding: str) -> None:
    names = {"gzip": "libz", "br": "brotli", "zstd": "zstd"}
    said = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    if names[coding] not in said.split():
        pytest.skip(f"curl has no {coding}")
    url = f"{secured.SCHEME}://127.0.0.1:{server.port}"
    for path in ("/", "/list"):
        command = ["curl", "-sS", "--compressed", "-H", f"Accept-Encoding: {coding}", "-D", "-", f"{url}{path}"]
        head, body = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout.split(
            b"\r\n\r\n", 1
        )
        # In small letters: by TLS curl takes HTTP/2.
        assert f"content-encoding: {coding}".encode() in head.lower().split(b"\r\n")
        assert body == BODY


def test_every_event_is_decoded_before_the_next_is_made(server: Server) -> None:
    peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    peer.sendall(b"GET /events HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
    lines, inflate, plain = peer.makefile("rb"), zlib.decompressobj(wbits=31), b""
    expected = b""
    for number in range(10):
        server.fetch(f"/next?{number}")
        expected += b"data: %d\n\n" % number
        if number == 0:
            head = b"".join(iter(lines.readline, b"\r\n"))
            assert b"Content-Encoding: gzip\r\n" in head
        chunk = lines.read(int(lines.readline(), 16))
        lines.readline()
        plain += inflate.decompress(chunk)
        assert plain == expected
    server.fetch("/next?end")
    inflate.decompress(lines.read(int(lines.readline(), 16)))
    assert inflate.eof
    peer.close()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("gzip, deflate, br, zstd", ["br", "zstd", "gzip", "identity"]),
        ("gzip;q=0.5, zstd", ["zstd", "gzip", "identity"]),
        ("gzip, identity;q=0", ["gzip"]),
        ("identity", ["identity"]),
    ],
)
def test_an_application_knows_what_is_accepted(server: Server, value: str, expected: list[str]) -> None:
    assert json.loads(server.fetch("/accepts", Accept_Encoding=value).body) == expected


def test_without_the_option_an_application_can_ask_all_the_same(serve: Serve, source: str) -> None:
    server = serve(source=source, checked=False)
    assert json.loads(server.fetch("/accepts", Accept_Encoding="gzip").body) == ["gzip", "identity"]
    assert json.loads(server.ask(b"GET /accepts HTTP/1.1\r\nHost: a\r\n\r\n").body) == ["identity"]
    reply = server.fetch("/", Accept_Encoding="gzip")
    assert reply.body == BODY and "Vary" not in reply.headers


def test_the_options_say_what_is_compressed(serve: Serve) -> None:
    arguments = ["--compress", "--compress-encodings", "gzip:1", "--compress-except", "/list", "--compress-min", "100k"]
    server = serve(*arguments, source=WSGI, checked=False)
    assert "Content-Encoding" not in server.fetch("/", Accept_Encoding="gzip").headers
    assert server.fetch("/busy", Accept_Encoding="gzip, zstd, br").headers["Content-Encoding"] == "gzip"
    assert "Vary" not in server.fetch("/list", Accept_Encoding="gzip").headers
