"""What both clients share: defaults, origins, requests, redirects."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from maitred._engine import HttpOrigin, HttpPool, __version__, http_proxy_for
from maitred.http._content import Body, Content, body_of
from maitred.http._decoding import ACCEPT
from maitred.http._errors import Closed, InvalidRequest, NotAllowed, ProtocolError, TooManyRedirects, TotalTimeout
from maitred.http._limits import DEFAULT_TIMEOUT, UNSET, Limits, Seconds, Timeout
from maitred.http._response import Response
from maitred.http._url import Params, Parts, joined, parse, redirected, with_params

Text = Union[str, bytes]
HeaderTypes = Union[Mapping[str, str], Iterable[tuple[Text, Text]]]
Pair = tuple[bytes, bytes]
Certificate = Union[str, "os.PathLike[str]", tuple[Union[str, "os.PathLike[str]"], ...]]

#: URLs whose parts are kept, and origins: an application has some, and one that makes them up must not grow for ever.
MOST_KEPT = 1024

_DEFAULTS: list[Pair] = [
    (b"Accept", b"*/*"),
    (b"Accept-Encoding", ACCEPT.encode()),
    (b"User-Agent", b"maitred/" + __version__.encode()),
]

#: Not sent to another origin.
_PRIVATE = frozenset((b"authorization", b"cookie", b"proxy-authorization", b"host"))
#: Not sent when the body is left out.
_OF_BODY = frozenset((b"content-type", b"content-length", b"content-encoding", b"content-language", b"transfer-encoding", b"expect"))


class Request(NamedTuple):
    """A request that can be sent."""

    method: str
    url: str
    origin: HttpOrigin
    target: bytes
    headers: list[Pair]
    body: Body
    seconds: Seconds
    repeatable: bool | None
    propagate: bool

    def within(self, left: float) -> Request:
        """The same, with so many seconds left for the whole call."""
        if left <= 0:
            raise TotalTimeout(f"{self.url}: the time limit total has passed behind a redirect", phase="total")
        return self._replace(seconds=(*self.seconds[:5], left))


class Settings:
    """The settings of a client."""

    def __init__(
        self,
        *,
        base_url: str = "",
        headers: HeaderTypes | None = None,
        params: Params | None = None,
        auth: tuple[str, str] | None = None,
        timeout: Timeout | float | None = DEFAULT_TIMEOUT,
        limits: Limits | None = None,
        verify: bool | str | os.PathLike[str] = True,
        cert: Certificate | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        socket: str | os.PathLike[str] | None = None,
        allow: str | Sequence[str] | None = None,
        follow_redirects: bool = False,
        max_redirects: int = 20,
        propagate: bool = True,
    ) -> None:
        if not isinstance(verify, (bool, str, os.PathLike)):
            raise TypeError("verify is True, False, or the path of a file or folder of authorities; an SSLContext cannot be used")
        self.limits = limits or Limits()
        self.pool = HttpPool(
            per_host=self.limits.per_host, total=self.limits.total, idle=self.limits.idle, age=self.limits.age
        )
        self.base_url = base_url
        self.params = params
        self.timeout = Timeout.of(timeout)
        self.follow_redirects = follow_redirects
        self.max_redirects = max_redirects
        self.propagate = propagate
        self.closed = False
        self._verify = verify
        self._cert = _certificate(cert)
        self._proxy = proxy
        self._trust_env = trust_env
        self._socket = socket
        self._allow = allow
        own = pairs(headers)
        if auth is not None:
            own.append(basic(auth))
        self.headers = over(_DEFAULTS, own)
        if base_url:
            parse(base_url)
            if "?" in base_url or "#" in base_url:
                raise InvalidRequest(f"the base_url {base_url!r} has a query or fragment, behind which no path can stand: give params= instead")
        self._parts: dict[str, tuple[Parts, HttpOrigin, bytes]] = {}
        self._origins: dict[tuple[str, str, int], HttpOrigin] = {}

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: HeaderTypes | None = None,
        params: Params | None = None,
        content: Content | None = None,
        data: Params | None = None,
        json: Any = UNSET,
        auth: tuple[str, str] | None = None,
        timeout: Timeout | float | None = UNSET,
        repeatable: bool | None = None,
    ) -> Request:
        """The request of these arguments."""
        if self.closed:
            raise Closed("the client is closed")
        if params or self.params or self.base_url:
            url = with_params(joined(self.base_url, url), self.params, params)
        parts, origin, target = self._known(url)
        sent = self.headers
        body: Body = None
        if content is not None or data is not None or json is not UNSET:
            body, of_body = body_of(content, data, None if json is UNSET else json, json is not UNSET)
            sent = over(sent, of_body) if of_body else sent
        if parts.credentials is not None:
            sent = over(sent, [(b"Authorization", parts.credentials)])
        if headers is not None:
            sent = over(sent, pairs(headers))
        if auth is not None:
            sent = over(sent, [basic(auth)])
        limit = self.timeout if timeout is UNSET else Timeout.of(timeout)
        return Request(method.upper(), url, origin, target, sent, body, limit.seconds, repeatable, self.propagate)

    def redirect(self, request: Request, response: Response, number: int) -> Request:
        """The request to which ``response`` leads, the one with this number."""
        if number > self.max_redirects:
            raise TooManyRedirects(f"{request.url}: more than {self.max_redirects} redirects")
        before, _, _ = self._known(request.url)
        location = response.headers["location"]
        try:
            url = redirected(request.url, location)
            parts, origin, target = self._known(url)
        except ValueError as error:
            raise ProtocolError(f"{request.url}: the redirect to {location!r} cannot be followed: {error}") from None
        if before.scheme == "https" and parts.scheme == "http":
            raise NotAllowed(f"{request.url}: the redirect to {url} leads from https to http, which is not followed")
        headers, body, method, propagate = request.headers, request.body, request.method, request.propagate
        is_seen = response.status == 303 and method != "HEAD" or response.status in (301, 302) and method == "POST"
        if is_seen:
            method, body = "GET", None
            headers = [pair for pair in headers if pair[0].lower() not in _OF_BODY]
        elif body is not None and not isinstance(body, bytes):
            raise InvalidRequest(f"{request.url}: the redirect to {url} wants the body again, which can be sent once")
        if before.origin != parts.origin:
            headers = [pair for pair in headers if pair[0].lower() not in _PRIVATE]
            propagate = False
        return request._replace(
            method=method, url=url, origin=origin, target=target, headers=headers, body=body, propagate=propagate
        )

    def _known(self, url: str) -> tuple[Parts, HttpOrigin, bytes]:
        """The parts of a URL. An URL that is used again is not read again."""
        found = self._parts.get(url)
        if found is None:
            parts = parse(url)
            found = (parts, self._origin(parts), parts.target.encode("ascii"))
            if len(self._parts) >= MOST_KEPT:
                self._parts.clear()
            self._parts[url] = found
        return found

    def _origin(self, parts: Parts) -> HttpOrigin:
        origin = self._origins.get(parts.origin)
        if origin is None:
            try:
                origin = self._new_origin(*parts.origin)
            except ValueError as error:
                raise InvalidRequest(f"{parts.scheme}://{parts.host}: {error}") from None
            if len(self._origins) >= MOST_KEPT:
                self._origins.clear()
            self._origins[parts.origin] = origin
        return origin

    def _new_origin(self, scheme: str, host: str, port: int) -> HttpOrigin:
        proxy = self._proxy
        if proxy is None and self._trust_env and self._socket is None:
            proxy = http_proxy_for(scheme, host, port)
        return HttpOrigin(
            scheme,
            host,
            port,
            socket=self._socket,
            proxy=proxy,
            verify=self._verify is not False,
            authorities=None if isinstance(self._verify, bool) else os.fspath(self._verify),
            certificate=self._cert,
            allow=self._allow,
        )


def pairs(headers: HeaderTypes | None) -> list[Pair]:
    """Fields as bytes."""
    if headers is None:
        return []
    items = headers.items() if isinstance(headers, Mapping) else headers
    return [(_bytes(name), _bytes(value)) for name, value in items]


def _bytes(text: Text) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise InvalidRequest(f"the header text {text!r} has letters beyond ISO 8859-1: encode them as the server expects it") from None


def over(below: list[Pair], above: list[Pair]) -> list[Pair]:
    """Fields of ``above``, and of ``below`` those of other names."""
    names = {name.lower() for name, _ in above}
    return [pair for pair in below if pair[0].lower() not in names] + above


def basic(auth: tuple[str, str]) -> Pair:
    """Credentials of Basic (RFC 7617)."""
    user, password = auth
    return (b"Authorization", b"Basic " + b64encode(f"{user}:{password}".encode()))


def _certificate(cert: Certificate | None) -> tuple[str, str | None, str | None] | None:
    """A file, or (certificate, key) or (certificate, key, password)."""
    if cert is None:
        return None
    if isinstance(cert, (str, os.PathLike)):
        return (os.fspath(cert), None, None)
    certificate, key, password, *_ = [*(os.fspath(part) for part in cert), None, None, None]
    if certificate is None or len(cert) > 3:
        raise ValueError("cert is a file, (certificate, key) or (certificate, key, password)")
    return (certificate, key, password)
