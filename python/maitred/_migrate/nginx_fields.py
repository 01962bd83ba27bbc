"""What a block of nginx.conf changes of requests and answers: fields, ages, access, limits, listings.

Inheritance is that of nginx: a block that has one add_header has none of those around it. Leaves out what answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maitred._migrate.nginx_policy import PROTECTING
from maitred._migrate.nginx_parse import BadConfiguration, Directive
from maitred._migrate.result import Host, Line, Result, Table

if TYPE_CHECKING:
    from maitred._migrate.nginx_site import Location, Scope

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000}

#: The engine knows these by itself: the client is at the other end of its own connection.
_OWN_FIELDS = frozenset((
    "host", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-server",
    "x-forwarded-ssl", "x-scheme", "x-url-scheme", "x-forwarded-protocol", "upgrade", "connection", "accept-encoding", "proxy",
    "x-request-start", "x-original-uri",
))  # fmt: skip

#: Directives that nothing has to be done about.
NEEDLESS = frozenset((
    "sendfile", "tcp_nopush", "tcp_nodelay", "types", "default_type", "types_hash_max_size", "server_tokens",
    "server_names_hash_bucket_size", "server_names_hash_max_size", "variables_hash_max_size", "keepalive_requests",
    "open_file_cache", "open_file_cache_valid", "open_file_cache_min_uses", "open_file_cache_errors", "log_not_found", "aio",
    "proxy_http_version", "proxy_buffering", "proxy_buffers", "proxy_buffer_size", "proxy_busy_buffers_size", "proxy_redirect",
    "proxy_request_buffering", "proxy_max_temp_file_size", "proxy_temp_path",
    "proxy_headers_hash_max_size", "proxy_headers_hash_bucket_size", "proxy_pass_header", "proxy_ignore_client_abort",
    "proxy_next_upstream", "proxy_next_upstream_timeout", "proxy_next_upstream_tries", "client_body_buffer_size",
    "uwsgi_param", "uwsgi_buffers", "uwsgi_buffering",
    "client_header_buffer_size", "large_client_header_buffers", "client_body_temp_path", "reset_timedout_connection", "directio",
    "ssl_ciphers", "ssl_prefer_server_ciphers", "ssl_dhparam", "ssl_session_cache", "ssl_session_timeout", "ssl_ecdh_curve",
    "ssl_buffer_size", "ssl_conf_command", "ssl_trusted_certificate", "ssl_early_data", "ssl_verify_depth", "resolver",
    "resolver_timeout", "gzip_vary", "gzip_proxied", "gzip_buffers", "gzip_http_version", "gzip_disable", "gzip_static", "gunzip",
    "brotli_static", "zstd_static", "server_name_in_redirect", "port_in_redirect", "absolute_redirect", "etag", "if_modified_since",
    "merge_slashes", "msie_padding", "msie_refresh", "output_buffers", "sendfile_max_chunk", "underscores_in_headers",
    "ignore_invalid_headers", "lingering_close", "lingering_time", "lingering_timeout", "internal", "recursive_error_pages",
    "error_log", "access_log", "http2", "http2_push", "http2_max_concurrent_streams", "try_files", "index", "root", "alias",
    "location", "listen", "server_name", "server", "rewrite", "return", "if", "error_page", "include", "proxy_pass", "uwsgi_pass",
    "fastcgi_pass", "grpc_pass", "scgi_pass", "memcached_pass", "proxy_intercept_errors", "uwsgi_intercept_errors", "break",
    "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path", "fastcgi_param", "fastcgi_index", "fastcgi_split_path_info", "uwsgi_modifier1", "limit_req_log_level", "limit_conn_log_level",
    "limit_req_status", "limit_conn_status", "proxy_bind", "proxy_socket_keepalive", "rewrite_log", "uninitialized_variable_warn",
    "log_format", "limit_req_zone", "limit_conn_zone", "upstream", "limit_req_dry_run", "ssl_reject_handshake",
    # Translated in this file, in nginx, and in nginx_policy.
    "limit_except", "valid_referers",
    "charset", "add_header", "expires", "allow", "deny", "auth_basic", "auth_basic_user_file", "client_max_body_size", "autoindex",
    "proxy_connect_timeout", "proxy_send_timeout", "uwsgi_read_timeout", "uwsgi_send_timeout", "uwsgi_connect_timeout",
    "proxy_set_header", "proxy_hide_header", "proxy_read_timeout", "limit_req", "limit_conn", "limit_rate", "keepalive_timeout",
    "client_header_timeout", "client_body_timeout", "send_timeout", "gzip", "gzip_types", "gzip_comp_level", "gzip_min_length",
    "brotli", "brotli_types", "brotli_comp_level", "set_real_ip_from", "real_ip_header", "real_ip_recursive", "ssl_certificate",
    "ssl_certificate_key", "ssl_protocols", "ssl_session_tickets", "ssl_session_ticket_key", "ssl_stapling",
    "ssl_stapling_verify", "ssl_client_certificate", "ssl_verify_client", "ssl_crl", "ssl_password_file", "ssl_stapling_file",
    "autoindex_exact_size", "autoindex_localtime", "autoindex_format", "limit_rate_after", "ssl",
))  # fmt: skip

#: The answers that add_header without `always`, and expires, are for (ngx_http_headers_module).
_SUCCEEDS = "200, 201, 204, 206, 301-304, 307, 308"

_REASONS = {
    "proxy_cache": ("nothing is cached", "let the application say Cache-Control, and keep nginx where a cache is needed"),
    "sub_filter": ("bodies are not changed", "change them in the application"),
    "map": ("values are not computed", "write a filter for each case"),
    "set": ("there are no variables", "write the value where it is used"),
    "geo": ("values are not computed", "a filter has the condition client, an address or a network"),
    "split_clients": ("clients are not split", "do it in the application"),
    "mirror": ("requests are not doubled", "keep nginx in front for it"),
    "stub_status": ("the figures have another form", 'metrics-path = "/metrics"'),
    "satisfy": ("a request has to meet all conditions", "write filters for the paths"),
}


def unknown(result: Result, scope: Scope) -> None:
    """Names each directive of a block that is not translated."""
    for directive in scope.directives:
        if directive.name == "charset":
            _charset(result, directive)
        if directive.name in NEEDLESS or directive.name.startswith(PROTECTING):
            continue
        if directive.name == "map" and directive.arg == "$http_upgrade":
            # The usual one for WebSockets, which need nothing here.
            continue
        for name, (what, instead) in _REASONS.items():
            if directive.name.startswith(name):
                result.decide(directive.origin, what, instead)
                break
        else:
            result.decide(directive.origin, f"{directive.name} is not translated", "look for it in docs/operations/configuration.md and filters.md")


def _charset(result: Result, directive: Directive) -> None:
    if directive.arg.lower() in ("utf-8", "utf8"):
        result.tell(directive.origin, "files of text have charset=utf-8, and answers of the application keep their Content-Type", "have the application say it")
    elif directive.arg == "off":
        result.tell(directive.origin, "files of text have charset=utf-8", "nothing has to be done if they are in UTF-8")
    else:
        result.decide(directive.origin, "files of text have charset=utf-8", 'convert them, or set it by a filter: set-response = ["Content-Type: TYPE; charset=NAME"]')


def seconds(text: str) -> int | float:
    """A time of nginx: ``30d``, ``1h30m``, ``500ms``."""
    if re.fullmatch(r"\d+ms", text):
        return int(text[:-2]) / 1000
    parts = re.findall(r"(\d+)([smhdwMy]?)", text)
    if not parts or "".join(count + unit for count, unit in parts) != text:
        raise ValueError(text)
    return sum(int(count) * _UNITS[unit] for count, unit in parts)


def time_of(directive: Directive) -> int | float:
    """The time that a directive says first."""
    try:
        return seconds(directive.arg)
    except ValueError:
        raise BadConfiguration(directive.file, directive.line, f"'{directive.arg}' is no time") from None


def put(result: Result, table: Host, scope: Scope, base: Scope | None, location: Location | None, has_tls: bool) -> None:
    """Filters for a server, or for one of its locations; those of the block ``base`` are for the same requests."""
    patterns = location.patterns if location else []
    made, good = Table(), Table()
    fields(result, table, (made, good), scope, base, has_tls)
    request_fields(result, made, scope)
    if location is not None:
        _rate(result, scope, location)
    for part in (made, good):
        if part.lines and patterns and location:
            part.lines.insert(0, Line("path", patterns[0] if len(patterns) == 1 else patterns, location.directive.origin))
        if part.lines:
            table.filters.append(part)


def fields(result: Result, site: Host, parts: tuple[Table, Table], scope: Scope, base: Scope | None, has_tls: bool) -> None:
    """Fields of answers: what a block has and ``base`` has not is added, and the other way round removed.

    The first of ``parts`` is for all answers, the second for those that succeed.
    """
    made, good = parts
    wanted, present = _headers(scope), _headers(base) if base else []
    for directive in present:
        if all(directive.arg.lower() != other.arg.lower() for other in wanted):
            made.add("remove-response", directive.arg, f"{scope.place}: add_header here replaces all of those outside")
    for directive in scope.own("add_header"):
        if directive.arg.lower() == "strict-transport-security":
            _hsts(result, site, directive, has_tls)
    for directive in wanted:
        if any(directive.args == other.args for other in present):
            continue
        name, value = (directive.args + [""])[:2]
        if "$" in value:
            result.decide(directive.origin, "the value has a variable in it", "set the field in the application")
            continue
        replaced = [other for other in present if directive.arg.lower() == other.arg.lower()]
        always = "always" in directive.args
        if not always and any("always" in other.args for other in replaced):
            made.add("remove-response", name, f"{directive.place}: replaces the one outside")
        (made if always else good).add("set-response" if replaced else "add-response", f"{name}: {value}", directive.origin)
    for directive in scope.own("expires"):
        _expires(result, parts, directive, base)
    for directive in scope.own("proxy_hide_header"):
        made.add("remove-response", directive.arg, directive.origin)
    if good.lines:
        good.put("response-status", _SUCCEEDS, "nginx does so without 'always'")


def _headers(scope: Scope) -> list[Directive]:
    return [directive for directive in scope.all("add_header") if directive.arg.lower() != "strict-transport-security"]


def _hsts(result: Result, site: Host, directive: Directive, has_tls: bool) -> None:
    text = directive.args[1].lower() if len(directive.args) > 1 else ""
    age = re.search(r"max-age=(\d+)", text)
    if age and has_tls:
        value = age[1] + (",include-subdomains" if "includesubdomains" in text else "") + (",preload" if "preload" in text else "")
        site.put("hsts", value, directive.origin)
        if "always" not in directive.args:
            result.tell(directive.origin, "hsts is sent with errors as well", "nothing has to be done")
    else:
        result.tell(directive.origin, "the field counts with https only", "hsts sends it there")


def _expires(result: Result, parts: tuple[Table, Table], directive: Directive, base: Scope | None) -> None:
    text = directive.args[-1]
    outside = base.one("expires") if base else None
    if text == "off":
        if outside and outside.args[-1] != "off":
            result.decide(directive.origin, f"the Cache-Control of {outside.place} is sent here as well", "write a filter for the other paths in its place")
        return
    if text in ("epoch",) or text.startswith("-"):
        value = "no-cache"
    elif text == "max":
        value = "max-age=315360000"
    else:
        try:
            value = f"max-age={seconds(text):.0f}"
        except ValueError:
            result.decide(directive.origin, "the age depends on something", "write a filter with Cache-Control for each path")
            return
    added = [line for part in parts if (line := part.find("add-response"))]
    also = any(str(field).lower().startswith("cache-control") for line in added for field in (line.value if isinstance(line.value, list) else []))
    parts[1].add("add-response" if also else "set-response", f"Cache-Control: {value}", directive.origin)
    result.tell("expires", "Cache-Control is sent, and no Expires beside it", "all clients of HTTP/1.1 go by Cache-Control")


def request_fields(result: Result, made: Table, scope: Scope) -> None:
    for directive in scope.own("proxy_set_header"):
        name, value = (directive.args + [""])[:2]
        if name.lower() == "x-request-id" and value == "$request_id":
            result.put("request-ids", True, directive.origin)
        elif name.lower() in _OWN_FIELDS:
            if name.lower().startswith("x-"):
                result.tell(
                    "proxy_set_header", "the application has no X-Forwarded-* and X-Real-IP any more: it is told the client itself",
                    "take ProxyFix and the like out; REMOTE_ADDR, wsgi.url_scheme and scope have client and scheme",
                )  # fmt: skip
        elif not value:
            made.add("remove-request", name, directive.origin)
        elif "$" in value:
            result.decide(directive.origin, "the value has a variable in it", "the WSGI environ and the ASGI scope have most of them")
        else:
            made.add("set-request", f"{name}: {value}", directive.origin)


def bytes_of(text: str) -> str:
    """A size of nginx; 0 is no limit."""
    return "1024g" if text == "0" else text.lower()


def _rate(result: Result, scope: Scope, location: Location) -> None:
    for directive in scope.own("limit_req", "limit_conn"):
        if location.path == "/":
            continue
        path = location.found.patterns[0] if location.found and location.found.patterns else location.path
        result.decide(
            directive.origin, "client-rate and client-connections are for all paths of the server",
            f'set them for all, or give the path a pool: [pool.limited] match = "{path}", max-threads = 2, overflow = "refuse"',
        )  # fmt: skip
    for directive in scope.own("limit_rate"):
        if location.path != "/" and directive.arg != "0":
            result.decide(
                directive.origin, "a rate of a path is for all its responses together, and not for each connection",
                "see route-bandwidth, or set connection-bandwidth for the whole server",
            )  # fmt: skip


