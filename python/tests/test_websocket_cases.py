"""Autobahn's 517 cases (websocket_cases.py) against an application that echoes: all of them, in short or with MAITRED_LONG=1 in their sizes.

A group is one test, which names each of its cases that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import frames
import pytest
from conftest import SERVER
from sites import Site, site, start_asgi
from websocket_cases import Case, Rounds, table
from websocket_wire import WebSocket, complaints, connect, connect_h2

GROUPS = table("MAITRED_LONG" in os.environ)
#: Those whose sizes are of use over HTTP/2, too: framing, fragments, closing.
FRAMED = [group for group in GROUPS if group.partition(".")[0] in ("1", "2", "3", "4", "5", "7", "10")]

APP = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") is not None:
            await send({"type": "websocket.send", "text": message["text"]})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"]})
"""

Open = Callable[[str | None], WebSocket]


@pytest.fixture(scope="module")
def echoes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("echoes")
    (folder / "echoes.py").write_text(APP)
    for each in site(start_asgi(folder, "echoes:app", "asyncio")):
        yield each
        assert SERVER != "maitred" or not complaints(each.server.said), complaints(each.server.said)


def test_all_517_cases_are_there() -> None:
    majors: dict[str, int] = {}
    for group, cases in GROUPS.items():
        major = group.partition(".")[0]
        majors[major] = majors.get(major, 0) + len(cases)
    assert majors == {"1": 16, "2": 11, "3": 7, "4": 10, "5": 20, "6": 145, "7": 37, "9": 54, "10": 1, "12": 90, "13": 126}
    names = [case.name for cases in GROUPS.values() for case in cases]
    assert len(set(names)) == len(names) == 517


@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", GROUPS)
def test_case(echoes: Site, group: str) -> None:
    play(group, lambda offer: connect(echoes.server.port, deflate=offer))


@pytest.mark.skipif(SERVER != "maitred", reason="no other server under test speaks HTTP/2")
@pytest.mark.parametrize("group", FRAMED)
def test_case_over_http_2(echoes: Site, group: str) -> None:
    with frames.Connection.to(echoes.server.port) as connection:
        connection.ping()
        play(group, lambda offer: connect_h2(connection, deflate=offer))
        assert not connection.goaways, "a fault of a WebSocket is none of its connection"


def play(group: str, opened: Open) -> None:
    failed = []
    for case in GROUPS[group]:
        try:
            if isinstance(case, Rounds):
                converse(case, opened)
            else:
                follow(case, opened)
        except Exception as error:
            failed.append(f"{case.name}: {type(error).__name__}: {shortened(error)}")
    assert not failed, f"{len(failed)} of {len(GROUPS[group])} cases failed:\n" + "\n".join(failed)


def follow(case: Case, opened: Open) -> None:
    with opened(None) as peer:
        for step in case.script():
            if isinstance(step, bytes):
                # The server may have ended the connection at a fault before the last one.
                peer.send_each([step])
            else:
                came = peer.event()
                assert came == step, f"{shortened(came)} came, not {shortened(step)}"
        optional = list(case.optional)
        while (event := peer.event()) in optional:
            # Without those before it, which did not come.
            del optional[: optional.index(event) + 1]
        assert event is not None, "the connection has ended without a close"
        kind, value = event
        assert kind == "close", f"{shortened(event)} came, and no close"
        assert value[0] in case.codes, f"closed with {value}, not {case.codes}"
        if not case.we_close:
            peer.answer_close(value[0])
        assert peer.event() is None, "nothing follows a close, and the server ends the connection"


def converse(case: Rounds, opened: Open) -> None:
    with opened(case.offer) as peer:
        if case.offer:
            assert peer.deflate, "the server does not compress"
            assert peer.deflate.server_window <= case.window
            assert not (case.is_fresh and peer.deflate.server_takes_over)
        for number, message in enumerate(case.messages()):
            peer.say(message, case.fragment)
            came = peer.message()
            assert came == message, f"message {number}: {shortened(came)} came, not {shortened(message)}"
        assert peer.close()[0] == 1000


def shortened(what: object) -> str:
    shown = str(what)
    return shown if len(shown) < 200 else f"{shown[:120]}... ({len(shown)} characters)"
