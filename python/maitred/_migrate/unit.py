"""From the configuration of NGINX Unit (1.34): listeners, routes, Python applications, settings.

What its values mean is from https://unit.nginx.org/configuration/. Applications of other languages are named and left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maitred._migrate import meaning, nginx_cover
from maitred._migrate.result import FALLBACK, Host, Result, Table
from maitred._migrate.words import Given
from maitred._tools import Mistake

_APPLICATION_KEYS = frozenset((
    "type", "path", "module", "callable", "factory", "home", "working_directory", "environment", "processes", "threads", "user",
    "group", "prefix", "targets", "protocol", "limits", "stdout", "stderr", "isolation", "thread_stack_size",
))  # fmt: skip


@dataclass
class _Match:
    """The conditions of a step: the product of all of them."""

    hosts: list[str]
    paths: list[str]
    methods: list[str]
    #: Of a step that refuses some clients: who is let in.
    access: list[str] = field(default_factory=list)


class _Unfit(Exception):
    """A condition that filters do not know; ``rest`` is the match without it."""

    def __init__(self, what: str, rest: _Match) -> None:
        super().__init__(what)
        self.rest = rest


def translate(path: Path, text: str, tls_cert: str | None, tls_key: str | None) -> Result:
    """The result for a file, with the answer of ``GET /config`` in it."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise Mistake(f"{path.name}: this is no JSON: {error}", "save it with: curl --unix-socket CONTROL http://localhost/config") from None
    except RecursionError:
        raise Mistake(f"{path.name}: too many objects inside one another", "take it apart") from None
    if not isinstance(config, dict):
        raise Mistake(f"{path.name}: it is no object", "name the whole configuration")
    config = config.get("config", config)
    if not isinstance(config.get("listeners"), dict):
        raise Mistake(f"{path.name}: there are no listeners", "name the whole configuration")
    result = Result(path.name)
    _Unit(result, config, path.name, tls_cert, tls_key).translate()
    return result


class _Unit:
    def __init__(self, result: Result, config: dict[str, Any], file: str, tls_cert: str | None, tls_key: str | None) -> None:
        self._result = result
        self._config = config
        self._file = file
        self._tls = (tls_cert, tls_key)
        self._applications: dict[str, Any] = config.get("applications") or {}
        #: Those that something passes to.
        self._used: list[str] = []

    def translate(self) -> None:
        for address, listener in self._config["listeners"].items():
            self._listener(address, listener)
        passes = list(dict.fromkeys(str(listener.get("pass", "")) for listener in self._config["listeners"].values()))
        for target in passes[:1]:
            self._pass(target, self._result, "", self._place("listeners"))
        if len(passes) > 1:
            self._result.decide(
                self._place("listeners"), f"every address serves the same here: {passes[0]}, and not {', '.join(passes[1:])}", "start a maitred for each"
            )
        self._split_methods()
        self._settings()
        self._access_log()
        for name in dict.fromkeys(self._used):
            self._process(name)
        if len(set(self._used)) > 1:
            self._result.tell(
                self._place("applications"), "all applications share processes, threads and one user", "start a maitred each for those that must not"
            )

    def _place(self, *names: str) -> str:
        return f"{self._file}: " + ".".join(names)

    # Listeners.

    def _listener(self, address: str, listener: dict[str, Any]) -> None:
        place = self._place("listeners", f'"{address}"')
        own = address[1:] if address.startswith("*:") else address
        own = f"{own},mode=666" if own.startswith("unix:") else own
        certificate = (listener.get("tls") or {}).get("certificate")
        if certificate:
            if self._tls[0]:
                self._result.add("tls-cert", self._tls[0], f"{place}: {certificate}")
                if self._tls[1]:
                    self._result.add("tls-key", self._tls[1], f"{place}: {certificate}")
            else:
                self._result.decide(
                    place, f"the certificate {certificate} is in the store of Unit", "name its file: migrate ... --tls-cert FILE --tls-key FILE"
                )
                self._result.offer("listen", [f"https://{own}"], place)
                return
        if backlog := listener.get("backlog"):
            own += f",backlog={backlog}"
        # Where there is a certificate, an address that does not say what it speaks speaks TLS.
        others = any((one.get("tls") or {}).get("certificate") for one in self._config["listeners"].values())
        scheme = "https://" if certificate else "http://" if others and not own.startswith("unix:") else ""
        self._result.add("listen", scheme + own, place)
        self._forwarded(listener, place)

    def _forwarded(self, listener: dict[str, Any], place: str) -> None:
        forwarded = listener.get("forwarded") or {}
        client = listener.get("client_ip") or forwarded
        if not client:
            return
        sources = client.get("source") or []
        meaning.trust(self._result, Given(["*"] if sources == "*" else sources, f"{place}.source", "source"))
        header = str(client.get("header") or client.get("client_ip") or "X-Forwarded-For").lower()
        fields = [header] if listener.get("client_ip") or forwarded.get("client_ip") else []
        if forwarded.get("protocol"):
            fields.append(str(forwarded["protocol"]).lower())
        known = [name for name in fields if name in ("x-forwarded-for", "x-forwarded-proto", "forwarded")]
        for name in fields:
            if name not in known:
                self._result.decide(place, f"{name} is not a field that counts", "have the proxy send X-Forwarded-For and X-Forwarded-Proto")
        if known and self._result.find("trusted-proxies"):
            self._result.put("forwarded-fields", known, place)

    # Where requests go.

    def _pass(self, target: str, table: Host, url: str, place: str) -> None:
        kind, _, name = target.partition("/")
        if "$" in target or kind == "upstreams":
            self._result.decide(place, f"{target}: maitred is no proxy yet", "keep Unit for it, or serve the application here")
        elif kind == "routes":
            self._routes(name, table)
        elif kind == "applications":
            self._application(name, table, url, place)
        else:
            self._result.decide(place, f"{target} is not known", "correct it")

    def _routes(self, name: str, table: Host) -> None:
        routes = self._config.get("routes") or []
        steps = routes.get(name, []) if isinstance(routes, dict) else routes
        earlier: list[str] = []
        for number, step in enumerate(steps):
            place = self._place(f"routes.{name}[{number}]" if name else f"routes[{number}]")
            try:
                match = _match(step.get("match") or {})
            except _Unfit as unfit:
                match = unfit.rest
                if self._refuses(step.get("action") or {}):
                    self._result.decide(place, f"the condition {unfit} is not known, and nobody is let in", "write filters with host, path, method, header and client")
                else:
                    self._result.decide(place, f"the condition {unfit} is not known", "a filter has host, path, method, header and client")
                    continue
            if match.access and not self._refuses(step.get("action") or {}):
                self._result.decide(place, "only some clients were served", 'write a filter with access, and take the step over by hand')
                continue
            if match.hosts and earlier:
                self._result.decide(place, f"{earlier[-1]} came before it, for this host as well", "write those lines into the table of the host, too")
            if not match.hosts and match.paths and {"share", "pass"} & set(step.get("action") or {}):
                earlier.append(place)
            tables = [self._result.host(match.hosts[0])] if match.hosts else [table]
            if len(match.hosts) > 1:
                tables[0].put("names", match.hosts[1:], place)
            for one in tables:
                self._action(step.get("action") or {}, match, one, place)
            if match.hosts and not any(tables[0].find(key) for key in ("application", "static", "mount")):
                self._result.decide(place, f"the host {match.hosts[0]} serves nothing", "give it an application or a folder")
                self._result.hosts.pop(match.hosts[0])

    def _refuses(self, action: dict[str, Any]) -> bool:
        code = str(action.get("return", ""))
        return bool(re.fullmatch("[45]..", code))

    def _action(self, action: dict[str, Any], match: _Match, table: Host, place: str) -> None:
        if "return" in action:
            self._return(action, match, table, place)
        elif "share" in action:
            self._share(action, match, table, place)
        elif "proxy" in action:
            self._result.decide(place, "maitred is no proxy yet", f"keep {action['proxy']} behind Unit or nginx, or serve it here")
        elif "pass" in action:
            self._pass_step(str(action["pass"]), match, table, place)
        for name, value in (action.get("response_headers") or {}).items():
            for path in match.paths or [""]:
                made = self._filter(table, match, path, place)
                if value is None:
                    made.add("remove-response", name, place)
                else:
                    made.add("set-response", f"{name}: {value}", place)
        if "rewrite" in action:
            self._result.decide(place, "the rewrite has variables", "write a filter with rewrite, and * for what is kept")

    def _pass_step(self, target: str, match: _Match, table: Host, place: str) -> None:
        if match.methods:
            self._result.decide(place, "an application is chosen by host and path", "let the application look at the method")
            return
        urls = [path for path in match.paths]
        if not urls:
            self._pass(target, table, "", place)
        for path in urls:
            if re.fullmatch(r"/[^*]*(/\*|\*)?", path):
                self._pass(target, table, path.rstrip("*").rstrip("/"), place)
            else:
                self._result.decide(place, f"{path} is no prefix", "mount takes a prefix")

    def _return(self, action: dict[str, Any], match: _Match, table: Host, place: str) -> None:
        code, target = int(action["return"]), action.get("location")
        for path in match.paths or [""]:
            if target and code in (301, 302, 303, 307, 308) and "$" not in str(target):
                made = self._filter(table, match, path or "/*", place)
                made.put("redirect", str(target), place)
                made.put("status", code, place)
            elif target and code in (301, 302, 303, 307, 308) and re.fullmatch(r"https?://[^$]*\$\{?(request_uri|uri)\}?", str(target)):
                made = self._filter(table, match, path or "/*", place)
                made.put("redirect", re.sub(r"\$.*", path if path else "/*", str(target)), place)
                made.put("status", code, place)
            elif 400 <= code < 600:
                self._filter(table, match, _anywhere(path), place).put("access", match.access or ["deny all"], place)
                if code not in (403, 404):
                    self._result.decide(place, f"no filter answers with {code}", "the answer is 403; let the application answer if that matters")
            else:
                self._result.decide(place, f"no filter answers with {code}", 'refuse with 403: access = ["deny all"]')

    def _filter(self, table: Host, match: _Match, path: str, place: str) -> Table:
        made = Table()
        if path:
            made.put("path", path, place)
        if match.methods:
            # Taken apart at the end: a filter has one.
            made.put("method", match.methods, place)
        table.filters.append(made)
        return made

    def _split_methods(self) -> None:
        for host in (self._result, *self._result.hosts.values()):
            split: list[Table] = []
            for table in host.filters:
                method = table.find("method")
                methods = method.value if method and isinstance(method.value, (list, tuple)) else [None]
                for name in methods:
                    split.append(Table([replace(line, value=name) if line is method and name else line for line in table.lines]))
            host.filters = split

    def _share(self, action: dict[str, Any], match: _Match, table: Host, place: str) -> None:
        """Files: the whole path is put behind the folder."""
        if "types" in action:
            self._result.decide(place, "only files of some types were served, and here none of the folder is", "put those into a folder of their own, and name it in static")
            return
        shares = meaning.texts(action["share"])
        share = re.sub(r"/?\$\{?uri\}?$", "", shares[0])
        if "$" in share or share == shares[0] or len(shares) > 1:
            self._result.decide(place, "a static folder is one folder, to which the path is added", f'write static = ["/URL=FOLDER"] for {shares[0]}')
            return
        for path in match.paths or ["/*"]:
            prefix = path.removesuffix("*").rstrip("/")
            if "*" in prefix or not path.endswith("*"):
                self._result.decide(place, f"files of {path} are served by their folder", f"name it: static = [\"/URL={share}/URL\"]")
                continue
            other = action.get("fallback") or {}
            fallback = other.get("pass")
            if fallback and not prefix:
                self._pass(str(fallback), table, "", place)
                self._result.decide(
                    place, f"files in {share} came before the application, which files do here for whole folders only",
                    f"name the folders in it: static = [\"/assets={share}/assets\"]",
                )  # fmt: skip
                continue
            page = self._page(other.get("share"), f"{share}{prefix}", place)
            if other and not page and str(other.get("return", "")) != "404":
                self._result.decide(place, "a file that is not there is 404, without a fallback", "let the application serve that path")
            table.add("static", f"{prefix or '/'}={share}{prefix}{FALLBACK if page else ''}{page}", place)
        if "chroot" in action or "follow_symlinks" in action:
            self._result.decide(place, "chroot and follow_symlinks are not taken over", "links that lead out of the folder are not followed")
        index = action.get("index", "index.html")
        if index != "index.html":
            self._result.decide(place, "the file of a folder is index.html", f"rename {index}, or link it")

    def _page(self, share: object, folder: str, place: str) -> str:
        """The file of the folder that is sent where there is none; empty if it is none of its pages."""
        texts = meaning.texts(share or [])
        below = texts[0].removeprefix(f"{folder.rstrip('/')}/") if len(texts) == 1 else ""
        if not re.fullmatch(r"[\w/-][\w./-]*\.html?", below) or below == texts[0]:
            return ""
        self._result.tell_fallback(place, below)
        return below

    # Applications.

    def _application(self, name: str, table: Host, url: str, place: str) -> None:
        name, _, chosen = name.partition("/")
        given = self._applications.get(name)
        own = self._place("applications", name)
        if given is None:
            self._result.decide(place, f"there is no application {name}", "correct it")
            return
        if not re.fullmatch(r"python( ?[\d.]+)?", str(given.get("type", ""))):
            self._result.decide(own, f"{given.get('type')} is not served, only Python is", "keep Unit for it")
            return
        self._used.append(name)
        part = (given.get("targets") or {}).get(chosen, {}) if chosen else given
        target = f"{part.get('module', 'wsgi')}:{part.get('callable', 'application')}"
        prefix = part.get("prefix", "")
        paths = meaning.texts(given.get("path") or [])
        if len(paths) > 1:
            self._result.decide(own, "app-dir is one folder", f"start it with PYTHONPATH={':'.join(paths[1:])}")
        protocol = part.get("protocol") or given.get("protocol")
        if url or chosen and table.find("application"):
            words = [f"{prefix or url}={target}"]
            words += [f"interface={protocol}"] if protocol else []
            words += ["factory=on"] if part.get("factory") else []
            words += [f"app-dir={paths[0]}"] if paths else []
            table.add("mount", ",".join(words), own)
            if not prefix:
                self._result.decide(own, f"the application saw paths with {url}, which is SCRIPT_NAME or root_path now", "take the prefix out of its routes")
            return
        table.put("application", target, own)
        if paths:
            table.put("app-dir", paths[0], f"{own}.path")
        if protocol:
            table.put("interface", str(protocol), f"{own}.protocol")
        if part.get("factory"):
            table.put("factory", True, f"{own}.factory")
        if prefix:
            table.put("root-path", str(prefix), f"{own}.prefix")

    def _process(self, name: str) -> None:
        """What an application says of its processes."""
        given, own = self._applications[name], self._place("applications", name)
        processes = given.get("processes", 1)
        if isinstance(processes, dict):
            most = processes.get("max", 1)
            self._result.tell(f"{own}.processes", "the number of workers is fixed", "threads are made and ended as they are needed")
            processes = most
        if processes != 1:
            self._result.put("workers", int(processes), f"{own}.processes")
        self._result.put("max-threads", int(given.get("threads", 1)), f"{own}.threads" if "threads" in given else "Unit's default of threads")
        for key in ("user", "group"):
            if key in given:
                self._result.put(key, str(given[key]), f"{own}.{key}")
        if "user" not in given:
            self._result.tell(own, "Unit ran it as nobody if root had started it", "name the user: user = \"www-data\"")
        if folder := given.get("working_directory"):
            self._result.put("chdir", str(folder), f"{own}.working_directory")
        if home := given.get("home"):
            self._result.tell(f"{own}.home", "the environment is that of the maitred that is started", f"install it there and start {home}/bin/maitred")
        for key, value in (given.get("environment") or {}).items():
            self._result.environment.append((key, str(value), f"{own}.environment"))
        limits = given.get("limits") or {}
        if "timeout" in limits:
            self._result.put("request-timeout", limits["timeout"], f"{own}.limits.timeout")
        if limits.get("requests"):
            self._result.put("worker-requests", limits["requests"], f"{own}.limits.requests")
        if "isolation" in given:
            self._result.decide(f"{own}.isolation", "processes are not put into namespaces", "let systemd do it: docs/operations/deploy.md")
        for key in set(given) - _APPLICATION_KEYS:
            self._result.decide(f"{own}.{key}", f"{key} is not translated", "look for it in docs/operations/configuration.md")

    # Settings.

    def _settings(self) -> None:
        settings = (self._config.get("settings") or {}).get("http") or {}
        own = self._place("settings.http")
        keys = {"header_read_timeout": "head-timeout", "body_read_timeout": "body-timeout", "idle_timeout": "keep-alive", "max_body_size": "max-body"}
        for name, value in settings.items():
            if name in keys:
                self._result.put(keys[name], value, f"{own}.{name}")
            elif name == "send_timeout":
                if "body_read_timeout" not in settings:
                    self._result.put("body-timeout", value, f"{own}.{name}")
            elif name not in ("static", "discard_unsafe_fields", "log_route", "server_version", "websocket", "body_temp_path", "chunked_transform"):
                self._result.decide(f"{own}.{name}", f"{name} is not translated", "look for it in docs/operations/configuration.md")
        if "max_body_size" not in settings:
            self._result.put("max-body", "8m", "Unit's default of max_body_size")

    def _access_log(self) -> None:
        log = self._config.get("access_log")
        if log:
            path = log if isinstance(log, str) else log.get("path")
            self._result.put("access-log", str(path), self._place("access_log"))
            self._result.put("access-log-format", "combined", self._place("access_log"))
            if isinstance(log, dict) and "format" in log:
                self._result.decide(self._place("access_log.format"), "the fields have other names", "docs/operations/logs.md lists them")


def _match(match: dict[str, Any]) -> _Match:
    found = _Match([], [], [])
    unknown = ""
    for key, value in match.items():
        texts = meaning.texts(value)
        plain = not any(text.startswith(("!", "~")) for text in texts)
        if key == "host" and plain and not any("*" in text.lstrip("*") for text in texts):
            found.hosts = texts
        elif key == "uri" and plain:
            found.paths = [path for path in texts if path not in ("*", "/*")]
        elif key == "method" and plain:
            found.methods = [text.upper() for text in texts]
        elif key == "source" and len(match) <= 2 and not (access := _sources(texts)) == []:
            found.access = access
        else:
            unknown = unknown or f"{key} {', '.join(texts)[:60]}"
            if key == "uri" and all(text.startswith("~") for text in texts):
                covers = [nginx_cover.of_regex(text[1:], False) for text in texts]
                found.paths = [pattern for cover in covers for pattern in cover.patterns if pattern != "*"]
    if unknown:
        found.access = []
        raise _Unfit(unknown, found)
    return found


def _sources(texts: list[str]) -> list[str]:
    """The rules that refuse these clients; none if they cannot be written."""
    named = [text for text in texts if not text.startswith("!")]
    others = [text[1:] for text in texts if text.startswith("!")]
    if not all(re.fullmatch(r"[0-9a-fA-F.:]+(/\d+)?", text) for text in (*named, *others)) or named and others:
        return []
    return [f"deny {text}" for text in named] or [*(f"allow {text}" for text in others), "deny all"]


def _anywhere(path: str) -> str:
    """A pattern of Unit, in which each star stands for anything, as one that is for all of its paths."""
    return f"*{path}" if "*" in path[1:-1] and not path.startswith(("*", "~")) else path
