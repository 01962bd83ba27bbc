"""What nginx.conf says once for all servers here: compression, times, limits of clients, trust, the error log, versions of TLS.

Where servers differ in such a thing, that is noted: there is one value for all. Leaves out what each host has for itself (nginx).
"""

from __future__ import annotations

import re

from maitred._migrate import meaning, nginx_fields, nginx_paths
from maitred._migrate.nginx_fields import time_of
from maitred._migrate.nginx_parse import BadConfiguration, Directive
from maitred._migrate.nginx_site import Scope
from maitred._migrate.result import Host, Result, Table


def put(result: Result, scope: Scope, main: Scope, sites: list[Scope], has_tls: bool, same: Scope | None) -> None:
    """Translates what stands in ``http``, and what its servers say of such things. ``same``: all ask their clients for certificates as this one does."""
    level, good = Table(), Table()
    nginx_fields.fields(result, result, (level, good), scope, None, has_tls)
    nginx_fields.request_fields(result, level, scope)
    result.filters.extend(part for part in (level, good) if part.lines)
    _Globals(result, scope, main, sites).put()
    if same:
        put_clients(result, same)


def clients(scope: Scope) -> tuple[str, ...]:
    """What a server asks of its clients, in the words of nginx."""
    verify = scope.one("ssl_verify_client")
    if verify is None or verify.arg not in ("on", "optional"):
        return ("off",)
    return (verify.arg, *(found.arg if found else "" for found in map(scope.one, ("ssl_client_certificate", "ssl_crl"))))


def put_clients(table: Host, scope: Scope) -> None:
    verify = scope.one("ssl_verify_client")
    if verify and verify.arg in ("on", "optional"):
        table.put("tls-client-auth", "required" if verify.arg == "on" else "optional", verify.origin)
        if authority := scope.one("ssl_client_certificate"):
            table.put("tls-client-ca", authority.arg, authority.origin)
        if lists := scope.one("ssl_crl"):
            table.put("tls-client-crl", lists.arg, lists.origin)


class _Globals:
    def __init__(self, result: Result, scope: Scope, main: Scope, sites: list[Scope]) -> None:
        self._result = result
        self._scope = scope
        self._main = main
        self._sites = sites
        #: The locations of all servers.
        self._inner = [Scope(location.block or []) for site in sites for location in site.own("location")]

    def put(self) -> None:
        self._compression()
        self._times()
        self._limits()
        self._trust()
        self._error_log()
        self._tls()

    def _first(self, name: str, inner: list[Scope] | None = None) -> Directive | None:
        """The first of a directive that can be said once here; others that differ are noted."""
        found = [directive for site in self._sites for directive in site.own(name)]
        if not self._sites or not all(site.own(name) for site in self._sites):
            found = [*self._scope.own(name), *found]
        found += [directive for scope in inner or [] for directive in scope.own(name)]
        for other in found[1:]:
            if other.args != found[0].args:
                self._result.decide(other.origin, f"{name} is one for all servers here, and {found[0].place} says another", "choose one")
        return found[0] if found else None

    def _compression(self) -> None:
        inner = self._inner
        gzip = self._first("gzip", inner)
        brotli = self._first("brotli", inner)
        chosen = next((directive for directive in (gzip, brotli) if directive and directive.arg == "on"), None)
        if chosen is None:
            return
        self._result.put("compress", True, chosen.origin)
        types = self._first("gzip_types", inner) or self._first("brotli_types", inner)
        if types and "*" not in types.args:
            self._result.put("compress-types", list(dict.fromkeys(["text/html", *types.args])), types.origin)
        elif types is None:
            self._result.put("compress-types", ["text/html"], "nginx's default of gzip_types")
        level = self._first("gzip_comp_level", inner)
        if level:
            self._result.put("compress-encodings", ["zstd:3", f"gzip:{level.arg}", "br:5"], level.origin)
        length = self._first("gzip_min_length", inner)
        if length:
            self._result.put("compress-min", length.arg.lower(), length.origin)

    def _times(self) -> None:
        for name, key in (("keepalive_timeout", "keep-alive"), ("client_header_timeout", "head-timeout"), ("client_body_timeout", "body-timeout")):
            directive = self._first(name)
            if directive and time_of(directive):
                self._result.put(key, time_of(directive), directive.origin)
            elif directive:
                self._result.tell(directive.origin, "connections are kept alive", "keep-alive = 0.001 closes them at once")
        sends = self._first("send_timeout")
        if sends and not self._result.find("body-timeout"):
            self._result.put("body-timeout", time_of(sends), sends.origin)
        self._reads()
        for name in ("proxy_connect_timeout", "proxy_send_timeout", "uwsgi_connect_timeout", "uwsgi_send_timeout"):
            for directive in [found for scope in [self._scope, *self._sites, *self._inner] for found in scope.own(name)]:
                self._result.tell(directive.origin, "no other server is connected to: the application runs here", "nothing has to be done")

    def _reads(self) -> None:
        """How long an answer may take: one time for all here, and another one for a pool."""
        names = ("proxy_read_timeout", "uwsgi_read_timeout")
        locations = [location for site in self._sites for location in site.own("location")]
        main = [Scope(location.block or []) for location in locations if location.args == ["/"]]
        outside = [directive for scope in [*main, *self._sites, self._scope] for directive in scope.own(*names)]
        for directive in outside:
            limit = self._result.find("request-timeout")
            if limit is None and time_of(directive) <= 600:
                self._result.put("request-timeout", time_of(directive), f"{directive.origin} (until the answer begins)")
            elif limit is None:
                self._result.tell(directive.origin, "a request may take as long as it likes", "set request-timeout for a limit")
            elif limit.value != time_of(directive):
                self._result.decide(directive.origin, f"request-timeout is one for all servers here: {limit.value}", "choose one")
        for location in locations:
            for directive in Scope(location.block or []).own(*names) if location.args != ["/"] else []:
                self._read_of(directive, location)

    def _read_of(self, directive: Directive, location: Directive) -> None:
        limit = self._result.find("request-timeout")
        modifier, path = location.args[:2] if len(location.args) > 1 else ("", location.arg)
        found = None if path.startswith("@") else nginx_paths.of_location(modifier, path)
        patterns = ", ".join(f'"{pattern}"' for pattern in found.patterns) if found else '"/PATH/*"'
        instead = f"a pool of its own has one: [pool.slow] match = [{patterns}], request-timeout = {time_of(directive)}"
        if limit is not None and limit.value != time_of(directive):
            self._result.decide(directive.origin, f"request-timeout = {limit.value} is for this path as well", instead)
        elif limit is None:
            self._result.tell(directive.origin, "the time of one path was not taken over", instead)

    def _limits(self) -> None:
        zones = {word.removeprefix("zone=").partition(":")[0]: zone for zone in self._scope.own("limit_req_zone") for word in zone.args if word.startswith("zone=")}
        inner = [Scope(location.block or []) for site in self._sites for location in site.own("location") if location.arg == "/"]
        requests = self._first("limit_req", inner)
        if requests:
            words = dict(word.partition("=")[::2] for word in requests.args)
            zone = zones.get(words.get("zone", ""))
            rate = re.search(r"rate=(\d+)r/([sm])", " ".join(zone.args) if zone else "")
            if zone is None or rate is None or "remote_addr" not in zone.arg:
                self._result.decide(requests.origin, "requests are counted for each client address only", "see client-rate")
            else:
                per_second = int(rate[1]) / (60 if rate[2] == "m" else 1)
                self._result.put("client-rate", int(per_second) if per_second == int(per_second) else round(per_second, 3), zone.origin)
                self._result.put("client-burst", _whole(requests, words.get("burst", "0")) + 1, requests.origin)
                self._result.tell(requests.origin, "a request too many gets 429 with Retry-After at once, and is not delayed", "client-burst says how many may come together")
                if len(self._sites) > 1 and requests not in self._scope.directives:
                    self._result.tell(requests.origin, "the limit is for all hosts together", "nothing has to be done, or raise it")
        connections = self._first("limit_conn", inner)
        if connections and len(connections.args) > 1:
            self._result.put("client-connections", _whole(connections, connections.args[1]), connections.origin)
            self._result.tell(connections.origin, "connections are counted, not running requests, and one more is closed", "behind a proxy leave it out")
        self._heads()
        rate_of = self._first("limit_rate", inner)
        if rate_of and rate_of.arg != "0":
            self._result.put("connection-bandwidth", rate_of.arg.lower(), rate_of.origin)

    def _heads(self) -> None:
        buffers = self._first("large_client_header_buffers")
        size = re.fullmatch(r"(\d+)([kKmM]?)", buffers.args[1]) if buffers and len(buffers.args) > 1 else None
        if buffers and size:
            length = int(size[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[size[2].lower()]
            meaning.head(self._result, buffers.origin, length, _whole(buffers, buffers.arg) * length)

    def _trust(self) -> None:
        proxies = [directive for scope in [self._scope, *self._sites] for directive in scope.own("set_real_ip_from")]
        for directive in proxies:
            self._result.add("trusted-proxies", "unix" if directive.arg == "unix:" else directive.arg, directive.origin)
        header = self._first("real_ip_header")
        name = header.arg.lower() if header else "x-real-ip"
        if not proxies or name == "proxy_protocol":
            return
        if name in ("x-forwarded-for", "forwarded"):
            self._result.put("forwarded-fields", [name], header.origin if header else "")
        else:
            self._result.decide((header or proxies[0]).origin, f"{name} is not a field that counts", "have the proxy send X-Forwarded-For")

    def _error_log(self) -> None:
        directive = self._first("error_log") or self._main.one("error_log")
        if directive is None or directive.arg == "/dev/null":
            return
        place, level = (directive.args + ["error"])[:2]
        if place.startswith("syslog:"):
            place = "syslog"
        if place not in ("stderr", "/dev/stderr"):
            self._result.put("error-log", place, directive.origin)
        meant = {"debug": "debug", "info": "info", "notice": "info", "warn": "warn"}.get(level, "error")
        if meant != "info":
            self._result.offer("log-level", meant, f"{directive.place}: nginx told of errors alone; 'info' has start-up and refusals as well")

    def _tls(self) -> None:
        protocols = self._first("ssl_protocols")
        if protocols and protocols.args == ["TLSv1.3"]:
            self._result.put("tls-min-version", "1.3", protocols.origin)
        elif protocols and any(name in ("TLSv1", "TLSv1.1", "SSLv3") for name in protocols.args):
            self._result.tell(protocols.origin, "the earliest version of TLS is 1.2", "nothing has to be done")
        tickets = self._first("ssl_session_tickets")
        if tickets and tickets.arg == "off":
            self._result.put("tls-tickets", False, tickets.origin)
        asked = [directive for scope in [*self._sites, self._scope] for directive in scope.own("ssl_verify_client")]
        unknown = next((directive for directive in asked if directive.arg == "optional_no_ca"), None)
        if unknown:
            self._result.decide(unknown.origin, "a certificate of an unknown authority is no certificate here", "set tls-client-auth and tls-client-ca")
        passwords: set[str] = set()
        for scope in [self._scope, *self._sites]:
            for directive in scope.own("ssl_stapling"):
                if directive.arg == "on":
                    self._result.tell(directive.origin, "no OCSP response is fetched", "tls-ocsp has one that something else fetches")
            for directive in scope.own("ssl_password_file"):
                if directive.arg not in passwords:
                    passwords.add(directive.arg)
                    self._result.add("tls-key-password", directive.arg, directive.origin)


def _whole(directive: Directive, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadConfiguration(directive.file, directive.line, f"'{text}' is no number") from None
