"""ASGI responses without end, made in three ways: `/raw/200`, `/starlette/204`, `/django/304`. `/` is a hello, `/left` counts what was begun and
what was ended, and the tasks that there are."""

import asyncio
import contextlib
import gc
import json

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import StreamingHttpResponse
from django.urls import path as route
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

BLOCK = b"x" * 1000
HELLO = b"Hello, world!"
counts = {"begun": 0, "ended": 0}


@contextlib.contextmanager
def counted():
    counts["begun"] += 1
    try:
        yield
    finally:
        counts["ended"] += 1


async def blocks():
    with counted():
        while True:
            yield BLOCK
            await asyncio.sleep(0)


async def stream(request):
    return StreamingResponse(blocks(), status_code=request.path_params["status"])


async def view(request, status):
    return StreamingHttpResponse(blocks(), status=status)


settings.configure(SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)
django.setup()
urlpatterns = [route("django/<int:status>", view)]
_django = ASGIHandler()
_starlette = Starlette(routes=[Route("/starlette/{status:int}", stream)])


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    kind, _, status = scope["path"][1:].partition("/")
    if kind == "django":
        return await _django(scope, receive, send)
    if kind == "starlette":
        return await _starlette(scope, receive, send)
    if kind == "left":
        # A generator that its framework does not close is closed when it is collected.
        gc.collect()
        await asyncio.sleep(0)
    if not kind or kind == "left":
        body = json.dumps({**counts, "tasks": len(asyncio.all_tasks())}).encode() if kind else HELLO
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        return await send({"type": "http.response.body", "body": body})
    await send({"type": "http.response.start", "status": int(status), "headers": []})
    with counted():
        while True:
            await send({"type": "http.response.body", "body": BLOCK, "more_body": True})
