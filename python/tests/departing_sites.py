"""Applications that count what they begin and what they clean up, one for each framework. ``/counts`` has the counts, of whatever framework.

A page that is called ``stream`` counts as ``stream begun``, and each of its clean-ups under a name that begins with ``stream`` too.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Around an application, so that no framework is between who asks and the counts.
COMMON = """
import asyncio, collections, contextlib, gc, json, pathlib, tempfile
COUNTS = collections.Counter()
BIG = b"x" * 20_000_000
FILE = pathlib.Path(tempfile.mkdtemp()) / "big"
FILE.write_bytes(BIG)

class Counting:
    def __init__(self, inner):
        self.inner = inner

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != "/counts":
            return await self.inner(scope, receive, send)
        # A generator that its framework does not close is closed when it is collected.
        gc.collect()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": json.dumps(COUNTS).encode()})

@contextlib.contextmanager
def counted(page, what):
    try:
        yield
    finally:
        COUNTS[f"{page} {what}"] += 1

async def blocks(page="stream"):
    with counted(page, "generator"):
        while True:
            yield b"x" * 30000
            await asyncio.sleep(0.001)

def blocks_of_a_thread(page="threaded"):
    import time
    with counted(page, "generator"):
        while True:
            yield b"x" * 30000
            time.sleep(0.001)
"""

DJANGO_PAGES = """
import django
from django.conf import settings
settings.configure(SECRET_KEY="for tests", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=[__name__ + ".Ends"])
django.setup()
from django.core.asgi import get_asgi_application
from django.core.signals import request_finished, request_started
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.urls import path
from contextvars import ContextVar

PAGE = ContextVar("page")

class Ends:
    sync_capable, async_capable = False, True

    def __new__(cls, get_response):
        async def middleware(request):
            with counted(request.path[1:], "middleware"):
                return await get_response(request)
        from asgiref.sync import markcoroutinefunction
        return markcoroutinefunction(middleware)

def closing(base, page):
    class Closing(base):
        def close(self):
            COUNTS[f"{page} close"] += 1
            super().close()
    return Closing

def view(function):
    async def counting(request):
        COUNTS[f"{function.__name__} begun"] += 1
        return await function(request)
    return path(function.__name__, counting)

@view
async def whole(request):
    return closing(HttpResponse, "whole")(BIG)

@view
async def file(request):
    return closing(FileResponse, "file")(FILE.open("rb"))

@view
async def stream(request):
    return closing(StreamingHttpResponse, "stream")(blocks())

@view
async def poll(request):
    with counted("poll", "view"):
        await asyncio.Event().wait()

urlpatterns = [whole, file, stream, poll]
served = get_asgi_application()

async def named(scope, receive, send):
    PAGE.set(scope["path"][1:])
    await served(scope, receive, send)

def finished(**_):
    COUNTS[f"{PAGE.get()} finished"] += 1

request_finished.connect(finished, weak=False)
"""

DJANGO = COMMON + DJANGO_PAGES + """
app = Counting(named)
"""

CHANNELS = COMMON + DJANGO_PAGES.replace('MIDDLEWARE=', 'CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}, MIDDLEWARE=') + """
from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncWebsocketConsumer, WebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

class Streams(AsyncHttpConsumer):
    async def handle(self, body):
        COUNTS["consumer begun"] += 1
        await self.channel_layer.group_add("room", self.channel_name)
        await self.send_headers(headers=[(b"content-type", b"text/plain")])
        # As its documentation has it: the consumer goes on when handle() has returned, until the client leaves.
        self.pushing = asyncio.ensure_future(self.push())

    async def http_request(self, message):
        if "body" in message:
            self.body.append(message["body"])
        if not message.get("more_body"):
            await self.handle(b"".join(self.body))

    async def push(self):
        with counted("consumer", "push"):
            while True:
                await self.send_body(b"x" * 30000, more_body=True)
                await asyncio.sleep(0.001)

    async def disconnect(self):
        self.pushing.cancel()
        COUNTS["consumer disconnect"] += 1
        await self.channel_layer.group_discard("room", self.channel_name)

class Socket(AsyncWebsocketConsumer):
    async def connect(self):
        COUNTS["socket begun"] += 1
        await self.channel_layer.group_add("room", self.channel_name)
        await self.accept()

    async def disconnect(self, code):
        await self.channel_layer.group_discard("room", self.channel_name)
        COUNTS["socket disconnect"] += 1

class SocketOfThreads(WebsocketConsumer):
    def connect(self):
        COUNTS["sync-socket begun"] += 1
        self.accept()

    def disconnect(self, code):
        COUNTS["sync-socket disconnect"] += 1

class Pushes(AsyncWebsocketConsumer):
    async def connect(self):
        COUNTS["pushing begun"] += 1
        await self.accept()
        self.pushing = asyncio.ensure_future(self.push())

    async def push(self):
        with counted("pushing", "push"):
            while True:
                await self.send(bytes_data=b"x" * 3000)
                await asyncio.sleep(0.001)

    async def disconnect(self, code):
        self.pushing.cancel()
        COUNTS["pushing disconnect"] += 1

app = Counting(ProtocolTypeRouter({
    "http": URLRouter([re_path(r"^consumer$", Streams.as_asgi()), re_path(r"", named)]),
    "websocket": URLRouter([path("socket", Socket.as_asgi()), path("sync-socket", SocketOfThreads.as_asgi()), path("pushing", Pushes.as_asgi())]),
}))
"""

#: Of Starlette and FastAPI. A middleware of the plain kind is around them.
STARLETTE_PAGES = """
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

class Ends:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        with counted(scope.get("path", "lifespan")[1:], "middleware"):
            await self.app(scope, receive, send)

class Base(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        page = request.url.path[1:]
        with counted(page, "base"):
            return await call_next(request)

async def whole(request):
    COUNTS["whole begun"] += 1
    return Response(BIG)

async def file(request):
    COUNTS["file begun"] += 1
    return FileResponse(FILE)

async def stream(request):
    COUNTS["stream begun"] += 1
    return StreamingResponse(blocks())

async def threaded(request):
    COUNTS["threaded begun"] += 1
    return StreamingResponse(blocks_of_a_thread())

async def poll(request):
    COUNTS["poll begun"] += 1
    with counted("poll", "view"):
        while not await request.is_disconnected():
            await asyncio.sleep(0.001)
    return Response()

async def listens(request):
    COUNTS["listens begun"] += 1
    with counted("listens", "view"):
        while (await request.receive())["type"] != "http.disconnect":
            pass
    return Response()

async def socket(websocket):
    await websocket.accept()
    COUNTS["socket begun"] += 1
    try:
        while True:
            await websocket.receive_text()
    except WebSocketDisconnect:
        COUNTS["socket left"] += 1

async def pushing(websocket):
    await websocket.accept()
    COUNTS["pushing begun"] += 1
    with counted("pushing", "handler"):
        try:
            while True:
                await websocket.send_bytes(b"x" * 3000)
        except WebSocketDisconnect:
            COUNTS["pushing left"] += 1
"""

STARLETTE = COMMON + STARLETTE_PAGES + """
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route, WebSocketRoute

app = Counting(Starlette(
    routes=[*(Route("/" + page.__name__, page) for page in (whole, file, stream, threaded, poll, listens)),
            *(WebSocketRoute("/" + page.__name__, page) for page in (socket, pushing))],
    middleware=[Middleware(Ends), MIDDLEWARE]))
"""

FASTAPI = COMMON + STARLETTE_PAGES + """
from typing import Annotated
from fastapi import Depends, FastAPI, Request, WebSocket

# A dependency with what it gives back, as its documentation has a session of a database.
async def session(request: Request):
    with counted(request.url.path[1:], "dependency"):
        yield

def session_of_a_thread(request: Request):
    with counted(request.url.path[1:], "dependency of a thread"):
        yield

async def session_of_a_socket(websocket: WebSocket):
    with counted(websocket.url.path[1:], "dependency"):
        yield

app = FastAPI()
app.add_middleware(Ends)
ADD

def page(function):
    async def view(request: Request, one: Annotated[None, Depends(session)], other: Annotated[None, Depends(session_of_a_thread)]):
        return await function(request)
    app.get("/" + function.__name__)(view)

def socket_page(function):
    async def view(websocket: WebSocket, one: Annotated[None, Depends(session_of_a_socket)]):
        await function(websocket)
    app.websocket("/" + function.__name__)(view)

for each in (whole, file, stream, threaded, poll, listens):
    page(each)
for each in (socket, pushing):
    socket_page(each)
app = Counting(app)
"""

LITESTAR = COMMON + """
from litestar import Litestar, MediaType, Request, WebSocket, get, websocket
from litestar.di import Provide
from litestar.exceptions import WebSocketDisconnect
from litestar.response import File, Response, Stream

async def session(request: Request):
    with counted(request.url.path[1:], "dependency"):
        yield 1

async def after(request: Request) -> None:
    COUNTS[f"{request.url.path[1:]} after"] += 1

def page(name):
    return get("/" + name, after_response=after, dependencies={"number": Provide(session)})

@page("whole")
async def whole(number: int) -> Response[bytes]:
    COUNTS["whole begun"] += 1
    return Response(BIG, media_type="application/octet-stream")

@page("file")
async def file(number: int) -> File:
    COUNTS["file begun"] += 1
    return File(FILE)

@page("stream")
async def stream(number: int) -> Stream:
    COUNTS["stream begun"] += 1
    return Stream(blocks())

@page("listens")
async def listens(request: Request, number: int) -> str:
    COUNTS["listens begun"] += 1
    with counted("listens", "view"):
        while (await request.receive())["type"] != "http.disconnect":
            pass
    return ""

@websocket("/socket")
async def socket(socket: WebSocket) -> None:
    await socket.accept()
    COUNTS["socket begun"] += 1
    try:
        while True:
            await socket.receive_text()
    except WebSocketDisconnect:
        COUNTS["socket left"] += 1

def ends(app):
    async def middleware(scope, receive, send):
        with counted(scope.get("path", "lifespan")[1:], "middleware"):
            await app(scope, receive, send)
    return middleware

app = Counting(Litestar([whole, file, stream, listens, socket], middleware=[ends]))
"""

QUART = COMMON + """
from quart import Quart, Response, request, send_file, websocket

quart = Quart(__name__)
quart.config["RESPONSE_TIMEOUT"] = None

@quart.teardown_request
async def teardown(error):
    if request:
        COUNTS[f"{request.path[1:]} teardown"] += 1

@quart.teardown_websocket
async def teardown_socket(error):
    COUNTS[f"{websocket.path[1:]} teardown"] += 1

@quart.get("/whole")
async def whole():
    COUNTS["whole begun"] += 1
    return BIG

@quart.get("/file")
async def file():
    COUNTS["file begun"] += 1
    return await send_file(FILE)

@quart.get("/stream")
async def stream():
    COUNTS["stream begun"] += 1
    return blocks(), 200

@quart.get("/poll")
async def poll():
    COUNTS["poll begun"] += 1
    with counted("poll", "view"):
        await asyncio.Event().wait()

@quart.websocket("/socket")
async def socket():
    COUNTS["socket begun"] += 1
    with counted("socket", "view"):
        while True:
            await websocket.receive()

@quart.websocket("/pushing")
async def pushing():
    COUNTS["pushing begun"] += 1
    with counted("pushing", "view"):
        while True:
            await websocket.send(b"x" * 3000)
            await asyncio.sleep(0.001)

async def ends(scope, receive, send):
    with counted(scope.get("path", "lifespan")[1:], "middleware"):
        await quart(scope, receive, send)

app = Counting(ends)
"""


@dataclass(frozen=True)
class Departing:
    """An application, the modules it needs, and the clean-ups of each of its pages."""

    source: str
    needs: tuple[str, ...]
    #: Of pages that send until their client leaves; a client may leave in the middle of each.
    sends: dict[str, tuple[str, ...]]
    #: Of pages that answer nothing until their client leaves.
    waits: dict[str, tuple[str, ...]]
    sockets: dict[str, tuple[str, ...]]


def _with(more: str, pages: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {page: (*names, more) for page, names in pages.items()}


_DJANGO_SENDS = {page: ("close", "finished", "middleware") for page in ("whole", "file")} | {
    "stream": ("close", "finished", "middleware", "generator")
}
_DJANGO_WAITS = {"poll": ("view", "finished", "middleware")}
_SENDS = {"whole": ("middleware",), "file": ("middleware",), "stream": ("middleware", "generator"), "threaded": ("middleware", "generator")}
_WAITS = {"poll": ("view", "middleware"), "listens": ("view", "middleware")}
#: `is_disconnected` is never true below BaseHTTPMiddleware, behind whatever server.
_HEARS = {"listens": _WAITS["listens"]}
_SOCKETS = {"socket": ("left", "middleware"), "pushing": ("left", "handler", "middleware")}

_BASE = ("MIDDLEWARE", "Middleware(Base)")
_PLAIN = ("MIDDLEWARE", "")


def _dependencies(pages: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return _with("dependency of a thread", _with("dependency", pages))


SITES = {
    "django": Departing(DJANGO, ("django",), _DJANGO_SENDS, _DJANGO_WAITS, {}),
    "channels": Departing(
        CHANNELS,
        ("channels",),
        _DJANGO_SENDS | {"consumer": ("disconnect", "push")},
        _DJANGO_WAITS,
        {"socket": ("disconnect",), "sync-socket": ("disconnect",), "pushing": ("disconnect", "push")},
    ),
    "litestar": Departing(
        LITESTAR,
        ("litestar",),
        {page: ("after", "dependency", "middleware") for page in ("whole", "file")}
        | {"stream": ("after", "dependency", "middleware", "generator")},
        {"listens": ("view", "after", "dependency", "middleware")},
        {"socket": ("left", "middleware")},
    ),
    "starlette": Departing(STARLETTE.replace(*_PLAIN), ("starlette",), _SENDS, _WAITS, _SOCKETS),
    "starlette with BaseHTTPMiddleware": Departing(
        STARLETTE.replace(*_BASE), ("starlette",), _with("base", _SENDS), _with("base", _HEARS), _SOCKETS
    ),
    "quart": Departing(
        QUART,
        ("quart",),
        {"whole": ("teardown", "middleware"), "file": ("teardown", "middleware"), "stream": ("teardown", "middleware", "generator")},
        {"poll": ("view", "teardown", "middleware")},
        {"socket": ("view", "teardown", "middleware"), "pushing": ("view", "teardown", "middleware")},
    ),
    "fastapi": Departing(
        FASTAPI.replace("ADD", ""), ("fastapi",), _dependencies(_SENDS), _dependencies(_WAITS), _with("dependency", _SOCKETS)
    ),
    "fastapi with BaseHTTPMiddleware": Departing(
        FASTAPI.replace("ADD", "app.add_middleware(Base)"),
        ("fastapi",),
        _with("base", _dependencies(_SENDS)),
        _with("base", _dependencies(_HEARS)),
        _with("dependency", _SOCKETS),
    ),
}
