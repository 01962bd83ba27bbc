"""Counts what each request has of databases by SQLAlchemy 2, with its pools: every engine, sync and async, with any driver.

The wait for a connection includes opening one.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.pool import Pool

from maitred.instrument import _count


def _do_execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool | None:
    return _run(context.dialect.do_execute, (cursor, statement, parameters, context), statement, 1)


def _do_execute_no_params(cursor: Any, statement: str, context: Any) -> bool | None:
    return _run(context.dialect.do_execute_no_params, (cursor, statement, context), statement, 1)


def _do_executemany(cursor: Any, statement: str, parameters: Any, context: Any) -> bool | None:
    number = _count.number_of(parameters)
    return _run(context.dialect.do_executemany, (cursor, statement, parameters, context), statement, number)


def _run(execute: Any, arguments: tuple[Any, ...], statement: str, number: int) -> bool | None:
    """Runs the statement in the place of SQLAlchemy, which True tells it.  None: it has to do so itself."""
    counts = _count.CURRENT.get()
    if counts is None or _count.is_control(statement):
        return None
    token = _count.CURRENT.set(None)
    failed = True
    begin = perf_counter_ns()
    try:
        execute(*arguments)
        failed = False
    finally:
        counts.add(perf_counter_ns() - begin, number, failed)
        _count.CURRENT.reset(token)
    return True


def _connections(pool: Any) -> int:
    """How many a pool has, those in use included; 0 of one that keeps none."""
    size, overflow = getattr(pool, "size", None), getattr(pool, "overflow", None)
    return int(size() + overflow()) if size is not None and overflow is not None else 0


def _install() -> None:
    for name, listener in (
        ("do_execute", _do_execute),
        ("do_execute_no_params", _do_execute_no_params),
        ("do_executemany", _do_executemany),
    ):
        event.listen(DefaultDialect, name, listener)
    pool: Any = Pool
    pool.connect = _count.waited(pool.connect, _connections)


_install()
