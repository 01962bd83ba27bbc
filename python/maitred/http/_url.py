"""URLs: the server that they name, and the target that is sent to it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Union
from urllib.parse import quote, unquote_to_bytes, urlencode, urljoin, urlsplit

from maitred.http._errors import InvalidRequest

Value = Union[str, int, float, bool, None]
Params = Union[Mapping[str, Union[Value, Iterable[Value]]], Iterable[tuple[str, Value]], str, bytes]

#: Left as they are: what RFC 3986 allows in a path or a query, and percent signs, since an URL is encoded already.
SAFE = "/?:@!$&'()*+,;=~%-._[]"

#: The beginning of an absolute URL (RFC 3986, section 3.1). A relative one may have "://" further behind.
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

_PORTS = {"http": 80, "https": 443}


class Parts(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str
    credentials: bytes | None

    @property
    def origin(self) -> tuple[str, str, int]:
        return self[:3]


def parse(url: str) -> Parts:
    """The parts of an absolute URL."""
    try:
        split = urlsplit(url)
        port = split.port
        path, query = quote(split.path, safe=SAFE), quote(split.query, safe=SAFE)
    except ValueError as error:
        raise InvalidRequest(f"the URL {url!r} cannot be read: {error}") from None
    scheme = split.scheme.lower()
    if scheme not in _PORTS or not split.hostname:
        raise InvalidRequest(f"the URL {url!r} is not absolute: write http:// or https:// and a host, or give the client a base_url")
    target = path or "/"
    if query:
        target += "?" + query
    credentials = None
    if split.username is not None:
        user = unquote_to_bytes(split.username) + b":" + unquote_to_bytes(split.password or "")
        credentials = b"Basic " + b64encode(user)
    return Parts(scheme, ascii_host(split.hostname), _PORTS[scheme] if port is None else port, target, credentials)


def ascii_host(host: str) -> str:
    """The host in ASCII: names of other letters by IDNA 2008 where the package ``idna`` is there, and by IDNA 2003 elsewhere."""
    if host.isascii():
        return host
    try:
        try:
            import idna
        except ModuleNotFoundError:
            return host.encode("idna").decode("ascii")
        return idna.encode(host, uts46=True).decode("ascii")
    except UnicodeError as error:
        raise InvalidRequest(f"the host {host!r} is no name: {error}") from None


def with_params(url: str, *several: Params | None) -> str:
    """The URL with these parameters behind those that it has."""
    texts = [encoded(params) for params in several if params]
    if not any(texts):
        return url
    url, mark, fragment = url.partition("#")
    joint = "&" if "?" in url else "?"
    return url + joint + "&".join(text for text in texts if text) + mark + fragment


def encoded(params: Params) -> str:
    """Parameters as a query. None stands for no parameter, and booleans for ``true`` and ``false``."""
    if isinstance(params, bytes):
        if not params.isascii():
            raise InvalidRequest(f"the params {params!r} have bytes beyond ASCII: encode them as the server expects it")
        return params.decode("ascii")
    if isinstance(params, str):
        return params
    pairs: list[tuple[str, str]] = []
    items = params.items() if isinstance(params, Mapping) else params
    for name, values in items:
        several = values if isinstance(values, (list, tuple, set, frozenset)) else (values,)
        pairs.extend((name, _text(value)) for value in several if value is not None)
    return urlencode(pairs)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def joined(base: str, url: str) -> str:
    """``url`` below ``base``: a path is put behind that of the base; an absolute URL stays."""
    if not base or ABSOLUTE.match(url):
        return url
    return base.rstrip("/") + "/" + url.lstrip("/") if url else base


def redirected(url: str, location: str) -> str:
    """The URL to which a ``Location`` leads, given with a letter for each of its bytes. Servers send UTF-8 in it.

    Raises ``ValueError`` where it is no URL.
    """
    raw = location.encode("latin-1")
    try:
        location = raw.decode("utf-8")
    except UnicodeDecodeError:
        location = quote(raw, safe=bytes(range(128)))
    return urljoin(url, location).partition("#")[0]
