"""Sessions of Socket.IO by long polling: several workers cannot have them, and the log says so."""

from __future__ import annotations

import pytest
from conftest import Serve

SOURCE = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]
"""


@pytest.mark.parametrize(("workers", "lines"), [("2", range(1, 3)), ("1", range(1))])
def test_long_polling_with_several_workers_is_told_once_by_each(serve: Serve, workers: str, lines: range) -> None:
    server = serve("--workers", workers, source=SOURCE)
    for path in ["/?transport=polling", "/?EIO=4&transport=websocket"]:
        assert server.fetch(path).status == 200
    for number in range(6):
        assert server.fetch(f"/socket.io/?EIO=4&transport=polling&t={number}").status == 200
    assert server.stop() == 0
    assert server.said.count("Socket.IO by long polling") in lines
    assert server.said.count("/socket.io/: Socket.IO by long polling") in lines
