"""A large file and a large upload: the server's memory does not know how large.

256 MiB down and 64 MiB up; with ``MAITRED_TEST_LARGE=1`` 20 GiB of a sparse file, and an upload of 8 GiB, which the spool folder has to take.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server

MIB = 1 << 20
FULL = os.environ.get("MAITRED_TEST_LARGE") == "1"
DOWN, UP = (20 << 30, 8 << 30) if FULL else (256 * MIB, 64 * MIB)
#: How much the server may grow meanwhile.
GROWTH = 32_000_000

APP = """
import os

def app(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"]
    read, last = 0, b""
    while block := body.read(1 << 20):
        read, last = read + len(block), block
    text = b"%d %s" % (read, last[-4:])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
"""

pytestmark = pytest.mark.timeout(1800 if FULL else 180)


def peak(server: Server) -> int:
    return server.memory("VmHWM")


def answer(peer: socket.socket) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(peer)
    response.begin()
    assert response.status == 200
    return response


def test_a_sparse_file(serve: Serve, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    with (files / "large").open("wb") as file:
        file.truncate(DOWN - 4)
        file.seek(DOWN - 4)
        file.write(b"last")
    server = serve("--static", f"/files={files}", source=APP)
    assert server.fetch("/").body == b"0 "
    before = server.settled_memory()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"GET /files/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        response = answer(peer)
        assert response.headers["Content-Length"] == str(DOWN)
        length, tail = 0, b""
        while part := response.read(MIB):
            length += len(part)
            tail = (tail + part[-4:])[-4:]
    assert (length, tail) == (DOWN, b"last")
    assert peak(server) - before < GROWTH


@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_upload(serve: Serve, is_chunked: bool) -> None:
    if shutil.disk_usage(tempfile.gettempdir()).free < 2 * UP:
        pytest.skip(f"the folder for temporary files has no room for {UP >> 20} MiB")
    server = serve("--max-body", str(UP), source=APP)
    assert server.fetch("/", "POST", b"small").body == b"5 mall"
    before = server.settled_memory()
    block = bytes(MIB - 4) + b"last"
    with socket.create_connection(("127.0.0.1", server.port), 10 * PATIENCE) as peer:
        framing = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % UP
        peer.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n\r\n" % framing)
        for _ in range(UP // MIB):
            peer.sendall(b"%x\r\n%s\r\n" % (MIB, block) if is_chunked else block)
        if is_chunked:
            peer.sendall(b"0\r\n\r\n")
        assert answer(peer).read() == b"%d last" % UP
    assert peak(server) - before < GROWTH
