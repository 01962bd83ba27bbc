"""Litestar over the wire, on both event loops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import needs
from sites import ASYNC_COMMON, DIGEST, LARGE, Site, asgi_site, streamed

needs("litestar")

SOURCE = ASYNC_COMMON + """
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from litestar import Litestar, MediaType, Request, delete, get, post, websocket
from litestar.background_tasks import BackgroundTask
from litestar.config.compression import CompressionConfig
from litestar.datastructures import State, UploadFile
from litestar.di import Provide
from litestar.dto import DataclassDTO, DTOConfig
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException
from litestar.params import Body
from litestar.response import File, Redirect, Response, ServerSentEvent, Stream

@get("/go", status_code=204)
async def go() -> None:
    going.set()

@get("/seen/{name:str}")
async def seen_name(name: str, times: int = 1) -> int:
    return await seen(name, times)

@get("/async/{number:int}")
async def asynchronous(number: int, q: str = "none") -> dict[str, Any]:
    return {"number": number, "q": q}

@get("/sync", sync_to_thread=True)
def synchronous() -> bool:
    return threading.current_thread() is threading.main_thread()

@get("/sync-on-the-loop", sync_to_thread=False)
def synchronous_on_the_loop() -> bool:
    return asyncio.get_running_loop().is_running()

@dataclass
class Account:
    name: str
    age: int
    password: str = ""

class Public(DataclassDTO[Account]):
    config = DTOConfig(exclude={"password"})

@post("/accounts", dto=DataclassDTO[Account], return_dto=Public)
async def account(data: Account) -> Account:
    happen("password " + data.password)
    return data

async def connection():
    yield counts["released"]
    happen("released")

@get("/dependency", dependencies={"number": Provide(connection)})
async def dependency(number: int) -> int:
    return number

@get("/stream")
async def stream() -> Stream:
    return Stream(rows(), media_type=MediaType.TEXT)

@get("/endless")
async def endless_stream() -> Stream:
    return Stream(endless())

@get("/events")
async def events() -> ServerSentEvent:
    async def numbers():
        for number in range(100):
            yield number
    return ServerSentEvent(numbers())

@get("/file")
async def file() -> File:
    return File(HERE / "large.bin", filename="large.bin")

@post("/upload")
async def upload(data: Annotated[UploadFile, Body(media_type=RequestEncodingType.MULTI_PART)]) -> list[str]:
    return [data.filename, digest(await data.read())]

@post("/form")
async def form(data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)]) -> dict[str, str]:
    return data

@post("/raw")
async def raw(request: Request) -> str:
    sha = hashlib.sha256()
    async for part in request.stream():
        sha.update(part)
    return sha.hexdigest()

@post("/background", status_code=202)
async def background() -> Response[int]:
    async def task():
        await gone()
        happen("background")
    return Response(counts["background"], background=BackgroundTask(task))

@get("/state")
async def state(state: State) -> str:
    return state.began

@get("/long", media_type=MediaType.TEXT)
async def long() -> str:
    return "compressible" * 1000

@get("/old")
async def old() -> Redirect:
    return Redirect("/async/7")

@delete("/refuse")
async def refuse() -> None:
    raise NotAuthorizedException("not yours")

@get("/crash")
async def crash() -> None:
    raise RuntimeError("in a handler")

@websocket("/ws")
async def socket(socket: Any) -> None:
    await socket.accept()

@asynccontextmanager
async def lifespan(app):
    app.state.began = "in the lifespan"
    yield
    print("lifespan ended", flush=True)

app = Litestar(
    [go, seen_name, asynchronous, synchronous, synchronous_on_the_loop, account, dependency, stream, endless_stream,
     events, file, upload, form, raw, background, state, long, old, refuse, crash, socket],
    lifespan=[lifespan], on_startup=[lambda: happen("startup")], on_shutdown=[lambda: print("shutdown", flush=True)],
    compression_config=CompressionConfig(backend="gzip"),
)
"""


@pytest.fixture(scope="module")
def litestar(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("litestar")
    yield from asgi_site(folder, "site_litestar", SOURCE, loop, farewell="lifespan ended")


def test_endpoints_run_on_the_loop_and_in_threads(litestar: Site) -> None:
    assert litestar.json("/async/7?q=%C3%BC") == {"number": 7, "q": "ü"}
    assert litestar.json("/sync") is False
    assert litestar.json("/sync-on-the-loop") is True
    assert litestar.client.get("/async/seven").status_code == 404


def test_the_lifespan_keeps_state(litestar: Site) -> None:
    assert litestar.client.get("/state").text == "in the lifespan"
    assert litestar.json("/seen/startup") == 1


def test_data_is_validated_and_transferred(litestar: Site) -> None:
    made = litestar.client.post("/accounts", json={"name": "é", "age": 7, "password": "p"})
    assert (made.status_code, made.json()) == (201, {"name": "é", "age": 7})
    assert litestar.json("/seen/password p") == 1
    wrong = litestar.client.post("/accounts", json={"name": "é", "age": "old"})
    assert (wrong.status_code, wrong.json()["status_code"]) == (400, 400)
    assert "age" in wrong.text
    assert litestar.client.post("/accounts", content=b"{").status_code == 400


def test_dependencies_are_released(litestar: Site) -> None:
    assert litestar.json("/dependency") == 0
    assert litestar.json("/seen/released") == 1


def test_a_stream_arrives_block_by_block(litestar: Site) -> None:
    streamed(litestar.client, "/stream", [b"first\n", b"second\n"])


def test_events(litestar: Site) -> None:
    reply = litestar.client.get("/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text == "".join(f"data: {number}\r\n\r\n" for number in range(100))


def test_a_stream_whose_client_leaves_is_closed(litestar: Site) -> None:
    for times in (1, 2, 3):
        litestar.leave("/endless", headers={"accept-encoding": "identity"})
        assert litestar.json("/seen/closed", params={"times": times}) == times


def test_bodies(litestar: Site) -> None:
    made = litestar.client.post("/upload", files={"data": ("große datei.bin", LARGE)})
    assert (made.status_code, made.json()) == (201, ["große datei.bin", DIGEST])
    assert litestar.client.post("/form", data={"text": "é & ü"}).json() == {"text": "é & ü"}
    assert litestar.client.post("/raw", content=LARGE).text == DIGEST
    blocks = (LARGE[at : at + 70_000] for at in range(0, len(LARGE), 70_000))
    assert litestar.client.post("/raw", content=blocks).text == DIGEST, "chunked"


def test_files(litestar: Site) -> None:
    for encoding in ("identity", "gzip"):
        whole = litestar.client.get("/file", headers={"accept-encoding": encoding})
        assert (whole.status_code, whole.content == LARGE) == (200, True), encoding
    packed = litestar.client.get("/long", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == "compressible" * 1000
    assert packed.num_bytes_downloaded < 1000


def test_background_tasks_run_after_the_response(litestar: Site) -> None:
    assert litestar.client.post("/background").json() == 0
    assert litestar.client.get("/go").status_code == 204
    assert litestar.json("/seen/background") == 1


def test_redirects_and_errors(litestar: Site) -> None:
    moved = litestar.client.get("/old", follow_redirects=True)
    assert (moved.json()["number"], [earlier.status_code for earlier in moved.history]) == (7, [302])
    refused = litestar.client.delete("/refuse")
    assert (refused.status_code, refused.json()["detail"]) == (401, "not yours")
    assert litestar.server.fetch("/crash").status == 500
    assert litestar.client.post("/async/7").status_code == 405
    assert litestar.client.get("/ws").status_code in {404, 405}
    schema = litestar.client.get("/schema/openapi.json")
    assert schema.status_code == 200 and "/accounts" in schema.json()["paths"]
