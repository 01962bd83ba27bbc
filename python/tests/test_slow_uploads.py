"""Uploads that come too slowly to an application that waits for them."""

from __future__ import annotations

import http.client
import socket
import time

import frames
import pytest
from conftest import PATIENCE, Serve, Server

#: A second per look: what is sent is far below the rate, and nobody is silent.
LIMITS = ("--min-rate-in", "1000000", "--min-rate-grace", "0.3", "--body-timeout", "60")

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    length = 0
    if scope["path"] == "/answers":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            print("disconnected", flush=True)
            return
        length += len(message["body"])
        if not message["more_body"]:
            break
    if scope["path"] != "/answers":
        await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % length})
"""

WSGI = """
def app(environ, start_response):
    read = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % len(read)]
"""

#: By the way in which the body is taken: complete in memory, in a file, or as it comes.
WAYS = {
    "short, wsgi": (WSGI, 1000),
    "long, wsgi": (WSGI, 1_000_000),
    "short, asgi": (ASGI, 1000),
    "long, asgi": (ASGI, 1_000_000),
}


def drip(server: Server, version: str, length: int) -> int:
    """The status that a client gets which sends a byte now and then."""
    if version == "2":
        with frames.Connection.to(server.port) as peer:
            number = peer.ask("/", "POST", [("content-length", str(length))], end=False)
            peer.peer.settimeout(0.02)
            while not (answer := peer.answers[number]).status and answer.reset is None:
                peer.send(frames.data(number, b"x"))
                try:
                    peer.take()
                except TimeoutError:
                    pass
            return answer.status
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
        peer.settimeout(0.02)
        while True:
            peer.sendall(b"x")
            try:
                peer.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                continue
            response = http.client.HTTPResponse(peer)
            response.begin()
            return response.status


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("way", WAYS)
def test_a_body_that_drips_is_refused_however_it_is_read(way: str, version: str, serve: Serve) -> None:
    source, length = WAYS[way]
    server = serve(*LIMITS, source=source, checked=False)  # An ASGI application is none of WSGI.
    assert drip(server, version, length) == 408
    server.wait_for(r"a request body came too slowly; 408 and closed \(--min-rate-in\)")
    assert server.stop() == 0, server.said


def test_a_body_may_be_slow_while_its_response_comes(serve_asgi: Serve) -> None:
    """As messages that are exchanged in both directions are."""
    server = serve_asgi(*LIMITS, "--listen", "127.0.0.1:0,read-ahead=off", source=ASGI)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"POST /answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n")
        for _ in range(40):
            peer.sendall(b"x")
            # A slow sender, not a synchronisation: all of it takes longer than the grace.
            time.sleep(0.02)
        response = http.client.HTTPResponse(peer)
        response.begin()
        assert response.read() == b"begun 40"
    assert server.stop() == 0, server.said
