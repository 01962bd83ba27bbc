"""Reads the language of nginx.conf: words, quotes, comments, blocks and includes.

Promises: whatever the bytes are, the result is a list of directives or one :class:`BadConfiguration`, which names the
file and the line. Quoting is that of nginx (ngx_conf_read_token): a quote counts at the start of a word only, and so
does ``#``. Leaves out what any directive means.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from maitred._tools import Mistake

#: Blocks and files inside one another. nginx has no limit; real ones have five.
_DEPTH = 32
#: Files that are read for one configuration.
_FILES = 500
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "t": "\t", "r": "\r", "n": "\n"}


class BadConfiguration(Mistake):
    """The text is not in the language of nginx."""

    def __init__(self, file: str, line: int, what: str, remedy: str = "'nginx -t' says the same; correct the file") -> None:
        super().__init__(f"{file}:{line}: {what}", remedy)
        self.file = file
        self.line = line


@dataclass
class Directive:
    name: str
    args: list[str]
    file: str
    line: int
    #: Of one with braces, what is between them.
    block: list[Directive] | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str:
        words = " ".join(" ".join([self.name, *self.args]).split())
        return words if len(words) <= 70 else words[:67] + "..."

    @property
    def origin(self) -> str:
        return f"{self.place}: {self.text}"

    @property
    def arg(self) -> str:
        """The first argument."""
        return self.args[0] if self.args else ""


@dataclass
class Parsed:
    directives: list[Directive]
    #: Includes that lead nowhere.
    missing: list[Directive] = field(default_factory=list)


@dataclass(frozen=True)
class _Word:
    text: str
    line: int
    #: ``;``, ``{`` or ``}``, and not a word that looks so.
    is_mark: bool = False


def parse_file(path: Path) -> Parsed:
    """The directives of a file, with those of the files that it includes in their places."""
    parsed = Parsed([])
    _Files(path, parsed).read_main()
    return parsed


def parse(text: str, file: str = "nginx.conf") -> list[Directive]:
    """The directives of a text; includes stay as they are."""
    return _Parser(text, file).block(0, None)


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._at = 0
        self._line = 1

    def block(self, depth: int, opened: _Word | None) -> list[Directive]:
        """Up to the end of the file, or the brace that closes ``opened``."""
        if depth > _DEPTH:
            raise BadConfiguration(self._file, self._line, f"more than {_DEPTH} blocks inside one another", "take it apart")
        directives: list[Directive] = []
        words: list[_Word] = []
        while word := self._word():
            if not word.is_mark:
                words.append(word)
                continue
            if word.text == "}":
                if words:
                    raise BadConfiguration(self._file, words[0].line, f"'{words[0].text[:40]}' is not ended by ';' before '}}'")
                if opened is None:
                    raise BadConfiguration(self._file, word.line, "'}' closes nothing")
                return directives
            if not words:
                raise BadConfiguration(self._file, word.line, f"'{word.text}' has no directive before it")
            head, *rest = words
            directive = Directive(head.text, [part.text for part in rest], self._file, head.line)
            if word.text == "{":
                directive.block = self._lua(word) if head.text.endswith("_by_lua_block") else self.block(depth + 1, word)
            directives.append(directive)
            words = []
        if words:
            raise BadConfiguration(self._file, words[0].line, f"the file ends within '{words[0].text[:40]}', which has no ';'")
        if opened is not None:
            raise BadConfiguration(self._file, opened.line, "the file ends before the '}' of the block that begins here")
        return directives

    def _lua(self, opened: _Word) -> list[Directive]:
        """Another language, up to the brace that closes it."""
        depth = 1
        while self._at < len(self._text):
            char = self._next()
            depth += (char == "{") - (char == "}")
            if not depth:
                return []
        raise BadConfiguration(self._file, opened.line, "the file ends before the '}' of the block that begins here")

    def _next(self) -> str:
        char = self._text[self._at]
        self._at += 1
        self._line += char == "\n"
        return char

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _word(self) -> _Word | None:
        while (char := self._peek()) and (char in " \t\r\n\ufeff" or char == "#"):
            self._next()
            if char == "#":
                while self._peek() not in ("\n", ""):
                    self._next()
        if not char:
            return None
        line = self._line
        if char in ";{}":
            return _Word(self._next(), line, is_mark=True)
        if char in "\"'":
            return _Word(self._quoted(), line)
        text: list[str] = []
        while (char := self._peek()) and char not in " \t\r\n;":
            if char == "{" and (not text or text[-1] != "$"):
                break
            self._next()
            if char == "\\" and self._peek():
                text.append(self._escape())
            else:
                text.append(char)
        return _Word("".join(text), line)

    def _quoted(self) -> str:
        line = self._line
        quote = self._next()
        text: list[str] = []
        while char := self._peek():
            self._next()
            if char == quote:
                if self._peek() not in ("", " ", "\t", "\r", "\n", ";", "{", ")"):
                    raise BadConfiguration(self._file, self._line, f"'{self._peek()}' stands directly behind a closing quote")
                return "".join(text)
            text.append(self._escape() if char == "\\" and self._peek() else char)
        raise BadConfiguration(self._file, line, "the file ends within quotes that begin here")

    def _escape(self) -> str:
        """What a backslash and the character behind it stand for; both, unless nginx knows them."""
        char = self._next()
        return _ESCAPES.get(char, "\\" + char)


class _Files:
    def __init__(self, main: Path, parsed: Parsed) -> None:
        self._main = main
        self._parsed = parsed
        self._count = 0

    def read_main(self) -> None:
        self._parsed.directives = self._read(self._main, [])

    def _read(self, path: Path, open_files: list[Path]) -> list[Directive]:
        self._count += 1
        if len(open_files) > _DEPTH or path in open_files or self._count > _FILES:
            raise BadConfiguration(str(path), 1, "the file includes itself, or too many files include one another", "take an include out")
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise BadConfiguration(str(path), 1, f"the file cannot be read: {error.strerror}", "allow it, or name another one") from None
        name = path.name if path == self._main else str(path)
        return list(self._included(parse(text, name), [*open_files, path]))

    def _included(self, directives: list[Directive], open_files: list[Path]) -> Iterator[Directive]:
        for directive in directives:
            if directive.name != "include" or directive.block is not None or not directive.args:
                if directive.block:
                    directive.block = list(self._included(directive.block, open_files))
                yield directive
                continue
            found = self._find(directive.arg)
            if not found and not any(char in directive.arg for char in "*?["):
                self._parsed.missing.append(directive)
            for path in found:
                yield from self._read(path, open_files)

    def _find(self, name: str) -> list[Path]:
        """Relative names are relative to the folder of the main file; a part of a configuration may lie in one below it."""
        folder = self._main.absolute().parent
        for base in (folder, folder.parent):
            try:
                found = sorted(glob.glob(str(base / name)))
            except ValueError:
                return []
            files = [Path(path) for path in found if Path(path).is_file()]
            if files:
                return files
        return []
