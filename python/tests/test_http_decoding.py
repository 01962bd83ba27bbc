"""Bodies that are coded, and text: what is undone, and what is refused before it takes memory or time."""

from __future__ import annotations

import bz2
import gzip
import zlib
from typing import Any

import pytest
from answering import answering, chunked, ok
from calling import Calls, calls

import maitred.http as http
from maitred.http import _decoding
from maitred.http._decoding import ALWAYS, MOST_MEMBERS

__all__ = ["calls"]


def _deflate(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("codings", "body", "expected"),
    [
        (b"gzip", gzip.compress(b"text"), b"text"),
        (b"x-gzip", gzip.compress(b"te") + gzip.compress(b"xt"), b"text"),
        (b"gzip", gzip.compress(b"text") + b"\0\0", b"text"),
        (b"GZIP, identity", gzip.compress(b"text"), b"text"),
        (b"deflate", _deflate(b"text", 15), b"text"),
        (b"deflate", _deflate(b"text", -15), b"text"),
        (b"gzip, deflate, gzip", gzip.compress(_deflate(gzip.compress(b"text" * 9999), 15)), b"text" * 9999),
        (b"identity", b"text", b"text"),
        (b"gzip", b"", b""),
        (b"gzip", gzip.compress(b"text")[:-1], http.DecodingError),
        (b"gzip", gzip.compress(b"text") + b"more", http.DecodingError),
        (b"gzip", b"text", http.DecodingError),
        (b"deflate", _deflate(b"text", 15)[:-1], http.DecodingError),
        (b"gzip, gzip, gzip, gzip", gzip.compress(b"text"), http.DecodingError),
        (b"compress", b"text", http.DecodingError),
    ],
    ids=[f"coding{number}" for number in range(15)],
)
def test_codings_are_undone(calls: Calls, codings: bytes, body: bytes, expected: Any) -> None:
    with answering(ok(body, b"Content-Encoding: " + codings)) as server:
        if isinstance(expected, bytes):
            assert calls.one("GET", server.url).content == expected
        else:
            with pytest.raises(expected):
                calls.one("GET", server.url)


def test_bombs_are_stopped(calls: Calls) -> None:
    bomb = gzip.compress(bytes(ALWAYS + 1))
    with answering(ok(bomb, b"Content-Encoding: gzip"), chunked(b"x" * 70_000, b"y")) as server:
        with pytest.raises(http.TooLarge, match="max_ratio"):
            calls.one("GET", server.url)
        with pytest.raises(http.TooLarge, match="max_size"):
            calls.one("GET", server.url, client={"limits": http.Limits(max_size=70_000)})
        assert len(calls.one("GET", server.url, client={"limits": http.Limits(max_size=70_001)}).content) == 70_001


#: A block of deflate without a byte, and the last one (RFC 1951, section 3.2.4).
EMPTY, LAST = b"\x00\x00\x00\xff\xff", b"\x01\x00\x00\xff\xff"


def test_a_coding_within_another_is_counted_too(calls: Calls) -> None:
    """The body itself is empty: all of it is work between the codings."""
    large = gzip.compress(EMPTY * (ALWAYS // len(EMPTY)) + EMPTY + LAST)
    small = gzip.compress(EMPTY * 50_000 + LAST)
    with answering(ok(large, b"Content-Encoding: deflate, gzip"), ok(small, b"Content-Encoding: deflate, gzip")) as server:
        with pytest.raises(http.TooLarge, match="max_ratio"):
            calls.one("GET", server.url)
        assert calls.one("GET", server.url).content == b""
        with pytest.raises(http.TooLarge, match="max_size"):
            calls.one("GET", server.url, client={"limits": http.Limits(max_size=1000)})


def test_max_size_is_for_the_body_and_not_for_what_it_is_coded_in(calls: Calls) -> None:
    data = bytes(range(256)) * 40
    stored = gzip.compress(gzip.compress(data, 0), 0)
    assert len(stored) > len(data)
    with answering(ok(stored, b"Content-Encoding: gzip, gzip")) as server:
        assert calls.one("GET", server.url, client={"limits": http.Limits(max_size=len(data))}).content == data
        with pytest.raises(http.TooLarge):
            calls.one("GET", server.url, client={"limits": http.Limits(max_size=len(data) - 1)})


MEMBERS = MOST_MEMBERS * 4


@pytest.mark.parametrize("outer", [b"gzip", b"gzip, deflate"])
def test_members_are_no_more_than_could_be_received(calls: Calls, outer: bytes) -> None:
    members = gzip.compress(b"") * MEMBERS
    packed = gzip.compress(members) if outer == b"gzip" else zlib.compress(gzip.compress(members))
    with answering(ok(packed, b"Content-Encoding: gzip, " + outer)) as server, pytest.raises(http.DecodingError, match="members"):
        calls.one("GET", server.url)


def test_members_that_were_received_are_undone(calls: Calls) -> None:
    with answering(ok(gzip.compress(b"x") * MEMBERS, b"Content-Encoding: gzip")) as server:
        assert calls.one("GET", server.url).content == b"x" * MEMBERS


def test_frames_of_a_module_are_members(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module for zstd is not in every Python; that for bzip2 has its methods."""
    monkeypatch.setitem(_decoding.KNOWN, "bz2", lambda: _decoding._Module("bz2", bz2.BZ2Decompressor, OSError))
    frames = bz2.compress(b"") * MEMBERS
    with answering(ok(frames, b"Content-Encoding: bz2"), ok(gzip.compress(frames), b"Content-Encoding: bz2, gzip")) as server:
        assert calls.one("GET", server.url).content == b""
        with pytest.raises(http.DecodingError, match="members"):
            calls.one("GET", server.url)


def test_a_response_without_a_body_has_no_coding(calls: Calls) -> None:
    coding = b"Content-Encoding: made-up"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n" + coding + b"\r\n\r\n"
    none = b"HTTP/1.1 %b\r\n" + coding + b"\r\n\r\n"
    with answering(head, none % b"204 No Content", none % b"304 Not Modified", ok(b"", coding), ok(b"coded", coding)) as server:

        def steps() -> Any:
            for method in ("HEAD", "GET", "GET", "GET"):
                response = yield (method, server.url, {})
                assert response.content == b"", response
            return (yield ("GET", server.url, {}))

        with pytest.raises(http.DecodingError, match="made-up"):
            calls.run(steps)


@pytest.mark.parametrize("charset", ["idna", "punycode", "undefined", "unicode_escape", "Raw-Unicode-Escape", "rot13", "base64", "x" * 300, "none"])
def test_text_knows_character_sets_only(charset: str) -> None:
    body = "caf\\u00e9 é xn--".encode()
    with answering(ok(body, b"Content-Type: text/plain; charset=" + charset.encode())) as server, http.Client(trust_env=False) as client:
        response = client.get(server.url)
        assert response.text == body.decode()
        response.encoding = "latin-1"
        assert response.text == body.decode("latin-1")
        response.encoding = "utf\0-8"
        assert response.text == body.decode()
