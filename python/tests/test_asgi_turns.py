"""A request that comes takes its turn behind those that were woken before it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve

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
        pytest.importorskip("uvloop")
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
