"""Patterns that are for all paths of a regular expression, and for as few others as they can: what protects may refuse
too much, never too little.

Leaves out which location of nginx a path has (nginx_access).
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Any

try:
    from re import _parser as _sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as _sre

#: What stands in a text that is being put together: the start, the end, anything, anything but a slash.
_START, _END, _DEEP, _PART = "\x02", "\x03", "\x04", "\x05"
_ANCHORS = {"AT_BEGINNING": _START, "AT_BEGINNING_STRING": _START, "AT_END": _END, "AT_END_STRING": _END}
#: More patterns than these become wider ones.
_MOST = 120
#: Members of a class that are written one by one.
_FEW = 12
#: Folders below a prefix for which a pattern that may stand anywhere is written out; deeper ones are refused as a whole.
_DEPTH = 6
#: What no pattern has.
_FOREIGN = frozenset("?%\\*")
#: A pattern has it with an escape. (Of `$request_uri`, which is not decoded, `?` and `%` mean something else.)
_ESCAPED = {"#": "%23"}


@dataclass(frozen=True)
class Cover:
    patterns: tuple[str, ...]
    #: Whether they are for some more paths than the expression.
    wider: bool
    #: Paths that a negative look-ahead leaves out: ``/\\.(?!well-known)``.
    excepted: tuple[str, ...] = ()


#: All paths.
EVERYTHING = Cover(("*",), True)


def of_regex(text: str, any_case: bool) -> Cover:
    """The patterns for an expression of PCRE; all paths if it cannot be read."""
    walk = _Walk()
    try:
        parsed = _sre.parse(re.sub(r"\\/", "/", text))
        any_case = any_case or bool(parsed.state.flags & re.IGNORECASE)
        texts = walk.sequence(parsed)
    except (re.error, RecursionError, OverflowError, AttributeError, ValueError):
        return EVERYTHING
    found = [pattern for text in texts for pattern in [_pattern(text, walk)] if pattern]
    patterns = tuple(dict.fromkeys(found))
    if any(pattern == "*" for pattern in patterns) or len(patterns) > _MOST:
        return EVERYTHING
    mark = "~" if any_case else ""
    excepted = tuple(f"/.{name}/*" for name in walk.excepted) if all("/." in pattern for pattern in patterns) else ()
    return Cover(tuple(f"{mark}{pattern}" if re.search("[A-Za-z]", pattern) else pattern for pattern in patterns), walk.wider, excepted)


class _Walk:
    """Goes through an expression; each step gives the texts that it may stand for."""

    def __init__(self) -> None:
        self.wider = False
        self.excepted: list[str] = []

    def sequence(self, parts: Any) -> list[str]:
        texts = [""]
        for op, argument in parts:
            ways = self._one(str(op), argument)
            if len(texts) * len(ways) > _MOST:
                self.wider = True
                ways = [_DEEP]
            texts = list(dict.fromkeys(text + way for text in texts for way in ways))
        return texts

    def _one(self, op: str, argument: Any) -> list[str]:
        if op == "LITERAL":
            return [self._letter(chr(argument))]
        if op == "NOT_LITERAL":
            self.wider = True
            return [_PART if argument == ord("/") else _DEEP]
        if op == "IN":
            return self._class(argument)
        if op == "BRANCH":
            return [text for branch in argument[1] for text in self.sequence(branch)]
        if op == "SUBPATTERN":
            return self.sequence(argument[-1])
        if op == "ATOMIC_GROUP":
            return self.sequence(argument)
        if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeated(*argument)
        if op == "AT":
            return [_ANCHORS[str(argument)] if str(argument) in _ANCHORS else self._more("")]
        if op == "ASSERT_NOT":
            self.excepted += [word for text in self.sequence(argument[1]) if re.fullmatch(r"[\w-]+", word := text.strip("/" + _END + _DEEP))]
            return [self._more("")]
        if op == "ASSERT":
            return [self._more("")]
        return [self._more(_DEEP)]

    def _more(self, text: str) -> str:
        self.wider = True
        return text

    def _letter(self, letter: str) -> str:
        return self._more(_DEEP) if letter in _FOREIGN or not letter.isprintable() else _ESCAPED.get(letter, letter)

    def _class(self, members: Any) -> list[str]:
        letters: set[str] = set()
        few, negated, slash = True, False, False
        for op, argument in members:
            kind = str(op)
            if kind == "NEGATE":
                negated = True
            elif kind == "LITERAL":
                letters.add(chr(argument))
            elif kind == "RANGE":
                low, high = argument
                slash |= low <= ord("/") <= high
                few &= high - low < _FEW
                letters.update(chr(code) for code in range(low, min(high, low + _FEW) + 1))
            else:
                few = False
                slash |= "NOT" in str(argument)
                letters.update({"CATEGORY_DIGIT": string.digits}.get(str(argument), ""))
        slash |= "/" in letters
        if not negated and few and len(letters) <= _FEW:
            return list(dict.fromkeys(self._letter(letter) for letter in sorted(letters)))
        self.wider = True
        return [_PART if slash == negated else _DEEP]

    def _repeated(self, least: int, most: Any, inner: Any) -> list[str]:
        if list(inner) and str(inner[0][0]) == "ANY" and len(inner) == 1:
            self.wider |= int(most) == 1
            return [_DEEP]
        before = self.wider
        texts = self.sequence(inner)
        if least == 0 and most == 1:
            return ["", *texts]
        if least == most and len(texts) ** least <= _FEW:
            return self.sequence(list(inner) * least) if least else [""]
        if all(text == _PART for text in texts):
            # One segment, whatever its letters.
            self.wider = before or least != 1 or str(inner[0][0]) not in ("NOT_LITERAL",)
            return [_PART]
        self.wider = True
        star = _PART if all("/" not in text and _DEEP not in text for text in texts) else _DEEP
        return [text + star for text in texts] if least else [star]


def _pattern(text: str, walk: _Walk) -> str:
    """A text as a pattern of maitred; empty if no request has such a path."""
    begins, ends = text.startswith(_START), text.endswith(_END)
    text = text.strip(_START + _END)
    if _START in text or _END in text:
        walk.wider = True
        text = re.sub(f"[{_START}{_END}]", "", text)
    text = re.sub(f"[{_DEEP}{_PART}]*{_DEEP}[{_DEEP}{_PART}]*", _DEEP, re.sub(f"{_PART}+", _PART, text))
    text = ("" if begins else _DEEP) + text + ("" if ends else _DEEP)
    text = re.sub(f"[{_DEEP}{_PART}]*{_DEEP}[{_DEEP}{_PART}]*", _DEEP, text)
    if "//" in text:
        # nginx compares paths in which several slashes are one.
        walk.wider, text = True, re.sub("/{2,}", "/", text)
    if begins and not text.startswith(("/", _DEEP, _PART)):
        return ""
    inner = text[1:-1]
    if text.startswith("/") and _DEEP not in inner and not (text.endswith(_PART) and ends):
        made = re.sub(f"[{_DEEP}{_PART}]", "*", text)
    else:
        # A star inside is one segment behind a start, so that the pattern stands anywhere.
        walk.wider |= text.startswith("/") or _PART in text
        made = re.sub(r"\*{2,}", "*", "*" + re.sub(f"[{_DEEP}{_PART}]", "*", text))
    segments = made.split("/")[1:]
    if any(segment in (".", "..") for segment in segments) or any(segment == "" for segment in segments[:-1]):
        # With a rule for paths such requests get 400.
        return "" if "" not in segments[:-1] else "*"
    return made


def within(prefix: str, patterns: tuple[str, ...], closed: bool, since: int = 0) -> tuple[str, ...]:
    """Patterns for what ``patterns`` are for below a prefix: with ``closed`` for all of that, and for what lies deep.

    What fits before the place ``since`` of the prefix does not count.
    """
    found: list[str] = []
    for pattern in patterns:
        mark, text = ("~", pattern[1:]) if pattern.startswith("~") else ("", pattern)
        if text.startswith("*"):
            found += (mark + made for made in _anywhere(prefix, text[1:], closed, bool(mark), since))
            continue
        start = text.partition("*")[0]
        if _begins(start, prefix, bool(mark)):
            found.append(pattern)
        elif "*" in text and _begins(prefix, start, bool(mark)) and (closed or text == f"{start}*"):
            found.append(f"{prefix}*")
    whole = f"{prefix}*"
    if any(pattern.lstrip("~") == whole for pattern in found):
        return (whole,)
    return tuple(dict.fromkeys(found))


def _begins(text: str, start: str, any_case: bool) -> bool:
    return text.lower().startswith(start.lower()) if any_case else text.startswith(start)


def _anywhere(prefix: str, rest: str, closed: bool, any_case: bool, since: int = 0) -> list[str]:
    """Those below a prefix for ``*REST``, which may begin within the prefix, or anywhere behind it."""
    head, star, tail = rest.partition("*")
    if not head:
        return [f"{prefix}*"]
    found: list[str] = []
    for at in range(since, len(prefix)):
        shared = prefix[at:]
        if _begins(head, shared, any_case):
            longer = prefix + head[len(shared) :]
            found += _anywhere(longer, tail, closed, any_case) if star else [longer]
        elif star and _begins(shared, head, any_case):
            found += _anywhere(prefix, tail, closed, any_case)
    if tail and not closed:
        return found
    found += [f"{prefix}{'*/' * depth}*{head}{star}" for depth in range(_DEPTH)]
    if closed:
        found.append(f"{prefix}{'*/' * _DEPTH}*")
    return found
