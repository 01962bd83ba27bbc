"""wsgi.input answers exactly as io.BytesIO does, however the body came and wherever it is.

The calls are in the query. The application runs inside wsgiref.validate; the calls go to the stream behind the validator's,
which refuses what PEP 3333 leaves out and frameworks use (`read()` without a number, `next()`).
"""

from __future__ import annotations

import ast
import functools
import http.client
import io
import os
import random
import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from conftest import CHECKED, HERE, PATIENCE, Serve, Server

#: What wsgi.input reads at once from a file or a connection.
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
    assert environ["wsgi.input_terminated"] is True
    stream = environ["wsgi.input"].input
    query = parse_qs(environ["QUERY_STRING"])
    if "threads" in query:
        answer = in_threads(stream)
    else:
        calls = ast.literal_eval(query["calls"][0])
        answer = [attempt(stream, name, arguments) for name, *arguments in calls]
    body = repr((environ.get("CONTENT_LENGTH"), answer)).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
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
    "none at all": [],
}

#: Only of complete bodies.
AGAIN: dict[str, list[Call]] = {
    "twice": [("tell",), ("read",), ("tell",), ("seek", 0), ("read",), ("seekable",), ("readable",)],
    "back into the buffer": [("read", 9), ("seek", 2), ("readline",), ("tell",), ("seek", 1), ("read", 5), ("read",)],
    "back before the buffer": [("seek", BUFFER + 7), ("read", 3), ("seek", 5), ("read", 3), ("readlines", 4), ("seek", 0), ("read",)],
    "from here and from the end": [("seek", 3), ("seek", 2, 1), ("read", 2), ("seek", -3, 2), ("read",), ("seek", -10**9, 1), ("readline",)],
    "behind the end": [("seek", 10**7), ("tell",), ("read",), ("readline",), ("iterate",), ("seek", 5, 2), ("read", 1), ("seek", 0), ("readline",)],
    "no places": [("seek", -1), ("seek", 0, 3), ("seek", "x"), ("seek",), ("seek", 10**30), ("tell", 1), ("read", 2)],
}

FRAMINGS = ["length", "chunked"]


@functools.cache
def expected_of(name: str, pattern: str) -> list[object]:
    return expected(BODIES[name], (PATTERNS | AGAIN)[pattern])


def expected(body: bytes, calls: list[Call]) -> list[object]:
    namespace: dict[str, object] = {}
    exec(CALLS, namespace)
    stream = io.BytesIO(body)
    return [namespace["attempt"](stream, name, arguments) for name, *arguments in calls]  # type: ignore[operator]


def pieces(body: bytes) -> Iterator[bytes]:
    """Parts that split lines and the largest reads."""
    for start in range(0, len(body), 7001):
        yield body[start : start + 7001]


@pytest.fixture(scope="module", params=["memory", "file", "live"])
def calls_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that keeps the bodies of these tests all in memory, or all in files, or nowhere: they are read as they come."""
    folder = tmp_path_factory.mktemp("bodies")
    (folder / "app.py").write_text(CALLS + CHECKED)
    memory = {"memory": "16m", "file": "0", "live": "0"}[request.param]
    listen = "127.0.0.1:0,read-ahead=off" if request.param == "live" else "127.0.0.1:0"
    server = Server(["app.py", "--body-memory", memory, "--body-budget", "0", "--spool", str(folder), "--listen", listen], folder, {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


def length_of(server: Server, body: bytes, framing: str) -> str | None:
    """The CONTENT_LENGTH: of a chunked body it is known once it is complete."""
    live = "without read-ahead" in server.said
    return None if live and framing == "chunked" else str(len(body))


def told(server: Server, body: bytes, framing: str, query: str) -> object:
    reply = server.fetch(f"/?{query}", "POST", body if framing == "length" else pieces(body))
    assert reply.status == 200, server.said
    return ast.literal_eval(reply.body.decode())


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", BODIES)
def test_input_answers_as_bytes_io(calls_server: Server, name: str, framing: str) -> None:
    body = BODIES[name]
    for pattern, calls in PATTERNS.items():
        answer = told(calls_server, body, framing, f"calls={quote(repr(calls))}")
        length = length_of(calls_server, body, framing)
        if not body and framing == "chunked":
            length = answer[0]  # "0", or None if the application was called before the last chunk had come.
            assert length in ("0", None), pattern
        assert answer == (length, expected_of(name, pattern)), pattern


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", BODIES)
def test_a_complete_input_is_read_again_as_bytes_io(calls_server: Server, name: str, framing: str) -> None:
    body = BODIES[name]
    if "without read-ahead" in calls_server.said:
        asked: list[Call] = [("tell",), ("seek", 0), ("seekable",), ("readable",), ("read",)]
        answer = told(calls_server, body or b"x", framing, f"calls={quote(repr(asked))}")
        assert answer[1] == ["UnsupportedOperation", "UnsupportedOperation", False, True, body or b"x"]
        return
    for pattern, calls in AGAIN.items():
        answer = told(calls_server, body, framing, f"calls={quote(repr(calls))}")
        assert answer == (str(len(body)), expected_of(name, pattern)), pattern


#: Each round has its own seed, counted from this one.
SEED = int(os.environ.get("MAITRED_TEST_SEED", random.SystemRandom().randrange(10**9)))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_input_answers_as_bytes_io_to_any_calls(calls_server: Server, framing: str) -> None:
    """Any calls on any lines, in packets of any size; several requests on one connection."""
    connection = socket.create_connection(("127.0.0.1", calls_server.port), PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for seed in range(SEED, SEED + 40):
        print(f"MAITRED_TEST_SEED={seed}")
        dice = random.Random(seed)
        body, calls = any_body(dice), any_calls(dice)
        head, parts = framed(dice, body, framing)
        connection.sendall(b"POST /?calls=%s HTTP/1.1\r\nHost: t\r\n%s\r\n\r\n" % (quote(repr(calls)).encode(), head))
        for part in parts:
            connection.sendall(part)
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = ast.literal_eval(response.read().decode())
        assert (response.status, answer[1]) == (200, expected(body, calls)), calls_server.said
    connection.close()


def any_body(dice: random.Random) -> bytes:
    line = dice.choice([1, 5, 500, 50_000, 200_000])
    lines = dice.randrange(1 + min(3_000, 400_000 // line))
    return b"".join(b"x" * dice.randrange(line) + b"\n" * dice.randrange(3) for _ in range(lines))


def any_calls(dice: random.Random) -> list[Call]:
    sizes = [None, -1, 0, 1, 7, 1000, BUFFER - 1, BUFFER, BUFFER + 1, 100_000]
    names = ["read", "read", "readline", "readline", "next", "readlines", "iterate"]
    calls: list[Call] = []
    for _ in range(dice.randrange(60)):
        name = dice.choice(names)
        size = dice.choice(sizes if dice.random() < 0.2 else sizes[2:])
        calls.append((name,) if name in ("next", "iterate") or dice.random() < 0.05 else (name, size))
    # All that is left, or not even that: the next request follows all the same.
    return calls if dice.random() < 0.2 else [*calls, ("read",)]


def framed(dice: random.Random, body: bytes, framing: str) -> tuple[bytes, Iterator[bytes]]:
    """The framing's header field, and the bytes of the body in packets."""
    if framing == "length":
        head, wire = b"Content-Length: %d" % len(body), body
    else:
        head, wire, at = b"Transfer-Encoding: chunked", b"", 0
        largest = dice.choice([3_000, 70_000, 300_000])
        while at < len(body):
            part = body[at : at + dice.randrange(1, largest)]
            wire += b"%x%s\r\n%s\r\n" % (len(part), dice.choice([b"", b";a=b"]), part)
            at += len(part)
        wire += b"0\r\n" + dice.choice([b"", b"X-Trailer: t\r\n"]) + b"\r\n"
    largest = dice.choice([len(wire) // 50, len(wire) // 5, len(wire)]) + 2

    def packets() -> Iterator[bytes]:
        at = 0
        while at < len(wire):
            size = dice.randrange(1, largest)
            yield wire[at : at + size]
            at += size

    return head, packets()


@pytest.mark.parametrize("framing", FRAMINGS)
def test_threads_that_read_one_input_get_each_byte_once(calls_server: Server, framing: str) -> None:
    body = b"".join(b"%010d" % number for number in range(50_000))
    parts = sorted(body[start : start + 1000] for start in range(0, len(body), 1000))
    answer = told(calls_server, body, framing, "threads=4")
    assert answer == (length_of(calls_server, body, framing), [len(parts), parts])


def test_a_request_without_body_has_an_empty_input(calls_server: Server) -> None:
    calls = quote(repr([("read",), ("readline",), ("iterate",), ("readlines",)]))
    reply = calls_server.fetch(f"/?calls={calls}")
    assert ast.literal_eval(reply.body.decode()) == (None, [b"", b"", [], []])


@pytest.mark.parametrize("parameter", ["", ",read-ahead=off"])
def test_a_checked_application_reads_what_it_was_sent(serve: Serve, parameter: str) -> None:
    server = serve(str(HERE / "apps.py"), "--body-memory", "10k", "--body-budget", "0", "--listen", f"127.0.0.1:0{parameter}")
    for body in BODIES.values():
        assert server.fetch("/checked/echo", "POST", body).body == body
        assert server.fetch("/checked/echo", "POST", pieces(body)).body == body
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("parameter", ["", ",read-ahead=off"])
def test_an_unread_body_is_not_taken_for_the_next_request(serve: Serve, parameter: str, framing: str) -> None:
    server = serve(str(HERE / "apps.py"), "--listen", f"127.0.0.1:0{parameter}")
    connection = server.connect()
    body = b"GET /raw/nothing HTTP/1.1\r\n\r\n"
    for _ in range(3):
        connection.request("POST", "/checked/hello", body if framing == "length" else iter([body] * 3))
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"hello")
    connection.close()
