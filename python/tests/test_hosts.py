"""Several sites in one process: hosts with applications of their own at prefixes, WSGI beside ASGI, and what each has for itself."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Reply, Serve, Server

DJANGO = """
import os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "PROJECT.settings")
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""

SETTINGS = """
ALLOWED_HOSTS = ["*"]
SECRET_KEY = "test"
ROOT_URLCONF = "PROJECT.urls"
"""

URLS = """
import threading
from django.http import JsonResponse
from django.urls import path, reverse

def seen(request):
    return JsonResponse({
        "what": "Django", "script": request.META["SCRIPT_NAME"], "path": request.path, "host": request.get_host(),
        "url": reverse("seen"), "thread": threading.current_thread().name,
    })

urlpatterns = [path("seen", seen, name="seen")]
"""

FLASK = """
import threading
from flask import Flask, abort, request, url_for
app = Flask(__name__)

@app.get("/seen")
def seen():
    return {
        "what": "Flask", "script": request.script_root, "path": request.path, "host": request.host,
        "url": url_for("seen"), "thread": threading.current_thread().name,
    }

@app.post("/take")
def take():
    return {"length": len(request.get_data())}

@app.get("/absent")
def absent():
    abort(404)

@app.get("/fails")
def fails():
    raise SystemExit("ends this request only")
"""

FASTAPI = """
import contextlib
import threading
from fastapi import FastAPI, Request

@contextlib.asynccontextmanager
async def life(app):
    print("NAME starts", flush=True)
    yield {"life": "NAME"}
    print("NAME ends", flush=True)

app = FastAPI(lifespan=life)

@app.get("/seen", name="seen")
async def seen(request: Request):
    return {
        "what": "FastAPI", "script": request.scope["root_path"], "path": request.scope["path"], "host": request.headers["host"],
        "url": request.url_for("seen").path, "thread": threading.current_thread().name, "life": request.state.life,
    }
"""

CONFIGURATION = """
access-log = "common.log"
error-page = ["5xx=pages/failed.html", "404=pages/404.html"]

[pool.slow]
max-threads = 2

[host."shop.example"]
names = ["www.shop.example", "*.shops.example"]
application = "shop.wsgi"
mount = ["/tools=tools.py,pool=slow", "/api=api.py"]
static = "/static=files"
access-log = "shop.log"
access-log-format = "$host $request_uri $status"
error-page = ["404=pages/none.html", "413=pages/long.html"]
max-body = "1k"

[[host."shop.example".filter]]
path = "/private/*"
access = "deny all"

[host."blog.example"]
mount = ["/tools=tools2.py", "/api=api2.py,interface=asgi"]
error-page = ["404=pages/blog.html", "500=pages/failed.html"]

[host."files.example"]
static = "/=files"
"""


def project(folder: Path, name: str) -> None:
    """A Django project."""
    (folder / name).mkdir()
    for file, text in {"__init__": "", "wsgi": DJANGO, "settings": SETTINGS, "urls": URLS}.items():
        (folder / name / f"{file}.py").write_text(text.replace("PROJECT", name))


def fill(tmp_path: Path) -> Path:
    """The applications, files and configuration of all hosts."""
    project(tmp_path, "shop")
    for name in ("tools", "tools2"):
        (tmp_path / f"{name}.py").write_text(FLASK)
    for name in ("api", "api2"):
        (tmp_path / f"{name}.py").write_text(FASTAPI.replace("NAME", name))
    (tmp_path / "pages").mkdir()
    for name in ("404", "none", "long", "blog", "failed"):
        (tmp_path / f"pages/{name}.html").write_text(f"<h1>page {name}</h1>")
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.txt").write_text("a file")
    (tmp_path / "maitred.toml").write_text(CONFIGURATION)
    return tmp_path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return fill(tmp_path)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with all of them, which no test changes."""
    folder = fill(tmp_path_factory.mktemp("sites"))
    server = Server([], folder, {})
    try:
        yield server, folder
        assert server.stop() == 0, server.said
        assert server.wait_for("(?s)api2 ends.*api ends"), "in the opposite order of their starts"
    finally:
        server.kill()


def get(server: Server, host: str, path: str, **more: Any) -> Reply:
    return server.fetch(path, Host=host, **more)


def seen(server: Server, host: str, path: str) -> dict[str, str]:
    reply = get(server, host, path)
    assert reply.status == 200, (host, path, reply.status, reply.body)
    return dict(json.loads(reply.body))


def test_each_host_has_its_applications(sites: tuple[Server, Path]) -> None:
    server, _ = sites
    for host in ("shop.example", "www.shop.example:8000", "x.shops.example"):
        django = seen(server, host, "/seen")
        assert (django["what"], django["script"], django["url"], django["host"]) == ("Django", "", "/seen", host)
        assert django["thread"].startswith("maitred-threads-")
    flask = seen(server, "shop.example", "/tools/seen")
    assert (flask["what"], flask["script"], flask["path"], flask["url"]) == ("Flask", "/tools", "/seen", "/tools/seen")
    assert flask["thread"].startswith("maitred-slow-"), "the pool of the mount"
    fastapi = seen(server, "shop.example", "/api/seen")
    assert (fastapi["what"], fastapi["script"], fastapi["path"]) == ("FastAPI", "/api", "/api/seen")
    assert (fastapi["url"], fastapi["thread"], fastapi["life"]) == ("/api/seen", "maitred-loop", "api")
    assert seen(server, "blog.example", "/tools/seen")["thread"].startswith("maitred-threads-")
    assert seen(server, "blog.example", "/api/seen")["life"] == "api2"
    assert get(server, "shop.example", "/static/a.txt").body == b"a file"
    assert get(server, "files.example", "/a.txt").body == b"a file"


def test_a_host_has_its_pages_limits_and_filters(sites: tuple[Server, Path]) -> None:
    server, _ = sites
    for host, path, status, body in [
        ("shop.example", "/static/none", 404, b"<h1>page none</h1>"),
        ("blog.example", "/none", 404, b"<h1>page blog</h1>"),
        ("files.example", "/none", 404, b"<h1>page 404</h1>"),
        ("shop.example", "/private/x", 403, b"403 Forbidden\n"),
        ("blog.example", "/tools/fails", 500, b"<h1>page failed</h1>"),
        ("elsewhere.example", "/", 421, b"421 Misdirected Request: this server has no such host\n"),
    ]:
        reply = get(server, host, path)
        assert (reply.status, reply.body) == (status, body), (host, path)
        page = body.startswith(b"<h1>")
        assert reply.headers["Content-Type"] == ("text/html; charset=utf-8" if page else "text/plain; charset=utf-8")
    own = get(server, "shop.example", "/tools/absent")
    assert own.status == 404 and b"page" not in own.body, "an application's own answers stay as they are"
    long = get(server, "shop.example", "/tools/take", method="POST", body=bytes(1025))
    assert (long.status, long.body) == (413, b"<h1>page long</h1>")
    assert json.loads(get(server, "blog.example", "/tools/take", method="POST", body=bytes(1025)).body) == {"length": 1025}


def asked(server: Server, *query: str) -> dict[str, Any]:
    command = [MAITRED, "ctl", "--json", "--server", str(server.process.pid), *query]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout))


def test_explain_says_host_mount_route_pool_and_filters(sites: tuple[Server, Path]) -> None:
    server, folder = sites

    def explained(url: str) -> dict[str, Any]:
        return asked(server, "explain", "GET", url)

    shop = explained("http://www.shop.example/tools/item/7")
    assert (shop["host"], shop["mount"], shop["pool"]) == ("shop.example", "/tools/", "slow")
    assert shop["route"] == "GET shop.example/tools/item/*"
    assert shop["application"].startswith("WSGI tools.py"), shop
    assert [row["filter"] for row in shop["filters"]] == ["max-body"]
    assert explained("http://shop.example/seen")["pool"] == "threads"
    assert explained("http://blog.example/api/x")["pool"] == "default"
    files = explained("http://files.example/a.txt")
    assert (files["file"], files["route"]) == (str(folder / "files/a.txt"), "files.example/*")
    assert explained("http://else.example/")["status"] == 421
    # Without a method it is GET.
    assert asked(server, "explain", "https://www.shop.example/tools/item/7")["host"] == "shop.example"
    assert asked(server, "explain", "/a.txt", "--header", "Host: files.example")["file"] == str(folder / "files/a.txt")


HELLO = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""


def test_explain_takes_the_scheme_of_the_url(serve: Serve) -> None:
    listen = ["--listen", "127.0.0.1:0,redirect=https:8443", "--listen", "https://127.0.0.1:0", "--tls"]
    server = serve(*listen, "--health-path", "/up", "--hsts", "300", source=HELLO)
    sent_on = asked(server, "explain", f"http://shop.example:{server.ports[0]}/a?b")
    assert (sent_on["status"], sent_on["location"]) == (308, "https://shop.example:8443/a?b")
    assert asked(server, "explain", "http://shop.example/a")["status"] == 308, "all listeners without TLS do so"
    assert asked(server, "explain", "http://shop.example/up")["leads_to"] == "engine"
    secure = asked(server, "explain", "https://shop.example/a")
    assert secure["leads_to"] == "application" and "Strict-Transport-Security" in secure["filters"][0]["does"]
    assert "filters" not in asked(server, "explain", "/a")


def test_handlers_are_listed_with_the_pools_that_run_them(sites: tuple[Server, Path]) -> None:
    rows = asked(sites[0], "handlers")["handlers"]
    assert [(row["path"], row["pool"]) for row in rows if row["host"] == "shop.example"] == [
        ("/static/*", None), ("/tools/*", "slow"), ("/api/*", "default"), ("/*", "threads")
    ]


def test_a_reload_changes_what_is_live_and_names_the_rest(serve: Serve, site: Path) -> None:
    server = serve()
    text = CONFIGURATION.replace('max-body = "1k"', 'max-body = "2k"').replace('"/private/*"', '"/else/*"')
    (site / "maitred.toml").write_text(text)
    server.process.send_signal(1)
    server.wait_for("filters: ")
    assert json.loads(get(server, "shop.example", "/tools/take", method="POST", body=bytes(1025)).body) == {"length": 1025}
    assert get(server, "shop.example", "/else/x").status == 403
    (site / "maitred.toml").write_text(text.replace("files.example", "other.example"))
    server.process.send_signal(1)
    server.wait_for(r"only a restart applies it: .*host other.example \(new\), host files.example \(removed\)")
    assert get(server, "files.example", "/a.txt").status == 200


def test_wsgi_beside_asgi_is_served_while_the_loop_stands_still(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "stands.py").write_text("""
import threading
go = threading.Event()
async def app(scope, receive, send):
    if scope["type"] == "http":
        print("stands", flush=True)
        go.wait(30)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"loop"})
""")
    (tmp_path / "pages.py").write_text("""
import stands
def app(environ, start_response):
    if environ["PATH_INFO"] == "/go":
        stands.go.set()
    start_response("200 OK", [("Content-Length", "5")])
    return [b"pages"]
""")
    server = serve("stands:app", "--mount", "/pages=pages:app")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", "/")
    server.wait_for("stands")
    for _ in range(3):
        assert server.fetch("/pages/x").body == b"pages"
    server.fetch("/pages/go")
    assert connection.getresponse().read() == b"loop"
    connection.close()
    assert server.stop() == 0


def refused(folder: Path, *arguments: str) -> str:
    """What the command says that does not start."""
    command = [MAITRED, "--listen", "127.0.0.1:0", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2, ended
    return ended.stderr.splitlines()[-1]


def test_two_django_projects_are_refused_with_the_remedy(site: Path) -> None:
    project(site, "blog")
    (site / "maitred.toml").unlink()
    said = refused(site, "shop.wsgi", "--mount", "/blog=blog.wsgi")
    assert "shop.wsgi (shop.settings) and blog.wsgi (blog.settings) are two Django projects" in said, said
    assert "run each in a maitred of its own" in said
    # Settings that are given for all are one project.
    (site / "other.py").write_text("from blog.wsgi import application\n")
    single = "from django.conf import settings\nsettings.configure(SECRET_KEY='a')\nimport django\ndjango.setup()\n"
    for name in ("one", "two"):
        (site / f"{name}.py").write_text(single + DJANGO.split("\n", 3)[3])
    said = refused(site, "one.py:application", "--mount", "/two=two.py:application")
    assert "are two Django projects" in said and "one.py:application" in said, said


def test_one_django_project_may_be_mounted_twice(serve: Serve, site: Path) -> None:
    (site / "maitred.toml").unlink()
    (site / "shop/asgi.py").write_text(DJANGO.replace("wsgi", "asgi").replace("PROJECT", "shop"))
    server = serve("shop.wsgi", "--mount", "/again=shop.asgi")
    wsgi, asgi = (seen(server, "shop.example", path) for path in ("/seen", "/again/seen"))
    assert (wsgi["script"], wsgi["url"]) == ("", "/seen")
    assert (asgi["script"], asgi["url"]) == ("/again", "/again/seen")


def test_modules_with_one_name_are_refused_and_files_are_not(serve: Serve, site: Path) -> None:
    (site / "maitred.toml").unlink()
    for name in ("a", "b", "c"):
        (site / name).mkdir()
        text = f"def app(environ, start):\n    start('200 OK', [])\n    return [b'{name}']\n"
        (site / name / "app.py").write_text(text)
    said = refused(site, "app:app", "--app-dir", "a", "--mount", "/b=app:app,app-dir=b")
    assert "the module 'app' of" in said and "rename one of them" in said, said
    server = serve("a/app.py", "--mount", "/b=b/app.py", "--mount", "/c=c/app.py")
    assert [server.fetch(path).body for path in ("/", "/b/", "/c")] == [b"a", b"b", b"c"]


def test_a_module_of_an_application_is_not_another_one_s(serve: Serve, site: Path) -> None:
    (site / "maitred.toml").unlink()
    for name in ("a", "b"):
        (site / name).mkdir()
        (site / name / f"{name}.py").write_text(
            "import common\ndef app(environ, start):\n    start('200 OK', [])\n    return [common.WHAT]\n"
        )
        (site / name / "common.py").write_text(f"WHAT = b'{name}'\n")
    for second in ("b/b.py", "b:app,app-dir=b"):
        said = refused(site, "a/a.py", "--mount", f"/b={second}")
        assert "the module 'common' of" in said and "/a/common.py; rename one of them" in said, said
    # What it does not import is no matter, and neither is what both mean: a folder of data is no module.
    (site / "b/b.py").write_text("import csv, tools\ndef app(environ, start):\n    start('200 OK', [])\n    return [b'b']\n")
    (site / "b/csv").mkdir()
    (site / "a/a.py").write_text("import csv, tools\n" + (site / "a/a.py").read_text())
    server = serve("a/a.py", "--mount", "/b=b/b.py", "--mount", "/c=a/a.py")
    assert [server.fetch(path).body for path in ("/", "/b/", "/c")] == [b"a", b"b", b"a"]


def test_a_further_application_that_does_not_start_ends_the_others(site: Path) -> None:
    (site / "maitred.toml").unlink()
    (site / "bad.py").write_text("async def app(scope, receive, send):\n"
                                 "    await receive()\n"
                                 "    await send({'type': 'lifespan.startup.failed', 'message': 'no database'})\n")
    command = [MAITRED, "api.py", "--listen", "127.0.0.1:0", "--mount", "/bad=bad.py"]
    ended = subprocess.run(command, cwd=site, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2
    assert "the application failed to start: no database" in ended.stderr, ended.stderr
    assert ended.stdout.splitlines() == ["api starts", "api ends"]
