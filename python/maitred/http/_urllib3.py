"""Responses and exceptions of maitred in the form that urllib3 has, for ``maitred.http.requests``."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import urllib3
from maitred._engine import HttpFailure, HttpResponse
from urllib3._collections import HTTPHeaderDict
from urllib3.util.response import is_fp_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from urllib3.util.retry import Retry

#: At most so many bytes of a body are one part: one read of a socket.
PART = 64 * 1024


class Response(urllib3.HTTPResponse):
    """A response as ``requests.Response.raw`` has it."""

    def __init__(self, response: HttpResponse, method: str, path: str, retries: Retry) -> None:
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
        has_cookies = any(name.lower() == "set-cookie" for name, _ in fields)
        is_old = response.version == (1, 0)
        super().__init__(
            body=Body(response),  # type: ignore[arg-type]
            headers=HTTPHeaderDict(fields), status=response.status, reason=response.reason.decode("latin-1"),
            version=10 if is_old else 11, version_string="HTTP/1.0" if is_old else "HTTP/1.1", preload_content=False, decode_content=False,
            # requests reads cookies from it, and takes a third of its time for a response where there are none.
            original_response=Original(fields) if has_cookies else None,  # type: ignore[arg-type]
            request_method=method, request_url=path, retries=retries)

    def stream(self, amt: int | None = PART, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        """Parts of at most `amt` bytes. A chunked body's come as they arrive: events would wait for a full part else."""
        # Without a coding urllib3 would move each part through its buffer of decoded bytes.
        decode_content = decode_content and "content-encoding" in self.headers
        if not self.chunked:
            yield from super().stream(amt, decode_content)
            return
        while not is_fp_closed(self._fp) or len(self._decoded_buffer) > 0 or (self._decoder and self._decoder.has_unconsumed_tail):
            part = self.read1(amt, decode_content)
            if part:
                yield part

    def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        return self.stream(amt, decode_content)


class Body:
    """The body as a file, with the failures of reading as urllib3's."""

    __slots__ = ("_ended", "_response")

    def __init__(self, response: HttpResponse) -> None:
        self._response, self._ended = response, False

    def read(self, amt: int | None = None) -> bytes:
        """`amt` bytes, fewer at the end only; all without `amt`."""
        if amt is None or amt < 0:
            data = self._read(-1)
            self._ended = True
            return data
        data = self._read(amt)
        if len(data) == amt or not data:
            return data
        parts, left = [data], amt - len(data)
        while left and (data := self._read(left)):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def read1(self, amt: int | None = None) -> bytes:
        """The bytes that are there, at most `amt`; it waits for one."""
        return self._read(PART if amt is None or amt < 0 else amt)

    def _read(self, most: int) -> bytes:
        if self._ended or most == 0:
            return b""
        try:
            data = self._response.read(most)
        except HttpFailure as failure:
            self._ended = True
            raise exception_of(failure, None) from failure
        self._ended = not data
        return data

    def close(self) -> None:
        self._ended = True
        self._response.close()

    def isclosed(self) -> bool:
        return self._ended


class Original:
    """Stands for the response of ``http.client`` that urllib3 would have: requests takes its cookies from `msg`."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.msg = self.headers = http.client.HTTPMessage()
        for name, value in fields:
            self.msg[name] = value

    def isclosed(self) -> bool:
        return False

    def close(self) -> None:
        pass


def named(origin: Any) -> Any:
    """What urllib3's exceptions take for a pool, to name it."""
    return str(origin)


def exception_of(failure: HttpFailure, path: str | None) -> urllib3.exceptions.HTTPError:
    """The exception that urllib3 raises for such a failure."""
    exceptions, kind, text, pool = urllib3.exceptions, failure.kind, str(failure), named(failure.origin)
    if kind == "timeout":
        if failure.phase in ("slot", "resolve", "connect", "tls", "proxy"):
            return exceptions.ConnectTimeoutError(pool, text)
        if failure.phase == "write":
            # requests' own adapter has an OSError there, which is no error of reading.
            return exceptions.ProtocolError(text, failure)
        # The words are those that programs look for.
        return exceptions.ReadTimeoutError(pool, path, f"Read timed out. ({text})")
    if kind in ("connect", "resolve", "allow"):
        return exceptions.NewConnectionError(pool, text)
    if kind == "tls":
        return exceptions.SSLError(text)
    if kind == "proxy":
        return exceptions.ProxyError(text, failure)
    if kind == "request":
        return exceptions.InvalidHeader(text)
    return exceptions.ProtocolError(text, failure)
