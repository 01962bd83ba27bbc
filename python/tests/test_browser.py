"""A browser loads the demo, follows its links and signs its guest book.

Debian's Chromium, driven by Playwright, which never downloads a browser of its own. The browser opens connections ahead of
need, reuses them, asks conditionally on reload and cancels what it does not want: together what no HTTP client of a test does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Response, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo"
MAITRED = Path(sys.executable).with_name("maitred")

# Nothing here may reach beyond this machine: the flags turn off what Chromium does by itself.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running demo, without a final slash."""
    folder = tmp_path_factory.mktemp("demo")
    command = [MAITRED, DEMO / "app.py", "--mount", f"/live={DEMO / 'live.py'}", "--static", f"/static={DEMO / 'static'}", "--listen", "127.0.0.1:0"]
    environment = os.environ | {"DEMO_DATABASE": str(folder / "guestbook.sqlite3")}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            yield f"http://127.0.0.1:{port_announced_by(server)}"
            server.send_signal(signal.SIGTERM)
            rest, _ = server.communicate(timeout=30)
            assert server.returncode == 0, rest
        finally:
            server.kill()


def port_announced_by(server: subprocess.Popen[str]) -> int:
    """Reads the start-up lines up to the one that names the listener. Ends when the server does."""
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(r"127\.0\.0\.1:([1-9]\d*)", line):
            return int(found[1])
    pytest.fail(f"the server ended without naming a listener:\n{''.join(said)}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert executable, "Chromium is not installed (Debian package chromium); CHROMIUM names another place"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with contextlib.closing(chromium.new_context()) as context:
        page = context.new_page()
        page.set_default_timeout(20_000)
        yield page


class Record:
    """What the browser received and complained about while a page was open."""

    def __init__(self, page: Page) -> None:
        self.responses: list[Response] = []
        self.complaints: list[str] = []
        page.on("response", lambda response: self.responses.append(response))
        page.on("requestfailed", self._note_failed)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note_failed(self, request: Request) -> None:
        # What the browser itself gives up when it goes to another page; a server's fault has another name.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.url}: {request.failure}")

    def paths(self, kind: str) -> list[str]:
        return [urlsplit(response.url).path for response in self.responses if response.request.resource_type == kind]

    def refused(self) -> list[str]:
        return [f"{response.status} {response.url}" for response in self.responses if response.status >= 400]


def test_the_index_page_and_its_assets_load(site: str, page: Page) -> None:
    record = Record(page)
    page.goto(f"{site}/", wait_until="networkidle")
    assert page.title()
    assert record.complaints == []
    assert record.refused() == []
    assert record.paths("document") == ["/"]
    sheets = record.paths("stylesheet")
    assert sheets and all(path.startswith("/static/") for path in sheets)
    # Loaded is not yet applied: a style sheet of the wrong media type is received and ignored.
    assert page.evaluate("[...document.styleSheets].every(sheet => sheet.cssRules.length > 0)")
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_assets_are_validated_when_the_page_is_loaded_again(site: str, page: Page) -> None:
    page.goto(f"{site}/", wait_until="networkidle")
    sheet = page.evaluate("document.styleSheets[0].href")
    # "no-cache" sends the validator of the stored copy and hides the 304 from the page, which sees a 200 with the body.
    assert page.evaluate("async url => (await fetch(url, {cache: 'no-cache'})).status", sheet) == 200
    headers = page.evaluate("async url => Object.fromEntries((await fetch(url)).headers)", sheet)
    validated = page.request.get(sheet, headers={"If-None-Match": headers["etag"]})
    assert validated.status == 304
    assert validated.body() == b""


def test_others_stay_quick_while_three_requests_hang(site: str, page: Page) -> None:
    page.goto(f"{site}/live/")
    expect(page.locator("#hang")).to_be_enabled()
    page.locator("#hang").press("Enter")
    expect(page.locator("#threads .busy")).to_have_count(3)
    expect(page.locator("#wsgi, #file, #asgi")).to_have_text([re.compile(r"ms$")] * 3)
    expect(page.locator("#hung .over")).to_have_count(3, timeout=20_000)
    expect(page.locator("#hung")).not_to_contain_text("failed")


def test_every_page_the_index_links_to_is_there(site: str, page: Page) -> None:
    page.goto(f"{site}/")
    links = {urljoin(page.url, link) for link in page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")}
    ours = sorted(link for link in links if link.startswith(f"{site}/"))
    assert ours
    for link in ours:
        # HEAD: the download is large and the slow page's wait is not what is tested here.
        assert page.request.head(link, timeout=60_000).status == 200, link


def test_the_guest_book_is_signed(site: str, page: Page) -> None:
    record = Record(page)
    page.goto(f"{site}/")
    page.get_by_role("link", name=re.compile("guest book", re.IGNORECASE)).first.click()
    # Marks that show a fault in decoding the form or in escaping the page.
    entry = f"<b>Grüße</b> & 100 % + {uuid.uuid4().hex[:12]}"
    form = page.locator("form[method=post]")
    fields = form.locator("input[type=text], input:not([type]), textarea").all()
    assert fields
    for field in fields:
        field.fill(entry)
    with page.expect_navigation():
        form.locator("button, input[type=submit]").click()
    posted = [response for response in record.responses if response.request.method == "POST"]
    assert [response.status for response in posted] == [303]
    expect(page.locator("body")).to_contain_text(entry)
    page.reload()
    expect(page.locator("body")).to_contain_text(entry)
    assert len([response for response in record.responses if response.request.method == "POST"]) == 1
    assert record.complaints == []
    assert record.refused() == []


def test_the_download_arrives_whole(site: str, page: Page) -> None:
    page.goto(f"{site}/")
    with page.expect_download() as started:
        page.get_by_role("link", name=re.compile("download", re.IGNORECASE)).first.click()
    assert started.value.failure() is None
    assert Path(started.value.path()).stat().st_size == 50_000_000


def test_an_uploaded_file_reaches_the_application_unchanged(site: str, page: Page, tmp_path: Path) -> None:
    record = Record(page)
    file = tmp_path / "résumé.bin"
    file.write_bytes(os.urandom(3_000_000))
    page.goto(f"{site}/upload")
    page.locator("input[type=file]").set_input_files(file)
    with page.expect_navigation():
        page.locator("form[method=post] button").click()
    posted = [response for response in record.responses if response.request.method == "POST"]
    assert [response.status for response in posted] == [200]
    expect(page.locator("body")).to_contain_text(file.name)
    expect(page.locator("body")).to_contain_text(hashlib.sha256(file.read_bytes()).hexdigest())


def test_blocks_of_a_stream_are_shown_before_its_end(site: str, page: Page) -> None:
    page.goto(f"{site}/stream", wait_until="commit")
    first = page.locator("ol.stream li").first
    first.wait_for()
    assert page.evaluate("document.readyState") == "loading"
    expect(page.locator("body")).to_contain_text("That was all.", timeout=20_000)
