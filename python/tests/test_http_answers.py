"""Answers that are odd: what `maitred.http` makes of each, blocking and awaitable, and that the next call of the same client is right."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterator

import pytest
from upstreams import Upstream, upstream

from maitred import http
from maitred.http._decoding import ALWAYS

HELLO = b"Content-Length: 5\r\n\r\nhello"
#: Beyond what any body may unfold to.
ZEROS = ALWAYS + 1


def coded(names: str, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (names.encode(), len(body), body)


def deflated(body: bytes, window: int) -> bytes:
    engine = zlib.compressobj(wbits=window)
    return engine.compress(body) + engine.flush()


#: Bytes, and the body or the exception that a caller gets.
ANSWERS: dict[str, tuple[bytes, bytes | type[http.HTTPError]]] = {
    "HTTP/1.0 to its end": (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
    "no reason": (b"HTTP/1.1 200 \r\n" + HELLO, b"hello"),
    "three digits are below 100": (b"HTTP/1.1 099 No\r\n" + HELLO, http.ProtocolError),
    "another protocol": (b"ICY 200 OK\r\n" + HELLO, http.ProtocolError),
    "HTTP/2 in a head of HTTP/1": (b"HTTP/2.0 200 OK\r\n" + HELLO, http.ProtocolError),
    "a folded field": (b"HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n" + HELLO, http.ProtocolError),
    "a NUL": (b"HTTP/1.1 200 OK\r\nX-A: \0\r\n" + HELLO, http.ProtocolError),
    "no colon": (b"HTTP/1.1 200 OK\r\nnonsense\r\n" + HELLO, http.ProtocolError),
    "a head of 70 KiB": (b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * (70 << 10) + b"\r\n" + HELLO, http.ProtocolError),
    "the end within a head": (b"HTTP/1.1 200 OK\r\nConte", http.ProtocolError),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n" + HELLO, http.ProtocolError),
    "a list of lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\n\r\nhello", http.ProtocolError),
    "a signed length": (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", http.ProtocolError),
    "a short body": (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", http.ProtocolError),
    "surplus bytes": (b"HTTP/1.1 200 OK\r\n" + HELLO + b"!", b"hello"),
    "a chunk in 0x": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", http.ProtocolError),
    "no last chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", http.ProtocolError),
    "an unknown transfer coding": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", http.ProtocolError),
    "100 unasked": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + HELLO, b"hello"),
    "eleven of 103": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 11 + b"HTTP/1.1 200 OK\r\n" + HELLO, http.ProtocolError),
    "101 unasked": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", http.ProtocolError),
    "bytes behind 204": (b"HTTP/1.1 204 No Content\r\n\r\nhello", b""),
    "gzip": (coded("gzip", gzip.compress(b"hello")), b"hello"),
    "two codings": (coded("deflate, gzip", gzip.compress(deflated(b"hello", 15))), b"hello"),
    "deflate without zlib": (coded("deflate", deflated(b"hello", -15)), b"hello"),
    "deflate with zlib": (coded("deflate", deflated(b"hello", 15)), b"hello"),
    "five codings": (coded("gzip, gzip, gzip, gzip, gzip", gzip.compress(b"hello")), http.DecodingError),
    "an unknown coding": (coded("lzma", b"hello"), http.DecodingError),
    "broken gzip": (coded("gzip", gzip.compress(b"hello" * 1000)[:20] + b"hello"), http.DecodingError),
    "bytes behind gzip": (coded("gzip", gzip.compress(b"hello") + b"hello"), http.DecodingError),
    "the end within gzip": (coded("gzip", gzip.compress(b"hello")[:-4]), http.DecodingError),
    "16 MiB in 16 KiB": (coded("gzip", gzip.compress(bytes(ZEROS))), http.TooLarge),
}


@pytest.fixture(scope="module")
def service() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.mark.parametrize("form", ["blocking", "awaitable"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_odd_answer(service: Upstream, name: str, form: str) -> None:
    answer, expected = ANSWERS[name]
    found = blocking(service, answer) if form == "blocking" else asyncio.run(awaitable(service, answer))
    if isinstance(expected, bytes):
        assert found == expected
    else:
        # Exactly this one: its subclasses have other reasons.
        assert type(found) is expected, repr(found)
        assert str(found)


def blocking(service: Upstream, answer: bytes) -> bytes | http.HTTPError:
    with http.Client(timeout=20, trust_env=False) as client:
        found: bytes | http.HTTPError
        try:
            found = client.post(service.url("/raw"), content=answer).content
        except http.HTTPError as error:
            found = error
        assert client.get(service.url("/hello")).content == b"hello"
    return found


async def awaitable(service: Upstream, answer: bytes) -> bytes | http.HTTPError:
    async with http.AsyncClient(timeout=20, trust_env=False) as client:
        found: bytes | http.HTTPError
        try:
            found = (await client.post(service.url("/raw"), content=answer)).content
        except http.HTTPError as error:
            found = error
        assert (await client.get(service.url("/hello"))).content == b"hello"
    return found
