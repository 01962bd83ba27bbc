"""What ``maitred.instrument`` counts against what PostgreSQL counts itself (pg_stat_statements), for whole applications."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import database_sites as sites
import pytest
from conftest import Serve, Server, environment_for, needs
from databases import Postgres, postgres

for library in ("psycopg", "psycopg_pool", "sqlalchemy", "asyncpg", "django"):
    needs(library)

#: What a server is asked, one request after the other.
REQUESTS = 3


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        server.psql(sites.SQLALCHEMY_TABLES)
        # PostgreSQL 15 and later let only the owner of the schema make tables.
        server.psql("grant all on schema public to application;")
        environment = environment_for({"DATABASE": server.address})
        done = subprocess.run([sys.executable, "-c", sites.DJANGO_TABLES], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        yield server


def counted(server: Server, folder: Path, paths: list[str]) -> int:
    """The statements of so many requests: the responses, statistics and the access log say the same."""
    said = 0
    connection = server.connect()
    for path in paths:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert (response.status, body) == (200, b"done"), server.stop() or server.said
        found = re.search(r'\bdb;dur=\d+\.\d{3};desc="(\d+) statements?"', response.headers["Server-Timing"])
        assert found, response.headers["Server-Timing"]
        said += int(found[1])
    connection.close()
    server.stop()
    logged = [line.split() for line in (folder / "access.log").read_text().splitlines()]
    assert sum(int(statements) for statements, _ in logged) == said
    assert all(float(seconds) > 0 for _, seconds in logged)
    return said


@pytest.mark.parametrize(
    ("source", "environment", "paths"),
    [
        pytest.param(sites.PSYCOPG, {}, ["/"], id="psycopg"),
        pytest.param(sites.PSYCOPG_ASGI, {"ASGI": "1"}, ["/"], id="psycopg-async"),
        pytest.param(sites.SQLALCHEMY, {}, ["/"], id="sqlalchemy"),
        pytest.param(sites.SQLALCHEMY_ASGI, {"DRIVER": "psycopg_async"}, ["/"], id="sqlalchemy-async"),
        pytest.param(sites.SQLALCHEMY_ASGI, {"DRIVER": "asyncpg"}, ["/"], id="sqlalchemy-asyncpg"),
        pytest.param(sites.DJANGO, {}, ["/"], id="django"),
        pytest.param(sites.DJANGO, {"POOL": "1"}, ["/"], id="django-pool"),
        pytest.param(sites.DJANGO, {"ASGI": "1"}, ["/", "/async"], id="django-asgi"),
    ],
)
def test_the_counts_are_those_of_the_database(
    database: Postgres, serve: Serve, tmp_path: Path, source: str, environment: dict[str, str], paths: list[str]
) -> None:
    server = serve("--server-timing", "--access-log", "access.log", "--access-log-format", "$db_statements $db", source=source,
                   checked=False, DATABASE=database.address, **environment)
    database.forget()
    said = counted(server, tmp_path, paths * REQUESTS)
    assert said == database.counted(), database.statements()
