"""The native part of maitred."""

from collections.abc import AsyncIterable, Awaitable, Iterable, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import final

__all__ = [
    "ClientDisconnected",
    "DatabaseCounts",
    "HttpBody",
    "HttpFailure",
    "HttpOrigin",
    "HttpPool",
    "HttpResponse",
    "RequestTimeout",
    "__version__",
    "bound_end",
    "count_calls",
    "count_databases",
    "deprecated",
    "http_proxy_for",
    "main",
]

__version__: str
"""The version of the package."""

class RequestTimeout(Exception):
    """The request took longer than the server waits for a response, and the client has been told so.

    Raised in the middle of application code with the option interrupt.
    """

class ClientDisconnected(BrokenPipeError):
    """The client closed the connection before the response was complete.

    Raised by ``send`` of an ASGI application.
    """

def deprecated(old: str, new: str) -> None:
    """Reports that ``old`` was called, in whose place ``new`` should be; to be called by the old function itself.

    While the server runs, each pair gets one entry in the error log, of the level warn and with the place of the first
    call; at most 1,000 pairs do. Elsewhere it is a ``DeprecationWarning`` each time.
    """

def main(argv: Sequence[str | PathLike[str]], command: Sequence[str | PathLike[str]] | None = None) -> int:
    """Runs the command with these arguments, the program's name first, and returns its exit code.

    ``command`` is how this program was started, without its arguments: with ``--workers`` further processes are started like
    that. Without it they are started as ``python -m maitred``.

    Serves until SIGTERM or SIGINT when the arguments say so. The code is 0 after a regular end, 1
    when the system refused something, 2 after an error of the user's making (one line on standard
    error says which), 128 and the number of the signal after a second signal. Must be called on the
    main thread, which alone can take signals: elsewhere serving ends with code 1. Raises ``OSError``
    when the process has no descriptor left.
    """

def bound_end(code: int) -> None:
    """After :func:`main`, whose code it is: the process ends in some seconds beyond what the drain has left, whatever Python waits for."""

@final
class DatabaseCounts:
    """What one request has of databases; ``maitred.instrument`` counts, on whatever threads."""

    def __new__(cls) -> DatabaseCounts: ...
    def add(self, nanos: int, statements: int, failed: bool) -> None:
        """Statements that took so long together; or one call that failed, whatever it would have been."""

    def wait(self, nanos: int, connections: int) -> None:
        """A connection of a pool was waited for, which has so many."""

    @property
    def statements(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def nanos(self) -> int: ...
    @property
    def wait_nanos(self) -> int: ...
    @property
    def connections(self) -> int: ...

def count_databases(current: ContextVar[DatabaseCounts | None]) -> None:
    """From now on each request has its counts in this context variable."""

@final
class HttpFailure(Exception):
    """A call has no response, or its response has no end."""

    def __new__(cls, message: str, kind: str, phase: str | None, origin: str) -> HttpFailure: ...
    @property
    def kind(self) -> str:
        """``timeout``, ``connect``, ``resolve``, ``tls``, ``proxy``, ``protocol``, ``read``, ``write``, ``request``, ``closed`` or ``allow``."""

    @property
    def phase(self) -> str | None:
        """The part of the call that has failed: ``slot``, ``resolve``, ``connect``, ``proxy``, ``tls``, ``write``, ``first_byte``, ``read`` or ``total``."""

    @property
    def origin(self) -> str: ...

@final
class HttpOrigin:
    """A server and the way there; made once and kept by its callers. The host is ASCII."""

    def __new__(
        cls,
        scheme: str,
        host: str,
        port: int,
        *,
        socket: str | PathLike[str] | None = None,
        proxy: str | None = None,
        proxy_headers: Sequence[tuple[bytes, bytes]] = ...,
        verify: bool = True,
        authorities: str | PathLike[str] | None = None,
        certificate: tuple[str | PathLike[str], str | PathLike[str] | None, str | None] | None = None,
        server_name: str | None = None,
        allow: str | Sequence[str] | None = None,
    ) -> HttpOrigin:
        """Raises ``ValueError`` for what no call could use.

        ``authorities`` is a file or folder in PEM, or PEM itself, ``certificate`` the client's: its file, that of its key, the key's password.
        ``allow`` is ``"public"``, an address, a network, or a list of these: other addresses are not connected.
        """

def count_calls() -> None:
    """Calls to other servers count for the requests that make them, from now on."""

def http_proxy_for(scheme: str, host: str, port: int, /) -> str | None:
    """The URL of the proxy that the environment names for a server; None if calls go there directly."""

@final
class HttpPool:
    """Limits and idle connections, which threads may share. ``idle`` and ``age`` are seconds."""

    def __new__(cls, *, per_host: int = 100, total: int = 1000, idle: float = 4.0, age: float = 300.0) -> HttpPool: ...
    def send(
        self,
        origin: HttpOrigin,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | Iterable[bytes] | None,
        timeouts: tuple[float | None, float | None, float | None, float | None, float | None, float | None]
        | tuple[float | None, float | None, float | None, float | None, float | None, float | None, float | None],
        *,
        repeatable: bool | None = None,
        propagate: bool = False,
    ) -> HttpResponse:
        """Sends a request and waits for the head of its response.

        ``timeouts`` are seconds for a connection of the pool, connecting, TLS, the first byte, progress, and the whole call. A seventh
        is for writing, in place of progress.
        With ``propagate`` traceparent, tracestate and X-Request-ID of the request that is being served go along.
        Raises :class:`HttpFailure`, and what ``body`` raises.
        """

    def send_async(
        self,
        origin: HttpOrigin,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | AsyncIterable[bytes] | Iterable[bytes] | None,
        timeouts: tuple[float | None, float | None, float | None, float | None, float | None, float | None]
        | tuple[float | None, float | None, float | None, float | None, float | None, float | None, float | None],
        *,
        repeatable: bool | None = None,
        propagate: bool = False,
    ) -> Awaitable[HttpResponse]:
        """The same within an event loop of asyncio. A task that is cancelled while it waits ends the call at once."""

    @property
    def idle(self) -> int:
        """The number of idle connections."""

    @property
    def used(self) -> int:
        """The number of connections that calls hold."""

    def close(self) -> None:
        """Closes idle connections. Calls that run end as they would."""

@final
class HttpResponse:
    """A response. Its connection is free again behind the last byte of the body, and closed if the response is dropped before."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> bytes: ...
    @property
    def version(self) -> tuple[int, int]: ...
    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The fields in their order and spelling."""

    def first(self, name: str, /) -> bytes | None:
        """The first value of a field; no other field is made into an object."""

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """The trailers, behind the last byte of the body."""

    def read(self, most: int = -1, /) -> bytes:
        """Reads at most ``most`` bytes of the body, the rest if it is negative; none at its end. Nothing is decoded."""

    def read_async(self, most: int = -1, /) -> Awaitable[bytes]:
        """The same for the response of an awaitable call."""

    @property
    def report(self) -> dict[str, float | int | bool | None]:
        """The account of the call so far.

        Seconds or None for ``slot``, ``resolve``, ``connect``, ``tls``, ``first_byte`` and ``total``; the bytes ``sent`` and
        ``received``; whether the connection was ``reused``, and the request ``retried`` on a new one.
        """

    def close(self) -> None:
        """Ends the call. A body that is not read to its end closes the connection."""

@final
class HttpBody:
    """Takes the parts of a body that an awaitable call sends; for ``maitred.http``."""

    def wanted(self) -> Awaitable[bool]:
        """True when there is room for the first part. False: no part is wanted."""

    def give(self, part: bytes, /) -> bool | Awaitable[bool]:
        """Takes a part. True: the next one can come. False: no further one is wanted."""

    def end(self) -> None: ...
    def fail(self, error: BaseException, /) -> None: ...
