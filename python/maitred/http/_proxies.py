"""Which proxy the environment wants for a server.

Reads ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``; names in lower case go first. ``HTTP_PROXY`` in upper case is
ignored where ``REQUEST_METHOD`` is set: under CGI a client makes it of its field ``Proxy`` (httpoxy). An entry of ``NO_PROXY`` is a
name with everything below it (with a leading dot, too), an address, a network (``10.0.0.0/8``), or ``*``; a port or a scheme in front
narrows it (``example.org:8080``, ``https://example.org``).
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Environment:
    """The proxies of an environment, read once."""

    __slots__ = ("_exceptions", "_proxies")

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        variables = os.environ if variables is None else variables
        found = {scheme: _value(variables, f"{scheme}_proxy") for scheme in ("http", "https", "all")}
        self._proxies = {scheme: value if "://" in value else f"http://{value}" for scheme, value in found.items() if value}
        words = (word.strip() for word in _value(variables, "no_proxy").split(",")) if self._proxies else ()
        self._exceptions = [_Exception(word) for word in words if word]

    def proxy_of(self, scheme: str, host: str, port: int) -> str | None:
        """The URL of the proxy for a server; ``None`` for a direct connection."""
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if proxy is None:
            return None
        host = host.lower().rstrip(".")
        address = _address(host)
        direct = any(each.has(scheme, host, address, port) for each in self._exceptions)
        return None if direct else proxy


class _Exception:
    """An entry of ``NO_PROXY``."""

    __slots__ = ("_host", "_network", "_port", "_scheme")

    def __init__(self, word: str) -> None:
        scheme, separator, rest = word.partition("://")
        self._scheme = scheme.lower() if separator and scheme != "all" else None
        rest = (rest if separator else word).lower()
        self._network = _network(rest.strip("[]"))
        self._port: int | None = None
        if self._network is None:
            host, _, port = rest.rpartition(":")
            if host and port.isdecimal():
                self._port, rest = int(port), host
                self._network = _network(rest.strip("[]"))
        self._host = rest.lstrip("*.").rstrip(".") if rest != "*" else "*"

    def has(self, scheme: str, host: str, address: _Address | None, port: int) -> bool:
        if self._scheme not in (None, scheme) or self._port not in (None, port):
            return False
        if self._network is not None:
            return address is not None and address in self._network
        return self._host == "*" or host == self._host or (bool(self._host) and host.endswith(f".{self._host}"))


def _value(variables: Mapping[str, str], name: str) -> str:
    lower = variables.get(name, "")
    if lower or (name == "http_proxy" and "REQUEST_METHOD" in variables):
        return lower.strip()
    return variables.get(name.upper(), "").strip()


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def without_credentials(proxy: str) -> str:
    """``scheme://host:port`` of the URL of a proxy.

    Raises ``ValueError`` for a proxy that does not speak HTTP.
    """
    parts = urlsplit(proxy)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"proxy {parts.scheme}://{parts.hostname}: maitred.http reaches servers by HTTP proxies, not by {parts.scheme!r};"
                         " give an http:// or https:// proxy")
    if not parts.hostname:
        raise ValueError(f"proxy {proxy!r} has no host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or DEFAULT_PORTS[parts.scheme]}"
