"""Clients of WebSockets that people use: websockets, wsproto, websocket-client, aiohttp where it is, and Chromium; in clear text and by TLS."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, Server
from test_browser import CHROMIUM_FLAGS
from test_tls_browser import spki

__all__ = ["authority"]

pytestmark = needs_openssl

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
MIB = 1 << 20

APP = """
import asyncio, json

PAGE = b'<!doctype html><title>page</title><link rel="icon" href="data:,">'

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        return await send({"type": "http.response.body", "body": PAGE})
    await receive()
    if scope["path"] == "/refuses":
        return await send({"type": "websocket.close"})
    await send({"type": "websocket.accept", "subprotocol": "chat" if "chat" in scope["subprotocols"] else None})
    if scope["path"] == "/version":
        await send({"type": "websocket.send", "text": f"{scope['http_version']} {scope['scheme']}"})
    if scope["path"] == "/closes":
        return await send({"type": "websocket.close", "code": 4001, "reason": "caf\\u00e9"})
    if scope["path"] == "/cookies":
        cookies = [value.decode() for name, value in scope["headers"] if name == b"cookie"]
        await send({"type": "websocket.send", "text": json.dumps(cookies)})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send"} | {name: message[name] for name in ("text", "bytes") if message.get(name) is not None})
    print("disconnect", message["code"], repr(message.get("reason") or ""), flush=True)
"""


@dataclass(frozen=True)
class Place:
    server: Server
    authority: Authority
    certificate: Path

    @property
    def context(self) -> ssl.SSLContext:
        return self.authority.client()

    def address(self, way: str) -> str:
        return f"wss://localhost:{self.server.ports[0]}" if way == "tls" else f"ws://localhost:{self.server.ports[1]}"

    def tls(self, way: str) -> dict[str, Any]:
        return {"ssl": self.context} if way == "tls" else {}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    (folder / "app.py").write_text(APP)
    pair = authority.issue("localhost", "127.0.0.1")
    server = Server(["app.py", "--listen", "https://127.0.0.1:0", "--listen", "http://127.0.0.1:0", *pair.options], folder, {})
    try:
        yield Place(server, authority, pair.certificate)
        assert server.stop() == 0, server.said
        assert "Traceback" not in server.said and "panicked" not in server.said, server.said
    finally:
        server.kill()


@pytest.fixture(params=["clear", "tls"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


MESSAGES: list[str | bytes] = ["", "text", "caf\u00e9 \U0001f600" * 1000, b"", bytes(range(256)), os.urandom(200_000), "x" * MIB]


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_websockets(place: Place, way: str, compression: str | None) -> None:
    client = pytest.importorskip("websockets.asyncio.client")

    async def talk() -> None:
        options: dict[str, Any] = {"compression": compression, "max_size": None, "proxy": None, **place.tls(way)}
        async with client.connect(f"{place.address(way)}/echo", subprotocols=["other", "chat"], **options) as peer:
            assert peer.subprotocol == "chat"
            assert ("permessage-deflate" in peer.response.headers.get("Sec-WebSocket-Extensions", "")) == (compression is not None)
            for message in MESSAGES:
                await peer.send(message)
                assert await peer.recv() == message
            await peer.send(["in ", "three ", "fragments"])
            assert await peer.recv() == "in three fragments"
            await (await peer.ping(b"is there"))
            await peer.close(4000, "enough")
            # The code comes back (RFC 6455, section 5.5.1), and the reason may.
            assert peer.close_code == 4000 and peer.close_reason in ("", "enough")
        async with client.connect(f"{place.address(way)}/closes", **options) as peer:
            with contextlib.suppress(Exception):
                await peer.recv()
            await peer.wait_closed()
            assert (peer.close_code, peer.close_reason) == (4001, "caf\u00e9")

    start = len(place.server.said)
    asyncio.run(asyncio.wait_for(talk(), PATIENCE))
    place.server.wait_for("disconnect 4000 'enough'\n", start)


def test_websockets_is_refused(place: Place, way: str) -> None:
    # Its client with threads reads and writes a TLS socket at the same time, which loses a request now and then.
    client = pytest.importorskip("websockets.asyncio.client")
    from websockets.exceptions import InvalidStatus

    async def talk() -> int:
        with pytest.raises(InvalidStatus) as caught:
            await client.connect(f"{place.address(way)}/refuses", proxy=None, **place.tls(way))
        return caught.value.response.status_code

    assert asyncio.run(asyncio.wait_for(talk(), PATIENCE)) == 403


def test_a_hundred_clients_of_websockets(place: Place, way: str) -> None:
    """Each says ten messages to its own WebSocket."""
    client = pytest.importorskip("websockets.asyncio.client")

    async def talk(name: int) -> None:
        async with client.connect(f"{place.address(way)}/echo", proxy=None, **place.tls(way)) as peer:
            for number in range(10):
                await peer.send(f"{name} {number}")
            assert [await peer.recv() for _ in range(10)] == [f"{name} {number}" for number in range(10)]

    async def all_of_them() -> None:
        await asyncio.gather(*map(talk, range(100)))

    asyncio.run(asyncio.wait_for(all_of_them(), PATIENCE))


def test_wsproto(place: Place, way: str) -> None:
    wsproto = pytest.importorskip("wsproto")
    from wsproto import events
    from wsproto.extensions import PerMessageDeflate

    with socket.create_connection(("127.0.0.1", place.server.ports[way == "clear"]), PATIENCE) as plain:
        peer = place.context.wrap_socket(plain, server_hostname="localhost") if way == "tls" else plain
        machine = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        peer.sendall(machine.send(events.Request(host="localhost", target="/echo", subprotocols=["chat"], extensions=[PerMessageDeflate()])))
        came: list[Any] = []
        texts: list[str] = []
        ours = ["text", "caf\u00e9" * 10_000, "last"]
        while not any(isinstance(event, events.CloseConnection) for event in came):
            machine.receive_data(peer.recv(65536) or None)
            for event in machine.events():
                came.append(event)
                match event:
                    case events.AcceptConnection():
                        assert event.subprotocol == "chat" and event.extensions
                        peer.sendall(b"".join(machine.send(events.TextMessage(data=message)) for message in ours))
                        peer.sendall(machine.send(events.Ping(payload=b"is there")))
                    case events.TextMessage():
                        texts.append(event.data)
                        if event.message_finished and event.data.endswith("last"):
                            peer.sendall(machine.send(events.CloseConnection(code=4000, reason="enough")))
        assert "".join(texts) == "".join(ours)
        assert any(isinstance(event, events.Pong) and event.payload == b"is there" for event in came)
        assert came[-1].code == 4000
        assert peer.recv(1) == b"", "the server ends the connection"


def test_websocket_client(place: Place, way: str) -> None:
    websocket = pytest.importorskip("websocket")
    options = {"sslopt": {"ca_certs": str(place.authority.file)}} if way == "tls" else {}
    peer = websocket.create_connection(f"{place.address(way)}/echo", subprotocols=["chat"], timeout=PATIENCE, **options)
    assert peer.getsubprotocol() == "chat"
    for message in MESSAGES:
        if isinstance(message, str):
            peer.send(message)
        else:
            peer.send_binary(message)
        assert peer.recv() == message
    peer.close()
    with pytest.raises(websocket.WebSocketBadStatusException):
        websocket.create_connection(f"{place.address(way)}/refuses", timeout=PATIENCE, **options)


def test_aiohttp(place: Place, way: str) -> None:
    aiohttp = pytest.importorskip("aiohttp")

    async def talk() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{place.address(way)}/echo", protocols=["chat"], compress=15, max_msg_size=0, **place.tls(way)) as peer:
                assert peer.protocol == "chat" and peer.compress
                for message in MESSAGES:
                    await (peer.send_str(message) if isinstance(message, str) else peer.send_bytes(message))
                    assert (await peer.receive()).data == message
                await peer.close(code=4000)
                assert peer.close_code == 4000

    asyncio.run(asyncio.wait_for(talk(), PATIENCE))


# Browsers

SCRIPT = """async address => {
  const told = {};
  const open = (path, ...rest) => new Promise((done, failed) => {
    const socket = new WebSocket(address + path, ...rest);
    socket.binaryType = "arraybuffer";
    socket.messages = [];
    socket.closed = new Promise(closed => socket.onclose = event => {
      closed([event.code, event.reason, event.wasClean]);
      socket.waiting && socket.waiting(null);
    });
    socket.onmessage = event => socket.waiting ? socket.waiting(event.data) : socket.messages.push(event.data);
    socket.next = () => new Promise(came => socket.messages.length ? came(socket.messages.shift()) : socket.waiting = data => { socket.waiting = null; came(data); });
    socket.onopen = () => done(socket);
    socket.onerror = () => { socket.failed = true; done(socket); };
  });
  const echo = await open("/echo", ["other", "chat"]);
  told.protocol = echo.protocol;
  told.extensions = echo.extensions;
  told.echoes = [];
  for (const text of ["", "text", "caf\\u00e9 \\u{1f600}", "x".repeat(1 << 20)]) {
    echo.send(text);
    told.echoes.push(await Promise.race([echo.next(), echo.closed]) === text);
  }
  for (const size of [0, 1, 70000]) {
    const sent = Uint8Array.from({length: size}, (_, at) => at * 7);
    echo.send(sent);
    const came = new Uint8Array(await Promise.race([echo.next(), echo.closed]));
    told.echoes.push(came.length === size && came.every((byte, at) => byte === sent[at]));
  }
  echo.send(new Blob(["a ", "blob"]));
  told.blob = new TextDecoder().decode(await echo.next());
  echo.close(4000, "enough");
  told.ours = await echo.closed;
  told.theirs = await (await open("/closes")).closed;
  const refused = await open("/refuses");
  told.refused = [refused.failed, await refused.closed];
  told.version = await (await open("/version")).next();
  document.cookie = "own=1";
  told.cookies = JSON.parse(await (await open("/cookies")).next());
  const many = await Promise.all([...Array(50).keys()].map(async number => {
    const socket = await open("/echo");
    socket.send(`message of ${number}`);
    return await socket.next() === `message of ${number}`;
  }));
  told.many = many.filter(each => each).length;
  return told;
}"""


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (Debian package chromium; CHROMIUM names another place)")
@pytest.mark.parametrize("way", ["clear", "tls", "tls without HTTP/2"] if "MAITRED_LONG" in os.environ else ["clear", "tls"])
def test_chromium(place: Place, way: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    address = place.address(way.partition(" ")[0])
    flags = [f"--ignore-certificate-errors-spki-list={spki(place.certificate)}", *(["--disable-http2"] if "without" in way else [])]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*CHROMIUM_FLAGS, *flags])
        try:
            page = browser.new_context().new_page()
            page.goto(address.replace("ws", "http", 1) + "/")
            told = page.evaluate(SCRIPT, address)
        finally:
            browser.close()
    assert told["protocol"] == "chat" and re.match("permessage-deflate", told["extensions"]), told
    assert told["echoes"] == [True] * 7 and told["blob"] == "a blob", told
    assert told["ours"] in ([4000, "", True], [4000, "enough", True]) and told["theirs"] == [4001, "caf\u00e9", True], told
    assert told["refused"] == [True, [1006, "", False]], told
    assert told["cookies"] == ["own=1"] and told["many"] == 50, told
    # A browser opens it on the connection of the page where that is HTTP/2.
    expected = {"clear": "1.1 ws", "tls": "2 wss", "tls without HTTP/2": "1.1 wss"}[way]
    assert told["version"] == expected, json.dumps(told)
