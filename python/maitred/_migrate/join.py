"""One maitred.toml for nginx and the server behind it: the site from nginx, the application and its processes from the other.

Promises: what the two said to each other (the address between them, who is believed there) is left out, and that is told.
Leaves out what either of them means; that is in the module of each.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from maitred._migrate import nginx
from maitred._migrate.result import Host, Line, Result

#: Between nginx and the server behind it. Nothing is there any more.
_BETWEEN = ("listen", "keep-alive", "trusted-proxies", "forwarded-fields", "tls-cert", "tls-key", "tls-client-ca", "tls-client-auth")
#: Of the application, wherever nginx has it.
_OF_APPLICATION = ("interface", "factory", "app-dir", "root-path")


def translate(path: Path, behind: Result, named: list[str]) -> Result:
    """The result for a file of nginx and the server ``behind`` it; ``named`` are applications, as for nginx alone."""
    listens = behind.find("listen")
    places = _addresses(listens)
    application = behind.find("application")
    target = str(application.value) if application else ""
    result = nginx.translate(path, [*(f"{place}={target}" for place in places if target), *named])
    result.source = f"{path.name} and {behind.source}"
    if application is not None:
        _place_application(result, behind, application, listens)
    _take_processes(result, behind)
    _drop_what_the_other_says(result)
    _tell_between(result, behind)
    dropped = {"listen", "trusted-proxies"}
    if any(table.find("application") or table.find("mount") for table in (result, *result.hosts.values())):
        dropped.add("application")
    result.open += [note for note in behind.open if note.key not in dropped and note not in result.open]
    result.told += [note for note in behind.told if note.key not in dropped and note not in result.told]
    result.environment += behind.environment
    result.filters += behind.filters
    return result


def _addresses(listens: Line | None) -> list[str]:
    """The ways in which nginx may name the addresses of the server behind it."""
    places: list[str] = []
    for text in listens.value if listens and isinstance(listens.value, (list, tuple)) else []:
        place = re.sub(r"^https?://", "", str(text).partition(",")[0])
        host, colon, port = place.rpartition(":")
        if place.startswith("unix:"):
            places.append(place)
        elif colon and host in ("", "0.0.0.0", "[::]", "127.0.0.1", "localhost", "[::1]"):
            places += [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")]
        elif colon:
            places.append(place)
    return list(dict.fromkeys(places))


def _place_application(result: Result, behind: Result, application: Line, listens: Line | None) -> None:
    """What belongs to the application goes where nginx has it."""
    target = str(application.value)
    more = [line for key in _OF_APPLICATION if (line := behind.find(key))]
    tables: list[Host] = [result, *result.hosts.values()]
    homes = [table for table in tables if (line := table.find("application")) and line.value == target]
    for table in homes:
        for line in more:
            table.put(line.key, line.value, line.origin)
    mounted = False
    for table in tables:
        mounts = table.find("mount")
        if mounts is None or not isinstance(mounts.value, (list, tuple)):
            continue
        ours = [str(pair) for pair in mounts.value if str(pair).endswith(f"={target}")]
        mounted |= bool(ours)
        mounts.value = [f"{pair}{_parameters(more)}" if pair in ours else str(pair) for pair in mounts.value]
    if not homes and not mounted:
        where = ", ".join(str(text) for text in listens.value) if listens and isinstance(listens.value, (list, tuple)) else "its address"
        result.decide(
            listens.origin if listens else application.origin, f"no proxy_pass of nginx leads to {where}",
            f"name the upstream that is meant: --application UPSTREAM={target}",
        )  # fmt: skip


def _parameters(lines: list[Line]) -> str:
    """Behind a mount; its prefix is the root path."""
    text = ""
    for line in lines:
        if line.key == "factory":
            text += f",factory={'on' if line.value else 'off'}"
        elif line.key != "root-path":
            text += f",{line.key}={line.value}"
    return text


def _take_processes(result: Result, behind: Result) -> None:
    """Workers, threads and the rest; what nginx says as well is for clients, and stays as it says."""
    for line in behind.lines:
        if line.key in ("application", *_BETWEEN, *_OF_APPLICATION):
            continue
        before = result.find(line.key)
        if line.offered or before is None:
            if line.key == "access-log-format" and _logs_elsewhere(result):
                continue
            result.lines.append(line)
        elif before.value != line.value and line.key != "access-log-format":
            result.tell(line.origin, f"{line.key} is what {before.origin} says", "write the other value if that is meant")


def _drop_what_the_other_says(result: Result) -> None:
    """Remarks about one of the two that the other one answers."""
    has_log, has_timeout = result.find("access-log") is not None, result.find("request-timeout") is not None
    result.told = [note for note in result.told if not (note.place == "access_log" and has_log)]
    for at, note in enumerate(result.told):
        if has_timeout and "set request-timeout =" in note.instead:
            instead = f"request-timeout is what nginx's proxy_read_timeout says{'; a worker in which nothing moves is replaced (worker-timeout)' if result.find('worker-timeout') else ''}"
            result.told[at] = dataclasses.replace(note, instead=instead)


def _logs_elsewhere(result: Result) -> bool:
    line = result.find("access-log")
    return line is not None and line.origin.startswith("nginx")


def _tell_between(result: Result, behind: Result) -> None:
    listens, trusted = behind.find("listen"), behind.find("trusted-proxies")
    if listens:
        result.tell(listens.origin, "nginx asked there; nothing is between it and the application any more, so nothing listens there", "nothing has to be done")
    if trusted:
        names = ", ".join(str(name) for name in trusted.value) if isinstance(trusted.value, (list, tuple)) else str(trusted.value)
        result.tell(
            trusted.origin, f"{names} was believed because nginx was there, and it is gone: trusted-proxies is not taken over, else every program on this "
            "machine could say who the client is", "set trusted-proxies only if another proxy stands in front",
        )  # fmt: skip
    for key in ("tls-cert", "keep-alive"):
        if line := behind.find(key):
            result.tell(line.origin, f"{key} was between nginx and the application, and is not taken over", "nothing has to be done")
