"""A body that is complete while its application goes on: it leaves at once, and never waits for the application."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve

SOURCE = """
import os
os.mkfifo("door")
door = os.open("door", os.O_RDWR)

def blocks(path):
    yield path.encode() * 20
    if path == "/stays":
        os.read(door, 1)
    if path == "/more":
        yield b"too much"
    if path == "/fails":
        raise LookupError("behind the body")

def app(environ, start_response):
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(20 * len(path)))])
    return blocks(path)
"""


@pytest.mark.parametrize("threads", [1, 4])
def test_a_complete_body_leaves_while_its_application_goes_on(serve: Serve, tmp_path: Path, threads: int) -> None:
    server = serve("--min-threads", "1", "--max-threads", str(threads), "--stuck-after", "0", source=SOURCE)
    door = os.open(tmp_path / "door", os.O_RDWR)
    is_over = threading.Event()
    faults: list[object] = []

    def ask(path: str) -> None:
        peer = server.connect()
        while not is_over.is_set():
            peer.request("GET", path)
            body = peer.getresponse().read()
            if body != path.encode() * 20:
                faults.append((path, body))
            if path != "/quick":
                peer.close()

    crowd = [threading.Thread(target=ask, args=(path,)) for path in ["/quick"] * 6 + ["/more", "/fails"]]
    for each in crowd:
        each.start()
    try:
        peer = server.connect()
        for _ in range(30):
            peer.request("GET", "/stays")
            response = peer.getresponse()
            body = response.read()
            os.write(door, b"x")
            assert body == b"/stays" * 20
    finally:
        is_over.set()
        os.write(door, b"x")
        for each in crowd:
            each.join(PATIENCE)
        os.close(door)
    assert not faults
    server.wait_for("8 body bytes more than its response may have")
    server.wait_for("behind the body")
    assert server.stop() == 0
