"""Interim responses of applications: `wsgi.early_hints`, and the ASGI extension `http.response.early_hint`."""

from __future__ import annotations

import socket

import pytest
from conftest import PATIENCE, Serve, Server

WSGI = """
import queue
NEXT = queue.Queue()

def app(environ, start_response):
    if environ["PATH_INFO"] == "/go":
        NEXT.put("go")
    else:
        hints = environ["wsgi.early_hints"]
        assert hints([("Link", "</a.css>; rel=preload"), ("Link", "</b.js>; rel=preload")]) is None
        NEXT.get(timeout=30)
    write = start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    write(b"pa")
    environ["wsgi.early_hints"]([("Link", "</late.css>")])
    return [b"ge"]
"""

ASGI = """
import asyncio
NEXT = asyncio.Queue()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/go":
        await NEXT.put("go")
    else:
        assert scope["extensions"]["http.response.early_hint"] == {}
        links = [b"</a.css>; rel=preload", b"</b.js>; rel=preload"]
        await send({"type": "http.response.early_hint", "links": links})
        await NEXT.get()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"page"})
"""


@pytest.fixture(params=["wsgi", "asgi"])
def server(serve: Serve, request: pytest.FixtureRequest) -> Server:
    return serve(source=WSGI if request.param == "wsgi" else ASGI, checked=False)


def test_hints_are_there_before_the_response(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer, peer.makefile("rb") as file:
        for _ in range(2):
            peer.sendall(b"GET /hint HTTP/1.1\r\nHost: a\r\n\r\n")
            interim = [file.readline() for _ in range(4)]
            assert interim == [
                b"HTTP/1.1 103 Early Hints\r\n",
                b"Link: </a.css>; rel=preload\r\n",
                b"Link: </b.js>; rel=preload\r\n",
                b"\r\n",
            ]
            assert server.fetch("/go").status == 200
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            while (line := file.readline()) != b"\r\n":
                assert not line.startswith(b"Link"), line
            assert file.read(4) == b"page"


def test_a_client_of_http_10_gets_none(server: Server) -> None:
    server.fetch("/go")
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer, peer.makefile("rb") as file:
        peer.sendall(b"GET /hint HTTP/1.0\r\n\r\n")
        server.fetch("/go")
        received = file.read()
    assert received.startswith(b"HTTP/1.1 200 ") and received.count(b"HTTP/1.1") == 1
