"""``maitred dev``: changes are served without a request lost, and tracebacks are shown to who reads the terminal and to nobody else."""

from __future__ import annotations

import http.client
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import secured
from conftest import PATIENCE, Reply, Serve, Server
from playwright.sync_api import Browser, expect, sync_playwright
from test_browser import CHROMIUM_FLAGS
from test_slow_readers import until
from test_terminal import Terminal

LONG = os.environ.get("MAITRED_LONG")

WSGI = """
import time

def app(environ, start_response):
    password, shown = "hunter2", "a <value>"
    path = environ["PATH_INFO"]
    if path == "/before":
        raise ValueError("before <the> response")
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/generator":
        return blocks(None)
    if path == "/late":
        return blocks(b"begun")
    if path == "/stays":
        print("stays", flush=True)
        time.sleep(60)
    return [b"release 1"]

def blocks(first):
    if first:
        yield first
    raise ValueError("in the generator")
"""

ASGI = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    path = scope["path"]
    if path == "/before":
        raise ValueError("before <the> response")
    await send({"type": "http.response.start", "status": 500 if path == "/sent" else 200, "headers": []})
    if path == "/late":
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        raise ValueError("late")
    await send({"type": "http.response.body", "body": b"release 1"})
    if path == "/sent":
        raise ValueError("before <the> response")
"""

FLASK = """
from flask import Flask
app = Flask(__name__)

@app.get("/before")
def before():
    raise ValueError("before <the> response")

@app.get("/")
def index():
    return "release 1"
"""

DJANGO = """
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path
import django

def before(request):
    raise ValueError("before <the> response")

settings.configure(DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x")
django.setup()
urlpatterns = [path("before", before), path("", lambda request: HttpResponse("release 1"))]
app = WSGIHandler()
"""

FASTAPI = """
from fastapi import FastAPI
app = FastAPI()

@app.get("/before")
async def before():
    raise ValueError("before <the> response")

@app.get("/")
async def index():
    return "release 1"
"""

LITTLE = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"release 1"]
"""

LIFESPAN = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette

@asynccontextmanager
async def lifespan(app):
    raise ValueError("the database is not there")
    yield

app = Starlette(lifespan=lifespan)
"""


class Site:
    """A server in development, and the browser of who reads its terminal."""

    def __init__(self, serve: Serve, folder: Path, source: str, *arguments: str) -> None:
        self.file = folder / "app.py"
        self.server: Server = serve("--reload", *arguments, source=source, checked=False)
        self.link = self.server.wait_for(r"tracebacks in the browser: (https?://\S+)")[1]
        path = self.link.partition(f":{self.server.port}")[2]
        opened = self.server.fetch(path)
        assert opened.status == 200
        cookie = opened.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        self.cookie = cookie.partition(";")[0]

    def fetch(self, path: str, **fields: str) -> Reply:
        """As the browser of who reads the terminal."""
        return self.server.fetch(path, **({"Cookie": self.cookie, "Accept": "text/html"} | fields))

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        start = len(self.server.said)
        # As editors do it: whoever reads finds a whole file.
        other = self.file.with_name("app.py~")
        other.write_text(text.replace(old, new))
        other.rename(self.file)
        self.server.wait_for(r"serving the change after \d+ ms", start)


@pytest.fixture
def site(serve: Serve, tmp_path: Path) -> Callable[..., Site]:
    return lambda source, *arguments: Site(serve, tmp_path, source, *arguments)


SiteOf = Callable[..., Site]


@pytest.mark.parametrize("source", [WSGI, ASGI, FLASK, DJANGO, FASTAPI], ids=["wsgi", "asgi", "flask", "django", "fastapi"])
def test_an_exception_is_a_page_for_who_reads_the_terminal_only(site: SiteOf, source: str) -> None:
    dev = site(source)
    assert "release 1" in dev.fetch("/").body.decode()
    for path in ["/before", *(["/generator"] if source is WSGI else []), *(["/sent"] if source is ASGI else [])]:
        start = len(dev.server.said)
        page = dev.fetch(path)
        text = page.body.decode()
        assert page.status == 500 and page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<h1>ValueError</h1>" in text and f"<b>app.py:{line_of(dev.file, path)}</b>" in text
        assert "before &lt;the&gt; response" in text or path == "/generator"
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
        dev.server.wait_for(r"Traceback[\s\S]*ValueError: ", start)
        plain = dev.fetch(path, Accept="application/json")
        assert plain.headers["Content-Type"].startswith("text/plain") and "ValueError: " in plain.body.decode()
        for fields in [
            {"Cookie": ""},
            {"Cookie": dev.cookie[:-1] + "x"},
            {"Cookie": dev.cookie.partition("=")[0]},
            {"Host": "evil.example"},
            {"Host": f"evil.example:{dev.server.port}"},
            {"Host": "localhost.evil.example"},
            {"Host": "127.0.0.1.evil.example"},
        ]:
            refused = dev.fetch(path, **fields)
            assert refused.status == 500, fields
            assert b"Traceback" not in refused.body and b"ValueError" not in refused.body, fields


def line_of(file: Path, path: str) -> int:
    text = "in the generator" if path == "/generator" else "before <the> response"
    numbers = [number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line]
    return numbers[-1 if path == "/sent" else 0]


@pytest.mark.parametrize("host", ["localhost", "shop.localhost", "127.0.0.1", "[::1]", "192.168.1.7"])
def test_names_of_this_machine_and_addresses_are_no_foreign_hosts(site: SiteOf, host: str) -> None:
    dev = site(WSGI)
    for written in (host, f"{host}:{dev.server.port}"):
        assert b"ValueError" in dev.fetch("/before", Host=written).body


def test_the_link_needs_the_token_and_an_own_host(site: SiteOf) -> None:
    dev = site(WSGI)
    path = dev.link.partition(f":{dev.server.port}")[2]
    for wrong, fields in [(path[:-1] + "x", {}), (path[:-1], {}), (path, {"Host": "evil.example"})]:
        answer = dev.server.fetch(wrong, **fields)
        assert answer.status == 404 and answer.headers["Set-Cookie"] is None, wrong


def test_values_are_shown_on_request_but_no_secrets(site: SiteOf) -> None:
    dev = site(WSGI)
    page = dev.fetch("/before").body.decode()
    link = re.search(r'href="(/\.maitred/locals/\w+)"', page)
    assert link and "a &lt;value&gt;" not in page.partition("<h1>")[2].replace("&#x27;", "'").partition("<pre>")[0]
    shown = dev.fetch(link[1]).body.decode()
    assert "<th>shown</th><td><code>&#x27;a &lt;value&gt;&#x27;</code></td>" in shown
    assert "<th>password</th><td><code>not shown" in shown
    assert dev.fetch(link[1], Cookie="").status == 404
    assert dev.fetch(link[1], Host="evil.example").status == 404


@pytest.mark.parametrize("source", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_a_response_that_has_begun_is_cut_as_ever(site: SiteOf, source: str) -> None:
    dev = site(source)
    with pytest.raises(http.client.IncompleteRead) as cut:
        dev.fetch("/late")
    assert cut.value.partial == b"begun"


def test_in_production_there_is_none_of_it(serve: Serve) -> None:
    server = serve(source=WSGI)
    assert server.fetch("/before", Accept="text/html").status == 500
    assert b"ValueError" not in server.fetch("/before", Accept="text/html").body
    # It is a path as any other.
    assert server.fetch("/.maitred/version").body == b"release 1"
    assert "tracebacks in the browser" not in server.said


def test_a_change_is_served_and_so_is_the_next_one(site: SiteOf) -> None:
    dev = site(LITTLE)
    for number in range(2, 6):
        dev.change(f"release {number - 1}", f"release {number}")
        assert dev.fetch("/").body == f"release {number}".encode()
    assert re.findall(r"changed: (.*)", dev.server.said) == ["app.py"] * 4


def test_no_connection_is_refused_and_no_request_lost_while_code_changes(site: SiteOf) -> None:
    dev = site(LITTLE)
    edits = 50 if LONG else 8
    is_over = threading.Event()
    answers: list[bytes] = []
    faults: list[BaseException] = []

    def load() -> None:
        while not is_over.is_set():
            try:
                answer = dev.server.fetch("/")
                answers.append(answer.body)
                assert answer.status == 200, answer.body
            except BaseException as fault:
                faults.append(fault)

    clients = [threading.Thread(target=load) for _ in range(4)]
    for client in clients:
        client.start()
    for number in range(2, 2 + edits):
        dev.change(f"release {number - 1}", f"release {number}")
        assert dev.server.fetch("/").body == f"release {number}".encode()
    is_over.set()
    for client in clients:
        client.join(PATIENCE)
    assert not faults and len(answers) > edits, (faults[:3], len(answers))


def test_a_request_that_runs_is_answered_by_the_code_that_it_began_with(site: SiteOf) -> None:
    dev = site(LITTLE.replace("    return", "    if environ['PATH_INFO'] == '/waits':\n        wait()\n    return") + WAIT)
    peer = dev.server.connect()
    peer.request("GET", "/waits")
    dev.server.wait_for("waits\n")
    dev.change("release 1", "release 2")
    assert dev.fetch("/").body == b"release 2"
    dev.file.with_name("go").touch()
    assert peer.getresponse().read() == b"release 1"


WAIT = """
def wait():
    import os, time
    print("waits", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
"""


def test_a_lifespan_that_fails_is_told_by_pages(site: SiteOf) -> None:
    dev = site(LIFESPAN)
    page = dev.fetch("/").body.decode()
    assert "ValueError" in page and "the database is not there" in page and "app.py:7" in page
    assert b"database" not in dev.fetch("/", Cookie="").body
    dev.change('    raise ValueError("the database is not there")\n', "")
    assert dev.fetch("/").status == 404, "Starlette's own answer"


def test_code_that_ends_the_process_is_loaded_again_when_it_changes(site: SiteOf) -> None:
    dev = site(LITTLE)
    dev.change("def app", "raise SystemExit(3)\ndef app")
    assert b"SystemExit" in dev.fetch("/").body
    start = len(dev.server.said)
    dev.file.write_text(LITTLE.replace("def app", "import os\nos._exit(3)\ndef app"))
    dev.server.wait_for("the next change starts it again", start)
    start = len(dev.server.said)
    dev.file.write_text(LITTLE.replace("release 1", "release 2"))
    dev.server.wait_for(r"serving the change after", start)
    assert dev.fetch("/").body == b"release 2"


def test_ctrl_c_ends_at_once(site: SiteOf) -> None:
    dev = site(WSGI)
    peer = dev.server.connect()
    peer.request("GET", "/stays")
    dev.server.wait_for("stays\n")
    assert dev.server.stop(signal.SIGINT) == 0, dev.server.said


def test_a_configuration_that_changes_is_read_again(site: SiteOf, tmp_path: Path) -> None:
    dev = site(LITTLE)
    (tmp_path / "maitred.toml").write_text("max-body = 10\n")
    dev.server.wait_for(r"changed: maitred\.toml\n[\s\S]*serving the change after")
    assert dev.server.fetch("/", "POST", b"x" * 11).status == 413
    start = len(dev.server.said)
    (tmp_path / "maitred.toml").write_text("max-bodi = 10\n")
    dev.server.wait_for(r"maitred\.toml:1: unknown key 'max-bodi'; did you mean 'max-body'", start)
    assert dev.fetch("/").body == b"release 1"


def test_the_log_of_production_is_left_alone(site: SiteOf, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text('access-log = "access.log"\naccess-log-format = "json"\nworkers = 4\n')
    dev = site(LITTLE)
    dev.fetch("/seen")
    dev.server.wait_for(r"\d\d:\d\d:\d\d 200 GET /seen  ")
    assert not (tmp_path / "access.log").exists()


def test_several_workers_are_no_development(serve: Serve) -> None:
    with pytest.raises(AssertionError, match="with reload there is one worker"):
        serve("--reload", "--workers", "2", source=LITTLE)


def test_a_terminal_gets_short_lines_in_color(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WSGI)
    maitred = Path(os.sys.executable).with_name("maitred")  # type: ignore[attr-defined]
    terminal = Terminal([maitred, "dev", "app.py", "--listen", "127.0.0.1:0"], tmp_path)
    said = ""
    try:
        while "tracebacks in the browser" not in said:
            said += os.read(terminal.own, 4096).decode()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", said)[1])  # type: ignore[index]
        peer = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        peer.request("GET", "/a?b=1")
        assert peer.getresponse().status == 200
        while "GET /a?b=1" not in said:
            said += os.read(terminal.own, 4096).decode()
        assert "\x1b[32m200\x1b[0m GET /a?b=1  " in said
    finally:
        terminal.first.kill()
        terminal.first.wait()
        terminal.hang_up()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def test_a_syntax_error_is_read_in_the_browser_and_goes_when_it_is_mended(site: SiteOf, chromium: Browser) -> None:
    """The page loads itself again: nobody presses a key in the browser."""
    dev = site(LITTLE)
    context = chromium.new_context(ignore_https_errors=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(dev.link)
    expect(page.get_by_role("heading")).to_have_text("This browser shows tracebacks now")
    page.get_by_role("link", name="To the application").click()
    expect(page.locator("body")).to_have_text("release 1")
    start = len(dev.server.said)
    dev.change("def app(", "def app(((")
    dev.server.wait_for(r"SyntaxError: .*\n", start)

    def is_told() -> bool:
        page.reload()
        return page.get_by_role("heading", name="SyntaxError").is_visible()

    # The browser's open connection leads to the old release for a moment longer.
    until("the browser shows the error", is_told)
    expect(page.get_by_role("heading", name="app.py:2")).to_be_visible()
    assert "<mark>" in page.content()
    page.screenshot(path=str(dev.file.with_name("page.png")))
    dev.change("def app(((", "def app(")
    expect(page.locator("body")).to_have_text("release 1")
    assert not [each for each in complaints if "500" not in each], "its own policy lets the page work"
    stranger = chromium.new_context(ignore_https_errors=True).new_page()
    start = len(dev.server.said)
    dev.change("def app(", "def app(((")
    dev.server.wait_for(r"SyntaxError: .*\n", start)
    stranger.goto(f"{secured.SCHEME}://127.0.0.1:{dev.server.port}/")
    expect(stranger.locator("body")).to_contain_text("The traceback is in the terminal")
    assert "SyntaxError" not in stranger.content()
