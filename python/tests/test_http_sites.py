"""Sites that call another service in their requests: Django by requests, FastAPI by httpx, in threads and on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import Answering, answering, ok
from conftest import Server, needs
from sites import Site, site

needs("django")
needs("fastapi")
needs("requests")

DJANGO = """
import os
import maitred.http.requests, requests
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

settings.configure(SECRET_KEY="for tests", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__)
session = requests.Session()
maitred.http.requests.mount(session)
upstream = os.environ["UPSTREAM"]

def text(request):
    return HttpResponse(session.get(upstream, timeout=20).text)

def streamed(request):
    return StreamingHttpResponse(session.get(upstream, stream=True, timeout=20).iter_content(1000))

def late(request):
    try:
        session.post(upstream + "/late", timeout=0.05)
    except requests.Timeout as error:
        return JsonResponse({"error": type(error).__name__}, status=504)

urlpatterns = [path("text", text), path("streamed", streamed), path("late", late)]
app = get_wsgi_application()
"""

FASTAPI = """
import asyncio, os
from contextlib import asynccontextmanager
import httpx, maitred.http.httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

upstream = os.environ["UPSTREAM"]

@asynccontextmanager
async def lifespan(app):
    async with httpx.AsyncClient(transport=maitred.http.httpx.AsyncTransport(), timeout=20) as client:
        yield {"client": client}

app = FastAPI(lifespan=lifespan)
blocking = httpx.Client(transport=maitred.http.httpx.Transport(), timeout=20)

@app.get("/text", response_class=PlainTextResponse)
async def text(request: Request):
    return (await request.state.client.get(upstream)).text

@app.get("/thread", response_class=PlainTextResponse)
def thread():
    return blocking.get(upstream).text

@app.get("/streamed")
async def streamed(request: Request):
    response = await request.state.client.send(httpx.Request("GET", upstream), stream=True)
    async def parts():
        async for part in response.aiter_raw():
            yield part
        await response.aclose()
    return StreamingResponse(parts())

@app.get("/late")
async def late(request: Request):
    try:
        await request.state.client.post(upstream + "/late", timeout=0.05)
    except httpx.TimeoutException as error:
        return JSONResponse({"error": type(error).__name__}, status_code=504)
"""

BODY = bytes(range(97, 123)) * 1000


@pytest.fixture
def upstream() -> Iterator[Answering]:
    def answer(connection: object) -> bytes | None:
        return server.wait(connection) if b"/late " in server.requests[-1] else ok(BODY)  # type: ignore[arg-type, func-returns-value]

    with answering(answer) as server:
        yield server


@pytest.mark.parametrize(("source", "paths"), [(DJANGO, ["/text", "/streamed"]), (FASTAPI, ["/text", "/streamed", "/thread"])], ids=["django", "fastapi"])
def test_a_site_calls_another_service(source: str, paths: list[str], tmp_path: Path, upstream: Answering) -> None:
    (tmp_path / "pages.py").write_text(source)
    for each in site(Server(["pages:app"], tmp_path, {"UPSTREAM": upstream.url})):
        for path in paths:
            response = each.client.get(path)
            assert (response.status_code, response.content) == (200, BODY), path
        requests, connections = len(upstream.requests), upstream.connections
        assert asyncio.run(side_by_side(each)) == [200] * 32
        assert len(upstream.requests) - requests == 32
        # A connection for each at the most; those that end serve others.
        assert upstream.connections - connections <= 32
        # A service that is late is the site's own 504.
        response = each.client.get("/late")
        assert (response.status_code, response.json()) == (504, {"error": "ReadTimeout"})


async def side_by_side(each: Site) -> list[int]:
    async with each.asynchronous() as client:
        return [response.status_code for response in await asyncio.gather(*(client.get("/text") for _ in range(32)))]
