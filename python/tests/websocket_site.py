"""A site of WebSockets whose application does what the query of its path says, and tells what it has seen. Runs on uvicorn, too (sites.py)."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from conftest import SERVER
from sites import RAW_COMMON, Site, asgi_site
from websocket_wire import Head, Refused, WebSocket, connect

SOURCE = RAW_COMMON + """
import ast

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    if scope["type"] == "websocket":
        return await sockets.get(scope["path"], scope_)(scope, receive, send)
    await routes[scope["path"]](scope, receive, send)

async def lifespan(scope, receive, send):
    await receive()
    scope["state"] |= {"shared": [], "plain": "as started"}
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})

sockets = {}

def socket(function):
    sockets["/" + function.__name__] = function
    return function

async def scope_(scope, receive, send):
    kinds = {name: type(value).__name__ for name, value in scope.items()}
    values = {name: list(value) if name == "headers" else value for name, value in scope.items() if name != "state"}
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": repr((kinds, values))})

@socket
async def does(scope, receive, send):
    # Step by step what it is told: messages are sent, "?" before one tells what send has raised, and goes on.
    told = []
    try:
        for step in ast.literal_eval(query(scope)["steps"]):
            if step == "receive":
                message = await receive()
                told.append({name: int(value) if name == "code" else value for name, value in message.items() if value is not None})
            elif step == "say":
                print("does", query(scope)["number"], flush=True)
            elif step == "raise":
                raise ValueError("as told")
            elif step == "gone":
                await gone()
            elif isinstance(step, tuple):
                try:
                    told.append(await send(step[1]))
                except Exception as error:
                    told.append((type(error).__name__, isinstance(error, OSError)))
            else:
                await send(step)
    finally:
        print("did", query(scope)["number"], told, flush=True)

@socket
async def echo(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send"} | {name: message[name] for name in ("text", "bytes") if message.get(name) is not None})

@socket
async def buffers(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    for part in (bytearray(b"an array"), memoryview(b"_a view_"[1:-1]), memoryview(b"s l i c e")[::2]):
        await send({"type": "websocket.send", "bytes": part})

@socket
async def waits(scope, receive, send):
    # Gives up to receive a hundred times, and loses nothing.
    await receive()
    await send({"type": "websocket.accept"})
    for _ in range(100):
        try:
            await asyncio.wait_for(receive(), 0)
        except asyncio.TimeoutError:
            pass
    waiting = asyncio.ensure_future(receive())
    await send({"type": "websocket.send", "text": "waits"})
    await send({"type": "websocket.send", "text": (await waiting)["text"]})

@socket
async def side_by_side(scope, receive, send):
    # Ten tasks send a hundred messages each while another one receives.
    await receive()
    await send({"type": "websocket.accept"})

    async def say(name):
        for number in range(100):
            await send({"type": "websocket.send", "text": f"{name} {number}"})

    waiting = asyncio.ensure_future(receive())
    await asyncio.gather(*map(say, range(10)))
    await send({"type": "websocket.send", "text": (await waiting)["text"]})

@socket
async def state(scope, receive, send):
    found = [scope["state"].get("own"), scope["state"]["plain"], len(scope["state"]["shared"]), scope.get("spoiled"), scope["extensions"].get("spoiled")]
    scope["state"]["own"] = scope["spoiled"] = scope["extensions"]["spoiled"] = True
    scope["state"]["shared"].append(1)
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": json.dumps(found)})

@socket
async def context(scope, receive, send):
    found = VARIABLE.get()
    VARIABLE.set("set")
    await receive()
    await send({"type": "websocket.accept"})
    task = asyncio.current_task()
    await send({"type": "websocket.send", "text": json.dumps([found, VARIABLE.get(), task in asyncio.all_tasks()])})

import contextvars
VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")
"""

ACCEPT: dict[str, Any] = {"type": "websocket.accept"}
CLOSE: dict[str, Any] = {"type": "websocket.close"}
ours = pytest.mark.skipif(SERVER != "maitred", reason="uvicorn's protocols do this one so and the other one otherwise")


def send(**values: Any) -> dict[str, Any]:
    return {"type": "websocket.send", **values}


def tried(message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Sent, and what that raises is told."""
    return "?", message


def does(*steps: Any) -> str:
    return f"/does?number={next(_numbers)}&steps={quote(repr(list(steps)))}"


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    yield from asgi_site(tmp_path_factory.mktemp("site"), "site_sockets", SOURCE, loop)


class Told:
    """What the application tells from now on, for a path that ``does`` makes in this test."""

    def __init__(self, site: Site) -> None:
        self.server, self.start, self._before = site.server, len(site.server.said), next(_numbers)

    def said(self) -> None:
        """It has come to its step "say"."""
        self.server.wait_for(rf"does {self._before + 1}\n", self.start)

    def list(self) -> list[Any]:
        """What it has told of the one path, when it is done with it."""
        told: list[Any] = ast.literal_eval(self.server.wait_for(rf"did {self._before + 1} (\[.*\])\n", self.start)[1])
        return told

    @property
    def log(self) -> str:
        return self.server.said[self.start :]


@pytest.fixture
def told(site: Site) -> Told:
    return Told(site)


def opened(site: Site, path: str, *lines: str, **arguments: Any) -> WebSocket:
    return connect(site.server.port, path, *lines, **arguments)


def refusal(site: Site, path: str, *lines: str) -> Head:
    with pytest.raises(Refused) as caught:
        opened(site, path, *lines)
    return caught.value.head
