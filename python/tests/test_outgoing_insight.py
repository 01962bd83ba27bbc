"""Calls of an application to other servers, as operators and clients see them: by server, by request, in the finding."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Serve, Server
from crews import until
from test_control import asked, ctl

SHOP = """
import asyncio, os, sys, threading
from contextvars import copy_context
from maitred._engine import HttpFailure, HttpOrigin, HttpPool

pool = HttpPool()
origin = HttpOrigin("http", "127.0.0.1", int(os.environ["OTHER"]))
dead = HttpOrigin("http", "127.0.0.1", int(os.environ["DEAD"]))
NONE = (None,) * 6

def call(target, to=origin, limits=NONE):
    return pool.send(to, "GET", target, [], None, limits).read()

def work(path):
    if path == "/none":
        return
    if path == "/dead":
        try:
            call(b"/", dead)
        except HttpFailure:
            pass
    elif path == "/late":
        try:
            call(b"/wait", limits=(None, None, None, 0.1, None, None))
        except HttpFailure:
            pass
    elif path == "/threads":
        for run in (copy_context().run, lambda call, *arguments: call(*arguments)):
            thread = threading.Thread(target=run, args=(call, b"/ok"))
            thread.start()
            thread.join()
    else:
        for target in path.split("/")[1:]:
            call(b"/" + target.encode())

def wsgi(environ, start_response):
    work(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]

async def asgi(scope, receive, send):
    await asyncio.sleep(0)
    await asyncio.to_thread(work, scope["path"])
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})
"""


class Other:
    """Another server, which the application calls."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        other = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/wait":
                    other.goes_on.wait(PATIENCE)
                self.send_response(404 if self.path == "/missing" else 200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"other")

            def log_message(self, *arguments: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.name = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.goes_on.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def other() -> Iterator[Other]:
    server = Other()
    yield server
    server.end()


@pytest.fixture
def dead() -> Iterator[int]:
    """A port that refuses connections: it is taken, and nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def shop(serve: Serve, folder: Path, other: Other, dead: int, interface: str, *arguments: str) -> Server:
    (folder / "shop.py").write_text(SHOP)
    return serve(f"shop:{interface}", "--control", "ctl.sock", *arguments, OTHER=str(other.port), DEAD=str(dead))


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
def test_calls_are_told_per_request_and_server(serve: Serve, tmp_path: Path, other: Other, dead: int, interface: str) -> None:
    server = shop(serve, tmp_path, other, dead, interface, "--server-timing", "--metrics-path", "/metrics",
                  "--client-log", "client.log", "--access-log", "access.log", "--access-log-format",
                  "$path $request_id $outgoing_calls $outgoing_failed $outgoing_slowest $outgoing")
    timing = server.fetch("/ok/missing/ok").headers["Server-Timing"]
    assert re.search(rf'outgoing;dur=\d+\.\d{{3}};desc="3 calls, slowest {other.name}"$', timing), timing
    assert "outgoing" not in server.fetch("/none").headers["Server-Timing"]
    assert "1 call, slowest" in server.fetch("/threads").headers["Server-Timing"], "a thread without the context is of no request"
    assert f"slowest http://127.0.0.1:{dead}" in server.fetch("/dead").headers["Server-Timing"]

    log = tmp_path / "access.log"
    until("all are written down", lambda: len(log.read_text().splitlines()) == 4)
    rows = {line.split()[0]: line.split()[1:] for line in log.read_text().splitlines()}
    assert [rows["/ok/missing/ok"][1:4], rows["/none"][1:4]] == [["3", "0", other.name], ["0", "0", "-"]]
    assert rows["/dead"][1:4] == ["1", "1", f"http://127.0.0.1:{dead}"]

    calls = tmp_path / "client.log"
    until("all calls are written down", lambda: len(calls.read_text().splitlines()) == 6)
    words = [dict(word.split("=", 1) for word in line.split()[1:]) for line in calls.read_text().splitlines()]
    assert [call["id"] for call in words[:3]] == [rows["/ok/missing/ok"][0]] * 3
    assert [call["status"] for call in words] == ["200", "404", "200", "200", "200", "-"]
    assert [call["reused"] for call in words[:3]] == ["no", "yes", "yes"]
    assert [call["id"] for call in words[3:5]] == [rows["/threads"][0], "-"]
    assert (words[5]["end"], words[5]["received"]) == ("refused", "0")

    answer = asked(tmp_path, "upstreams")
    assert (answer["calls"], answer["running"]) == (6, 0)
    row = next(row for row in answer["upstreams"] if row["server"] == other.name)
    assert (row["calls"], row["reused"] > 0.5, row["sent_bytes"] > 100, row["received_bytes"] > 200) == (5, True, True, True)
    assert 0 < row["p50_seconds"] <= row["p99_seconds"] < PATIENCE and row["first_byte_p50_seconds"] > 0
    ends = {(end["server"], end["kind"], end["end"]): end["calls"] for end in answer["ends"]}
    assert ends == {(other.name, "status", "200"): 4, (other.name, "status", "404"): 1,
                    (f"http://127.0.0.1:{dead}", "failure", "refused"): 1}
    shown = ctl(tmp_path, "upstreams").stdout
    assert other.name in shown and "refused" in shown, shown

    recent = {row["target"]: row for row in asked(tmp_path, "recent")["slow"]}
    assert (recent["/ok/missing/ok"]["outgoing_calls"], recent["/ok/missing/ok"]["slowest_call"]) == (3, other.name)
    assert recent["/none"]["outgoing_calls"] is None
    of_routes = asked(tmp_path, "stats")["outgoing"]
    assert sum(row["calls"] for row in of_routes) == 5 and sum(row["failed"] for row in of_routes) == 1
    metrics = server.fetch("/metrics").body.decode()
    assert f'maitred_upstream_calls_total{{server="{other.name}",kind="status",end="200"}} 4\n' in metrics
    assert f'maitred_upstream_duration_seconds_count{{server="{other.name}"}} 5\n' in metrics


LAZY = """
import os
import maitred.http

def application(environ, start_response):
    # Makes the first client of the process.
    call = maitred.http.get("http://127.0.0.1:" + os.environ["OTHER"] + "/ok")
    start_response("200 OK", [("Content-Length", "5")])
    return [call.content]
"""


def test_a_client_that_is_made_within_a_request_counts_for_it(serve: Serve, tmp_path: Path, other: Other) -> None:
    (tmp_path / "lazy.py").write_text(LAZY)
    server = serve("lazy", "--server-timing", OTHER=str(other.port))
    answer = server.fetch("/")
    assert answer.body == b"other"
    assert "1 call, slowest" in answer.headers["Server-Timing"]


def send_all(server: Server, path: str, count: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=server.fetch, args=(path,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_threads_that_wait_for_a_server_name_it(serve: Serve, tmp_path: Path, other: Other, dead: int) -> None:
    server = shop(serve, tmp_path, other, dead, "wsgi", "--max-threads", "2")
    waiting = send_all(server, "/wait", 6)
    until("two calls run", lambda: asked(tmp_path, "upstreams")["running"] == 2)
    active = asked(tmp_path, "active")["active"]
    until("both have been sent", lambda: all(
        [(call["to"], call["part"]) for call in request["calls"]] == [(other.name, "first byte")]
        for request in asked(tmp_path, "active")["active"]
    ))
    assert len(active) == 2 and other.name in ctl(tmp_path, "active").stdout
    found: dict[str, Any] = {}

    def names_it() -> bool:
        found.update(asked(tmp_path, "finding"))
        return bool(found["cause"] == "upstream")

    until("the finding names the server", names_it)
    assert f"waiting for {other.name} (first byte); 2 of 2 threads are in calls to it" in found["sentence"], found
    assert found["route"] == "GET /wait" and other.name in found["next"]
    other.goes_on.set()
    for thread in waiting:
        thread.join(PATIENCE)
    assert asked(tmp_path, "upstreams")["running"] == 0


def test_a_request_that_times_out_in_a_call_names_the_server(serve: Serve, tmp_path: Path, other: Other, dead: int) -> None:
    server = shop(serve, tmp_path, other, dead, "wsgi", "--request-timeout", "1")
    assert server.fetch("/wait").status == 504
    [failed] = asked(tmp_path, "recent")["failed"]
    assert (failed["status"], failed["slowest_call"], failed["slowest_call_part"]) == (504, other.name, "first byte")
    server.fetch("/late")
    ends = asked(tmp_path, "upstreams")["ends"]
    assert {"server": other.name, "kind": "time-out", "end": "first byte", "calls": 1} in ends, ends
    other.goes_on.set()


def test_calls_of_several_workers_are_added_up_and_a_killed_one_loses_none(
    serve: Serve, tmp_path: Path, other: Other, dead: int
) -> None:
    server = shop(serve, tmp_path, other, dead, "wsgi", "--workers", "2")
    server.wait_for("info all workers are ready")
    for _ in range(10):
        server.fetch("/ok")
    until("all are counted", lambda: asked(tmp_path, "upstreams")["calls"] == 10)
    [killed, _] = [row["pid"] for row in asked(tmp_path, "status")["workers"]]
    os.kill(killed, signal.SIGKILL)
    until("another worker serves", lambda: killed not in [row["pid"] for row in asked(tmp_path, "status")["workers"]])
    server.fetch("/ok")
    until("the counts stay", lambda: asked(tmp_path, "upstreams")["calls"] == 11)
    [row] = asked(tmp_path, "upstreams")["upstreams"]
    assert (row["server"], row["running"]) == (other.name, 0)
