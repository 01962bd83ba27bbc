"""Many who ask for stacks at once, whatever the threads are doing: all are answered, and the service goes on."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Serve, Server

#: Seconds. Before frames were read without a fault, half a second was enough to end the process.
ASKED_FOR = 3.0
OPERATORS = 8
#: That compute at the same time.
REQUESTS = 3

# Calls and nothing else: whenever a stack is looked at, a frame is being made.
CALLS = """
stop = False

def calls(depth):
    if depth:
        for _ in range(3):
            calls(depth - 1)
        sorted([2, 1], key=lambda number: calls(0) or number)

def end():
    global stop
    stop = True
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    end() if environ["PATH_INFO"] == "/end" else compute()
    return [b"through"]

def compute():
    while not stop:
        calls(4)
"""

ASGI = """
import asyncio

async def app(scope, receive, send):
    assert scope["type"] == "http"
    end() if scope["path"] == "/end" else await compute()
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"through"})

async def compute():
    while not stop:
        calls(12)
        await asyncio.sleep(0)
"""

# Garbage is left for whoever takes the interpreter next. Its end gives the interpreter to threads that begin and end.
GARBAGE = """
import gc, threading, time

class Garbage:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.0001)

def leave_garbage():
    while not stop:
        gc.disable()
        Garbage()
        gc.set_threshold(1)
        gc.enable()
        time.sleep(0.0001)

def begin_threads():
    while not stop:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()

stop = False

def app(environ, start_response):
    global stop
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/begin":
        for function in (leave_garbage, begin_threads, begin_threads):
            threading.Thread(target=function, daemon=True).start()
    elif environ["PATH_INFO"] == "/end":
        stop = True
    return [b"through"]
"""


def stacks(folder: Path) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(str(folder / "ctl.sock"))
        peer.sendall(b"POST /stacks HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), answer[:500]
    return list(json.loads(body)["stacks"])


def computing(server: Server) -> list[threading.Thread]:
    begun = [threading.Thread(target=server.fetch, args=("/computes",)) for _ in range(REQUESTS)]
    for each in begun:
        each.start()
    return begun


def operate(folder: Path, look: Callable[[list[dict[str, Any]]], object]) -> list[BaseException]:
    """Operators ask for some time; how they failed."""
    until = time.monotonic() + ASKED_FOR
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            while time.monotonic() < until:
                look(stacks(folder))
        except BaseException as error:  # noqa: BLE001 - told by the test, whose thread it is not.
            failed.append(error)

    operators = [threading.Thread(target=ask) for _ in range(OPERATORS)]
    for each in operators:
        each.start()
    for each in operators:
        each.join()
    return failed


@pytest.mark.parametrize(("application", "threads"), [(WSGI, REQUESTS), (ASGI, 1)], ids=["wsgi", "asgi"])
def test_many_operators_ask_for_the_stacks_of_threads_that_compute(
    serve: Serve, tmp_path: Path, application: str, threads: int
) -> None:
    # The server looks by itself, too: at requests that take long, and at the loop, which stands still for tenths of a second.
    options = ["--control", "ctl.sock", "--stuck-after", "0.01"]
    server = serve(*options, source=CALLS + application, checked=False)
    busy = computing(server)
    seen: list[set[int]] = []
    failed = operate(
        tmp_path,
        lambda shown: seen.append(
            {one["tid"] for one in shown if any(", in calls" in frame for frame in one["stack"])}
        ),
    )
    assert not failed, (server.process.poll(), failed[0])
    assert server.process.poll() is None, server.said
    assert len(seen) >= OPERATORS
    assert max(map(len, seen)) == threads, "each thread with where it is"
    assert server.fetch("/end").body == b"through"
    for each in busy:
        each.join(PATIENCE)
    assert server.stop() == 0, server.said


def test_the_collector_does_not_stop_the_process_in_a_question(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", source=GARBAGE, checked=False)
    server.fetch("/begin")
    answered: list[int] = []
    assert operate(tmp_path, lambda shown: answered.append(len(shown))) == []
    assert len(answered) >= OPERATORS
    assert server.fetch("/end").body == b"through"
    assert server.stop() == 0, server.said
