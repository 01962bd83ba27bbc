"""Counts what each request has of databases by SQLAlchemy 2, with its pools: every engine, sync and async, with any driver.

The wait for a connection includes opening one.
"""

from __future__ import annotations

from typing import Any

from maitred.instrument import _count, _drivers

try:
    from sqlalchemy import event
    from sqlalchemy.engine.default import DefaultDialect
    from sqlalchemy.pool import Pool, QueuePool
except ModuleNotFoundError as error:
    raise _count.missing("sqlalchemy", "'sqlalchemy>=2'", error) from None


def _do_execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool | None:
    return _run(context.dialect, "do_execute", (cursor, statement, parameters, context), None)


def _do_execute_no_params(cursor: Any, statement: str, context: Any) -> bool | None:
    return _run(context.dialect, "do_execute_no_params", (cursor, statement, context), None)


def _do_executemany(cursor: Any, statement: str, parameters: Any, context: Any) -> bool | None:
    return _run(context.dialect, "do_executemany", (cursor, statement, parameters, context), parameters)


def _run(dialect: Any, execute: str, arguments: tuple[Any, ...], sets: Any) -> bool | None:
    """Runs the statement in the place of SQLAlchemy, which True tells it.  None: it has to do so itself."""
    counts = _count.CURRENT.get()
    if counts is None or _drivers.counts(dialect.driver) or (number := _count.number_of(arguments[1])) is None:
        return None
    with _count.Measured(counts, number if sets is None else _count.times(number, sets)):
        getattr(dialect, execute)(*arguments)
    return True


def _connections(pool: Any) -> int:
    """How many a pool has, those in use included; 0 of one that keeps none."""
    return pool.size() + pool.overflow() if isinstance(pool, QueuePool) else 0


def _install() -> None:
    for name, listener in (
        ("do_execute", _do_execute),
        ("do_execute_no_params", _do_execute_no_params),
        ("do_executemany", _do_executemany),
    ):
        event.listen(DefaultDialect, name, listener)
    pool: Any = Pool
    pool.connect = _count.waited(pool.connect, _connections)


_drivers.install()
_install()
