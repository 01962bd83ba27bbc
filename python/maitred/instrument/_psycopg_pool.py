"""Waits for connections of psycopg_pool, and how many it has."""

from __future__ import annotations

from typing import Any

from maitred.instrument import _count


def install() -> None:
    """From now on; nothing where psycopg_pool is not installed."""
    try:
        import psycopg_pool
    except ImportError:
        return
    pools: Any = psycopg_pool
    pools.ConnectionPool.getconn = _count.waited(pools.ConnectionPool.getconn, connections)
    pools.AsyncConnectionPool.getconn = _count.waited_async(pools.AsyncConnectionPool.getconn, connections)


def connections(pool: Any) -> int:
    """How many connections it has, those in use included."""
    return int(pool.get_stats().get("pool_size", 0))
