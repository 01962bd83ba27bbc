"""Counts what each request has of PostgreSQL by psycopg 3, with its pools (psycopg_pool).

``execute`` and ``executemany`` of cursors and connections, sync and async, server-side and client-side.  A server-side cursor is one
statement, its DECLARE.  ``copy`` and ``stream`` are one statement each, without its time: rows come while the application takes them.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import psycopg

from maitred.instrument import _count, _psycopg_pool


def _begun(call: Any) -> Any:
    """A method that begins what goes on while the application takes or gives rows."""
    if hasattr(call, "_maitred"):
        return call

    @wraps(call)
    def begin(self: Any, *arguments: Any, **named: Any) -> Any:
        counts = _count.CURRENT.get()
        if counts is not None:
            counts.add(0, 1, False)
        return call(self, *arguments, **named)

    return _count.marked(begin, call)


def _install() -> None:
    driver: Any = psycopg
    for cursor in (driver.Cursor, driver.ServerCursor):
        cursor.execute = _count.counted(cursor.execute)
    for cursor in (driver.AsyncCursor, driver.AsyncServerCursor):
        cursor.execute = _count.counted_async(cursor.execute)
    driver.Cursor.executemany = _count.counted_many(driver.Cursor.executemany)
    driver.AsyncCursor.executemany = _count.counted_many_async(driver.AsyncCursor.executemany)
    for cursor in (driver.Cursor, driver.AsyncCursor):
        cursor.copy = _begun(cursor.copy)
        cursor.stream = _begun(cursor.stream)
    _psycopg_pool.install()


_install()
