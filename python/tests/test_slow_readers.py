"""Readers that do not read: their responses wait in files, and the application goes on."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server, open_files

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
    environ["maitred.label"] = "for " + path
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
    if path == "/file":
        return environ["wsgi.file_wrapper"](open("large", "rb"))
    return list(blocks())
"""

ASGI = BLOCKS + """
seen = []

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if "maitred.label" in scope["extensions"]:
        await send({"type": "maitred.label", "label": "for " + scope["path"]})
    if scope["path"] == "/seen":
        await send({"type": "http.response.body", "body": " ".join(seen).encode()})
    elif scope["path"] == "/list":
        await send({"type": "http.response.body", "body": b"".join(blocks())})
    elif scope["path"] == "/fresh":
        await send({"type": "http.response.body", "body": b"x" * (8 << 20)})
        seen.append("made")
    elif scope["path"] == "/parts":
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        seen.append("made")
        await send({"type": "http.response.body", "body": b"x" * (8 << 20), "more_body": True})
        await send({"type": "http.response.body"})
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
    return sum(link.startswith(str(folder)) for link in open_files(server.process.pid).values())


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


def test_a_complete_body_of_an_asgi_application_waits_in_a_file(serve_asgi: Serve, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    server = serve_asgi("--spool", str(spool), "--response-budget", "1m", source=ASGI)
    peer, response = ask(server, "/list")
    with peer:
        until("it is in a file", lambda: open_in(server, spool) > 0)
        assert response.read() == expected()
    until("the files are closed", lambda: open_in(server, spool) == 0)


@pytest.mark.parametrize(("path", "length"), [("/fresh", 8 * MIB), ("/parts", 8 * MIB + 1)])
def test_bodies_that_an_event_loop_makes_faster_than_the_disk_takes_them_stay_within_bounds(
    serve_asgi: Serve, path: str, length: int
) -> None:
    server = serve_asgi("--response-budget", "8m", source=ASGI)
    server.fetch("/seen")
    before = server.settled_memory()
    with contextlib.ExitStack() as open_ones:
        for _ in range(60):
            peer = open_ones.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        until("all are made", lambda: server.fetch("/seen").body.count(b"made") == 60)
        # All together are 480 MiB. The budget and half of it, one that is being made and one that is being written are 28;
        # the allocator keeps what was freed between bodies in heaps of 64.
        assert server.memory("VmHWM") - before < 160 * MIB
        response = http.client.HTTPResponse(peer)
        response.begin()
        assert response.read() == b"x" * length


def test_a_stream_of_an_asgi_application_awaits_its_reader(serve_asgi: Serve, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    server = serve_asgi("--spool", str(spool), "--response-budget", "1m", source=ASGI)
    peer, response = ask(server, "/stream")
    with peer:
        half = response.read(LENGTH // 2)
        assert server.fetch("/seen").body == b"", "what is not read is not made"
        assert half + response.read() == expected()
    assert open_in(server, spool) == 0


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
    peer, response = ask(server, "/generator")
    until("it is in a file", lambda: open_in(server, spool) > 0)
    assert server.fetch("/seen").body == b""
    response.close()
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


@pytest.mark.parametrize("path", ["/generator", "/list", "/blocks", "/file"])
def test_deliveries_are_listed_with_what_the_application_calls_them(serve: Serve, tmp_path: Path, path: str) -> None:
    control = tmp_path / "ctl"
    (tmp_path / "large").write_bytes(bytes(LENGTH))
    server = serve("--control", str(control), source=WSGI)
    peer, _ = ask(server, path)
    with peer:
        check_listed(server, control, path)


@pytest.mark.parametrize("path", ["/stream", "/list"])
def test_and_those_of_an_asgi_application(serve_asgi: Serve, tmp_path: Path, path: str) -> None:
    control = tmp_path / "ctl"
    server = serve_asgi("--control", str(control), source=ASGI)
    peer, _ = ask(server, path)
    with peer:
        check_listed(server, control, path)


def check_listed(server: Server, control: Path, path: str) -> None:
    def listed() -> list[dict[str, object]]:
        command = [server.command([])[0], "ctl", "deliveries", "--json", "--socket", control]
        said = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
        return [each for each in json.loads(said.stdout)["deliveries"] if each["path"] == path]

    until("it is listed by its name", lambda: [each["label"] for each in listed()] == [f"for {path}"])
    (delivery,) = listed()
    assert (delivery["method"], delivery["route"], delivery["pool"]) == ("GET", f"GET {path}", "default")
    assert str(delivery["thread"]).startswith("maitred-")


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
def test_a_file_is_submitted_by_a_field_of_the_response(serve: Serve, tmp_path: Path, interface: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "page").write_bytes(b"0123456789")
    source = {
        "wsgi": """
def app(environ, start_response):
    field = environ["QUERY_STRING"].partition("=")
    start_response("200 OK", [("Content-Type", "text/x-mine"), (field[0], field[2])])
    return [b"my own", b" body"]
""",
        "asgi": """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    name, _, value = scope["query_string"].partition(b"=")
    headers = [(b"content-type", b"text/x-mine"), (name, value)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"my own", "more_body": True})
    await send({"type": "http.response.body", "body": b" body"})
""",
    }[interface]
    server = serve("--sendfile", f"/inside={folder}", source=source, checked=False)
    for field in (f"x-sendfile={folder}/page", "X-Accel-Redirect=/inside/page"):
        reply = server.fetch(f"/?{field}", Range="bytes=2-4")
        assert (reply.status, reply.body, reply.headers["Content-Type"]) == (206, b"234", "text/x-mine")
        assert reply.headers["X-Sendfile"] is None and reply.headers["X-Accel-Redirect"] is None
    assert server.fetch("/?x-other=1").body == b"my own body"
    reply = server.fetch("/?x-sendfile=/etc/passwd")
    assert reply.status == 500 and b"root" not in reply.body
    server.wait_for(r"X-Sendfile names /etc/passwd, which is in none of the folders of --sendfile")


SENDS_PATHS = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    path = scope["query_string"].decode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-what", b"path")]})
    try:
        await send({"type": "http.response.pathsend", "path": path})
    except Exception as error:
        await send({"type": "http.response.body", "body": f"{type(error).__name__}: {error}".encode()})
"""


def test_an_asgi_application_sends_a_path(serve_asgi: Serve, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"0123456789")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    server = serve_asgi(source=SENDS_PATHS)
    reply = server.fetch(f"/?{tmp_path}/page")
    assert (reply.body, reply.headers["Content-Length"], reply.headers["X-What"]) == (b"0123456789", "10", "path")
    assert server.fetch(f"/?{tmp_path}/page", "HEAD").headers["Content-Length"] == "10"
    assert server.fetch(f"/?{tmp_path}/empty").body == b""
    for path, error in {
        f"{tmp_path}/missing": b"FileNotFoundError",
        str(tmp_path): b"no regular file",
        f"{tmp_path}/fifo": b"no regular file",
        "page": b"ValueError: the path of http.response.pathsend must be absolute",
    }.items():
        assert error in server.fetch(f"/?{path}").body, path
