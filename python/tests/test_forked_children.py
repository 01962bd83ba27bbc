"""Children that a handler forks and that stay: signals work, what they say is heard, and the port is the server's alone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator

import pytest
from conftest import PATIENCE, Serve, Server
from crews import until

COMMON = """
import asyncio, multiprocessing, os, signal, sys, threading
context = multiprocessing.get_context("fork")

def wait(ready, errors=None):
    try:
        if errors is not None:
            print("said by a child", file=errors, flush=True)
        ready.put(os.getpid())
        threading.Event().wait()
    except KeyboardInterrupt:
        os._exit(7)

def child(*arguments):
    ready = context.SimpleQueue()
    process = context.Process(target=wait, args=(ready, *arguments))
    process.start()
    assert ready.get() == process.pid
    return process

def answer(path, errors):
    if path == "/stays":
        return child(errors).pid
    process = child()
    process.terminate() if path == "/terminate" else os.kill(process.pid, signal.SIGINT)
    process.join(20)
    code = process.exitcode
    process.kill()
    return code
"""

WSGI = COMMON + """
def app(environ, start_response):
    text = str(answer(environ["PATH_INFO"], environ["wsgi.errors"]))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]
"""

ASGI = COMMON + """
async def app(scope, receive, send):
    if scope["type"] == "http":
        text = str(answer(scope["path"], sys.stderr))
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": text.encode()})
"""


@pytest.fixture(params=["wsgi", "asgi"])
def server(serve: Serve, request: pytest.FixtureRequest) -> Server:
    return serve("--admin", "127.0.0.1:0", source=WSGI if request.param == "wsgi" else ASGI, checked=False)


@pytest.fixture
def child(server: Server) -> Iterator[int]:
    pid = int(server.fetch("/stays").body)
    yield pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_it_ends_when_it_is_told_to(server: Server) -> None:
    assert server.fetch("/terminate").body == b"-15"


def test_it_is_interrupted_as_any_python(server: Server) -> None:
    assert server.fetch("/interrupt").body == b"7"


def test_what_it_says_is_heard(server: Server, child: int) -> None:
    server.wait_for("said by a child")
    os.kill(child, 0)


def test_the_port_ends_with_the_server(server: Server, child: int) -> None:
    server.process.kill()
    server.process.wait()
    os.kill(child, 0)

    def refused() -> bool:
        try:
            socket.create_connection(("127.0.0.1", server.port), PATIENCE).close()
        except ConnectionRefusedError:
            return True
        return False

    until("nobody listens any more", refused)


def test_the_server_itself_goes_on(server: Server, child: int) -> None:
    assert server.fetch("/terminate").body == b"-15"
    os.kill(child, signal.SIGTERM)
    assert server.stop() == 0
