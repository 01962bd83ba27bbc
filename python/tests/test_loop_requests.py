"""How many requests an event loop runs at the same time, and what becomes of others."""

from __future__ import annotations

import http.client
import select
import signal
import socket
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server
from crews import until
from test_pools import figure, wait_for_figure

SOURCE = """
import asyncio, os, time

running = most = 0

async def app(scope, receive, send):
    global running, most
    if scope["type"] == "lifespan":
        return
    if scope["path"] == "/blocks":
        print("blocks", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    running += 1
    most = max(most, running)
    if scope["path"] == "/stay":
        print("stays", flush=True)
    while scope["path"] == "/stay" and not os.path.exists("go"):
        await asyncio.sleep(0.01)
    running -= 1
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % most})
"""


def ask(server: Server, path: str, fields: str = "") -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
    return peer


def answer(peer: socket.socket) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(peer)
    response.begin()
    read = response.status, response.read()
    peer.close()
    return read


def test_further_requests_wait_and_are_refused_when_the_queue_is_full(serve_asgi: Serve, tmp_path: Path) -> None:
    options = ("--loop-requests", "3", "--queue", "2", "--overflow", "refuse", "--metrics-path", "/metrics")
    server = serve_asgi(*options, source=SOURCE)
    peers = [ask(server, "/stay") for _ in range(5)]
    server.wait_for(r"(?s)(?:stays.*){3}")
    wait_for_figure(server, "default", "queued", 2)
    assert answer(ask(server, "/stay"))[0] == 503
    assert figure(server, "default", "refused_total") == 1
    (tmp_path / "go").touch()
    assert [answer(peer) for peer in peers] == [(200, b"3")] * 5
    assert answer(ask(server, "/")) == (200, b"3"), "there is room again"
    assert server.stop() == 0, server.said


def test_further_requests_wait_where_none_is_refused(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--loop-requests", "2", "--queue", "1", "--metrics-path", "/metrics", source=SOURCE)
    peers = [ask(server, "/stay") for _ in range(12)]
    server.wait_for(r"(?s)(?:stays.*){2}")
    wait_for_figure(server, "default", "queued", 10)
    (tmp_path / "go").touch()
    assert [answer(peer) for peer in peers] == [(200, b"2")] * 12
    assert server.stop() == 0, server.said


def test_what_waits_without_a_limit_of_its_own_is_bounded_by_the_memory_of_connections(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--loop-requests", "2", "--queue", "1", "--buffer-budget", "1m", source=SOURCE)
    peers = [ask(server, "/stay", f"Cookie: {'x' * 10_000}\r\n") for _ in range(200)]
    refused = select.poll()
    for peer in peers:
        refused.register(peer, select.POLLIN)
    assert refused.poll(PATIENCE * 1000)
    (tmp_path / "go").touch()
    statuses = [answer(peer)[0] for peer in peers]
    assert set(statuses) == {200, 503} and statuses.count(200) >= 50
    assert answer(ask(server, "/"))[0] == 200, "there is room again"
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("more", [(), ("--loop-requests", "1000")], ids=["any number", "a limit"])
def test_a_burst_is_not_refused_by_a_loop_that_is_idle(more: tuple[str, ...], serve_asgi: Serve) -> None:
    server = serve_asgi("--queue", "10", "--overflow", "refuse", *more, source=SOURCE)

    def statuses() -> set[int]:
        server.process.send_signal(signal.SIGSTOP)
        peers = [ask(server, "/") for _ in range(300)]
        server.process.send_signal(signal.SIGCONT)
        return {answer(peer)[0] for peer in peers}

    # A loop that has no processor for 0.1 s does not come to what waits, either.
    until("a burst is answered", lambda: statuses() == {200})
    assert server.stop() == 0, server.said


def test_a_loop_that_does_not_come_to_what_waits_refuses(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--queue", "3", "--overflow", "refuse", "--metrics-path", "/metrics", source=SOURCE)
    peers = [ask(server, "/blocks")]
    server.wait_for("blocks")
    while figure(server, "default", "refused_total") == 0:
        peers.append(ask(server, "/"))
    (tmp_path / "go").touch()
    statuses = [answer(peer)[0] for peer in peers]
    assert statuses.count(503) >= 1 and statuses[:4] == [200] * 4
    assert server.stop() == 0, server.said
