"""Streams of events when the server stops: they are told at once, and ended when their time is over; other requests have the whole time."""

from __future__ import annotations

import http.client
import socket
import struct
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server

ASGI = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    await receive()
    kind = b"text/event-stream" if scope["path"] != "/long" else b"text/plain"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": b"data: 1\\n\\n", "more_body": True})
    try:
        if scope["path"] == "/listens":
            print((await receive())["type"], flush=True)
        elif scope["path"] == "/long":
            await asyncio.sleep(1)  # Longer than streams of events have.
        else:
            await asyncio.Event().wait()
    finally:
        print("ends", scope["path"], flush=True)
    await send({"type": "http.response.body", "body": b"data: farewell\\n\\n"})
"""

WSGI = """
import time
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/event-stream; charset=utf-8")])
    def events():
        try:
            while True:
                yield b"data: 1\\n\\n"
                time.sleep(0.05)
        finally:
            print("ends", environ["PATH_INFO"], flush=True)
    return events()
"""


def ask(server: Server, path: str) -> http.client.HTTPResponse:
    """A response that has begun."""
    connection = server.connect()
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.read(9) == b"data: 1\n\n"
    return response


def log(*more: str) -> list[str]:
    return ["--access-log", "access.log", "--access-log-format", "$request_uri $ended", *more]


def ended(folder: Path) -> list[str]:
    return sorted((folder / "access.log").read_text().splitlines())


def test_streams_of_events_are_told_and_ended_and_others_go_on(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi(*log("--events-timeout", "0.3"), source=ASGI)
    listens, quiet, long = (ask(server, path) for path in ("/listens", "/quiet", "/long"))
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < PATIENCE
    assert listens.read() == b"data: farewell\n\n", "it was told and had time"
    with pytest.raises(http.client.IncompleteRead):
        quiet.read()
    assert "http.disconnect" in server.said and "ends /quiet" in server.said
    assert ended(tmp_path)[0] == "/listens complete"
    assert "/quiet drain" in ended(tmp_path)
    assert "GET /quiet" in server.said and "ended, because the server stops" in server.said
    assert "the peer left" not in server.said
    assert long.read() == b"data: farewell\n\n", "no stream of events: it has the whole time"


def test_a_generator_is_closed_when_its_time_is_over(serve: Serve, tmp_path: Path) -> None:
    server = serve(*log("--events-timeout", "0"), source=WSGI, checked=False)  # The validator has no close().
    events = ask(server, "/events")
    assert server.stop() == 0
    assert "ends /events" in server.said
    with pytest.raises(http.client.IncompleteRead):
        events.read()
    assert ended(tmp_path) == ["/events drain"]


def test_a_stop_does_not_wait_for_handlers_whose_clients_are_gone(serve_asgi: Serve, tmp_path: Path) -> None:
    source = ASGI.replace('"/listens"', '"/nobody"').replace('kind = b"text/event-stream" if', 'kind = b"text/plain" if True or')
    server = serve_asgi(*log("--events-timeout", "0"), source=source)
    connection = server.connect()
    connection.request("GET", "/quiet")
    assert connection.getresponse().read(9) == b"data: 1\n\n"
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # A reset: who only ends its own side may still read.
    assert server.stop() == 0
    assert "requests without a client cancelled at the end: GET /quiet" in server.said
    assert ended(tmp_path) == ["/quiet peer-gone"]


WAITS = """
import asyncio

async def begin(send, kind=b"text/plain"):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    await receive()
    print("begins", scope["path"], flush=True)
    await globals()[scope["path"][1:]](receive, send)

async def polls(receive, send):
    # A long poll that answers what it has.
    assert (await receive())["type"] == "http.disconnect"
    await begin(send)
    await send({"type": "http.response.body", "body": b"nothing new"})

async def gives_up(receive, send):
    assert (await receive())["type"] == "http.disconnect"

async def asks(receive, send):
    # As Request.is_disconnected() of Starlette does.
    while True:
        message = receive().__await__()
        try:
            message.send(None)
        except StopIteration as told:
            assert told.value["type"] == "http.disconnect"
            break
        message.close()
        await asyncio.sleep(0.01)
    await begin(send)
    await send({"type": "http.response.body", "body": b"asked"})

async def records(receive, send):
    await begin(send, b"application/x-ndjson")
    await send({"type": "http.response.body", "body": b"{}\\n", "more_body": True})
    listening = asyncio.ensure_future(listen(receive))
    await asyncio.wait([listening, asyncio.ensure_future(asyncio.Event().wait())], return_when=asyncio.FIRST_COMPLETED)
    await send({"type": "http.response.body", "body": b"{\\"farewell\\": 1}\\n"})

async def listen(receive):
    while (await receive())["type"] != "http.disconnect":
        pass

async def works(receive, send):
    # As Django and Quart do: who leaves is noticed while the view runs, which is given up then.
    view = asyncio.ensure_future(answer(send))
    listening = asyncio.ensure_future(listen(receive))
    await asyncio.wait([view, listening], return_when=asyncio.FIRST_COMPLETED)
    view.cancel()

async def answer(send):
    import os
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    await begin(send)
    await send({"type": "http.response.body", "body": b"worked", "more_body": False})
"""


def test_who_only_waits_for_its_client_is_told_at_once_and_who_works_is_not(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--drain-timeout", "1000", source=WAITS)
    connections = {}
    for name in ("polls", "gives_up", "asks", "records", "works"):
        connections[name] = server.connect()
        connections[name].request("GET", f"/{name}")
        server.wait_for(f"begins /{name}")
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as late:
        late.sendall(b"POST /works HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nlat")
        server.process.terminate()
        server.wait_for("draining")
        late.sendall(b"e")
        server.wait_for("(?s)begins /works.*begins /works")
        check_what_is_told(connections)
        (tmp_path / "go").touch()
        assert connections["works"].getresponse().read() == b"worked"
        assert late.recv(65536).endswith(b"\r\n\r\nworked")
    assert server.process.wait(PATIENCE) == 0
    server.read_all()
    assert "error" not in server.said


def check_what_is_told(connections: dict[str, http.client.HTTPConnection]) -> None:
    replies = {}
    for name in ("polls", "gives_up", "asks", "records"):
        response = connections[name].getresponse()
        replies[name] = (response.status, response.read())
    assert replies == {
        "polls": (200, b"nothing new"),
        "gives_up": (503, b"503 Service Unavailable\n"),
        "asks": (200, b"asked"),
        "records": (200, b'{}\n{"farewell": 1}\n'),
    }
