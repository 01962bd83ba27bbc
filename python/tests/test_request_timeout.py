"""Requests that take longer than the server waits for a response: 504, and what the application hears of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from conftest import Serve

LIMIT = ("--request-timeout", "0.3", "--max-threads", "1")

# `/stands` waits in a call of C until somebody opens the FIFO for writing; `/stands-on` then goes on in Python.
WSGI = """
import os
import time
import maitred
os.mkfifo("door")

def spin():
    # Not in the try block itself: CPython 3.13.0 does not count the jump of an empty loop to it.
    while True:
        pass

def app(environ, start_response):
    path = environ["PATH_INFO"]
    try:
        if path in ("/stands", "/stands-on"):
            open("door").close()
        if path == "/stands-on":
            # The client may have its 504 before this thread is told.
            patience = time.monotonic() + 20
            while time.monotonic() < patience:
                pass
        if path in ("/computes", "/catches"):
            spin()
    except maitred.RequestTimeout as error:
        print("caught", repr(error), flush=True)
        if path != "/catches":
            raise
    start_response("200 OK", [("Content-Type", "text/plain")])
    print(f"answers {path}\\n", end="", flush=True)
    return [b"through"]
"""

ASGI = """
import asyncio
door = asyncio.Event()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/listens":
        while (message := await receive())["type"] == "http.request":
            pass
        print("heard", message["type"], flush=True)
        return
    if scope["path"] == "/waits":
        await door.wait()
    if scope["path"] == "/opens":
        door.set()
    try:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"through"})
    except OSError as error:
        print("cannot send:", type(error).__name__, flush=True)
"""


def test_a_thread_that_is_lost_is_replaced_until_it_returns(serve: Serve, tmp_path: Path) -> None:
    server = serve(*LIMIT, "--max-lost-threads", "1", "--metrics-path", "/metrics", source=WSGI)

    def lost_and_threads() -> list[bytes]:
        return re.findall(rb'^maitred_pool_threads(?:_lost)?{pool="default"} (\d+)$', server.fetch("/metrics").body, re.M)

    assert server.fetch("/stands").status == 504
    assert server.fetch("/other").body == b"through", "another thread"
    assert lost_and_threads() == [b"2", b"1"]
    assert server.fetch("/stands").status == 504
    assert server.fetch("/third").status == 504, "as many are lost as are replaced"
    # Open for reading, too, and until both have passed: one opening for writing lets every reader pass that is there, and
    # a second one would wait for a reader for ever.
    door = os.open(tmp_path / "door", os.O_RDWR)
    server.wait_for("answers /stands\n(.*\n)*.*answers /stands\n")
    os.close(door)
    assert server.fetch("/then").body == b"through"
    # One of the two ends after its answer has left.
    assert any(lost_and_threads() == [b"1", b"0"] for _ in range(1000))
    assert server.stop() == 0, server.said
    assert "answers /third" not in server.said


def test_an_interrupted_request_is_logged_with_its_place(serve: Serve) -> None:
    # The whole stack is looked at: without the validator's frames.
    server = serve(*LIMIT, "--interrupt", source=WSGI, checked=False)
    assert server.fetch("/computes").status == 504
    server.wait_for(r"caught RequestTimeout\(\)\n")
    entry = server.wait_for(r"GET /computes: the application raised an exception\n(.*\n)+?  maitred\.RequestTimeout\n")
    assert re.search(r'File ".*app\.py", line \d+, in app\n', entry[0])
    # The thread serves on, and nothing of it is left there.
    assert server.fetch("/then").body == b"through"
    assert server.stop() == 0, server.said


def test_an_application_may_catch_the_interruption(serve: Serve) -> None:
    server = serve(*LIMIT, "--interrupt", source=WSGI)
    assert server.fetch("/catches").status == 504
    server.wait_for("answers /catches\n")
    assert server.fetch("/then").body == b"through"
    assert server.stop() == 0, server.said
    assert "Traceback" not in server.said


def test_a_call_of_c_is_interrupted_when_it_returns(serve: Serve, tmp_path: Path) -> None:
    server = serve(*LIMIT, "--interrupt", source=WSGI)
    assert server.fetch("/stands-on").status == 504
    (tmp_path / "door").write_text("")
    server.wait_for(r"GET /stands-on: the application raised an exception\n")
    assert server.fetch("/then").body == b"through"
    assert server.stop() == 0, server.said


def test_an_asgi_application_is_told_as_if_the_client_had_left(serve_asgi: Serve) -> None:
    server = serve_asgi("--request-timeout", "0.3", "--interrupt", source=ASGI)
    assert server.fetch("/listens").status == 504
    server.wait_for("heard http.disconnect\n")
    assert server.fetch("/waits").status == 504
    assert server.fetch("/opens").status == 200
    server.wait_for("cannot send: ClientDisconnected\n")
    assert server.fetch("/then").body == b"through"
    assert server.stop() == 0, server.said
    assert "Traceback" not in server.said
