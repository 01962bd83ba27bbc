"""Transports that have an answer ready and send nothing: what remains is the framework's own part of a call, its floor."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

#: The fields that nginx sends with a file.
FIELDS = [
    ("Server", "nginx"), ("Date", "Sun, 29 Nov 2026 12:00:00 GMT"), ("Content-Type", "application/octet-stream"),
    ("Last-Modified", "Sun, 29 Nov 2026 12:00:00 GMT"), ("Connection", "keep-alive"), ("ETag", '"692ae6c0-400"'), ("Accept-Ranges", "bytes"),
]


def _raw(size: int) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in [*FIELDS, ("Content-Length", str(size))]]


def transport(framework: Any, size: int) -> Any:
    """For `framework.Client`: httpx or httpx2."""
    fields, body = _raw(size), bytes(size)

    # No ByteStream: the framework reads that at once, and the parts of a streamed response could not be read as they came.
    class Body(framework.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield body

    class Ready(framework.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            return framework.Response(200, headers=fields, stream=Body())

    return Ready()


def async_transport(framework: Any, size: int) -> Any:
    """For `framework.AsyncClient`."""
    fields, body = _raw(size), bytes(size)

    class Body(framework.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield body

    class Ready(framework.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            return framework.Response(200, headers=fields, stream=Body())

    return Ready()


def adapter(size: int) -> Any:
    """For a session of requests."""
    import requests.adapters
    import requests.structures
    import requests.utils
    import urllib3

    fields, body = [*FIELDS, ("Content-Length", str(size))], bytes(size)

    class Ready(requests.adapters.BaseAdapter):
        def send(self, request: Any, **_: Any) -> Any:
            response = requests.Response()
            response.raw = urllib3.HTTPResponse(io.BytesIO(body), urllib3.HTTPHeaderDict(fields), 200, reason="OK",
                                                preload_content=False, decode_content=False)
            response.status_code, response.reason = 200, "OK"
            response.headers = requests.structures.CaseInsensitiveDict(response.raw.headers)
            response.encoding = requests.utils.get_encoding_from_headers(response.headers)
            response.url, response.request, response.connection = request.url, request, self
            return response

        def close(self) -> None:
            pass

    return Ready()
