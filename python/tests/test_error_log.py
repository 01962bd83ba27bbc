"""What stands in the error log: entries that cannot be forged, lines of the application, deep tracebacks, logs that fail."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve

FORGED = r"x\n2026-01-01T00:00:00Z error forged\x1b[31m\x9b31m\u2028.\r\n"

APPLICATION = rf"""
import sys

def app(environ, start_response):
    if environ["PATH_INFO"] == "/raise":
        raise ValueError("{FORGED}")
    if environ["PATH_INFO"] == "/write":
        environ["wsgi.errors"].write("INFO: {FORGED}")
        environ["wsgi.errors"].flush()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]
"""

ASGI = f"""
async def app(scope, receive, send):
    if scope["type"] == "http":
        raise ValueError("{FORGED}")
"""

#: An entry: time, level, text.
ENTRY = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (error|warn|info|app) ")


def check_lines(said: str) -> list[str]:
    """The entries; every other line is indented, and nothing but line ends and tabs is a control character."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", said), said
    entries = []
    for line in said[said.index("\n2") + 1 :].split("\n")[:-1]:
        if ENTRY.match(line):
            entries.append(line)
        else:
            assert line.startswith("  "), line
    return entries


@pytest.mark.parametrize("source", [APPLICATION, ASGI], ids=["wsgi", "asgi"])
def test_a_traceback_cannot_forge_an_entry(serve: Serve, source: str) -> None:
    server = serve(source=source, checked=False)
    assert server.fetch("/raise").status == 500
    assert server.stop() == 0
    entries = check_lines(server.said)
    assert [entry for entry in entries if "GET /raise: the application raised an exception" in entry]
    assert "\n  ValueError: x\n  2026-01-01T00:00:00Z error forged\\x1b[31m\\x9b31m\\u2028.\n" in server.said


def test_lines_of_the_application_have_a_mark_of_their_own_and_cannot_forge_either(serve: Serve) -> None:
    server = serve(source=APPLICATION, checked=False)
    assert server.fetch("/write").body == b"done"
    server.wait_for("forged")
    assert server.stop() == 0
    texts = [line.split("Z ", 1)[1] for line in check_lines(server.said)]
    # Each line is an entry, so the second one has a time of its own in front.
    assert texts[:2] == ["app INFO: x", "app 2026-01-01T00:00:00Z error forged\\x1b[31m\\x9b31m\\u2028.\\x0d"]


DEEP = """
import sys, threading
sys.setrecursionlimit(60_000)
threading.stack_size(512 << 20)

def down(left):
    if left == 0:
        raise ValueError("at the bottom")
    down(left - 1)

def chain(left):
    try:
        if left:
            chain(left - 1)
        raise KeyError(left)
    except Exception as error:
        if left % 2:
            raise ValueError(left) from error
        raise ValueError(left)

def app(environ, start_response):
    if environ["PATH_INFO"] == "/long":
        raise ValueError("a" * 1_000_000 + "z")
    if environ["PATH_INFO"] == "/chain":
        chain(20)
    down(50_000)
"""


def test_a_deep_traceback_is_shown_by_its_two_ends(serve: Serve) -> None:
    server = serve(source=DEEP, checked=False)
    assert server.fetch("/deep").status == 500
    server.wait_for(r"\n  ValueError: at the bottom\n")
    assert re.search(r"\n    \[499\d\d frames are left out\]\n", server.said), server.said
    assert len(server.said) < 10_000 and server.said.count(", in app\n") == 1
    start = len(server.said)
    assert server.fetch("/chain").status == 500
    server.wait_for(r"\n  ValueError: 20\n", start)
    said = server.said[start:]
    assert "\n  [earlier exceptions are left out]\n" in said
    assert said.count("Traceback (most recent call last)") == 8
    assert said.count("The above exception was the direct cause of the following exception:") == 3
    assert said.count("During handling of the above exception, another exception occurred:") == 4
    start = len(server.said)
    assert server.fetch("/long").status == 500
    server.wait_for(r"\n  \[\d+ bytes are left out\]\n  a+z\n", start)
    assert len(server.said) - start < 150_000


STREAMS = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    headers = [(b"connection", b"keep-alive"), (b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"data: 1\\n\\n"})
"""


def test_a_field_of_the_connection_is_said_once_for_each_route(serve: Serve) -> None:
    server = serve(source=STREAMS, checked=False)
    for path in ["/events/1", "/events/2", "/other", "/events/3"]:
        assert "keep-alive" not in server.fetch(path).headers.values()
    assert server.stop() == 0
    said = re.findall(r" warn .*: GET (\S+) \[.*\]: the application set Connection", server.said)
    assert said == ["/events/1", "/other"], server.said


def test_an_access_log_that_is_lost_at_the_end_is_said(serve: Serve) -> None:
    server = serve("--access-log", "/dev/full", source=APPLICATION, checked=False)
    for _ in range(3):
        assert server.fetch("/").status == 200
    server.wait_for(r" error the access log cannot be written \(No space left on device")
    assert server.stop() == 0
    lost = r" error the access log could not be written to its end \(No space left on device.*\); 3 lines are lost\n"
    assert re.search(lost, server.said), server.said


def test_an_error_log_that_cannot_be_written_is_said_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APPLICATION)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
    command = [MAITRED, "app.py", "--listen", address, "--error-log", "/dev/full"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("maitred: the error log cannot be written (No space left on device"), first
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)
        assert re.match(r"maitred: the error log could not be written to its end \(No space .*\); \d+ lines are lost", rest)
    finally:
        process.kill()
        process.wait()
