"""wsgi.input answers exactly as io.BytesIO does, however the body came."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from conftest import Server

BODIES = {
    "empty": b"",
    "lines": b"ab\ncd\nef",
    "line ends": b"\n\nab\n",
    "no line": b"abcdef",
    "large": b"".join(b"line %d\n" % number for number in range(30_000)),
}

PATTERNS = [
    [("readline",), ("readline",), ("readline",), ("readline",)],
    [("iterate",), ("read",)],
    [("readline", 3), ("readline", 1), ("readline", 0), ("readline", -1), ("read",)],
    [("read", 4), ("read",), ("read",)],
    [("read", -1), ("read", -1)],
    [("read", None), ("readline", None)],
    [("read", 0), ("read", 1), ("readline",), ("readlines",)],
    [("readlines", 4), ("readlines", 0), ("read",)],
    [("readlines", None), ("readlines",)],
    [("readline",), ("iterate",)],
    [("read", 10_000_000)],
]


def expected(body: bytes, calls: list[tuple[object, ...]]) -> list[object]:
    stream = io.BytesIO(body)
    return [list(stream) if name == "iterate" else getattr(stream, str(name))(*rest) for name, *rest in calls]


def pieces(body: bytes) -> Iterator[bytes]:
    """Parts that split lines and the largest reads."""
    for start in range(0, len(body), 7001):
        yield body[start : start + 7001]


@pytest.mark.parametrize("calls", PATTERNS, ids=lambda calls: " ".join(str(call[0]) for call in calls))
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("name", BODIES)
def test_reads(apps: Server, name: str, framing: str, calls: list[tuple[object, ...]]) -> None:
    body = BODIES[name]
    path = f"/raw/read?calls={quote(repr(calls))}"
    reply = apps.fetch(path, "POST", body if framing == "length" else pieces(body))
    assert reply.status == 200, apps.said
    assert ast.literal_eval(reply.body.decode()) == expected(body, calls)


def test_a_request_without_body_has_an_empty_input(apps: Server) -> None:
    reply = apps.fetch(f"/raw/read?calls={quote(repr([('read',), ('readline',), ('iterate',)]))}")
    assert ast.literal_eval(reply.body.decode()) == [b"", b"", []]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_checked_application_echoes(apps: Server, framing: str) -> None:
    body = BODIES["large"]
    assert apps.fetch("/checked/echo", "POST", body if framing == "length" else pieces(body)).body == body


def test_an_unread_body_is_not_taken_for_the_next_request(apps: Server) -> None:
    connection = apps.connect()
    for _ in range(3):
        connection.request("POST", "/checked/hello", b"GET /raw/nothing HTTP/1.1\r\n\r\n")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"hello")
    connection.close()
