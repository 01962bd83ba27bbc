"""wsgi.file_wrapper (PEP 3333, "Optional Platform-Specific File Handling")."""

from __future__ import annotations

import gzip
import http.client
from pathlib import Path

import pytest
from conftest import Serve, Server

CONTENT = bytes(range(256)) * 4096

SOURCE = '''
import gzip, io, os, tempfile, threading
from urllib.parse import parse_qs
from wsgiref.validate import validator

LOG = []

class Logged:
    """What is closed is written down, whatever it is."""
    def __init__(self, file):
        self.file = file
    def read(self, size):
        return self.file.read(size)
    def close(self):
        self.file.close()

def temporary():
    file = tempfile.NamedTemporaryFile()
    with open("data", "rb") as data:
        file.write(data.read())
    file.seek(0)
    file.write(b"new")
    return file

def pipe():
    reading, writing = os.pipe()
    def fill():
        with open("data", "rb") as data, open(writing, "wb") as out:
            out.write(data.read())
    threading.Thread(target=fill).start()
    return open(reading, "rb")

OPEN = {
    "buffered": lambda: open("data", "rb"),
    "raw": lambda: open("data", "rb", buffering=0),
    "random": lambda: open("data", "r+b"),
    "temporary": temporary,
    "memory": lambda: io.BytesIO(open("data", "rb").read()),
    "wrapped": lambda: Logged(open("data", "rb")),
    "gzip": lambda: gzip.open("data.gz", "rb"),
    "pipe": pipe,
    "proc": lambda: open("/proc/self/cmdline", "rb"),
    "text": lambda: open("data", "r", encoding="latin-1"),
    "empty": lambda: open("/dev/null", "rb"),
}

def answer(environ, start_response):
    query = {key: value[0] for key, value in parse_qs(environ["QUERY_STRING"]).items()}
    if "log" in query:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [" ".join(LOG).encode()]
    file = OPEN[query["kind"]]()
    if "skip" in query:
        file.read(int(query["skip"]))
    if "seek" in query:
        file.seek(int(query["seek"]))
    if "written" in query:
        file.seek(0)
        file.write(query["written"].encode())
        file.seek(0)
    if "closed" in query:
        file.close()
    def close(of=file.close, key=query.get("key")):
        LOG.append(key or "")
        of()
    if query["kind"] not in ("raw",):
        file.close = close
    headers = [("Content-Type", "application/octet-stream")]
    if "declared" in query:
        headers.append(("Content-Length", query["declared"]))
    write = start_response("200 OK", headers)
    if "first" in query:
        write(query["first"].encode())
    return environ["wsgi.file_wrapper"](file, 1000)

checked = validator(answer)

def app(environ, start_response):
    return (checked if environ["PATH_INFO"] == "/checked" else answer)(environ, start_response)
'''


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Server:
    (tmp_path / "data").write_bytes(CONTENT)
    (tmp_path / "data.gz").write_bytes(gzip.compress(CONTENT))
    # What the validator returns is no file_wrapper any more: it is inside, under /checked.
    return serve(source=SOURCE, checked=False)


PATHS = ["/checked", "/raw"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["buffered", "raw", "random", "memory", "wrapped", "gzip", "pipe"])
def test_the_whole_content(server: Server, path: str, kind: str) -> None:
    assert server.fetch(f"{path}?kind={kind}").body == CONTENT


@pytest.mark.parametrize("kind", ["buffered", "raw", "random"])
def test_a_file_of_the_system_has_a_length(server: Server, kind: str) -> None:
    assert server.fetch(f"/raw?kind={kind}").headers["Content-Length"] == str(len(CONTENT))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["buffered", "raw", "random", "memory", "gzip"])
def test_from_the_position_of_the_object(server: Server, path: str, kind: str) -> None:
    # A buffered object has read ahead: its position is not that of the descriptor.
    assert server.fetch(f"{path}?kind={kind}&skip=10").body == CONTENT[10:]
    assert server.fetch(f"{path}?kind={kind}&seek=1000000").body == CONTENT[1000000:]
    assert server.fetch(f"{path}?kind={kind}&seek={len(CONTENT)}").body == b""


@pytest.mark.parametrize("kind", ["random", "temporary"])
def test_what_was_written_and_not_flushed_is_there(server: Server, kind: str) -> None:
    assert server.fetch(f"/raw?kind={kind}&written=other").body == b"other" + CONTENT[5:]


@pytest.mark.parametrize("kind", ["buffered", "memory"])
def test_a_declared_length_is_how_much_is_sent(server: Server, kind: str) -> None:
    reply = server.fetch(f"/raw?kind={kind}&skip=10&declared=100")
    assert (reply.headers["Content-Length"], reply.body) == ("100", CONTENT[10:110])
    assert server.fetch(f"/raw?kind={kind}&declared=0").body == b""


def test_a_declared_length_that_the_file_has_not_is_a_cut(server: Server) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        server.fetch(f"/raw?kind=buffered&declared={len(CONTENT) + 1}")
    assert caught.value.partial == CONTENT


def test_an_empty_file_of_proc_is_read(server: Server) -> None:
    assert b"maitred" in server.fetch("/raw?kind=proc").body
    assert server.fetch("/raw?kind=empty").body == b""


def test_text_is_refused(server: Server) -> None:
    assert server.fetch("/raw?kind=text").status == 500
    server.wait_for("yielded str, not bytes")


def test_a_closed_file_is_an_error(server: Server) -> None:
    assert server.fetch("/raw?kind=buffered&closed=1").status == 500
    server.wait_for("closed file")


def test_write_goes_before_the_file(server: Server) -> None:
    assert server.fetch("/raw?kind=buffered&first=before").body == b"before" + CONTENT


def test_head_has_the_length_and_no_body(server: Server) -> None:
    reply = server.fetch("/raw?kind=buffered", "HEAD")
    assert (reply.headers["Content-Length"], reply.body) == (str(len(CONTENT)), b"")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("kind", ["buffered", "memory", "gzip"])
def test_the_file_is_closed(server: Server, kind: str, method: str, path: str) -> None:
    connection = server.connect()
    connection.request(method, f"{path}?kind={kind}&key=one")
    connection.getresponse().read()
    # The answer is complete before the file is closed, and another thread may take the next request.
    for _ in range(1000):
        connection.request("GET", "/raw?log=1")
        closed = connection.getresponse().read()
        if closed:
            break
    assert closed == b"one"
    connection.close()
