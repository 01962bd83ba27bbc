"""What databases took of a request, as operators and clients see it; with SQLite, which needs no server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Serve, environment_for, needs
from crews import until
from test_control import asked, ctl

DBAPI = """
import sqlite3, threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from maitred.instrument import dbapi

def work(number):
    # Shared by the threads of a request, which take turns.
    connection = dbapi(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None))
    connection.execute("create table item (id int primary key)")
    with connection:
        connection.executemany("insert into item values (?)", ((each,) for each in range(number)))
    try:
        connection.execute("insert into item values (0)")
    except sqlite3.IntegrityError:
        pass
    cursor = connection.cursor()
    assert cursor.execute("select count(*) from item").fetchone() == (number,)
    assert [row for row in cursor.execute("select id from item order by id limit 2")] == [(0,), (1,)]
    for carries in (True, False):
        run = copy_context().run if carries else (lambda call, *arguments: call(*arguments))
        thread = threading.Thread(target=run, args=(connection.execute, "select 1"))
        thread.start()
        thread.join()
    connection.executescript("begin; select 1; commit;")
    connection.close()

def wsgi(environ, start_response):
    path = environ["PATH_INFO"]
    if path != "/none":
        work(int(path[1:]))
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]

async def asgi(scope, receive, send):
    import asyncio
    path = scope["path"]
    if path != "/none":
        await asyncio.sleep(0)
        await asyncio.to_thread(work, int(path[1:]))
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})
    if path != "/none":
        work(3)
"""
#: Statements of `work` beside its rows: two reads, one in a thread that carries the context, one of the script.
BESIDE = 4


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
def test_statements_are_told_per_request_and_route(serve: Serve, tmp_path: Path, interface: str) -> None:
    (tmp_path / "shop.py").write_text(DBAPI)
    server = serve("shop:" + interface, "--server-timing", "--control", "ctl.sock", "--metrics-path", "/metrics", "--dispatch-trace",
                   "--access-log", "access.log", "--access-log-format", "$path $db_statements $db")
    for number in (3, 5):
        timing = server.fetch(f"/{number}").headers["Server-Timing"]
        assert re.search(rf'run;dur=[\d.]+.*, db;dur=\d+\.\d{{3}};desc="{number + BESIDE} statements"$', timing), timing
    assert "db;" not in server.fetch("/none").headers["Server-Timing"]

    log = tmp_path / "access.log"
    until("all are written down", lambda: len(log.read_text().splitlines()) == 3)
    assert [line.split()[:2] for line in log.read_text().splitlines()] == [["/3", "7"], ["/5", "9"], ["/none", "0"]]
    # What the ASGI application asks behind its response is nobody's.
    [database] = asked(tmp_path, "stats", "--route", "GET /*")["databases"]
    assert (database["requests"], database["statements"], database["failed"]) == (2, 16, 2)
    assert 0 < database["mean_seconds"] < 60
    assert "statements" in ctl(tmp_path, "stats").stdout
    metrics = server.fetch("/metrics").body.decode()
    assert 'maitred_database_statements_sum{pool="default",route="GET /*"} 16' in metrics
    assert re.search(r'maitred_application_duration_seconds_count\{pool="default",route="GET /\*",name="db"\} 2', metrics)
    if interface == "wsgi":
        traces = asked(tmp_path, "traces")["traces"]
        assert [trace["db_statements"] for trace in traces if trace["path"] in ("/3", "/5")] == [9, 7]


SIDE_BY_SIDE = """
import asyncio, sqlite3
from maitred.instrument import dbapi

connection = dbapi(sqlite3.connect(":memory:", check_same_thread=False))
begun = asyncio.Condition()
count = 0

async def app(scope, receive, send):
    global count
    number = int(scope["path"][1:])
    for each in range(number):
        connection.execute("select 1")
        # All of them are between two statements at once.
        async with begun:
            count += 1
            begun.notify_all()
            await begun.wait_for(lambda: count >= 3)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})
"""


def test_requests_that_run_at_the_same_time_have_their_own_counts(serve: Serve) -> None:
    server = serve("--server-timing", source=SIDE_BY_SIDE, checked=False)
    connections = [server.connect() for _ in range(3)]
    for number, connection in enumerate(connections, 1):
        connection.request("GET", f"/{number}")
    for number, connection in enumerate(connections, 1):
        timing = connection.getresponse().headers["Server-Timing"]
        assert f'desc="{number} statement{"s" * (number > 1)}"' in timing
        connection.close()


DJANGO = """
import maitred.instrument.django
import django
from django.conf import settings
settings.configure(
    DEBUG_PROPAGATE_EXCEPTIONS=True, SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite3"}},
)
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpResponse, JsonResponse
from django.test.utils import CaptureQueriesContext
from django.urls import path

def view(request):
    with CaptureQueriesContext(connection) as captured:
        groups = work()
    # Django's own list: "3 times: update ...", and BEGIN.
    own = sum(int(query["sql"].partition(" times: ")[0]) if " times: " in query["sql"] else query["sql"] != "BEGIN" for query in captured
              if not query["sql"].startswith("COMMIT"))
    return JsonResponse({"groups": groups, "statements": own})

def work():
    with transaction.atomic():
        Group.objects.all().delete()
        Group.objects.bulk_create([Group(name=f"g{number}") for number in range(3)])
        with connection.cursor() as cursor:
            cursor.executemany("update auth_group set name = %s where name = %s", [(f"h{number}", f"g{number}") for number in range(3)])
    return Group.objects.count()

async def async_view(request):
    await Group.objects.aupdate_or_create(name="async", defaults={})
    return HttpResponse(str(await Group.objects.acount()))

urlpatterns = [path("", view), path("async", async_view)]
wsgi, asgi = get_wsgi_application(), get_asgi_application()
"""


def test_django_counts_with_sqlite(serve: Serve, tmp_path: Path) -> None:
    needs("django")
    (tmp_path / "site_.py").write_text(DJANGO)
    for interface in ("wsgi", "asgi"):
        server = serve(f"site_:{interface}", "--server-timing")
        for _ in range(2):
            reply = server.fetch("/")
            assert reply.status == 200, server.stop() or server.said
            told = json.loads(reply.body)
            assert (told["groups"], told["statements"] > 5) == (3, True)
            assert f'desc="{told["statements"]} statements"' in reply.headers["Server-Timing"]
        reply = server.fetch("/async")
        assert re.search(r'db;dur=.*desc="[3-9] statements"', reply.headers["Server-Timing"])
        server.stop()


@pytest.mark.parametrize("library", ["django", "psycopg", "sqlalchemy"])
def test_a_library_that_is_missing_is_named(library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None\nimport maitred.instrument.{library}"
    done = subprocess.run([sys.executable, "-c", code], env=environment_for({}), capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert re.fullmatch(rf"ImportError: maitred\.instrument\.{library} counts .*{library}, which is not installed: pip install \S*{library}\S*", last)


def test_outside_of_a_request_nothing_is_counted_and_nothing_fails() -> None:
    code = """
import sqlite3
from maitred.instrument import dbapi
from maitred.instrument._count import CURRENT
connect = dbapi(sqlite3.connect)
assert dbapi(connect) is connect
with connect(":memory:") as connection:
    assert dbapi(connection) is connection
    connection.row_factory = sqlite3.Row
    assert connection.execute("select 1 as one").fetchone()["one"] == 1
    assert connection.in_transaction is False
assert CURRENT.get() is None
try:
    dbapi(1)
except TypeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment_for({}), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "neither a PEP 249 connection nor a function that connects: int\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("select 1", 1),
        ("SELECT 1;", 1),
        ("-- why\n/* BEGIN */ (select 1) union (select 2)", 1),
        ("with one as (select 1) select * from one", 1),
        (b"values (1)", 1),
        ("select ';' as \";\", $a$;$a$ -- ;\n; insert into x values (1); commit", 2),
        ("copy (select 1) to stdout", 1),
        ("copy x from stdin", 0),
        ("declare c cursor for select 1", 0),
        ("Create Table x (a int)", 0),
        ("truncate x; select 1", 1),
        ("BEGIN", None),
        ("  /* why */ set local x = 1", None),
        ("release savepoint a; rollback", None),
        ("", None),
    ],
)
def test_a_text_is_so_many_statements(text: object, number: int | None) -> None:
    from maitred.instrument._statements import number_of

    assert number_of(text) == number
