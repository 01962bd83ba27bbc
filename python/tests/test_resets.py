"""Clients that reset in the middle of a response, a hundred and more in each mode, or with MAITRED_LONG=1 thousands: nothing of them stays."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server
from test_slow_readers import open_in, until

RESETS, AT_ONCE, THREADS = (1000 if "MAITRED_LONG" in os.environ else 160), 8, 4
MIB = 1 << 20
#: Descriptors of an application thread: what the kernel tells of it.
OF_THREAD = 3
#: More than the server keeps in memory of a response, and than the kernel takes at once.
LENGTH = 2 * MIB
#: What so many clients may leave: one response in a hundred, but four at least.
GROWTH = max(RESETS // 100, 4) * LENGTH
#: An allocator keeps free pieces between those in use, and more of them when more was in use at once. What it keeps stops
#: to grow; responses that stay grow with each round.
ROUNDS = 5
#: What it may keep in all: eight responses and as many copies, for each of four threads.
MOST = THREADS * 2 * AT_ONCE * LENGTH

COMMON = f"""
import os

BLOCK = os.urandom(65536)
COUNT = {LENGTH} // len(BLOCK)
SHARED = BLOCK * COUNT
"""

WSGI = COMMON + """
def blocks():
    for _ in range(COUNT):
        yield BLOCK

def app(environ, start_response):
    path = environ["PATH_INFO"]
    headers = [("Content-Type", "text/plain")]
    if path == "/sendfile":
        headers.append(("X-Sendfile", os.path.abspath("files/large")))
    write = start_response("200 OK", headers)
    if path == "/page":
        return [b"page"]
    if path == "/shared":
        return [SHARED]
    if path == "/fresh":
        return [BLOCK * COUNT]
    if path in ("/generator", "/compressed"):
        return blocks()
    if path == "/write":
        for block in blocks():
            write(block)
        return []
    if path == "/wrapper":
        return environ["wsgi.file_wrapper"](open("files/large", "rb"))
    return list(blocks())
"""

ASGI = COMMON + """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    path = scope["path"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    if path == "/path":
        await send({"type": "http.response.pathsend", "path": os.path.abspath("files/large")})
    elif path in ("/stream", "/compressed"):
        for _ in range(COUNT):
            await send({"type": "http.response.body", "body": BLOCK, "more_body": True})
        await send({"type": "http.response.body"})
    else:
        await send({"type": "http.response.body", "body": b"page" if path == "/page" else BLOCK * COUNT})
"""

#: A reset at the end, whatever was read.
RESET = struct.pack("ii", 1, 0)


def reset(server: Server, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        coding = "Accept-Encoding: gzip\r\n" if path == "/compressed" else ""
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{coding}\r\n".encode())
        assert peer.recv(1024).startswith(b"HTTP/1.1 200 ")


def rounds(server: Server, path: str, count: int) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda _: reset(server, path), range(count)):
            pass


def descriptors(server: Server) -> int:
    return sum(1 for _ in Path(f"/proc/{server.process.pid}/fd").iterdir())


def check(start: Callable[..., Server], folder: Path, path: str, source: str) -> None:
    spool, files = folder / "spool", folder / "files"
    spool.mkdir()
    files.mkdir()
    (files / "large").write_bytes(os.urandom(LENGTH))
    server = start("--spool", str(spool), "--response-memory", "64k", "--static", f"/static={files}", "--sendfile",
                   f"/inside={files}", "--compress", "--max-threads", str(THREADS), source=source)
    assert len(server.fetch("/fresh").body) == LENGTH
    # What is used for the first time, and what threads keep, is there then.
    rounds(server, path, RESETS // 4)
    until("the files are closed", lambda: open_in(server, spool) == 0)
    # The cache takes the file when it is not new any more.
    before, used = descriptors(server) + (open_in(server, files / "large") == 0), [server.memory()]
    for _ in range(ROUNDS):
        rounds(server, path, RESETS)
        until("the files are closed", lambda: open_in(server, spool) == 0)
        # A file that was served stays open for a while, with each thread that has served it. A thread that is new has files of its own.
        until("descriptors are closed", lambda: descriptors(server) <= before + THREADS * (1 + OF_THREAD))
        used.append(server.memory())
        if used[-1] <= used[-2] + GROWTH:
            break
    else:
        pytest.fail(f"memory grows with each round: {[use // MIB for use in used]} MiB")
    assert used[-1] <= used[0] + MOST, [each // MIB for each in used]
    assert list(spool.iterdir()) == []
    assert server.fetch("/page").body == b"page"
    assert "panic" not in server.said and "Traceback" not in server.said


MODES = ["/shared", "/fresh", "/blocks", "/generator", "/write", "/wrapper", "/sendfile", "/compressed", "/static/large"]


@pytest.mark.parametrize("path", MODES)
def test_of_a_wsgi_application(serve: Serve, tmp_path: Path, path: str) -> None:
    # The validator allows no write(), and is slow.
    check(lambda *words, source: serve(*words, source=source, checked=False), tmp_path, path, WSGI)


@pytest.mark.parametrize("path", ["/fresh", "/stream", "/path", "/compressed"])
def test_of_an_asgi_application(serve_asgi: Serve, tmp_path: Path, path: str) -> None:
    check(serve_asgi, tmp_path, path, ASGI)
