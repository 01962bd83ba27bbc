"""Counting for the request of the current context.

Promises: each statement counts once, whatever layers it passes; a call outside of a request costs one look at a context variable.
Leaves out: fetching rows, and statements of transaction control and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar
from functools import wraps
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from maitred._engine import DatabaseCounts, count_databases

Call = TypeVar("Call", bound=Callable[..., Any])

#: The counts of the request, for the engine's eyes too.  None without a request, and within a statement that is counted already.
CURRENT: ContextVar[DatabaseCounts | None] = ContextVar("maitred_database", default=None)

count_databases(CURRENT)

#: What begins a statement that is not counted.
CONTROL = frozenset(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET"))
#: The longest of these words and a space before it.
_BEGINNING = 12
#: What most statements begin with, told at once.
_PLAIN = frozenset(word for each in ("SELECT", "INSERT", "UPDATE", "DELETE") for word in (each, each.lower()))


def is_control(query: object) -> bool:
    """Whether this is transaction control or a setting: text, bytes, or what psycopg composes of parts."""
    if type(query) is str and query[:6] in _PLAIN:
        return False
    while not isinstance(query, (str, bytes)):
        # psycopg.sql.Composed has parts, psycopg.sql.SQL a text; string.templatelib.Template has strings.
        inner = getattr(query, "_obj", None) or getattr(query, "strings", None)
        inner = inner[0] if isinstance(inner, (list, tuple)) else inner
        if inner is None or inner is query:
            return False
        query = inner
    beginning = query[:_BEGINNING]
    words = (beginning if isinstance(beginning, str) else beginning.decode("latin-1")).split(None, 1)
    return bool(words) and words[0].rstrip(";").upper() in CONTROL


class Sets:
    """The sets of parameters of one ``executemany``, counted as the driver takes them."""

    def __init__(self, sets: Iterable[Any]) -> None:
        self.sets = sets
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for one in self.sets:
            self.count += 1
            yield one


def number_of(sets: object) -> int:
    """How many statements these parameters of an ``executemany`` are; of what nobody can tell without taking it, one."""
    return len(sets) if isinstance(sets, Sized) else 1


def counted(call: Call) -> Call:
    """``execute(self, query, ...)``, counted as one statement."""
    if hasattr(call, "_maitred"):
        return call
    current, set_current, reset, clock = CURRENT.get, CURRENT.set, CURRENT.reset, perf_counter_ns

    @wraps(call)
    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        counts = current()
        if counts is None or is_control(query):
            return call(self, query, *arguments, **named)
        token = set_current(None)
        failed = True
        begin = clock()
        try:
            result = call(self, query, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(clock() - begin, 1, failed)
            reset(token)

    return marked(execute, call)


def counted_many(call: Call) -> Call:
    """``executemany(self, query, sets, ...)``, counted as so many statements as there are sets."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def executemany(self: Any, query: Any, sets: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return call(self, query, sets, *arguments, **named)
        taken = None if isinstance(sets, Sized) else Sets(sets)
        token = CURRENT.set(None)
        failed = True
        begin = perf_counter_ns()
        try:
            result = call(self, query, sets if taken is None else taken, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(perf_counter_ns() - begin, len(sets) if taken is None else taken.count, failed)
            CURRENT.reset(token)

    return marked(executemany, call)


def counted_async(call: Call) -> Call:
    """The same as :func:`counted` of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    async def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None or is_control(query):
            return await call(self, query, *arguments, **named)
        token = CURRENT.set(None)
        failed = True
        begin = perf_counter_ns()
        try:
            result = await call(self, query, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(perf_counter_ns() - begin, 1, failed)
            CURRENT.reset(token)

    return marked(execute, call)


def counted_many_async(call: Call) -> Call:
    """The same as :func:`counted_many` of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    async def executemany(self: Any, query: Any, sets: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return await call(self, query, sets, *arguments, **named)
        taken = None if isinstance(sets, Sized) else Sets(sets)
        token = CURRENT.set(None)
        failed = True
        begin = perf_counter_ns()
        try:
            result = await call(self, query, sets if taken is None else taken, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(perf_counter_ns() - begin, len(sets) if taken is None else taken.count, failed)
            CURRENT.reset(token)

    return marked(executemany, call)


def waited(call: Call, connections: Callable[[Any], int]) -> Call:
    """A pool's method that gives a connection; ``connections(pool)`` is how many the pool has then."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def get(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return call(self, *arguments, **named)
        # What the driver asks a new connection is no statement of the application.
        token = CURRENT.set(None)
        begin = perf_counter_ns()
        try:
            return call(self, *arguments, **named)
        finally:
            counts.wait(perf_counter_ns() - begin, connections(self))
            CURRENT.reset(token)

    return marked(get, call)


def waited_async(call: Call, connections: Callable[[Any], int]) -> Call:
    """The same of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    async def get(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return await call(self, *arguments, **named)
        token = CURRENT.set(None)
        begin = perf_counter_ns()
        try:
            return await call(self, *arguments, **named)
        finally:
            counts.wait(perf_counter_ns() - begin, connections(self))
            CURRENT.reset(token)

    return marked(get, call)


def marked(wrapper: Any, call: Call) -> Call:
    """The wrapper of this function, which is not wrapped a second time."""
    wrapper._maitred = True
    return cast("Call", wrapper)
