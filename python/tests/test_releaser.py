"""What the server holds of the application for slow readers, and gives up without the interpreter."""

from __future__ import annotations

import socket
import time

from conftest import PATIENCE, Serve

#: Each takes longer to send than the kernel's buffers hold.
BODY = 3 << 20
READERS = 32

SOURCE = f"""
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"x" * {BODY}]
"""


def test_bodies_that_have_left_are_given_back_without_another_request(serve: Serve) -> None:
    server = serve("--response-budget", "1g", source=SOURCE, checked=False)
    before = server.settled_memory()
    readers = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(READERS)]
    for reader in readers:
        reader.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert reader.recv(1) == b"H"
    assert server.memory() - before > READERS * BODY // 2, "they are held"
    for reader in readers:
        while reader.recv(1 << 20):
            pass
        reader.close()
    # Nobody asks the server for anything any more.
    deadline = time.monotonic() + PATIENCE
    while server.memory() - before > READERS * BODY // 4:
        assert time.monotonic() < deadline, f"{server.memory() - before} bytes are still held"
        time.sleep(0.05)
    assert server.stop() == 0
