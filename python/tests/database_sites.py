"""Applications that use PostgreSQL in the ways in which people use it: one for each library, by WSGI and by ASGI.

Each answers any path after it has done all that its library offers: single statements, sets of parameters, transactions with savepoints,
failures, cursors of the server.  The address of the database is in the environment variable DATABASE.
"""

PSYCOPG = """
import os
import maitred.instrument.psycopg
import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

pool = ConnectionPool(os.environ["DATABASE"], min_size=2, max_size=4, open=True)
pool.wait()

def work(connection):
    connection.execute("select 1")
    connection.execute(b"insert into item (name) values ('bytes') on conflict do nothing")
    connection.execute(sql.SQL("update {} set name = name").format(sql.Identifier("item")))
    connection.execute("set work_mem = '4MB'")
    connection.execute("select 1; /* ; */ select ';'; reset work_mem; -- ; \\n ; values (1);")
    cursor = connection.cursor()
    cursor.executemany("select %s", [(1,), (2,), (3,)])
    cursor.executemany("select %s", ((number,) for number in range(4)))
    cursor.executemany("select %s", [])
    for wrong in ("select 1 / 0", "selec", "insert into item (id, name) values (1, 'x'), (1, 'y')"):
        try:
            with connection.transaction():
                connection.execute("with one as (select 1) select * from one")
                connection.execute(wrong)
        except psycopg.Error:
            pass
    assert len(list(cursor.stream("select generate_series(1, 5)"))) == 5
    with cursor.copy("copy (select 1) to stdout") as copy:
        list(copy)
    with cursor.copy("copy item (name) from stdin") as copy:
        copy.write_row([None])
    with connection.cursor("named") as named:
        named.execute("select generate_series(1, 5)")
        assert len(named.fetchmany(2)) == 2 and len(named.fetchall()) == 3
    connection.execute("create temporary table if not exists kept (id int) on commit delete rows")
    connection.execute("lock table item in share mode")

def app(environ, start_response):
    with pool.connection() as connection:
        work(connection)
        connection.rollback()
    start_response("200 OK", [])
    return [b"done"]
"""

PSYCOPG_ASGI = """
import asyncio, os
import maitred.instrument.psycopg
import psycopg
from psycopg_pool import AsyncConnectionPool

pool = AsyncConnectionPool(os.environ["DATABASE"], min_size=2, max_size=3, open=False)

async def one(number):
    async with pool.connection() as connection:
        await connection.execute("select %s", (number,))
        cursor = connection.cursor()
        await cursor.executemany("select %s", [(1,), (2,)])
        assert [row async for row in cursor.stream("select 1")] == [(1,)]
        try:
            async with connection.transaction():
                await connection.execute("select 1 / 0")
        except psycopg.Error:
            pass
        async with connection.cursor("named") as named:
            await named.execute("select generate_series(1, 5)")
            assert len(await named.fetchmany(3)) == 3

def in_thread():
    with psycopg.connect(os.environ["DATABASE"]) as connection:
        connection.execute("select 1")

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await pool.open(wait=True)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await pool.close()
        return await send({"type": "lifespan.shutdown.complete"})
    # Five want a connection, of which there are three.
    await asyncio.gather(*map(one, range(5)), asyncio.to_thread(in_thread))
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})
"""

MODELS = """
import asyncio, os
import maitred.instrument.sqlalchemy
from sqlalchemy import ForeignKey, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

class Base(DeclarativeBase):
    pass

class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list["Book"]] = relationship(back_populates="author")

class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")

def address(driver):
    socket = os.environ["DATABASE"].split("host=")[1].split()[0]
    return f"postgresql+{driver}://application@/postgres?host={socket}"

def work(session):
    session.add_all([Author(name=name, books=[Book(title=f"{name} {number}") for number in range(3)]) for name in "abc"])
    session.flush()
    for author in session.scalars(select(Author).options(selectinload(Author.books)).order_by(Author.id)):
        author.name += "!"
    session.flush()
    session.execute(update(Book), [{"id": book.id, "title": "t"} for book in session.scalars(select(Book).limit(3))])
    session.execute(insert(Author), [{"id": 1000 + number, "name": "n"} for number in range(5)])
    session.execute(delete(Author).where(Author.id >= 1000))
    session.execute(text("set local work_mem = '4MB'"))
    session.connection().exec_driver_sql("select 1")
    try:
        with session.begin_nested():
            session.execute(text("select 1 / 0"))
    except DBAPIError:
        pass
    assert session.scalar(select(func.count()).select_from(Author)) >= 3
"""

SQLALCHEMY = MODELS + """
from sqlalchemy import create_engine

engine = create_engine(address("psycopg"), pool_pre_ping=True, pool_size=2)

def app(environ, start_response):
    with Session(engine) as session:
        work(session)
        streamed = session.execute(select(Book), execution_options={"stream_results": True, "yield_per": 2})
        assert len(streamed.all()) >= 9
        session.rollback()
    with Session(engine) as session:
        session.scalars(select(Author)).all()
    start_response("200 OK", [])
    return [b"done"]
"""

SQLALCHEMY_ASGI = MODELS + """
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

engine = create_async_engine(address(os.environ["DRIVER"]), pool_size=2, max_overflow=0, pool_pre_ping=True)

async def one(number):
    async with AsyncSession(engine) as session:
        await session.scalar(select(number))

async def app(scope, receive, send):
    async with AsyncSession(engine) as session:
        await session.run_sync(work)
        await session.rollback()
    async with AsyncSession(engine) as session:
        streamed = await session.stream(text("select generate_series(1, 9)"), execution_options={"yield_per": 2})
        assert len([row async for row in streamed]) == 9
        # asyncpg leaves the cursor to the end of the transaction; PostgreSQL counts none of a transaction that is rolled back.
        await session.commit()
    await asyncio.gather(*map(one, range(4)))
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})
"""

DJANGO = """
import os
import maitred.instrument.django
import django
from django.conf import settings

POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "application", "CONN_MAX_AGE": None,
            "CONN_HEALTH_CHECKS": True, "HOST": os.environ["DATABASE"].split("host=")[1].split()[0]}
if "POOL" in os.environ:
    POSTGRES |= {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": {"min_size": 1, "max_size": 1}}}
settings.configure(
    DEBUG_PROPAGATE_EXCEPTIONS=True, SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, TIME_ZONE="Europe/Vienna", USE_TZ=True, DATABASES={"default": POSTGRES},
    SESSION_ENGINE="django.contrib.sessions.backends.db", DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions"],
)
django.setup()

import asyncio
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.db import IntegrityError, connection, transaction
from django.http import HttpResponse
from django.urls import path

def work():
    with transaction.atomic():
        group, _ = Group.objects.get_or_create(name="all")
        User.objects.filter(username__startswith="many").delete()
        users = User.objects.bulk_create([User(username=f"many{number}") for number in range(7)], batch_size=3)
        group.user_set.set(users)
        User.objects.bulk_update(users, ["username"], batch_size=2)
        assert len(User.objects.prefetch_related("groups").filter(groups=group)) == 7
        try:
            with transaction.atomic():
                Group.objects.create(name="all")
        except IntegrityError:
            pass
        assert len(list(User.objects.all().iterator(chunk_size=2))) >= 7
        with connection.cursor() as cursor:
            cursor.executemany("select %s", [(1,), (2,)])
            cursor.execute("set local work_mem = '4MB'")
    Group.objects.count()

def view(request):
    work()
    request.session["seen"] = 1
    return HttpResponse("done")

async def async_view(request):
    user, _ = await User.objects.aget_or_create(username="async")
    user.first_name = "a"
    await user.asave()
    assert [one async for one in User.objects.filter(pk=user.pk)] == [user]
    await Group.objects.aget_or_create(name="all")
    # Each has its thread, as the thread of the request is for one at a time.
    await asyncio.gather(*[asyncio.to_thread(in_thread) for _ in range(2)])
    return HttpResponse("done")

def in_thread():
    Group.objects.count()
    connection.close()

urlpatterns = [path("", view), path("async", async_view)]
if "POOL" in os.environ:
    # The pool's own threads set up its connections, and that belongs to no request: not while we count.
    connection.ensure_connection()
    connection.close()
app = get_asgi_application() if "ASGI" in os.environ else get_wsgi_application()
"""
#: What makes the tables of these; the first argument of `django` is a command.
DJANGO_TABLES = DJANGO + """
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""
SQLALCHEMY_TABLES = """
create table author (id serial primary key, name text);
create table book (id serial primary key, title text, author_id int references author);
grant all on all tables in schema public to application;
grant all on all sequences in schema public to application;
"""
