"""Has ``maitred check`` look at a result before it is printed: one that does not start is never printed.

Promises: the application is not imported. What this machine does not have (folders, certificates, users) is replaced for the check
and named. A line that the check refuses becomes a comment with a point to be decided; a filter that protects then refuses everybody.
"""

from __future__ import annotations

import copy
import grp
import os
import pwd
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maitred._migrate.result import FALLBACK, Host, Line, Result, Table
from maitred._tools import Mistake

#: A check that takes longer has met something that it waits for.
_SECONDS = 60
#: Lines that may be refused one after another.
_MOST = 50
#: About the process that is started, or files that only its machine has.
_OF_MACHINE = frozenset(("env-file", "user", "group", "hooks", "pid-file", "access-log", "error-log", "app-dir", "chdir", "factory", "interface", "loop", "spool", "preload"))
_TLS = frozenset(("hsts", "tls", "tls-cert", "tls-key", "tls-client-ca", "tls-client-auth", "tls-client-crl", "tls-ocsp", "tls-unknown-name", "tls-min-version", "tls-tickets"))


def settle(result: Result) -> None:
    """Makes the result one that starts.

    Raises :class:`Mistake` if the check refuses something that no line of it says.
    """
    _Missing(result).name()
    with tempfile.TemporaryDirectory(prefix="maitred-migrate-") as folder:
        for _ in range(_MOST):
            fault = _check(result, Path(folder))
            if fault is None:
                return
            what = fault[1]
            if not _give_up(result, *fault):
                break
        else:
            what = "too much of it is wrong"
    raise Mistake(f"the result does not start, so it is not printed: {what}", "correct the configuration of the other server, or write maitred.toml by hand")


def _check(result: Result, folder: Path) -> tuple[Line | None, str] | None:
    """The line of the result that is refused, and why."""
    (folder / "application.py").write_text("def app(environ, start_response):\n    raise NotImplementedError\n")
    (folder / "served").mkdir(exist_ok=True)
    file = folder / "maitred.toml"
    copies: dict[int, Any] = {}
    made = _for_check(copy.deepcopy(result, copies), folder)
    file.write_text(made.toml(), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")}
    command = [sys.executable, "-c", "import sys; from maitred.__main__ import main; sys.exit(main())", "check", "--config", str(file)]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Mistake(f"the result cannot be checked: {error}", "try it again") from None
    if done.returncode == 0:
        return None
    said = next((line for line in done.stderr.splitlines() if not line.startswith("maitred: warning:")), done.stderr)
    match = re.match(rf"maitred: {re.escape(str(file))}:(\d+): (.*)", said)
    found = made.line_at(int(match[1])) if match else None
    if match is None or found is None:
        return None, said.removeprefix("maitred: ").replace(str(file), "maitred.toml")
    tables = [table for host in _hosts(result) for table in (host, *host.filters)]
    return next((line for table in tables for line in table.lines if copies.get(id(line)) is found[2]), None), match[2].replace(f"{folder}/", "")


def _for_check(made: Result, folder: Path) -> Result:
    """With an application and folders that are there, and without what only another machine has."""
    served, application = str(folder / "served"), f"{folder}/application.py"
    whole_tls = all(_is_readable(str(path)) for host in _hosts(made) for key in ("tls-cert", "tls-key", "tls-client-ca") for path in _texts(host.find(key)))
    for host in _hosts(made):
        for line in host.lines:
            if line.key == "application" and not line.offered:
                line.value = application
            elif line.key in _OF_MACHINE or line.key in _TLS and not whole_tls:
                line.offered = True
            elif line.key in ("tls-cert", "tls-key", "tls-client-ca", "tls-client-crl", "tls-ocsp"):
                line.value = [os.path.abspath(str(path)) for path in _list(line.value)]
            elif line.key in ("static", "sendfile"):
                line.value = [f"{str(pair).partition('=')[0]}={served}" if "=" in str(pair) else str(pair) for pair in _list(line.value)]
            elif line.key == "mount":
                line.value = [f"{str(pair).partition('=')[0]}={application}" if "=" in str(pair) else str(pair) for pair in _list(line.value)]
            elif line.key == "error-page":
                line.value = [f"{str(pair).partition('=')[0]}={application}" if "=" in str(pair) else str(pair) for pair in _list(line.value)]
            elif line.key == "listen" and not whole_tls:
                line.value = [re.sub(r"^https?://|,redirect=[^,]*", "", str(place)) for place in _list(line.value)]
    made.lines.append(Line("interface", "wsgi", "")) if any(host.find("application") or host.find("mount") for host in _hosts(made)) else None
    if not any(host.find(key) for host in _hosts(made) for key in ("application", "mount", "static")):
        made.lines.append(Line("static", [f"/={served}"], ""))
    return made


def _give_up(result: Result, line: Line | None, what: str) -> bool:
    """Makes a comment of the line; false if there is none."""
    places = [(host, table) for host in _hosts(result) for table in (host, *host.filters) if any(other is line for other in table.lines)]
    if line is None or not places:
        return False
    host, table = places[0]
    place = line.origin or next((other.origin for other in table.lines if other.origin), "the result")
    if isinstance(table, Host):
        line.offered = True
        result.decide(place, f"the check refuses {line.key}: {what}", "correct the line, then take it in")
        return True
    access = table.find("access")
    if line.key == "access" and line.value != ["deny all"]:
        line.value = ["deny all"]
        result.decide(place, f"the check refuses access: {what}", "nobody is let in there until that is corrected")
        return True
    if access and line.key in ("path", "method", "header", "client", "client-certificate", "scheme"):
        protects = access is not None and access.value != ["allow all"]
        host.filters.remove(table)
        if protects:
            closed = Table()
            closed.put("access", ["deny all"], place)
            host.filters.append(closed)
        result.decide(place, f"the check refuses {line.key}: {what}", "nobody is let in until that is corrected" if protects else "that path stays refused")
        return True
    line.offered = True
    if not any(not other.offered and other.key not in ("path", "host", "method", "header", "client", "scheme", "response-status", "status", "realm") for other in table.lines):
        host.filters.remove(table)
    result.decide(place, f"the check refuses {line.key}: {what}", "it was left out; write it in another way")
    return True


class _Missing:
    """What is named and is not there. Where other things of the set-up are there, maitred would not start without it."""

    def __init__(self, result: Result) -> None:
        self._result = result
        chdir = result.find("chdir")
        self._base = Path(str(chdir.value)) if chdir else Path()

    def name(self) -> None:
        looked = [(host, line, part, self._is_there(line.key, part)) for host in _hosts(self._result) for line in host.lines if not line.offered for part in _parts(line)]
        is_here = any(there or self._is_beside(line.key, part) for _, line, part, there in looked if line.key in ("static", "sendfile", "tls-cert", "chdir"))
        for host, line, part, there in looked:
            if there:
                continue
            if line.key in ("static", "sendfile") and is_here:
                self._take_out(host, line, part)
            else:
                self._result.tell(line.origin, f"{self._absent(line.key, part)} is not here, so that was not checked", "start it where it is; maitred check looks at it there")

    def _is_there(self, key: str, part: str) -> bool:
        path = _path(key, part)
        if key in ("user", "group"):
            return _is_known(pwd.getpwnam if key == "user" else grp.getgrnam, path)
        if key in ("static", "sendfile"):
            file = _fallback(part)
            return (self._base / path).is_dir() and (not file or (self._base / file).is_file())
        if key in ("chdir", "app-dir"):
            return (self._base / path).is_dir() if key != "chdir" else Path(path).is_dir()
        return _is_readable(str(self._base / path))

    def _absent(self, key: str, part: str) -> str:
        """What is not there of it: of a folder with a file for what is none perhaps that file alone."""
        path, file = _path(key, part), _fallback(part) if key == "static" else ""
        return file if file and (self._base / path).is_dir() else path

    def _is_beside(self, key: str, part: str) -> bool:
        """Whether at least the folder is there that it would be in, and that is one of the set-up."""
        folder = (self._base / _path(key, part)).absolute().parent
        return len(folder.parts) > 3 and folder.is_dir()

    def _take_out(self, host: Host, line: Line, part: str) -> None:
        path = self._absent(line.key, part)
        kept = [str(pair) for pair in _list(line.value) if str(pair) != part]
        self._result.decide(line.origin, f"{path} is not there, and maitred needs it at the start", f"make it, then take the line {line.key} in")
        host.offer(line.key, [part], line.origin)
        if kept:
            line.value = kept
        else:
            host.lines.remove(line)


#: What names a file or a folder, or whom the system has to know.
_NAMES = frozenset(("static", "sendfile", "tls-cert", "tls-key", "tls-client-ca", "chdir", "app-dir", "env-file", "user", "group"))


def _parts(line: Line) -> list[str]:
    return [str(part) for part in _list(line.value)] if line.key in _NAMES else []


def _path(key: str, part: str) -> str:
    return part.partition("=")[2].partition(FALLBACK)[0] if key in ("static", "sendfile") else part


def _fallback(part: str) -> str:
    """The file that is sent where there is none."""
    folder, _, file = part.partition("=")[2].partition(FALLBACK)
    return f"{folder.rstrip('/')}/{file}" if file else ""


def _is_known(find: Callable[[str], object], name: str) -> bool:
    if name.isdigit():
        return True
    try:
        find(name)
        return True
    except KeyError:
        return False


def _is_readable(path: str) -> bool:
    return os.access(path, os.R_OK)


def _hosts(result: Result) -> Iterator[Host]:
    yield result
    yield from result.hosts.values()


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _texts(line: Line | None) -> list[str]:
    return [str(part) for part in _list(line.value)] if line else []
