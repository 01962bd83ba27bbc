"""Finds the command that starts a server in the files that people publish: Dockerfile, compose, supervisord, shell scripts.

Promises: what is not understood of such a file is said with its line, and never guessed. Nothing is run. Leaves out what the
command means (words), units of systemd and Procfiles, which words reads.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from maitred._migrate import words
from maitred._migrate.result import Result
from maitred._tools import Mistake


#: Commands that only name a server.
_NAMING = frozenset(("echo", "printf", "pip", "pip3", "uv", "poetry", "apt", "apt-get", "apk", "which", "command", "kill", "pkill", "killall", "pgrep", "grep", "ps", "systemctl", "test", "["))


@dataclass
class Found:
    """A command, and what the file says beside it."""

    text: str
    place: str
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    user: str = ""
    #: What the file says and this does not read: place, what.
    unread: list[tuple[str, str]] = field(default_factory=list)


def kind(path: Path, text: str) -> str:
    """``dockerfile``, ``compose``, ``supervisord``, ``uwsgi``, ``shell``; empty for another file."""
    name = path.name.lower()
    if name.startswith(("dockerfile", "containerfile")) or name.endswith(".dockerfile"):
        return "dockerfile"
    if re.search(r"(?m)^services:\s*(#.*)?$", text) and path.suffix in (".yml", ".yaml"):
        return "compose"
    if re.search(r"(?m)^\[program:", text):
        return "supervisord"
    if re.search(r"(?m)^\[uwsgi\]", text):
        return "uwsgi"
    if path.suffix in (".sh", ".bash") or re.match(r"#!\s*/\S*\b(env\s+)?(ba|da|z)?sh\b", text):
        return "shell"
    if path.suffix in (".yml", ".yaml", ".xml", ".toml"):
        raise Mistake(f"{path.name} is none of the files that are read", "see docs/migrate.md, or write the command line in quotes")
    return ""


def read(path: Path, text: str, which: str) -> tuple[words.CommandLine, Found, list[str]]:
    """The command line of the first server that the file starts, and the places of further ones."""
    readers = {"dockerfile": _dockerfile, "compose": _compose, "supervisord": _supervisord, "shell": _shell}
    chosen: tuple[words.CommandLine, Found] | None = None
    others: list[str] = []
    unread: list[tuple[str, str]] = []
    for found in readers[which](path.name, text):
        unread += found.unread
        if not found.text:
            continue
        try:
            line = words.split(found.text, found.environment)
        except Mistake:
            continue
        if line.wrappers and line.wrappers[0].rpartition("/")[2] in _NAMING:
            continue
        if chosen is None:
            chosen = line, found
        else:
            others.append(found.place)
    if chosen is None:
        raise Mistake(f"{path.name} starts no server that is known ({', '.join(words.SERVERS)})", "write the command line in quotes")
    chosen[1].unread = unread
    return chosen[0], chosen[1], others


def note(result: Result, found: Found, others: list[str]) -> None:
    """What stood beside the command."""
    for place, what in dict.fromkeys(found.unread):
        result.decide(place, what, "look whether the server is started with it")
    for place in others:
        result.decide(place, "another server is started there", "migrate its command line by itself")
    if found.user:
        result.tell(found.place, f"it ran as {found.user}", "start maitred as that user, or as root with --user")


# Dockerfile.


def _dockerfile(name: str, text: str) -> Iterator[Found]:
    """The last ENTRYPOINT with the last CMD behind it; variables of ENV, the last WORKDIR and USER of the last stage."""
    entry, command, folder, user, place = "", "", "", "", name
    environment: dict[str, str] = {}
    arguments: dict[str, str] = {}
    unread: list[tuple[str, str]] = []
    is_shell = False
    for number, line in _joined(text, "#"):
        word, _, rest = line.strip().partition(" ")
        rest, where = rest.strip(), f"{name}:{number}"
        word = word.upper()
        if word == "FROM":
            entry = command = folder = user = ""
            environment, unread = {}, []
        elif word == "ENV":
            environment |= _assignments(rest, {**arguments, **environment})
        elif word == "ARG":
            variable, equals, value = rest.partition("=")
            if equals:
                arguments[variable] = value.strip("\"'")
        elif word == "WORKDIR":
            folder = rest if rest.startswith("/") else f"{folder.rstrip('/')}/{rest}"
        elif word == "USER":
            user = rest
        elif word in ("CMD", "ENTRYPOINT"):
            listed = _listed(rest)
            if listed is None and rest.startswith("["):
                unread.append((where, f"{word} is no list of JSON"))
                continue
            written = rest if listed is None else shlex.join(listed)
            if word == "ENTRYPOINT":
                entry, command, is_shell = written, "", listed is None
            else:
                command = written
            place = where
    if re.fullmatch(r"(\S*/)?(tini|dumb-init|docker-init)( --?\S*)*", entry) or re.search(r"\.sh$", entry) and command:
        # A program that starts what stands behind it.
        if entry.endswith(".sh"):
            unread.append((place, f"{entry} runs before the command"))
        entry = ""
    line = entry if is_shell and entry else f"{entry} {command}".strip()
    yield Found(line, place, environment, folder, "" if user in ("root", "0") else user, unread)


def _listed(text: str) -> list[str] | None:
    if not text.startswith("["):
        return None
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return [str(value) for value in values] if isinstance(values, list) else None


def _assignments(text: str, known: dict[str, str]) -> dict[str, str]:
    """``A=1 B="two"``, or the old form ``A 1``."""
    try:
        parts = shlex.split(text)
    except ValueError:
        return {}
    if parts and "=" not in parts[0]:
        return {parts[0]: " ".join(parts[1:])}
    found: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        found[key] = re.sub(r"\$\{?(\w+)\}?", lambda match: {**known, **found}.get(match[1], match[0]), value)
    return found


def _joined(text: str, comment: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first one; comments are left out."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(comment):
            continue
        first = first or number
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1] + " "
            continue
        if (held + line).strip():
            yield first, (held + line).strip()
        held, first = "", 0
    if held.strip():
        yield first, held.strip()


# Shell scripts.


def _shell(name: str, text: str) -> Iterator[Found]:
    """Each line that starts a server, with variables that plain assignments before it set."""
    environment: dict[str, str] = {}
    local: dict[str, str] = {}
    for number, line in _joined(text, "#"):
        if match := re.fullmatch(r"export\s+(\w+=.*)", line):
            environment |= _assignments(match[1], {**local, **environment})
        elif re.fullmatch(r"\w+=(\"[^\"]*\"|'[^']*'|\S*)", line):
            local |= _assignments(line, {**local, **environment})
        elif any(re.search(rf"(^|[\s/\"']){re.escape(server)}(\s|$)", line) for server in words.SERVERS):
            for variable, value in local.items():
                line = re.sub(rf"\$\{{{variable}\}}|\${variable}\b", lambda _, value=value: value, line)  # type: ignore[misc]
            yield Found(re.sub(r'\s*"?\$[@*]"?', "", line), f"{name}:{number}", dict(environment))


# supervisord.


def _supervisord(name: str, text: str) -> Iterator[Found]:
    section, found = "", Found("", name)
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if re.match(r"\s*[;#]", line) or not line.strip():
            continue
        if match := re.match(r"\[([^\]]+)\]", line):
            yield found
            section, found = match[1], Found("", where)
            continue
        if not section.startswith("program:"):
            continue
        if line[0].isspace() and last:
            # A value goes on in lines that are indented.
            key, value = last, line.strip()
        else:
            key, _, value = (part.strip() for part in line.partition("="))
        value = re.sub(r"\s;.*$", "", value)
        last = key
        if "%(" in value:
            found.unread.append((where, f"{key} has a value of supervisord's in it"))
        if key == "command":
            found.text, found.place = f"{found.text} {value}".strip(), where
        elif key == "directory":
            found.folder = value
        elif key == "user":
            found.user = value
        elif key == "environment":
            for match in re.finditer(r"(\w+)=(\"[^\"]*\"|'[^']*'|[^,]*)", value):
                found.environment[match[1]] = match[2].strip("\"'")
    yield found


# compose.


def _compose(name: str, text: str) -> Iterator[Found]:
    """The services' command, entrypoint, environment, working_dir and user: a small part of YAML, read line by line."""
    services: dict[str, dict[str, _Node]] = {}
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")]
    inside, service, depth = False, "", 0
    at = 0
    while at < len(lines):
        number, line = lines[at]
        indent = len(line) - len(line.lstrip())
        at += 1
        if indent == 0:
            inside = bool(re.match(r"services:\s*(#.*)?$", line))
            continue
        match = re.match(r"\s*([\w.-]+|\"[^\"]+\"|'[^']+')\s*:(?:\s+(.*))?$", line)
        if not inside or match is None:
            continue
        key, value = match[1].strip("\"'"), _plain(match[2] or "")
        if not depth or indent <= depth:
            depth, service = indent, key
            services[service] = {}
            continue
        block: list[tuple[int, str]] = []
        while at < len(lines) and (len(lines[at][1]) - len(lines[at][1].lstrip()) > indent or lines[at][1].lstrip().startswith("- ") and len(lines[at][1]) - len(lines[at][1].lstrip()) == indent):
            block.append(lines[at])
            at += 1
        services[service].setdefault(key, _Node(number, value, block))
    for keys in services.values():
        yield _service(name, keys)


@dataclass
class _Node:
    number: int
    value: str
    block: list[tuple[int, str]]


def _service(name: str, keys: dict[str, _Node]) -> Found:
    found = Found("", name)
    for key in ("extends", "<<", "env_file"):
        if key in keys:
            found.unread.append((f"{name}:{keys[key].number}", f"{key} is not read"))
    parts = []
    for key in ("entrypoint", "command"):
        if key in keys:
            parts.append(_command(name, keys[key], found))
            found.place = f"{name}:{keys[key].number}"
    found.text = " ".join(part for part in parts if part)
    if "environment" in keys:
        _environment(name, keys["environment"], found)
    for key in ("working_dir", "user"):
        if key in keys:
            setattr(found, "folder" if key == "working_dir" else "user", _unquoted(keys[key].value))
    return found


def _command(name: str, node: _Node, found: Found) -> str:
    value = node.value
    if value.startswith("["):
        listed = _flow(value + " ".join(line.strip() for _, line in node.block))
        if listed is None:
            found.unread.append((f"{name}:{node.number}", "this list is not read"))
            return ""
        return shlex.join(listed).replace("'$$", "'$")
    if value[:1] in (">", "|"):
        text = ("\n" if value[0] == "|" else " ").join(line.strip() for _, line in node.block)
    elif not value and node.block and all(line.strip().startswith("- ") for _, line in node.block):
        return shlex.join(_unquoted(_plain(line.strip()[2:])) for _, line in node.block)
    elif value[:1] in ("&", "*", "!", "{"):
        found.unread.append((f"{name}:{node.number}", "anchors, tags and maps are not read here"))
        return ""
    else:
        text = " ".join([_unquoted(value) if not node.block else value, *(line.strip() for _, line in node.block)])
        text = _unquoted(text)
    return text.replace("$$", "$")


def _environment(name: str, node: _Node, found: Found) -> None:
    if node.value:
        found.unread.append((f"{name}:{node.number}", "environment is no block, and is not read"))
    for number, line in node.block:
        text = line.strip()
        if text.startswith("- "):
            key, equals, value = _unquoted(_plain(text[2:])).partition("=")
        else:
            key, equals, value = (part.strip() for part in text.partition(":"))
            value = _unquoted(_plain(value))
        if not re.fullmatch(r"\w+", key) or value[:1] in ("&", "*", "!", "{", "[", ">", "|"):
            found.unread.append((f"{name}:{number}", "this variable is not read"))
        elif equals and not re.search(r"(?<!\$)\$\{?\w", value):
            found.environment[key] = value.replace("$$", "$")
        elif key in ("PORT", "WEB_CONCURRENCY", "GUNICORN_CMD_ARGS") or key.startswith(("UVICORN_", "GRANIAN_")):
            found.unread.append((f"{name}:{number}", f"{key} comes from the environment of compose"))


def _plain(text: str) -> str:
    """Without a comment behind it."""
    text = text.strip()
    if text[:1] in "\"'" and text:
        match = re.match(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*')\s*(#.*)?$", text)
        return match[1] if match else text
    return re.sub(r"\s+#.*$", "", text)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _flow(text: str) -> list[str] | None:
    """``["a", 'b', c]``."""
    if not re.fullmatch(r"\[.*\]", text.strip(), re.DOTALL):
        return None
    found: list[str] = []
    rest = text.strip()[1:-1].strip().removesuffix(",")
    while rest:
        match = re.match(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^,\[\]{}\"'#]+)\s*(?:,\s*|$)", rest)
        if match is None:
            return None
        found.append(_unquoted(match[1].strip()))
        rest = rest[match.end() :]
    return found
