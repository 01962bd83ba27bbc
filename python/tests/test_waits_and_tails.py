"""What is no time of the application's answer: waiting for a body that it reads as it comes, and what it does behind its response."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Serve, Server
from crews import until
from test_control import asked

#: In seconds: how long clients pause in their bodies, and applications go on behind their responses.
PAUSE, GOES_ON = 0.3, 0.2

WSGI = f"""
import time

class Closing:
    def __init__(self):
        self.blocks = [b"done"]

    def __iter__(self):
        return iter(self.blocks)

    def close(self):
        time.sleep({GOES_ON})

def app(environ, start_response):
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return Closing() if environ["PATH_INFO"] == "/goes-on" else [b"done"]
"""

ASGI = f"""
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({{"type": "lifespan.startup.complete"}})
        await receive()
        return await send({{"type": "lifespan.shutdown.complete"}})
    while (await receive())["more_body"]:
        pass
    await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}})
    await send({{"type": "http.response.body", "body": b"done"}})
    if scope["path"] == "/goes-on":
        await asyncio.sleep({GOES_ON})
"""


@pytest.fixture(params=["wsgi", "asgi"])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    options = ["--control", "ctl.sock", "--metrics-path", "/metrics", "--access-log", "a.log", "--access-log-format", "json"]
    options += ["--listen", "127.0.0.1:0,read-ahead=off"]
    # The checker of WSGI has a close() of its own.
    return serve(*options, source=WSGI if request.param == "wsgi" else ASGI, checked=False)


def logged(folder: Path, target: str) -> dict[str, Any]:
    """The line of the first request for this target."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        lines = (folder / "a.log").read_text().splitlines()
        found[:] = [line for line in map(json.loads, lines) if line["target"] == target]
        return bool(found)

    until("it is logged", is_there)
    return found[0]


SPANS = ("accept", "queue", "gate", "filter", "run", "receive", "write")


def test_waiting_for_the_body_is_a_span_of_its_own(server: Server, tmp_path: Path) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf")
        time.sleep(PAUSE)  # A slow client: how long is what the test is about.
        peer.sendall(b"half")
        answer = b""
        while not answer.endswith(b"done"):
            part = peer.recv(65536)
            assert part, answer
            answer += part
    line = logged(tmp_path, "/slow")
    assert line["receive"] >= PAUSE * 0.9, line
    assert abs(sum(line[span] for span in SPANS) - line["total"]) < 1e-5
    assert server.fetch("/short", "POST", b"x").body == b"done"
    assert logged(tmp_path, "/short")["receive"] >= 0
    metrics = server.fetch("/metrics").body.decode()
    sum_of = re.search(r'^maitred_route_duration_seconds_sum\{route="POST /slow",span="receive"\} (\S+)$', metrics, re.MULTILINE)
    assert sum_of and float(sum_of[1]) >= PAUSE * 0.9, metrics
    assert "maitred_database" not in metrics, "it has used none"


def test_what_runs_behind_the_response_is_counted_and_is_no_part_of_it(server: Server, tmp_path: Path) -> None:
    for _ in range(3):
        assert server.fetch("/goes-on").body == b"done"
    assert server.fetch("/ends").body == b"done"

    def after(route: str) -> float:
        return float(asked(tmp_path, "stats", "--route", route)["after_seconds"])

    until("it is counted", lambda: after("GET /goes-on") >= GOES_ON * 0.99)
    rows = {row["name"]: row for row in asked(tmp_path, "stats")["routes"]}
    assert rows["GET /goes-on"]["after_seconds"] >= GOES_ON * 0.99
    line = logged(tmp_path, "/goes-on")
    assert abs(sum(line[span] for span in SPANS) - line["total"]) < 1e-5
