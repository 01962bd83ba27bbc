"""An ASGI application is imported on the thread of its loop, and may set handlers of signals there."""

from __future__ import annotations

import signal

import pytest
from conftest import Serve

SOURCE = """
import asyncio, os, signal, sqlite3, threading

database = sqlite3.connect(":memory:")
database.execute("create table seen (what)")
local = threading.local()
local.value = "of the import"
imported = threading.get_ident()
asyncio.get_event_loop_policy().get_event_loop()
at_import = signal.signal(signal.SIGUSR2, lambda *_: print("SIGUSR2 of the import", flush=True))

async def startup():
    assert threading.get_ident() == imported
    database.execute("insert into seen values ('lifespan')")
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, print, "SIGWINCH of the lifespan on", threading.get_ident() == imported)
    loop.add_signal_handler(signal.SIGTERM, lambda: print("SIGTERM of the lifespan", flush=True))
    loop.add_signal_handler(signal.SIGCHLD, print, "never")
    assert loop.remove_signal_handler(signal.SIGCHLD) and not loop.remove_signal_handler(signal.SIGCHLD)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await startup()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    assert threading.get_ident() == imported
    if scope["path"] == "/handle":
        signal.signal(signal.SIGCONT, lambda number, _: print("SIGCONT of a request", threading.get_ident() == imported, flush=True))
        previous = signal.signal(signal.SIGINT, lambda *_: print("SIGINT of a request", flush=True))
        assert callable(previous) or previous == signal.SIG_DFL, previous
    if scope["path"] == "/wrong":
        try:
            signal.signal(signal.SIGKILL, print)
        except OSError as error:
            text = type(error).__name__
    else:
        text = database.execute("select what from seen").fetchone()[0] + " " + local.value
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": text.encode()})
"""


def test_import_lifespan_and_requests_share_a_thread(serve_asgi: Serve, loop: str) -> None:
    server = serve_asgi("--loop", loop, source=SOURCE, PYTHONUNBUFFERED="1")
    assert server.fetch("/").body == b"lifespan of the import"
    assert server.fetch("/wrong").body == b"OSError"
    server.process.send_signal(signal.SIGUSR2)
    server.wait_for("SIGUSR2 of the import")
    server.process.send_signal(signal.SIGWINCH)
    server.wait_for("SIGWINCH of the lifespan on True")
    assert server.fetch("/handle").status == 200
    server.process.send_signal(signal.SIGCONT)
    server.wait_for("SIGCONT of a request True")
    assert server.stop() == 0
    assert "SIGTERM of the lifespan" in server.said and "drained" in server.said


def test_a_handler_of_a_request_is_beside_the_servers(serve_asgi: Serve) -> None:
    server = serve_asgi(source=SOURCE)
    assert server.fetch("/handle").status == 200
    assert server.stop(signal.SIGINT) == 0
    assert "SIGINT of a request" in server.said and "drained" in server.said


@pytest.mark.parametrize("arguments", [("--interface", "asgi"), ("--interface", "auto"), ("--workers", "2")])
def test_however_it_is_started(serve_asgi: Serve, arguments: tuple[str, ...]) -> None:
    server = serve_asgi(*arguments, source=SOURCE)
    assert server.fetch("/").body == b"lifespan of the import"


def test_a_second_application_is_imported_on_the_same_thread(serve_asgi: Serve, tmp_path: object) -> None:
    server = serve_asgi("--mount", "/other=app.py:app", source=SOURCE)
    assert server.fetch("/other/").body == server.fetch("/").body == b"lifespan of the import"


def test_what_looks_like_asgi_and_is_not_is_served(serve: Serve) -> None:
    source = """
async def unused(scope, receive, send):
    pass

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"WSGI"]
"""
    server = serve(source=source)
    assert server.fetch("/").body == b"WSGI"
    assert server.stop() == 0
