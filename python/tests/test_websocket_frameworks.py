"""WebSockets of frameworks as their documentations write them: Starlette, FastAPI, Litestar, Quart; on both event loops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import SERVER, needs
from sites import RAW_COMMON, Site, asgi_site
from websocket_wire import Head, Refused, WebSocket, connect


def opened(site: Site, path: str, *lines: str, **arguments: Any) -> WebSocket:
    return connect(site.server.port, path, *lines, **arguments)


def refusal(site: Site, path: str, *lines: str) -> Head:
    with pytest.raises(Refused) as caught:
        opened(site, path, *lines)
    return caught.value.head


def heard(peer: WebSocket) -> Any:
    """JSON."""
    return json.loads(peer.message())


STARLETTE = RAW_COMMON.partition("routes = {}")[0] + """
from starlette.applications import Starlette
from starlette.endpoints import WebSocketEndpoint
from starlette.exceptions import WebSocketException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect

class Echo(WebSocketEndpoint):
    encoding = "text"

    async def on_connect(self, websocket):
        await websocket.accept("chat" if "chat" in websocket.scope["subprotocols"] else None)

    async def on_receive(self, websocket, data):
        await websocket.send_text(f"Message text was: {data}")

    async def on_disconnect(self, websocket, close_code):
        print("left with", close_code, flush=True)

class Json(Echo):
    encoding = "json"

    async def on_receive(self, websocket, data):
        await websocket.send_json({"was": data})

async def iterates(websocket):
    await websocket.accept()
    async for message in websocket.iter_bytes():
        await websocket.send_bytes(message[::-1])
    print("iterated", flush=True)

async def shows(websocket):
    await websocket.accept(headers=[(b"x-own", b"1")])
    url = str(websocket.url_for("shows", name="other"))
    await websocket.send_json([websocket.path_params["name"], dict(websocket.query_params), websocket.cookies, websocket.headers["x-sent"], url])
    await websocket.close(1001, "shown")

async def forbids(websocket):
    raise WebSocketException(1008, "no")

async def denies(websocket):
    await websocket.send_denial_response(JSONResponse({"why": "a test"}, 402))

async def crashes(websocket):
    await websocket.accept()
    raise LookupError("of the application")

async def pushes(websocket):
    # Sends until the peer is gone, which it is told by an exception.
    await websocket.accept()
    try:
        while True:
            await websocket.send_text("x" * 1000)
    except WebSocketDisconnect:
        print("pushed", flush=True)

async def hello(request):
    return PlainTextResponse("hello")

class Named(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)

sockets = [WebSocketRoute("/echo", Echo), WebSocketRoute("/json", Json), WebSocketRoute("/iterates", iterates),
           WebSocketRoute("/shows/{name}", shows, name="shows"), WebSocketRoute("/forbids", forbids), WebSocketRoute("/denies", denies),
           WebSocketRoute("/crashes", crashes), WebSocketRoute("/pushes", pushes)]
app = Starlette(routes=[*sockets, Route("/hello", hello)], middleware=[Middleware(Named)])
"""


@pytest.fixture(scope="module")
def starlette(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("starlette")
    yield from asgi_site(tmp_path_factory.mktemp("starlette"), "site_starlette_ws", STARLETTE, loop)


def test_starlette_endpoints(starlette: Site) -> None:
    with opened(starlette, "/echo", subprotocols=["other", "chat"]) as peer, opened(starlette, "/json", deflate="permessage-deflate") as other:
        assert peer.subprotocol == "chat"
        assert peer.echo("hello") == "Message text was: hello"
        other.say('{"a": [1, 2]}')
        assert heard(other) == {"was": {"a": [1, 2]}}
        start = len(starlette.server.said)
        assert peer.close(4000) == (4000, "")
        starlette.server.wait_for("left with 4000\n", start)
        peer = other
        # Bytes for an endpoint of text: Starlette closes so itself.
        peer.say(b"no JSON")
        assert peer.closed()[0] in {1003, 1011}


def test_starlette_iterates_over_messages(starlette: Site) -> None:
    with opened(starlette, "/iterates") as peer:
        for message in (b"abc", b"", bytes(range(256)) * 1000):
            assert peer.echo(message) == message[::-1]
        assert peer.close() == (1000, "")
    starlette.server.wait_for("iterated\n")


def test_starlette_knows_the_request(starlette: Site) -> None:
    with opened(starlette, "/shows/caf%C3%A9?a=b", "Cookie: c=d", "X-Sent: e") as peer:
        assert peer.head.field("x-own") == "1"
        name, query, cookies, sent, url = heard(peer)
        assert (name, query, cookies, sent) == ("caf\u00e9", {"a": "b"}, {"c": "d"}, "e")
        assert url == f"{starlette.url.replace('http', 'ws', 1).replace('127.0.0.1', 'localhost').rpartition(':')[0]}/shows/other"
        assert peer.closed() == (1001, "shown")


def test_starlette_refuses(starlette: Site) -> None:
    assert refusal(starlette, "/forbids").status == 403
    assert refusal(starlette, "/nowhere").status == 403
    head = refusal(starlette, "/denies")
    assert (head.status, head.field("content-type")) == (402, "application/json") and json.loads(head.body) == {"why": "a test"}
    assert starlette.client.get("/hello").text == "hello"


@pytest.mark.skipif(SERVER == "uvicorn", reason="uvicorn does not close with 1011, and its send says nothing of a peer that is gone")
def test_starlette_fails_and_pushes(starlette: Site) -> None:
    start = len(starlette.server.said)
    with opened(starlette, "/crashes") as peer:
        assert peer.closed()[0] == 1011
    starlette.server.wait_for("LookupError: of the application\n", start)
    with opened(starlette, "/pushes") as peer:
        assert peer.message() == "x" * 1000
        peer.pipe.abort()
    starlette.server.wait_for("pushed\n", start)


# The chat of its documentation, and its WebSockets with dependencies.
FASTAPI = """
from typing import Annotated
from fastapi import Cookie, Depends, FastAPI, Query, WebSocket, WebSocketDisconnect, WebSocketException, status

app = FastAPI()

class ConnectionManager:
    def __init__(self):
        self.active_connections = []

    async def connect(self, websocket: WebSocket):
        await websocket.accept()
        self.active_connections.append(websocket)

    def disconnect(self, websocket: WebSocket):
        self.active_connections.remove(websocket)

    async def send_personal_message(self, message: str, websocket: WebSocket):
        await websocket.send_text(message)

    async def broadcast(self, message: str):
        for connection in self.active_connections:
            await connection.send_text(message)

manager = ConnectionManager()

@app.websocket("/ws/{client_id}")
async def websocket_endpoint(websocket: WebSocket, client_id: int):
    await manager.connect(websocket)
    try:
        while True:
            data = await websocket.receive_text()
            await manager.send_personal_message(f"You wrote: {data}", websocket)
            await manager.broadcast(f"Client #{client_id} says: {data}")
    except WebSocketDisconnect:
        manager.disconnect(websocket)
        await manager.broadcast(f"Client #{client_id} left the chat")

async def get_cookie_or_token(
    websocket: WebSocket, session: Annotated[str | None, Cookie()] = None, token: Annotated[str | None, Query()] = None
):
    if session is None and token is None:
        raise WebSocketException(code=status.WS_1008_POLICY_VIOLATION)
    return session or token

@app.websocket("/items/{item_id}/ws")
async def items(*, websocket: WebSocket, item_id: str, q: int | None = None, cookie_or_token: Annotated[str, Depends(get_cookie_or_token)]):
    await websocket.accept()
    while True:
        data = await websocket.receive_text()
        await websocket.send_text(f"Session cookie or query token value is: {cookie_or_token}")
        if q is not None:
            await websocket.send_text(f"Query parameter q is: {q}")
        await websocket.send_text(f"Message text was: {data}, for item ID: {item_id}")

@app.get("/hello")
def hello():
    return "hello"
"""


@pytest.fixture(scope="module")
def fastapi(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("fastapi")
    yield from asgi_site(tmp_path_factory.mktemp("fastapi"), "site_fastapi_ws", FASTAPI, loop)


def test_fastapi_chat(fastapi: Site) -> None:
    with opened(fastapi, "/ws/1") as one, opened(fastapi, "/ws/2") as two, opened(fastapi, "/ws/3") as three:
        one.say("hello")
        assert [one.message(), one.message()] == ["You wrote: hello", "Client #1 says: hello"]
        assert two.message() == three.message() == "Client #1 says: hello"
        assert one.close() == (1000, "")
        assert two.message() == three.message() == "Client #1 left the chat"
        two.pipe.abort()
        assert three.message() == "Client #2 left the chat"
        three.say("alone")
        assert [three.message(), three.message()] == ["You wrote: alone", "Client #3 says: alone"]
    assert "Traceback" not in fastapi.server.said, fastapi.server.said


def test_fastapi_dependencies(fastapi: Site) -> None:
    assert refusal(fastapi, "/items/a/ws").status == 403
    assert refusal(fastapi, "/items/a/ws?token=t&q=no-number").status == 403
    assert refusal(fastapi, "/nowhere").status == 403
    with opened(fastapi, "/items/foo/ws?q=7", "Cookie: session=fakesession") as peer:
        peer.say("hi")
        assert [peer.message() for _ in range(3)] == [
            "Session cookie or query token value is: fakesession",
            "Query parameter q is: 7",
            "Message text was: hi, for item ID: foo",
        ]
    assert fastapi.client.get("/hello").json() == "hello"


LITESTAR = """
from collections.abc import AsyncGenerator
from litestar import Litestar, WebSocket, get, websocket, websocket_listener
from litestar.channels import ChannelsPlugin
from litestar.channels.backends.memory import MemoryChannelsBackend
from litestar.datastructures import State
from litestar.exceptions import NotAuthorizedException, WebSocketDisconnect
from litestar.handlers import WebsocketListener, websocket_stream

@websocket_listener("/listener")
async def listener(data: str) -> str:
    return f"heard {data}"

@websocket_listener("/json", receive_mode="text")
async def listener_of_json(data: dict[str, str]) -> dict[str, str]:
    return {"heard": data["said"]}

@websocket_listener("/bytes", receive_mode="binary", send_mode="binary")
async def listener_of_bytes(data: bytes) -> bytes:
    return data[::-1]

class Counting(WebsocketListener):
    path = "/counting/{start:int}"

    async def on_accept(self, socket: WebSocket, start: int) -> None:
        socket.state.count = start

    def on_disconnect(self, socket: WebSocket) -> None:
        print("counted", socket.state.count, flush=True)

    async def on_receive(self, data: str, socket: WebSocket) -> int:
        socket.state.count += 1
        return socket.state.count

@websocket("/raw")
async def raw(socket: WebSocket) -> None:
    await socket.accept(subprotocols="chat")
    try:
        while True:
            await socket.send_json({"was": await socket.receive_json()})
    except WebSocketDisconnect as left:
        print("left", left.code, flush=True)

@websocket_stream("/stream")
async def stream() -> AsyncGenerator[str, None]:
    for number in range(3):
        yield f"part {number}"

@websocket("/forbidden")
async def forbidden(socket: WebSocket) -> None:
    raise NotAuthorizedException("not you")

@get("/publish")
async def publish(channels: ChannelsPlugin) -> str:
    await channels.wait_published({"news": "all of them"}, "room")
    return "published"

@websocket("/room")
async def room(socket: WebSocket, channels: ChannelsPlugin) -> None:
    async with channels.start_subscription(["room"]) as subscriber:
        await socket.accept()
        async with subscriber.run_in_background(socket.send_text):
            try:
                await channels.wait_published({"said": await socket.receive_text()}, "room")
                await socket.receive_text()
            except WebSocketDisconnect:
                print("unsubscribes", flush=True)

plugin = ChannelsPlugin(backend=MemoryChannelsBackend(), channels=["room"])
app = Litestar([listener, listener_of_json, listener_of_bytes, Counting, raw, stream, forbidden, publish, room], plugins=[plugin])
"""


@pytest.fixture(scope="module")
def litestar(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("litestar")
    yield from asgi_site(tmp_path_factory.mktemp("litestar"), "site_litestar_ws", LITESTAR, loop)


def test_litestar_listeners(litestar: Site) -> None:
    with opened(litestar, "/listener") as peer:
        assert [peer.echo("a"), peer.echo("b")] == ["heard a", "heard b"]
    with opened(litestar, "/json") as peer:
        peer.say('{"said": "hello"}')
        assert heard(peer) == {"heard": "hello"}
    with opened(litestar, "/bytes") as peer:
        assert peer.echo(b"abc") == b"cba"
    with opened(litestar, "/counting/7") as peer:
        assert [heard_number(peer) for _ in range(3)] == [8, 9, 10]
        assert peer.close() == (1000, "")
    litestar.server.wait_for("counted 10\n")


def heard_number(peer: WebSocket) -> int:
    return int(peer.echo("count"))


def test_litestar_sockets_and_streams(litestar: Site) -> None:
    with opened(litestar, "/raw", subprotocols=["chat"]) as peer:
        assert peer.subprotocol == "chat"
        peer.say("[1, 2]")
        assert heard(peer) == {"was": [1, 2]}
        assert peer.close(4000) == (4000, "")
    litestar.server.wait_for("left 4000\n")
    with opened(litestar, "/stream") as peer:
        assert [peer.message() for _ in range(3)] == ["part 0", "part 1", "part 2"]
        assert peer.closed()[0] == 1000
    assert refusal(litestar, "/forbidden").status in {401, 403}
    assert refusal(litestar, "/nowhere").status in {403, 404}


def test_litestar_channels(litestar: Site) -> None:
    with opened(litestar, "/room") as one, opened(litestar, "/room") as two:
        assert litestar.client.get("/publish").text == "published"
        assert heard(one) == heard(two) == {"news": "all of them"}
        two.say("hello")
        assert heard(one) == heard(two) == {"said": "hello"}
        start = len(litestar.server.said)
        assert one.close() == (1000, "")
        litestar.server.wait_for("unsubscribes\n", start)


QUART = """
import asyncio
from quart import Quart, websocket

app = Quart(__name__)

waiting = set()

@app.websocket("/ws")
async def ws():
    # Everybody hears what anybody says.
    messages = asyncio.Queue()
    waiting.add(messages)

    async def hear():
        while True:
            message = await websocket.receive()
            for each in waiting:
                await each.put(message)

    task = asyncio.ensure_future(hear())
    await websocket.accept()
    try:
        while True:
            await websocket.send(await messages.get())
    finally:
        task.cancel()
        waiting.remove(messages)
        print("has left", flush=True)

@app.websocket("/accepts")
async def accepts():
    await websocket.accept(headers={"X-Own": "1"}, subprotocol="chat")
    await websocket.send_json({"path": websocket.path, "args": websocket.args["a"]})
    await websocket.close(4000, "enough")

@app.websocket("/refuses")
async def refuses():
    return "not you", 401
"""


@pytest.fixture(scope="module")
def quart(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("quart")
    yield from asgi_site(tmp_path_factory.mktemp("quart"), "site_quart_ws", QUART, loop)


def test_quart(quart: Site) -> None:
    with opened(quart, "/accepts?a=b", subprotocols=["chat"]) as peer:
        assert (peer.subprotocol, peer.head.field("x-own")) == ("chat", "1")
        assert heard(peer) == {"path": "/accepts", "args": "b"}
        assert peer.closed() == (4000, "enough")
    with opened(quart, "/ws") as one, opened(quart, "/ws") as two:
        for message in ("text", b"bytes"):
            one.say(message)
            assert one.message() == two.message() == message
        start = len(quart.server.said)
        assert one.close() == (1000, "")
        quart.server.wait_for("has left\n", start)
    head = refusal(quart, "/refuses")
    assert (head.status, head.body) == (401, b"not you")
