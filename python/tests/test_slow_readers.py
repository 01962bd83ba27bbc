"""Readers that do not read: their responses wait in files, and the application goes on."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server

MIB = 1 << 20
#: More than the buffers of two sockets hold.
LENGTH = 50 * MIB

BLOCKS = """
import hashlib

def blocks():
    for number in range(800):
        yield hashlib.sha256(b"%d" % number).digest() * 2048
"""

WSGI = BLOCKS + """
seen = []

class Body:
    def __init__(self, fails_at=None):
        self.fails_at = fails_at

    def __iter__(self):
        for number, block in enumerate(blocks()):
            if number == self.fails_at:
                raise ValueError("half way")
            yield block
        seen.append("made")

    def close(self):
        seen.append("closed")

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/seen":
        body = " ".join(seen).encode()
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]
    write = start_response("200 OK", [("Content-Type", "application/octet-stream")])
    if path == "/generator":
        return Body()
    if path == "/failing":
        return Body(fails_at=400)
    if path == "/write":
        for block in blocks():
            write(block)
        seen.append("made")
        return []
    if path == "/list":
        return [b"".join(blocks())]
    return list(blocks())
"""

ASGI = BLOCKS + """
seen = []

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/seen":
        await send({"type": "http.response.body", "body": " ".join(seen).encode()})
    elif scope["path"] == "/list":
        await send({"type": "http.response.body", "body": b"".join(blocks())})
    else:
        for block in blocks():
            await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body"})
        seen.append("made")
"""


def expected() -> bytes:
    names: dict[str, Callable[[], object]] = {}
    exec(BLOCKS, names)  # The same bytes.
    return b"".join(names["blocks"]())  # type: ignore[arg-type]


def ask(server: Server, path: str) -> tuple[socket.socket, http.client.HTTPResponse]:
    """Asks and reads the head only."""
    peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    response = http.client.HTTPResponse(peer)
    response.begin()
    return peer, response


def until(what: str, is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


def open_in(server: Server, folder: Path) -> int:
    """The files of a folder that the server has open."""
    found = 0
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            found += os.readlink(descriptor).startswith(str(folder))
        except FileNotFoundError:
            continue
    return found


@pytest.mark.parametrize("path", ["/generator", "/write", "/list", "/blocks"])
def test_a_reader_that_does_not_read_keeps_no_thread(serve: Serve, tmp_path: Path, path: str) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    # The validator allows no write().
    server = serve("--max-threads", "1", "--spool", str(spool), "--response-budget", "1m", source=WSGI, checked=False)
    peer, response = ask(server, path)
    with peer:
        # With the only thread there is.
        made = server.fetch("/seen").body
        assert made == {"/generator": b"made closed", "/write": b"made"}.get(path, b"")
        until("it is in a file", lambda: open_in(server, spool) > 0)
        assert list(spool.iterdir()) == []
        assert response.read() == expected()
    until("the files are closed", lambda: open_in(server, spool) == 0)


@pytest.mark.parametrize("path", ["/stream", "/list"])
def test_an_asgi_application_goes_on_too(serve_asgi: Serve, tmp_path: Path, path: str) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    server = serve_asgi("--spool", str(spool), "--response-budget", "1m", source=ASGI)
    peer, response = ask(server, path)
    with peer:
        if path == "/stream":
            until("it has gone on", lambda: server.fetch("/seen").body == b"made")
        until("it is in a file", lambda: open_in(server, spool) > 0)
        assert response.read() == expected()
    until("the files are closed", lambda: open_in(server, spool) == 0)


def test_a_generator_that_fails_half_way_shows_the_cut_behind_all_it_made(serve: Serve) -> None:
    server = serve("--max-threads", "1", source=WSGI)
    peer, response = ask(server, "/failing")
    with peer:
        server.wait_for("the response was cut: the application raised ValueError: half way")
        assert server.fetch("/seen").body == b"closed"
        with pytest.raises(http.client.IncompleteRead) as caught:
            response.read()
        assert caught.value.partial == expected()[: LENGTH // 2]


def test_a_generator_is_closed_when_its_reader_has_gone(serve: Serve, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    # With no room in files it waits for its reader.
    server = serve("--max-threads", "2", "--spool", str(spool), "--response-file", "1m", source=WSGI)
    peer, _ = ask(server, "/generator")
    until("it is in a file", lambda: open_in(server, spool) > 0)
    assert server.fetch("/seen").body == b""
    peer.close()
    until("it is closed, and was not made to its end", lambda: server.fetch("/seen").body == b"closed")
    until("the files are closed", lambda: open_in(server, spool) == 0)


def test_where_files_cannot_grow_the_application_waits(serve: Serve) -> None:
    server = serve("--max-threads", "2", source=WSGI)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (MIB, MIB))
    peer, response = ask(server, "/generator")
    with peer:
        server.wait_for(r"cannot be kept in the spool folder \(--spool\): File too large")
        assert server.fetch("/seen").body == b""
        assert response.read() == expected()
    until("it has gone on", lambda: server.fetch("/seen").body == b"made closed")


def test_without_a_writer_a_slow_reader_keeps_its_thread(serve: Serve) -> None:
    server = serve("--listen", "127.0.0.1:0,writer=off", "--max-threads", "2", source=WSGI)
    server.wait_for("without a writer")
    peer, response = ask(server, "/generator")
    with peer:
        half = response.read(LENGTH // 2)
        assert server.fetch("/seen").body == b"", "it is not made ahead of its reader"
        assert half + response.read() == expected()
    until("it has gone on", lambda: server.fetch("/seen").body == b"made closed")


def test_limits_are_set_while_the_server_runs(serve: Serve, tmp_path: Path) -> None:
    spool, control = tmp_path / "spool", tmp_path / "ctl"
    spool.mkdir()
    server = serve("--max-threads", "1", "--spool", str(spool), "--response-file", "0", "--control", str(control),
                   source=WSGI)
    ctl = [str(Path(server.command([])[0])), "ctl", "set", "response-file", "1g", "--socket", str(control)]
    said = subprocess.run(ctl, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "response-file 0 -> 1g" in said.stdout
    peer, response = ask(server, "/generator")
    with peer:
        assert server.fetch("/seen").body == b"made closed"
        assert response.read() == expected()
