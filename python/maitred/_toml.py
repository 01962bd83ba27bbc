"""Writes values as TOML 1.0. Leaves out reading, and all types that maitred.toml does not use."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Union

Value = Union[str, int, float, bool, Sequence[str]]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: A list longer than this has a line for each value.
_WIDTH = 100


def value(given: Value) -> str:
    """``given`` as it stands behind the equals sign."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, (int, float)):
        return str(given)
    if isinstance(given, str):
        return _text(given)
    parts = [_text(part) for part in given]
    line = f"[{', '.join(parts)}]"
    if len(line) <= _WIDTH:
        return line
    return "[\n" + "".join(f"    {part},\n" for part in parts) + "]"


def key(name: str) -> str:
    """A key, in quotes where it needs some."""
    return name if _BARE.fullmatch(name) else _text(name)


def _text(given: str) -> str:
    # The escapes of JSON are those of a basic string, which also takes no DEL as it is.
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """``text`` as it may stand behind ``#``: one line, without control characters."""
    return "".join(char if char.isprintable() else " " for char in text)
