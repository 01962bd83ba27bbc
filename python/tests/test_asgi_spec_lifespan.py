"""The lifespan of an ASGI application ("Lifespan Protocol" 2.0): its messages, its state, and its failures."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from conftest import PATIENCE, Server
from sites import RAW_COMMON, SERVER, differs, start_asgi

SOURCE = RAW_COMMON + """
import os
asked = os.environ.get("ASKED", "")

async def app(scope, receive, send):
    if scope["type"] == "http":
        return await routes[scope["path"]](scope, receive, send)
    assert set(scope) <= {"type", "asgi", "state"}, scope
    assert scope["asgi"]["version"] == "3.0"
    if asked == "not supported":
        raise ValueError("only http")
    message = await receive()
    assert message == {"type": "lifespan.startup"}, message
    print("startup", flush=True)
    if asked == "startup raises":
        raise ValueError("not started")
    if asked == "startup fails":
        return await send({"type": "lifespan.startup.failed", "message": "the database is away"})
    if "state" in scope:
        scope["state"].update(number=7, shared=[])
    await asyncio.sleep(0)
    await send({"type": "lifespan.startup.complete"})
    if asked == "returns":
        return
    message = await receive()
    assert message == {"type": "lifespan.shutdown"}, message
    print(f"shutdown after {counts['answered']}\\n", end="", flush=True)  # one write, or the log stands between
    if asked == "shutdown fails":
        return await send({"type": "lifespan.shutdown.failed", "message": "the database was left open"})
    if asked == "shutdown raises":
        raise ValueError("not shut down")
    await send({"type": "lifespan.shutdown.complete"})
    print("after the shutdown", flush=True)

@route
async def state(scope, receive, send):
    found = scope["state"]["number"], scope["state"]["shared"]
    scope["state"]["number"] = 8
    scope["state"]["shared"].append(1)
    await reply(send, [found[0], len(found[1])])

@route
async def slow(scope, receive, send):
    happen("slow")
    print("slow began", flush=True)
    await begin(send)
    await block(send, b"first ")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.005)
    happen("answered")
    await finish(send, b"last")
"""


def lifespan(folder: Path, asked: str = "", *arguments: str) -> Server:
    (folder / "lived.py").write_text(SOURCE)
    return start_asgi(folder, "lived:app", "asyncio", *arguments, ASKED=asked)


def test_the_lifespan_spans_the_requests(tmp_path: Path) -> None:
    server = lifespan(tmp_path)
    try:
        assert "startup" in server.said, "before connections are accepted"
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
            peer.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            server.wait_for("slow began")
            server.process.terminate()
            (tmp_path / "go").touch()
            received = b""
            while part := peer.recv(65536):
                received += part
        assert b"first " in received and b"last" in received, "a request that runs is finished first"
        server.process.wait(PATIENCE)
        server.wait_for("shutdown after 1\n(?s:.*)after the shutdown")
    finally:
        server.kill()


def test_the_state_of_the_lifespan_is_copied(tmp_path: Path) -> None:
    server = lifespan(tmp_path)
    try:
        assert [server.fetch("/state").body for _ in range(2)] == [b"[7, 1]", b"[7, 2]"]
        assert server.stop() == 0
    finally:
        server.kill()


says = differs("it takes this for an application without lifespan and says nothing", "uvicorn")


@pytest.mark.parametrize("asked", ["not supported", "startup raises", "returns"])
def test_without_a_lifespan_requests_are_served(tmp_path: Path, asked: str) -> None:
    server = lifespan(tmp_path, asked)
    try:
        assert server.fetch("/hello").body == b'"hello"'
        assert server.stop() == 0
        assert "shutdown after" not in server.said
    finally:
        server.kill()


def test_a_startup_that_failed_ends_the_server(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the database is away"):
        lifespan(tmp_path, "startup fails")


@pytest.mark.parametrize("asked", ["shutdown fails", pytest.param("shutdown raises", marks=says)])
def test_a_shutdown_that_failed_is_said(tmp_path: Path, asked: str) -> None:
    server = lifespan(tmp_path, asked)
    try:
        assert server.fetch("/hello").body == b'"hello"'
        server.stop()
        assert ("the database was left open" if asked == "shutdown fails" else "not shut down") in server.said
    finally:
        server.kill()


@pytest.mark.parametrize("asked", ["not supported", "startup raises"])
def test_an_application_that_has_to_take_part_and_raises_is_not_served(tmp_path: Path, asked: str) -> None:
    with pytest.raises(AssertionError, match="--lifespan" if SERVER == "maitred" else ""):
        lifespan(tmp_path, asked, "--lifespan", "on")


def test_one_that_has_to_take_part_and_does_is_served(tmp_path: Path) -> None:
    server = lifespan(tmp_path, "", "--lifespan", "on")
    try:
        assert server.fetch("/state").body == b"[7, 1]"
    finally:
        server.kill()


def test_without_lifespan_the_application_is_told_of_nothing(tmp_path: Path) -> None:
    server = lifespan(tmp_path, "", "--lifespan", "off")
    try:
        assert server.fetch("/hello").body == b'"hello"'
        assert server.stop() == 0
        assert "startup" not in server.said and "shutdown" not in server.said
    finally:
        server.kill()
