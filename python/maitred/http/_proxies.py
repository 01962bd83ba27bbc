"""The URL of a proxy, as httpx and requests have it, in the form that an origin takes."""

from __future__ import annotations

from urllib.parse import urlsplit

#: The limit of a pool that has none.
UNLIMITED = 2**31

DEFAULT_PORTS = {"http": 80, "https": 443}


def with_scheme(proxy: str) -> str:
    """The environment may name a proxy by host and port alone."""
    return proxy if "://" in proxy else f"http://{proxy}"


def without_credentials(proxy: str) -> str:
    """``scheme://host:port``.

    Raises ``ValueError`` for a proxy that does not speak HTTP.
    """
    parts = urlsplit(proxy)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"proxy {parts.scheme}://{parts.hostname}: maitred.http reaches servers by HTTP proxies, not by {parts.scheme!r};"
                         " give an http:// or https:// proxy")
    if not parts.hostname:
        raise ValueError(f"proxy {proxy!r} has no host")
    port = DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    if not port:
        raise ValueError(f"proxy {proxy!r} has the port 0; ports are 1 to 65535")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
