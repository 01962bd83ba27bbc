"""Starlette over the wire, on both event loops: routes, streams and their ends, files and ranges, sessions, bodies.

A response that is streamed waits in its middle for another request (`/go`); what happens after a response or
without a client is awaited by `/seen/NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import needs
from sites import ASYNC_COMMON, DIGEST, LARGE, Site, asgi_site, streamed

needs("starlette")
needs("itsdangerous")

SOURCE = ASYNC_COMMON + """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import (
    FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse)
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

static = HERE / "static" / "sub"
static.mkdir(parents=True, exist_ok=True)
(static / "a.css").write_text("body {}")
(HERE / "secret.txt").write_text("secret")

async def go(request):
    going.set()
    return Response(status_code=204)

async def seen_name(request):
    return JSONResponse(await seen(request.path_params["name"], int(request.query_params.get("times", 1))))

async def where(request):
    return JSONResponse({
        "id": request.path_params["id"], "inside": request.app.url_path_for("where", id=1),
        "outside": str(request.url_for("where", id=2)), "query": request.query_params.getlist("q"),
        "client": request.client.host, "cookies": request.cookies,
    })

def synchronous(request):
    return PlainTextResponse(threading.current_thread().name)

async def old(request):
    return RedirectResponse(request.url_for("where", id=7))

async def cookies(request):
    response = PlainTextResponse("two")
    response.set_cookie("a", "1")
    response.set_cookie("b", "2", httponly=True)
    return response

async def stream(request):
    return StreamingResponse(rows(), background=BackgroundTask(happen, "streamed"))

async def views(request):
    async def blocks():
        for size in (1, 70_000):
            yield memoryview(bytes(size))
        yield b""
        yield "text \\u00e9"
    return StreamingResponse(blocks())

async def endless_stream(request):
    return StreamingResponse(endless())

async def endless_in_threads(request):
    loop = asyncio.get_running_loop()
    def blocks():
        try:
            while True:
                yield b"x" * 65536
        finally:
            loop.call_soon_threadsafe(happen, "closed in a thread")
    return StreamingResponse(blocks())

async def poll(request):
    happen("polling")
    while not await request.is_disconnected():
        await asyncio.sleep(0.001)
    happen("disconnected")
    return Response()

async def connected(request):
    body = await request.body()
    return JSONResponse([len(body), [await request.is_disconnected() for _ in range(3)]])

async def body(request):
    sizes, sha = [], hashlib.sha256()
    async for part in request.stream():
        sizes.append(len(part))
        sha.update(part)
    return JSONResponse({"size": sum(sizes), "digest": sha.hexdigest(), "last": sizes[-1]})

async def echo(request):
    parts = [part async for part in request.stream()]
    async def blocks():
        for part in parts:
            yield part
    return StreamingResponse(blocks(), media_type=request.headers.get("content-type"))

async def unread(request):
    return PlainTextResponse("not read")

async def cut(request):
    happen("reading")
    try:
        await request.body()
    except ClientDisconnect:
        happen("cut")
        raise
    happen("whole")
    return Response()

async def file(request):
    return FileResponse(HERE / "large.bin")

async def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return PlainTextResponse(str(request.session["count"]))

async def upload(request):
    async with request.form(max_files=2) as form:
        return JSONResponse({"name": form["file"].filename, "digest": digest(await form["file"].read())})

async def background(request):
    async def first():
        await gone()
        happen("background")
    return PlainTextResponse("at once", background=BackgroundTask(first))

async def crash_later(request):
    async def blocks():
        yield b"x" * 1000
        raise ValueError("in the middle")
    return StreamingResponse(blocks())

async def crash_with_length(request):
    async def blocks():
        yield b"x" * 1000
        raise ValueError("before the end")
    return StreamingResponse(blocks(), headers={"content-length": "2000"})

async def crash_in_background(request):
    async def fail():
        raise ValueError("after the response")
    return PlainTextResponse("complete", background=BackgroundTask(fail))

class Things(HTTPEndpoint):
    async def get(self, request):
        return PlainTextResponse("things")

    def delete(self, request):
        raise HTTPException(409, "still in use")

async def on_conflict(request, error):
    return JSONResponse({"error": error.detail}, error.status_code)

class Stamp(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        response = await call_next(request)
        response.headers["x-stamped"] = "yes"
        return response

class Plain:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def stamped(message):
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-plain", b"yes")]
            await send(message)
        await self.app(scope, receive, stamped)

async def websocket(socket):
    await socket.accept()

wrapped = Starlette(
    routes=[Route("/stream", stream), Route("/endless", endless_stream), Route("/echo", echo, methods=["POST"])],
    middleware=[Middleware(Stamp), Middleware(Plain)])

@asynccontextmanager
async def lifespan(app):
    print("lifespan began", flush=True)
    yield
    print("lifespan ended", flush=True)

posts = [body, echo, unread, cut, upload, connected]
gets = [go, synchronous, old, cookies, stream, views, endless_stream, endless_in_threads, poll, file, count,
        background, crash_later, crash_with_length, crash_in_background]
app = Starlette(
    routes=[
        *(Route(f"/{view.__name__}", view) for view in gets),
        *(Route(f"/{view.__name__}", view, methods=["POST"]) for view in posts),
        Route("/seen/{name}", seen_name), Route("/where/{id:int}", where, name="where"), Route("/things", Things),
        Mount("/static", StaticFiles(directory=HERE / "static"), name="static"), Mount("/wrapped", wrapped),
        WebSocketRoute("/ws", websocket),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key="for tests")],
    exception_handlers={409: on_conflict},
    lifespan=lifespan,
)
"""


@pytest.fixture(scope="module")
def starlette(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("starlette")
    yield from asgi_site(folder, "site_starlette", SOURCE, loop, farewell="lifespan ended")


def test_routes(starlette: Site) -> None:
    base = starlette.url
    reply = starlette.json("/where/3?q=%C3%BC&q=b", headers={"cookie": "a=1; b=é".encode()})
    assert reply == {
        "id": 3,
        "inside": "/where/1",
        "outside": f"{base}/where/2",
        "query": ["ü", "b"],
        "client": "127.0.0.1",
        "cookies": {"a": "1", "b": "é".encode().decode("latin-1")},
    }
    moved = starlette.client.get("/old", follow_redirects=True)
    assert (moved.json()["id"], [earlier.status_code for earlier in moved.history]) == (7, [307])
    assert starlette.client.get("/nothing").status_code == 404
    wrong = starlette.client.post("/where/3")
    assert (wrong.status_code, wrong.headers["allow"]) in {(405, "GET, HEAD"), (405, "HEAD, GET")}
    head = starlette.client.head("/where/3")
    assert (head.status_code, head.content, int(head.headers["content-length"]) > 0) == (200, b"", True)
    assert starlette.client.get("/synchronous").text != "MainThread"
    assert starlette.client.get("/ws").status_code == 404


def test_endpoints_and_exceptions(starlette: Site) -> None:
    assert starlette.client.get("/things").text == "things"
    refused = starlette.client.delete("/things")
    assert (refused.status_code, refused.json()) == (409, {"error": "still in use"})
    assert starlette.client.put("/things").status_code == 405


def test_repeated_fields_stay_apart(starlette: Site) -> None:
    cookies = starlette.client.get("/cookies").headers.get_list("set-cookie")
    assert [cookie.split(";")[0] for cookie in cookies] == ["a=1", "b=2"]
    starlette.client.cookies.clear()


def test_streams_arrive_block_by_block(starlette: Site) -> None:
    streamed(starlette.client, "/stream", [b"first\n", b"second\n"])
    assert starlette.json("/seen/streamed") == 1
    assert starlette.client.get("/views").content == bytes(70_001) + "text é".encode()


def test_streams_through_middleware(starlette: Site) -> None:
    streamed(starlette.client, "/wrapped/stream", [b"first\n", b"second\n"])
    reply = starlette.client.post("/wrapped/echo", content=LARGE)
    assert (reply.headers["x-stamped"], reply.headers["x-plain"], reply.content == LARGE) == ("yes", "yes", True)


@pytest.mark.parametrize("path", ["/endless_stream", "/wrapped/endless"])
def test_a_stream_whose_client_leaves_is_closed(starlette: Site, path: str) -> None:
    before = starlette.json("/seen/closed", params={"times": 0})
    for times in range(1, 6):
        starlette.leave(path)
        assert starlette.json("/seen/closed", params={"times": before + times}) == before + times


def test_a_generator_in_threads_whose_client_leaves_is_closed(starlette: Site) -> None:
    starlette.leave("/endless_in_threads")
    assert starlette.json("/seen/closed in a thread") == 1


def test_a_handler_can_ask_whether_its_client_has_left(starlette: Site) -> None:
    with starlette.connection() as peer:
        peer.sendall(b"GET /poll HTTP/1.1\r\nHost: a\r\n\r\n")
        assert starlette.json("/seen/polling") == 1
    assert starlette.json("/seen/disconnected") == 1


def test_a_client_that_waits_has_not_left(starlette: Site) -> None:
    size = 100_000
    assert starlette.json("/connected", "POST", content=bytes(size)) == [size, [False, False, False]]


def test_bodies_are_streams(starlette: Site) -> None:
    assert starlette.json("/body", "POST", content=LARGE) == {"size": len(LARGE), "digest": DIGEST, "last": 0}
    blocks = (LARGE[at : at + 70_000] for at in range(0, len(LARGE), 70_000))
    assert starlette.json("/body", "POST", content=blocks)["digest"] == DIGEST, "chunked"
    assert starlette.json("/body", "POST", content=b"")["size"] == 0
    assert starlette.client.post("/echo", content=LARGE).content == LARGE
    assert starlette.client.post("/unread", content=LARGE).text == "not read"
    assert starlette.client.post("/unread", content=b"small").text == "not read"


def test_a_body_that_is_cut_off_reaches_no_handler_as_whole(starlette: Site) -> None:
    with starlette.connection() as peer:
        peer.sendall(b"POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this")
    # A server may wait for a body before it calls the application at all.
    assert starlette.json("/seen/whole", params={"times": 0}) == 0
    assert starlette.json("/seen/cut", params={"times": 0}) == starlette.json("/seen/reading", params={"times": 0})


def test_uploads(starlette: Site) -> None:
    needs("python_multipart")
    reply = starlette.json("/upload", "POST", files={"file": ("große datei.bin", LARGE)})
    assert reply == {"name": "große datei.bin", "digest": DIGEST}
    assert starlette.client.post("/upload", files=[("file", b"a")] * 3).status_code == 400, "too many"


def test_files_answer_ranges_and_conditions(starlette: Site) -> None:
    whole = starlette.client.get("/file")
    assert (whole.content == LARGE, whole.headers["content-length"]) == (True, str(len(LARGE)))
    part = starlette.client.get("/file", headers={"range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, LARGE[1000:2000])
    assert part.headers["content-range"] == f"bytes 1000-1999/{len(LARGE)}"
    last = starlette.client.get("/file", headers={"range": "bytes=-10"})
    assert (last.status_code, last.content) == (206, LARGE[-10:])
    changed = starlette.client.get("/file", headers={"range": "bytes=0-9", "if-range": '"other"'})
    assert (changed.status_code, len(changed.content)) == (200, len(LARGE))
    beyond = starlette.client.get("/file", headers={"range": f"bytes={len(LARGE)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(LARGE)}")
    head = starlette.client.head("/file")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(LARGE)))


def test_files_answer_several_ranges(starlette: Site) -> None:
    reply = starlette.client.get("/file", headers={"range": "bytes=0-9,100000-100009"})
    assert reply.status_code == 206
    found = re.search(r"multipart/byteranges; boundary=(\S+)", reply.headers["content-type"])
    assert found
    parts = reply.content.split(b"--" + found[1].encode())
    assert [part.partition(b"\r\n\r\n")[2].rstrip(b"\r\n")[:10] for part in parts[1:3]] == [
        LARGE[0:10],
        LARGE[100000:100010],
    ]
    assert int(reply.headers["content-length"]) == len(reply.content)


def test_static_files(starlette: Site) -> None:
    reply = starlette.client.get("/static/sub/a.css")
    assert (reply.text, reply.headers["content-type"]) == ("body {}", "text/css; charset=utf-8")
    same = starlette.client.get("/static/sub/a.css", headers={"if-none-match": reply.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert starlette.client.get("/static/sub").status_code == 404
    outside = starlette.server.ask(b"GET /static/../secret.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    assert outside.status in {400, 404}
    outside = starlette.server.ask(b"GET /static/%2e%2e/secret.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    assert outside.status in {400, 404}


def test_sessions_are_kept_in_cookies(starlette: Site) -> None:
    assert [starlette.client.get("/count").text for _ in range(3)] == ["1", "2", "3"]
    starlette.client.cookies.clear()
    assert starlette.client.get("/count").text == "1", "another client"


def test_background_tasks_run_after_the_response(starlette: Site) -> None:
    assert starlette.client.get("/background").text == "at once"
    assert starlette.client.get("/go").status_code == 204
    assert starlette.json("/seen/background") == 1


def test_an_exception_in_a_stream_cuts_the_response(starlette: Site) -> None:
    request = "GET {} HTTP/1.1\r\nHost: a\r\n\r\n"
    received = starlette.server.raw(request.format("/crash_later").encode())
    assert received.count(b"x" * 1000) == 1
    assert not received.endswith(b"\r\n0\r\n\r\n"), "not as if it were complete"
    received = starlette.server.raw(request.format("/crash_with_length").encode())
    head, _, body = received.partition(b"\r\n\r\n")
    assert (b"content-length: 2000" in head.lower(), body) == (True, b"x" * 1000)
    starlette.server.wait_for("ValueError: in the middle")
    starlette.server.wait_for("ValueError: before the end")


def test_an_exception_after_the_response_changes_nothing_of_it(starlette: Site) -> None:
    assert starlette.server.fetch("/crash_in_background").body == b"complete"
    starlette.server.wait_for("ValueError: after the response")
    assert starlette.client.get("/things").text == "things"
