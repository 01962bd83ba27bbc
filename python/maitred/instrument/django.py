"""Counts what each request has of databases by Django, every backend; and waits for psycopg's pools.

Best at the top of the settings: connections that are there already are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from django.db.backends.signals import connection_created

from maitred.instrument import _count, _psycopg_pool


def _execute(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """An execute wrapper (https://docs.djangoproject.com/en/stable/topics/db/instrumentation/)."""
    counts = _count.CURRENT.get()
    if counts is None or _count.is_control(sql):
        return execute(sql, params, many, context)
    taken = _count.Sets(params) if many and not hasattr(params, "__len__") else None
    token = _count.CURRENT.set(None)
    failed = True
    begin = perf_counter_ns()
    try:
        result = execute(sql, params if taken is None else taken, many, context)
        failed = False
        return result
    finally:
        time = perf_counter_ns() - begin
        number = taken.count if taken is not None else len(params) if many else 1
        counts.add(time, number, failed)
        _count.CURRENT.reset(token)


def _watch(sender: object, connection: Any, **named: Any) -> None:
    if _execute not in connection.execute_wrappers:
        connection.execute_wrappers.append(_execute)


connection_created.connect(_watch, dispatch_uid="maitred.instrument.django")
_psycopg_pool.install()
