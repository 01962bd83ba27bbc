"""A browser opens the dashboard's pages under load: they say what happened, show what clients send as text, and can be used by everybody.

Debian's Chromium, driven by Playwright. MAITRED_TEST_SCREENSHOTS names a folder for pictures of all pages. axe-core, which looks at names and
contrast, comes from `scripts/dashboard`; without it that part is left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, MAITRED, PATIENCE, Server, environment_for
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright
from test_browser import CHROMIUM_FLAGS

expect.set_options(timeout=PATIENCE * 1000)

ROOT = HERE.parents[1]
AXE = ROOT / ".build/tools/dashboard/node_modules/axe-core/axe.min.js"
TOKEN = "0123456789abcdef"

WSGI = """
import socket, threading, time

from maitred._engine import HttpFailure, HttpOrigin, HttpPool

goes_on = threading.Event()
pool = HttpPool()
# Taken, and nothing listens: calls are refused.
taken = socket.socket()
taken.bind(("127.0.0.1", 0))
origin = HttpOrigin("http", "127.0.0.1", taken.getsockname()[1])

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/go":
        goes_on.set()
    elif path.startswith("/waits"):
        wait_for_the_other()
    elif path == "/slow":
        time.sleep(0.02)
    elif path == "/moved":
        calls()
    elif path == "/fails":
        raise RuntimeError("<b>bold</b>")
    status = {"/none": "404 Not Found", "/moved": "302 Found"}.get(path, "200 OK")
    start_response(status, [("Content-Type", "text/plain"), ("Server-Timing", "db;dur=2.5")])
    return [b"text"]

def calls():
    try:
        pool.send(origin, "GET", b"/", [], None, (None,) * 6)
    except HttpFailure:
        pass

def wait_for_the_other():
    goes_on.wait(60)
"""

ASGI = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    if scope["path"].endswith("/large"):
        for _ in range(300):
            await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
    await send({"type": "http.response.body", "body": b"text"})
"""

#: A path that is markup, as no browser would send it, and a part of it that pages show.
MARKUP = "/waits/<img%20src=x%20onerror=document.title=1>"

PAGES = ["overview", "routes", "threads", "requests", "deliveries", "connections", "upstreams", "locks", "caches", "memory", "logs", "configuration"]
SIZES = {"wide": (1280, 800), "narrow": (390, 844), "phone": (360, 740)}


class Site:
    """A server with its admin listener, and how many requests it has had."""

    def __init__(self, folder: Path, *arguments: str, source: str = WSGI) -> None:
        (folder / "app.py").write_text(source)
        (folder / "live.py").write_text(ASGI)
        (folder / "static").mkdir(exist_ok=True)
        (folder / "static" / "a.css").write_text("a {}")
        mounted = ["--mount", "/live=live.py"] if source == WSGI else []
        options = ["--control", "ctl.sock", *mounted, "--static", "/static=static", *arguments]
        self.folder = folder
        self.server = Server(["app.py", *options], folder, {})
        if "--workers" in arguments:
            self.server.wait_for("info all workers are ready")
        command = [MAITRED, "ctl", "--socket", "ctl.sock", "--json", "status"]
        done = subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.admin = next(place for place in json.loads(done.stdout)["control"] if place.startswith("http://"))
        self.sent: Counter[str] = Counter()
        self.waiting: list[threading.Thread] = []

    def load(self, rounds: int) -> None:
        """Each of some threads sends the same requests so many times."""
        paths = ["/", "/slow", "/user/7/orders", "/fails", "/none", "/moved", "/live/", "/static/a.css"]

        def send() -> None:
            connection = self.server.connect()
            for path in paths * rounds:
                connection.request("GET", path)
                connection.getresponse().read()
            connection.close()

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.sent.update({path: rounds * len(threads) for path in paths})

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = urllib.request.Request(f"{self.admin}{path}", data=body, method=method, headers=named)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read())

    def begin(self, path: str) -> None:
        """Sends a request that is answered after /go."""
        thread = threading.Thread(target=self.server.fetch, args=(path,), daemon=True)
        thread.start()
        self.waiting.append(thread)
        self.sent[path] += 1


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"), "--admin", "127.0.0.1:0", "--max-threads", "6")
    try:
        site.load(6)
        yield site
        assert site.server.stop() == 0, site.server.said
    finally:
        site.server.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("Chromium is not installed (Debian package chromium); CHROMIUM names another place")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


class View:
    """A page, and what it complained about or asked elsewhere."""

    def __init__(self, context: BrowserContext, admin: str) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.admin = admin
        self.complaints: list[str] = []
        self.page.on("console", lambda line: self.complaints.append(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._see(request.url))

    def _see(self, url: str) -> None:
        if not url.startswith((f"{self.admin}/", "blob:")):
            self.complaints.append(f"asked {url}")

    def open(self, page: str = "overview") -> Page:
        self.page.goto(f"{self.admin}/dashboard/#/{page}")
        return self.page

    def is_live(self) -> None:
        expect(self.page.locator(".connection")).to_have_text("live")


@contextlib.contextmanager
def view(browser: Browser, admin: str, size: str = "wide", theme: Any = "light") -> Iterator[View]:
    width, height = SIZES[size]
    with contextlib.closing(browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)) as context:
        yield View(context, admin)


#: What a page has when it has been filled.
FILLED = {
    "overview": "[data-figure=requests] strong:not(:text('–'))",
    "routes": "main tbody tr",
    "threads": ".time-line li",
    "requests": ".unit:text('in the queue')",
    "deliveries": ".unit:text('deliver')",
    "connections": "main tbody tr",
    "upstreams": "main tbody tr:has-text('refused')",
    "locks": "main tbody tr",
    "caches": "main tbody tr",
    "memory": "main dd:text('ready')",
    "logs": ".unit:text('is info')",
    "configuration": "main tbody tr",
}


@pytest.mark.parametrize(("size", "theme"), [("wide", "light"), ("wide", "dark"), ("narrow", "light"), ("phone", "dark")])
def test_every_page_is_filled_and_fits(site: Site, chromium: Browser, size: str, theme: str) -> None:
    folder = os.environ.get("MAITRED_TEST_SCREENSHOTS")
    # Two of the four have every size and every colour.
    is_looked_at = AXE.exists() and (size, theme) in [("wide", "light"), ("phone", "dark")]
    found: list[str] = []
    with view(chromium, site.admin, size, theme) as own:
        page = own.open()
        own.is_live()
        for name in PAGES:
            own.open(name)
            expect(page.locator(FILLED[name]).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the window"
            if folder:
                page.screenshot(path=Path(folder) / f"{name}-{size}-{theme}.png", full_page=True)
            if is_looked_at:
                found += [f"{name}: {line}" for line in violations(page)]
        assert found == []
        assert own.complaints == []


def violations(page: Page) -> list[str]:
    """What axe-core finds wrong by WCAG 2, levels A and AA."""
    # As a script of the driver: the page's own policy would not load it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"() => {{ {AXE.read_text()} }}")
    run = "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']})"
    result = page.evaluate(run)
    return [f"{each['id']} {node['html'][:200]}" for each in result["violations"] for node in each["nodes"]]


def test_pages_were_looked_at() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not there: scripts/dashboard .build/tools gets it if npm is there; names and contrast were not looked at")


def test_an_address_leads_where_its_words_say(site: Site, chromium: Browser) -> None:
    with view(chromium, site.admin) as own:
        page = own.open("pools")
        expect(page.get_by_role("heading", name="Pools and threads", exact=True)).to_be_visible()
        own.open("nonsense")
        expect(page.get_by_text("There is no page 'nonsense'.")).to_be_visible()
        expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
        assert own.complaints == []


def test_the_page_counts_what_was_sent(site: Site, chromium: Browser) -> None:
    with view(chromium, site.admin) as own:
        page = own.open()
        own.is_live()
        site.load(3)
        expect(page.locator("[data-figure=requests] .below")).to_have_text(f"{sum(site.sent.values()):,} since the start")
        expect(page.locator("[data-figure=errors] .below")).to_have_text(f"{site.sent['/fails']:,} since the start")
        own.open("routes?sort=requests&filter=user")
        row = page.locator("tbody tr")
        expect(row).to_have_count(1)
        expect(row.locator("[data-title=Requests]")).to_have_text(f"{site.sent['/user/7/orders']:,}")
        row.get_by_role("link", name="GET /user/*/orders").click()
        expect(page.get_by_role("heading", name="GET /user/*/orders")).to_be_visible()
        expect(page.locator(".page > .unit")).to_contain_text(f"{site.sent['/user/7/orders']} requests")
        expect(page.get_by_role("cell", name="in the application")).to_be_visible()
        # The keyboard leads to the content.
        page.reload()
        own.is_live()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        # A tab that nobody sees follows nothing.
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator(".connection")).to_have_text("paused")
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        own.is_live()
        assert own.complaints == []


def counts_shown(page: Page, place: str) -> dict[str, int]:
    """The requests of each route, from its table, which is open at `place`."""
    page.goto(place)
    expect(page.locator("main tbody tr").first).to_be_visible()
    rows = page.locator("main tbody tr").evaluate_all(
        "rows => rows.map(row => [row.querySelector('th').innerText.trim(), row.querySelector('[data-title=Requests]').innerText])"
    )
    return {name: int(count.replace(",", "")) for name, count in rows}


def test_page_snapshot_and_load_have_the_same_numbers(site: Site, chromium: Browser, tmp_path: Path) -> None:
    def taken(name: str) -> tuple[str, dict[str, Any]]:
        """A snapshot as a file, and what is in it."""
        command = [MAITRED, "ctl", "--socket", "ctl.sock", "snapshot", str(tmp_path / name)]
        subprocess.run(command, cwd=site.folder, env=environment_for({}), timeout=PATIENCE, check=True, capture_output=True)
        text = (tmp_path / name).read_text()
        block = text.partition('<script type="application/json" id="snapshot">')[2].partition("</script>")[0]
        return f"file://{tmp_path / name}", json.loads(block)["answers"]["stats"]

    loading = threading.Thread(target=site.load, args=(8,))
    loading.start()
    under_load = taken("busy.html")
    loading.join(PATIENCE)
    at_the_end = taken("end.html")
    with contextlib.closing(chromium.new_context(offline=True)) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "blob:", "data:")) else None)
        for address, stats in (under_load, at_the_end):
            page.goto(f"{address}#/overview")
            expect(page.locator("[data-figure=requests] .below")).to_have_text(f"{stats['requests']:,} since the start")
            expect(page.locator("[data-figure=errors] .below")).to_have_text(f"{stats['errors']:,} since the start")
            assert counts_shown(page, f"{address}#/routes") == {route["name"]: route["requests"] for route in stats["routes"]}
        assert complaints == []
    with view(chromium, site.admin) as own:
        assert counts_shown(own.page, f"{site.admin}/dashboard/#/routes") == {route["name"]: route["requests"] for route in at_the_end[1]["routes"]}
    assert at_the_end[1]["requests"] == sum(site.sent.values())
    assert next(route["requests"] for route in at_the_end[1]["routes"] if route["name"] == "GET /user/*/orders") == site.sent["/user/7/orders"]


def test_markup_is_text_and_stacks_are_shown(site: Site, chromium: Browser) -> None:
    with view(chromium, site.admin) as own:
        page = own.open("requests")
        own.is_live()
        site.begin(MARKUP)
        expect(page.locator("th", has_text=f"GET {MARKUP}")).to_be_visible()
        own.open("threads")
        row = page.get_by_role("row").filter(has_text=MARKUP)
        expect(row.locator(".state")).to_have_text("busy")
        row.get_by_role("button", name="Stack of").click()
        expect(page.locator("pre")).to_contain_text("wait_for_the_other")
        workers = page.get_by_role("table", name="Processor by role").get_by_role("row").filter(has_text="worker")
        expect(workers.locator("[data-title=Now]")).to_contain_text("%")
        assert site.server.fetch("/go").status == 200
        site.sent["/go"] += 1
        for thread in site.waiting:
            thread.join(PATIENCE)
        own.open("overview")
        expect(page.locator("[data-figure=requests] .below")).to_have_text(f"{sum(site.sent.values()):,} since the start")
        own.open("routes?filter=waits")
        expect(page.locator("tbody tr")).to_have_count(1)
        assert page.locator("main img").count() == 0 and page.title() == "Routes · maitred"
        assert own.complaints == []


def test_what_is_changed_from_the_page(site: Site, chromium: Browser) -> None:
    with view(chromium, site.admin) as own, contextlib.closing(site.server.connect()) as client:
        page = own.open("requests")
        page.get_by_role("button", name="Turn the dispatch trace on").click()
        page.get_by_role("dialog").get_by_role("button", name="Turn on").click()
        expect(page.get_by_role("button", name="Turn the dispatch trace off")).to_be_visible()
        assert site.server.fetch("/slow").status == 200
        site.sent["/slow"] += 1
        traces = page.get_by_role("table", name="How the last requests got their threads")
        expect(traces.get_by_role("row").filter(has_text="GET /slow").locator(".spans")).to_be_visible()
        own.open("configuration?filter=client-rate")
        page.get_by_role("button", name="Change client-rate").click()
        page.get_by_label("New value").fill("many")
        page.keyboard.press("Enter")
        expect(page.locator("#told .bad")).to_contain_text("client-rate")
        page.get_by_role("button", name="Change client-rate").click()
        page.get_by_label("New value").fill("900000")
        page.keyboard.press("Enter")
        expect(page.locator("td .value")).to_have_text("900000")
        page.get_by_label("Path or URL").fill("/live/x")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("dd", has_text="ASGI live.py:app")).to_be_visible()
        # A client that takes nothing.
        client.request("GET", "/live/large")
        site.sent["/live/large"] += 1
        own.open("deliveries")
        end = page.get_by_role("button", name="End the delivery")
        end.click()
        page.get_by_role("dialog").get_by_role("button", name="End it").click()
        expect(end).to_have_count(0)
        # One that the server refuses is a line in the browser's console, too.
        assert [line for line in own.complaints if "400" not in line] == []


def test_who_has_no_token_sees_nothing_and_other_origins_change_nothing(chromium: Browser, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    options = ("--admin", "127.0.0.1:0", "--admin-token-file", str(token), "--workers", "2")
    site = Site(tmp_path, *options)
    try:
        with view(chromium, site.admin) as own:
            page = own.open()
            page.get_by_label("Token").fill("wrong")
            assert page.evaluate("document.querySelector('.sign-in').scrollWidth <= document.querySelector('.sign-in').clientWidth")
            assert not AXE.exists() or violations(page) == []
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("alert")).to_contain_text("not the token")
            page.get_by_label("Token").fill(TOKEN)
            page.keyboard.press("Enter")
            own.is_live()
            own.open("memory")
            expect(page.get_by_role("table", name="Workers").locator("tbody tr")).to_have_count(2)
            # With the cookie and without what only our page knows.
            refused = page.evaluate("fetch('../log-level', {method: 'POST', body: '{\"level\": \"debug\"}'}).then((answer) => answer.status)")
            assert refused == 403
            cookie = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
            csrf = site.ask("/dashboard/session", Cookie=cookie)[1]["csrf"]
            shown = {"Cookie": cookie, "X_CSRF_Token": csrf}
            body = b'{"level": "debug"}'
            assert site.ask("/log-level", "POST", body, Origin="http://elsewhere.example", **shown)[0] == 403
            assert site.ask("/log-level", "POST", body, Origin=site.admin, **shown)[0] == 200
            own.open("logs")
            expect(page.get_by_text("is debug")).to_be_visible()
            page.get_by_role("button", name="Sign out").click()
            expect(page.get_by_label("Token")).to_be_visible()
            assert site.ask("/dashboard/session", Cookie=cookie)[0] == 401
    finally:
        site.server.kill()


EVERYWHERE = ["/", "/stats", "/metrics", "/dashboard/", "/dashboard/main.js", "/dashboard/session", "/dashboard/feed?of=stats", "/dashboard/snapshot"]


def test_other_hosts_proxies_and_sites_get_nothing(site: Site, chromium: Browser) -> None:
    for path in EVERYWHERE:
        # What a name sends that was made to lead here (DNS rebinding), and a proxy.
        assert site.ask(path, Host="evil.example")[0] == 403, path
        assert site.ask(path, X_Forwarded_For="192.0.2.1")[0] == 403, path
        assert site.ask(path, Origin="http://evil.example")[0] == 403, path
    level = site.ask("/settings")[1]
    body = b'{"level": "debug"}'
    for fields in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Cookie": "a=1"}):
        assert site.ask("/log-level", "POST", body, **fields)[0] == 403, fields
    with contextlib.closing(chromium.new_context()) as context:
        page = context.new_page()
        # A page of the site that is served here is another origin, too.
        page.goto(f"http://127.0.0.1:{site.server.port}/static/a.css")
        sent = page.evaluate("address => fetch(address, {method: 'POST', mode: 'no-cors', body: 'level=debug'}).then(() => 'sent')", f"{site.admin}/log-level")
        read = page.evaluate("address => fetch(address).then(() => 'read', () => 'refused')", f"{site.admin}/stats")
        assert (sent, read) == ("sent", "refused")
    assert site.ask("/settings")[1] == level


def test_another_machine_needs_the_token(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        with contextlib.suppress(OSError):
            outward.connect(("192.0.2.1", 9))
        address = outward.getsockname()[0]
    if address.startswith(("127.", "0.")):
        pytest.skip("this machine has no other address")
    (tmp_path / "app.py").write_text(WSGI)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", "--admin", f"{address}:0"]
    refused = subprocess.run(command, cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2 and "--admin-token-file" in refused.stderr
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    site = Site(tmp_path, "--admin", f"{address}:0", "--admin-token-file", str(token))
    try:
        for path in EVERYWHERE:
            if not path.startswith("/dashboard/m") and path != "/dashboard/":
                assert site.ask(path)[0] == 401, path
                assert site.ask(path, Authorization="Bearer wrong")[0] == 401, path
        assert site.ask("/log-level", "POST", b'{"level": "debug"}')[0] == 401
        assert site.ask("/stats", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert site.ask("/stats", Authorization=f"Bearer {TOKEN}", X_Forwarded_For="192.0.2.1")[0] == 200
    finally:
        site.server.kill()


def test_a_server_that_was_away_is_followed_again(chromium: Browser, tmp_path: Path) -> None:
    first = Site(tmp_path, "--admin", "127.0.0.1:0")
    second = None
    try:
        with view(chromium, first.admin) as own:
            page = own.open()
            own.is_live()
            first.server.stop(signal.SIGTERM)
            expect(page.locator(".banner")).to_contain_text("No answer from the server since")
            port = urllib.parse.urlsplit(first.admin).port
            second = Site(tmp_path, "--admin", f"127.0.0.1:{port}")
            own.is_live()
            second.load(1)
            expect(page.locator("[data-figure=requests] .below")).to_have_text("32 since the start")
    finally:
        first.server.kill()
        if second:
            second.server.kill()


#: What other queries answer, of servers that have them.
FURTHER: dict[str, Any] = {
    "finding": {"cause": "slow-route", "sentence": "GET /<i>slow</i> takes long.", "next": "Look at its spans.", "route": "GET /slow", "pool": None},
    "history?last=5m&resolution=1s": {
        "on": True,
        "resolution_seconds": 1,
        "start": 1_700_000_000,
        "intervals": 3,
        "figures": {
            "requests": [10, None, 20], "requests_2xx": [10, None, 19], "requests_5xx": [0, None, 1], "errors": [0, None, 1],
            "covered_seconds": [1, None, 2], "p50_seconds": [0.01, None, 0.02], "p99_seconds": [0.4, None, 0.5], "run_seconds": [0.1, None, 0.4],
            "queue": [0, None, 3], "threads_busy": [2, None, 4], "threads_idle": [2, None, 0], "memory_bytes": [1 << 24, None, 1 << 25],
        },
    },
    "configuration": {"configuration": [{"name": "max-threads", "value": "6", "from": "command line"}, {"name": "queue", "value": None, "from": "default"}]},
    "memory": {"limit_bytes": 1 << 30, "processes": [{"process": "server", "pid": 7, "resident_bytes": 1 << 24}]},
    "logs?last=200": {
        "access_log_goes_to": "access.log",
        "access_log": [{"line": "127.0.0.1 GET /<img src=x onerror=document.title=1> 200"}],
        "error_log": [{"time": "2023-11-14T22:13:20.5Z", "level": "error", "line": "2023-11-14T22:13:20.5Z error 5a-01 <img src=x onerror=document.title=1>"}],
    },
    "recent": {
        "slow": [{"ended": "2023-11-14T22:13:20.5Z", "status": 200, "method": "GET", "target": "/<b>", "total_seconds": 3.0, "queue_seconds": 1.0,
                  "run_seconds": 2.0, "route": "GET /*", "id": "5a-01"}],
        "failed": [],
    },
}


def test_a_snapshot_shows_the_same_and_asks_nobody(site: Site, chromium: Browser) -> None:
    names = ["stats", "status", "pools", "active", "all", "threads", "traces", "locks", "caches", "connections", "deliveries", "settings"]
    answers = {name: site.ask(f"/{name}")[1] for name in names} | FURTHER
    data = json.dumps({"taken": 1_700_000_002, "answers": answers}).replace("<", "\\u003c")

    def with_snapshot(route: Route) -> None:
        text = route.fetch().text()
        block = f'<script type="application/json" id="snapshot">{data}</script>\n<script type="module"'
        route.fulfill(body=text.replace('<script type="module"', block), content_type="text/html; charset=utf-8")

    with view(chromium, site.admin) as own:
        asked: list[str] = []
        own.page.on("request", lambda request: asked.append(request.url) if request.resource_type in ("fetch", "xhr", "eventsource") else None)
        own.page.route("**/dashboard/", with_snapshot)
        page = own.open()
        expect(page.locator(".banner")).to_contain_text("A snapshot of Nov")
        expect(page.locator(".finding")).to_contain_text("GET /<i>slow</i> takes long.")
        chart = page.locator("[data-chart=requests]")
        # Twenty in two seconds.
        expect(chart.locator(".values li", has_text="2xx")).to_have_text("2xx 9.50")
        chart.get_by_role("button", name="Requests in a table").click()
        expect(chart.locator("tbody tr")).to_have_count(3)
        with page.expect_download() as saved:
            chart.get_by_role("button", name="Save Requests in CSV").click()
        lines = Path(saved.value.path()).read_text().splitlines()
        assert lines[0] == "time,2xx,3xx,4xx,5xx,none" and lines[1].startswith("2023-11-14T22:13:20.000Z,10,")
        assert page.get_by_role("button", name="Save snapshot").is_disabled()
        own.open("threads")
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.get_by_role("button", name="Stacks of all").is_disabled()
        own.open("configuration")
        expect(page.get_by_role("row").filter(has_text="command line")).to_be_visible()
        own.open("memory")
        expect(page.get_by_role("row").filter(has_text="16.0 MiB")).to_be_visible()
        own.open("requests")
        spans = page.get_by_role("row").filter(has_text="GET /<b>").locator(".spans")
        expect(spans).to_have_attribute("aria-label", "queue 1.00 s (33 %), run 2.00 s (67 %)")
        page.get_by_role("link", name="5a-01").click()
        expect(page.locator(".log li")).to_have_count(1)
        expect(page.locator(".log li[data-level=error]")).to_contain_text("5a-01 <img src=x onerror=document.title=1>")
        page.get_by_label("Request id or text").fill("GET /<img")
        expect(page.locator(".log li[data-level]")).to_have_count(0)
        expect(page.locator(".log li")).to_contain_text("127.0.0.1 GET /<img src=x")
        assert page.locator("main img").count() == 0 and page.title() == "Logs · maitred"
        assert asked == [] and own.complaints == []
