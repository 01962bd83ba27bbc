"""Counts what each request has of PostgreSQL by psycopg 3, with its pools (psycopg_pool).

``execute`` and ``executemany`` of cursors and connections, sync and async.  ``stream`` and the copy of a query are one statement, without its
time: rows come while the application takes them.  A server-side cursor is no statement, as in pg_stat_statements; its time counts.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from maitred.instrument import _count, _psycopg_pool

try:
    import psycopg
except ModuleNotFoundError as error:
    raise _count.missing("psycopg", "'psycopg[binary]'", error) from None


def _begun(call: Any) -> Any:
    """A method that begins what goes on while the application takes or gives rows."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def begin(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        counts = _count.CURRENT.get()
        if counts is not None and (number := _count.number_of(query)):
            counts.add(0, number, False)
        return call(self, query, *arguments, **named)

    return _count.marked(begin, call)


def _install() -> None:
    driver: Any = psycopg
    driver.Cursor.execute = _count.counted(driver.Cursor.execute)
    driver.AsyncCursor.execute = _count.counted_async(driver.AsyncCursor.execute)
    driver.Cursor.executemany = _count.counted_many(driver.Cursor.executemany)
    driver.AsyncCursor.executemany = _count.counted_many_async(driver.AsyncCursor.executemany)
    for cursor in (driver.Cursor, driver.AsyncCursor):
        cursor.copy = _begun(cursor.copy)
        cursor.stream = _begun(cursor.stream)
    for cursor, timed in ((driver.ServerCursor, _count.timed), (driver.AsyncServerCursor, _count.timed_async)):
        for name in ("execute", "fetchone", "fetchmany", "fetchall"):
            setattr(cursor, name, timed(getattr(cursor, name)))
    _psycopg_pool.install()


_install()
