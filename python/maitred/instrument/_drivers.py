"""Drivers below Django and SQLAlchemy that have an instrument of their own: it also sees what these ask for themselves."""

from __future__ import annotations

import importlib


def install() -> None:
    """Of those that are installed."""
    try:
        importlib.import_module("maitred.instrument.psycopg")
    except ImportError:
        return


def counts(driver: str) -> bool:
    """Whether statements of the driver with this name are counted there."""
    return driver in ("psycopg", "psycopg_async")
