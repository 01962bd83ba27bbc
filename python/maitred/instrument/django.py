"""Counts what each request has of databases by Django, every backend; and waits for psycopg's pools.  Requests are counted under the
routes of the project's ``urls.py``.

Best at the top of the settings: connections that are there already are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from maitred import _route
from maitred.instrument import _count, _drivers

try:
    from django.core.handlers.base import BaseHandler
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


def _named(resolve: _count.Call) -> _count.Call:
    """``BaseHandler.resolve_request(self, request)``, which tells the server what it has found."""
    if hasattr(resolve, "_maitred"):
        return resolve

    @wraps(resolve)
    def resolve_request(self: BaseHandler, request: Any) -> Any:
        match = resolve(self, request)
        # Of a request that a test has made there is neither.
        told = getattr(request, "environ", None) or getattr(request, "scope", None)
        if told is not None:
            prefix = request.path[: len(request.path) - len(request.path_info)]
            told.setdefault(_route.KEY, f"{prefix}/{match.route.removeprefix('^')}")
        return match

    return _count.marked(resolve_request, resolve)


BaseHandler.resolve_request = _named(BaseHandler.resolve_request)
_drivers.install()
connection_created.connect(_watch, dispatch_uid="maitred.instrument.django")
