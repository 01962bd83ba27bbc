"""From uvicorn (0.54) and hypercorn (0.18): their command lines.

What their options mean is from https://www.uvicorn.org/settings/ and https://hypercorn.readthedocs.io.
"""

from __future__ import annotations

from pathlib import Path

from maitred._migrate import meaning
from maitred._migrate.meaning import Handler, decide, key, nothing, number, tell, time, truth
from maitred._migrate.result import Result, Table
from maitred._migrate.words import CommandLine, Given, flags, parse

UVICORN = flags(
    "host --host", "port --port", "uds --uds", "fd --fd", "reload! --reload", "reload_dir --reload-dir",
    "reload_include --reload-include", "reload_exclude --reload-exclude", "reload_delay --reload-delay", "workers --workers",
    "loop --loop", "http --http", "http2! --http2", "ws --ws", "ws_max_size --ws-max-size", "ws_max_queue --ws-max-queue",
    "ws_ping_interval --ws-ping-interval", "ws_ping_timeout --ws-ping-timeout",
    "ws_per_message_deflate --ws-per-message-deflate", "lifespan --lifespan", "interface --interface", "env_file --env-file",
    "log_config --log-config", "log_level --log-level", "access_log! --access-log --no-access-log",
    "use_colors! --use-colors --no-use-colors", "proxy_headers! --proxy-headers --no-proxy-headers",
    "server_header! --server-header --no-server-header", "date_header! --date-header --no-date-header",
    "forwarded_allow_ips --forwarded-allow-ips", "root_path --root-path", "limit_concurrency --limit-concurrency",
    "backlog --backlog", "limit_max_requests --limit-max-requests", "limit_max_requests_jitter --limit-max-requests-jitter",
    "timeout_keep_alive --timeout-keep-alive", "timeout_graceful_shutdown --timeout-graceful-shutdown",
    "timeout_worker_healthcheck --timeout-worker-healthcheck", "ssl_keyfile --ssl-keyfile", "ssl_certfile --ssl-certfile",
    "ssl_keyfile_password --ssl-keyfile-password", "ssl_version --ssl-version", "ssl_cert_reqs --ssl-cert-reqs",
    "ssl_ca_certs --ssl-ca-certs", "ssl_ciphers --ssl-ciphers", "header --header", "app_dir --app-dir",
    "h11_max_incomplete_event_size --h11-max-incomplete-event-size", "reset_contextvars! --reset-contextvars",
    "factory! --factory",
)  # fmt: skip

HYPERCORN = flags(
    "access_log_file --access-logfile --access-log", "access_log_format --access-logformat", "backlog --backlog",
    "bind -b --bind", "ssl_ca_certs --ca-certs", "ssl_certfile --certfile", "ssl_cert_reqs --cert-reqs",
    "ssl_ciphers --ciphers", "config -c --config", "daemon! -D --daemon", "debug! --debug",
    "error_log_file --error-logfile --log-file --error-log", "timeout_graceful_shutdown --graceful-timeout",
    "read_timeout --read-timeout", "limit_max_requests --max-requests", "limit_max_requests_jitter --max-requests-jitter",
    "socket_group -g --group", "worker_class -k --worker-class", "timeout_keep_alive --keep-alive", "ssl_keyfile --keyfile",
    "ssl_keyfile_password --keyfile-password", "insecure_bind --insecure-bind", "log_config --log-config",
    "log_level --log-level", "pid -p --pid", "quic_bind --quic-bind", "reload! --reload", "root_path --root-path",
    "server_name --server-name", "statsd_host --statsd-host", "statsd_prefix --statsd-prefix", "umask -m --umask",
    "socket_user -u --user", "ssl_verify_mode --verify-mode", "ws_ping_interval --websocket-ping-interval",
    "workers -w --workers",
)  # fmt: skip

_REPEATED = ("header", "bind", "insecure_bind", "server_name")


def _workers(result: Result, given: Given) -> None:
    if number(given.value) > 1:
        result.put("workers", int(number(given.value)), given.origin)


def _requests(result: Result, given: Given) -> None:
    result.put("worker-requests", int(number(given.value)), given.origin)


def _root_path(result: Result, given: Given) -> None:
    result.put("root-path", "/" + str(given.value).strip("/"), given.origin)
    result.tell(
        given.origin,
        "root-path is for paths that have the prefix: a proxy in front must leave it in the path",
        "in nginx write proxy_pass without a path behind the address",
    )


def _interface(result: Result, given: Given) -> None:
    if given.value == "asgi2":
        result.decide(given.origin, "ASGI 2 is not spoken", "wrap the application: asgiref.compatibility.guarantee_single_callable")
    elif given.value == "wsgi":
        result.put("interface", "wsgi", given.origin)


def _loop(result: Result, given: Given) -> None:
    value = str(given.value)
    if value in ("auto", "asyncio", "uvloop") or ":" in value:
        result.put("loop", value, given.origin)
    else:
        result.decide(given.origin, f"the event loop {value} is not known", "loop takes auto, asyncio, uvloop or module:factory")


def _header(result: Result, given: Given) -> None:
    for text in meaning.texts(given.value):
        name, _, value = text.partition(":")
        if not result.filters:
            result.filters.append(type(result)("filter"))
        result.filters[0].add("add-response", f"{name.strip()}: {value.strip()}", given.origin)


def _server_header(result: Result, given: Given) -> None:
    if not truth(given.value):
        result.tell(given.origin, "the field Server is always there", 'a filter gives it another value: set-response = ["Server: web"]')


def _deflate(result: Result, given: Given) -> None:
    if not truth(given.value):
        result.put("websocket-deflate", False, given.origin)


def _certificates(result: Result, given: Given) -> None:
    meaning.client_certificates(result, given)


def _access_log(result: Result, given: Given) -> None:
    if truth(given.value):
        result.put("access-log", "-", given.origin)


def _server_names(result: Result, given: Given) -> None:
    """Requests for other names were answered with 404."""
    closed = Table()
    closed.put("access", ["deny all"], given.origin)
    result.filters.append(closed)
    for host in [f"{name}{port}" for name in meaning.texts(given.value) for port in ("", ":*")]:
        table = Table()
        table.put("header", f"Host: {host}", given.origin)
        table.put("access", ["allow all"], given.origin)
        result.filters.append(table)
    result.tell(given.origin, "other names get 403", "the table of a host has its own files and applications: docs/operations/hosts.md")


_SOCKET = tell("the socket belongs to whoever starts it", "write owner=UID or group=GID behind unix:PATH in listen")

HANDLERS: dict[str, Handler] = {
    "workers": _workers, "limit_max_requests": _requests, "root_path": _root_path, "interface": _interface, "loop": _loop,
    "limit_max_requests_jitter": tell("the spread is fixed: a worker ends up to a tenth earlier", "nothing has to be done"),
    "header": _header, "server_header": _server_header, "date_header": nothing, "http": nothing, "http2": nothing, "ws": nothing,
    "ws_max_size": key("websocket-max-message", number), "ws_ping_interval": key("websocket-ping", number),
    "ws_ping_timeout": key("websocket-timeout", number), "ws_per_message_deflate": _deflate, "ws_max_queue": nothing,
    "lifespan": key("lifespan"), "env_file": key("env-file"), "log_config": meaning.LOG_CONFIG, "log_level": meaning.level,
    "access_log": _access_log, "use_colors": nothing, "timeout_keep_alive": key("keep-alive", time),
    "timeout_graceful_shutdown": key("drain-timeout", time), "timeout_worker_healthcheck": nothing,
    "ssl_keyfile": key("tls-key"), "ssl_certfile": key("tls-cert"), "ssl_keyfile_password": meaning.password,
    "ssl_version": nothing, "ssl_cert_reqs": _certificates, "ssl_verify_mode": _certificates, "ssl_ca_certs": key("tls-client-ca"),
    "ssl_ciphers": meaning.CIPHERS, "app_dir": key("app-dir"), "factory": key("factory", truth), "reset_contextvars": nothing,
    "h11_max_incomplete_event_size": meaning.HEAD,
    "limit_concurrency": decide(
        "there is no limit that answers 503 for the whole server",
        "max-connections has further connections wait; client-connections and client-rate limit single clients"),
    "reload": meaning.RELOAD, "reload_dir": nothing, "reload_include": nothing, "reload_exclude": nothing, "reload_delay": nothing,
    "access_log_file": meaning.access_log, "access_log_format": meaning.access_format, "error_log_file": meaning.error_log,
    "config": decide("the configuration of hypercorn is not read", "write its values as options of the command line"),
    "daemon": meaning.DAEMON, "debug": meaning.RELOAD, "read_timeout": key("body-timeout", number), "pid": key("pid-file"),
    "socket_group": _SOCKET, "socket_user": _SOCKET, "umask": nothing, "statsd_host": meaning.STATSD, "statsd_prefix": nothing,
    "server_name": _server_names,
    "quic_bind": decide("HTTP/3 is not spoken", "leave it to a proxy in front"),
    "worker_class": _loop,
    "host": nothing, "port": nothing, "uds": nothing, "fd": nothing, "bind": nothing, "insecure_bind": nothing,
    "forwarded_allow_ips": nothing, "proxy_headers": nothing, "backlog": nothing,
}  # fmt: skip


def translate(line: CommandLine, folder: Path, run: bool) -> Result:
    """The result for a command line."""
    del folder, run
    given, rest = parse(line.arguments, HYPERCORN if line.server == "hypercorn" else UVICORN)
    result = Result(f"the command line of {line.server}")
    settings = from_environment(line, "UVICORN_")
    collect(settings, given, _REPEATED)
    if rest:
        target(result, rest[0], line)
    else:
        result.decide("command line", "no application is named", 'write application = "MODULE:ATTRIBUTE"')
    meaning.apply(result, settings, HANDLERS)
    if line.server == "hypercorn":
        _bind(result, settings)
        if "trio" in str(settings.get("worker_class", Given("", "")).value):
            result.decide("command line", "there is no trio", "an application for trio stays with hypercorn")
    else:
        _address(result, settings)
        _trust(result, settings, line)
        if "access_log" not in settings:
            result.put("access-log", "-", "uvicorn's default")
    if "timeout_graceful_shutdown" not in settings and line.server == "uvicorn":
        result.tell("uvicorn's default", "running requests have drain-timeout, 30 s, at the end and not for ever", "set drain-timeout for more")
    return result


def target(result: Result, text: str, line: CommandLine) -> None:
    default = "app" if line.server != "granian" else ""
    meaning.target(result, Given(text, "command line", text), default)
    for name, value in line.environment.items():
        if not name.startswith(("UVICORN_", "GRANIAN_")) and name not in ("WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS", "PORT"):
            result.environment.append((name, value, "command line"))


def from_environment(line: CommandLine, prefix: str) -> dict[str, Given]:
    """Settings that variables in front of the command give."""
    settings = {
        name.removeprefix(prefix).lower(): Given(value, name) for name, value in line.environment.items() if name.startswith(prefix)
    }
    if "WEB_CONCURRENCY" in line.environment and line.server == "uvicorn":
        settings.setdefault("workers", Given(line.environment["WEB_CONCURRENCY"], "WEB_CONCURRENCY"))
    return settings


def collect(settings: dict[str, Given], given: list[tuple[str, Given]], repeated: tuple[str, ...]) -> None:
    """The last of each, and all of those that may be repeated."""
    for name, setting in given:
        before = settings.get(name)
        if name in repeated and before is not None and before.place == setting.place:
            settings[name] = Given(
                [*meaning.texts(before.value), str(setting.value)], setting.place, f"{before.text}, {setting.text}"
            )
        else:
            settings[name] = setting


def _address(result: Result, settings: dict[str, Given]) -> None:
    parameters = f",backlog={settings['backlog'].value}" if "backlog" in settings else ""
    if "fd" in settings:
        meaning.listen(result, f"fd://{settings['fd'].value}", settings["fd"].origin)
    elif "uds" in settings:
        meaning.listen(result, f"unix:{settings['uds'].value}", settings["uds"].origin, parameters)
    else:
        host, port = settings.get("host"), settings.get("port")
        name = str(host.value) if host else "127.0.0.1"
        name = f"[{name}]" if ":" in name and not name.startswith("[") else name
        origin = ", ".join(given.origin for given in (host, port) if given) or "uvicorn's default"
        meaning.listen(result, f"{name}:{port.value if port else 8000}", origin, parameters)


def _trust(result: Result, settings: dict[str, Given], line: CommandLine) -> None:
    """uvicorn believes X-Forwarded-For and -Proto of 127.0.0.1 unless told otherwise."""
    given = settings.get("proxy_headers")
    if given is not None and not truth(given.value):
        result.tell(
            given.origin, "nobody is believed, and the application does not see X-Forwarded-* either", "name a proxy in trusted-proxies",
            key="trusted-proxies",
        )
        return
    allowed = settings.get("forwarded_allow_ips")
    if allowed is None and "FORWARDED_ALLOW_IPS" in line.environment:
        allowed = Given(line.environment["FORWARDED_ALLOW_IPS"], "FORWARDED_ALLOW_IPS")
    if allowed is None:
        allowed = Given("127.0.0.1,::1", "uvicorn's default", "forwarded_allow_ips")
        if "uds" in settings:
            result.tell(
                settings["uds"].origin, "uvicorn believed nobody who came by the socket", 'trusted-proxies = ["unix"] believes the proxy',
                key="trusted-proxies",
            )
    meaning.trust(result, allowed)


def _mode(umask: Given | None) -> str:
    try:
        return f"{0o666 & ~int(str(umask.value), 8):o}" if umask else "666"
    except ValueError:
        return "660"


def _bind(result: Result, settings: dict[str, Given]) -> None:
    parameters = f",backlog={settings['backlog'].value}" if "backlog" in settings else ""
    bind = settings.get("bind") or Given("127.0.0.1:8000", "hypercorn's default")
    for address in meaning.texts(bind.value):
        meaning.listen(result, address, bind.origin, parameters, _mode(settings.get("umask")))
    insecure = settings.get("insecure_bind")
    for address in meaning.texts(insecure.value) if insecure else []:
        meaning.listen(result, f"http://{address}", insecure.origin if insecure else "", parameters)
