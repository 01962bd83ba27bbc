"""Under which route requests are counted: what the framework knows, what the application says, or what paths show."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for, needs
from crews import until

FLASK = """
from flask import Blueprint, Flask, abort
app = Flask(__name__)
shop = Blueprint("shop", __name__, url_prefix="/shop")

@app.get("/users/<name>")
def user(name):
    return name if name != "nobody" else abort(404)

@shop.get("/<path:where>/items")
def items(where):
    raise RuntimeError(where)

app.register_blueprint(shop)
"""

BOTTLE = """
import bottle
app = bottle.Bottle()

@app.get("/users/<name>")
def user(name):
    return name
"""

DJANGO = """
import maitred.instrument.django
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", LOGGING_CONFIG=None)
import django
django.setup()
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import include, path, re_path

def user(request, name):
    return HttpResponse(name)

inner = [path("<slug:name>/orders", user)]
urlpatterns = [path("users/<str:name>", user), path("shop/", include(inner)), re_path("^old/(?P<name>[a-z]+)$", user)]
app = get_wsgi_application()
asgi = get_asgi_application()
"""

STARLETTE = """
import tempfile
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

async def user(request):
    return PlainTextResponse(request.path_params["name"])

async def named(request):
    request.scope["maitred.route"] = "/search"
    return PlainTextResponse("named")

async def chat(socket):
    await socket.accept()
    await socket.close()

async def passes(request, call_next):
    return await call_next(request)

folder = tempfile.mkdtemp()
open(folder + "/a.css", "w").close()
app = Starlette(
    routes=[
        Route("/users/{name}", user), Route("/find/{name}", named),
        Mount("/{tenant}/api", routes=[Route("/{name:path}/orders", user)]),
        Mount("/files", StaticFiles(directory=folder)), WebSocketRoute("/chat/{room}", chat),
    ],
    middleware=[Middleware(BaseHTTPMiddleware, dispatch=passes)],
)
"""

FASTAPI = """
from fastapi import APIRouter, FastAPI, HTTPException
app = FastAPI()
router = APIRouter(prefix="/shop")
inner = FastAPI()

@app.get("/users/{name}")
async def user(name: str):
    if name == "nobody":
        raise HTTPException(404)
    return name

@router.get("/{name}/orders")
def orders(name: str):
    return name

@inner.get("/things/{name}")
async def thing(name: str):
    return name

app.include_router(router, prefix="/v1")
app.mount("/inner", inner)
"""

LITESTAR = """
from litestar import Litestar, get

@get("/users/{name:str}")
async def user(name: str) -> str:
    return name

app = Litestar([user])
"""

PLAIN = """
def app(environ, start_response):
    if environ["PATH_INFO"].startswith("/named"):
        environ["maitred.route"] = "/search"
    start_response("200 OK", [])
    return [b"plain"]
"""


def stats(server: Server) -> dict[str, Any]:
    command: list[str | Path] = [MAITRED, "ctl", "--pid", str(server.process.pid), "--json", "stats"]
    done = subprocess.run(command, check=True, capture_output=True, env=environment_for({}), timeout=PATIENCE)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def routes(server: Server) -> dict[str, int]:
    """How many requests were counted under which route."""
    return {route["name"]: route["requests"] for route in stats(server)["routes"]}


def counted(server: Server, folder: Path, paths: dict[str, str]) -> None:
    """Each of these paths is counted and logged under that route."""
    for path in paths:
        server.fetch(path)
    expected: dict[str, int] = {}
    for route in paths.values():
        expected[route] = expected.get(route, 0) + 1
    until("all are counted", lambda: sum(routes(server).values()) >= len(paths))
    assert {name: count for name, count in routes(server).items() if name != "other"} == expected
    log = folder / "access.log"
    until("all are logged", lambda: log.exists() and len(log.read_text().splitlines()) >= len(paths))
    logged = [line.split(" ", 1) for line in log.read_text().splitlines()]
    assert {path: route for path, route in logged} == paths


LOG = ("--access-log", "access.log", "--access-log-format", "$path $route")


@pytest.mark.parametrize(
    ("module", "source", "paths"),
    [
        ("flask", FLASK, {
            "/users/ann": "GET /users/<name>", "/users/bob": "GET /users/<name>", "/users/nobody": "GET /users/<name>",
            "/shop/a/b/items": "GET /shop/<path:where>/items",
        }),
        ("bottle", BOTTLE, {"/users/ann": "GET /users/<name>", "/users/bob": "GET /users/<name>"}),
        ("django", DJANGO, {
            "/users/ann": "GET /users/<str:name>", "/users/bob": "GET /users/<str:name>",
            "/shop/ann/orders": "GET /shop/<slug:name>/orders", "/old/ann": "GET /old/(?P<name>[a-z]+)$",
        }),
        ("starlette", STARLETTE, {
            "/users/ann": "GET /users/{name}", "/users/bob": "GET /users/{name}", "/find/x": "GET /search",
            "/acme/api/a/b/orders": "GET /{tenant}/api/{name:path}/orders", "/files/a.css": "GET /files/*",
        }),
        ("fastapi", FASTAPI, {
            "/users/ann": "GET /users/{name}", "/users/nobody": "GET /users/{name}",
            "/v1/shop/ann/orders": "GET /v1/shop/{name}/orders", "/inner/things/x": "GET /inner/things/{name}",
        }),
        ("litestar", LITESTAR, {"/users/ann": "GET /users/{name}", "/users/bob": "GET /users/{name}"}),
        ("json", PLAIN, {"/named/ann": "GET /search", "/named/bob": "GET /search", "/users/ann": "GET /users/ann"}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_the_framework_s_route_names_the_request(
    serve: Serve, module: str, source: str, paths: dict[str, str], tmp_path: Path
) -> None:
    needs(module)
    counted(serve(*LOG, checked=False, source=source), tmp_path, paths)


def test_django_by_asgi(serve: Serve, tmp_path: Path) -> None:
    needs("django")
    server = serve(*LOG, checked=False, source=DJANGO.replace("asgi = ", "app = "))
    counted(server, tmp_path, {"/users/ann": "GET /users/<str:name>", "/shop/ann/orders": "GET /shop/<slug:name>/orders"})


def test_a_mounted_application_has_its_prefix(serve: Serve, tmp_path: Path) -> None:
    needs("flask")
    (tmp_path / "second.py").write_text(FLASK)
    server = serve(*LOG, "--mount", "/inner=second:app", checked=False, source=FLASK)
    counted(server, tmp_path, {"/users/ann": "GET /users/<name>", "/inner/users/ann": "GET /inner/users/<name>"})


def test_many_names_at_one_place_of_a_path_are_one_route(serve: Serve) -> None:
    server = serve(checked=False, source=PLAIN)
    names = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(120)]
    for name in names:
        assert server.fetch(f"/blog/{name}").status == 200
    until("all are counted", lambda: sum(routes(server).values()) >= len(names))
    assert routes(server) == {"GET /blog/*": len(names)}


def test_a_websocket_has_its_route(serve: Serve) -> None:
    needs("starlette")
    client = pytest.importorskip("websockets.sync.client")
    server = serve(*LOG, checked=False, source=STARLETTE)
    for room in ("red", "blue"):
        with client.connect(f"ws://127.0.0.1:{server.port}/chat/{room}") as socket:
            with pytest.raises(Exception, match="1000"):
                socket.recv()
    until("both are counted", lambda: routes(server).get("GET /chat/{room}") == 2)


def test_a_scope_that_the_server_holds_is_given_up(serve: Serve) -> None:
    """Also of requests that never begin a response."""
    server = serve(checked=False, source="""
import gc, weakref
alive = weakref.WeakSet()

class Marker:
    pass

async def app(scope, receive, send):
    if scope["path"] == "/count":
        gc.collect()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(len(alive)).encode()})
        return
    # A cycle through the server's own object.
    scope["own"], scope["marker"] = send, Marker()
    alive.add(scope["marker"])
    if scope["path"] == "/fails":
        raise RuntimeError
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body"})
""")
    for path in ("/fails", "/answers") * 5:
        server.fetch(path)
    assert server.fetch("/count").body == b"0"


def test_the_time_in_the_application_is_divided_by_route(serve: Serve) -> None:
    # One thread: from the second request on its clock is read.
    server = serve("--max-threads", "1", checked=False, source="""
import time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/waits":
        time.sleep(0.05)
    else:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
    start_response("200 OK", [])
    return [b"done"]
""")
    for path in ("/waits", "/computes") * 3:
        assert server.fetch(path).status == 200
    until("all are counted", lambda: sum(routes(server).values()) >= 6)
    rows = {row["name"]: row for row in stats(server)["routes"]}
    computing, waiting = ({name: row[f"{kind}_seconds"] for name, row in rows.items()} for kind in ("computing", "waiting"))
    assert computing["GET /computes"] >= 0.049
    assert waiting["GET /waits"] >= 0.045
    assert computing["GET /waits"] < computing["GET /computes"]
