"""The exceptions of calls, and the failures of the engine that become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maitred._engine import HttpFailure
    from maitred.http._response import Response


class HTTPError(Exception):
    """A call that has failed. ``origin`` is its server, ``phase`` the part of the call, as far as they are known.

    The phases: ``slot``, ``resolve``, ``connect``, ``proxy``, ``tls``, ``write``, ``first_byte``, ``read``, ``total``.
    """

    def __init__(self, message: str, *, origin: str | None = None, phase: str | None = None) -> None:
        super().__init__(message)
        self.origin = origin
        self.phase = phase


class TimeoutException(HTTPError):
    """A time limit has passed."""


class PoolTimeout(TimeoutException):
    """No connection of the pool became free; the message names the calls that hold them."""


class ConnectTimeout(TimeoutException):
    """No connection: looking the name up, connecting, the proxy or the TLS handshake took too long."""


class WriteTimeout(TimeoutException):
    """The server takes no byte of the request."""


class ReadTimeout(TimeoutException):
    """No first byte, or no further byte, of the response came."""


class TotalTimeout(TimeoutException):
    """The whole call took too long."""


class ConnectError(HTTPError):
    """No connection."""


class ResolveError(ConnectError):
    """The name has no address, or the resolver fails."""


class TLSError(ConnectError):
    """The TLS handshake has failed, or a certificate cannot be trusted or read."""


class ProxyError(ConnectError):
    """The proxy makes no connection to the server."""


class NotAllowed(ConnectError):
    """The address is not among those that the call may connect to, or a redirect leads from https to http."""


class ReadError(HTTPError):
    """The connection broke before the response was complete."""


class WriteError(HTTPError):
    """The connection broke before the request was sent."""


class ProtocolError(HTTPError):
    """The server's bytes are no response, or end within one, or its redirect leads to what is no URL."""


class InvalidRequest(HTTPError, ValueError):
    """The request cannot be sent as given. It is a ``ValueError``, too."""


class Closed(HTTPError):
    """The response, the client or the event loop was closed before."""


class DecodingError(HTTPError):
    """The body is not what its ``Content-Encoding`` says."""


class TooLarge(HTTPError):
    """The body is larger than ``max_size``, or its decoded form larger than ``max_ratio`` times what was received."""


class TooManyRedirects(HTTPError):
    """More redirects than ``max_redirects``."""


class StatusError(HTTPError):
    """``raise_for_status()``: the status is 400 or above. ``response`` is the response."""

    def __init__(self, message: str, response: Response) -> None:
        super().__init__(message)
        self.response = response


_KINDS: dict[str, type[HTTPError]] = {
    "connect": ConnectError,
    "resolve": ResolveError,
    "tls": TLSError,
    "proxy": ProxyError,
    "allow": NotAllowed,
    "read": ReadError,
    "write": WriteError,
    "protocol": ProtocolError,
    "request": InvalidRequest,
    "closed": Closed,
}

_TIMEOUTS: dict[str | None, type[TimeoutException]] = {
    "slot": PoolTimeout,
    "resolve": ConnectTimeout,
    "connect": ConnectTimeout,
    "proxy": ConnectTimeout,
    "tls": ConnectTimeout,
    "write": WriteTimeout,
    "first_byte": ReadTimeout,
    "read": ReadTimeout,
    "total": TotalTimeout,
}


def error_of(failure: HttpFailure) -> HTTPError:
    """The exception for a failure of the engine."""
    kind: type[HTTPError]
    if failure.kind == "timeout":
        kind = _TIMEOUTS.get(failure.phase, TimeoutException)
    else:
        kind = _KINDS.get(failure.kind, HTTPError)
    return kind(str(failure), origin=failure.origin, phase=failure.phase)


def is_of_engine(error: ValueError, module: str) -> bool:
    """Whether the engine, called by ``module``, refuses a request with ``error``: that of a body has come through code of the body."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == module
