"""The demo site: a WSGI application of the standard library and maitred only.

Run it from the repository with ``make run``, or::

    maitred examples/demo/app.py --mount /live=examples/demo/live.py --static /static=examples/demo/static --admin 127.0.0.1:8001

`live.py` is an ASGI application beside it, which shows what the threads do; `load.py` is what its button begins. The guest book is an SQLite file in the folder for temporary files; the environment variable
DEMO_DATABASE names another one.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import service
from maitred import http
from maitred.instrument import dbapi
from pages import CALLS, FORM, INDEX, NOT_MOUNTED, STREAM_END, STREAM_START, UPLOAD, page
from upload import NoFile, file_of

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, Iterable[bytes]]

DATABASE = Path(os.environ.get("DEMO_DATABASE") or Path(tempfile.gettempdir()) / "maitred-demo.sqlite3")

#: Its connections serve all threads. The limit is for a whole call, in seconds.
CLIENT = http.Client(timeout=5.0)

#: The newest entries a page of the guest book shows.
ENTRIES_SHOWN = 50
#: The longest name and text that are kept, in characters; longer ones are cut.
NAME_LIMIT, TEXT_LIMIT = 60, 1000
#: A form of these limits with every character percent-encoded; a longer one is refused.
FORM_LIMIT = 3 * 4 * (NAME_LIMIT + TEXT_LIMIT) + 100
#: The longest time /slow may keep an application thread, in seconds.
SLOW_LIMIT = 30.0
#: What /download sends: 50 MB in blocks of 64 KiB.
DOWNLOAD_SIZE, DOWNLOAD_BLOCK = 50_000_000, 64 * 1024
#: Blocks of /stream and the pause between them in seconds.
STREAM_STEPS, STREAM_PAUSE = 20, 0.25


def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The application: finds the page for the path and answers with it."""
    path = environ["PATH_INFO"] or "/"
    methods = ROUTES.get(path)
    if methods is None:
        status, headers, body = html(page("Not found", "<p>There is no such page.</p>"), "404 Not Found")
    else:
        method = "GET" if environ["REQUEST_METHOD"] == "HEAD" else environ["REQUEST_METHOD"]
        answer = methods.get(method)
        if answer is None:
            allowed = ", ".join(["HEAD", *methods] if "GET" in methods else methods)
            text = page("Not allowed", f"<p>This page takes {allowed}.</p>")
            status, headers, body = html(text, "405 Method Not Allowed")
            headers.append(("Allow", allowed))
        else:
            status, headers, body = answer(environ)
    start_response(status, headers)
    return body


def html(text: str, status: str = "200 OK") -> Answer:
    body = text.encode()
    return status, [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))], [body]


def query(environ: Environ, name: str, default: str) -> str:
    return parse_qs(environ.get("QUERY_STRING", "")).get(name, [default])[-1]


def index(environ: Environ) -> Answer:
    return html(page("maitred", INDEX))


def live(environ: Environ) -> Answer:
    return html(page("Live", NOT_MOUNTED))


# The guest book.


def database() -> closing[sqlite3.Connection]:
    """A connection for one request: SQLite's may not move from thread to thread."""
    # Its statements and their time are in statistics and in the field Server-Timing.
    connection = dbapi(sqlite3.connect(DATABASE, timeout=10))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, at REAL NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL)"
    )
    return closing(connection)


def guest_book(environ: Environ) -> Answer:
    with database() as connection:
        entries = connection.execute(
            "SELECT at, name, text FROM entry ORDER BY id DESC LIMIT ?", (ENTRIES_SHOWN,)
        ).fetchall()
    return html(page("Guest book", FORM + "".join(entry(*row) for row in entries)))


def entry(at: float, name: str, text: str) -> str:
    date = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
    lines = escape(text).replace("\n", "<br>")
    return f'<article><h2>{escape(name)}</h2><time>{date} UTC</time><p>{lines}</p></article>'


def sign(environ: Environ) -> Answer:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > FORM_LIMIT:
        return html(page("Too long", "<p>This entry is too long.</p>"), "413 Content Too Large")
    form = parse_qs(environ["wsgi.input"].read(length).decode("utf-8", "replace"), max_num_fields=10)
    name = form.get("name", [""])[0].strip()[:NAME_LIMIT]
    text = form.get("text", [""])[0].strip().replace("\r\n", "\n")[:TEXT_LIMIT]
    if not name or not text:
        return html(page("Guest book", "<p class=error>Name and text, please.</p>" + FORM), "400 Bad Request")
    with database() as connection, connection:
        connection.execute("INSERT INTO entry (at, name, text) VALUES (?, ?, ?)", (time.time(), name, text))
    # 303: the browser fetches the book with GET, and reloading it does not sign again.
    return "303 See Other", [("Location", "/guestbook"), ("Content-Length", "0")], []


# A page that asks another service.


def calls(environ: Environ) -> Answer:
    variant = query(environ, "service", "")
    if not variant:
        return html(page("Calls", CALLS))
    if variant not in service.VARIANTS:
        text = f"<p class=error>There is no such service.</p>{CALLS}"
        return html(page("Calls", text), "400 Bad Request")
    try:
        response = CLIENT.get(service.address() + service.VARIANTS[variant])
        answer = response.json()
    except http.HTTPError as error:
        text = f"<p class=error>{escape(str(error))}</p>{CALLS}"
        return html(page("Calls", text), "502 Bad Gateway")
    took = response.timings
    text = (
        f"<dl><dt>{escape(answer['dish'])}</dt><dd>{answer['price']:.2f}</dd>"
        f"<dt>Asked</dt><dd>{escape(service.address())}, status {response.status}</dd>"
        f"<dt>Took</dt><dd>{1000 * (took['total'] or 0):.1f} ms, {'by a kept' if took['reused'] else 'by a new'} connection</dd></dl>"
    )
    return html(page("Calls", text + CALLS))


# Pages that take their time or their bytes.


def slow(environ: Environ) -> Answer:
    try:
        seconds = float(query(environ, "seconds", "3"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= SLOW_LIMIT:
        text = page("Slow", f"<p>seconds must be a number from 0 to {SLOW_LIMIT:g}.</p>")
        return html(text, "400 Bad Request")
    if environ["REQUEST_METHOD"] != "HEAD":
        time.sleep(seconds)
    text = f"<p>This thread has slept for {seconds:g} s. The other pages went on meanwhile.</p>"
    return html(page("Slow", text))


def stream(environ: Environ) -> Answer:
    def blocks() -> Iterator[bytes]:
        yield page("Stream", STREAM_START, end=False).encode()
        if environ["REQUEST_METHOD"] == "HEAD":
            return
        for step in range(1, STREAM_STEPS + 1):
            time.sleep(STREAM_PAUSE)
            share = 100 * step // STREAM_STEPS
            yield f'<li style="--share: {share}%">block {step} of {STREAM_STEPS}</li>\n'.encode()
        yield STREAM_END.encode()

    return "200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store")], blocks()


def download(environ: Environ) -> Answer:
    def blocks() -> Iterator[bytes]:
        block = bytes(range(256)) * (DOWNLOAD_BLOCK // 256)
        for start in range(0, DOWNLOAD_SIZE, DOWNLOAD_BLOCK):
            yield block[: DOWNLOAD_SIZE - start]

    headers = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", 'attachment; filename="maitred-50MB.bin"'),
        ("Content-Length", str(DOWNLOAD_SIZE)),
    ]
    return "200 OK", headers, [] if environ["REQUEST_METHOD"] == "HEAD" else blocks()


def upload_form(environ: Environ) -> Answer:
    return html(page("Upload", UPLOAD))


def upload(environ: Environ) -> Answer:
    digest, size, start = hashlib.sha256(), 0, time.perf_counter()
    try:
        name, blocks = file_of(environ["wsgi.input"], environ.get("CONTENT_TYPE", ""))
        for block in blocks:
            digest.update(block)
            size += len(block)
    except NoFile as error:
        return html(page("Upload", f"<p class=error>{escape(str(error))}</p>{UPLOAD}"), "400 Bad Request")
    took = 1000 * (time.perf_counter() - start)
    text = (
        f"<dl><dt>File</dt><dd>{escape(name) or 'the body of the request'}</dd>"
        f"<dt>Size</dt><dd>{size:,} bytes</dd>"
        f"<dt>SHA-256</dt><dd><code>{digest.hexdigest()}</code></dd>"
        f"<dt>Read in</dt><dd>{took:.1f} ms</dd></dl>"
    )
    return html(page("Upload", text))


ROUTES: dict[str, dict[str, Callable[[Environ], Answer]]] = {
    "/": {"GET": index},
    "/live/": {"GET": live},
    "/guestbook": {"GET": guest_book, "POST": sign},
    "/calls": {"GET": calls},
    "/slow": {"GET": slow},
    "/stream": {"GET": stream},
    "/download": {"GET": download},
    "/upload": {"GET": upload_form, "POST": upload},
}
