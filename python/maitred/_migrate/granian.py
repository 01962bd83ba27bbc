"""From granian (2.8): its command line and GRANIAN_ variables.

What its options mean is from its own help text and https://github.com/emmett-framework/granian.
"""

from __future__ import annotations

import re
from pathlib import Path

from maitred._migrate import meaning, uvicorn
from maitred._migrate.meaning import Handler, decide, key, nothing, number, truth
from maitred._migrate.result import Result, Table
from maitred._migrate.words import CommandLine, Given, flags, parse

OPTIONS = flags(
    "host --host", "port --port", "uds --uds", "uds_permissions --uds-permissions", "interface --interface", "http --http",
    "websockets! --ws --no-ws", "workers --workers", "blocking_threads --blocking-threads",
    "blocking_threads_idle_timeout --blocking-threads-idle-timeout", "runtime_threads --runtime-threads",
    "runtime_blocking_threads --runtime-blocking-threads", "runtime_mode --runtime-mode", "loop --loop",
    "task_impl --task-impl", "backlog --backlog", "backpressure --backpressure", "http1_buffer_size --http1-buffer-size",
    "http1_header_read_timeout --http1-header-read-timeout", "http1_keep_alive! --http1-keep-alive --no-http1-keep-alive",
    "http1_pipeline_flush! --http1-pipeline-flush --no-http1-pipeline-flush",
    "http2_adaptive_window! --http2-adaptive-window --no-http2-adaptive-window",
    "http2_initial_connection_window_size --http2-initial-connection-window-size",
    "http2_initial_stream_window_size --http2-initial-stream-window-size",
    "http2_keep_alive_interval --http2-keep-alive-interval", "http2_keep_alive_timeout --http2-keep-alive-timeout",
    "http2_max_concurrent_streams --http2-max-concurrent-streams", "http2_max_frame_size --http2-max-frame-size",
    "http2_max_headers_size --http2-max-headers-size", "http2_max_send_buffer_size --http2-max-send-buffer-size",
    "log_enabled! --log --no-log", "log_level --log-level", "log_config --log-config",
    "log_access_enabled! --access-log --no-access-log", "log_access_fmt --access-log-fmt", "ssl_certificate --ssl-certificate",
    "ssl_keyfile --ssl-keyfile", "ssl_keyfile_password --ssl-keyfile-password", "ssl_protocol_min --ssl-protocol-min",
    "ssl_ca --ssl-ca", "ssl_crl --ssl-crl", "ssl_client_verify! --ssl-client-verify --no-ssl-client-verify",
    "url_path_prefix --url-path-prefix", "respawn_failed_workers! --respawn-failed-workers --no-respawn-failed-workers",
    "respawn_interval --respawn-interval", "rss_sample_interval --rss-sample-interval", "rss_samples --rss-samples",
    "workers_lifetime --workers-lifetime", "workers_max_rss --workers-max-rss", "workers_kill_timeout --workers-kill-timeout",
    "factory! --factory --no-factory", "working_dir --working-dir", "env_files --env-files",
    "static_path_route --static-path-route", "static_path_mount --static-path-mount",
    "static_path_dir_to_file --static-path-dir-to-file", "static_path_expires --static-path-expires",
    "metrics_enabled! --metrics --no-metrics", "metrics_scrape_interval --metrics-scrape-interval",
    "metrics_address --metrics-address", "metrics_port --metrics-port", "reload! --reload --no-reload",
    "reload_paths --reload-paths", "reload_ignore_dirs --reload-ignore-dirs", "reload_ignore_patterns --reload-ignore-patterns",
    "reload_ignore_paths --reload-ignore-paths", "reload_tick --reload-tick",
    "reload_ignore_worker_failure! --reload-ignore-worker-failure --no-reload-ignore-worker-failure",
    "process_name --process-name", "pid_file --pid-file",
)  # fmt: skip

_REPEATED = ("static_path_route", "static_path_mount", "env_files", "ssl_crl")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: object) -> int | float:
    """A duration: seconds, or ``1h30m``."""
    text = str(value).strip()
    if re.fullmatch(r"(\d+[smhd])+", text):
        return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([smhd])", text))
    return number(text)


def _interface(result: Result, given: Given) -> None:
    value = str(given.value)
    if value == "rsgi":
        result.decide(
            given.origin,
            "RSGI is not spoken, only WSGI and ASGI",
            "serve the ASGI side of the application, which frameworks for RSGI have as well, or stay with granian",
        )
        return
    result.put("interface", value[:4], given.origin)
    if value == "asginl":
        result.put("lifespan", "off", given.origin)


def _http(result: Result, given: Given) -> None:
    meant = {"1": "off", "2": "only"}.get(str(given.value))
    if meant:
        result.put("http2", meant, given.origin)


def _on(name: str) -> Handler:
    def handle(result: Result, given: Given) -> None:
        result.put(name, truth(given.value), given.origin)

    return handle


def _environment(result: Result, given: Given) -> None:
    files = meaning.texts(given.value)
    result.put("env-file", files[0], given.origin)
    if len(files) > 1:
        result.decide(given.origin, "env-file is one file", f"join {', '.join(files)} to one")


def _keep_alive(result: Result, given: Given) -> None:
    if not truth(given.value):
        result.tell(given.origin, "connections are kept alive", "keep-alive = 0.001 closes them at once")


def _metrics(result: Result, given: Given) -> None:
    if truth(given.value):
        result.decide(given.origin, "figures have no port of their own that everybody reaches", 'set metrics-path = "/metrics"')


def _access_format(result: Result, given: Given) -> None:
    result.decide(given.origin, "the fields of the access log have other names", "write access-log-format with fields of docs/operations/logs.md")


def _log(result: Result, given: Given) -> None:
    if not truth(given.value):
        result.put("log-level", "error", given.origin)


def _access(result: Result, given: Given) -> None:
    if truth(given.value):
        result.put("access-log", "-", given.origin)


def _verify(result: Result, given: Given) -> None:
    if truth(given.value):
        result.put("tls-client-auth", "required", given.origin)


def _crl(result: Result, given: Given) -> None:
    result.put("tls-client-crl", meaning.texts(given.value), given.origin)


HANDLERS: dict[str, Handler] = {
    "interface": _interface, "http": _http, "websockets": _on("websockets"), "blocking_threads": key("max-threads", number),
    "workers": lambda result, given: result.put("workers", int(number(given.value)), given.origin),
    "blocking_threads_idle_timeout": key("thread-idle", seconds), "runtime_threads": nothing, "runtime_blocking_threads": nothing,
    "runtime_mode": nothing, "loop": key("loop"), "task_impl": nothing, "http1_buffer_size": nothing,
    "backpressure": decide("the requests of a worker are not limited as a whole",
                           "max-threads limits those of WSGI, queue with overflow = \"refuse\" those that wait; max-connections limits connections"),
    "http1_header_read_timeout": key("head-timeout", lambda value: number(value) / 1000), "http1_keep_alive": _keep_alive,
    "http1_pipeline_flush": nothing, "http2_adaptive_window": nothing, "http2_initial_connection_window_size": nothing,
    "http2_initial_stream_window_size": nothing, "http2_keep_alive_interval": nothing, "http2_keep_alive_timeout": nothing,
    "http2_max_concurrent_streams": key("http2-streams", number), "http2_max_frame_size": nothing, "http2_max_headers_size": nothing,
    "http2_max_send_buffer_size": nothing, "log_enabled": _log, "log_level": meaning.level, "log_config": meaning.LOG_CONFIG,
    "log_access_enabled": _access, "log_access_fmt": _access_format, "ssl_certificate": key("tls-cert"),
    "ssl_keyfile": key("tls-key"), "ssl_keyfile_password": meaning.password,
    "ssl_protocol_min": key("tls-min-version", lambda value: str(value).removeprefix("tls")), "ssl_ca": key("tls-client-ca"),
    "ssl_crl": _crl, "ssl_client_verify": _verify, "respawn_failed_workers": nothing, "respawn_interval": nothing,
    "rss_sample_interval": nothing, "rss_samples": nothing, "workers_lifetime": key("worker-lifetime", seconds),
    "workers_max_rss": key("worker-memory", lambda value: f"{value}m"), "workers_kill_timeout": key("drain-timeout", seconds),
    "factory": _on("factory"), "working_dir": key("chdir"), "env_files": _environment, "metrics_enabled": _metrics,
    "url_path_prefix": key("root-path", lambda value: "/" + str(value).strip("/")),
    "metrics_scrape_interval": nothing, "metrics_address": nothing, "metrics_port": nothing, "reload": meaning.RELOAD,
    "reload_paths": nothing, "reload_ignore_dirs": nothing, "reload_ignore_patterns": nothing, "reload_ignore_paths": nothing,
    "reload_tick": nothing, "reload_ignore_worker_failure": nothing, "process_name": meaning.NAME, "pid_file": key("pid-file"),
    "host": nothing, "port": nothing, "uds": nothing, "uds_permissions": nothing, "backlog": nothing, "static_path_route": nothing,
    "static_path_mount": nothing, "static_path_dir_to_file": nothing, "static_path_expires": nothing,
}  # fmt: skip


def translate(line: CommandLine, folder: Path, run: bool) -> Result:
    """The result for a command line."""
    del folder, run
    given, rest = parse(line.arguments, OPTIONS)
    result = Result("the command line of granian")
    settings = uvicorn.from_environment(line, "GRANIAN_")
    uvicorn.collect(settings, given, _REPEATED)
    settings.setdefault("interface", Given("rsgi", "granian's default", "--interface rsgi"))
    if rest:
        uvicorn.target(result, rest[0], line)
    else:
        result.decide("command line", "no application is named", 'write application = "MODULE:ATTRIBUTE"')
    meaning.apply(result, settings, HANDLERS)
    _listen(result, settings)
    _static(result, settings)
    if str(settings["interface"].value) == "wsgi" and "blocking_threads" not in settings:
        result.tell("granian's default", "a worker has up to 10 threads", "set max-threads for another number")
    return result


def _listen(result: Result, settings: dict[str, Given]) -> None:
    parameters = f",backlog={settings['backlog'].value}" if "backlog" in settings else ""
    if uds := settings.get("uds"):
        rights = settings.get("uds_permissions")
        mode = str(rights.value).removeprefix("0o").lstrip("0") if rights else "666"
        meaning.listen(result, f"unix:{uds.value}", uds.origin, parameters, mode)
        return
    host, port = settings.get("host"), settings.get("port")
    name = str(host.value) if host else "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    origin = ", ".join(part.origin for part in (host, port) if part) or "granian's default"
    meaning.listen(result, f"{name}:{port.value if port else 8000}", origin, parameters)


def _static(result: Result, settings: dict[str, Given]) -> None:
    """Files, with the age that caches may have them for: a day, if nothing is said."""
    mounts = settings.get("static_path_mount")
    if mounts is None:
        return
    routes = settings.get("static_path_route") or Given("/static", "granian's default", "--static-path-route /static")
    urls, folders = meaning.texts(routes.value), meaning.texts(mounts.value)
    expires = settings.get("static_path_expires") or Given("86400", "granian's default", "--static-path-expires 86400")
    for url, folder in zip(urls, folders):
        url = "/" + url.strip("/")
        result.add("static", f"{url}={folder}", mounts.origin)
        if seconds(expires.value):
            table = Table()
            table.put("path", f"{url}/*", routes.origin)
            table.add("set-response", f"Cache-Control: max-age={seconds(expires.value)}", expires.origin)
            result.filters.append(table)
    index = settings.get("static_path_dir_to_file")
    if index and index.value != "index.html":
        result.decide(index.origin, "the file of a folder is index.html", f"rename {index.value}, or link it")
