"""Calls to other servers over HTTP, by threads and in event loops::

    from maitred.http import AsyncClient, Client

    client = Client(base_url="https://api.example/v1", timeout=5)   # made once, shared by all threads
    user = client.get("/users/7").raise_for_status().json()

    async_client = AsyncClient(base_url="https://api.example/v1")
    user = (await async_client.get("/users/7")).json()

    maitred.http.get("https://example.org/").text                   # in a script

Within maitred each call is a span of the request that makes it: ``Server-Timing``, log variables and the dashboard have its time
(docs/guides/calling-other-services.md). It works without a server, too.

Promises: a call ends within its time limits whatever the server does; a response that is not one is an exception with a name, and
its connection is not used again; a client that was made before a fork works in the children.
Leaves out: cookies, multipart forms, HTTP/2.
"""

from __future__ import annotations

import threading
from typing import Any

from maitred._engine import count_calls
from maitred.http._client import AsyncClient, Client
from maitred.http._errors import (
    Closed,
    ConnectError,
    ConnectTimeout,
    DecodingError,
    HTTPError,
    InvalidRequest,
    NotAllowed,
    PoolTimeout,
    ProtocolError,
    ProxyError,
    ReadError,
    ReadTimeout,
    ResolveError,
    StatusError,
    TimeoutException,
    TLSError,
    TooLarge,
    TooManyRedirects,
    TotalTimeout,
    WriteError,
    WriteTimeout,
)
from maitred.http._headers import Headers
from maitred.http._limits import DEFAULT_TIMEOUT, Limits, Timeout
from maitred.http._response import Response

__all__ = [
    "DEFAULT_TIMEOUT",
    "AsyncClient",
    "Client",
    "Closed",
    "ConnectError",
    "ConnectTimeout",
    "DecodingError",
    "HTTPError",
    "Headers",
    "InvalidRequest",
    "Limits",
    "NotAllowed",
    "PoolTimeout",
    "ProtocolError",
    "ProxyError",
    "ReadError",
    "ReadTimeout",
    "ResolveError",
    "Response",
    "StatusError",
    "TLSError",
    "Timeout",
    "TimeoutException",
    "TooLarge",
    "TooManyRedirects",
    "TotalTimeout",
    "WriteError",
    "WriteTimeout",
    "delete",
    "get",
    "head",
    "options",
    "patch",
    "post",
    "put",
    "request",
]

# A client may be made within a request, which has its calls counted, too.
count_calls()

_client: Client | None = None
_making = threading.Lock()


def request(method: str, url: str, **options: Any) -> Response:
    """A call by the client of the process, which has default settings. ``options`` as of :meth:`Client.request`."""
    global _client
    if _client is None:
        with _making:
            _client = _client or Client()
    return _client.request(method, url, **options)


def get(url: str, **options: Any) -> Response:
    """``request("GET", ...)``."""
    return request("GET", url, **options)


def head(url: str, **options: Any) -> Response:
    """``request("HEAD", ...)``."""
    return request("HEAD", url, **options)


def options(url: str, **options: Any) -> Response:
    """``request("OPTIONS", ...)``."""
    return request("OPTIONS", url, **options)


def post(url: str, **options: Any) -> Response:
    """``request("POST", ...)``."""
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Response:
    """``request("PUT", ...)``."""
    return request("PUT", url, **options)


def patch(url: str, **options: Any) -> Response:
    """``request("PATCH", ...)``."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Any) -> Response:
    """``request("DELETE", ...)``."""
    return request("DELETE", url, **options)
