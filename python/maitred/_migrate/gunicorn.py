"""From gunicorn, 20 to 27: its command line, gunicorn.conf.py and GUNICORN_CMD_ARGS.

What its settings mean is from https://docs.gunicorn.org/en/stable/settings.html.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from pathlib import Path

from maitred._migrate import gunicorn_file, meaning
from maitred._migrate.gunicorn_file import Processors
from maitred._migrate.meaning import Handler, decide, key, nothing, number, tell, time, truth
from maitred._migrate.result import Result
from maitred._migrate.words import CommandLine, Given, flags, parse

OPTIONS = flags(
    "config -c --config", "bind -b --bind", "backlog --backlog", "workers -w --workers", "worker_class -k --worker-class",
    "threads --threads", "worker_connections --worker-connections", "max_requests --max-requests",
    "max_requests_jitter --max-requests-jitter", "timeout -t --timeout", "graceful_timeout --graceful-timeout",
    "keepalive --keep-alive", "limit_request_line --limit-request-line", "limit_request_fields --limit-request-fields",
    "limit_request_field_size --limit-request-field_size --limit-request-field-size", "reload! --reload",
    "reload_engine --reload-engine", "reload_extra_files --reload-extra-file", "spew! --spew", "check_config! --check-config",
    "print_config! --print-config", "preload_app! --preload", "sendfile! --no-sendfile", "reuse_port! --reuse-port",
    "chdir --chdir", "daemon! -D --daemon", "raw_env -e --env", "pidfile -p --pid", "worker_tmp_dir --worker-tmp-dir",
    "user -u --user", "group -g --group", "umask -m --umask", "initgroups! --initgroups",
    "forwarded_allow_ips --forwarded-allow-ips", "accesslog --access-logfile",
    "disable_redirect_access_to_syslog! --disable-redirect-access-to-syslog", "access_log_format --access-logformat",
    "errorlog --error-logfile --log-file", "loglevel --log-level", "capture_output! --capture-output",
    "logger_class --logger-class", "logconfig --log-config", "logconfig_json --log-config-json",
    "syslog_addr --log-syslog-to", "syslog! --log-syslog", "syslog_prefix --log-syslog-prefix",
    "syslog_facility --log-syslog-facility", "enable_stdio_inheritance! -R --enable-stdio-inheritance",
    "statsd_host --statsd-host", "dogstatsd_tags --dogstatsd-tags", "statsd_prefix --statsd-prefix", "proc_name -n --name",
    "pythonpath --pythonpath", "paste --paste --paster", "proxy_protocol! --proxy-protocol", "proxy_allow_ips --proxy-allow-from",
    "keyfile --keyfile", "certfile --certfile", "ssl_version --ssl-version", "cert_reqs --cert-reqs", "ca_certs --ca-certs",
    "suppress_ragged_eofs! --suppress-ragged-eofs --no-suppress-ragged-eofs",
    "do_handshake_on_connect! --do-handshake-on-connect", "ciphers --ciphers",
    "strip_header_spaces! --strip-header-spaces", "permit_obsolete_folding! --permit-obsolete-folding",
    "permit_unconventional_http_method! --permit-unconventional-http-method", "forwarder_headers --forwarder-headers",
    "permit_unconventional_http_version! --permit-unconventional-http-version", "casefold_http_method! --casefold-http-method",
    "header_map --header-map", "asgi_loop --asgi-loop", "asgi_lifespan --asgi-lifespan", "root_path --root-path",
    "control_socket --control-socket", "control_socket_mode --control-socket-mode", "no_control_socket! --no-control-socket",
    "http_protocols --http-protocols", "websocket_max_message_size --websocket-max-message-size", "http_parser --http-parser",
    "dirty_app --dirty-app", "dirty_workers --dirty-workers", "dirty_timeout --dirty-timeout", "dirty_threads --dirty-threads",
    "dirty_graceful_timeout --dirty-graceful-timeout", "protocol --protocol", "uwsgi_allow_ips --uwsgi-allow-from",
    "http2_cleartext --http2-cleartext", "http2_max_concurrent_streams --http2-max-concurrent-streams",
    "http2_initial_window_size --http2-initial-window-size", "http2_max_frame_size --http2-max-frame-size",
    "http2_max_header_list_size --http2-max-header-list-size", "enable_backlog_metric! --enable-backlog-metric",
)  # fmt: skip

#: Options that may be given several times.
_REPEATED = ("bind", "raw_env", "reload_extra_files")
_DIRTY = decide("there are no dirty workers", "run that work in a queue of its own, or in a pool of threads")
_LOOSE = decide("requests that break RFC 9112 are refused, without a switch", "have those clients corrected")
_NUMBER = tell("a request has 128 fields at most", "nothing has to be done, unless clients send more")
_LINE = tell("a request's target has 8 KiB at most", "nothing has to be done, unless clients send longer ones")


def _workers(result: Result, given: Given) -> None:
    if isinstance(given.value, Processors):
        result.put("workers", "auto", given.origin)
    elif number(given.value) != 1:
        result.put("workers", int(number(given.value)), given.origin)


def _max_requests(result: Result, given: Given) -> None:
    if number(given.value):
        result.put("worker-requests", int(number(given.value)), given.origin)


def _jitter(result: Result, given: Given) -> None:
    if number(given.value):
        result.tell(given.origin, "the spread is fixed: a worker ends up to a tenth earlier", "nothing has to be done")


def _timeout(result: Result, given: Given) -> None:
    """A worker that has not told its arbiter that it lives for so long is killed: a heartbeat."""
    if not number(given.value):
        return
    line = result.find("workers")
    if line:
        result.put("worker-timeout", number(given.value), given.origin)
    result.tell(
        given.origin,
        "timeout is a heartbeat of workers, and with sync workers it killed a worker whose request took longer",
        ("a worker in which nothing moves is replaced (worker-timeout); " if line else "")
        + f"to answer 504 to slow requests set request-timeout = {given.value}",
    )


def _keepalive(result: Result, given: Given) -> None:
    if number(given.value):
        result.put("keep-alive", number(given.value), given.origin)
    else:
        result.tell(given.origin, "connections are kept alive", "keep-alive = 0.001 closes them at once")


def _pythonpath(result: Result, given: Given) -> None:
    folders = [part for part in str(given.value).split(",") if part]
    if len(folders) == 1:
        result.put("app-dir", folders[0], given.origin)
        result.tell(given.origin, "modules are looked for there and not in the current folder", "set PYTHONPATH if you need both")
    elif folders:
        result.decide(given.origin, "app-dir is one folder", f"start it with PYTHONPATH={':'.join(folders)}")


def _raw_env(result: Result, given: Given) -> None:
    for entry in meaning.texts(given.value):
        name, _, value = entry.partition("=")
        if name == "SCRIPT_NAME":
            # Not as it was written: beside it stand values that are secret.
            result.put("root-path", value, f"{given.place}: SCRIPT_NAME")
        else:
            result.environment.append((name, value, given.place))


def _secure_headers(result: Result, given: Given) -> None:
    headers = given.value if isinstance(given.value, dict) else {}
    if {str(name).upper().replace("_", "-"): value for name, value in headers.items()} != {"X-FORWARDED-PROTO": "https"}:
        result.decide(
            given.origin, "of all such fields X-Forwarded-Proto counts, and its value is https or http", "have the proxy set that"
        )


def _reuse_port(result: Result, given: Given) -> None:
    if not truth(given.value):
        return
    if result.find("workers"):
        result.put("accept", "reuseport", given.origin)
    else:
        result.tell(given.origin, "one process listens, so that nothing shares the port", "with workers: accept = \"reuseport\"")


def _umask(result: Result, given: Given) -> None:
    if _mask(given.value):
        result.tell(given.origin, "files that the application makes have the umask of whoever starts it", "set UMask= in the unit, or os.umask() in the application")


def _mask(value: object) -> int:
    if isinstance(value, int):
        return value
    text = str(value)
    return int(text, 8) if text.startswith("0") else int(text, 0)


def _protocol(result: Result, given: Given) -> None:
    if str(given.value) != "http":
        result.decide(given.origin, f"the protocol {given.value} is not spoken", "have the proxy in front speak HTTP: proxy_pass in the place of uwsgi_pass")


def _when(handler: Handler) -> Handler:
    """Only if the setting is on."""

    def handle(result: Result, given: Given) -> None:
        if given.value not in (None, False, "", 0, [], {}):
            handler(result, given)

    return handle


def _text(name: str) -> Handler:
    return _when(key(name, lambda value: value if isinstance(value, (str, int)) else str(value)))


HANDLERS: dict[str, Handler] = {
    "workers": _workers, "max_requests": _max_requests, "max_requests_jitter": _jitter, "graceful_timeout": key("drain-timeout", time),
    "timeout": _timeout, "keepalive": _keepalive, "pythonpath": _when(_pythonpath), "raw_env": _raw_env,
    "secure_scheme_headers": _secure_headers, "reuse_port": _reuse_port, "chdir": _text("chdir"), "pidfile": _text("pid-file"),
    "user": _when(key("user", str)), "group": _when(key("group", str)), "certfile": _text("tls-cert"), "keyfile": _text("tls-key"),
    "ca_certs": _text("tls-client-ca"), "cert_reqs": meaning.client_certificates, "ciphers": _when(meaning.CIPHERS),
    "ssl_version": nothing, "accesslog": _when(meaning.access_log), "errorlog": _when(meaning.error_log),
    "loglevel": meaning.level, "access_log_format": meaning.access_format,
    "capture_output": _when(tell("what the application prints stays on standard output and standard error", "redirect them")),
    "logger_class": _when(meaning.LOG_CONFIG), "logconfig": _when(meaning.LOG_CONFIG), "logconfig_json": _when(meaning.LOG_CONFIG),
    "logconfig_dict": _when(meaning.LOG_CONFIG), "statsd_host": _when(meaning.STATSD), "statsd_prefix": nothing,
    "dogstatsd_tags": nothing, "proc_name": _when(meaning.NAME), "daemon": _when(meaning.DAEMON), "reload": _when(meaning.RELOAD),
    "reload_engine": nothing, "reload_extra_files": nothing, "spew": nothing, "check_config": nothing, "print_config": nothing,
    "sendfile": nothing, "worker_tmp_dir": nothing, "initgroups": nothing, "disable_redirect_access_to_syslog": nothing,
    "enable_stdio_inheritance": nothing, "syslog_prefix": nothing, "syslog_facility": nothing, "suppress_ragged_eofs": nothing,
    "do_handshake_on_connect": nothing, "worker_connections": nothing, "config": nothing, "backlog": nothing, "umask": _umask,
    "proxy_allow_ips": nothing, "control_socket": nothing, "control_socket_mode": nothing, "no_control_socket": nothing,
    "http_parser": nothing, "asgi_disconnect_grace_period": nothing, "default_proc_name": nothing,
    "syslog": _when(lambda result, given: result.put("access-log", "syslog", given.origin)),
    "syslog_addr": _when(tell("syslog is the local one, or HOST:PORT over UDP", 'write error-log = "syslog:HOST:PORT"')),
    "paste": _when(decide("PasteDeploy files are not read", "write a module with app = loadapp('config:FILE') and name that")),
    "limit_request_line": _LINE, "limit_request_fields": _NUMBER, "limit_request_field_size": meaning.HEAD,
    "strip_header_spaces": _when(_LOOSE), "permit_obsolete_folding": _when(_LOOSE), "casefold_http_method": _when(_LOOSE),
    "permit_unconventional_http_method": _when(_LOOSE), "permit_unconventional_http_version": _when(_LOOSE),
    "forwarder_headers": _when(decide("SCRIPT_NAME and PATH_INFO are not taken from fields of a proxy", "use root-path or mount")),
    "header_map": tell("fields with an underscore in their names are refused or dropped", "name them with hyphens"),
    "asgi_loop": key("loop"), "asgi_lifespan": key("lifespan"), "root_path": _text("root-path"), "http_protocols": nothing,
    "websocket_max_message_size": key("websocket-max-message"), "protocol": _protocol,
    "dirty_app": _DIRTY, "dirty_apps": _DIRTY,
    "dirty_workers": nothing, "dirty_timeout": nothing, "dirty_threads": nothing, "dirty_graceful_timeout": nothing, "uwsgi_allow_ips": nothing,
    "http2_cleartext": nothing, "http2_max_concurrent_streams": key("http2-streams", number), "http2_initial_window_size": nothing,
    "http2_max_frame_size": nothing, "http2_max_header_list_size": meaning.HEAD, "enable_backlog_metric": nothing, "control_socket_disable": nothing,
    "tmp_upload_dir": nothing,
}  # fmt: skip

#: Looked at together, in this order; the rest one by one.
_TOGETHER = frozenset(("wsgi_app", "bind", "worker_class", "threads", "preload_app", "proxy_protocol", "forwarded_allow_ips"))
KNOWN = frozenset(HANDLERS) | _TOGETHER


def translate(line: CommandLine, folder: Path, run: bool) -> Result:
    """The result for a command line; the files that it names are relative to ``folder``."""
    given, rest = parse(line.arguments, OPTIONS)
    config = next((setting.value for name, setting in reversed(given) if name == "config"), "gunicorn.conf.py")
    config = re.sub(r"^(file|python):", "", str(config))
    path = folder / config
    result = Result("the command line of gunicorn" + (f" and {config}" if path.is_file() else ""))
    settings: dict[str, Given] = {}
    if path.is_file():
        settings = from_file(result, path, run)
    elif any(name == "config" for name, _ in given):
        result.decide("command line", f"{config} is not there", "start migrate in the folder that gunicorn is started in")
    more, _ = parse(shlex.split(line.environment.get("GUNICORN_CMD_ARGS", "")), OPTIONS, "GUNICORN_CMD_ARGS")
    for name, setting in more + given:
        before = settings.get(name)
        if name in _REPEATED and before is not None and before.place == setting.place:
            before.value = [*meaning.texts(before.value), str(setting.value)]
            before.text += f", {setting.text}"
        else:
            settings[name] = setting
    if rest:
        settings["wsgi_app"] = Given(rest[0], "command line", rest[0])
    fill(result, settings, line.environment)
    return result


def translate_file(path: Path, run: bool) -> Result:
    """The result for gunicorn.conf.py alone."""
    result = Result(path.name)
    fill(result, from_file(result, path, run), {})
    return result


def from_file(result: Result, path: Path, run: bool) -> dict[str, Given]:
    """The settings of the file; what cannot be taken over of it is noted."""
    read = gunicorn_file.run(path, KNOWN) if run else gunicorn_file.read(path, KNOWN)
    for name, given in read.computed.items():
        if HANDLERS.get(name) is nothing and name != "backlog":
            continue
        result.decide(given.origin, "the value is computed, and the file was not run", "write the value, or run the file: migrate --run")
    for name, given in read.unused.items():
        result.tell(given.origin, f"{name} is no setting of gunicorn that is known, and nothing in the file uses it", "look it up in gunicorn's documentation if it matters")
    for name, variable in read.variable.items():
        given = read.settings[name]
        result.tell(
            given.origin, f"the default is taken; {variable} in the environment replaced it", "MAITRED_ variables of the same options do it here"
        )
    for name, given in read.hooks.items():
        what, instead = _HOOKS.get(name, ("gunicorn's hook is not called", "see docs/operations/python.md for the hooks there are"))
        result.decide(given.origin, what, instead)
    if any(name in _HAVE_COUNTERPART for name in read.hooks):
        result.offer("hooks", "hooks.py", "a module with before_start(), worker_ready(worker, pid) and worker_exit(worker, pid, code)")
    return read.settings


_IN_WORKER = (
    "it ran in each new worker",
    "worker_ready(worker, pid) of the module that hooks names runs beside the workers, when one serves; what has to be done inside of "
    "a worker belongs where the module of the application is imported, into the lifespan of ASGI, or os.register_at_fork if preload is set",
)
_IN_MASTER = (
    "it ran before workers were started",
    'before_start() is the same: it runs when the server listens and nothing of the application is loaded; write it in hooks.py and set hooks = "hooks.py"',
)
_AT_EXIT = (
    "it ran when a worker ended",
    'worker_exit(worker, pid, code) runs beside the workers when one has ended (code -9: by SIGKILL); write it in hooks.py and set hooks = "hooks.py"',
)
_REQUEST = ("it ran around each request", "write a middleware of the application; fields and access rules are filters")
_HOOKS = {
    "on_starting": _IN_MASTER, "when_ready": _IN_MASTER, "pre_fork": _IN_WORKER, "post_fork": _IN_WORKER,
    "post_worker_init": _IN_WORKER, "pre_request": _REQUEST, "post_request": _REQUEST,
    "child_exit": _AT_EXIT, "worker_int": _AT_EXIT, "worker_abort": _AT_EXIT,
    "worker_exit": (
        "it ran in a worker at its end",
        "worker_exit(worker, pid, code) of the module that hooks names runs beside the workers, after the end; what has to be done inside of "
        "a worker belongs into atexit, or the lifespan of ASGI",
    ),
    "nworkers_changed": ("it ran when the number of workers changed", "worker_ready(worker, pid) and worker_exit(worker, pid, code) of the module that hooks names count them"),
    "on_exit": ("it ran at the end of the arbiter, and no hook is called then", "do it in the unit of the service manager: ExecStopPost="),
    "on_reload": ("it ran at SIGHUP, and no hook is called then", "do it before the signal: ExecReload= may have several lines"),
    "pre_exec": ("it ran before a new program took over", "SIGUSR2 imports the module of hooks again: do it there"),
    "ssl_context": ("the context of TLS cannot be changed by code", "see the tls- options"),
}  # fmt: skip
_HAVE_COUNTERPART = frozenset((
    "on_starting", "when_ready", "pre_fork", "post_fork", "post_worker_init", "child_exit", "worker_int", "worker_abort", "worker_exit", "nworkers_changed",
))  # fmt: skip


def fill(result: Result, settings: dict[str, Given], environment: dict[str, str]) -> None:
    """Translates settings that are complete."""
    target = settings.get("wsgi_app")
    if target:
        meaning.target(result, target, "application")
    else:
        result.decide(result.source, "no application is named", "write application = \"MODULE:ATTRIBUTE\", or wsgi_app in the file", key="application")
    if "WEB_CONCURRENCY" in environment and "workers" not in settings:
        settings["workers"] = Given(environment["WEB_CONCURRENCY"], "WEB_CONCURRENCY")
    if "FORWARDED_ALLOW_IPS" in environment and "forwarded_allow_ips" not in settings:
        settings["forwarded_allow_ips"] = Given(environment["FORWARDED_ALLOW_IPS"], "FORWARDED_ALLOW_IPS")
    if "PORT" in environment and "bind" not in settings:
        settings["bind"] = Given(f"0.0.0.0:{environment['PORT']}", "PORT")
    first = {name: settings[name] for name in ("workers",) if name in settings}
    meaning.apply(result, first, HANDLERS)
    rest = {name: given for name, given in settings.items() if name not in _TOGETHER and name not in first}
    meaning.apply(result, rest, HANDLERS)
    if line := settings.get("preload_app"):
        if truth(line.value) and result.find("workers"):
            result.put("preload", True, line.origin)
    _kind(result, settings)
    _tell_numbers(result, settings)
    _listen(result, settings)
    _own = ("WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS", "PORT", "GUNICORN_CMD_ARGS")
    for name, value in environment.items():
        if name not in _own:
            result.environment.append((name, value, "command line"))


def _kind(result: Result, settings: dict[str, Given]) -> None:
    """The worker class, and how many requests it runs at a time."""
    given = settings.get("worker_class") or Given("sync", "gunicorn's default", "worker_class = 'sync'")
    threads = settings.get("threads")
    count = int(number(threads.value)) if threads and not isinstance(threads.value, Processors) else 1
    kind = str(given.value)
    name = kind.rpartition(".")[2].lower()
    if "uvicorn" in name or name == "asgi":
        result.put("interface", "asgi", given.origin)
        if "h11" in name:
            result.put("loop", "asyncio", given.origin)
    elif name in ("gevent", "eventlet", "geventwsgiworker", "geventwebsocketworker", "tornado", "geventpywsgiworker"):
        connections = settings.get("worker_connections")
        result.decide(
            given.origin,
            f"there are no {kind} workers: an application runs on threads, and nothing is patched",
            f"set max-threads to the requests that run at a time{f' (not {connections.value})' if connections else ''}, 50 for example; "
            f"code that uses {name.replace('worker', '')} itself has to be changed, or stays with gunicorn",
        )
        result.offer("max-threads", 50, "requests of one worker at a time, in the place of greenlets")
    elif name in ("sync", "syncworker", "gthread", "threadworker"):
        if threads and isinstance(threads.value, Processors):
            result.decide(threads.origin, "the number of threads is computed", "write a number for max-threads")
            return
        if count == 1 and name.startswith("sync"):
            result.put("max-threads", 1, given.origin)
            result.tell(
                given.origin,
                "a sync worker runs one request at a time, and so does max-threads = 1",
                "leave the line out for up to 10 threads if the application may be called by several",
            )
        else:
            result.put("max-threads", count, (threads or given).origin)
    else:
        result.decide(given.origin, f"the worker class {kind} is not known", "serve the application that it serves: WSGI or ASGI")


def _tell_numbers(result: Result, settings: dict[str, Given]) -> None:
    """How many workers and threads there were on this machine, how many there are here, and why."""
    given = settings.get("workers")
    if given is None or not isinstance(given.value, Processors):
        return
    before, here = given.value.count, _processors()
    why = "auto is one worker for each processor, because more processes than processors compute no faster"
    threads = result.find("max-threads")
    if threads is None or not isinstance(threads.value, int):
        result.tell(given.origin, f"gunicorn ran {before} workers on this machine, and auto runs {here}: {why}", f"write workers = {before} for as many")
        return
    count = threads.value
    result.tell(
        given.origin,
        f"gunicorn ran {before} workers x {count} threads = {before * count} requests at a time on this machine, and here it is "
        f"{here} x {count} = {here * count}: {why}; threads do the waiting",
        f"write workers = {before} for the numbers as they were"
        + (f", or max-threads = {math.ceil(before * count / here)} for as many requests at a time" if count > 1 else ""),
    )


def _processors() -> int:
    """Those that this process may run on, which `auto` counts."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _listen(result: Result, settings: dict[str, Given]) -> None:
    """Addresses, and who is believed there."""
    bind = settings.get("bind") or Given("127.0.0.1:8000", "gunicorn's default", "")
    parameters = ""
    backlog = settings.get("backlog")
    if backlog:
        parameters += f",backlog={backlog.value}"
    proxy = settings.get("proxy_protocol")
    if proxy and str(proxy.value).lower() not in ("false", "off", "none", ""):
        parameters += ",proxy-protocol=on"
        meaning.trust(result, settings.get("proxy_allow_ips") or Given("127.0.0.1,::1", "gunicorn's default", "proxy_allow_ips"))
    umask = settings.get("umask")
    mode = "666"
    if umask:
        mode = f"{0o666 & ~_mask(umask.value):o}"
    addresses = meaning.texts(bind.value)
    addresses = [part for address in addresses for part in address.split(",")] if isinstance(bind.value, str) else addresses
    for address in addresses:
        meaning.listen(result, address, bind.origin, parameters if "fd:" not in address else "", mode)
    has_unix = any(address.strip().startswith("unix:") for address in addresses)
    given = settings.get("forwarded_allow_ips") or Given("127.0.0.1,::1", "gunicorn's default", "forwarded_allow_ips")
    meaning.trust(result, given, ("unix",) if has_unix else ())
    if result.find("trusted-proxies"):
        result.put("forwarded-fields", ["x-forwarded-proto"], "gunicorn takes the scheme alone; leave this out for the client's address as well")


