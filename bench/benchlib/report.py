"""A result: Markdown with tables, an SVG chart beside it, and the same text on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from . import machine


class Report:
    """Collects lines; `write` puts them where the figures belong."""

    def __init__(self, name: str, title: str, smoke: bool, pinned: bool = True) -> None:
        self.name = name
        self.smoke = smoke
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.date = now.partition(" ")[0]
        self._lines = [f"# {title}", "", f"{now}; {machine.description(pinned)}.", ""]
        if smoke:
            self._lines += ["**Smoke run: it shows that the bench works; its figures mean nothing.**", ""]
        self._chart = ""
        self._data: object = None

    def text(self, *lines: str) -> None:
        """A paragraph, a heading, or nothing."""
        if lines:
            self._lines += [*lines, ""]

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        rule = ["---", *["---:"] * (len(heads) - 1)]
        self._lines += ["| " + " | ".join(row) + " |" for row in (heads, rule, *rows)] + [""]

    def chart(self, svg: str) -> None:
        self._chart = svg

    def data(self, run: object) -> None:
        """The run itself, for NAME.json."""
        self._data = run

    def write(self, folder: Path) -> None:
        """Write NAME.md and what else there is (NAME.svg, NAME.json) into `folder` and the text to standard output."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._data is not None:
            (folder / f"{self.name}.json").write_text(json.dumps(self._data, indent=1, ensure_ascii=False) + "\n")
        if self._chart:
            (folder / f"{self.name}.svg").write_text(self._chart)
            self._lines += [f"![chart]({self.name}.svg)", ""]
        text = "\n".join(self._lines).rstrip() + "\n"
        (folder / f"{self.name}.md").write_text(text)
        sys.stdout.write("\n" + text)
        sys.stdout.flush()


def say(line: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


