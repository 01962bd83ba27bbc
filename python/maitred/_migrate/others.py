"""From daphne (4) and waitress (3): their command lines.

What their options mean is from https://github.com/django/daphne and https://docs.pylonsproject.org/projects/waitress.
"""

from __future__ import annotations

from pathlib import Path

from maitred._migrate import meaning, uvicorn
from maitred._migrate.meaning import Handler, decide, key, nothing, number, tell, time, truth
from maitred._migrate.result import Result
from maitred._migrate.words import CommandLine, Given, flags, parse

DAPHNE = flags(
    "port -p --port", "host -b --bind", "websocket_timeout --websocket_timeout", "websocket_connect_timeout --websocket_connect_timeout",
    "unix_socket -u --unix-socket", "fd --fd", "endpoint -e --endpoint", "verbosity -v --verbosity", "http_timeout -t --http-timeout",
    "access_log --access-log", "log_fmt --log-fmt", "ping_interval --ping-interval", "ping_timeout --ping-timeout",
    "application_close_timeout --application-close-timeout", "root_path --root-path", "proxy_headers! --proxy-headers",
    "proxy_headers_host --proxy-headers-host", "proxy_headers_port --proxy-headers-port", "server_name -s --server-name",
    "no_server_name! --no-server-name", "request_buffer_size --request-buffer-size", "nostatic! --nostatic",
)  # fmt: skip

WAITRESS = flags(
    "host --host", "port --port", "listen --listen", "unix_socket --unix-socket", "unix_socket_perms --unix-socket-perms", "call! --call",
    "app --app", "threads --threads", "url_scheme --url-scheme", "url_prefix --url-prefix", "ident --ident", "trusted_proxy --trusted-proxy",
    "trusted_proxy_count --trusted-proxy-count", "trusted_proxy_headers --trusted-proxy-headers",
    "log_untrusted_proxy_headers! --log-untrusted-proxy-headers --no-log-untrusted-proxy-headers",
    "clear_untrusted_proxy_headers! --clear-untrusted-proxy-headers --no-clear-untrusted-proxy-headers", "backlog --backlog", "recv_bytes --recv-bytes",
    "send_bytes --send-bytes", "outbuf_overflow --outbuf-overflow", "outbuf_high_watermark --outbuf-high-watermark", "inbuf_overflow --inbuf-overflow",
    "connection_limit --connection-limit", "cleanup_interval --cleanup-interval", "channel_timeout --channel-timeout",
    "channel_request_lookahead --channel-request-lookahead", "max_request_header_size --max-request-header-size",
    "max_request_body_size --max-request-body-size", "asyncore_loop_timeout --asyncore-loop-timeout", "asyncore_use_poll! --asyncore-use-poll --no-asyncore-use-poll",
    "expose_tracebacks! --expose-tracebacks --no-expose-tracebacks", "ipv4! --ipv4 --no-ipv4", "ipv6! --ipv6 --no-ipv6", "help! --help",
    "log_socket_errors! --log-socket-errors --no-log-socket-errors",
)  # fmt: skip


def _ident(result: Result, given: Given) -> None:
    result.tell(given.origin, "the field Server says another name", f'a filter gives it: set-response = ["Server: {given.value}"]')


def _scheme(result: Result, given: Given) -> None:
    if given.value != "http":
        result.decide(given.origin, "wsgi.url_scheme is that of the connection, or what a trusted proxy says", 'set trusted-proxies, and have the proxy send X-Forwarded-Proto')


HANDLERS: dict[str, Handler] = {
    "port": nothing, "host": nothing, "unix_socket": nothing, "fd": nothing, "unix_socket_perms": nothing, "listen": nothing, "backlog": nothing,
    "endpoint": decide("endpoints of Twisted are not read", 'write listen = ["HOST:PORT"], and tls-cert and tls-key for TLS'),
    "verbosity": nothing, "http_timeout": key("request-timeout", number), "access_log": meaning.access_log,
    "log_fmt": tell("lines of the error log have their own form", "docs/operations/logs.md"), "websocket_connect_timeout": nothing,
    "websocket_timeout": tell("a WebSocket has no longest time", "end it in the application"), "ping_interval": key("websocket-ping", number),
    "ping_timeout": key("websocket-timeout", number), "application_close_timeout": nothing, "root_path": key("root-path"), "proxy_headers": nothing,
    "proxy_headers_host": decide("the field of the client cannot be named", "have the proxy send X-Forwarded-For"),
    "proxy_headers_port": nothing, "server_name": _ident, "no_server_name": tell("the field Server is always there", "a filter changes it"),
    "request_buffer_size": nothing, "nostatic": nothing, "call": key("factory", truth), "app": nothing, "threads": key("max-threads", number),
    "url_scheme": _scheme, "url_prefix": key("root-path", lambda value: "/" + str(value).strip("/")), "ident": _ident, "trusted_proxy": nothing,
    "trusted_proxy_count": tell("the address that the first trusted proxy saw counts, through all that trusted-proxies names", "name each proxy"),
    "trusted_proxy_headers": nothing, "log_untrusted_proxy_headers": nothing, "clear_untrusted_proxy_headers": nothing, "recv_bytes": nothing,
    "send_bytes": nothing, "outbuf_overflow": nothing, "outbuf_high_watermark": nothing, "inbuf_overflow": nothing,
    "connection_limit": key("max-connections", number), "cleanup_interval": nothing, "channel_timeout": key("keep-alive", time),
    "channel_request_lookahead": nothing, "max_request_header_size": meaning.HEAD,
    "max_request_body_size": key("max-body", number), "asyncore_loop_timeout": nothing, "asyncore_use_poll": nothing, "log_socket_errors": nothing,
    "expose_tracebacks": decide("tracebacks are not sent to clients", "maitred dev shows them"), "ipv4": nothing, "ipv6": nothing, "help": nothing,
}  # fmt: skip


def translate(line: CommandLine, folder: Path, run: bool) -> Result:
    """The result for a command line."""
    del folder, run
    is_daphne = line.server == "daphne"
    given, rest = parse(line.arguments, DAPHNE if is_daphne else WAITRESS)
    result = Result(f"the command line of {line.server}")
    settings: dict[str, Given] = {}
    uvicorn.collect(settings, given, ("listen",))
    if "app" in settings:
        rest = [str(settings["app"].value)]
    if rest:
        uvicorn.target(result, rest[0], line)
    else:
        result.decide("command line", "no application is named", 'write application = "MODULE:ATTRIBUTE"')
    meaning.apply(result, settings, HANDLERS)
    (_daphne if is_daphne else _waitress)(result, settings)
    return result


def _daphne(result: Result, settings: dict[str, Given]) -> None:
    if "endpoint" not in settings:
        _address(result, settings, "127.0.0.1", "8000")
    if "access_log" not in settings:
        result.put("access-log", "-", "daphne's default")
    if "proxy_headers" in settings:
        given = settings["proxy_headers"]
        result.decide(given.origin, "every client could say where it comes from", 'name the proxy: trusted-proxies = ["127.0.0.1"]')
        result.offer("trusted-proxies", ["127.0.0.1"], given.origin)


def _waitress(result: Result, settings: dict[str, Given]) -> None:
    if "threads" not in settings:
        result.put("max-threads", 4, "waitress's default of --threads")
    if "max_request_body_size" not in settings:
        result.put("max-body", "1g", "waitress's default of --max-request-body-size")
    if "channel_timeout" not in settings:
        result.put("keep-alive", 120, "waitress's default of --channel-timeout")
    listens = settings.get("listen")
    if listens:
        for address in [part for text in meaning.texts(listens.value) for part in text.split()]:
            meaning.listen(result, address.replace("*:", ":"), listens.origin)
    else:
        _address(result, settings, "0.0.0.0", "8080")
    if proxy := settings.get("trusted_proxy"):
        meaning.trust(result, proxy)
        fields = settings.get("trusted_proxy_headers")
        names = [name for name in (str(fields.value).lower().replace(",", " ").split() if fields else ["x-forwarded-proto"])]
        known = [name for name in names if name in ("x-forwarded-for", "x-forwarded-proto", "forwarded")]
        if known and result.find("trusted-proxies"):
            result.put("forwarded-fields", known, (fields or proxy).origin)
        if set(names) - set(known):
            result.tell((fields or proxy).origin, f"{', '.join(sorted(set(names) - set(known)))} do not count", "the proxy keeps Host as it is")


def _address(result: Result, settings: dict[str, Given], host: str, port: str) -> None:
    if "fd" in settings:
        meaning.listen(result, f"fd://{settings['fd'].value}", settings["fd"].origin)
    elif "unix_socket" in settings:
        rights = settings.get("unix_socket_perms")
        mode = str(rights.value).removeprefix("0o").lstrip("0") if rights else "666" if "endpoint" not in settings else "660"
        meaning.listen(result, f"unix:{settings['unix_socket'].value}", settings["unix_socket"].origin, "", mode)
    else:
        given_host, given_port = settings.get("host"), settings.get("port")
        name = str(given_host.value) if given_host else host
        name = f"[{name}]" if ":" in name and not name.startswith("[") else name
        origin = ", ".join(given.origin for given in (given_host, given_port) if given) or "the default"
        meaning.listen(result, f"{name}:{given_port.value if given_port else port}", origin)
