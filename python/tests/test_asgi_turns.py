"""Turns of an event loop: a request that comes takes its turn behind those that were woken before it, and the answers of a turn leave together."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, needs

SOURCE = """
import asyncio, os
os.mkfifo("door")
door = os.open("door", os.O_RDWR)
connections = asyncio.Queue()
connections.put_nowait("the only one")
order = []

async def app(scope, receive, send):
    assert scope["type"] == "http"
    path = scope["path"]
    if path == "/holds":
        await connections.get()
        print("held", flush=True)
    if path in ("/first", "/second"):
        print("wants", path, flush=True)
        held = await connections.get()
        order.append(path)
        connections.put_nowait(held)
    if path == "/gives":
        connections.put_nowait("one more")
        print("at the door", flush=True)
        os.read(door, 1)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": " ".join(order).encode()})
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_new_request_does_not_take_what_another_was_woken_for(
    serve_asgi: Serve, tmp_path: Path, loop: str
) -> None:
    if loop == "uvloop":
        needs("uvloop")
    server = serve_asgi("--loop", loop, source=SOURCE)
    asking = []

    def ask(path: str, said: str) -> None:
        asking.append(threading.Thread(target=server.fetch, args=(path,)))
        asking[-1].start()
        server.wait_for(said)

    late = server.connect()
    late.request("GET", "/")
    assert late.getresponse().read() == b""
    ask("/holds", "held")
    ask("/first", "wants /first")
    ask("/gives", "at the door")
    late.request("GET", "/second")
    with open(tmp_path / "door", "wb", buffering=0) as door:
        door.write(b"x")
    assert late.getresponse().read() == b"/first /second"
    for each in asking:
        each.join(PATIENCE)
    assert server.stop() == 0


ANSWERS = """
import os
os.mkfifo("door")

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"]
    if path == "/door":
        print("at the door", flush=True)
        with open("door", "rb") as door:
            door.read()
    number, size = map(int, scope["query_string"].split(b"-"))
    headers = [(b"content-length", str(size).encode())] if number % 2 else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": number.to_bytes(1, "big") * size})
"""


def test_answers_that_leave_together_are_each_one_s_own(serve_asgi: Serve, tmp_path: Path) -> None:
    """A crowd waits while the loop stands still, so that its answers leave together: small ones and large ones, to those that read and to some
    that have gone or do not read."""
    # On a slow machine it stands still for longer than what is an error otherwise.
    server = serve_asgi("--stuck-after", "0", source=ANSWERS)
    sizes = [0, 1, 300, 5_000, 20_000, 70_000, 3_000_000]
    crowd = [server.connect() for _ in range(50)]
    for around in range(3):
        held = threading.Thread(target=server.fetch, args=("/door?1-1",))
        said = len(server.said)
        held.start()
        server.wait_for("at the door", said)
        asked = [(number, sizes[(number + around) % len(sizes)]) for number in range(len(crowd))]
        for peer, (number, size) in zip(crowd, asked, strict=True):
            peer.request("GET", f"/?{number}-{size}")
        gone = range(around, len(crowd), 9)
        for number in gone:
            crowd[number].close()
        (tmp_path / "door").write_bytes(b"")
        # The test reads the last answers first: a client that reads late holds up no other one.
        for peer, (number, size) in reversed(list(zip(crowd, asked, strict=True))):
            if number not in gone:
                assert peer.getresponse().read() == bytes([number]) * size
        held.join(PATIENCE)
        assert not held.is_alive()
    assert not re.search("Z (warn|error) ", server.said), server.said
