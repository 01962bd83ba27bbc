"""FastAPI over the wire, on both event loops: what its users write, and the parts of it that lean on the server.

A response that is streamed waits in its middle for another request (`/go`); what happens after a response is
awaited by `/seen/NAME`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from conftest import needs
from sites import ASYNC_COMMON, DIGEST, LARGE, Site, asgi_site, streamed

needs("fastapi")
needs("python_multipart")

SOURCE = ASYNC_COMMON + """
from contextlib import asynccontextmanager
from typing import Annotated
from fastapi import BackgroundTasks, Depends, FastAPI, File, Form, HTTPException, Request, UploadFile, WebSocket
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.middleware.base import BaseHTTPMiddleware

@asynccontextmanager
async def lifespan(app):
    ticking = asyncio.create_task(tick())
    yield {"started": "before the first request", "shared": []}
    ticking.cancel()
    print("lifespan ended after", counts["sync"], flush=True)

async def tick():
    while True:
        happen("tick")
        await asyncio.sleep(0.001)

app = FastAPI(lifespan=lifespan)

class Refused(Exception):
    pass

@app.exception_handler(Refused)
async def on_refused(request, error):
    return JSONResponse({"error": str(error)}, 418)

class Timing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        response = await call_next(request)
        response.headers["x-seen"] = request.url.path
        return response

app.add_middleware(Timing)
app.add_middleware(GZipMiddleware, minimum_size=1000)
app.add_middleware(CORSMiddleware, allow_origins=["https://a.example"], allow_methods=["PUT"], allow_credentials=True)

@app.get("/go", status_code=204)
async def go():
    going.set()

@app.get("/seen/{name}")
async def seen_name(name: str, times: int = 1):
    return await seen(name, times)

@app.get("/async")
async def asynchronous(q: str = "none"):
    await asyncio.sleep(0)
    return {"q": q, "loop": type(asyncio.get_running_loop()).__module__.split(".")[0]}

@app.get("/sync")
def synchronous(request: Request):
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        request.state.loop = None
    happen("sync")
    return {"main": threading.current_thread() is threading.main_thread(), "loop": request.state.loop}

@app.get("/state")
async def state(request: Request):
    request.state.shared.append(len(request.state.shared))
    before, request.state.started = request.state.started, "changed"
    return [before, request.state.shared]

class Item(BaseModel):
    name: str = Field(min_length=2)
    price: float
    tags: list[str] = []

@app.put("/items/{number}")
async def item(number: int, item: Item):
    return {"number": number, "item": item}

async def connection():
    happen("opened")
    try:
        yield counts["opened"]
    except Refused:
        happen("rolled back")
        raise
    finally:
        happen("released")

@app.get("/dependency")
async def dependency(number: Annotated[int, Depends(connection)], fail: bool = False):
    if fail:
        raise Refused("by the endpoint")
    return {"number": number}

def session():
    yield threading.current_thread().name

@app.get("/sync-dependency")
def sync_dependency(name: Annotated[str, Depends(session)]):
    return bool(name)

async def later(text):
    await gone()
    happen(text)

def later_in_a_thread(text, loop):
    loop.call_soon_threadsafe(happen, text)

@app.post("/background", status_code=202)
async def background(tasks: BackgroundTasks):
    tasks.add_task(later, "background")
    tasks.add_task(later_in_a_thread, "background thread", asyncio.get_running_loop())
    return {"done": counts["background"]}

@app.get("/stream")
async def stream():
    return StreamingResponse(rows(), media_type="text/plain")

@app.get("/endless")
async def endless_stream():
    return StreamingResponse(endless(), media_type="application/octet-stream")

def sync_rows():
    for number in range(200):
        yield f"data: {number}\\n\\n"

@app.get("/events")
def events():
    return StreamingResponse(sync_rows(), media_type="text/event-stream")

@app.get("/file")
async def file():
    return FileResponse(HERE / "large.bin", filename="caf\\u00e9.bin")

@app.post("/upload")
async def upload(files: list[UploadFile], note: Annotated[str, Form()]):
    return {"note": note, "files": [[file.filename, file.size, digest(await file.read())] for file in files]}

@app.post("/sync-upload")
def sync_upload(file: Annotated[bytes, File()]):
    return digest(file)

@app.post("/form")
async def form(text: Annotated[str, Form()], number: Annotated[int, Form()], a: Annotated[list[str], Form()] = []):
    return {"text": text, "number": number, "a": a}

@app.post("/raw")
async def raw(request: Request):
    return digest(await request.body())

@app.get("/crash")
async def crash():
    return 1 / 0

@app.get("/missing")
async def missing():
    raise HTTPException(404, "nothing", {"x-why": "a test"})

@app.get("/long")
async def long():
    return ["compressible"] * 1000

@app.websocket("/ws")
async def socket(socket: WebSocket):
    await socket.accept()
"""


@pytest.fixture(scope="module")
def fastapi(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("fastapi")
    yield from asgi_site(folder, "site_fastapi", SOURCE, loop, farewell="lifespan ended after")


def test_endpoints_run_on_the_loop_and_in_threads(fastapi: Site, loop: str) -> None:
    assert fastapi.json("/async?q=%C3%BC%26") == {"q": "ü&", "loop": loop}
    assert fastapi.json("/sync") == {"main": False, "loop": None}


def test_the_state_of_the_lifespan_is_copied_for_every_request(fastapi: Site) -> None:
    assert fastapi.json("/state") == ["before the first request", [0]]
    assert fastapi.json("/state") == ["before the first request", [0, 1]], "a shallow copy"


def test_tasks_of_the_lifespan_run_between_requests(fastapi: Site) -> None:
    ticks = fastapi.json("/seen/tick")
    assert fastapi.json("/seen/tick", params={"times": ticks + 10}) >= ticks + 10


def test_bodies_are_validated(fastapi: Site) -> None:
    item = {"name": "tea", "price": 2.5, "tags": ["é"]}
    assert fastapi.json("/items/7", "PUT", json=item) == {"number": 7, "item": item}
    wrong = fastapi.client.put("/items/seven", json={"name": "x"})
    assert wrong.status_code == 422
    places = [tuple(error["loc"]) for error in wrong.json()["detail"]]
    assert sorted(places) == [("body", "name"), ("body", "price"), ("path", "number")]
    broken = fastapi.client.put("/items/7", content=b"{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["detail"][0]["type"]) == (422, "json_invalid")
    assert fastapi.client.put("/items/7").status_code == 422, "no body at all"
    assert fastapi.client.post("/items/7").status_code == 405


def test_dependencies_are_released(fastapi: Site) -> None:
    opened = fastapi.json("/dependency")["number"]
    assert fastapi.json("/seen/released", params={"times": opened}) == opened
    refused = fastapi.client.get("/dependency?fail=1")
    assert (refused.status_code, refused.json()) == (418, {"error": "by the endpoint"})
    assert fastapi.json("/seen/rolled back") == 1
    assert fastapi.json("/seen/released", params={"times": opened + 1}) == opened + 1
    assert fastapi.json("/sync-dependency") is True


def test_background_tasks_run_after_the_response(fastapi: Site) -> None:
    before = fastapi.client.post("/background")
    assert (before.status_code, before.json()) == (202, {"done": 0})
    # The task waits for this; the same connection serves it while the task is not finished.
    assert fastapi.client.get("/go").status_code == 204
    assert fastapi.json("/seen/background") == 1
    assert fastapi.json("/seen/background thread") == 1


def test_a_stream_arrives_block_by_block(fastapi: Site) -> None:
    streamed(fastapi.client, "/stream", [b"first\n", b"second\n"])


def test_a_generator_that_blocks_runs_in_threads(fastapi: Site) -> None:
    reply = fastapi.client.get("/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text == "".join(f"data: {number}\n\n" for number in range(200))


def test_a_stream_whose_client_leaves_is_closed(fastapi: Site) -> None:
    for times in (1, 2, 3):
        fastapi.leave("/endless", headers={"accept-encoding": "identity"})
        assert fastapi.json("/seen/closed", params={"times": times}) == times


def test_files(fastapi: Site) -> None:
    whole = fastapi.client.get("/file", headers={"accept-encoding": "identity"})
    assert whole.content == LARGE
    assert whole.headers["content-length"] == str(len(LARGE))
    assert "filename*=utf-8''caf%C3%A9.bin" in whole.headers["content-disposition"]
    assert fastapi.client.get("/file").content == LARGE, "compressed on the way"


def test_uploads(fastapi: Site) -> None:
    files = [("files", ("große datei.bin", LARGE)), ("files", ("b.txt", b"small"))]
    received = fastapi.json("/upload", "POST", files=files, data={"note": "é"})
    assert received["note"] == "é"
    assert received["files"][0] == ["große datei.bin", len(LARGE), DIGEST]
    assert received["files"][1][:2] == ["b.txt", 5]
    assert fastapi.json("/sync-upload", "POST", files={"file": LARGE}) == DIGEST
    blocks = (LARGE[at : at + 70_000] for at in range(0, len(LARGE), 70_000))
    assert fastapi.json("/raw", "POST", content=blocks) == DIGEST, "chunked"
    assert fastapi.client.post("/upload", data={"note": "n"}).status_code == 422


def test_forms(fastapi: Site) -> None:
    form = {"text": "é & ü", "number": "7", "a": ["1", "2"]}
    assert fastapi.json("/form", "POST", data=form) == {"text": "é & ü", "number": 7, "a": ["1", "2"]}
    assert fastapi.client.post("/form", data={"text": "t", "number": "seven"}).status_code == 422


def test_errors(fastapi: Site) -> None:
    missing = fastapi.client.get("/missing")
    assert (missing.status_code, missing.json(), missing.headers["x-why"]) == (404, {"detail": "nothing"}, "a test")
    assert fastapi.server.fetch("/crash").status == 500
    fastapi.server.wait_for(r"(?s)in crash.*ZeroDivisionError: division by zero")


def test_middleware(fastapi: Site) -> None:
    origin = {"origin": "https://a.example"}
    asked = fastapi.client.options("/async", headers=origin | {"access-control-request-method": "PUT"})
    assert (asked.status_code, asked.headers["access-control-allow-methods"]) == (200, "PUT")
    allowed = fastapi.client.get("/async", headers=origin)
    assert allowed.headers["access-control-allow-origin"] == "https://a.example"
    assert "access-control-allow-origin" not in fastapi.client.get("/async").headers
    assert allowed.headers["x-seen"] == "/async", "of the BaseHTTPMiddleware"
    packed = fastapi.client.get("/long", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.num_bytes_downloaded < 1000 < len(packed.content)
    assert packed.json() == ["compressible"] * 1000
    assert "content-encoding" not in fastapi.client.get("/long", headers={"accept-encoding": "identity"}).headers


def test_the_documentation_of_the_interface(fastapi: Site) -> None:
    assert "swagger" in fastapi.client.get("/docs").text
    schema = fastapi.client.get("/openapi.json").json()
    assert "put" in schema["paths"]["/items/{number}"]
    assert json.dumps(schema).count("/ws") == 0
    assert fastapi.client.get("/ws").status_code == 404, "a WebSocket's route is none for GET"


def test_many_requests_at_once_keep_their_answers(fastapi: Site) -> None:
    async def ask() -> None:
        async with fastapi.asynchronous() as client:
            asked = (client.put(f"/items/{number}", json={"name": "tea", "price": 1}) for number in range(200))
            replies = await asyncio.gather(*asked)
        assert [reply.json()["number"] for reply in replies] == list(range(200))

    asyncio.run(ask())
