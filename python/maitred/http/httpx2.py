"""Transports for httpx2: a Client keeps its interface, and its calls go over maitred's connections.

    import httpx2
    import maitred.http.httpx2

    client = httpx2.Client(transport=maitred.http.httpx2.Transport())
    client = httpx2.AsyncClient(transport=maitred.http.httpx2.AsyncTransport())

The arguments are those of ``httpx2.HTTPTransport``. `verify`, `cert`, `limits` and `proxy` belong to the transport: a Client ignores its own
where it has ``transport=``, but for `proxy`: with that it makes a transport of its own for all calls, and none goes over maitred's
connections. Leave ``proxy=`` of the Client out and give it to the transport. Exceptions are those of httpx2.
"""

from __future__ import annotations

import httpx2
from maitred.http import _httpx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AsyncTransport", "Transport"]


class _Body(_httpx.BlockingBody, httpx2.SyncByteStream):
    pass


class _AsyncBody(_httpx.AwaitableBody, httpx2.AsyncByteStream):
    pass


class Transport(_httpx.Blocking, httpx2.BaseTransport):
    """A transport for ``httpx2.Client``.

    `verify`: ``True``, ``False``, a file or folder of authorities, or an ``ssl.SSLContext``, of which authorities and flags are taken.
    `cert`: a file, (certificate, key) or (certificate, key, password); a context's own certificate cannot be read. `trust_env`: proxies
    and ``SSL_CERT_FILE`` from the environment. `limits`, `proxy`, `uds`, `retries`: as httpx2 documents. `allow`: the addresses that may be
    connected, ``"public"`` or networks. `propagate`: traceparent, tracestate and X-Request-ID of the request that is being served go
    along, to whatever server, and with the redirects that httpx2 follows. HTTP/1.1 is spoken, with `http2` too; ``http1=False``,
    `local_address` and `socket_options` raise ``ValueError``.
    """

    framework, own = httpx2, httpx2.HTTPTransport

    def _stream(self, response: Any, request: Any, trace: Any) -> Any:
        return _Body(self, response, request, trace)


class AsyncTransport(_httpx.Awaitable, httpx2.AsyncBaseTransport):
    """A transport for ``httpx2.AsyncClient`` on asyncio's loops; the arguments are those of :class:`Transport`."""

    framework, own = httpx2, httpx2.AsyncHTTPTransport

    def _stream(self, response: Any, request: Any, trace: Any) -> Any:
        return _AsyncBody(self, response, request, trace)
