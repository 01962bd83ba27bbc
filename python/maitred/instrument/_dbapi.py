"""Connections of any PEP 249 driver whose statements are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from maitred.instrument import _count

Wrapped = TypeVar("Wrapped")

_current, _set, _reset, _number_of = _count.CURRENT.get, _count.CURRENT.set, _count.CURRENT.reset, _count.number_of


def dbapi(connection: Wrapped) -> Wrapped:
    """A connection whose statements are counted; or, for a ``connect`` function, one that gives such connections.

    The result is not of the driver's class, but has all of its attributes.  Raises TypeError for anything else.
    """
    if isinstance(connection, _Proxy) or hasattr(connection, "_maitred"):
        return connection
    wrapper: Any
    if hasattr(connection, "cursor"):
        wrapper = _Connection(connection)
    elif callable(connection):
        wrapper = _connecting(connection)
    else:
        raise TypeError(f"neither a PEP 249 connection nor a function that connects: {type(connection).__name__}")
    return cast("Wrapped", wrapper)


def _connecting(connect: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(connect)
    def connected(*arguments: Any, **named: Any) -> Any:
        return dbapi(connect(*arguments, **named))

    return _count.marked(connected, connect)


class _Proxy:
    """Everything of the object behind it."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        object.__setattr__(self, "_inner", inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __enter__(self) -> Any:
        entered = self._inner.__enter__()
        return self if entered is self._inner else entered

    def __exit__(self, *exception: Any) -> Any:
        return self._inner.__exit__(*exception)


class _Executing(_Proxy):
    __slots__ = ()

    # As _count.counted does, without a call in between for each statement.
    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        inner = self._inner
        counts = _current()
        if counts is None or (number := _number_of(query)) is None:
            return self._of(inner.execute(query, *arguments, **named))
        token = _set(None)
        failed = True
        begin = perf_counter_ns()
        try:
            result = inner.execute(query, *arguments, **named)
            failed = False
        finally:
            counts.add(perf_counter_ns() - begin, number, failed)
            _reset(token)
        return self if result is inner else self._of(result)

    @_count.counted_many
    def executemany(self, query: Any, sets: Any, *arguments: Any, **named: Any) -> Any:
        return self._of(self._inner.executemany(query, sets, *arguments, **named))

    @_count.counted
    def executescript(self, script: Any, *arguments: Any) -> Any:
        return self._of(self._inner.executescript(script, *arguments))

    def _of(self, result: Any) -> Any:
        """Of sqlite3 and others a cursor, for which we stand."""
        return self if result is self._inner else result


class _Cursor(_Executing):
    #: Called for each row, so found without a detour.
    __slots__ = ("fetchall", "fetchmany", "fetchone")

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        for name in _Cursor.__slots__:
            object.__setattr__(self, name, getattr(inner, name))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)

    def __next__(self) -> Any:
        return next(self._inner)

    def callproc(self, name: Any, *arguments: Any) -> Any:
        counts = _count.CURRENT.get()
        if counts is None:
            return self._inner.callproc(name, *arguments)
        with _count.Measured(counts, 1):
            return self._inner.callproc(name, *arguments)

    @property
    def connection(self) -> Any:
        return _Connection(self._inner.connection)


class _Connection(_Executing):
    """A connection of sqlite3 executes too; others raise AttributeError."""

    __slots__ = ()

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        return _Cursor(self._inner.cursor(*arguments, **named))

    def _of(self, result: Any) -> Any:
        return _Cursor(result)
