"""Clients that leave, in each way, and frameworks: every clean-up runs in every departure. In short two of them on asyncio, or with MAITRED_LONG=1 all, a
hundred times each, and on uvloop, too."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Iterator

import by_h2
import frames
import pytest
import secured
from conftest import PATIENCE, SERVER, Server, needs
from crews import until
from departing_sites import SITES, Departing
from sites import start_asgi
from websocket_wire import WebSocket, connect, connect_h2

pytestmark = pytest.mark.skipif(secured.WANTED or by_h2.WANTED, reason="it leaves in the middle of a response, by each protocol")

LONG = "MAITRED_LONG" in os.environ
DEPARTURES = 100 if LONG else 4
#: Those that need most of what a server tells of a departure.
IN_SHORT = ("django", "litestar")
#: Clients that are there at the same time.
AT_ONCE = 4
#: A response that its client does not take is cut after a second; clients that read are faster.
OPTIONS = ("--min-rate-out", "100000", "--min-rate-grace", "1")


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[tuple[Departing, Server]]:
    if not LONG and (loop != "asyncio" or request.param not in IN_SHORT):
        pytest.skip("with MAITRED_LONG=1")
    one = SITES[request.param]
    for module in one.needs:
        needs(module)
    folder = tmp_path_factory.mktemp("departing")
    (folder / "departing.py").write_text(one.source)
    server = start_asgi(folder, "departing:app", loop, *(OPTIONS if SERVER == "maitred" else ()))
    try:
        yield one, server
        assert server.stop() == 0, server.said
        assert "was never awaited" not in server.said and "never retrieved" not in server.said, server.said
    finally:
        server.kill()


# How clients come


class Client:
    """On a connection of its own, by HTTP/1.1."""

    def __init__(self, server: Server, page: str, room: int | None = None) -> None:
        self.peer = socket.socket()
        if room is not None:
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.peer.settimeout(PATIENCE)
        self.peer.connect(("127.0.0.1", server.port))
        self.peer.sendall(f"GET /{page} HTTP/1.1\r\nHost: a\r\n\r\n".encode())

    def begin(self) -> None:
        """Takes the first bytes of the response."""
        assert self.peer.recv(4000).startswith(b"HTTP/1.1 200"), "another status"

    def close(self) -> None:
        self.peer.close()

    def reset(self) -> None:
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()

    def half(self) -> None:
        self.peer.shutdown(socket.SHUT_WR)
        self.peer.close()


class Stream:
    """On a connection of HTTP/2 of its own, which stays."""

    def __init__(self, server: Server, page: str) -> None:
        self.connection = frames.Connection.to(server.port)
        self.number = self.connection.ask(f"/{page}")

    def begin(self) -> None:
        while not self.connection.answers[self.number].heads:
            self.connection.take()
        assert self.connection.answers[self.number].status == 200

    def reset(self) -> None:
        """The stream alone: then the connection answers something else."""
        self.connection.send(frames.reset(self.number))
        assert self.connection.fetch("/counts").status == 200
        self.connection.peer.close()

    def close(self) -> None:
        self.connection.peer.close()


Come = Callable[[Server, str], "Client | Stream"]
Leave = Callable[["Client | Stream"], None]
#: How a client comes, and how it leaves.
WAYS: dict[str, tuple[Come, Leave]] = {
    "closes": (Client, lambda client: client.close()),
    "resets": (Client, lambda client: client.reset()),
    "half-closes, and then closes": (Client, lambda client: client.half()),  # type: ignore[union-attr]
    "resets its stream of HTTP/2": (Stream, lambda client: client.reset()),
    "closes its connection of HTTP/2": (Stream, lambda client: client.close()),
}


# What is counted


def counts(server: Server) -> dict[str, int]:
    found: dict[str, int] = json.loads(server.fetch("/counts").body)
    return found


def check(server: Server, page: str, names: tuple[str, ...], act: Callable[[], None]) -> None:
    """Each of these is counted once for each that has begun, and as many have begun as were to."""
    wanted = dict.fromkeys((f"{page} {name}" for name in ("begun", *names)), DEPARTURES)
    before = counts(server)
    act()
    now: dict[str, int] = {}

    def is_so() -> bool:
        after = counts(server)
        now.update({name: after.get(name, 0) - before.get(name, 0) for name in wanted})
        return now == wanted

    try:
        until("all are cleaned up", is_so)
    except AssertionError:
        raise AssertionError(f"of {DEPARTURES}: {now}\n{server.said[-3000:]}") from None


def groups() -> Iterator[int]:
    yield from (min(AT_ONCE, DEPARTURES - at) for at in range(0, DEPARTURES, AT_ONCE))


# Each kind of departure


@pytest.mark.parametrize("way", WAYS)
def test_who_leaves_while_the_response_is_sent(site: tuple[Departing, Server], way: str) -> None:
    one, server = site
    come, leave = WAYS[way]

    def act(page: str) -> None:
        for count in groups():
            clients = [come(server, page) for _ in range(count)]
            for each in clients:
                each.begin()
            for each in clients:
                leave(each)

    for page, names in one.sends.items():
        check(server, page, names, lambda page=page: act(page))  # type: ignore[misc]


def test_who_stops_reading_is_cut_off(site: tuple[Departing, Server]) -> None:
    one, server = site
    clients: list[Client] = []

    def act(page: str) -> None:
        clients.extend(Client(server, page, room=4096) for _ in range(DEPARTURES))

    try:
        for page, names in one.sends.items():
            check(server, page, names, lambda page=page: act(page))  # type: ignore[misc]
    finally:
        for each in clients:
            each.close()


@pytest.mark.parametrize("way", WAYS)
def test_who_leaves_a_long_poll(site: tuple[Departing, Server], way: str) -> None:
    one, server = site
    come, leave = WAYS[way]

    def act(page: str) -> None:
        before = counts(server).get(f"{page} begun", 0)
        clients = [come(server, page) for _ in range(DEPARTURES)]
        until("all wait", lambda: counts(server).get(f"{page} begun", 0) - before == DEPARTURES)
        for each in clients:
            leave(each)

    for page, names in one.waits.items():
        check(server, page, names, lambda page=page: act(page))  # type: ignore[misc]


def by_http1(server: Server, page: str) -> WebSocket:
    return connect(server.port, f"/{page}")


def by_http2(server: Server, page: str) -> WebSocket:
    return connect_h2(frames.Connection.to(server.port), f"/{page}")


#: How WebSockets come, and how they leave.
SOCKETS: dict[str, tuple[Callable[[Server, str], WebSocket], Callable[[WebSocket], None]]] = {
    "without a close frame": (by_http1, lambda peer: peer.pipe.leave()),
    "by a reset": (by_http1, lambda peer: peer.pipe.abort()),
    "by a reset of the stream": (by_http2, lambda peer: peer.pipe.abort()),
}


@pytest.mark.parametrize("way", SOCKETS)
def test_a_websocket_that_leaves(site: tuple[Departing, Server], way: str) -> None:
    one, server = site
    come, leave = SOCKETS[way]

    def act(page: str) -> None:
        for count in groups():
            peers = [come(server, page) for _ in range(count)]
            for each in peers:
                leave(each)

    if not one.sockets:
        pytest.skip("it has none")
    for page, names in one.sockets.items():
        check(server, page, names, lambda page=page: act(page))  # type: ignore[misc]
