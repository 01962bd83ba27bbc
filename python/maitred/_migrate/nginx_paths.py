"""From nginx's locations and regular expressions to the patterns of filters.

A pattern is said to be found only if it is for the same paths, or for a few more, which is told.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_PIECES = re.compile(
    r"""
      (?P<rest>\(\.[*+]\)|\.[*+]\??)
    | (?P<part>\((?:\[\^/\]|\\d|\\w|\[[\w\\-]+\])(?:\+|\*|\{[\d,]+\})\)|(?:\[\^/\]|\\d|\\w|\[[\w\\-]+\])(?:\+|\{[\d,]+\}))
    | \((?:\?:|(?!\?))(?P<either>[\w.\-?|\\]+)\)
    | (?P<perhaps>[\w/]\?)
    | \\(?P<escaped>[./\-_~?+])
    | (?P<literal>[\w/\-~@%,=:])
    """,
    re.VERBOSE,
)


@dataclass
class Found:
    """Patterns for the paths of one expression."""

    patterns: list[str]
    #: Whether each ``*`` is a group that ``$1`` and so on stand for.
    numbered: bool
    #: Whether they are for more paths than the expression.
    wider: bool


def from_regex(text: str) -> Found | None:
    """The patterns of a regular expression; none if there is no such pattern."""
    begins, ends = text.startswith("^"), text.endswith("$") and not text.endswith("\\$")
    body = text[begins : len(text) - ends]
    choices: list[list[str]] = []
    numbered, wider = True, False
    while body:
        match = _PIECES.match(body)
        if match is None:
            return None
        kind, piece = match.lastgroup, match[0]
        body = body[match.end() :]
        if kind == "rest":
            if body:
                return None
            numbered &= piece.startswith("(")
            choices.append(["*"])
        elif kind == "part":
            numbered &= piece.startswith("(")
            wider |= "[^/]" not in piece
            choices.append(["*"])
        elif kind == "either":
            numbered &= piece.startswith("(?:")
            words = [_words(word) for word in match["either"].split("|")]
            choices.append([word for some in words for word in some])
        elif kind == "perhaps":
            choices.append(["", piece[0]])
        elif kind == "escaped":
            choices.append([match["escaped"]])
        else:
            choices.append([piece])
    patterns = ["".join(parts) for parts in itertools.islice(itertools.product(*choices), 60)]
    patterns = [_closed(pattern, begins, ends) for pattern in patterns]
    patterns = list(dict.fromkeys(patterns))
    if not patterns or not all(pattern.startswith(("/", "*")) and pattern.count("*") <= 4 for pattern in patterns):
        return None
    if any("**" in pattern for pattern in patterns):
        return None
    return Found(_shortest(patterns), numbered, wider)


def _words(text: str) -> list[str]:
    """``jpe?g`` is two words."""
    text = text.replace("\\", "")
    before, mark, after = text.partition("?")
    return [before[:-1] + after, before + after] if mark and before else [text]


def _closed(pattern: str, begins: bool, ends: bool) -> str:
    if not begins:
        pattern = f"*{pattern}"
    if not ends and not pattern.endswith("*"):
        pattern = f"{pattern}*"
    return pattern


def _shortest(patterns: list[str]) -> list[str]:
    """Without those that another one covers: ``/a/*`` is for ``/a`` as well."""
    return [one for one in patterns if not (f"{one}/*" in patterns or (one.endswith("/") and one.rstrip("/") in patterns and len(one) > 1))]


def of_location(modifier: str, path: str) -> Found | None:
    """The patterns of a location; the whole site is one without patterns."""
    if modifier in ("~", "~*"):
        return from_regex(path)
    if "*" in path:
        return None
    if modifier == "=":
        return Found([path], False, False)
    if path == "/":
        return Found([], True, False)
    return Found([f"{path}*"], True, False)


def inside(found: Found, patterns: list[str], keeps: bool) -> Found | None:
    """What an expression is for in a location with these patterns; none if no pattern says that. Without patterns: the site.

    ``keeps``: the target has what the stars stand for.
    """
    if not patterns or set(found.patterns) <= set(patterns):
        return found
    if not keeps and all(re.fullmatch(r"[*/]+", pattern) for pattern in found.patterns):
        return Found(patterns, False, found.wider)
    starts = tuple(pattern[:-1] for pattern in patterns if re.fullmatch(r"[^*]+\*", pattern))
    return found if len(starts) == len(patterns) and all(pattern.startswith(starts) for pattern in found.patterns) else None


def replaced(text: str, found: Found, request_uri_from: str = "") -> str | None:
    """The target of a redirect or a rewrite, with ``*`` in the place of what is kept; none if it says more than that."""
    if text.endswith(("$request_uri", "$uri", "${request_uri}", "${uri}")):
        base = re.sub(r"\$\{?(request_uri|uri)\}?$", "", text)
        text = f"{base}{request_uri_from}"
        return None if "$" in text else text
    order = [int(number) for number in re.findall(r"\$(\d)", text)]
    if order:
        if not found.numbered or order != list(range(1, len(order) + 1)):
            return None
        text = re.sub(r"\$\d", "*", text)
    text = re.sub(r"\??\$(is_args\$)?args$", "", text)
    text = re.sub(r"^\$scheme://\$(host|http_host|server_name)(?=/)", "", text)
    text = text.rstrip("?") if text.endswith("?") else text
    return None if "$" in text or text.count("*") > max((pattern.count("*") for pattern in found.patterns), default=0) else text
