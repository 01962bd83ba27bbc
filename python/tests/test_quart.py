"""Quart over the wire, on both event loops. It listens for the client's end beside every request and cancels it then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import needs
from sites import ASYNC_COMMON, DIGEST, LARGE, Site, asgi_site, streamed

needs("quart")

SOURCE = ASYNC_COMMON + """
from quart import (
    Quart, Response, jsonify, redirect, request, send_file, session, stream_with_context, url_for, websocket)

app = Quart(__name__)
app.secret_key = "for tests"
app.config["PROVIDE_AUTOMATIC_OPTIONS"] = True

@app.before_serving
async def begin():
    app.began = asyncio.get_running_loop()

@app.after_serving
async def end():
    print("after serving", flush=True)

@app.while_serving
async def serving():
    yield
    print("no longer serving", flush=True)

@app.before_request
async def before():
    request.began = app.began is asyncio.get_running_loop()

@app.get("/began")
async def began():
    return jsonify(request.began)

@app.get("/go")
async def go():
    going.set()
    return "", 204

@app.get("/seen/<name>")
async def seen_name(name):
    return jsonify(await seen(name, int(request.args.get("times", 1))))

@app.post("/form")
async def form():
    form = await request.form
    return jsonify(form=form.to_dict(flat=False), args=request.args.to_dict())

@app.put("/json")
async def json_body():
    return jsonify(received=await request.get_json(), length=request.content_length)

@app.post("/upload")
async def upload():
    file = (await request.files)["file"]
    return jsonify(name=file.filename, digest=digest(file.read()), note=(await request.form)["note"])

@app.post("/raw")
async def raw():
    sha = hashlib.sha256()
    async for part in request.body:
        sha.update(part)
    return jsonify(sha.hexdigest())

@app.get("/stream")
async def stream():
    @stream_with_context
    async def blocks():
        async for row in rows():
            yield request.path.encode() + b" " + row
    return blocks(), {"content-type": "text/plain"}

@app.get("/endless")
async def endless_stream():
    response = Response(endless())
    response.timeout = None
    return response

@app.get("/wait")
async def wait():
    happen("waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        happen("cancelled")
        raise

@app.post("/background")
async def background():
    async def task():
        await gone()
        happen("background")
    app.add_background_task(task)
    return jsonify(counts["background"]), 202

@app.get("/sync")
def synchronous():
    return jsonify(main=threading.current_thread() is threading.main_thread(), path=request.path)

@app.get("/count")
async def count():
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])

@app.get("/file")
async def file():
    return await send_file(HERE / "large.bin", conditional=True)

@app.get("/old")
async def old():
    return redirect(url_for("where", id=7))

@app.get("/where/<int:id>")
async def where(id):
    return jsonify(id=id, outside=url_for("where", id=id, _external=True))

@app.get("/crash")
async def crash():
    return 1 / 0

@app.errorhandler(404)
async def on_missing(error):
    return f"nothing at {request.path}", 404

@app.websocket("/ws")
async def socket():
    await websocket.send("never")
"""


@pytest.fixture(scope="module")
def quart(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    yield from asgi_site(tmp_path_factory.mktemp("quart"), "site_quart", SOURCE, loop, farewell="after serving")


def test_it_is_started_on_the_loop_of_the_requests(quart: Site) -> None:
    assert quart.json("/began") is True


def test_forms_and_json(quart: Site) -> None:
    reply = quart.json("/form?q=caf%C3%A9", "POST", data={"a": ["1", "2"], "text": "é & ü"})
    assert reply == {"form": {"a": ["1", "2"], "text": ["é & ü"]}, "args": {"q": "café"}}
    value = {"list": [1, None, "é"]}
    reply = quart.json("/json", "PUT", json=value)
    assert (reply["received"], reply["length"] > 0) == (value, True)
    assert quart.client.put("/json", content=b"{", headers={"content-type": "application/json"}).status_code == 400


def test_uploads(quart: Site) -> None:
    reply = quart.json("/upload", "POST", files={"file": ("große datei.bin", LARGE)}, data={"note": "n"})
    assert reply == {"name": "große datei.bin", "digest": DIGEST, "note": "n"}
    assert quart.json("/raw", "POST", content=LARGE) == DIGEST
    blocks = (LARGE[at : at + 70_000] for at in range(0, len(LARGE), 70_000))
    assert quart.json("/raw", "POST", content=blocks) == DIGEST, "chunked"
    too_large = quart.client.post("/raw", content=bytes(17 * 1024 * 1024))
    assert too_large.status_code == 413


def test_a_stream_arrives_block_by_block(quart: Site) -> None:
    streamed(quart.client, "/stream", [b"/stream first\n", b"/stream second\n"])


def test_a_stream_whose_client_leaves_is_closed(quart: Site) -> None:
    for times in (1, 2, 3):
        quart.leave("/endless")
        assert quart.json("/seen/closed", params={"times": times}) == times


def test_a_handler_whose_client_leaves_is_cancelled(quart: Site) -> None:
    with quart.connection() as peer:
        peer.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        assert quart.json("/seen/waiting") == 1
    assert quart.json("/seen/cancelled") == 1


def test_background_tasks_run_after_the_response(quart: Site) -> None:
    assert quart.client.post("/background").json() == 0
    assert quart.client.get("/go").status_code == 204
    assert quart.json("/seen/background") == 1


def test_functions_run_in_threads_with_their_context(quart: Site) -> None:
    assert quart.json("/sync") == {"main": False, "path": "/sync"}


def test_sessions_are_kept_in_cookies(quart: Site) -> None:
    assert [quart.client.get("/count").text for _ in range(3)] == ["1", "2", "3"]


def test_files(quart: Site) -> None:
    whole = quart.client.get("/file")
    assert (whole.content == LARGE, whole.headers["content-length"]) == (True, str(len(LARGE)))
    part = quart.client.get("/file", headers={"range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, LARGE[1000:2000])
    same = quart.client.get("/file", headers={"if-none-match": whole.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_redirects_and_errors(quart: Site) -> None:
    reply = quart.client.get("/old", follow_redirects=True)
    base = quart.url
    assert reply.json() == {"id": 7, "outside": f"{base}/where/7"}
    missing = quart.client.get("/n%C3%B6")
    assert (missing.status_code, missing.text) == (404, "nothing at /nö")
    assert quart.server.fetch("/crash").status == 500
    quart.server.wait_for(r"(?s)in crash.*ZeroDivisionError: division by zero")
    assert quart.client.get("/ws").status_code in {400, 404}
    assert quart.client.options("/json").headers["allow"] in {"OPTIONS, PUT", "PUT, OPTIONS"}
