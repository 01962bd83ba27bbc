"""How many statements a text of SQL is.

Promises: the number by which ``calls`` of PostgreSQL's pg_stat_statements rises once the database has completed it, with ``track_utility``
off.  It reads and writes rows, or computes: SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES and whatever else is not listed here.
Leaves out: what functions and DO blocks do inside.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Transaction control and settings: neither they nor their time are counted.
CONTROL = frozenset(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET"))
#: Other commands that are no statement, but take time: definitions, locks, cursors, copies.
COMMANDS = frozenset(
    "ALTER ANALYZE ATTACH CHECKPOINT CLOSE CLUSTER COMMENT COPY CREATE DEALLOCATE DECLARE DETACH DISCARD DROP FETCH GRANT IMPORT LISTEN "
    "LOAD LOCK MOVE NOTIFY PRAGMA REASSIGN REFRESH REINDEX REVOKE SECURITY SHOW TRUNCATE UNLISTEN USE VACUUM".split()
)
#: So many texts of this length are not looked at again: 2 MiB at most.
REMEMBERED, MAX_REMEMBERED = 512, 4096
#: What most statements begin with, told at once.
_PLAIN = frozenset(word for each in ("SELECT", "INSERT", "UPDATE", "DELETE") for word in (each, each.lower()))
#: Literals, names and comments, in which a semicolon is none.
_WHOLE = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|(?P<end>;)""", re.DOTALL)
#: The first word, and whether a query in parentheses follows.
_BEGINNING = re.compile(r"(?:\s+|\(|--[^\n]*|/\*.*?\*/)*(?P<word>\w+)(?P<query>\s*\()?", re.DOTALL)


def number_of(query: object) -> int | None:
    """How many statements this is: text, bytes, or what psycopg composes of parts.  None: not even its time is counted."""
    if type(query) is str:
        if query[:6] in _PLAIN and ";" not in query:
            return 1
        if len(query) <= MAX_REMEMBERED:
            return _remembered(query)
    return _number_of(_text(query))


def _number_of(text: str) -> int | None:
    numbers = [_number(part) for part in (_parts(text) if ";" in text else (text,))]
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


_remembered = lru_cache(REMEMBERED)(_number_of)


def _text(query: object) -> str:
    """The text, or of several parts the first: it has the word that matters."""
    while not isinstance(query, (str, bytes)):
        # psycopg.sql.Composed has parts, psycopg.sql.SQL a text; string.templatelib.Template has strings.
        inner = getattr(query, "_obj", None) or getattr(query, "strings", None)
        inner = inner[0] if isinstance(inner, (list, tuple)) else inner
        if inner is None or inner is query:
            return "SELECT"
        query = inner
    return query if isinstance(query, str) else query.decode("latin-1")


def _parts(text: str) -> list[str]:
    parts, begin = [], 0
    for found in _WHOLE.finditer(text):
        if found["end"]:
            parts.append(text[begin : found.start()])
            begin = found.end()
    return [*parts, text[begin:]]


def _number(text: str) -> int | None:
    found = _BEGINNING.match(text)
    if found is None or (word := found["word"].upper()) in CONTROL:
        return None
    # COPY of a query runs this query.
    return int(word not in COMMANDS or (word == "COPY" and found["query"] is not None))
