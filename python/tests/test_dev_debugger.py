"""breakpoint() in development: a debugger at the terminal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Reply
from test_terminal import Terminal

WSGI = """
def app(environ, start_response):
    number = 6
    breakpoint()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % number]
"""

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        number = 6
        breakpoint()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"%d" % number})
"""


class Screen:
    """What a terminal shows, as it comes."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal, self.shown = terminal, ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self.terminal.own, 65536):
                with self._changed:
                    self.shown += part.decode(errors="replace")
                    self._changed.notify_all()

    def wait_for(self, pattern: str) -> re.Match[str]:
        expression = re.compile(pattern)
        with self._changed:
            self._changed.wait_for(lambda: expression.search(self.shown), PATIENCE)
            found = expression.search(self.shown)
        assert found, self.shown
        return found


@pytest.fixture(params=[WSGI, ASGI], ids=["wsgi", "asgi"])
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    (tmp_path / "app.py").write_text(request.param)
    terminal = Terminal([MAITRED, "dev", "app.py", "--listen", "127.0.0.1:0"], tmp_path)
    yield terminal
    terminal.first.send_signal(signal.SIGKILL)
    terminal.first.wait()
    terminal.hang_up()


def test_a_debugger_reads_from_the_terminal_and_the_request_goes_on(terminal: Terminal) -> None:
    screen = Screen(terminal)
    port = int(screen.wait_for(r"http://127\.0\.0\.1:(\d+)")[1])
    answers: list[bytes] = []

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/")
        answers.append(Reply(connection.getresponse()).body)

    asking = threading.Thread(target=ask)
    asking.start()
    screen.wait_for(r"\(Pdb\) ")
    terminal.type("number = 7")
    terminal.type("continue")
    asking.join(PATIENCE)
    assert answers == [b"7"], screen.shown
    os.write(terminal.own, b"\x03")
    assert terminal.first.wait(PATIENCE) in (0, 130), screen.shown
