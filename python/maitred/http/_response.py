"""A response of ``maitred.http``."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from maitred._engine import HttpFailure, HttpResponse
from maitred.http._decoding import Decoder
from maitred.http._errors import Closed, HTTPError, StatusError, error_of
from maitred.http._headers import Headers

if TYPE_CHECKING:
    from maitred.http._limits import Limits

_BLOCK = 64 * 1024

#: Codecs of Python that are no character sets: they fail, run code's escapes, or take time by the square of the length.
_NO_CHARSETS = frozenset(("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"))


class Response:
    """A response. ``Client.get`` and the others have read it; that of ``Client.stream`` is read, or iterated over, once.

    Its connection is free again behind the last byte of the body. A response that is closed, or dropped, before closes it.
    """

    __slots__ = ("_content", "_encoding", "_headers", "_limits", "_raw", "history", "method", "status", "url")

    def __init__(self, raw: HttpResponse, method: str, url: str, limits: Limits) -> None:
        self._raw = raw
        self._limits = limits
        self._headers: Headers | None = None
        self._content: bytes | None = None
        self._encoding: str | None = None
        self.method = method
        self.url = url
        self.status = raw.status
        """The status, a number."""
        self.history: list[Response] = []
        """The redirects before this response."""

    @property
    def status_code(self) -> int:
        """The same as ``status``, by the name that other clients have for it."""
        return self.status

    @property
    def reason(self) -> str:
        """The reason phrase."""
        return self._raw.reason.decode("latin-1")

    @property
    def http_version(self) -> str:
        return "HTTP/%d.%d" % self._raw.version

    @property
    def headers(self) -> Headers:
        """The fields, by name without regard to case."""
        if self._headers is None:
            self._headers = Headers(self._raw.headers)
        return self._headers

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """The fields in their order and spelling."""
        return self.headers.raw

    @property
    def trailers(self) -> Headers:
        """The fields behind the body, once it is read."""
        return Headers(self._raw.trailers)

    @property
    def timings(self) -> dict[str, float | int | bool | None]:
        """The account of the call so far.

        Seconds or None for ``slot``, ``resolve``, ``connect``, ``tls``, ``first_byte`` and ``total``; the bytes ``sent`` and
        ``received``; whether the connection was ``reused``, and the request ``retried`` on a new one.
        """
        return self._raw.report

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 200 to 299."""
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        """Whether the response leads elsewhere."""
        return self.status in (301, 302, 303, 307, 308) and self._raw.first("location") is not None

    def raise_for_status(self) -> Response:
        """Raises :class:`StatusError` if the status is 400 or above, and returns the response otherwise."""
        if self.status < 400:
            return self
        raise StatusError(f"{self.method} {self.url}: {self.status} {self.reason}", self)

    # ---- The body as a whole ----

    @property
    def content(self) -> bytes:
        """The body, decoded. It was read before."""
        if self._content is None:
            raise Closed(f"{self.method} {self.url}: the body was not read: call read() or aread() within stream()")
        return self._content

    @property
    def encoding(self) -> str:
        """The character set: as set here, else as ``Content-Type`` names it, else UTF-8."""
        return self._encoding or _charset(self.headers.get("content-type", "")) or "utf-8"

    @encoding.setter
    def encoding(self, encoding: str) -> None:
        self._encoding = encoding

    @property
    def text(self) -> str:
        """The body as text, as UTF-8 if its character set is unknown. Bytes that are none in its character set are replaced."""
        try:
            encoding = codecs.lookup(self.encoding).name
            return self.content.decode("utf-8" if encoding in _NO_CHARSETS else encoding, "replace")
        except (LookupError, ValueError):
            return self.content.decode("utf-8", "replace")

    def json(self, **options: Any) -> Any:
        """The body as the value that it has as JSON. Raises ``ValueError`` if it is none; ``options`` are those of ``json.loads``."""
        return json.loads(self.content, **options)

    def read(self) -> bytes:
        """Reads the body, decoded, unless it was read, and returns it."""
        if self._content is None:
            if self._is_plain():
                try:
                    self._content = self._raw.read()
                except HttpFailure as failure:
                    raise error_of(failure) from failure
            else:
                self._content = b"".join(self.iter_bytes())
        return self._content

    async def aread(self) -> bytes:
        """The same for an awaitable response."""
        if self._content is None:
            if self._is_plain():
                try:
                    self._content = await self._raw.read_async()
                except HttpFailure as failure:
                    raise error_of(failure) from failure
            else:
                self._content = b"".join([part async for part in self.aiter_bytes()])
        return self._content

    # ---- The body in parts ----

    def iter_bytes(self, size: int = _BLOCK) -> Iterator[bytes]:
        """The body, decoded, in parts of at most ``size`` bytes, as they come."""
        if self._content is not None:
            yield from _cut(self._content, size)
            return
        with _translated(self):
            yield from self._decoded(size)

    def iter_raw(self, size: int = _BLOCK) -> Iterator[bytes]:
        """The body as received."""
        with _translated(self):
            while data := self._raw.read(size):
                yield data

    async def aiter_bytes(self, size: int = _BLOCK) -> AsyncIterator[bytes]:
        """As ``iter_bytes``, for an awaitable response."""
        if self._content is not None:
            for part in _cut(self._content, size):
                yield part
            return
        with _translated(self):
            decoder, block = None, self._block(size)
            while data := await self._raw.read_async(block):
                # A response without a body has no coding to undo, whatever its field says.
                decoder = decoder or self._decoder()
                decoder.feed(data)
                while part := decoder.read(size):
                    yield part
            if decoder is not None:
                decoder.finish()

    async def aiter_raw(self, size: int = _BLOCK) -> AsyncIterator[bytes]:
        """As ``iter_raw``, for an awaitable response."""
        with _translated(self):
            while data := await self._raw.read_async(size):
                yield data

    def _is_plain(self) -> bool:
        """Whether the body is read as it is: without a coding, and without a limit of its size."""
        return self._raw.first("content-encoding") is None and self._limits.max_size is None

    def _decoder(self) -> Decoder:
        return Decoder(self.headers.get("content-encoding", ""), self._limits.max_size, self._limits.max_ratio)

    def _decoded(self, size: int) -> Iterator[bytes]:
        decoder, block = None, self._block(size)
        while data := self._raw.read(block):
            decoder = decoder or self._decoder()
            decoder.feed(data)
            while part := decoder.read(size):
                yield part
        if decoder is not None:
            decoder.finish()

    def _block(self, size: int) -> int:
        """How much is read at once. A decompressor copies what stands behind the end of each member: it gets little."""
        return size if self._is_plain() else min(size, _BLOCK)

    # ---- The end ----

    def close(self) -> None:
        """Ends the call."""
        self._raw.close()

    async def aclose(self) -> None:
        """The same by the name for awaitable responses."""
        self._raw.close()

    def __enter__(self) -> Response:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Response {self.status} {self.reason}>"


class _translated:
    """Failures of the engine become the exceptions of this package; a body that cannot be used ends its call."""

    __slots__ = ("response",)

    def __init__(self, response: Response) -> None:
        self.response = response

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is None:
            return
        if isinstance(error, HttpFailure):
            raise error_of(error) from error
        if isinstance(error, HTTPError):
            self.response.close()


def _cut(content: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


def _charset(content_type: str) -> str:
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return ""
