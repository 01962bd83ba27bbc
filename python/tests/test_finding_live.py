"""``finding`` of a server with a trouble: it names the right cause within seconds, and none while all is well."""

from __future__ import annotations

import http.client
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Serve, Server
from crews import PATIENCE, Crew, Start, crew, until
from test_control import asked, ctl

__all__ = ["crew"]

APP = """
import os, re, socket, threading, time
kept = []
lock = threading.Lock()
# No expression is slower, and it is C that does not give the interpreter to others.
stars = re.compile("(a*)*b")

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/broken":
        raise RuntimeError("as asked for")
    fields = [("Content-Type", "text/plain")]
    if path == "/database":
        # As maitred.instrument would count it.
        fields.append(("Server-Timing", "db;dur=480"))
    start_response("200 OK", fields)
    if path in ("/slow", "/database"):
        time.sleep(0.5)
    if path in ("/a", "/b", "/c"):
        # A thread that wakes waits for a processor where other tests run: the rarer, the less of its time.
        time.sleep(0.2)
    if path == "/locked":
        with lock:
            time.sleep(0.2)
    if path == "/calls":
        here, _there = socket.socketpair()
        here.settimeout(0.5)
        try:
            here.recv(1)
        except TimeoutError:
            pass
    if path == "/loop":
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
    if path == "/stars":
        stars.match("a" * 22)
    if path == "/keep":
        kept.append(b"x" * (5 << 20))
    if path == "/large":
        return [b"x" * (24 << 20)]
    return [b"first %d" % os.getpid()]
"""


@contextmanager
def load(server: Server | Crew, *paths: str, clients: int = 1, pause: float = 0.0, most: int = 1_000_000) -> Iterator[None]:
    """For each path so many clients, which ask again and again, at most so often."""
    stop = threading.Event()

    def ask(path: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        try:
            for _ in range(most):
                connection.request("GET", path)
                connection.getresponse().read()
                if stop.wait(pause):
                    break
        except OSError:
            pass  # The server ends before it answers.
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(path,), daemon=True) for path in paths for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def found(folder: Path, cause: str) -> dict[str, Any]:
    """What is found, as soon as it has this cause, or after a time the last one. A look may see other tests that take the processors."""
    end = time.monotonic() + PATIENCE
    while True:
        finding: dict[str, Any] = asked(folder, "finding")
        if finding["cause"] == cause or time.monotonic() > end:
            return finding


def begun(serve: Serve, *arguments: str) -> Server:
    # Frames of a traceback, and requests that are cut, are none of the checker's business.
    return serve("--control", "ctl.sock", *arguments, source=APP, checked=False)


def test_nothing_is_found_while_all_is_well(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    quiet = asked(tmp_path, "finding")
    assert (quiet["cause"], quiet["route"], quiet["requests"]) == ("none", None, 0)
    assert quiet["sentence"].startswith("Nothing stands in the way: no request has ended in ")
    with load(server, "/", "/quick", clients=2, pause=0.02), load(server, "/a", pause=0.1):
        looks: list[dict[str, Any]] = []

        def nothing_is_found() -> bool:
            looks[:] = [asked(tmp_path, "finding") for _ in range(3)]
            return all(look["cause"] == "none" for look in looks)

        # Other tests may take the processors for a while.
        until("nothing is found three times in a row", nothing_is_found)
    assert looks[-1]["requests"] > 0 and looks[-1]["compared_seconds"] > 0.7, looks
    shown = ctl(tmp_path, "finding", "--pool", "default")
    assert shown.returncode == 0 and "Nothing stands in the way" in shown.stdout and "the same for every pool" in shown.stdout


def test_a_slow_route_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    with load(server, "/slow", clients=4), load(server, "/", clients=2, pause=0.02):
        finding = found(tmp_path, "slow-route")
        assert (finding["cause"], finding["route"], finding["pool"]) == ("slow-route", "GET /slow", "default"), finding
        shown = re.compile(r"GET /slow takes 5.* waits for something", re.DOTALL)
        until("it is shown", lambda: shown.search(ctl(tmp_path, "finding").stdout) is not None)
    # `sleep` is none of Python's functions, so that the line that calls it is the innermost.
    line = next(number for number, text in enumerate((tmp_path / "app.py").read_text().splitlines(), 1) if "sleep(0.5)" in text)
    assert re.search(rf"\d of \d busy threads stand at app.py:{line} in app\.$", finding["sentence"]), finding


@pytest.mark.parametrize(("page", "line", "cause", "what"), [
    ("/locked", "with lock:", "lock", "a lock"), ("/calls", "here.recv(1)", "upstream", "a peer")
])
def test_what_a_slow_route_waits_for_is_named(serve: Serve, tmp_path: Path, page: str, line: str, cause: str, what: str) -> None:
    server = begun(serve)
    with load(server, page, clients=6), load(server, "/", pause=0.02):
        finding = found(tmp_path, cause)
    assert (finding["cause"], finding["route"]) == (cause, f"GET {page}"), finding
    number = next(number for number, text in enumerate((tmp_path / "app.py").read_text().splitlines(), 1) if line in text)
    assert f"busy threads stand at app.py:{number} in app, and wait for {what}." in finding["sentence"], finding


def test_threads_that_are_all_taken_are_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve, "--max-threads", "3")
    with load(server, "/a", "/b", "/c", clients=4):
        finding = found(tmp_path, "threads")
    assert (finding["cause"], finding["pool"]) == ("threads", "default"), finding
    assert finding["sentence"].startswith("All 3 threads of the pool default are in the application")


def test_an_interpreter_that_is_busy_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    with load(server, "/loop", clients=4):
        finding = found(tmp_path, "interpreter")
    assert (finding["cause"], finding["route"]) == ("interpreter", "GET /loop"), finding


def test_c_code_that_keeps_the_interpreter_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    source = (tmp_path / "app.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "stars.match" in text)
    told = re.compile(rf"C code keeps the interpreter .* GET /stars\. The thread that keeps it stands at app.py:{line} in app\.$")
    with load(server, "/stars", clients=4), load(server, "/", pause=0.02):
        until("it is told", lambda: told.match(asked(tmp_path, "finding")["sentence"]) is not None)


ASGI = """
import time

def crunch():
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass

async def app(scope, receive, send):
    assert scope["type"] == "http"
    crunch()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"x"})
"""


def test_the_line_that_keeps_an_event_loop_is_named(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", source=ASGI, checked=False)
    with load(server, "/", clients=4):
        until("the line is named", lambda: "The event loop stands at app.py:" in asked(tmp_path, "finding")["sentence"])


def test_a_slow_database_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    with load(server, "/database", clients=4), load(server, "/", pause=0.02):
        finding = found(tmp_path, "database")
    assert (finding["cause"], finding["route"]) == ("database", "GET /database"), finding
    assert re.search(r"it has (100|\d\d) % of the time of GET /database, which takes \d+ ms", finding["sentence"]), finding


def test_a_log_that_nobody_reads_is_named(serve: Serve, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "access")
    # Somebody has it open, or the server would not start, and never reads. It is full, or the first lines would count as written.
    reader = os.open(tmp_path / "access", os.O_RDWR | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(reader, b"x")
    try:
        server = begun(serve, "--access-log", "access")
        with load(server, f"/{'x' * 2000}", clients=2):
            finding = found(tmp_path, "log")
    finally:
        os.close(reader)
    assert finding["cause"] == "log", finding
    assert finding["sentence"].startswith("The access log was not written at all for ")


def test_readers_that_stop_are_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    readers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
    try:
        for reader in readers:
            reader.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        until("all responses wait", lambda: asked(tmp_path, "deliveries")["total"] == len(readers))
        finding = found(tmp_path, "slow-readers")
    finally:
        for reader in readers:
            reader.close()
    assert (finding["cause"], finding["route"]) == ("slow-readers", "GET /large"), finding


def test_memory_that_grows_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    with load(server, "/keep", pause=0.05, most=100):
        finding = found(tmp_path, "memory")
    assert (finding["cause"], finding["route"]) == ("memory", "GET /keep"), finding


def test_a_burst_of_errors_is_named(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    with load(server, "/broken", "/", clients=2, pause=0.01):
        finding = found(tmp_path, "errors")
    assert (finding["cause"], finding["route"]) == ("errors", "GET /broken"), finding


def test_several_workers_are_one_server(crew: Start) -> None:
    server = crew(source=APP)
    server.serving(2)
    with load(server, "/broken", "/", clients=4, pause=0.01):
        finding = found(server.folder, "errors")
        alone = server.ask("finding", worker=2)
    assert (finding["cause"], finding["route"], finding["parallel"]) == ("errors", "GET /broken", 2), finding
    assert alone["parallel"] == 1
    unknown = ctl(server.folder, "finding", "--pool", "shop")
    assert (unknown.returncode, unknown.stderr) == (1, "maitred: there is no pool 'shop'; 'pools' lists them\n")
