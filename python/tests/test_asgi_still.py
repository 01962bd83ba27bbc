"""A loop that stands still: one entry with the request and the stack, and how long it stood."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server

SOURCE = """
import asyncio, ctypes, os
os.mkfifo("door")
door = os.open("door", os.O_RDWR)
library = ctypes.PyDLL(None)

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await asyncio.sleep(0)
    if scope["path"] != "/other":
        print("at the door", flush=True)
    if scope["path"] == "/waits":
        stand_at_the_door()
    if scope["path"] == "/keeps":
        keep()
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"through"})

def stand_at_the_door():
    os.read(door, 1)

def keep():
    library.read(door, ctypes.create_string_buffer(1), 1)
"""


def ask(server: Server, path: str, replies: list[bytes]) -> None:
    replies.append(server.fetch(path).body)


@pytest.mark.parametrize(
    ("path", "function", "state"),
    [("/waits", "stand_at_the_door", ""), ("/keeps", "keep", ", which keeps the interpreter")],
)
def test_a_loop_that_stands_still_is_told_of(
    serve_asgi: Serve, tmp_path: Path, path: str, function: str, state: str
) -> None:
    server = serve_asgi(source=SOURCE)
    replies: list[bytes] = []
    asking = [threading.Thread(target=ask, args=(server, each, replies)) for each in (path, "/other")]
    asking[0].start()
    server.wait_for("at the door")
    asking[1].start()
    entry = rf"error GET {path}: the event loop has been standing still for (\d\.\d\d) s, on thread maitred-loop"
    server.wait_for(entry + rf" \(tid \d+\){re.escape(state)}; all other requests wait\n  Stack")
    server.wait_for(rf'app.py", line \d+, in {function}')
    with open(tmp_path / "door", "wb", buffering=0) as door:
        door.write(b"x")
    server.wait_for(r"warn the event loop is back after \d+\.\d\d s")
    for each in asking:
        each.join(PATIENCE)
    assert replies == [b"through"] * 2
    assert server.stop() == 0


def test_only_the_loop_s_thread_says_which_request_it_runs(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--control", "ctl.sock", source=SOURCE)
    replies: list[bytes] = []
    asking = threading.Thread(target=ask, args=(server, "/keeps", replies))
    asking.start()
    server.wait_for("at the door")

    def asked(*question: str) -> list[dict[str, Any]]:
        command = [MAITRED, "ctl", "--socket", "ctl.sock", "--json", *question]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=True).stdout
        return list(json.loads(said)[question[0]])

    # The interpreter cannot be had, so that each thread writes what it knows of itself.
    by_role = {thread["role"]: str(thread["tid"]) for thread in asked("threads")}
    (loop,) = asked("stacks", by_role["event loop"])
    assert loop["state"] == "runs GET /keeps, keeps the interpreter"
    (poller,) = asked("stacks", by_role["backup poller"])
    assert poller["state"] == "waits for the interpreter"
    with open(tmp_path / "door", "wb", buffering=0) as door:
        door.write(b"x")
    asking.join(PATIENCE)
    assert replies == [b"through"]


def test_a_loop_that_stands_still_at_the_end_is_not_said_to_be_back(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--drain-timeout", "0.001", source=SOURCE)
    asking = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(2)]
    asking[0].sendall(b"GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
    server.wait_for("at the door")
    asking[1].sendall(b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n")
    server.wait_for("has been standing still")
    server.process.terminate()
    assert [peer.recv(1) for peer in asking] == [b"", b"H"], "one is cut, the other refused"
    for peer in asking:
        peer.close()
    with open(tmp_path / "door", "wb", buffering=0) as door:
        door.write(b"x")
    assert server.process.wait(PATIENCE) == 1
    assert "is back" not in server.said


def test_it_can_be_switched_off(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--stuck-after", "0", source=SOURCE)
    tasks = os.listdir(f"/proc/{server.process.pid}/task")
    names = {Path(f"/proc/{server.process.pid}/task/{task}/comm").read_text().strip() for task in tasks}
    assert "maitred-still" not in names


def test_the_end_waits_for_who_asks_for_a_stack(serve_asgi: Serve, tmp_path: Path) -> None:
    """A thread that comes for the interpreter while that ends would kill the process."""
    late = """
import traceback
os.mkfifo("answer")
answer = os.open("answer", os.O_RDWR)
format_stack = traceback.format_stack

def late(frame):
    print("asked", flush=True)
    os.read(answer, 1)
    print("answered", flush=True)
    return format_stack(frame)

traceback.format_stack = late
"""
    server = serve_asgi(source=SOURCE + late)
    replies: list[bytes] = []
    asking = [threading.Thread(target=ask, args=(server, each, replies)) for each in ("/waits", "/other")]
    asking[0].start()
    server.wait_for("at the door")
    asking[1].start()
    server.wait_for("asked")
    with open(tmp_path / "door", "wb", buffering=0) as door:
        door.write(b"x")
    for each in asking:
        each.join(PATIENCE)
    assert replies == [b"through"] * 2
    # Read and write: nobody reads any more if the process has ended.
    answer = os.open(tmp_path / "answer", os.O_RDWR)
    try:
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("drained")
        os.write(answer, b"x")
        assert server.process.wait(PATIENCE) == 0, server.said
    finally:
        os.close(answer)
    server.wait_for("answered")


def test_a_loop_that_is_idle_again_does_not_stand_still(serve_asgi: Serve) -> None:
    """What comes while it computes is served in its place; after that nothing calls it."""
    source = """
import asyncio

async def later():
    # Three times what it takes until a loop is said to stand still.
    await asyncio.sleep(0.3)
    print("later", flush=True)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"answered"})
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    client = f":{scope['client'][1]:04X} "
    # Until the server has closed the connection, too: only its driver can do that.
    while any(client in line and line.split()[3] != "06" for line in open("/proc/net/tcp")):
        pass
    app.task = asyncio.create_task(later())
"""
    server = serve_asgi(source=source)
    assert server.fetch("/").body == b"answered"
    server.wait_for("later")
    assert "no request" not in server.said
    assert server.stop() == 0, server.said
