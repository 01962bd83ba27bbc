"""Application code that the server runs at places where nobody expects any: it may send, and it may wait for who sends."""

from __future__ import annotations

import http.client
import socket

import pytest
from conftest import PATIENCE, Serve

SOURCE = """
import asyncio, threading

latest = None
opened = asyncio.Event()

def part(body, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}

class Slow(Exception):
    \"\"\"Its text waits for a thread that sends, as a lazy translation waits for its lock.\"\"\"

    def __init__(self, send):
        self.asked, self.answered = threading.Event(), threading.Event()
        threading.Thread(target=self.other, args=(send,), daemon=True).start()

    def other(self, send):
        self.asked.wait()
        send(part(b"in vain"))
        self.answered.set()

    def __str__(self):
        self.asked.set()
        self.answered.wait()
        return "slow text"

class Sending(Exception):
    def __init__(self, send):
        self.send = send

    def __str__(self):
        self.send(part(b"in vain"))
        return "sending text"

class Big(bytes):
    def __del__(self):
        latest(part(b"from its end"))

async def app(scope, receive, send):
    global latest
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/open":
        opened.set()
    if scope["path"] in ("/slow", "/sending"):
        await send(part(b"begun"))
        raise (Slow if scope["path"] == "/slow" else Sending)(send)
    if scope["path"] == "/big":
        latest = send
        await send(part(Big(8 << 20)))
        await opened.wait()
    await send(part(b"through", False))
"""


@pytest.mark.parametrize(("path", "text"), [("/slow", "Slow: slow text"), ("/sending", "Sending: sending text")])
def test_the_text_of_an_exception_may_send_and_wait(serve_asgi: Serve, loop: str, path: str, text: str) -> None:
    server = serve_asgi("--loop", loop, source=SOURCE)
    with pytest.raises(http.client.IncompleteRead) as cut:
        server.fetch(path)
    assert cut.value.partial == b"begun"
    server.wait_for(f"the response was cut: the application raised {text}")
    assert server.fetch("/").body == b"through"
    assert server.stop() == 0


def test_the_end_of_a_body_may_send(serve_asgi: Serve, loop: str) -> None:
    server = serve_asgi("--loop", loop, "--response-memory", "32m", source=SOURCE)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        response = http.client.HTTPResponse(peer)
        response.begin()
        assert response.read(8 << 20) == bytes(8 << 20)
        assert server.fetch("/open").body == b"through"
        assert response.read() == b"from its endthrough"
    assert server.stop() == 0
