"""Counts what each request has of databases by Django, every backend; and waits for psycopg's pools.

Best at the top of the settings: connections that are there already are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maitred.instrument import _count, _drivers

try:
    from django.db.backends.signals import connection_created
except ModuleNotFoundError as error:
    raise _count.missing("django", "django", error) from None


def _execute(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """An execute wrapper (https://docs.djangoproject.com/en/stable/topics/db/instrumentation/)."""
    counts = _count.CURRENT.get()
    if counts is None or (number := _count.number_of(sql)) is None:
        return execute(sql, params, many, context)
    if not many:
        with _count.Measured(counts, number):
            return execute(sql, params, many, context)
    sets = _count.countable(params)
    with _count.Measured(counts, 0) as measured:
        result = execute(sql, sets, many, context)
        measured.number = _count.times(number, sets)
    return result


def _watch(sender: object, connection: Any, **named: Any) -> None:
    driver = getattr(connection, "Database", None)
    if not _drivers.counts(getattr(driver, "__name__", "")) and _execute not in connection.execute_wrappers:
        connection.execute_wrappers.append(_execute)


_drivers.install()
connection_created.connect(_watch, dispatch_uid="maitred.instrument.django")
