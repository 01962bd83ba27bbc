"""The pictures in README.md and the guide are of today's page.

`make pictures` takes them again: it sets MAITRED_TEST_PICTURES, and then the second test runs a shop under load for a minute and a half. The sum
of the page's files is kept beside the pictures; without the variable it is compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
import time
from pathlib import Path

import pytest
from conftest import HERE
from playwright.sync_api import Browser, Page
from test_dashboard import Site, chromium, view

__all__ = ["chromium"]

ROOT = HERE.parents[1]
PICTURES = ROOT / "docs/pictures"
ASSETS = ROOT / "crates/maitred-dashboard/assets"
SUM = PICTURES / "page.sha256"

SHOP = """
import random, sqlite3, time
from maitred.instrument import dbapi

def app(environ, start_response):
    path = environ["PATH_INFO"]
    kind = path.split("/")[1]
    wait = {"": 0.003, "product": 0.008, "cart": 0.015, "search": 0.04, "report": 1.2, "checkout": 0.09}.get(kind)
    if wait is None:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"no such page"]
    if kind in ("product", "cart", "report"):
        with dbapi(sqlite3.connect(":memory:")) as connection:
            for _ in range(4):
                connection.execute("SELECT 1").fetchall()
    time.sleep(random.lognormvariate(0, 0.4) * wait)
    if kind == "checkout" and random.random() < 0.02:
        raise RuntimeError("the payment service does not answer")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"x" * random.randrange(1_000, 30_000)]
"""

PAGES = ["overview", "threads"]
THEMES = ["light", "dark"]


def sum_of_the_page() -> str:
    files = sorted(path for path in ASSETS.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(ASSETS)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@pytest.mark.skipif("MAITRED_TEST_PICTURES" in os.environ, reason="they are being taken")
def test_pictures_are_of_todays_page() -> None:
    assert SUM.read_text().strip() == sum_of_the_page(), "the page has changed since the pictures were taken: make pictures"
    for text in ("README.md", "docs/guides/dashboard.md"):
        assert "pictures/overview-" in (ROOT / text).read_text(), text
    for name in PAGES:
        for theme in THEMES:
            assert (PICTURES / f"{name}-{theme}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("MAITRED_TEST_PICTURES" not in os.environ, reason="make pictures takes them: a minute and a half of load")
def test_take_the_pictures(tmp_path: Path, chromium: Browser) -> None:
    site = Site(tmp_path, "--admin", "127.0.0.1:0", "--max-threads", "8", source=SHOP)
    stop = threading.Event()
    trouble = threading.Event()
    chances = random.Random(7)
    often = ["/", "/", "/product/{}", "/product/{}", "/product/{}", "/cart/{}", "/search", "/checkout", "/static/a.css", "/none"]

    def browse() -> None:
        connection = site.server.connect()
        while not stop.is_set():
            connection.request("GET", chances.choice(often).format(chances.randrange(1000)))
            connection.getresponse().read()
            # More and fewer visitors, over half a minute.
            stop.wait(chances.uniform(0.05, 0.15) * (1.6 + (time.monotonic() % 30) / 30))
        connection.close()

    def ask_for_reports() -> None:
        trouble.wait()
        connection = site.server.connect()
        while not stop.is_set():
            connection.request("GET", f"/report/{chances.randrange(9)}")
            connection.getresponse().read()
        connection.close()

    threads = [threading.Thread(target=browse) for _ in range(10)] + [threading.Thread(target=ask_for_reports) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        PICTURES.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:

            def opened(name: str) -> list[tuple[Path, Page]]:
                pages = []
                for theme in THEMES:
                    own = stack.enter_context(view(chromium, site.admin, theme=theme))
                    own.page.set_viewport_size({"width": 1280, "height": 1060})
                    own.open(name)
                    own.is_live()
                    pages.append((PICTURES / f"{name}-{theme}.png", own.page))
                return pages

            # What the charts show takes its time; the time line of threads begins when its page is opened.
            stop.wait(40)
            pages = opened("threads")
            stop.wait(40)
            trouble.set()
            stop.wait(12)
            pages += opened("overview")
            stop.wait(6)
            for path, page in pages:
                page.screenshot(path=path)
        SUM.write_text(f"{sum_of_the_page()}\n")
    finally:
        stop.set()
        trouble.set()
        for thread in threads:
            thread.join()
        site.server.kill()
