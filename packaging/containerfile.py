"""A Containerfile as a list of instructions: as much of the format as ours uses, and an error for anything else.

Source: the reference of the format (Dockerfile reference), sections Format, ARG, ENV, COPY, HEALTHCHECK.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = ("ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD")


class Unknown(Exception):
    """Something of the format that is not understood here."""


@dataclass
class Instruction:
    word: str
    text: str
    """What stands behind it, with variables put in."""


@dataclass
class Stage:
    base: str
    name: str
    steps: list[Instruction] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """At its end."""

    def last(self, word: str) -> str:
        """The text of the last instruction with this word; empty if there is none."""
        return next((step.text for step in reversed(self.steps) if step.word == word), "")

    def command(self) -> list[str]:
        return words(self.last("ENTRYPOINT")) + words(self.last("CMD"))

    def health(self) -> list[str]:
        return words(self.last("HEALTHCHECK").partition("CMD")[2].strip())


def words(text: str) -> list[str]:
    """The form with brackets. The other one would run a shell, which hands no signals on."""
    if not text:
        return []
    if not text.startswith("["):
        raise Unknown(f"'{text}' is not in the form with brackets")
    return [str(word) for word in json.loads(text)]


def parse(path: Path, arguments: dict[str, str]) -> list[Stage]:
    """The stages, with `arguments` in the place of the defaults of ARG."""
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    known: dict[str, str] = {}
    for line in _lines(path.read_text()):
        word, _, text = line.partition(" ")
        word, text = word.upper(), text.strip()
        if word not in KNOWN:
            raise Unknown(f"instruction {word}")
        if word == "ARG":
            name, _, value = text.partition("=")
            known[name] = arguments.get(name, value or defaults.get(name, ""))
            if not stages:
                defaults[name] = known[name]
        elif word == "FROM":
            parts = _replaced(text, defaults).split()
            stages.append(Stage(parts[0], parts[2] if len(parts) == 3 else ""))
            known = {}
        else:
            stage = stages[-1]
            # A shell replaces them itself.
            text = text if word == "RUN" else _replaced(text, known | stage.environment)
            if word == "ENV":
                stage.environment |= dict(pair.split("=", 1) for pair in shlex.split(text))
            stage.steps.append(Instruction(word, text))
    return stages


def _lines(text: str) -> list[str]:
    """Without comments, and with what `\\` joins as one line."""
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line.strip() for line in re.sub(r"\\\n\s*", "", kept).splitlines() if line.strip()]


def _replaced(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda found: known.get(found[1] or found[2], ""), text)
