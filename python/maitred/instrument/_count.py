"""Counting for the request of the current context.

Promises: each statement counts once, whatever layers it passes; a call outside of a request costs one look at a context variable.
Leaves out: what is a statement (``_statements.py``), and fetching rows that the database has sent already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar, Token
from functools import wraps
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from maitred._engine import DatabaseCounts, count_databases
from maitred.instrument._statements import number_of as number_of

Call = TypeVar("Call", bound=Callable[..., Any])

#: The counts of the request, for the engine's eyes too.  None without a request, and within a statement that is counted already.
CURRENT: ContextVar[DatabaseCounts | None] = ContextVar("maitred_database", default=None)

count_databases(CURRENT)


def missing(library: str, package: str, error: ModuleNotFoundError) -> ImportError:
    """What an instrument raises where its library is not installed."""
    if (error.name or "").partition(".")[0] != library:
        return error
    text = f"maitred.instrument.{library} counts statements of {library}, which is not installed: pip install {package}"
    return ImportError(text, name=library)


class Measured:
    """The time of its block, and so many statements.  What the block calls is counted by nobody else."""

    __slots__ = ("begin", "counts", "number", "token")

    begin: int
    token: Token[DatabaseCounts | None]

    def __init__(self, counts: DatabaseCounts, number: int) -> None:
        self.counts = counts
        self.number = number

    def __enter__(self) -> Measured:
        self.token = CURRENT.set(None)
        self.begin = perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.counts.add(perf_counter_ns() - self.begin, self.number, kind is not None)
        leave(self.token)


def leave(token: Token[DatabaseCounts | None]) -> None:
    """The context counts again as it did before."""
    try:
        CURRENT.reset(token)
    except ValueError:
        # A coroutine that nobody awaits any more is closed in another context.
        return


class Sets:
    """The sets of parameters of one ``executemany``: the driver takes them, and we count."""

    def __init__(self, sets: Iterable[Any]) -> None:
        self.sets = sets
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for one in self.sets:
            self.count += 1
            yield one


def countable(sets: Any) -> Any:
    """These sets, or ones that tell afterwards how many they were."""
    return sets if isinstance(sets, Sized) else Sets(sets)


def times(number: int, sets: Any) -> int:
    """So many statements for each of these sets."""
    return number * (sets.count if isinstance(sets, Sets) else len(sets))


def counted(call: Call) -> Call:
    """``execute(self, query, ...)``, counted."""
    if hasattr(call, "_maitred"):
        return call
    current, set_current, reset, clock = CURRENT.get, CURRENT.set, CURRENT.reset, perf_counter_ns

    # Measured written out: its object and its calls would be half of what counting costs.
    @wraps(call)
    def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        counts = current()
        if counts is None or (number := number_of(query)) is None:
            return call(self, query, *arguments, **named)
        token = set_current(None)
        failed = True
        begin = clock()
        try:
            result = call(self, query, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(clock() - begin, number, failed)
            reset(token)

    return marked(execute, call)


def counted_async(call: Call) -> Call:
    """The same of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call
    current, set_current, clock = CURRENT.get, CURRENT.set, perf_counter_ns

    @wraps(call)
    async def execute(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        counts = current()
        if counts is None or (number := number_of(query)) is None:
            return await call(self, query, *arguments, **named)
        token = set_current(None)
        failed = True
        begin = clock()
        try:
            result = await call(self, query, *arguments, **named)
            failed = False
            return result
        finally:
            counts.add(clock() - begin, number, failed)
            leave(token)

    return marked(execute, call)


def counted_many(call: Call) -> Call:
    """``executemany(self, query, sets, ...)``, counted as one statement for each set."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def executemany(self: Any, query: Any, sets: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None or (number := number_of(query)) is None:
            return call(self, query, sets, *arguments, **named)
        sets = countable(sets)
        with Measured(counts, 0) as measured:
            result = call(self, query, sets, *arguments, **named)
            measured.number = times(number, sets)
        return result

    return marked(executemany, call)


def counted_many_async(call: Call) -> Call:
    """The same of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    async def executemany(self: Any, query: Any, sets: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None or (number := number_of(query)) is None:
            return await call(self, query, sets, *arguments, **named)
        sets = countable(sets)
        with Measured(counts, 0) as measured:
            result = await call(self, query, sets, *arguments, **named)
            measured.number = times(number, sets)
        return result

    return marked(executemany, call)


def timed(call: Call) -> Call:
    """A method whose time counts, and which is no statement."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def fetch(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return call(self, *arguments, **named)
        with Measured(counts, 0):
            return call(self, *arguments, **named)

    return marked(fetch, call)


def timed_async(call: Call) -> Call:
    """The same of a coroutine function."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    async def fetch(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return await call(self, *arguments, **named)
        with Measured(counts, 0):
            return await call(self, *arguments, **named)

    return marked(fetch, call)


def waited(call: Call, connections: Callable[[Any], int]) -> Call:
    """A pool's method that gives a connection; ``connections(pool)`` is how many the pool has then."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def get(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = CURRENT.get()
        if counts is None:
            return call(self, *arguments, **named)
        begin = perf_counter_ns()
        try:
            return call(self, *arguments, **named)
        finally:
            counts.wait(perf_counter_ns() - begin, connections(self))

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
        begin = perf_counter_ns()
        try:
            return await call(self, *arguments, **named)
        finally:
            counts.wait(perf_counter_ns() - begin, connections(self))

    return marked(get, call)


def marked(wrapper: Any, call: Call) -> Call:
    """The wrapper of this function, which is not wrapped a second time."""
    wrapper._maitred = True
    return cast("Call", wrapper)
