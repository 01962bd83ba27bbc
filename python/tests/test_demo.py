"""The demo site, page by page."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest
from conftest import Server

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("demo")
    arguments = [str(DEMO / "app.py"), "--mount", f"/live={DEMO / 'live.py'}", "--static", f"/static={DEMO / 'static'}", "--server-timing", "--admin", "127.0.0.1:0"]
    server = Server(arguments, folder, {"DEMO_DATABASE": str(folder / "guests.sqlite3")})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


@pytest.mark.parametrize("path", ["/", "/live/", "/guestbook", "/calls", "/upload", "/slow?seconds=0", "/static/demo.css"])
def test_pages(demo: Server, path: str) -> None:
    reply = demo.fetch(path)
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/")
    assert int(reply.headers["Content-Length"]) == len(reply.body) > 0
    head = demo.fetch(path, "HEAD")
    assert (head.status, head.headers["Content-Length"]) == (200, reply.headers["Content-Length"])


def test_what_is_not_there_or_not_allowed(demo: Server) -> None:
    assert demo.fetch("/nothing").status == 404
    refused = demo.fetch("/slow", "POST", b"")
    assert (refused.status, refused.headers["Allow"]) == (405, "HEAD, GET")
    for seconds in ("nan", "-1", "31", "x"):
        assert demo.fetch(f"/slow?seconds={seconds}").status == 400


def test_the_live_page_shows_a_request_that_hangs_and_nobody_s_address(demo: Server) -> None:
    with ThreadPoolExecutor() as clients:
        hanging = clients.submit(demo.fetch, "/slow?seconds=2")
        requests: list[str | None] = []
        while "GET /slow" not in requests:
            assert not hanging.done(), "the page never showed it"
            reply = demo.fetch("/live/state")
            assert (reply.status, reply.headers["Cache-Control"]) == (200, "no-store")
            state = json.loads(reply.body)
            requests = [thread["request"] for thread in state["threads"]]
        assert state["queued"] == 0
        assert "127.0.0.1" not in json.dumps(state["threads"])
        assert demo.fetch("/guestbook").status == 200
        assert hanging.result().status == 200


def test_a_gentle_load_begins_and_ends_and_the_dashboard_is_named(demo: Server) -> None:
    page = re.search(r"(http://127\.0\.0\.1:\d+/dashboard/)  dashboard\n", demo.said)
    state = json.loads(demo.fetch("/live/state").body)
    assert page and (state["dashboard"], state["load"]) == (page[1], None)
    assert demo.fetch("/live/load").status == 405
    begun = demo.fetch("/live/load", "POST", b"")
    assert begun.status == 200 and 100 < json.loads(begun.body)["load"] <= 120
    requests: list[str | None] = []
    while "GET /slow" not in requests:
        state = json.loads(demo.fetch("/live/state").body)
        assert state["load"], "it is over, and nobody has seen it"
        requests = [thread["request"] for thread in state["threads"]]
    assert json.loads(demo.fetch("/live/load", "POST", b"").body) == {"load": None}
    assert json.loads(demo.fetch("/live/state").body)["load"] is None


def test_without_its_asgi_half_the_demo_says_how_to_start_it(serve) -> None:
    server = serve(str(DEMO / "app.py"))
    assert "--mount" in server.fetch("/live/").body.decode()


def test_an_entry_is_kept_and_escaped(demo: Server) -> None:
    form = {"name": "Zoë <i>", "text": "one & two\r\nthree</article>"}
    posted = demo.fetch(
        "/guestbook", "POST", urlencode(form).encode(), Content_Type="application/x-www-form-urlencoded"
    )
    assert (posted.status, posted.headers["Location"], posted.body) == (303, "/guestbook", b"")
    book = demo.fetch("/guestbook").body.decode()
    assert "Zoë &lt;i&gt;" in book
    assert "one &amp; two<br>three&lt;/article&gt;" in book


def test_the_guest_book_tells_what_its_database_takes(demo: Server) -> None:
    assert re.search(r'db;dur=\d+\.\d{3};desc="1 statement"', demo.fetch("/guestbook").headers["Server-Timing"])


@pytest.mark.parametrize("variant", ["quick", "slow"])
def test_a_page_asks_a_service_and_the_server_knows_how_long_that_took(demo: Server, variant: str) -> None:
    reply = demo.fetch(f"/calls?service={variant}")
    assert reply.status == 200 and "soup of the day" in reply.body.decode()
    call = re.search(r'outgoing;dur=(\d+\.\d{3});desc="1 call, slowest (http://127\.0\.0\.1:\d+)"', reply.headers["Server-Timing"])
    assert call and call[2] in reply.body.decode()
    # The slow one thinks for 600 ms.
    assert variant == "quick" or float(call[1]) >= 600
    # The dashboard asks the same.
    page = re.search(r"(http://127\.0\.0\.1:\d+)/dashboard/  dashboard\n", demo.said)
    assert page
    with urllib.request.urlopen(f"{page[1]}/upstreams") as answer:
        assert call[2] in [row["server"] for row in json.load(answer)["upstreams"]]


def test_a_service_that_is_not_there(demo: Server) -> None:
    assert demo.fetch("/calls?service=none").status == 400


def test_an_empty_and_an_endless_entry_are_refused(demo: Server) -> None:
    assert demo.fetch("/guestbook", "POST", b"name=a&text=+").status == 400
    assert demo.fetch("/guestbook", "POST", b"name=a&text=" + b"x" * 100_000).status == 413


def test_the_database_is_where_it_was_asked_for(serve, tmp_path: Path) -> None:
    server = serve(str(DEMO / "app.py"), DEMO_DATABASE=str(tmp_path / "own.sqlite3"))
    assert server.fetch("/guestbook", "POST", b"name=a&text=b").status == 303
    with sqlite3.connect(tmp_path / "own.sqlite3") as connection:
        assert connection.execute("SELECT name, text FROM entry").fetchall() == [("a", "b")]
    connection.close()


def test_the_download_is_whole(demo: Server) -> None:
    reply = demo.fetch("/download")
    assert reply.headers["Content-Length"] == "50000000"
    whole = (bytes(range(256)) * (50_000_000 // 256 + 1))[:50_000_000]
    assert hashlib.sha256(reply.body).digest() == hashlib.sha256(whole).digest()


def test_an_upload_is_measured(demo: Server) -> None:
    body = b"upload\n" * 100_000
    shown = demo.fetch("/upload", "POST", body).body.decode()
    assert "700,000 bytes" in shown
    assert hashlib.sha256(body).hexdigest() in shown


def test_the_file_of_a_form_is_measured_and_not_the_form(demo: Server) -> None:
    # It holds what looks like a separator, also where two reads meet, and ends with line breaks.
    file = b"--b\r\n\r\n--" + b"x" * 65_400 + b"\r\n--a" * 40_000 + b"\r\n\r\n"
    form = (
        b"--bound\r\nContent-Disposition: form-data; name=text\r\n\r\nfirst\r\n"
        b'--bound\r\nContent-Disposition: form-data; name=file; filename="<b>.bin"\r\n\r\n'
    )
    fields = {"Content_Type": "multipart/form-data; boundary=bound"}
    shown = demo.fetch("/upload", "POST", form + file + b"\r\n--bound--\r\n", **fields).body.decode()
    assert hashlib.sha256(file).hexdigest() in shown
    assert f"{len(file):,} bytes" in shown
    assert "&lt;b&gt;.bin" in shown
    for wrong in (b"", form, form + file, b"--bound--\r\n", b"--bound\r\nA: b\r\n\r\nx\r\n--bound--\r\n"):
        assert demo.fetch("/upload", "POST", wrong, **fields).status == 400


def test_the_stream_is_complete(demo: Server) -> None:
    reply = demo.fetch("/stream")
    assert reply.headers["Transfer-Encoding"] == "chunked"
    assert reply.body.count(b"<li ") == 20
    assert reply.body.rstrip().endswith(b"</html>")
