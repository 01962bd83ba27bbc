"""Startup before the first connection, shutdown after the last request."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, needs

APP = """
import asyncio, os, sys

def say(text):
    print(text, flush=True)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": repr(scope.get("state")).encode()})
"""

ORDERLY = """
async def lifespan(scope, receive, send):
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.0"}, scope
    assert await receive() == {"type": "lifespan.startup"}
    await asyncio.sleep(0.01)
    scope["state"]["from"] = "startup"
    say("started")
    await send({"type": "lifespan.startup.complete"})
    assert await receive() == {"type": "lifespan.shutdown"}
    say("stopping")
    await asyncio.sleep(0.01)
    say("stopped")
    await send({"type": "lifespan.shutdown.complete"})
"""


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, which ends by itself."""
    (folder / "app.py").write_text(APP + source)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def test_the_order_of_startup_requests_and_shutdown(serve_asgi: Serve) -> None:
    server = serve_asgi(source=APP + ORDERLY)
    assert server.fetch("/").body == b"{'from': 'startup'}"
    assert server.stop() == 0
    # What the server says goes through its log, and may come a moment after what the application prints.
    for marks in (["started", "stopping", "stopped"], ["started", "serving ASGI app.py:app on one event loop", "drained"]):
        assert sorted(marks, key=server.said.index) == marks, server.said
    assert not re.search(r" (error|warn) ", server.said), "nothing is amiss, nothing is said"


@pytest.mark.parametrize(
    ("body", "why"),
    [("assert scope['type'] == 'http'", "AssertionError"), ("return", "it returned at once")],
)
def test_an_application_without_lifespan_is_served_without_a_word(serve_asgi: Serve, body: str, why: str) -> None:
    source = APP + f"async def lifespan(scope, receive, send):\n    {body}\n"
    server = serve_asgi(source=source)
    assert server.fetch("/").body == b"None"
    assert server.stop() == 0
    assert "lifespan" not in server.said
    assert server.said.startswith("maitred "), "who serves comes first"
    told = serve_asgi("--log-level", "debug", source=source)
    assert f"the application takes no part in lifespan: {why}\n" in told.said


def test_an_exception_in_the_startup_is_shown_and_requests_are_served(serve_asgi: Serve) -> None:
    source = "async def lifespan(scope, receive, send):\n    await receive()\n    raise ValueError('no database')\n"
    server = serve_asgi(source=APP + source)
    assert server.fetch("/").status == 200
    assert "the application raised an exception at startup; it has no lifespan" in server.said
    assert "ValueError: no database" in server.said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no database", "the application failed to start: no database; it said so by lifespan.startup.failed"),
        ("Traceback:\n  line\nValueError: x", "the application failed to start: ValueError: x; see the traceback above"),
        ("", "the application failed to start"),
    ],
)
def test_a_failed_startup_ends_the_command(tmp_path: Path, message: str, said: str) -> None:
    done = run(
        tmp_path,
        "async def lifespan(scope, receive, send):\n"
        f"    await send({{'type': 'lifespan.startup.failed', 'message': {message!r}}})\n"
        "    raise SystemExit(1)\n",
    )
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1], done.stderr
    assert "serving" not in done.stderr


def test_sys_exit_at_startup_ends_the_command(tmp_path: Path) -> None:
    done = run(tmp_path, "async def lifespan(scope, receive, send):\n    sys.exit('no licence')\n")
    assert done.returncode == 2
    assert "the application ended itself at startup: SystemExit: no licence" in done.stderr


def test_a_port_in_use_is_found_before_the_lifespan_begins(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP + ORDERLY)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [MAITRED, "app.py", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "is in use" in done.stderr, done.stderr
    assert done.stdout == ""


def test_ctrl_c_ends_a_startup_that_waits(tmp_path: Path) -> None:
    source = "async def lifespan(scope, receive, send):\n    say('waiting')\n    await asyncio.Event().wait()\n"
    (tmp_path / "app.py").write_text(APP + source)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "KeyboardInterrupt" in errors.splitlines()[-1]


def test_a_shutdown_that_fails_or_hangs_is_told(serve_asgi: Serve) -> None:
    source = APP + ORDERLY.replace("await send({\"type\": \"lifespan.shutdown.complete\"})", "raise ValueError('late')")
    server = serve_asgi(source=source)
    assert server.stop() == 0
    assert "the application raised an exception in its lifespan" in server.said
    assert "ValueError: late" in server.said


def test_a_second_signal_ends_a_shutdown_at_once(serve_asgi: Serve) -> None:
    source = APP + ORDERLY.replace("    say(\"stopped\")", "    await asyncio.Event().wait()")
    server = serve_asgi(source=source)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("stopping")
    assert server.stop(signal.SIGTERM) == 143
    server.wait_for("SIGTERM: ending at once, the application is cut off")


def test_a_shutdown_has_what_is_left_of_drain_timeout_but_two_seconds_at_least(serve_asgi: Serve) -> None:
    source = APP + ORDERLY.replace("    say(\"stopped\")", "    await asyncio.Event().wait()")
    server = serve_asgi("--drain-timeout", "0.1", source=source)
    assert server.stop() == 0
    server.wait_for("lifespan.shutdown did not end within 2 s")
    server.wait_for(r"cancelled at the end: .*\(lifespan\)")


BUSY = """
async def lifespan(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    say("stopping")
    await send({"type": "lifespan.shutdown.complete"})

async def answers_first(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"x"})
    try:
        await (asyncio.sleep(0.2) if scope["path"] == "/short" else asyncio.Event().wait())
        say("background done")
    finally:
        say("background ended")

app = answers_first
"""


def test_work_after_the_response_is_waited_for_before_the_shutdown(serve_asgi: Serve) -> None:
    server = serve_asgi(source=APP + BUSY)
    server.fetch("/short")
    assert server.stop() == 0
    marks = ["drained", "background done", "background ended", "stopping"]
    assert sorted(marks, key=server.said.index) == marks, server.said


def test_what_does_not_end_is_cancelled_and_named(serve_asgi: Serve) -> None:
    server = serve_asgi("--drain-timeout", "1", source=APP + BUSY)
    server.fetch("/long")
    assert server.stop() == 0
    server.wait_for(r"requests cancelled at the end: GET /long")
    assert server.said.index("background ended") < server.said.index("stopping")


STREAM = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for _ in range(2):
            message = await receive()
            print(message["type"], flush=True)
            await send({"type": message["type"] + ".complete"})
        return

    async def parts():
        try:
            while True:
                yield b"x" * 65536
        finally:
            await asyncio.sleep(0)
            print("generator closed", flush=True)

    await send({"type": "http.response.start", "status": 200})
    stream = parts()  # The traceback of what ends this function refers to it.
    async for part in stream:
        await send({"type": "http.response.body", "body": part, "more_body": True})
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_generators_of_streams_that_are_cut_end_before_the_shutdown(serve_asgi: Serve, loop: str) -> None:
    server = serve_asgi("--loop", loop, "--drain-timeout", "0.001", source=STREAM)
    peers = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(3)]
    for peer in peers:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert peer.recv(1) == b"H"
    assert server.stop() == 1
    for peer in peers:
        peer.close()
    assert server.said.count("generator closed") == 3, server.said
    assert "generator closed" not in server.said.split("lifespan.shutdown")[1]


def test_requests_that_run_at_the_end_are_answered_first(serve_asgi: Serve) -> None:
    source = APP + ORDERLY.replace(
        "async def lifespan", "gate = asyncio.Event()\n\nasync def lifespan"
    ) + """
async def gated(scope, receive, send):
    if scope["type"] == "http":
        say("at the gate")
        while not os.path.exists("open"):
            await asyncio.sleep(0.005)
    await plain(scope, receive, send)
    if scope["type"] == "http":
        say("answered")

plain, app = app, gated
"""
    server = serve_asgi(source=source)
    bodies: list[bytes] = []
    asking = threading.Thread(target=lambda: bodies.append(server.fetch("/").body))
    asking.start()
    server.wait_for("at the gate")
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("draining")
    subprocess.run(["touch", "open"], cwd=f"/proc/{server.process.pid}/cwd", check=True)
    asking.join(PATIENCE)
    assert server.process.wait(PATIENCE) == 0
    assert bodies == [b"{'from': 'startup'}"]
    # What the application says comes in its order, and the log's lines beside it.
    server.wait_for(r"answered(.|\n)*stopping")
    server.wait_for("drained: every accepted request was answered")


@pytest.mark.parametrize("choice", ["asyncio", "uvloop", "app:new_loop"])
def test_the_loop_can_be_chosen(serve_asgi: Serve, choice: str) -> None:
    if choice == "uvloop":
        needs("uvloop")
    source = APP + ORDERLY + "def new_loop():\n    return asyncio.SelectorEventLoop()\n"
    server = serve_asgi("--loop", choice, source=source)
    assert server.fetch("/").status == 200
    assert f"on one event loop ({'uvloop' if choice == 'uvloop' else 'asyncio'})" in server.said
    assert server.stop() == 0
