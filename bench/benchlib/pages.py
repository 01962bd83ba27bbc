"""The pages of `bench/run pages`: what each asks for, and who serves it, as users run it: no core of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import peers, python_servers, traffic, work
from .servers import Contender

#: Threads of the handlers, equal for all servers; and of ours beside its default.
THREADS = (1, 2, 4, 10)
#: Threads of the peers on the pages of frameworks.
PEER_THREADS = (4, 10)
OURS = python_servers.OURS
_HELLO = b"Hello, world!"
_ITEMS = [{"name": f"Item {place}", "price": 1.5 * (place + 1), "tags": ["new", "heavy"]} for place in range(5)]


@dataclass(frozen=True)
class Place:
    """What the contenders of a page need."""

    environment: peers.Environment
    #: Variables that tell where the databases are and how much work is meant.
    variables: dict[str, str]


@dataclass(frozen=True)
class Page:
    name: str
    title: str
    requests: Sequence[traffic.Request]
    contenders: Callable[[Place], list[Contender]]
    #: What its interpreter must have.
    modules: tuple[str, ...] = ()
    postgres: bool = False
    #: Every contender has as many threads as its name says; only with as many threads they are compared.
    handler: bool = False


def named(server: str, threads: int | None = None) -> str:
    """The name of a contender with so many threads; without a number, its default."""
    return server if threads is None else f"{server}, {threads} thread{'s' * (threads > 1)}"


def threads_of(name: str) -> str:
    """What `named` puts behind the server; empty for a default."""
    return name.partition(", ")[2]


def _wsgi(application: str, weft: int | None = None, own: bool = False) -> Callable[[Place], list[Contender]]:
    """`weft`: its threads; `own`: ours with every number of threads too."""
    def contenders(place: Place) -> list[Contender]:
        of = python_servers.Wsgi(place.environment, application, place.variables, pinned=False)
        return [*(of.gunicorn(number) for number in PEER_THREADS), *(of.granian(number) for number in PEER_THREADS),
                of.weft(weft), of.peregrine(), of.maitred(), *(of.maitred(number) for number in THREADS if own)]

    return contenders


def _handler(place: Place) -> list[Contender]:
    of = python_servers.Wsgi(place.environment, work.APPLICATION, place.variables, pinned=False)
    servers = (of.gunicorn, of.granian, of.weft, of.peregrine, of.maitred)
    return [*(server(number) for number in THREADS for server in servers), of.maitred()]


def _asgi(application: str) -> Callable[[Place], list[Contender]]:
    def contenders(place: Place) -> list[Contender]:
        return python_servers.asgi(place.environment, application, place.variables, pinned=False)

    return contenders


def _of_variants(path: str) -> list[traffic.Request]:
    return [traffic.browser(number, f"{path}{1 + number}") for number in range(traffic.VARIANTS)]


#: Its default calls the application on the thread of an event loop, and Django refuses to ask a database there.
_WEFT_FOR_DJANGO = 4
PAGES = (
    Page("django-sqlite", "Django + SQLite, a query and a template", _of_variants("/products/"),
         _wsgi("shop.wsgi:application", _WEFT_FOR_DJANGO, own=True), ("django",)),
    Page("django-postgresql", "Django + PostgreSQL, ten queries", _of_variants("/categories/"),
         _wsgi("shop.wsgi:application", _WEFT_FOR_DJANGO), ("django", "psycopg"), postgres=True),
    Page("flask", "Flask + Jinja", _of_variants("/listing/"), _wsgi("page_flask:application"), ("flask",)),
    Page("fastapi", "FastAPI + pydantic", [
        traffic.bare(f"/orders/{number}?currency=EUR", body=json.dumps({"customer": number, "items": _ITEMS}).encode(),
                     media="application/json") for number in range(traffic.VARIANTS)],
         _asgi("small_fastapi:application"), ("fastapi",)),
    Page("fastapi-sqlalchemy", "FastAPI + SQLAlchemy async + PostgreSQL", _of_variants("/categories/"),
         _asgi("items_fastapi:application"), ("fastapi", "sqlalchemy", "asyncpg", "django", "psycopg"), postgres=True),
    Page("wait5", "Handler: one wait of 5 ms, 0.5 ms of Python", [traffic.bare("/wait5", _HELLO)], _handler, handler=True),
    Page("waits10", "Handler: ten waits of 0.3 ms, 1 ms of Python", [traffic.bare("/waits10", _HELLO)], _handler,
         handler=True),
    Page("hash", "Handler: 1.3 ms of hashing, the interpreter released", [traffic.bare("/hash", _HELLO)], _handler,
         handler=True),
)


def fill(environment: peers.Environment, variables: dict[str, str]) -> None:
    """Make the tables of `shop` in the database that the variables name."""
    subprocess.run([str(environment.program("python")), "-m", "shop.fill", str(traffic.VARIANTS)], check=True, timeout=120,
                   env=os.environ | {"PYTHONPATH": str(python_servers.APPS)} | variables)


def sqlite(environment: peers.Environment, folder: Path) -> dict[str, str]:
    """A filled file, as the variables that name it."""
    variables = {"BENCH_DATABASE": str(folder / "shop.sqlite")}
    fill(environment, variables)
    return variables
