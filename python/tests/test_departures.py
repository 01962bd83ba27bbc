"""Clients that leave while an ASGI response is sent: what waits in receive() hears of it first, and every clean-up runs."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator

import by_h2
import pytest
import secured
from conftest import PATIENCE, Serve, Server, needs
from crews import until

pytestmark = pytest.mark.skipif(secured.WANTED or by_h2.WANTED, reason="it reads a part of a response and leaves")

DEPARTURES = 20

#: Below an application: counts.
COUNTS = """
import asyncio, collections, json
COUNTS = collections.Counter()

class Counting:
    def __init__(self, inner):
        self.inner = inner

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != "/counts":
            return await self.inner(scope, receive, send)
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": json.dumps(COUNTS).encode()})
"""

RAW = COUNTS + """
async def blocks(send):
    await send({"type": "http.response.start", "status": 200})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 30000, "more_body": True})

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    await receive()
    if scope["path"] == "/unheard":
        COUNTS["begun"] += 1
        try:
            await blocks(send)
        except OSError:
            COUNTS["ended"] += 1
        try:
            await send({"type": "http.response.body", "body": b"", "more_body": True})
        except OSError:
            COUNTS["again"] += 1
        return
    COUNTS["begun"] += 1
    if scope["path"] == "/answers":
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"x"})
        COUNTS["answered"] += 1
        return
    sender = asyncio.ensure_future(blocks(send))
    while (await receive())["type"] != "http.disconnect":
        pass
    if scope["path"] == "/cancels":
        for _ in range(8):
            await asyncio.sleep(0)
        sender.cancel()
    try:
        await sender
    except OSError:
        COUNTS["raised"] += 1
    except asyncio.CancelledError:
        COUNTS["cancelled"] += 1

app = Counting(app)
"""

DJANGO = COUNTS + """
import django, sys
from django.conf import settings
settings.configure(SECRET_KEY="for tests", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__)
django.setup()
from django.core.asgi import get_asgi_application
from django.core.signals import request_finished, request_started
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.urls import path
import pathlib, tempfile

BIG = b"x" * 20_000_000
FILE = pathlib.Path(tempfile.mkdtemp()) / "big"
FILE.write_bytes(BIG)

def closing(base):
    class Closing(base):
        def close(self):
            COUNTS["ended"] += 1
            super().close()
    return Closing

async def stream():
    while True:
        yield b"x" * 30000
        await asyncio.sleep(0.001)

urlpatterns = [
    path("whole", lambda request: closing(HttpResponse)(BIG)),
    path("file", lambda request: closing(FileResponse)(FILE.open("rb"))),
    path("stream", lambda request: closing(StreamingHttpResponse)(stream())),
]
application = get_asgi_application()

async def counted(scope, receive, send):
    if scope["type"] == "http":
        COUNTS["begun"] += 2
    await application(scope, receive, send)

request_finished.connect(lambda **_: COUNTS.update(["ended"]), weak=False)
app = Counting(counted)
"""


def get(server: Server, path: str, room: int | None = None) -> socket.socket:
    peer = socket.socket()
    if room is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    peer.settimeout(PATIENCE)
    peer.connect(("127.0.0.1", server.port))
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert peer.recv(100).startswith(b"HTTP/1.1 200")
    return peer


def close(peer: socket.socket) -> None:
    peer.close()


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def half(peer: socket.socket) -> None:
    peer.shutdown(socket.SHUT_WR)
    peer.close()


def counts(server: Server) -> dict[str, int]:
    found: dict[str, int] = json.loads(server.fetch("/counts").body)
    return found


def leave(server: Server, path: str, departure: Callable[[socket.socket], None]) -> None:
    for _ in range(DEPARTURES):
        departure(get(server, path))


KINDS = [close, reset, half]




@pytest.mark.parametrize("departure", KINDS)
def test_what_listens_is_told_and_can_cancel_what_sends(serve_asgi: Serve, loop: str, departure: Callable[..., None]) -> None:
    server = serve_asgi("--loop", loop, source=RAW)
    leave(server, "/cancels", departure)
    until("all have ended", lambda: counts(server).get("cancelled") == DEPARTURES)
    assert "raised" not in counts(server)


@pytest.mark.parametrize("departure", KINDS)
def test_what_nobody_cancels_gets_the_error(serve_asgi: Serve, departure: Callable[..., None]) -> None:
    server = serve_asgi(source=RAW)
    leave(server, "/keeps", departure)
    until("all have ended", lambda: counts(server).get("raised") == DEPARTURES)


@pytest.mark.parametrize("departure", KINDS)
def test_without_a_listener_every_send_raises(serve_asgi: Serve, departure: Callable[..., None]) -> None:
    server = serve_asgi(source=RAW)
    leave(server, "/unheard", departure)
    until("all have ended", lambda: counts(server).get("again") == DEPARTURES)
    assert counts(server)["ended"] == DEPARTURES


@pytest.mark.parametrize("departure", KINDS)
def test_who_was_told_completes_a_response_for_nobody_and_goes_on(serve_asgi: Serve, departure: Callable[..., None]) -> None:
    server = serve_asgi(source=RAW)
    peers = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(DEPARTURES)]
    for peer in peers:
        peer.sendall(b"GET /answers HTTP/1.1\r\nHost: a\r\n\r\n")
    until("all wait", lambda: counts(server).get("begun") == DEPARTURES)
    for peer in peers:
        departure(peer)
    until("all have gone on", lambda: counts(server).get("answered") == DEPARTURES)


@pytest.fixture
def stalls(serve_asgi: Serve) -> Iterator[Callable[[str, str], Server]]:
    peers = []

    def start(source: str, path: str) -> Server:
        server = serve_asgi("--min-rate-out", "1000000", "--min-rate-grace", "1", source=source)
        peers.extend(get(server, path, room=4096) for _ in range(3))
        return server

    yield start
    for peer in peers:
        peer.close()


def test_a_reader_that_is_cut_off_is_a_departure(stalls: Callable[[str, str], Server]) -> None:
    server = stalls(RAW, "/cancels")
    until("all have ended", lambda: counts(server).get("cancelled") == 3)


@pytest.mark.parametrize("page", ["whole", "file", "stream"])
@pytest.mark.parametrize("departure", KINDS)
def test_django_closes_responses_and_ends_requests(serve_asgi: Serve, page: str, departure: Callable[..., None]) -> None:
    needs("django")
    server = serve_asgi(source=DJANGO)
    leave(server, f"/{page}", departure)
    until("all have ended", lambda: ended(server))
    assert "Traceback" not in server.said


@pytest.mark.parametrize("page", ["whole", "file", "stream"])
def test_django_closes_what_a_stalled_reader_leaves(stalls: Callable[[str, str], Server], page: str) -> None:
    needs("django")
    server = stalls(DJANGO, f"/{page}")
    until("all have ended", lambda: ended(server))


def ended(server: Server) -> bool:
    found = counts(server)
    return found["begun"] == found.get("ended")
