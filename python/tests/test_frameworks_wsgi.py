"""Flask, Django, Bottle and Falcon on the real command, driven over the wire by an HTTP client.

One server for each framework. A response that is streamed waits in its middle for another request (`/go`), so
that its first block is known to have arrived alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import CHECKED, Server
from sites import DIGEST, DJANGO_MAIN, DJANGO_SETTINGS, LARGE, Site, prepare_django, site, streamed, token

# What the applications have in common.
COMMON = """
import hashlib, threading
from pathlib import Path

HERE = Path(__file__).parent
going = threading.Event()

def rows():
    yield b"first\\n"
    assert going.wait(30)
    going.clear()
    yield b"second\\n"

def digest(data):
    return hashlib.sha256(data).hexdigest()
"""

FLASK = COMMON + """
from flask import Flask, Response, jsonify, redirect, request, send_file, session, stream_with_context, url_for

app = Flask(__name__)
app.secret_key = "for tests"

@app.post("/form")
def form():
    return jsonify(form=request.form.to_dict(flat=False), args=request.args.to_dict())

@app.put("/json")
def json():
    return jsonify(received=request.get_json(), length=request.content_length)

@app.get("/count")
def count():
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])

@app.post("/upload")
def upload():
    file = request.files["file"]
    return jsonify(name=file.filename, type=file.mimetype, digest=digest(file.read()), note=request.form["note"])

@app.post("/raw")
def raw():
    parts = [request.stream.read(1000), request.stream.readline(), request.stream.read()]
    return jsonify(digest=digest(b"".join(parts)))

@app.get("/stream")
def stream():
    def blocks():
        for row in rows():
            yield request.path.encode() + b" " + row
    return Response(stream_with_context(blocks()), mimetype="text/plain")

@app.get("/go")
def go():
    going.set()
    return "", 204

@app.get("/file")
def file():
    return send_file(HERE / "large.bin", as_attachment=True, download_name="caf\\u00e9.bin")

@app.get("/old")
def old():
    return redirect(url_for("where", id=7))

@app.get("/where/<int:id>")
def where(id):
    return jsonify(id=id, inside=url_for("where", id=id), outside=url_for("where", id=id, _external=True))

@app.get("/crash")
def crash():
    return 1 / 0

@app.get("/refuse")
def refuse():
    raise KeyError("refused")

@app.errorhandler(KeyError)
def on_key_error(error):
    return jsonify(error=str(error)), 418

@app.errorhandler(404)
def on_missing(error):
    return f"nothing at {request.path}", 404
"""

DJANGO = COMMON + DJANGO_SETTINGS + """
from django.contrib import admin
from django.core.wsgi import get_wsgi_application
from django.http import FileResponse, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import engines
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

FORM = '<form method="post">{% csrf_token %}<input name="text">{{ text }}</form>'

def form(request):
    template = engines["django"].from_string(FORM)
    return HttpResponse(template.render({"text": request.POST.get("text", "")}, request))

def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return HttpResponse(str(request.session["count"]))

@csrf_exempt
def upload(request):
    file = request.FILES["file"]
    return JsonResponse({"kind": type(file).__name__, "size": file.size, "digest": digest(b"".join(file.chunks()))})

def stream(request):
    return StreamingHttpResponse(rows(), content_type="text/plain")

def go(request):
    going.set()
    return HttpResponse(status=204)

def file(request):
    return FileResponse(open(HERE / "large.bin", "rb"), as_attachment=True)

def crash(request):
    raise ValueError("a view failed")

urlpatterns = [path("admin/", admin.site.urls)] + [
    path(view.__name__, view) for view in (form, count, upload, stream, go, file, crash)
]
application = get_wsgi_application()
""" + DJANGO_MAIN

BOTTLE = COMMON + """
from bottle import Bottle, request, response, static_file

app = Bottle()

@app.get("/hello/<name>")
def hello(name):
    response.set_cookie("last", name, secret="for tests")
    return {"name": name, "last": request.get_cookie("last", secret="for tests"), "query": request.query.q}

@app.post("/upload")
def upload():
    file = request.files.file
    return {"name": file.filename, "digest": digest(file.file.read()), "note": request.forms.note}

@app.post("/json")
def json():
    return {"received": request.json}

@app.get("/stream")
def stream():
    response.content_type = "text/plain"
    return rows()

@app.get("/go")
def go():
    going.set()
    response.status = 204

@app.get("/file")
def file():
    return static_file("large.bin", root=HERE)

@app.error(404)
def on_missing(error):
    return "nothing here"
"""

FALCON = COMMON + """
import falcon

class Things:
    def on_get(self, request, response, number):
        response.media = {"number": number, "q": request.get_param_as_list("q")}
        response.set_cookie("last", str(number))

    def on_put(self, request, response, number):
        response.status = falcon.HTTP_201
        response.location = f"/things/{number}"
        response.media = {"received": request.media}

class Bodies:
    def on_post(self, request, response):
        response.media = {"digest": digest(request.bounded_stream.read())}

    def on_get(self, request, response):
        response.content_type = "text/plain"
        response.stream = rows()

class Go:
    def on_get(self, request, response):
        going.set()
        response.status = falcon.HTTP_204

class File:
    def on_get(self, request, response):
        path = HERE / "large.bin"
        response.set_stream(path.open("rb"), path.stat().st_size)

class Upload:
    def on_post(self, request, response):
        response.media = {part.name: digest(part.get_data()) for part in request.get_media()}

app = falcon.App()
app.req_options.auto_parse_qs_csv = False
handler = falcon.media.MultipartFormHandler()
handler.parse_options.max_body_part_buffer_size = 16 * 1024 * 1024
app.req_options.media_handlers[falcon.MEDIA_MULTIPART] = handler
app.add_route("/things/{number:int}", Things())
app.add_route("/stream", Bodies())
app.add_route("/go", Go())
app.add_route("/file", File())
app.add_route("/upload", Upload())
"""


def wsgi_site(folder: Path, name: str, source: str, *arguments: str, attribute: str = "") -> Iterator[Site]:
    (folder / f"{name}.py").write_text(source)
    (folder / "large.bin").write_bytes(LARGE)
    target = f"{name}:{attribute}" if attribute else name
    yield from site(Server([target, "--max-threads", "4", *arguments], folder, {}))


@pytest.fixture(scope="module")
def flask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from wsgi_site(tmp_path_factory.mktemp("flask"), "site_flask", FLASK)


@pytest.fixture(scope="module")
def django(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("django")
    prepare_django(folder, DJANGO)
    yield from wsgi_site(folder, "pages", DJANGO, "--static", "/static=static")


@pytest.fixture(scope="module")
def bottle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from wsgi_site(tmp_path_factory.mktemp("bottle"), "site_bottle", BOTTLE)


@pytest.fixture(scope="module")
def falcon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from wsgi_site(tmp_path_factory.mktemp("falcon"), "site_falcon", FALCON)


@pytest.mark.parametrize("name", ["flask", "django", "bottle", "falcon"])
def test_a_stream_arrives_block_by_block(name: str, request: pytest.FixtureRequest) -> None:
    prefix = b"/stream " if name == "flask" else b""
    client = request.getfixturevalue(name).client
    streamed(client, "/stream", [prefix + b"first\n", prefix + b"second\n"])


@pytest.mark.parametrize("name", ["flask", "django", "bottle", "falcon"])
def test_a_file_arrives_whole_and_head_has_no_body(name: str, request: pytest.FixtureRequest) -> None:
    client = request.getfixturevalue(name).client
    reply = client.get("/file")
    assert (reply.status_code, reply.content == LARGE) == (200, True)
    assert reply.headers["content-length"] == str(len(LARGE))
    if name != "falcon":  # Routes HEAD only where there is on_head.
        head = client.head("/file")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(LARGE))


@pytest.mark.parametrize("parameter", ["", ",read-ahead=off"])
@pytest.mark.parametrize("name", ["flask", "django", "bottle", "falcon"])
def test_the_validator_has_nothing_against_it(name: str, parameter: str, tmp_path: Path) -> None:
    """The same sites inside wsgiref.validate, with complete bodies and with bodies that are read as they come."""
    source = {"flask": FLASK, "django": DJANGO, "bottle": BOTTLE, "falcon": FALCON}[name]
    if name == "django":
        prepare_django(tmp_path, source)
        source += "app = application\n"
    module = "pages" if name == "django" else f"site_{name}"
    arguments = ["--listen", f"127.0.0.1:0{parameter}"]
    for checked in wsgi_site(tmp_path, f"{module}", source + CHECKED, *arguments, attribute="app"):
        client = checked.client
        reply = client.post("/upload", files={"file": ("a.bin", LARGE)}, data={"note": "n"})
        assert reply.status_code == 200, checked.server.said
        assert reply.json()["file" if name == "falcon" else "digest"] == DIGEST
        # Not /go: Flask and Django give a Content-Type to a 204, which the validator refuses.
        assert client.get("/file").content == LARGE
        assert "AssertionError" not in checked.server.said, checked.server.said


def test_flask_forms_and_json(flask: Site) -> None:
    reply = flask.client.post("/form?q=caf%C3%A9", data={"a": ["1", "2"], "text": "é & ü"})
    assert reply.json() == {"form": {"a": ["1", "2"], "text": ["é & ü"]}, "args": {"q": "café"}}
    value = {"list": [1, None, "é"]}
    reply = flask.client.put("/json", json=value)
    assert reply.json()["received"] == value
    assert flask.client.put("/json", content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert flask.client.get("/form").status_code == 405


def test_flask_sessions_are_kept_in_cookies(flask: Site) -> None:
    assert [flask.client.get("/count").text for _ in range(3)] == ["1", "2", "3"]
    assert httpx.get(f"{flask.client.base_url}/count", trust_env=False).text == "1", "another client"


def test_flask_uploads(flask: Site) -> None:
    file = ("große datei.bin", LARGE, "application/x-thing")
    reply = flask.client.post("/upload", files={"file": file}, data={"note": "n"})
    assert reply.json() == {"name": file[0], "type": file[2], "digest": DIGEST, "note": "n"}
    assert flask.client.post("/raw", content=LARGE).json() == {"digest": DIGEST}
    blocks = (LARGE[at : at + 70_000] for at in range(0, len(LARGE), 70_000))
    assert flask.client.post("/raw", content=blocks).json() == {"digest": DIGEST}, "chunked"


def test_flask_files_answer_ranges_and_conditions(flask: Site) -> None:
    whole = flask.client.head("/file")
    assert "filename*=UTF-8''caf%C3%A9.bin" in whole.headers["content-disposition"]
    part = flask.client.get("/file", headers={"range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, LARGE[1000:2000])
    assert part.headers["content-range"] == f"bytes 1000-1999/{len(LARGE)}"
    same = flask.client.get("/file", headers={"if-none-match": whole.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_flask_redirects_and_errors(flask: Site) -> None:
    reply = flask.client.get("/old", follow_redirects=True)
    base = flask.url
    assert reply.json() == {"id": 7, "inside": "/where/7", "outside": f"{base}/where/7"}
    assert [earlier.status_code for earlier in reply.history] == [302]
    missing = flask.client.get("/n%C3%B6")
    assert (missing.status_code, missing.text) == (404, "nothing at /nö")
    refused = flask.client.get("/refuse")
    assert (refused.status_code, refused.json()) == (418, {"error": "'refused'"})
    assert flask.client.get("/crash").status_code == 500
    flask.server.wait_for(r"(?s)Exception on /crash \[GET\].*in crash.*ZeroDivisionError: division by zero")


def test_flask_below_a_root_path(tmp_path: Path) -> None:
    for below in wsgi_site(tmp_path, "site_flask", FLASK, "--root-path", "/site"):
        reply = below.client.get("/site/old", follow_redirects=True)
        assert reply.json()["inside"] == "/site/where/7"
        assert below.client.get("/where/1").json()["inside"] == "/site/where/1", "a proxy has taken it off"
        below.client.get("/site/count")
        assert below.client.get("/site/count").text == "2"


def test_django_forms_are_protected(django: Site) -> None:
    page = django.client.get("/form")
    form = {"csrfmiddlewaretoken": token(page.text), "text": "grüße <b>"}
    assert "grüße &lt;b&gt;</form>" in django.client.post("/form", data=form).text
    refused = django.client.post("/form", data={"text": "x"})
    assert (refused.status_code, "CSRF" in refused.text) == (403, True)


def test_django_sessions_are_kept_in_the_database(django: Site) -> None:
    assert [django.client.get("/count").text for _ in range(3)] == ["1", "2", "3"]


def test_django_uploads_in_memory_and_on_disk(django: Site) -> None:
    for data, kind in [(LARGE, "TemporaryUploadedFile"), (LARGE[:1000], "InMemoryUploadedFile")]:
        reply = django.client.post("/upload", files={"file": ("a.bin", data)})
        digest = hashlib.sha256(data).hexdigest()
        assert reply.json() == {"kind": kind, "size": len(data), "digest": digest}


def test_django_admin_with_its_static_files(django: Site) -> None:
    page = django.client.get("/admin/", follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/admin/login/")
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert any(file.endswith("base.css") for file in files)
    for file in files:
        reply = django.client.get(file)
        assert reply.status_code == 200, file
        assert reply.headers["content-type"].startswith(("text/css", "text/javascript")), file
    form = {"csrfmiddlewaretoken": token(page.text), "username": "root", "password": "secret", "next": "/admin/"}
    index = django.client.post("/admin/login/", data=form, follow_redirects=True)
    assert (index.status_code, index.url.path) == (200, "/admin/")
    assert "/admin/auth/user/add/" in index.text
    users = django.client.get("/admin/auth/user/")
    assert "root" in users.text
    wrong = django.client.get("/admin/nothing", follow_redirects=True)
    assert wrong.status_code == 404


def test_django_errors_are_logged(django: Site) -> None:
    assert django.client.get("/crash").status_code == 500
    django.server.wait_for(r"(?s)Internal Server Error: /crash.*in crash.*ValueError: a view failed")


def test_bottle(bottle: Site) -> None:
    first, second = (bottle.client.get("/hello/zoë?q=ü").json() for _ in range(2))
    assert first == {"name": "zoë", "last": None, "query": "ü"}
    assert second["last"] == "zoë"
    reply = bottle.client.post("/upload", files={"file": ("a.bin", LARGE)}, data={"note": "n"})
    assert reply.json() == {"name": "a.bin", "digest": DIGEST, "note": "n"}
    assert bottle.client.post("/json", json=[1]).json() == {"received": [1]}
    part = bottle.client.get("/file", headers={"range": "bytes=-10"})
    assert (part.status_code, part.content) == (206, LARGE[-10:])
    missing = bottle.client.get("/nothing")
    assert (missing.status_code, missing.text) == (404, "nothing here")


def test_falcon(falcon: Site) -> None:
    reply = falcon.client.get("/things/7?q=a&q=b")
    assert reply.json() == {"number": 7, "q": ["a", "b"]}
    assert falcon.client.cookies["last"] == "7"
    made = falcon.client.put("/things/8", json={"é": 1})
    assert (made.status_code, made.headers["location"]) == (201, "/things/8")
    assert made.json() == {"received": {"é": 1}}
    assert falcon.client.post("/stream", content=LARGE).json() == {"digest": DIGEST}
    upload = falcon.client.post("/upload", files={"file": ("a.bin", LARGE)})
    assert upload.json() == {"file": DIGEST}
    assert falcon.client.get("/things/x").status_code == 404
    assert falcon.client.delete("/things/7").headers["allow"] == "GET, PUT, OPTIONS"
