"""An adapter for requests: a Session keeps its interface, and its calls go over maitred's connections.

    import requests
    import maitred.http.requests

    session = requests.Session()
    maitred.http.requests.mount(session)

The adapter sends and receives; redirects, cookies, authentication and decoding are requests'. Exceptions are those of requests.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import requests
import urllib3
from maitred._engine import HttpFailure, HttpOrigin, HttpPool
from maitred.http import _urllib3
from maitred.http._proxies import DEFAULT_PORTS, UNLIMITED, without_credentials
from maitred.http._tls import Trust, certificate_of
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.util.retry import Retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from maitred._engine import HttpResponse

__all__ = ["Adapter", "mount"]

#: As many servers as an adapter remembers; with more, the one that came first is made anew.
MAX_ORIGINS = 1024
#: Seconds that a call waits for a connection of a full pool. requests has no argument for it.
SLOT_TIMEOUT = 30.0
#: A file is sent in parts of so many bytes.
PART = 64 * 1024

Timeouts = tuple["float | None", "float | None", "float | None", "float | None", "float | None", "float | None"]
#: A server, and whether a proxy is in front of it.
Way = tuple[HttpOrigin, bool]


def mount(session: requests.Session, adapter: Adapter | None = None) -> Adapter:
    """Has `session` send all its requests by `adapter`, or by a new one."""
    adapter = Adapter() if adapter is None else adapter
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return adapter


class Adapter(BaseAdapter):
    """Stands in place of ``requests.adapters.HTTPAdapter``, with its arguments.

    `pool_maxsize` counts with `pool_block`: so many connections to one server, and a call waits for one at most 30 seconds; without
    `pool_block` there is no limit. `max_retries`: a number of attempts to connect, or a ``urllib3.util.Retry``. `allow`: the addresses that
    may be connected, ``"public"`` or networks. `propagate`: traceparent, tracestate and X-Request-ID of the request that is being served go
    along, to whatever server, and with the redirects that requests follows.
    """

    def __init__(self, pool_connections: int = 10, pool_maxsize: int = 10, max_retries: int | Retry | None = 0, pool_block: bool = False, *,
                 allow: str | list[str] | None = None, propagate: bool = True) -> None:
        super().__init__()
        self.max_retries = Retry(0, read=False) if max_retries == 0 else Retry.from_int(max_retries)
        self._pool_connections, self._pool_maxsize, self._pool_block = pool_connections, pool_maxsize, pool_block
        self._allow, self._propagate = allow, propagate
        self._start()

    def _start(self) -> None:
        per_host = max(1, self._pool_maxsize) if self._pool_block else UNLIMITED
        self._pool = HttpPool(per_host=per_host, total=UNLIMITED)
        self._origins: dict[tuple[Any, ...], Way] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_pool", "_origins")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def close(self) -> None:
        """Closes idle connections. A later call makes new ones."""
        self._pool.close()

    # Steps that a subclass may replace, with the names that HTTPAdapter has for them.

    def add_headers(self, request: requests.PreparedRequest, **arguments: Any) -> None:
        """Adds nothing."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """The target of a request: its path and query. In front of a proxy the engine puts the server."""
        return request.path_url

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """The fields for a proxy: its credentials, which are in its URL."""
        user, password = requests.utils.get_auth_from_url(proxy)
        return {"Proxy-Authorization": requests.auth._basic_auth_str(user, password)} if user else {}

    def build_response(self, request: requests.PreparedRequest, raw: urllib3.HTTPResponse) -> requests.Response:
        """The response that a Session returns, of urllib3's."""
        # The stubs know the adapter of requests only, and some functions not at all.
        response: Any = requests.Response()
        cookies: Any = requests.cookies
        response.status_code, response.reason, response.raw = raw.status, raw.reason, raw
        response.headers = CaseInsensitiveDict(raw.headers)
        response.encoding = requests.utils.get_encoding_from_headers(response.headers)
        url: Any = request.url
        response.url = url.decode() if isinstance(url, bytes) else url
        cookies.extract_cookies_to_jar(response.cookies, request, raw)
        response.request = request
        response.connection = self
        made: requests.Response = response
        return made

    def send(self, request: requests.PreparedRequest, stream: bool = False, timeout: Any = None, verify: Any = True, cert: Any = None,
             proxies: Any = None) -> requests.Response:
        """Sends `request`, and waits for the head of its response, or for all of it unless `stream`."""
        url: Any = request.url
        try:
            way = self._way(url, verify, cert, proxies)
        except requests.RequestException as error:
            error.request = request
            raise
        self.add_headers(request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies)
        fields = [(_bytes(name), _bytes(value)) for name, value in request.headers.items()]
        raw = self._urlopen(request, way, self.request_url(request, proxies), fields, _timeouts(timeout))
        return self.build_response(request, raw)

    def _urlopen(self, request: requests.PreparedRequest, way: Way, path: str, fields: list[tuple[bytes, bytes]],
                 timeouts: Timeouts) -> urllib3.HTTPResponse:
        """The response behind all attempts that `max_retries` wants."""
        (origin, proxied), method, retries = way, request.method or "GET", self.max_retries
        start = _position(request.body) if retries.total else None
        while True:
            try:
                response = self._pool.send(origin, method, path.encode("ascii"), fields, _body(request.body), timeouts, propagate=self._propagate)
            except HttpFailure as failure:
                retries = _again(retries, request, failure, path, proxied)
                retries.sleep()
            else:
                raw = _urllib3.Response(response, method, path, retries)
                if not retries.is_retry(method, raw.status, "Retry-After" in raw.headers):
                    return raw
                try:
                    retries = retries.increment(method, path, response=raw, _pool=_urllib3.named(origin))
                except urllib3.exceptions.MaxRetryError as error:
                    if not retries.raise_on_status:
                        return raw
                    raw.drain_conn()
                    raise requests.exceptions.RetryError(error, request=request) from error
                raw.drain_conn()
                retries.sleep(raw)
            if start is not None:
                body: Any = request.body
                urllib3.util.request.rewind_body(body, start)

    # Origins

    def _way(self, url: str, verify: Any, cert: Any, proxies: Any) -> Way:
        parts = urlsplit(url)
        proxy = requests.utils.select_proxy(url, proxies) if proxies else None
        if verify is False and parts.scheme == "https":
            warnings.warn(f"Unverified HTTPS request is being made to host {parts.hostname!r}: give verify=True or a file of authorities",
                          urllib3.exceptions.InsecureRequestWarning, stacklevel=2)
        key = (parts.scheme, parts.netloc, verify, tuple(cert) if isinstance(cert, list) else cert, proxy)
        found = self._origins.get(key)
        if found is None:
            found = self._make_origin(parts.scheme, url, verify, cert, proxy), bool(proxy)
            if len(self._origins) >= MAX_ORIGINS:
                self._origins.pop(next(iter(self._origins)), None)
            self._origins[key] = found
        return found

    def _make_origin(self, scheme: str, url: str, verify: Any, cert: Any, proxy: str | None) -> HttpOrigin:
        try:
            parts = urllib3.util.parse_url(url)
        except urllib3.exceptions.LocationParseError as error:
            raise requests.exceptions.InvalidURL(error) from error
        if not parts.host:
            raise requests.exceptions.InvalidURL(f"Invalid URL {url!r}: there is no host")
        scheme = scheme.lower()
        named: dict[str, Any] = {"allow": self._allow}
        if proxy:
            named["proxy"], named["proxy_headers"] = self._read_proxy(proxy)
        if scheme == "https":
            trust = Trust(True if verify is None else verify)
            named |= {"verify": trust.verify, "authorities": trust.authorities, "certificate": certificate_of(cert)}
        port = parts.port if parts.port is not None else DEFAULT_PORTS[scheme]
        if not 0 < port < 65536:
            raise requests.exceptions.InvalidURL(f"Invalid URL {url!r}: ports are 1 to 65535")
        try:
            return HttpOrigin(scheme, parts.host.strip("[]"), port, **named)
        except ValueError as error:
            raise requests.exceptions.InvalidURL(error) from error

    def _read_proxy(self, proxy: str) -> tuple[str, list[tuple[bytes, bytes]]]:
        utils: Any = requests.utils
        proxy = utils.prepend_scheme_if_needed(proxy, "http")
        fields = [(_bytes(name), _bytes(value)) for name, value in self.proxy_headers(proxy).items()]
        try:
            return without_credentials(proxy), fields
        except ValueError as error:
            raise requests.exceptions.InvalidProxyURL(error) from error


def _again(retries: Retry, request: requests.PreparedRequest, failure: HttpFailure, path: str, proxied: bool) -> Retry:
    """The attempts that are left behind `failure`; without any, requests' exception."""
    error = _urllib3.exception_of(failure, path)
    if proxied and isinstance(error, urllib3.exceptions.ConnectTimeoutError) and failure.phase != "slot":
        error = urllib3.exceptions.ProxyError("Unable to connect to the proxy", error)
    try:
        return retries.increment(request.method, path, error=error, _pool=_urllib3.named(failure.origin))
    except urllib3.exceptions.MaxRetryError as last:
        raise _exception_of(last.reason, requests.exceptions.ConnectionError)(last, request=request) from failure
    except urllib3.exceptions.HTTPError as last:
        raise _exception_of(last, requests.exceptions.ReadTimeout)(last, request=request) from failure


def _exception_of(reason: Exception | None, read_timeout: type[requests.RequestException]) -> type[requests.RequestException]:
    """requests' exception for urllib3's; a late read that was tried again is a ConnectionError there."""
    reasons = urllib3.exceptions
    if isinstance(reason, reasons.ConnectTimeoutError) and not isinstance(reason, reasons.NewConnectionError):
        return requests.exceptions.ConnectTimeout
    if isinstance(reason, reasons.ReadTimeoutError):
        return read_timeout
    table = {reasons.ProxyError: requests.exceptions.ProxyError, reasons.SSLError: requests.exceptions.SSLError,
             reasons.InvalidHeader: requests.exceptions.InvalidHeader}
    return next((kind for error, kind in table.items() if isinstance(reason, error)), requests.exceptions.ConnectionError)


# Arguments


def _timeouts(timeout: Any) -> Timeouts:
    """(slot, connect, tls, first_byte, progress, total) of a number, (connect, read) or ``urllib3.Timeout``."""
    if timeout is None:
        return SLOT_TIMEOUT, None, None, None, None, None
    if isinstance(timeout, tuple):
        if len(timeout) != 2:
            raise ValueError(f"Invalid timeout {timeout}: give (connect, read), or one number for both")
        timeout = urllib3.Timeout(connect=timeout[0], read=timeout[1])
    elif not isinstance(timeout, urllib3.Timeout):
        timeout = urllib3.Timeout(connect=timeout, read=timeout)
    connect, read = (min((each for each in (limit, timeout.total) if isinstance(each, (int, float))), default=None)
                     for limit in (timeout._connect, timeout._read))
    return SLOT_TIMEOUT, connect, connect, read, read, None


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def _body(body: Any) -> bytes | Iterable[bytes] | None:
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if hasattr(body, "read"):
        return _parts(body)
    try:
        return memoryview(body).tobytes()
    except TypeError:
        return (part.encode() if isinstance(part, str) else part for part in body)


def _parts(file: Any) -> Iterator[bytes]:
    while part := file.read(PART):
        yield part.encode() if isinstance(part, str) else part


def _position(body: Any) -> Any:
    """Where a file stands that may have to be sent twice."""
    if not hasattr(body, "tell"):
        return None
    try:
        return body.tell()
    except OSError:
        return urllib3.util.request._FAILEDTELL
