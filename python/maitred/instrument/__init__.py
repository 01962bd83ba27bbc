"""Counts what each request has of databases: statements, their time, failures, waits for a connection.

Import the module of what the application uses, before it connects; outside of maitred it counts nothing::

    import maitred.instrument.django
    import maitred.instrument.sqlalchemy
    import maitred.instrument.psycopg

Connections of any other PEP 249 driver are wrapped::

    from maitred.instrument import dbapi
    connection = dbapi(sqlite3.connect("shop.sqlite3"))

The figures come in statistics, logs and ``Server-Timing`` (docs/guides/database-time.md).  A statement counts for the request in whose
context (:mod:`contextvars`) it runs, and for none elsewhere: in a thread that has no copy of it, and behind the end of the response.
A layer that calls another one counts once: Django or SQLAlchemy over psycopg is one statement.
"""

from maitred.instrument._dbapi import dbapi

__all__ = ["dbapi"]
