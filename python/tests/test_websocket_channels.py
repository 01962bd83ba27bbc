"""Django Channels' chat with its layer in memory, and python-socketio, by WebSocket alone: both unchanged, on both event loops."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import PATIENCE, needs
from sites import DJANGO_MAIN, DJANGO_SETTINGS, Site, asgi_site, prepare_django, token
from websocket_wire import Refused, WebSocket, connect

CHANNELS = """
import json
from pathlib import Path
HERE = Path(__file__).parent
""" + DJANGO_SETTINGS.replace("django.setup()", """
    settings.INSTALLED_APPS.append("channels")
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    django.setup()
""".strip()) + """
from asgiref.sync import async_to_sync
from channels.auth import AuthMiddlewareStack
from channels.generic.websocket import AsyncJsonWebsocketConsumer, AsyncWebsocketConsumer, WebsocketConsumer
from channels.exceptions import DenyConnection
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.contrib import admin
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path, re_path

# The consumer of Channels' tutorial.
class ChatConsumer(AsyncWebsocketConsumer):
    async def connect(self):
        self.room_name = self.scope["url_route"]["kwargs"]["room_name"]
        self.room_group_name = f"chat_{self.room_name}"
        await self.channel_layer.group_add(self.room_group_name, self.channel_name)
        await self.accept()

    async def disconnect(self, close_code):
        await self.channel_layer.group_discard(self.room_group_name, self.channel_name)
        print("left", self.room_name, close_code, flush=True)

    async def receive(self, text_data):
        message = json.loads(text_data)["message"]
        await self.channel_layer.group_send(self.room_group_name, {"type": "chat.message", "message": message})

    async def chat_message(self, event):
        await self.send(text_data=json.dumps({"message": event["message"]}))

# Its synchronous form, whose methods run in threads.
class SyncChatConsumer(WebsocketConsumer):
    def connect(self):
        self.room_group_name = "sync"
        async_to_sync(self.channel_layer.group_add)(self.room_group_name, self.channel_name)
        self.accept("chat" if "chat" in self.scope["subprotocols"] else None)

    def disconnect(self, close_code):
        async_to_sync(self.channel_layer.group_discard)(self.room_group_name, self.channel_name)

    def receive(self, text_data=None, bytes_data=None):
        if bytes_data is not None:
            return self.send(bytes_data=bytes_data[::-1])
        async_to_sync(self.channel_layer.group_send)(self.room_group_name, {"type": "chat.message", "message": text_data})

    def chat_message(self, event):
        self.send(text_data=event["message"])

class Who(AsyncJsonWebsocketConsumer):
    async def connect(self):
        if self.scope["user"].is_anonymous:
            raise DenyConnection
        await self.accept()
        await self.send_json({"user": self.scope["user"].get_username()})
        await self.close(4000)

websocket_urlpatterns = [
    re_path(r"ws/chat/(?P<room_name>\\w+)/$", ChatConsumer.as_asgi()),
    path("ws/sync/", SyncChatConsumer.as_asgi()),
    path("ws/who/", Who.as_asgi()),
]

urlpatterns = [path("admin/", admin.site.urls), path("hello", lambda request: HttpResponse("hello"))]
app = ProtocolTypeRouter({
    "http": get_asgi_application(),
    "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
})
""" + DJANGO_MAIN


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("channels")
    folder = tmp_path_factory.mktemp("channels")
    prepare_django(folder, CHANNELS)
    yield from asgi_site(folder, "pages", CHANNELS, loop)


def opened(site: Site, path: str, *lines: str, **arguments: Any) -> WebSocket:
    return connect(site.server.port, path, f"Origin: {site.url}", *lines, **arguments)


def test_channels_chat(channels: Site) -> None:
    with opened(channels, "/ws/chat/lobby/") as one, opened(channels, "/ws/chat/lobby/") as two, opened(channels, "/ws/chat/other/") as other:
        one.say(json.dumps({"message": "hello"}))
        assert json.loads(one.message()) == json.loads(two.message()) == {"message": "hello"}
        other.say(json.dumps({"message": "in another room"}))
        assert json.loads(other.message()) == {"message": "in another room"}
        start = len(channels.server.said)
        assert one.close(1001) == (1001, "")
        channels.server.wait_for("left lobby 1001\n", start)
        for number in range(50):
            two.say(json.dumps({"message": f"number {number}"}))
        assert [json.loads(two.message())["message"] for _ in range(50)] == [f"number {number}" for number in range(50)]


def test_channels_in_threads(channels: Site) -> None:
    with opened(channels, "/ws/sync/", subprotocols=["chat"]) as one, opened(channels, "/ws/sync/") as two:
        assert one.subprotocol == "chat"
        two.say("hello")
        assert one.message() == two.message() == "hello"
        assert one.echo(b"bytes") == b"setyb"
        assert one.close() == (1000, "")
        assert two.echo("again") == "again"


def test_channels_origins_and_users(channels: Site) -> None:
    with pytest.raises(Refused) as caught:
        connect(channels.server.port, "/ws/chat/lobby/", "Origin: http://elsewhere.example")
    assert caught.value.head.status == 403
    with pytest.raises(Refused) as caught:
        opened(channels, "/ws/who/")
    assert caught.value.head.status == 403
    page = channels.client.get("/admin/login/").text
    form = {"username": "root", "password": "secret", "csrfmiddlewaretoken": token(page), "next": "/admin/"}
    assert channels.client.post("/admin/login/", data=form, headers={"origin": channels.url}).status_code == 302
    cookies = "; ".join(f"{name}={value}" for name, value in channels.client.cookies.items())
    with opened(channels, "/ws/who/", f"Cookie: {cookies}") as peer:
        assert json.loads(peer.message()) == {"user": "root"}
        assert peer.closed() == (4000, "")
    assert channels.client.get("/hello").text == "hello"


def test_channels_without_a_route(channels: Site) -> None:
    with pytest.raises(Refused) as caught:
        opened(channels, "/ws/nowhere/")
    assert caught.value.head.status == 500
    channels.server.wait_for("No route found for path 'ws/nowhere/'")


SOCKETIO = """
import asyncio
import socketio

sio = socketio.AsyncServer(async_mode="asgi", cors_allowed_origins="*")

async def http(scope, receive, send):
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})

app = socketio.ASGIApp(sio, http)

@sio.event
async def connect(sid, environ, auth):
    if auth and auth.get("token") == "wrong":
        raise socketio.exceptions.ConnectionRefusedError("not you")
    await sio.save_session(sid, {"name": (auth or {}).get("name")})

@sio.event
async def disconnect(sid, reason):
    print("left", reason, flush=True)

@sio.event
async def chat(sid, data):
    session = await sio.get_session(sid)
    await sio.emit("chat", [session["name"], data], room="lobby")
    return "sent"

@sio.event
async def enter(sid, room):
    await sio.enter_room(sid, room)
    return room

@sio.event
async def reverse(sid, data):
    return data[::-1]

@sio.event
async def asks(sid):
    # The other way round: the server asks the client.
    sio.start_background_task(ask_back, sid)

async def ask_back(sid):
    await sio.emit("answered", await sio.call("asked", 7, to=sid), to=sid)
"""


@pytest.fixture(scope="module")
def server_of_socketio(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    needs("socketio")
    needs("websocket")
    yield from asgi_site(tmp_path_factory.mktemp("socketio"), "site_socketio", SOCKETIO, loop)


class Talker:
    """A client of python-socketio that never polls."""

    def __init__(self, site: Site, **auth: str) -> None:
        import socketio

        self.heard: queue.Queue[Any] = queue.Queue()
        # Whoever asks for TLS has a certificate of its own authority.
        self.client = socketio.Client(reconnection=False, ssl_verify=False)
        # The library handles each message in a thread of its own, where they may pass each other. Here the one that reads does.
        trigger = self.client.eio._trigger_event
        self.client.eio._trigger_event = lambda *words, **named: trigger(*words, **{**named, "run_async": False})
        self.client.on("chat", self.heard.put)
        self.client.on("answered", self.heard.put)
        self.client.on("asked", lambda number: number * 6)
        self.client.connect(site.url, auth=auth, transports=["websocket"], wait_timeout=PATIENCE)

    def call(self, event: str, *data: Any) -> Any:
        return self.client.call(event, *data, timeout=PATIENCE)

    def next(self) -> Any:
        return self.heard.get(timeout=PATIENCE)

    def __enter__(self) -> Talker:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()


def test_socketio(server_of_socketio: Site) -> None:
    with Talker(server_of_socketio, name="ann") as ann, Talker(server_of_socketio, name="bob") as bob:
        assert ann.client.transport() == "websocket"
        assert [ann.call("enter", "lobby"), bob.call("enter", "lobby")] == ["lobby", "lobby"]
        assert ann.call("chat", "hello") == "sent"
        assert ann.next() == bob.next() == ["ann", "hello"]
        for number in range(50):
            bob.client.emit("chat", {"number": number})
        assert [ann.next() for _ in range(50)] == [["bob", {"number": number}] for number in range(50)]
        binary = bytes(range(256)) * 300
        assert bob.call("reverse", binary) == binary[::-1]
        assert bob.call("reverse", "x" * 200_000) == "x" * 200_000
        ann.client.emit("asks")
        assert ann.next() == 42
        start = len(server_of_socketio.server.said)
    server_of_socketio.server.wait_for(r"(?s)left (?:client disconnect|transport close)\n.*left (?:client disconnect|transport close)\n", start)
    assert server_of_socketio.client.get("/").text == "hello"


def test_socketio_refuses(server_of_socketio: Site) -> None:
    from socketio.exceptions import ConnectionError

    with pytest.raises(ConnectionError):
        Talker(server_of_socketio, token="wrong")
