"""What counting costs a statement: the time of a call that is counted, less that of the same call which is not.

    .venv/bin/python bench/statement_cost.py

Prints nanoseconds of processor time for each way of counting, within a request and outside of one, the best of many rounds: other work on the machine only
adds.  Leaves out the database: the cursors do nothing.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any

from maitred._engine import DatabaseCounts
from maitred.instrument import _count, dbapi

ROUNDS, CALLS = 400, 1_000
PLAIN = "SELECT id, name FROM item WHERE id = %s ORDER BY name LIMIT 20"
#: These are looked at more closely.
OTHERS = {"with": "WITH one AS (SELECT 1) SELECT * FROM one", "semicolon": PLAIN + " -- ;"}


class Cursor:
    fetchone = fetchmany = fetchall = None

    def execute(self, query: str, parameters: Any = None) -> None:
        return None

    async def execute_async(self, query: str, parameters: Any = None) -> None:
        return None


class Counted(Cursor):
    execute = _count.counted(Cursor.execute)
    execute_async = _count.counted_async(Cursor.execute_async)


class Connection:
    def cursor(self) -> Cursor:
        return Cursor()


def step(coroutine: Any) -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        return


def best(call: Callable[[], None]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS, timer=time.thread_time)) / CALLS * 1e9


def main() -> None:
    bare, counted, wrapped = Cursor(), Counted(), dbapi(Connection()).cursor()
    sync, awaited = best(lambda: bare.execute(PLAIN)), best(lambda: step(bare.execute_async(PLAIN)))
    print(f"outside of a request  {best(lambda: counted.execute(PLAIN)) - sync:6.0f} ns")
    _count.CURRENT.set(DatabaseCounts())
    print(f"execute               {best(lambda: counted.execute(PLAIN)) - sync:6.0f} ns")
    for name, query in OTHERS.items():
        print(f"  {name:<20}{best(lambda query=query: counted.execute(query)) - sync:6.0f} ns")
    print(f"execute, async        {best(lambda: step(counted.execute_async(PLAIN))) - awaited:6.0f} ns")
    print(f"dbapi(connection)     {best(lambda: wrapped.execute(PLAIN)) - sync:6.0f} ns")


if __name__ == "__main__":
    main()
