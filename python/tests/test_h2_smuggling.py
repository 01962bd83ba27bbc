"""Requests of HTTP/2 that another parser behind could read otherwise, or as two: none of them reaches the application (RFC 9113 §8)."""

from __future__ import annotations

from collections.abc import Iterator

import frames
import pytest
from conftest import Server
from frames import Code, Connection, Field

APP = """
def app(environ, start_response):
    if environ["PATH_INFO"] != "/honest":
        print("reached by", environ["REQUEST_METHOD"], environ["PATH_INFO"], flush=True)
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

METHOD, SCHEME, PATH, AUTHORITY = (":method", "POST"), (":scheme", "http"), (":path", "/evil"), (":authority", "localhost")
PSEUDO = [METHOD, SCHEME, PATH, AUTHORITY]


def with_fields(*fields: Field) -> list[Field]:
    return [*PSEUDO, *fields]


def instead(name: str, value: str | None) -> list[Field]:
    """Another value of a pseudo-field, or none."""
    return [(each, value if each == name else own) for each, own in PSEUDO if each != name or value is not None]  # type: ignore[misc]


#: Complete requests without a body.
HEADS: dict[str, list[Field]] = {
    # Names (§8.2.1)
    "capitals in a name": with_fields(("X-Name", "a")),
    "an empty name": with_fields(("", "a")),
    "a space in a name": with_fields(("x name", "a")),
    "a colon in a name": with_fields(("x:name", "a")),
    "a line in a name": with_fields(("x\r\nname", "a")),
    "a request in a name": with_fields(("x: a\r\n\r\nGET /evil HTTP/1.1\r\nhost", "a")),
    "a zero in a name": with_fields(("x\0", "a")),
    "a letter that is none of ASCII": with_fields(("x\xe9", "a")),
    # Values (§8.2.1)
    "CR in a value": with_fields(("x", "a\rb")),
    "LF in a value": with_fields(("x", "a\nb")),
    "a field in a value": with_fields(("x", "a\r\ntransfer-encoding: chunked")),
    "a zero in a value": with_fields(("x", "a\0b")),
    "a space before a value": with_fields(("x", " a")),
    "a tab behind a value": with_fields(("x", "a\t")),
    # Of the connection (§8.2.2)
    "Connection": with_fields(("connection", "close")),
    "Keep-Alive": with_fields(("keep-alive", "timeout=5")),
    "Proxy-Connection": with_fields(("proxy-connection", "keep-alive")),
    "Upgrade": with_fields(("upgrade", "websocket")),
    "Transfer-Encoding": with_fields(("transfer-encoding", "chunked")),
    "TE of another coding": with_fields(("te", "gzip")),
    "TE with more": with_fields(("te", "trailers, gzip")),
    # Pseudo-fields (§8.3)
    "no method": instead(":method", None),
    "no scheme": instead(":scheme", None),
    "no path": instead(":path", None),
    "two methods": [METHOD, *PSEUDO],
    "two schemes": [SCHEME, *PSEUDO],
    "two paths": [PATH, *PSEUDO],
    "two authorities": [AUTHORITY, *PSEUDO],
    "an unknown one": [(":evil", "a"), *PSEUDO],
    "one of responses": [(":status", "200"), *PSEUDO],
    "one behind a field": [*PSEUDO[:3], ("x", "a"), PSEUDO[3]],
    "an extended CONNECT that nobody has offered": [(":method", "CONNECT"), (":protocol", "websocket"), *PSEUDO[1:]],
    ":protocol on another method": [*PSEUDO, (":protocol", "websocket")],
    "CONNECT with a path": [(":method", "CONNECT"), *PSEUDO[1:]],
    "an empty method": instead(":method", ""),
    "a line in a method": instead(":method", "GET / HTTP/1.1\r\nx: "),
    "a space in a method": instead(":method", "GET /"),
    "an empty path": instead(":path", ""),
    "a relative path": instead(":path", "evil"),
    "a whole URL as a path": instead(":path", "http://localhost/evil"),
    "a space in a path": instead(":path", "/evil HTTP/1.1"),
    "a line in a path": instead(":path", "/evil\r\nhost: other"),
    "a fragment in a path": instead(":path", "/evil#part"),
    "a star that is no OPTIONS": instead(":path", "*"),
    "an empty scheme": instead(":scheme", ""),
    "a line in a scheme": instead(":scheme", "http\r\nx: a"),
    "a user in an authority": instead(":authority", "user@localhost"),
    "a path in an authority": instead(":authority", "localhost/evil"),
    "a space in an authority": instead(":authority", "local host"),
    "a line in an authority": instead(":authority", "localhost\r\nx: a"),
    "an authority and another host": with_fields(("host", "other")),
    "two hosts": [*PSEUDO[:3], ("host", "localhost"), ("host", "other")],
    # Lengths (§8.1.1)
    "two lengths": with_fields(("content-length", "0"), ("content-length", "1")),
    "two lengths in one": with_fields(("content-length", "0, 1")),
    "a length with a sign": with_fields(("content-length", "+0")),
    "a length in hexadecimal": with_fields(("content-length", "0x0")),
    "an empty length": with_fields(("content-length", "")),
    "a length without a body": with_fields(("content-length", "5")),
    "a length beyond all numbers": with_fields(("content-length", "184467440737095516160")),
}

HONEST = [("x-name", "a value"), ("te", "trailers"), ("host", "localhost")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("smuggled")
    (folder / "app.py").write_text(APP)
    running = Server(["app.py"], folder, {})
    try:
        yield running
        assert running.stop() == 0, running.said
    finally:
        running.kill()


@pytest.fixture
def peer(server: Server) -> Iterator[Connection]:
    """A connection whose stream alone is ended: the next request on it is served, and no other has reached the application."""
    with Connection.to(server.port) as connection:
        yield connection
        assert connection.fetch("/honest", fields=HONEST).status == 200
        assert not connection.goaways
    assert "reached by" not in server.said, server.said


def by_hand(fields: list[Field]) -> bytes:
    return b"".join(frames.literal(*each) for each in fields)


def is_refused(peer: Connection, stream: int) -> bool:
    """As malformed, or where HTTP/2 lets it pass, but nobody should: by an answer that says so."""
    answer = peer.answer(stream)
    return answer.reset == Code.PROTOCOL_ERROR or answer.status in (400, 501)


@pytest.mark.parametrize("case", HEADS)
def test_a_malformed_head_resets_its_stream(case: str, peer: Connection) -> None:
    stream = peer.stream()
    peer.send(frames.headers(stream, by_hand(HEADS[case])))
    assert is_refused(peer, stream)


@pytest.mark.parametrize(
    "length,parts",
    [("5", [b"123"]), ("5", [b"123", b"4567"]), ("0", [b"1"]), ("5", [b"12345", b"6"]), ("5", [])],
    ids=["too little", "too much", "something where nothing is", "one byte more", "nothing"],
)
def test_a_body_that_is_not_as_long_as_it_says_resets_its_stream(length: str, parts: list[bytes], peer: Connection) -> None:
    stream = peer.stream()
    peer.send(frames.headers(stream, by_hand([*PSEUDO, ("content-length", length)]), end=False))
    peer.send(*(frames.data(stream, part) for part in parts), frames.data(stream, end=True))
    assert is_refused(peer, stream)


TRAILERS: dict[str, list[Field]] = {
    "a pseudo-field": [(":path", "/evil")],
    "Transfer-Encoding": [("transfer-encoding", "chunked")],
    "Connection": [("connection", "close")],
    "capitals": [("X-Sum", "7")],
    "a line": [("x", "a\r\nb")],
}


@pytest.mark.parametrize("case", TRAILERS)
def test_malformed_trailers_reset_their_stream(case: str, peer: Connection) -> None:
    stream = peer.stream()
    peer.send(frames.headers(stream, by_hand(PSEUDO), end=False), frames.data(stream, b"body"))
    peer.send(frames.headers(stream, by_hand(TRAILERS[case])))
    assert is_refused(peer, stream)


def test_trailers_that_do_not_end_their_stream_reset_it(peer: Connection) -> None:
    stream = peer.stream()
    peer.send(frames.headers(stream, by_hand(PSEUDO), end=False), frames.data(stream, b"body"))
    peer.send(frames.headers(stream, by_hand([("x-sum", "7")]), end=False))
    assert is_refused(peer, stream)


def test_fields_are_what_they_were_sent_as(server: Server) -> None:
    """The other side of the table: what is unusual, and right."""
    fields = [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-empty", ""), ("x-colon", "a: b"), ("accept", "a"), ("accept", "b")]
    with Connection.to(server.port) as peer:
        stream = peer.stream()
        peer.send(frames.headers(stream, by_hand([*PSEUDO[:2], (":path", "/honest"), AUTHORITY, *fields])))
        assert peer.answer(stream).status == 200
