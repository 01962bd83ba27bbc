"""Splits the command line of another server: variables in front, how Python is started, the server, its options.

Also finds that line in a systemd unit or a Procfile. Leaves out what any option means.
"""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Mapping

from maitred._tools import Mistake

#: The servers whose command lines are understood.
SERVERS = ("gunicorn", "uvicorn", "granian", "hypercorn", "daphne", "waitress-serve", "uwsgi")

#: What starts another program in an environment of its own, with the words in between.
_STARTERS = {("poetry", "run"), ("uv", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("rye", "run")}
#: Words of a shell between two commands.
_BETWEEN = frozenset(("&&", ";", "||", "|", "&"))
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\})")


@dataclass
class Given:
    """A setting of another server as it was given."""

    value: object
    #: Where: ``gunicorn.conf.py:3`` or ``command line``.
    place: str
    #: How it is written there: ``--bind 0.0.0.0:80``.
    text: str = ""

    @property
    def origin(self) -> str:
        return f"{self.place}: {self.text}" if self.text else self.place


@dataclass
class CommandLine:
    server: str
    arguments: list[str]
    #: Set in front of it.
    environment: dict[str, str] = field(default_factory=dict)
    #: Words in front of the server that are not taken over.
    wrappers: list[str] = field(default_factory=list)
    #: Variables that nothing gives a value.
    unknown: list[str] = field(default_factory=list)
    #: Commands before and behind it.
    beside: list[str] = field(default_factory=list)
    #: Those of a unit file: WorkingDirectory, User and the like.
    unit: dict[str, str] = field(default_factory=dict)


@dataclass
class Option:
    setting: str
    #: Whether a value follows, and if not, what the option means.
    takes: bool = True
    value: object = True


def split(text: str, environment: Mapping[str, str] | None = None) -> CommandLine:
    """Reads a command line, a line ``ExecStart=…`` or one of a Procfile."""
    text = text.strip().replace("\\\n", " ")
    text = re.sub(r"^ExecStart=[-@:+!]*", "", text)
    text = re.sub(r"^[A-Za-z0-9_-]+:\s+", "", text)
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
    except ValueError as error:
        raise Mistake(f"the command line cannot be read: {error}", "close the quotes") from None
    line = CommandLine("", [], dict(environment or {}))
    words, line.beside = _command_of(words)
    while words:
        word = words.pop(0)
        if word in ("exec", "env"):
            continue
        if _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            line.environment[name] = value
            continue
        name = PurePath(word).name
        if name in ("sh", "bash", "dash") and len(words) > 1 and words[0] == "-c":
            inner = split(words[1], line.environment)
            inner.wrappers = [*line.wrappers, *inner.wrappers]
            inner.beside = [*line.beside, *inner.beside]
            return inner
        if _PYTHON.fullmatch(name):
            while words and words[0].startswith("-") and words[0] != "-m":
                line.wrappers.append(f"{name} {words.pop(0)}")
            if words and words[0] == "-m":
                words.pop(0)
                if words and words[0] == "waitress":
                    words[0] = "waitress-serve"
            continue
        if words and (name, words[0]) in _STARTERS:
            words.pop(0)
            continue
        if name in SERVERS:
            line.server = name
            break
        line.wrappers.append(word)
    if not line.server:
        raise Mistake(
            f"'{text[:60]}' is neither a file nor a command line of {', '.join(SERVERS)}",
            "write the path of a configuration, or a command line in quotes",
        )
    line.arguments = [_expand(word, line) for word in words]
    return line


def _command_of(words: list[str]) -> tuple[list[str], list[str]]:
    """The command that starts a server, and those beside it."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _BETWEEN:
            parts.append([])
        else:
            parts[-1].append(word)
    parts = [part for part in parts if part]
    chosen = next((part for part in parts if any(PurePath(word).name in SERVERS for word in part)), None)
    if len(parts) < 2 or chosen is None:
        return [word for part in parts for word in part], []
    return chosen, [shlex.join(part) for part in parts if part is not chosen]


def _expand(word: str, line: CommandLine) -> str:
    def found(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        known = line.environment.get(name, match[3])
        if known is None:
            line.unknown.append(name)
            return match[0]
        return known

    return _VARIABLE.sub(found, word)


def unit_file(text: str) -> CommandLine:
    """The command of a systemd unit."""
    keys: dict[str, str] = {}
    environment: dict[str, str] = {}
    joined = re.sub(r"\\\n\s*", " ", text)
    for entry in joined.splitlines():
        name, equals, value = entry.strip().partition("=")
        if not equals or name.startswith(("#", ";")):
            continue
        if name.strip() == "Environment":
            environment |= dict(part.partition("=")[::2] for part in shlex.split(value))
        else:
            keys[name.strip()] = value.strip()
    if "ExecStart" not in keys:
        raise Mistake("the unit has no ExecStart=", "name the unit of the service that starts the server")
    line = split(f"ExecStart={keys['ExecStart']}", environment)
    line.unit = {name: value for name, value in keys.items() if name in ("User", "Group", "WorkingDirectory", "EnvironmentFile")}
    line.unit |= {f"Environment {name}": value for name, value in environment.items()}
    return line


def procfile(text: str) -> CommandLine:
    """The command of the process ``web`` of a Procfile, or of the first one that starts a server."""
    entries = [entry for entry in text.splitlines() if ":" in entry and not entry.startswith("#")]
    for entry in sorted(entries, key=lambda entry: not entry.startswith("web:")):
        try:
            return split(entry)
        except Mistake:
            continue
    raise Mistake("no line of the Procfile starts a server that is known", f"known are {', '.join(SERVERS)}")


def parse(
    arguments: list[str], options: Mapping[str, Option], place: str = "command line"
) -> tuple[list[tuple[str, Given]], list[str]]:
    """The settings in their order, and the words that belong to no option."""
    found: list[tuple[str, Given]] = []
    rest: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None and not word.startswith("--") and word[:2] in options:
            name, option, equals, value = word[:2], options[word[:2]], "=", word[2:]
        if option is None:
            near = difflib.get_close_matches(name, options, 1)
            hint = f"did you mean {near[0]}?" if near else "that server has no such option"
            raise Mistake(f"{place}: {name} is not known", hint)
        if not option.takes:
            found.append((option.setting, Given(option.value, place, name)))
            continue
        if not equals:
            if not words:
                raise Mistake(f"{place}: {name} has no value", "write it behind the option")
            value = words.pop(0)
        found.append((option.setting, Given(value, place, f"{name} {value}")))
    return found, rest


def flags(*pairs: str) -> dict[str, Option]:
    """Options from lines such as ``bind -b --bind`` and ``preload_app! --preload``, whose mark says that no value follows."""
    options: dict[str, Option] = {}
    for pair in pairs:
        setting, *names = pair.split()
        takes = not setting.endswith("!")
        for name in names:
            off = name.startswith("--no-") and not takes
            options[name] = Option(setting.rstrip("!"), takes, not off)
    return options
