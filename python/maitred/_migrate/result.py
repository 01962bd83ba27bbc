"""What a translation has come to: the lines of maitred.toml, each with its origin, and what could not be taken over.

Leaves out what any other server means; that is in the module of each.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from maitred import _toml
from maitred._toml import Value

#: Everything that matters was taken over.
EXIT_WHOLE = 0
#: Something needs a decision.
EXIT_OPEN = 3


@dataclass
class Line:
    """A key with its value; ``offered`` stands as a comment only."""

    key: str
    value: Value
    origin: str
    offered: bool = False


@dataclass
class Note:
    """What was not taken over as it stands, and what to do instead."""

    place: str
    what: str
    instead: str
    #: The key that it is about, where a note is needless without that key.
    key: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.instead}"


@dataclass
class Table:
    """Lines by their keys: the file's own, those of a host or those of a filter."""

    lines: list[Line] = field(default_factory=list)

    def find(self, key: str) -> Line | None:
        return next((line for line in self.lines if line.key == key and not line.offered), None)

    def put(self, key: str, value: Value, origin: str) -> None:
        """Sets a key; what it had before is gone."""
        self.lines = [line for line in self.lines if line.key != key or line.offered]
        self.lines.append(Line(key, value, origin))

    def add(self, key: str, value: str, origin: str) -> None:
        """Appends to the list that a key has."""
        line = self.find(key)
        if line is None:
            self.lines.append(Line(key, [value], origin))
            return
        values = list(line.value) if isinstance(line.value, (list, tuple)) else [str(line.value)]
        if value not in values:
            line.value = [*values, value]
            if origin not in line.origin:
                line.origin += f", {origin}"

    def offer(self, key: str, value: Value, origin: str) -> None:
        """A line that the user may want; it stands as a comment."""
        self.lines.append(Line(key, value, origin, offered=True))


@dataclass
class Host(Table):
    name: str = ""
    filters: list[Table] = field(default_factory=list)


#: In a static folder: stands before the file that is sent where there is none.
FALLBACK = ",fallback="

#: In this order keys stand in the file; others behind them.
_ORDER = (
    "application", "interface", "factory", "app-dir", "chdir", "env-file", "root-path", "listen", "static", "mount",
    "listing", "error-page", "sendfile", "tls-cert", "tls-key", "trusted-proxies", "forwarded-fields", "workers", "preload",
    "min-threads", "max-threads", "names",
)  # fmt: skip


class Result(Host):
    """The whole translation. As a table it is what stands outside of all hosts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.hosts: dict[str, Host] = {}
        #: Variables of the application, for an env-file.
        self.environment: list[tuple[str, str, str]] = []
        self.open: list[Note] = []
        self.told: list[Note] = []
        #: Words that only a shell can complete, for a command line, with the note that they make needless there.
        self.shell: list[tuple[str, Note]] = []

    def host(self, name: str) -> Host:
        return self.hosts.setdefault(name, Host(name=name))

    def decide(self, place: str, what: str, instead: str, key: str = "") -> None:
        """Something that matters was not taken over."""
        note = Note(place, what, instead, key)
        if note not in self.open:
            self.open.append(note)

    def tell(self, place: str, what: str, instead: str, key: str = "") -> None:
        """Something that works a little differently, or needs nothing."""
        note = Note(place, what, instead, key)
        if note not in self.told:
            self.told.append(note)

    def tell_fallback(self, place: str, page: str) -> None:
        """A file that is sent where there is none, which not every path gets here."""
        self.tell(
            place, f"a path with a dot in its last part, such as /none.js, gets {page} only where a page is asked for (Accept: text/html)",
            "nothing has to be done: a program or picture that is not there is 404",
        )  # fmt: skip

    def tell_page_for_none(self, place: str, page: str) -> None:
        """A page for paths without a file, also where nginx had none."""
        self.tell(
            place, f"a path that is no file gets {page} there as around it, and 404 from nginx",
            "nothing has to be done, unless programs go by that status; else the folder by itself: static = [\"/URL=FOLDER/URL\"]",
        )  # fmt: skip

    def decide_but_shell(self, place: str, what: str, instead: str, words: str) -> None:
        """As :meth:`decide`, for a file: a command line has ``words``, which a shell completes."""
        self.decide(place, what, instead, key="listen")
        self.shell.append((words, self.open[-1]))

    def exit_code(self) -> int:
        return EXIT_OPEN if self.open else EXIT_WHOLE

    def toml(self) -> str:
        """The whole file."""
        parts = [text for text, _, _, _ in self.pieces()]
        notes = self.notes()
        if notes:
            parts.append("\n" + "".join(f"# {_toml.comment(line)}".rstrip() + "\n" for line in notes.splitlines()))
        return "".join(parts)

    def pieces(self) -> Iterator[tuple[str, Host, Table, Line | None]]:
        """The text in order, each with whose it is."""
        yield f"# maitred.toml, from {_toml.comment(self.source)} by 'maitred migrate'.\n", self, self, None
        yield "# Behind each line stands where it came from. Checked without the application, which 'maitred check' looks at, too.\n\n", self, self, None
        for host in (self, *self.hosts.values()):
            name = f"host.{_toml.key(host.name)}." if host is not self else ""
            if name:
                yield f"\n[{name.rstrip('.')}]\n", host, host, None
            for table in (host, *host.filters):
                if table is not host:
                    yield f"\n[[{name}filter]]\n", host, table, None
                for line in _ordered(table):
                    yield _line(line), host, table, line

    def line_at(self, number: int) -> tuple[Host, Table, Line] | None:
        """Whose the line of this number is."""
        at = 1
        for text, host, table, line in self.pieces():
            at += text.count("\n")
            if number < at:
                return (host, table, line) if line else None
        return None

    def notes(self) -> str:
        """What could not be taken over, and what is different, a line each."""
        text = ""
        if self.open:
            text += f"To be decided ({len(self.open)}):\n" + "".join(f"- {note}\n" for note in self.open)
        if self.told:
            text += ("\n" if text else "") + f"Good to know ({len(self.told)}):\n"
            text += "".join(f"- {note}\n" for note in self.told)
        return text

    def environment_file(self) -> str:
        """The variables, as env-file reads them."""
        return "".join(f"{name}={_quoted(value)}\n" for name, value, _ in self.environment)

    def command(self) -> str:
        """The command line, and in its place of what only a file can say, a note."""
        words = ["maitred"]
        for line in _ordered(self):
            if line.offered:
                continue
            values = line.value if isinstance(line.value, (list, tuple)) else [line.value]
            for value in values:
                if line.key == "application":
                    words.append(str(value))
                elif isinstance(value, bool):
                    words.append(f"--{'' if value else 'no-'}{line.key}")
                else:
                    words.extend([f"--{line.key}", str(value)])
        if self.filters or self.hosts:
            self.decide(self.source, "filters and hosts stand in files only", "leave out --command and keep the file")
        self.open = [note for note in self.open if all(note is not needless for _, needless in self.shell)]
        return " ".join([shlex.join(words), *(text for text, _ in self.shell)]) + "\n"


def _quoted(value: str) -> str:
    # Nothing is expanded in single quotes, so they hold everything but themselves and line ends.
    if "'" not in value and "\n" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'"{escaped}"'


def _ordered(table: Table) -> list[Line]:
    place = {key: number for number, key in enumerate(_ORDER)}
    return sorted(table.lines, key=lambda line: place.get(line.key, len(place)))


def _line(line: Line) -> str:
    written = f"{line.key} = {_toml.value(line.value)}"
    if line.offered:
        written = "# " + written.replace("\n", "\n# ")
    origin = _toml.comment(line.origin)
    head, newline, rest = written.partition("\n")
    return f"{head}  # {origin}{newline}{rest}\n" if origin else f"{written}\n"
