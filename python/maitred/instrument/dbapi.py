"""Counts what each request has of databases by any PEP 249 driver: what :func:`wrap` has wrapped.

    connect = maitred.instrument.dbapi.wrap(sqlite3.connect)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from maitred.instrument import _count

__all__ = ["wrap"]

Wrapped = TypeVar("Wrapped")

_current, _set, _reset, _is_control = _count.CURRENT.get, _count.CURRENT.set, _count.CURRENT.reset, _count.is_control


def wrap(connection: Wrapped) -> Wrapped:
    """A connection whose statements are counted; or, for a ``connect`` function, one that gives such connections.

    The result is not of the driver's class, but has all of its attributes.
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
        return _Connection(connect(*arguments, **named))

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

    # Not by way of `counted`: a call more for each statement would be half of what counting costs.
    def execute(self, query: Any, *arguments: Any) -> Any:
        inner = self._inner
        counts = _current()
        if counts is None or _is_control(query):
            return self._of(inner.execute(query, *arguments))
        token = _set(None)
        failed = True
        begin = perf_counter_ns()
        try:
            result = inner.execute(query, *arguments)
            failed = False
        finally:
            counts.add(perf_counter_ns() - begin, 1, failed)
            _reset(token)
        return self._of(result)

    @_count.counted_many
    def executemany(self, query: Any, sets: Any, *arguments: Any) -> Any:
        return self._of(self._inner.executemany(query, sets, *arguments))

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

    @_count.counted
    def callproc(self, name: Any, *arguments: Any) -> Any:
        return self._inner.callproc(name, *arguments)

    @property
    def connection(self) -> Any:
        return _Connection(self._inner.connection)


class _Connection(_Executing):
    """``execute`` and ``executemany`` are sqlite3's, which has them here too."""

    __slots__ = ()

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        return _Cursor(self._inner.cursor(*arguments, **named))

    def _of(self, result: Any) -> Any:
        return _Cursor(result)
