"""Request bodies in memory and in the spool: what wsgi.input answers, what an upload costs, what a full disk does."""

from __future__ import annotations

import ast
import hashlib
import io
import random
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import HERE, PATIENCE, Serve, Server

MIB = 1024 * 1024
#: What wsgi.input reads from a file at once.
BUFFER = 64 * 1024

#: Answers with what a list of calls gave, an exception as its type.
CALLS = """
import ast, threading
from urllib.parse import parse_qs

def attempt(stream, name, arguments):
    try:
        if name == "next":
            return next(stream)
        if name == "iterate":
            return list(stream)
        return getattr(stream, name)(*arguments)
    except Exception as error:
        return type(error).__name__

def in_threads(stream):
    parts = []
    def read():
        while part := stream.read(1000):
            parts.append(part)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return [len(parts), sorted(parts)]

def app(environ, start_response):
    stream = environ["wsgi.input"]
    query = parse_qs(environ["QUERY_STRING"])
    if "threads" in query:
        answer = in_threads(stream)
    else:
        calls = ast.literal_eval(query["calls"][0])
        answer = [attempt(stream, name, arguments) for name, *arguments in calls]
    body = repr((environ.get("CONTENT_LENGTH"), answer)).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

BODIES = {
    "empty": b"",
    "one byte": b"x",
    "lines": b"ab\ncd\nef",
    "line ends": b"\n\nab\n\n",
    "a line over the buffer's end": b"a" * (BUFFER - 3) + b"\n" + b"b" * 10 + b"\nc",
    "a line that ends with the buffer": b"a" * (BUFFER - 1) + b"\n" + b"b\n",
    "a line over several buffers": b"a\n" + b"b" * (3 * BUFFER) + b"\n" + b"c" * 5,
    "no line": b"abc" * BUFFER,
    "many lines": b"".join(b"line %d\n" % number for number in range(20_000)),
}

Call = tuple[object, ...]

PATTERNS: dict[str, list[Call]] = {
    "everything": [("read",), ("read",)],
    "4, then the rest": [("read", 4), ("read",), ("read",), ("readline",)],
    "nothing": [("read", 0), ("readline", 0), ("read",)],
    "negative and None": [("read", -1), ("read", None), ("readline", -7), ("readline", None)],
    "lines": [("readline",)] * 6,
    "lines by parts": [("readline", 3), ("readline", 1), ("readline", 70_000), ("readline", -1), ("read",)],
    "the buffer's size": [("read", BUFFER - 1), ("read", 1), ("read", BUFFER), ("read", BUFFER + 1), ("read",)],
    "small and large": [("read", 5), ("read", 100_000), ("readline",), ("read", 3), ("read", 70_000), ("read",)],
    "iteration": [("iterate",), ("next",), ("read",)],
    "iteration after a line": [("readline",), ("next",), ("iterate",), ("readlines",)],
    "all lines": [("readlines",), ("readlines",)],
    "lines with a hint": [("readlines", 4), ("readlines", 0), ("readlines", 4)],
    "lines with a large hint": [("readlines", 100_000), ("read", 10), ("readlines", -1)],
    "lines without a hint": [("read", 1), ("readlines", None), ("next",)],
    "more than there is": [("read", 10_000_000), ("readline", 10_000_000)],
    "no numbers": [("read", "4"), ("readline", 1.5), ("readlines", "x"), ("read", 10**30), ("read", True), ("read",)],
    "too many": [("read", 1, 2), ("readline", 1, 2), ("read",)],
}


def expected(body: bytes, calls: list[Call]) -> list[object]:
    namespace: dict[str, object] = {}
    exec(CALLS, namespace)
    stream = io.BytesIO(body)
    return [namespace["attempt"](stream, name, arguments) for name, *arguments in calls]  # type: ignore[operator]


def pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 7001):
        yield body[start : start + 7001]


@pytest.fixture(scope="module", params=["memory", "file"])
def calls_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that keeps the bodies of these tests all in memory, or all in files."""
    folder = tmp_path_factory.mktemp("bodies")
    (folder / "app.py").write_text(CALLS)
    memory = {"memory": "16m", "file": "0"}[request.param]
    server = Server(["app.py", "--body-memory", memory, "--spool", str(folder)], folder, {})
    try:
        yield server
    finally:
        server.kill()


def told(server: Server, body: bytes, framing: str, query: str) -> object:
    reply = server.fetch(f"/?{query}", "POST", body if framing == "length" else pieces(body))
    assert reply.status == 200, server.said
    return ast.literal_eval(reply.body.decode())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("name", BODIES)
def test_input_answers_as_bytes_io(calls_server: Server, name: str, framing: str, pattern: str) -> None:
    body, calls = BODIES[name], PATTERNS[pattern]
    answer = told(calls_server, body, framing, f"calls={quote(repr(calls))}")
    assert answer == (str(len(body)), expected(body, calls))


@pytest.mark.parametrize("seed", range(20))
def test_input_answers_as_bytes_io_to_any_calls(calls_server: Server, seed: int) -> None:
    dice = random.Random(seed)
    line = dice.choice([5, 500, 50_000])
    body = b"".join(b"x" * dice.randrange(line) + b"\n" * dice.randrange(3) for _ in range(400_000 // line))
    sizes = [0, 1, 7, 1000, BUFFER - 1, BUFFER, BUFFER + 1, 100_000]
    names = ["read", "read", "readline", "readline", "next", "readlines"]
    calls: list[Call] = []
    for _ in range(60):
        name = dice.choice(names)
        calls.append((name,) if name == "next" else (name, dice.choice(sizes)))
    calls.append(("read",))
    calls = [call for call in calls if call != ("readlines", 0)]
    answer = told(calls_server, body, "length", f"calls={quote(repr(calls))}")
    assert answer == (str(len(body)), expected(body, calls))


def test_threads_that_read_one_input_get_each_byte_once(calls_server: Server) -> None:
    body = b"".join(b"%010d" % number for number in range(50_000))
    parts = sorted(body[start : start + 1000] for start in range(0, len(body), 1000))
    assert told(calls_server, body, "length", "threads=4") == (str(len(body)), [len(parts), parts])


def test_a_checked_application_reads_a_file(serve: Serve, tmp_path: Path) -> None:
    server = serve(str(HERE / "apps.py"), "--body-memory", "10k", "--spool", str(tmp_path))
    body = BODIES["many lines"]
    for _ in range(3):
        assert server.fetch("/checked/echo", "POST", body).body == body
        assert server.fetch("/checked/echo", "POST", pieces(body)).body == body
    assert server.stop() == 0, server.said


HASH = """
import hashlib

def app(environ, start_response):
    digest = hashlib.sha256()
    while part := environ["wsgi.input"].read(65536):
        digest.update(part)
    start_response("200 OK", [])
    return [digest.hexdigest().encode()]
"""


def most_memory(server: Server) -> int:
    """The most memory that was resident so far, in bytes (proc_pid_status(5))."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_upload_of_200_mb_costs_less_than_32_mb_of_memory(serve: Serve, tmp_path: Path, framing: str) -> None:
    server = serve(source=HASH, MAITRED_SPOOL=str(tmp_path))
    part = random.Random(1).randbytes(MIB)
    assert server.fetch("/", "POST", part).body.decode() == hashlib.sha256(part).hexdigest()
    before = most_memory(server)
    headers = {"Content_Length": str(200 * MIB)} if framing == "length" else {}
    reply = server.fetch("/", "POST", (part for _ in range(200)), **headers)
    assert reply.body.decode() == hashlib.sha256(part * 200).hexdigest()
    assert most_memory(server) - before < 32 * MIB


def test_without_room_an_upload_is_refused_and_others_are_served(serve: Serve, tmp_path: Path) -> None:
    server = serve(source=HASH, MAITRED_SPOOL=str(tmp_path))
    # A file that may not grow is refused as one on a full disk is. The log is a pipe.
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (MIB, MIB))
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"POST /large HTTP/1.1\r\nHost: t\r\nContent-Length: 3000000\r\n\r\n")
        peer.sendall(b"x" * 3_000_000)
        answer = b""
        while part := peer.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 507 Insufficient Storage\r\n"), answer
    server.wait_for(r"error.* POST /large: the request body cannot be kept in the spool folder \(--spool\)")
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()


def test_a_spool_folder_in_memory_is_warned_of(serve: Serve) -> None:
    server = serve("--spool", "/dev/shm", source=HASH)
    server.wait_for(r"warn.* the spool folder /dev/shm is in memory")
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()


def test_nothing_is_left_in_the_spool_folder(serve: Serve, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    server = serve("--spool", str(spool), source=HASH)
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()
    assert list(spool.iterdir()) == []
    server.kill()
    assert list(spool.iterdir()) == []
