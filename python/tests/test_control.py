"""``maitred ctl`` against the real command with Python applications."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Serve, Server

# One request sleeps, one waits in a C call that keeps the interpreter: PyDLL, unlike CDLL, does not release it.
STUCK = """
import ctypes, os, threading, time
os.mkfifo("door")
door = os.open("door", os.O_RDWR)
library = ctypes.PyDLL(None)
may_keep = threading.Event()

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/sleeps":
        sleep_long()
    if environ["PATH_INFO"] == "/keeps":
        keep()
    return [b"through"]

def sleep_long():
    time.sleep(60)

def keep():
    library.read(door, ctypes.create_string_buffer(1), 1)
"""

COMPUTING = """
import maitred
stop = False

def app(environ, start_response):
    global stop
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/stop":
        stop = True
    while environ["PATH_INFO"] == "/computes" and not stop:
        pass
    return [b"through"]
"""

DEPRECATED = """
import maitred

def earlier():
    maitred.deprecated("earlier()", "later()")

def app(environ, start_response):
    earlier()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"through"]
"""

ASGI = """
import time

async def app(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/stands":
        stand()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"through"})

def stand():
    time.sleep(60)
"""


def ctl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maitred", "ctl", "--socket", "ctl.sock", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def asked(folder: Path, *arguments: str) -> Any:
    done = ctl(folder, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for_active(folder: Path, *paths: str) -> dict[str, Any]:
    """The entries of ``active`` by path, when all of these are there."""
    deadline = time.monotonic() + 30
    while True:
        active = {entry["path"]: entry for entry in asked(folder, "active")["active"]}
        if all(path in active for path in paths):
            return active
        assert time.monotonic() < deadline, active


def begin(server: Server, path: str) -> threading.Thread:
    def ask() -> None:
        try:
            server.fetch(path)
        except OSError:
            pass  # The server ends before it answers.

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


def test_requests_that_sleep_or_keep_the_interpreter_are_found_with_their_stacks(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve("--control", "ctl.sock", source=STUCK, checked=False)
    begin(server, "/sleeps")
    found = wait_for_active(tmp_path, "/sleeps")["/sleeps"]
    stacks = asked(tmp_path, "stacks")["stacks"]
    stack = next(stack for stack in stacks if stack["tid"] == found["tid"])
    assert stack["name"] == found["thread"]
    assert stack["doing"].startswith("GET /sleeps of 127.0.0.1:")
    assert "in sleep_long\n    time.sleep(60)" in stack["stack"][-1]
    assert "threading.py" not in stack["stack"][0]
    assert any(stack["name"] == "MainThread" for stack in stacks)

    begun = time.monotonic()
    begin(server, "/keeps")
    keeps = wait_for_active(tmp_path, "/sleeps", "/keeps")["/keeps"]
    threads = {thread["tid"]: thread for thread in asked(tmp_path, "threads")["threads"]}
    asked_until = time.monotonic()
    worker = threads[keeps["tid"]]
    assert (worker["role"], worker["method"], worker["path"]) == ("worker", "GET", "/keeps")
    assert 0 < worker["for_seconds"] <= asked_until - begun
    assert threads[found["tid"]]["for_seconds"] >= worker["for_seconds"], "it has been there for longer"
    assert {"main", "backup poller", "control", "logger", "releaser"} <= {thread["role"] for thread in threads.values()}
    # Nobody else can have the interpreter now: the threads write their own stacks.
    by_tid = {stack["tid"]: stack for stack in asked(tmp_path, "stacks")["stacks"]}
    assert by_tid[keeps["tid"]]["state"] == "keeps the interpreter"
    assert by_tid[keeps["tid"]]["stack"][-1].endswith("in keep")
    assert by_tid[found["tid"]]["stack"][-1].endswith("in sleep_long")
    only = asked(tmp_path, "stacks", str(keeps["tid"]))["stacks"]
    assert [stack["tid"] for stack in only] == [keeps["tid"]]
    people = ctl(tmp_path, "stacks").stdout
    assert "in keep" in people and "keeps the interpreter" in people
    assert "/keeps" in ctl(tmp_path, "threads").stdout
    (tmp_path / "door").write_bytes(b"x")
    server.kill()


@pytest.mark.parametrize("arguments", [["status"], ["settings"]])
def test_the_application_and_its_language_are_shown(serve: Serve, tmp_path: Path, arguments: list[str]) -> None:
    serve("--control", "ctl.sock", source=STUCK, checked=False)
    answer = asked(tmp_path, *arguments)
    if arguments == ["status"]:
        assert answer["language"].startswith("Python 3.")
        assert answer["application"].startswith("WSGI ")
        assert answer["changed"] == []
    else:
        assert {"pool.default.max-threads", "log-level"} <= {entry["name"] for entry in answer["settings"]}


def test_a_loop_that_stands_still_shows_where(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", source=ASGI, checked=False)
    begin(server, "/stands")
    wait_for_active(tmp_path, "/stands")
    threads = asked(tmp_path, "threads")["threads"]
    loop = next(thread for thread in threads if thread["role"] == "event loop")
    stacks = asked(tmp_path, "stacks", str(loop["tid"]))["stacks"]
    assert any("in stand\n" in frame for frame in stacks[0]["stack"]), stacks
    server.kill()


def test_a_request_that_computes_and_gets_nowhere_is_told_once(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", source=COMPUTING, checked=False)
    computing = begin(server, "/computes")
    entry = server.wait_for(
        r"warn thread (\S+) \(tid (\d+)\) has computed for 5 s without getting on, in the application: GET /computes of "
    )
    assert entry[1] == "maitred-1" or entry[1].startswith("maitred-")
    server.fetch("/stop")
    computing.join(30)
    assert server.said.count("without getting on") == 1


def test_a_drain_is_what_a_signal_is(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", source=COMPUTING, checked=False)
    assert ctl(tmp_path, "drain").returncode == 0
    server.wait_for("SIGTERM: draining")
    assert server.process.wait(30) == 0
    assert not (tmp_path / "ctl.sock").exists()
    assert ctl(tmp_path, "status").returncode == 1


def test_a_deprecated_function_of_an_application_is_told_once(serve: Serve) -> None:
    server = serve(source=DEPRECATED, checked=False)
    for _ in range(3):
        assert server.fetch("/").body == b"through"
    server.wait_for(r"warn earlier\(\) is deprecated: use later\(\) \(called at .*app\.py:8\)")
    assert server.stop() == 0
    assert server.said.count("is deprecated") == 1


def test_without_a_server_it_is_a_warning_of_python() -> None:
    code = "import maitred\ndef f(): maitred.deprecated('a', 'b')\nf()"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "<string>:3: DeprecationWarning: a is deprecated: use b" in done.stderr
