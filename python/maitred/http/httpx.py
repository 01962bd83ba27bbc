"""Transports for httpx: a Client keeps its interface, and its calls go over maitred's connections.

    import httpx
    import maitred.http.httpx

    client = httpx.Client(transport=maitred.http.httpx.Transport())
    client = httpx.AsyncClient(transport=maitred.http.httpx.AsyncTransport())

The arguments are those of ``httpx.HTTPTransport``. `verify`, `cert`, `limits` and `proxy` belong to the transport: a Client ignores its own
where it has ``transport=``, but for `proxy`: with that it makes a transport of its own for all calls, and none goes over maitred's
connections. Leave ``proxy=`` of the Client out and give it to the transport. Exceptions are those of httpx.
"""

from __future__ import annotations

import httpx
from maitred.http import _httpx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AsyncTransport", "Transport"]


class _Body(_httpx.BlockingBody, httpx.SyncByteStream):
    pass


class _AsyncBody(_httpx.AwaitableBody, httpx.AsyncByteStream):
    pass


class Transport(_httpx.Blocking, httpx.BaseTransport):
    """A transport for ``httpx.Client``.

    `verify`: ``True``, ``False``, a file or folder of authorities, or an ``ssl.SSLContext``, of which authorities and flags are taken.
    `cert`: a file, (certificate, key) or (certificate, key, password); a context's own certificate cannot be read. `trust_env`: proxies
    and ``SSL_CERT_FILE`` from the environment. `limits`, `proxy`, `uds`, `retries`: as httpx documents. `allow`: the addresses that may be
    connected, ``"public"`` or networks. `propagate`: traceparent, tracestate and X-Request-ID of the request that is being served go
    along, to whatever server, and with the redirects that httpx follows. HTTP/1.1 is spoken, with `http2` too; ``http1=False``,
    `local_address` and `socket_options` raise ``ValueError``.
    """

    framework, own = httpx, httpx.HTTPTransport

    def _stream(self, response: Any, request: Any, trace: Any) -> Any:
        return _Body(self, response, request, trace)


class AsyncTransport(_httpx.Awaitable, httpx.AsyncBaseTransport):
    """A transport for ``httpx.AsyncClient`` on asyncio's loops; the arguments are those of :class:`Transport`."""

    framework, own = httpx, httpx.AsyncHTTPTransport

    def _stream(self, response: Any, request: Any, trace: Any) -> Any:
        return _AsyncBody(self, response, request, trace)
