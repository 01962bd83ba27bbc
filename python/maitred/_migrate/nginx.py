"""From nginx.conf, or a part of it with ``server`` blocks: servers, names, addresses, certificates, logs and limits.

What the directives mean is from https://nginx.org/en/docs/dirindex.html. Leaves out locations (nginx_site) and the
language (nginx_parse).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from maitred._migrate import nginx_fields, nginx_globals, nginx_policy
from maitred._migrate.nginx_fields import bytes_of
from maitred._migrate.nginx_policy import Gate
from maitred._migrate.nginx_parse import BadConfiguration, Directive, parse_file
from maitred._migrate.nginx_site import Applications, Scope, Site
from maitred._migrate.result import Host, Line, Result, Table
from maitred._tools import Mistake

_REDIRECTS = ("301", "302", "303", "307", "308")
#: To https with the host that was asked for, which `redirect=https` of an address does.
_TO_HTTPS = re.compile(r"https://\$\{?(?:host|http_host)\}?(?::(?P<port>\d+))?\$\{?request_uri\}?")
#: Of the whole program; what they do is done by other means, or by the service manager.
_MAIN_NEEDLESS = frozenset((
    "user", "worker_processes", "worker_rlimit_nofile", "events", "pid", "daemon", "master_process", "http", "error_log",
    "worker_cpu_affinity", "worker_priority", "pcre_jit", "load_module", "thread_pool", "timer_resolution", "env", "lock_file",
    "worker_shutdown_timeout", "include", "working_directory", "worker_rlimit_core", "debug_points", "ssl_engine",
))  # fmt: skip
#: Files that come with nginx or certbot and have nothing in them that is missed.
_USUAL_FILES = frozenset(("mime.types", "proxy_params", "uwsgi_params", "fastcgi_params", "scgi_params", "fastcgi.conf", "options-ssl-nginx.conf"))
_LOOPBACK = re.compile(r"127\.|\[::1\]|localhost:|unix:")
#: Addresses that only a network within has (RFC 1918, RFC 4193).
_WITHIN = re.compile(r"10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cd]", re.IGNORECASE)
#: How many words stand behind a directive at least.
_WORDS = {
    "add_header": 2, "error_page": 2, "rewrite": 2, "limit_conn": 2, "try_files": 2, "proxy_set_header": 2, "log_format": 2,
    "return": 1, "location": 1, "listen": 1, "expires": 1, "allow": 1, "deny": 1, "root": 1, "alias": 1, "upstream": 1, "index": 1,
    "proxy_pass": 1, "uwsgi_pass": 1, "ssl_certificate": 1, "ssl_certificate_key": 1, "access_log": 1, "error_log": 1,
    "limit_req_zone": 2, "client_max_body_size": 1, "gzip_comp_level": 1, "gzip_min_length": 1, "limit_rate": 1, "auth_basic": 1,
    "auth_basic_user_file": 1, "proxy_hide_header": 1, "set_real_ip_from": 1, "autoindex": 1, "ssl_client_certificate": 1, "ssl_crl": 1,
}  # fmt: skip
#: Fields of nginx's log formats that have other names here.
_LOG_FIELDS = {
    "request_time": "total", "bytes_sent": "body_bytes_sent", "uri": "path", "time_iso8601": "start_iso", "msec": "start",
    "http_host": "host", "ssl_protocol": "tls_protocol", "ssl_cipher": "tls_cipher", "upstream_response_time": "run",
    "server_name": "host", "scheme": "", "connection": "", "pipe": "", "request_length": "", "http_x_forwarded_for": "http_x_forwarded_for",
}  # fmt: skip
_KNOWN_FIELDS = frozenset((
    "remote_addr", "remote_user", "time_local", "request", "request_method", "request_uri", "server_protocol", "path", "args",
    "host", "status", "body_bytes_sent", "request_id", "total", "start_iso", "start", "run", "tls_protocol", "tls_cipher", "remote_port",
))  # fmt: skip


@dataclass
class Address:
    """What a ``listen`` says."""

    directive: Directive
    #: As ``listen`` of maitred has it, without scheme and parameters.
    place: str
    is_tls: bool = False
    is_default: bool = False
    parameters: list[str] = field(default_factory=list)
    #: IPv4 as well, at ``[::]``.
    takes_both: bool = False


@dataclass
class Server:
    directive: Directive
    scope: Scope
    names: list[str]
    addresses: list[Address]
    kind: str = "site"
    #: Of one that redirects, where to.
    target: Directive | None = None
    port: str = ""


def translate(path: Path, applications: list[str]) -> Result:
    """The result for a file; ``applications`` are those that the user has named, ``[UPSTREAM=]MODULE:ATTR``."""
    parsed = parse_file(path)
    result = Result(path.name)
    for missing in parsed.missing:
        if Path(missing.arg).name in _USUAL_FILES:
            continue
        result.decide(missing.origin, f"{missing.arg} is not there", "start migrate where nginx has its files, or take the line out")
    main = parsed.directives
    _count(main)
    http = [inner for directive in main if directive.name == "http" for inner in directive.block or []]
    if not http:
        http = main
        if not any(directive.name == "server" for directive in main):
            if not any(directive.name == "location" for directive in main):
                raise Mistake(f"{path.name} has no server block", "name nginx.conf, or a file of sites-enabled")
            http = [Directive("server", [], path.name, 1, main)]
    else:
        _main(result, main)
    _Http(result, Scope(http), Scope(main), applications).translate()
    return result


def _count(directives: list[Directive]) -> None:
    """Refuses a directive with fewer words than it needs, as nginx does."""
    for directive in directives:
        if len(directive.args) < _WORDS.get(directive.name, 0):
            raise BadConfiguration(directive.file, directive.line, f"{directive.name} has too few words behind it")
        _count(directive.block or [])


def _main(result: Result, main: list[Directive]) -> None:
    for directive in main:
        if directive.name in ("stream", "mail"):
            result.decide(directive.origin, f"{directive.name} is not spoken, only HTTP", "keep nginx for it")
        elif directive.name == "user":
            result.tell(directive.origin, "the application ran as the user of its own server", "start maitred as that user, or as root with --user")
        elif directive.name == "worker_processes":
            result.tell(directive.origin, "these are the processes of nginx", "workers is the number of processes of the application")
        elif directive.name not in _MAIN_NEEDLESS:
            result.decide(directive.origin, f"{directive.name} is not translated", "look for it in docs/operations/configuration.md")


class _Http:
    def __init__(self, result: Result, scope: Scope, main: Scope, applications: list[str]) -> None:
        self._result = result
        self._scope = scope
        self._main = main
        self._servers = [self._server(directive) for directive in scope.own("server")]
        # Of servers at one address nginx takes `ssl` of any of them for all.
        secure = {address.place for server in self._servers for address in server.addresses if address.is_tls}
        for address in [address for server in self._servers for address in server.addresses if address.place in secure]:
            address.is_tls = True
        self._has_tls = bool(secure)
        #: Servers ask their clients for certificates by rules of their own; the one without a name does so.
        self._clients_differ = self._default_asks = False
        self._applications = Applications()
        for text in applications:
            name, equals, target = text.rpartition("=")
            if equals:
                self._applications.named[name] = target
            else:
                self._applications.any = target
        for upstream in scope.own("upstream"):
            inside = Scope(upstream.block or [])
            servers = [directive for directive in inside.own("server")]
            self._applications.upstreams[upstream.arg] = [directive.arg for directive in servers]
            if len(servers) > 1:
                result.tell(upstream.origin, "one maitred takes the place of all its servers", "workers is the number of processes")

    def translate(self) -> None:
        for server in self._servers:
            self._classify(server)
        sites = [server for server in self._servers if server.kind == "site"]
        refuses = any(server.kind == "refuse" and self._is_default(server) for server in self._servers)
        self._listen(sites)
        http = [directive for directive in self._scope.directives if directive.name not in (*_MAIN_NEEDLESS, "stream", "mail")]
        nginx_fields.unknown(self._result, Scope(http))
        by_tls = [server for server in sites if any(address.is_tls for address in server.addresses)]
        self._clients_differ = len({nginx_globals.clients(server.scope) for server in by_tls}) > 1
        same = by_tls[0].scope if by_tls and not self._clients_differ else None
        nginx_globals.put(self._result, self._scope, self._main, [server.scope for server in sites], self._has_tls, same)
        asks = [server for server in by_tls if not server.names and nginx_globals.clients(server.scope) != ("off",)]
        self._default_asks = self._clients_differ and bool(asks)
        if any(server.kind == "refuse" and server.scope.own("ssl_reject_handshake") for server in self._servers):
            self._result.put("tls-unknown-name", "refuse", "ssl_reject_handshake")
        fixed = [names for server in sites if (names := self._fixed_names(server))]
        alone = len(sites) == 1 and not refuses and not fixed
        for server in sites:
            table: Host = self._result
            if not alone and server.names:
                table = self._host(server)
            elif not alone and len(sites) > 1 and self._needs_filters(server):
                self._result.tell(
                    server.directive.place, "filters of the server without a name count for all hosts",
                    "give it a name, or look which of them the others shall not have",
                )  # fmt: skip
            self._site(server, table)
        if alone and sites[0].names:
            self._result.tell(
                sites[0].scope.own("server_name")[0].origin, "it is the only server, so every name gets its answers, as with nginx",
                f"to refuse other names, write its lines behind [host.\"{sites[0].names[0]}\"]",
            )  # fmt: skip
        if not alone and sites and not any(not server.names for server in sites):
            self._result.tell(
                sites[0].directive.place, "a name that no server has gets 421 and not the first server", "add the name to one: names = [...]"
            )
        for host in self._result.hosts.values():
            if self._result.find("listing") and not host.find("listing"):
                host.put("listing", False, "of another server")
        is_empty = not any(self._result.find(key) for key in ("application", "static", "mount"))
        for server in self._servers:
            if server.kind == "name-redirect":
                self._name_redirect(server, is_empty)

    def _refused_names(self) -> list[Gate]:
        """Names that servers refuse, for the one that answers for every name."""
        gates = []
        for server in self._servers:
            if server.kind == "refuse" and server.names:
                values = tuple(f"Host: {name}{port}" for name in server.names for port in ("", ":*"))
                gates.append(Gate(server.directive.place, "never", "header", values))
        return gates

    def _is_default(self, server: Server) -> bool:
        """Whether it has the names that no server has, at one of its addresses: nginx takes the first, unless one says so."""
        for address in server.addresses:
            users = [(other, of) for other in self._servers for of in other.addresses if of.place == address.place]
            if next((other for other, of in users if of.is_default), users[0][0]) is server:
                return True
        return False

    def _unreachable(self, server: Server) -> list[Gate]:
        """A server without a name that is not the default one: it would have all names here."""
        if server.names or self._is_default(server):
            return []
        self._result.decide(
            server.directive.place, "no name leads there in nginx, and here every name without a host would; nobody is let in until that is decided",
            "give it a name, or take it out",
        )  # fmt: skip
        return [Gate(server.directive.place, "nobody")]

    def _local(self, server: Server) -> list[Gate]:
        """A server that only this machine, or the network within, could ask is one at every address here."""
        places = [address.place for address in server.addresses]
        others = [address.place for other in self._servers if other.kind != "refuse" for address in other.addresses]
        if all(_LOOPBACK.match(place) for place in others):
            return []
        if all(_LOOPBACK.match(place) for place in places):
            self._result.decide(
                server.directive.place, "nginx served it for this machine alone, and every host is served at every address here; so others are refused",
                "start a maitred of its own for it",
            )  # fmt: skip
            local = any(not place.startswith("unix:") for place in places)
            return [Gate(server.directive.place, "first", "", ("allow 127.0.0.0/8", "allow ::1", "deny all")) if local else Gate(server.directive.place, "nobody")]
        if all(_LOOPBACK.match(place) or _WITHIN.match(place) for place in places) and not all(_WITHIN.match(place) or _LOOPBACK.match(place) for place in others):
            self._result.decide(
                server.directive.place, "nginx served it at an address within, and every host is served at every address here; nobody is let in until that is decided",
                "start a maitred of its own for it, or write who may come in",
            )  # fmt: skip
            return [Gate(server.directive.place, "nobody")]
        return []

    def _fixed_names(self, server: Server) -> bool:
        """A condition says that no other name is served: a host has no others."""
        for condition in server.scope.own("if"):
            names = nginx_policy.host_names(condition)
            if names:
                server.names = [name for name in names if not server.names or name in server.names] or names
                return True
        return False

    # Which servers there are.

    def _server(self, directive: Directive) -> Server:
        scope = Scope(directive.block or [], self._scope)
        names: list[str] = []
        for names_of in scope.own("server_name"):
            for name in names_of.args:
                names.extend(self._names(names_of, name))
        old = bool(scope.own("ssl")) and scope.own("ssl")[-1].arg == "on"
        addresses = [self._address(listen, old) for listen in scope.own("listen")]
        addresses = addresses or [Address(directive, ":80")]
        return Server(directive, scope, names, addresses)

    def _names(self, directive: Directive, name: str) -> list[str]:
        if name in ("_", "", "localhost") or name.startswith("$"):
            return []
        if name.startswith("~") or name.endswith(".*") or "*" in name[1:]:
            self._result.decide(directive.origin, f"{name} is no name of a host", "names are whole, or begin with *.")
            return []
        return [name[1:], f"*{name}"] if name.startswith(".") else [name]

    def _address(self, listen: Directive, old: bool) -> Address:
        text, *words = listen.args or ["80"]
        address = Address(listen, _place(text), is_tls=old or "ssl" in words)
        for word in words:
            name, _, value = word.partition("=")
            if name in ("default_server", "default"):
                address.is_default = True
            elif name == "proxy_protocol":
                address.parameters.append("proxy-protocol=on")
            elif name == "backlog":
                address.parameters.append(f"backlog={value}")
            elif name == "fastopen":
                address.parameters.append(f"fast-open={value}")
            elif name == "ipv6only" and value == "off":
                address.takes_both = True
            elif name == "deferred":
                address.parameters.append("defer-accept=1")
            elif name in ("quic", "bind") or name not in ("ssl", "http2", "reuseport", "ipv6only", "rcvbuf", "sndbuf", "so_keepalive"):
                if name != "bind":
                    self._result.decide(listen.origin, f"{name} is not translated", "leave it to a proxy in front")
        if text.startswith("unix:"):
            address.parameters.append("mode=666")
        return address

    def _classify(self, server: Server) -> None:
        """Whether it serves, or only leads elsewhere."""
        scope = server.scope
        returns = scope.own("return")
        serves = scope.own("root", "proxy_pass", "alias", "try_files")
        locations = scope.own("location")
        if not returns and not serves:
            inner = [found for location in locations for found in Scope(location.block or []).own("return") if location.arg == "/"]
            others = [location for location in locations if location.arg != "/" and "acme-challenge" not in " ".join(location.args)]
            returns = inner if not others else []
        if not (returns or serves or locations):
            returns = [made for rewrite in scope.own("rewrite") if (made := _as_return(rewrite))]
        if not returns or serves and not scope.own("return"):
            return
        others = [location for location in locations if location.arg != "/" and "acme-challenge" not in " ".join(location.args)]
        if others:
            return
        certbot = [found for condition in scope.own("if") for found in Scope(condition.block or []).own("return") if "$host" in " ".join(condition.args)]
        decisive = [*certbot, *returns][0]
        code, text = (decisive.args + [""])[:2]
        if not code.isdigit():
            code, text = "302", code
        match = _TO_HTTPS.fullmatch(text)
        is_plain = not any(address.is_tls for address in server.addresses)
        server.target = decisive
        if match and code in _REDIRECTS and is_plain:
            server.kind, server.port = "https", match["port"] or ""
        elif code in _REDIRECTS and (server.names or is_plain and self._has_tls and re.match(r"https?:|\$scheme:", text)):
            server.kind = "name-redirect"
        elif not code.startswith(("2", "3")):
            server.kind = "refuse"
        for challenge in locations:
            if "acme-challenge" in " ".join(challenge.args):
                self._result.tell(
                    challenge.origin, "the authority follows the redirect to https", "have certbot write into a folder that is static there"
                )

    # Where it listens.

    def _listen(self, sites: list[Server]) -> None:
        places: dict[str, list[tuple[Server, Address]]] = {}
        for server in self._servers:
            for address in server.addresses:
                places.setdefault(address.place, []).append((server, address))
        leads = any(server.kind == "https" for server in self._servers)
        for place, users in places.items():
            if all(server.kind == "refuse" for server, _ in users) and sites:
                self._result.tell(users[0][1].directive.origin, "everything was refused there, and nothing listens there", "nothing has to be done")
                continue
            is_tls = any(address.is_tls for _, address in users)
            redirecting = [server for server, _ in users if server.kind == "https"]
            parameters = list(dict.fromkeys(part for _, address in users for part in address.parameters))
            mixed = [server for server, _ in users if server.kind in ("site", "name-redirect")]
            if redirecting and not is_tls:
                if not mixed:
                    port = redirecting[0].port
                    parameters.append("redirect=https" + (f":{port}" if port else ""))
                    target = redirecting[0].target
                    if target:
                        self._result.tell(target.origin, "the redirect to https has the status 308, which keeps method and body", "nothing has to be done")
                else:
                    for server in redirecting:
                        self._result.decide(
                            (server.target or server.directive).origin, f"{place} serves other names without TLS, so it cannot lead to https as a whole",
                            f"let all of them use https: listen = \"http://{place},redirect=https\"; or set hsts for the name",
                        )  # fmt: skip
            scheme = "https://" if is_tls else "http://" if self._has_tls and "unix:" not in place else ""
            origin = ", ".join(dict.fromkeys(address.directive.place for _, address in users))
            self._result.add("listen", scheme + place + "".join(f",{part}" for part in parameters), origin)
            port = place.rpartition(":")[2]
            if place.startswith("[::]:") and any(address.takes_both for _, address in users) and not {f":{port}", f"0.0.0.0:{port}"} & set(places):
                self._result.add("listen", f"{scheme}:{port}" + "".join(f",{part}" for part in parameters), f"{origin} (ipv6only=off)")
        if len(places) > 1 and len(sites) > 1 and (leads or self._has_tls or self._differ(sites)):
            self._result.tell("listen", "every host is served at every address that does not redirect", "start a maitred each for hosts that must not be")

    def _differ(self, sites: list[Server]) -> bool:
        return len({tuple(sorted(address.place for address in server.addresses)) for server in sites}) > 1

    # One server.

    def _host(self, server: Server) -> Host:
        names_of = [*server.scope.own("server_name"), *server.scope.own("if")]
        plain = [name for name in server.names if not name.startswith("*")] or server.names
        host = self._result.host(plain[0])
        others = [name for name in server.names if name != plain[0]]
        if others:
            host.put("names", others, ", ".join(directive.place for directive in names_of[:1]))
        return host

    def _needs_filters(self, server: Server) -> bool:
        return bool(server.scope.own("add_header", "allow", "deny", "auth_basic", "rewrite", "location"))

    def _site(self, server: Server, table: Host) -> None:
        nginx_fields.unknown(self._result, server.scope)
        before = len(table.filters)
        site = Site(self._result, table, server.scope, self._applications, any(address.is_tls for address in server.addresses))
        site.translate([*self._local(server), *self._unreachable(server), *(self._refused_names() if table is self._result else [])])
        others = [address for other in self._servers if other is not server for address in other.addresses]
        if all(address.is_tls for address in server.addresses) and any(not address.is_tls for address in others):
            # What comes without TLS is another server's.
            for made in table.filters[before:]:
                if made.find("scheme") is None and made.find("redirect") is None and made.find("access") is None:
                    made.lines.insert(1 if made.find("path") else 0, Line("scheme", "https", server.directive.place))
        size = site.body()
        # An application that is to be named yet has it, too.
        if size or table.find("application") or table.find("mount"):
            table.put("max-body", bytes_of(size.arg) if size else "1m", size.origin if size else "nginx's default of client_max_body_size")
        for certificate, key in zip(server.scope.all("ssl_certificate"), server.scope.all("ssl_certificate_key")):
            if any(address.is_tls for address in server.addresses):
                table.add("tls-cert", certificate.arg, certificate.origin)
                if key.arg != certificate.arg:
                    table.add("tls-key", key.arg, key.origin)
        if self._clients_differ and any(address.is_tls for address in server.addresses):
            nginx_globals.put_clients(table, server.scope)
            if self._default_asks and table is not self._result and not table.find("tls-client-auth"):
                verify = server.scope.one("ssl_verify_client")
                table.put("tls-client-auth", "none", verify.origin if verify else f"{server.directive.place}: nginx's default of ssl_verify_client")
        self._access_log(server, table)
        if not (table.find("application") or table.find("static") or table.find("mount")) and table is not self._result:
            self._result.decide(server.directive.place, f"the host {server.names[0]} serves nothing yet", "give it an application or a folder")
            self._result.hosts.pop(table.name, None)

    def _access_log(self, server: Server, table: Host) -> None:
        directive = server.scope.one("access_log")
        if directive is None:
            self._result.tell("access_log", "nginx wrote one to its default place, and maitred writes none unless told", 'access-log = "-", or a path')
            return
        place = "off" if directive.arg in ("off", "/dev/null") else "syslog" if directive.arg.startswith("syslog:") else directive.arg
        place = {"/dev/stdout": "-", "/dev/stderr": "stderr"}.get(place, place)
        if place == "off":
            return
        table.put("access-log", place, directive.origin)
        name = next((word for word in directive.args[1:] if "=" not in word), "combined")
        formats = {log.arg: log for log in self._scope.own("log_format")}
        if name == "combined" or name not in formats:
            table.put("access-log-format", "combined", directive.origin)
        else:
            table.put("access-log-format", self._format(formats[name]), formats[name].origin)

    def _format(self, log: Directive) -> str:
        missing: list[str] = []

        def change(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            meant = _LOG_FIELDS.get(name, name)
            if meant in _KNOWN_FIELDS or meant.startswith("http_"):
                return f"${{{meant}}}" if match[1] else f"${meant}"
            missing.append(name)
            return "-"

        words = [word for word in log.args[1:] if not word.startswith("escape=")]
        text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", change, "".join(words))
        if missing:
            self._result.decide(log.origin, f"the access log has no field for {', '.join(missing)}", "docs/operations/logs.md lists the fields")
        return text

    def _name_redirect(self, server: Server, is_empty: bool) -> None:
        """It leads elsewhere. Filters do it: for all that comes without TLS, or for its names."""
        target = server.target
        if target is None:
            return
        secure = any(address.is_tls for address in server.addresses)
        place = self._leads_to(server, target, secure)
        if place is None:
            self._result.decide(target.origin, "the target has variables that a filter does not know", "write it with * for what is kept")
            return
        # A name that has no host is refused before filters are asked.
        known = {name for host in self._result.hosts.values() for name in (host.name, *_list(host, "names"))}
        left = [name for name in server.names if name not in known] if is_empty else []
        scheme = "http" if self._has_tls and not secure else ""
        if scheme and self._is_all_without_tls(server):
            if any(not table.find("path") and not table.find("scheme") and (table.find("add-response") or table.find("set-response")) for table in self._result.filters):
                self._result.tell(target.origin, "fields that add_header gives the whole site are on this redirect as well", "nothing has to be done")
            self._lead(self._result, place, target, {"scheme": scheme})
        elif not server.names:
            self._result.decide(
                target.origin, "which names lead there is not known, and other servers answer without TLS as well",
                f'write a filter for each name: header = "Host: NAME", path = "/*", redirect = "{place}"',
            )  # fmt: skip
        else:
            self._lead_names(server, [name for name in server.names if name not in left], place, scheme)
            if self._is_default(server):
                self._result.tell(
                    target.origin, "nginx led names that no server has there as well, and here they get what the rest of the file serves, or 421",
                    'a filter without header leads them all, one with header = "Host: NAME" a further name',
                )  # fmt: skip
        if left:
            self._lead_hosts(server, left, place, target)
        for certificate, key in zip(server.scope.own("ssl_certificate"), server.scope.own("ssl_certificate_key")):
            self._result.add("tls-cert", certificate.arg, certificate.origin)
            if key.arg != certificate.arg:
                self._result.add("tls-key", key.arg, key.origin)

    def _leads_to(self, server: Server, target: Directive, secure: bool) -> str | None:
        text = target.args[-1]
        text = re.sub(r"^\$scheme://", "https://" if secure else "http://", text)
        if server.names:
            # The first name of the server, whatever was asked for.
            text = re.sub(r"\$(server_name\b|\{server_name\})", server.names[0], text)
        kept = text.endswith(("$request_uri", "${request_uri}"))
        place = re.sub(r"\$\{?request_uri\}?$", "/*" if kept else "", text)
        return None if "$" in place else place

    def _is_all_without_tls(self, server: Server) -> bool:
        return all(other is server or all(address.is_tls for address in other.addresses) for other in self._servers)

    def _lead_names(self, server: Server, names: list[str], place: str, scheme: str) -> None:
        ports = any(not re.search(r":(80|443)$", address.place) for address in server.addresses)
        names = [name for name in names if not name.startswith("*.")] + [name for name in names if name.startswith("*.")]
        for name in [*names, *(f"{name}:*" for name in names if ports)]:
            if server.target:
                self._lead(self._result, place, server.target, {"header": f"Host: {name}", **({"scheme": scheme} if scheme else {})})

    def _lead_hosts(self, server: Server, names: list[str], place: str, target: Directive) -> None:
        served = next((f"/={str(pair).partition('=')[2]}" for host in self._result.hosts.values() for pair in _list(host, "static")), "")
        if not served:
            self._result.decide(target.origin, f"there is no host for {', '.join(names)}", "give one of the others a folder, or make one the default")
            return
        host = self._result.host(next((name for name in names if not name.startswith("*")), names[0]))
        others = [name for name in names if name != host.name]
        if others:
            host.put("names", others, server.directive.place)
        host.put("static", [served], f"{target.place}: a host serves something; the redirect comes before it")
        self._lead(host, place, target, {})

    def _lead(self, host: Host, place: str, target: Directive, conditions: dict[str, str]) -> None:
        table = Table()
        for key, value in conditions.items():
            table.put(key, value, target.place)
        table.put("path", "/*", target.origin)
        table.put("redirect", place, target.origin)
        table.put("status", int(target.args[0]) if target.args[0].isdigit() else 302, target.origin)
        host.filters.append(table)


def _as_return(rewrite: Directive) -> Directive | None:
    """``rewrite ^(.*)$ https://shop.example$1 permanent;`` as the ``return`` that does the same."""
    regex, text, flag = (rewrite.args + ["", "", ""])[:3]
    kept = {"^": "", "^/": "/", "^/?": "", ".*": "", "^.*": "", "^.*$": "", "^(.*)": "$1", "^(.*)$": "$1", "(.*)": "$1", "^/(.*)": "/$1", "^/(.*)$": "/$1", "^/?(.*)": "/$1", "^/?(.*)$": "/$1"}.get(regex)
    if kept is None or flag not in ("permanent", "redirect", "") or not re.match(r"https?://|\$scheme://", text):
        return None
    target = f"{text.removesuffix(kept)}$request_uri" if "$1" in kept and text.endswith(kept) else text.removesuffix("?")
    return Directive("return", ["301" if flag == "permanent" else "302", target], rewrite.file, rewrite.line) if "$1" not in target else None


def _list(table: Table, key: str) -> list[str]:
    line = table.find(key)
    return [str(part) for part in line.value] if line and isinstance(line.value, (list, tuple)) else []


def _place(text: str) -> str:
    """The address of ``listen``, as maitred has it."""
    if text.startswith("unix:"):
        return text
    if text.isdigit():
        return f":{text}"
    if text.startswith("*:"):
        return text[1:]
    if re.search(r":\d+$", text) and not text.endswith("]"):
        return text
    return f"{text}:80"
