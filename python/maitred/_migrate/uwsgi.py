"""From uWSGI (2.0): its INI files and command lines.

What its options mean is from https://uwsgi-docs.readthedocs.io/en/latest/Options.html. Leaves out XML, YAML and JSON.
"""

from __future__ import annotations

import re
from pathlib import Path

from maitred._migrate import meaning, nginx_cover
from maitred._migrate.meaning import Handler, decide, key, nothing, number, tell, truth
from maitred._migrate.result import Result, Table
from maitred._migrate.words import CommandLine, Given

#: Short options and other names.
_NAMES = {
    "s": "socket", "uwsgi-socket": "socket", "w": "module", "wsgi": "module", "p": "processes", "workers": "processes", "H": "home", "virtualenv": "home",
    "venv": "home", "pyhome": "home", "pp": "pythonpath", "python-path": "pythonpath", "M": "master", "t": "harakiri", "l": "listen", "R": "max-requests",
    "C": "chmod-socket", "b": "buffer-size", "d": "daemonize", "daemonize2": "daemonize", "logto2": "logto", "file": "wsgi-file", "static-map2": "static-map",
    "L": "disable-logging", "limit-post-body": "limit-post", "wsgi-disable-file-wrapper": "quiet", "http11-socket": "http-socket",
}  # fmt: skip
#: Without a value.
_FLAGS = frozenset((
    "master", "vacuum", "die-on-term", "enable-threads", "need-app", "lazy-apps", "lazy", "disable-logging", "single-interpreter", "thunder-lock", "memory-report",
    "http-keepalive", "http-auto-chunked", "manage-script-name", "no-orphans", "auto-procname", "ignore-sigpipe", "ignore-write-errors", "disable-write-exception",
    "strict", "log-master", "threaded-logger", "quiet", "py-call-osafterfork", "log-x-forwarded-for", "http-websockets",
))  # fmt: skip
#: Nobody misses these.
_NEEDLESS = (
    "master", "vacuum", "die-on-term", "enable-threads", "need-app", "lazy-apps", "lazy", "disable-logging", "single-interpreter", "thunder-lock", "memory-report",
    "http-keepalive", "http-auto-chunked", "no-orphans", "auto-procname", "ignore-sigpipe", "ignore-write-errors", "disable-write-exception", "strict", "log-master",
    "threaded-logger", "quiet", "py-call-osafterfork", "post-buffering", "post-buffering-bufsize", "threads-stacksize", "offload-threads", "http-websockets", "module", "callable",
    "wsgi-file", "mount", "manage-script-name", "socket", "http", "http-socket", "https", "chmod-socket", "chown-socket", "listen", "processes", "threads", "uid", "gid",
    "env", "project", "base", "log-5xx", "log-4xx", "log-slow", "log-date", "log-prefix", "log-maxsize", "reload-mercy", "worker-reload-mercy", "ini", "plugin-dir", "optimize",
    "max-worker-lifetime-delta", "http-to", "add-header", "hook-master-start", "http-workers", "cpu-affinity", "procname-prefix", "procname", "log-x-forwarded-for", "http-modifier1",
)  # fmt: skip
_CHEAPER = tell("the number of workers is fixed", "threads are made and ended as they are needed")
_BESIDE = decide("maitred starts nothing beside its workers", "run it as a service of its own")


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_NEEDLESS, nothing),
    "chdir": key("chdir"), "pythonpath": key("app-dir"), "harakiri": key("request-timeout", number), "max-requests": key("worker-requests", number),
    "max-worker-lifetime": key("worker-lifetime", number), "reload-on-rss": key("worker-memory", lambda value: f"{value}m"), "pidfile": key("pid-file"),
    "safe-pidfile": key("pid-file"), "limit-post": key("max-body", number), "buffer-size": meaning.HEAD,
    "home": tell("the environment is that of the maitred that is started", "install it there, and start its bin/maitred"),
    "logto": meaning.error_log, "daemonize": meaning.DAEMON, "py-autoreload": meaning.RELOAD, "python-autoreload": meaning.RELOAD, "touch-reload": tell("SIGHUP loads the code again", "kill -HUP in its place"),
    "touch-chain-reload": tell("SIGHUP loads the code again", "kill -HUP in its place"), "stats": tell("the figures have another form", 'metrics-path = "/metrics"'), "stats-http": nothing,
    "http-timeout": key("request-timeout", number), "socket-timeout": key("body-timeout", number), "so-keepalive": nothing, "reuse-port": nothing,
    "log-format": decide("the fields of the access log have other names", "write access-log-format with fields of docs/operations/logs.md"), "log-encoder": nothing,
    "req-logger": decide("loggers of uWSGI are not read", "access-log has a path, - or syslog"), "logger": decide("loggers of uWSGI are not read", "error-log has a path or syslog"),
    "cheaper": _CHEAPER, "cheaper-initial": nothing, "cheaper-step": nothing, "cheaper-algo": nothing, "cheaper-overload": nothing, "workers-max": nothing,
    "attach-daemon": _BESIDE, "attach-daemon2": _BESIDE, "smart-attach-daemon": _BESIDE, "mule": _BESIDE, "mules": _BESIDE, "spooler": _BESIDE, "cron": _BESIDE, "cron2": _BESIDE,
    "gevent": decide("there are no workers of gevent", "let threads wait (max-threads), or serve ASGI"), "gevent-monkey-patch": nothing, "asyncio": nothing,
    "emperor": decide("one maitred serves one configuration", "start one for each vassal"), "umask": tell("files have the umask of whoever starts it", "set UMask= in the unit"),
    "limit-as": tell("memory is limited by the service manager", "MemoryMax= of the unit, or worker-memory"), "static-gzip": nothing, "static-index": nothing,
    "check-static": decide("a file does not come before the application for every path", "name the folders: static = [\"/URL=FOLDER\"]"),
    "static-safe": tell("links in a static folder that lead out of it are not followed", "name the other folder in static, too"),
    "ssl-enable-tlsv1": nothing, "route-host": nothing,
}  # fmt: skip


def translate_file(path: Path, text: str) -> Result:
    """The result for an INI file."""
    result = Result(path.name)
    _fill(result, _of_ini(result, path, text), path.parent)
    return result


def translate(line: CommandLine, folder: Path, run: bool) -> Result:
    """The result for a command line, with the INI file that it names."""
    del run
    result = Result("the command line of uwsgi")
    given: list[tuple[str, Given]] = []
    words = list(line.arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            if word.endswith(".ini") or ".ini:" in word:
                words[:0] = ["--ini", word]
            elif re.fullmatch(r"\S+:\d+|\S+\.sock(et)?", word):
                given.append(("socket", Given(word, "command line", word)))
            elif word.endswith((".xml", ".yml", ".yaml", ".json")):
                result.decide("command line", f"{word} is not read", "write it as .ini")
            else:
                result.decide("command line", f"'{word}' is not understood", "write it as an option")
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--") and len(name) > 1:
            name, equals, value = name[:1], "=", name[1:] + equals + value
        name = _NAMES.get(name, name)
        if not equals and name not in _FLAGS and words and not words[0].startswith("-"):
            value = words.pop(0)
        if name == "ini":
            file = folder / value.partition(":")[0]
            if file.is_file():
                given += _of_ini(result, file, file.read_text(encoding="utf-8", errors="replace"))
            else:
                result.decide("command line", f"{value} is not there", "start migrate in the folder that uwsgi is started in")
            continue
        given.append((name, Given(value or "true", "command line", f"{word} {value}".strip() if not equals else word)))
    _fill(result, given, folder)
    for name, value in line.environment.items():
        result.environment.append((name, value, "command line"))
    return result


def _of_ini(result: Result, path: Path, text: str) -> list[tuple[str, Given]]:
    found: list[tuple[str, Given]] = []
    known: dict[str, str] = {"d": f"{path.absolute().parent}/", "n": path.stem, "s": path.name, "p": str(path.absolute()), "c": path.absolute().parent.name}
    section = ""
    for number_of, line in enumerate(text.splitlines(), 1):
        place = f"{path.name}:{number_of}"
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        if section != "uwsgi":
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        value = re.sub(r"%\(([\w.-]+)\)|%([dnspc])", lambda match: known.get(match[1] or match[2], match[0]), value) if equals else "true"
        if name.startswith(("if-", "for", "end")) or name in ("endif", "endfor", "exec", "print") or "@(" in value:
            result.decide(place, f"{name} is not read", "write what it means on this machine")
            continue
        known[name] = value
        name = _NAMES.get(name.replace("_", "-") if name not in _NAMES else name, name.replace("_", "-"))
        if "$(" in value and name in HANDLERS:
            result.decide(f"{place}: {line}", "the value comes from the environment", "write it, or set the MAITRED_ variable of the option")
            continue
        if name not in HANDLERS and f"%({name})" in text and not name.startswith(("route", "static-", "plugin")):
            continue  # a name for a value
        # Behind some stand secrets.
        shown = name if name == "env" or "auth" in value or "ldap" in value else line[:60]
        found.append((name, Given(value, place, shown)))
    return found


def _fill(result: Result, given: list[tuple[str, Given]], folder: Path) -> None:
    last: dict[str, Given] = {}
    every: dict[str, list[Given]] = {}
    for name, setting in given:
        last[name] = setting
        every.setdefault(name, []).append(setting)
    _application(result, last, every)
    _processes(result, last)
    _listen(result, last, every)
    for name, settings in every.items():
        if name.startswith(("route", "error-route", "response-route", "final-route")):
            for setting in settings:
                _route(result, name, setting)
        elif name.startswith("static-") and name not in HANDLERS:
            for setting in settings:
                _static(result, name, setting)
        elif name in HANDLERS:
            meaning.apply(result, {name: settings[-1]}, HANDLERS)
        elif name in ("plugin", "plugins"):
            others = [part for setting in settings for part in re.split(r"[,\s]+", str(setting.value)) if part and not re.match(r"python|http|router_(http|static)|logfile|corerouter", part)]
            if others:
                result.decide(settings[-1].origin, f"there are no plugins {', '.join(others)}", "look what they were for")
        else:
            result.decide(settings[-1].origin, f"{name} is not translated", "look for it in docs/operations/configuration.md")
    for setting in every.get("env", []):
        name, _, value = str(setting.value).partition("=")
        result.environment.append((name.strip(), value.strip(), f"{setting.place}: env"))
    del folder


def _application(result: Result, last: dict[str, Given], every: dict[str, list[Given]]) -> None:
    called = str(last["callable"].value) if "callable" in last else ""
    if "module" in last:
        given = last["module"]
        text = str(given.value)
        meaning.target(result, Given(text if ":" in text else f"{text}:{called or 'application'}", given.place, given.text))
    elif "wsgi-file" in last:
        given = last["wsgi-file"]
        result.put("application", f"{given.value}:{called or 'application'}", given.origin)
    for given in every.get("mount", []):
        url, _, target = str(given.value).partition("=")
        target = target if ":" in target else f"{target}:{called or 'application'}"
        if url.strip("/") or result.find("application"):
            result.add("mount", f"/{url.strip('/')}={target}", given.origin)
        else:
            result.put("application", target, given.origin)
    if not result.find("application") and not result.find("mount"):
        result.decide(result.source, "no application is named", 'write application = "MODULE:ATTRIBUTE"', key="application")
    result.put("interface", "wsgi", "uWSGI") if result.find("application") else None


def _processes(result: Result, last: dict[str, Given]) -> None:
    processes = last.get("processes")
    if processes:
        given, text = processes, str(processes.value)
        if text.isdigit() and int(text) > 1:
            result.put("workers", int(text), given.origin)
            if not any(truth(last[name].value) for name in ("lazy-apps", "lazy") if name in last):
                result.put("preload", True, "uWSGI's default: the application is loaded before workers are forked (lazy-apps)")
        elif not text.isdigit():
            result.put("workers", "auto", given.origin)
    threads = last.get("threads")
    if threads and str(threads.value).isdigit():
        result.put("max-threads", int(str(threads.value)), threads.origin)
    elif not threads:
        result.put("max-threads", 1, "uWSGI's default: a worker runs one request at a time")
    for name, option in (("uid", "user"), ("gid", "group")):
        if owner := last.get(name):
            result.put(option, str(owner.value), owner.origin)
    if not ("disable-logging" in last and truth(last["disable-logging"].value)):
        result.put("access-log", "stderr", "uWSGI's default (disable-logging)")


def _listen(result: Result, last: dict[str, Given], every: dict[str, list[Given]]) -> None:
    backlog = f",backlog={last['listen'].value}" if "listen" in last and str(last["listen"].value).isdigit() else ""
    rights = str(last["chmod-socket"].value) if "chmod-socket" in last else ""
    mode = rights if re.fullmatch(r"[0-7]{3,4}", rights) else "666" if rights == "true" else "660"
    for name in ("http", "http-socket", "socket", "https"):
        for given in every.get(name, []):
            address, *files = str(given.value).split(",")
            if address == "true":
                continue
            if "/" in address and not address.startswith("unix:"):
                address = f"unix:{address}"
            if name == "https":
                for option, file in zip(("tls-cert", "tls-key"), files):
                    result.add(option, file, given.origin)
            meaning.listen(result, ("https://" if name == "https" else "") + address, given.origin, backlog, mode)
            if name == "socket":
                result.tell(given.origin, "the socket spoke the protocol uwsgi, and here it speaks HTTP", "in nginx write proxy_pass http://... in the place of uwsgi_pass")
    if any(name in every for name in ("socket", "http-socket")):
        result.tell(result.source, "uWSGI believed what the proxy said of clients (uwsgi_params), and here nobody is believed", 'trusted-proxies = ["unix"] or its address', key="trusted-proxies")
    if owner := last.get("chown-socket"):
        result.tell(owner.origin, "the socket belongs to whoever starts it", "write owner=UID,group=GID behind unix:PATH in listen")


def _static(result: Result, name: str, given: Given) -> None:
    if name == "static-map":
        url, _, folder = str(given.value).partition("=")
        result.add("static", f"/{url.strip('/')}={folder.strip()}", given.origin)
    elif name.startswith("static-expires"):
        result.decide(given.origin, "the age of files is not said", 'write a filter: path = "/static/*", set-response = ["Cache-Control: max-age=..."]')
    elif name in ("static-skip-ext", "static-skip"):
        ending = str(given.value)
        table = Table()
        table.put("path", f"*{ending}", given.origin)
        table.put("access", ["deny all"], given.origin)
        result.filters.append(table)
        result.tell(given.origin, "such files were left to the application, and nobody gets them here", "take the filter out if the application answers there")
    else:
        result.decide(given.origin, f"{name} is not translated", "static serves folders: docs/operations/configuration.md")


def _route(result: Result, name: str, given: Given) -> None:
    """Routes that refuse are filters; others that protect let nobody in."""
    value = str(given.value)
    condition, _, action = value.rpartition(" ") if name not in ("route-run", "route-uri-run") else ("", "", value)
    match = re.match(r"(\S+)\s+(.*)", value)
    if name != "route-run" and match:
        condition, action = match[1], match[2]
    protects = re.match(r"(break|return|basicauth|ldapauth|radius|cas|goon|access|denied)", action)
    refuses = re.match(r"(?:break|return):[45]\d\d", action)
    if not protects:
        result.decide(given.origin, "routes of uWSGI are not taken over", "a filter has redirect, rewrite, access and fields: docs/operations/filters.md")
        return
    is_path = name in ("route", "route-uri") and bool(condition)
    cover = nginx_cover.of_regex(condition, False) if is_path else nginx_cover.EVERYTHING
    table = Table()
    if cover != nginx_cover.EVERYTHING:
        table.put("path", cover.patterns[0] if len(cover.patterns) == 1 else list(cover.patterns), given.origin)
    table.put("access", ["deny all"], given.origin)
    result.filters.append(table)
    if not refuses or cover == nginx_cover.EVERYTHING:
        result.decide(given.origin, "this route says who may come in, and nobody is let in until that is decided", "write access or basic-auth, and take the filter out")
