"""The transports of ``maitred.http.httpx`` and ``maitred.http.httpx2``, for the module that a subclass names.

A transport gives raw bytes: decoding, redirects, cookies and authentication are the framework's. While respx or pytest-httpx mocks the
framework's own transport, calls go to the mock: tests see no difference.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator

from maitred._engine import HttpFailure, HttpOrigin, HttpPool, http_proxy_for
from maitred.http._errors import is_of_engine
from maitred.http._proxies import DEFAULT_PORTS, UNLIMITED, with_scheme, without_credentials
from maitred.http._tls import HINT, Trust, certificate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from maitred._engine import HttpResponse

#: As many servers as a transport remembers; with more, the one that came first is made anew.
MAX_ORIGINS = 1024
#: At most so many bytes of a body are one part: one read of a socket.
PART = 64 * 1024
#: Seconds between attempts to connect: at once, then so many, doubled each time.
FIRST_PAUSE = 0.5
#: The failures before a connection is there: `retries` are for these.
BEFORE_CONNECTED = frozenset({"connect", "resolve", "tls"})
#: The parts of a call that a limit on connecting is for.
CONNECTING = frozenset({"resolve", "connect", "tls", "proxy"})

EXCEPTIONS = {
    "connect": "ConnectError", "resolve": "ConnectError", "tls": "ConnectError", "allow": "ConnectError", "proxy": "ProxyError",
    "protocol": "RemoteProtocolError", "read": "ReadError", "closed": "ReadError", "write": "WriteError", "request": "LocalProtocolError",
}
TIMEOUTS = {"slot": "PoolTimeout", "write": "WriteTimeout", **dict.fromkeys(CONNECTING, "ConnectTimeout")}

#: The modules that respx and pytest-httpx put in place of methods.
MOCKS = frozenset({"respx.mocks", "pytest_httpx"})

Timeouts = tuple["float | None", "float | None", "float | None", "float | None", "float | None", "float | None", "float | None"]


class Caller:
    """Settings of a transport, and the way to its servers."""

    #: httpx or httpx2, set by the subclass.
    framework: Any
    #: The framework's own transport and the pool below, and their method that tests mock.
    own: Any
    own_pool: str
    own_method: str

    def __init__(
        self,
        verify: ssl.SSLContext | str | bool = True,
        cert: Any = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = False,
        limits: Any = None,
        proxy: Any = None,
        uds: str | None = None,
        local_address: str | None = None,
        retries: int = 0,
        socket_options: Iterable[Any] | None = None,
        *,
        allow: str | list[str] | None = None,
        propagate: bool = True,
    ) -> None:
        # `http2` allows HTTP/2, and does not ask for it.
        given = {"http1=False": not http1, "local_address": local_address is not None, "socket_options": socket_options is not None}
        refused = next((name for name, is_given in given.items() if is_given), None)
        if refused:
            reason = "it speaks HTTP/1.1" if refused.startswith("http") else "the system chooses it"
            raise ValueError(f"{type(self).__module__}.{type(self).__qualname__}: {refused} cannot be had, {reason}; leave it out")
        self._arguments = {"verify": verify, "cert": cert, "trust_env": trust_env, "proxy": proxy, "uds": uds, "retries": retries}
        self._trust = Trust(verify, os.environ if trust_env else None)
        self._certificate = certificate_of(cert)
        self._allow, self._socket, self._retries, self._propagate = allow, uds, retries, propagate
        self._proxy = None if proxy is None else self._read_proxy(proxy)
        # With `transport=` the framework itself does not look at the environment.
        self._asks_environment = trust_env and proxy is None and uds is None
        self._origins: dict[tuple[Any, ...], HttpOrigin] = {}
        self._own: Any = None
        self._network_stream = NetworkStream(self.framework)
        self._pool = HttpPool(**_limits(limits))

    def _mocked(self) -> Any:
        """The framework's own transport while a test mocks it; `None` else."""
        pool = getattr(sys.modules.get(f"httpcore{self.framework.__name__.removeprefix('httpx')}"), self.own_pool, None) if "respx" in sys.modules else None
        methods = (getattr(each, self.own_method, None) for each in (self.own, pool))
        if not any(getattr(method, "__module__", None) in MOCKS for method in methods):
            return None
        if self._own is None:
            self._own = self.own(**self._arguments)
        return self._own

    def _read_proxy(self, proxy: Any) -> tuple[str, list[tuple[bytes, bytes]]]:
        if not isinstance(proxy, self.framework.Proxy):
            proxy = self.framework.Proxy(url=proxy)
        if proxy.ssl_context is not None:
            raise ValueError("proxy: its ssl_context cannot be used: the certificate of a proxy is verified as `verify` says; leave ssl_context out")
        fields = list(proxy.headers.raw)
        if proxy.raw_auth is not None:
            fields.insert(0, (b"Proxy-Authorization", _basic(*proxy.raw_auth)))
        return without_credentials(str(proxy.url)), fields

    def _origin(self, request: Any) -> HttpOrigin:
        url = request.url
        server_name = request.extensions.get("sni_hostname")
        if isinstance(server_name, bytes):
            server_name = server_name.decode("ascii")
        key = (url.raw_scheme, url.raw_host, url.port, server_name)
        found = self._origins.get(key)
        return found if found is not None else self._make_origin(key, request)

    def _make_origin(self, key: tuple[bytes, bytes, int | None, str | None], request: Any) -> HttpOrigin:
        scheme, host, port = key[0].decode("ascii"), key[1].decode("ascii"), key[2]
        if scheme not in DEFAULT_PORTS:
            what = f"an unsupported protocol {scheme + '://'!r}." if scheme else "no protocol: it begins with http:// or https://."
            raise self.framework.UnsupportedProtocol(f"Request URL has {what}", request=request)
        if not host:
            raise self.framework.UnsupportedProtocol("Request URL has no host", request=request)
        port = DEFAULT_PORTS[scheme] if port is None else port
        if not 0 < port < 65536:
            raise self.framework.ConnectError(f"{request.url}: port {port} is none; ports are 1 to 65535", request=request)
        proxy, fields = self._proxy or (None, [])
        if self._asks_environment:
            from_environment = http_proxy_for(scheme, host, port)
            proxy, fields = self._read_proxy(with_scheme(from_environment)) if from_environment else (None, [])
        made = HttpOrigin(scheme, host, port, socket=self._socket, proxy=proxy, proxy_headers=fields, verify=self._trust.verify,
                          authorities=self._trust.authorities, certificate=self._certificate, server_name=key[3], allow=self._allow)
        if len(self._origins) >= MAX_ORIGINS:
            self._origins.pop(next(iter(self._origins)), None)
        self._origins[key] = made
        return made

    def _failed(self, failure: HttpFailure | ValueError, request: Any) -> Exception:
        """The framework's own exception. A `ValueError` is of a field that cannot be sent, or of the request's body, whose own it stays."""
        made: Exception
        if isinstance(failure, ValueError):
            if not is_of_engine(failure, __name__):
                raise failure
            made = self.framework.LocalProtocolError(str(failure), request=request)
            return made
        if failure.kind == "timeout":
            name = TIMEOUTS.get(failure.phase or "", "ReadTimeout")
        else:
            name = EXCEPTIONS.get(failure.kind, "NetworkError")
        message = str(failure)
        if self._trust.from_context and (failure.kind == "tls" or failure.phase == "tls"):
            message = f"{message} ({HINT})"
        made = getattr(self.framework, name)(message, request=request)
        return made

    def _response(self, response: HttpResponse, stream: Any) -> Any:
        extensions = {"http_version": b"HTTP/1.0" if response.version == (1, 0) else b"HTTP/1.1", "reason_phrase": response.reason,
                      "network_stream": self._network_stream}
        return self.framework.Response(response.status, headers=response.headers, stream=stream, extensions=extensions)


class Blocking(Caller):
    """``handle_request`` and what belongs to it."""

    own_pool, own_method = "ConnectionPool", "handle_request"

    def handle_request(self, request: Any) -> Any:
        if self.own.handle_request.__module__ in MOCKS or "respx" in sys.modules:
            mocked = self._mocked()
            if mocked is not None:
                return mocked.handle_request(request)
        stream, extensions = request.stream, request.extensions
        if not isinstance(stream, self.framework.SyncByteStream):
            raise RuntimeError("the body of the request is asynchronous: use AsyncTransport with an AsyncClient")
        # A ByteStream is there as a whole, and may be sent twice.
        body = b"".join(stream) or None if isinstance(stream, self.framework.ByteStream) else stream
        origin, target = self._origin(request), extensions.get("target") or request.url.raw_path
        timeouts, trace = _timeouts(extensions.get("timeout")), extensions.get("trace")
        if trace is not None:
            return self._traced(trace, request, origin, target, body, timeouts)
        try:
            response = self._send(origin, request, target, body, timeouts)
        except (HttpFailure, ValueError) as failure:
            raise self._failed(failure, request) from failure
        return self._response(response, self._stream(response, request, None))

    def _send(self, origin: HttpOrigin, request: Any, target: bytes, body: Any, timeouts: Timeouts) -> HttpResponse:
        left, pause = self._retries, 0.0
        while True:
            try:
                return self._pool.send(origin, request.method, target, request.headers.raw, body, timeouts, propagate=self._propagate)
            except HttpFailure as failure:
                if not left or not _may_connect_again(failure):
                    raise
            time.sleep(pause)
            left, pause = left - 1, max(FIRST_PAUSE, 2 * pause)

    def _traced(self, trace: Any, request: Any, origin: HttpOrigin, target: bytes, body: Any, timeouts: Timeouts) -> Any:
        _tell(trace, f"{HEAD}.started", {"request": request})
        try:
            response = self._send(origin, request, target, body, timeouts)
        except (HttpFailure, ValueError) as failure:
            exception = self._failed(failure, request)
            _tell(trace, f"{HEAD}.failed", {"exception": exception})
            raise exception from failure
        made = self._response(response, self._stream(response, request, trace))
        _tell(trace, f"{HEAD}.complete", {"return_value": _head(response)})
        return made

    def _stream(self, response: HttpResponse, request: Any, trace: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self._pool.close()


class Awaitable(Caller):
    """``handle_async_request`` and what belongs to it. Its event loop is one of asyncio."""

    own_pool, own_method = "AsyncConnectionPool", "handle_async_request"

    async def handle_async_request(self, request: Any) -> Any:
        if self.own.handle_async_request.__module__ in MOCKS or "respx" in sys.modules:
            mocked = self._mocked()
            if mocked is not None:
                return await mocked.handle_async_request(request)
        stream, extensions = request.stream, request.extensions
        if not isinstance(stream, self.framework.AsyncByteStream):
            raise RuntimeError("the body of the request is not asynchronous: use Transport with a Client")
        body = b"".join(stream) or None if isinstance(stream, self.framework.ByteStream) else stream
        origin, target = self._origin(request), extensions.get("target") or request.url.raw_path
        timeouts, trace = _timeouts(extensions.get("timeout")), extensions.get("trace")
        if trace is not None:
            return await self._traced(trace, request, origin, target, body, timeouts)
        try:
            if self._retries:
                response = await self._send(origin, request, target, body, timeouts)
            else:
                response = await self._pool.send_async(origin, request.method, target, request.headers.raw, body, timeouts, propagate=self._propagate)
        except (HttpFailure, ValueError) as failure:
            raise self._failed(failure, request) from failure
        return self._response(response, self._stream(response, request, None))

    async def _send(self, origin: HttpOrigin, request: Any, target: bytes, body: Any, timeouts: Timeouts) -> HttpResponse:
        left, pause = self._retries, 0.0
        while True:
            try:
                return await self._pool.send_async(origin, request.method, target, request.headers.raw, body, timeouts, propagate=self._propagate)
            except HttpFailure as failure:
                if not left or not _may_connect_again(failure):
                    raise
            await asyncio.sleep(pause)
            left, pause = left - 1, max(FIRST_PAUSE, 2 * pause)

    async def _traced(self, trace: Any, request: Any, origin: HttpOrigin, target: bytes, body: Any, timeouts: Timeouts) -> Any:
        await trace(f"{HEAD}.started", {"request": request})
        try:
            response = await self._send(origin, request, target, body, timeouts)
        except (HttpFailure, ValueError) as failure:
            exception = self._failed(failure, request)
            await trace(f"{HEAD}.failed", {"exception": exception})
            raise exception from failure
        made = self._response(response, self._stream(response, request, trace))
        await trace(f"{HEAD}.complete", {"return_value": _head(response)})
        return made

    def _stream(self, response: HttpResponse, request: Any, trace: Any) -> Any:
        raise NotImplementedError

    async def aclose(self) -> None:
        self._pool.close()


# Bodies of responses. The events of `trace` have the names that httpcore gives them.

HEAD, BODY, CLOSED = "http11.receive_response_headers", "http11.receive_response_body", "http11.response_closed"


class Body:
    """A response's body as the framework reads it, with the failures of reading as the framework's own."""

    def __init__(self, caller: Caller, response: HttpResponse, request: Any, trace: Any) -> None:
        self._caller, self._response, self._request, self._trace = caller, response, request, trace


class BlockingBody(Body):
    def __iter__(self) -> Iterator[bytes]:
        read, trace = self._response.read, self._trace
        if trace is not None:
            _tell(trace, f"{BODY}.started", {"request": self._request})
        try:
            while part := read(PART):
                yield part
        except HttpFailure as failure:
            exception = self._caller._failed(failure, self._request)
            if trace is not None:
                _tell(trace, f"{BODY}.failed", {"exception": exception})
            raise exception from failure
        if trace is not None:
            _tell(trace, f"{BODY}.complete", {"return_value": None})

    def close(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            _tell(trace, f"{CLOSED}.started", {})
        self._response.close()
        if trace is not None:
            _tell(trace, f"{CLOSED}.complete", {"return_value": None})


class AwaitableBody(Body):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, trace = self._response.read_async, self._trace
        if trace is not None:
            await trace(f"{BODY}.started", {"request": self._request})
        try:
            while part := await read(PART):
                yield part
        except HttpFailure as failure:
            exception = self._caller._failed(failure, self._request)
            if trace is not None:
                await trace(f"{BODY}.failed", {"exception": exception})
            raise exception from failure
        if trace is not None:
            await trace(f"{BODY}.complete", {"return_value": None})

    async def aclose(self) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            await trace(f"{CLOSED}.started", {})
        self._response.close()
        if trace is not None:
            await trace(f"{CLOSED}.complete", {"return_value": None})


class NetworkStream:
    """Stands for the connection, which stays the pool's: it tells nothing, and is neither read nor written."""

    __slots__ = ("_framework",)

    def __init__(self, framework: Any) -> None:
        self._framework = framework

    def get_extra_info(self, info: str) -> Any:
        return None

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise self._framework.UnsupportedProtocol("maitred.http does not hand its connections out: use another transport for WebSockets and tunnels")

    read = write = close = start_tls = aclose = _refuse


# Arguments


def _timeouts(given: dict[str, float | None] | None) -> Timeouts:
    """(slot, connect, tls, first_byte, progress, total, write)."""
    if not given:
        return (None,) * 7
    connect, read = given.get("connect"), given.get("read")
    return given.get("pool"), connect, connect, read, read, None, given.get("write")


def _limits(limits: Any) -> dict[str, Any]:
    """The arguments of the pool. `max_keepalive_connections` counts only as none or some: an idle connection has its time."""
    if limits is None:
        return {}
    made: dict[str, Any] = {"idle": float("inf") if limits.keepalive_expiry is None else float(limits.keepalive_expiry)}
    most = UNLIMITED if limits.max_connections is None else limits.max_connections
    made |= {"per_host": most, "total": most}
    if limits.max_keepalive_connections == 0:
        made["idle"] = 0.0
    return made


def _basic(user: bytes, password: bytes) -> bytes:
    from base64 import b64encode

    return b"Basic " + b64encode(user + b":" + password)


def _may_connect_again(failure: HttpFailure) -> bool:
    return failure.kind in BEFORE_CONNECTED or (failure.kind == "timeout" and failure.phase in CONNECTING)


def _head(response: HttpResponse) -> tuple[bytes, int, bytes, list[tuple[bytes, bytes]]]:
    return b"HTTP/1.0" if response.version == (1, 0) else b"HTTP/1.1", response.status, response.reason, response.headers


def _tell(trace: Any, event: str, info: dict[str, Any]) -> None:
    result = trace(event, info)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("the callback `trace` of a Client is a function, not a coroutine function")
