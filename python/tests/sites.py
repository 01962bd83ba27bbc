"""Sites: the source of an application in a folder, a server that runs it, and a client that leads to it.

An ASGI site runs on maitred, or with ``MAITRED_TEST_SERVER=uvicorn`` on uvicorn: the tests must also hold for
another server, so that they test the specification and not us. Where a server leaves the specification a test
is marked with ``differs``.
"""

from __future__ import annotations

import hashlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import by_h2
import httpx
import pytest
import secured
from conftest import PATIENCE, SERVER, Server

#: More than any buffer on the way: of the engine, of the framework (Django spools to disk from 2.5 MB on).
LARGE = bytes(range(256)) * 12 * 1024
DIGEST = hashlib.sha256(LARGE).hexdigest()

#: What the ASGI applications have in common. `happen` notes that something has happened, `seen` waits for it.
ASYNC_COMMON = """
import asyncio, contextlib, gc, hashlib, json, sys, threading, time
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 20
counts = Counter()
happened = defaultdict(asyncio.Event)
going = asyncio.Event()

def happen(name):
    counts[name] += 1
    happened[name].set()

async def seen(name, times=1):
    # A generator its framework does not close is closed when it is collected.
    deadline = time.monotonic() + PATIENCE
    while counts[name] < times and time.monotonic() < deadline:
        gc.collect()
        happened[name].clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(happened[name].wait(), 0.1)
    return counts[name]

async def gone():
    await asyncio.wait_for(going.wait(), PATIENCE)
    going.clear()

async def rows():
    yield b"first\\n"
    await gone()
    yield b"second\\n"

async def endless():
    try:
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)
    finally:
        happen("closed")

def digest(data):
    return hashlib.sha256(data).hexdigest()
"""

#: The frame of applications without a framework: a route for each function of that name.
RAW_COMMON = ASYNC_COMMON + """
from urllib.parse import parse_qs

routes = {}
on_startup = []

def route(function):
    routes["/" + function.__name__] = function
    return function

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    if scope["type"] == "http":
        await routes[scope["path"]](scope, receive, send)

async def lifespan(scope, receive, send):
    assert (await receive())["type"] == "lifespan.startup"
    for function in on_startup:
        function()
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    await send({"type": "lifespan.shutdown.complete"})

async def begin(send, status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})

async def block(send, body):
    await send({"type": "http.response.body", "body": body, "more_body": True})

async def finish(send, body=b""):
    await send({"type": "http.response.body", "body": body})

async def reply(send, value=None, status=200):
    body = json.dumps(value).encode()
    await begin(send, status, [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))])
    await finish(send, body)

async def read(receive):
    body, more = b"", True
    while more:
        message = await receive()
        assert message["type"] == "http.request", message
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body

def query(scope):
    return {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}

@route
async def go(scope, receive, send):
    going.set()
    await begin(send, 204)
    await finish(send)

async def seen_name(scope, receive, send):
    asked = query(scope)
    await reply(send, await seen(asked["name"], int(asked.get("times", 1))))

routes["/seen"] = seen_name

@route
async def hello(scope, receive, send):
    await reply(send, "hello")
"""

#: A Django project in one file, `pages`. Its views and its application follow; run as a script it prepares the
#: database and the static files.
DJANGO_SETTINGS = """
import os, sys
import django
from django.conf import settings

if not settings.configured:
    settings.configure(
        SECRET_KEY="for tests", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF="pages", USE_TZ=True,
        STATIC_URL="/static/", STATIC_ROOT=HERE / "static",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db.sqlite3"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        INSTALLED_APPS=[f"django.contrib.{name}" for name in
                        ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")],
        MIDDLEWARE=["django.middleware.security.SecurityMiddleware",
                    "django.contrib.sessions.middleware.SessionMiddleware",
                    "django.middleware.common.CommonMiddleware",
                    "django.middleware.csrf.CsrfViewMiddleware",
                    "django.contrib.auth.middleware.AuthenticationMiddleware",
                    "django.contrib.messages.middleware.MessageMiddleware"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                    "OPTIONS": {"context_processors": ["django.template.context_processors.request",
                                                       "django.contrib.auth.context_processors.auth",
                                                       "django.contrib.messages.context_processors.messages"]}}],
        LOGGING={"version": 1, "disable_existing_loggers": False,
                 "handlers": {"all": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["all"]}},
    )
    django.setup()
"""

DJANGO_MAIN = """
if __name__ == "__main__":
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    from django.contrib.auth.models import User
    User.objects.create_superuser("root", password="secret")
"""

Test = TypeVar("Test", bound=Callable[..., None])


def differs(reason: str, *servers: str) -> Callable[[Test], Test]:
    """Marks a test that these other servers are known to fail; ``reason`` says what the specification wants.

    maitred is none of them: where it serves, the test has to pass. See ``pytest_runtest_call`` in conftest.py.
    """
    assert "maitred" not in servers
    return pytest.mark.differs(reason=reason, servers=servers)


class Uvicorn(Server):
    """The other server. It serves no files itself."""

    def command(self, arguments: list[str]) -> list[str | Path]:
        for option in {"--static", "--listen"} & set(arguments):
            at = arguments.index(option)
            arguments = arguments[:at] + arguments[at + 2 :]
        return [sys.executable, "-m", "uvicorn", *arguments, "--port", "0", "--http", "h11", "--no-access-log"]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends by the signal itself after its shutdown."""
        code = super().stop(number)
        return 0 if code == -number else code


def start_asgi(folder: Path, application: str, loop: str, *arguments: str, **environment: str) -> Server:
    """A server for ``module:attribute`` in a folder, on an event loop."""
    kind = {"maitred": Server, "uvicorn": Uvicorn}[SERVER]
    return kind([application, "--loop", loop, *arguments], folder, environment)


class Site:
    """A server and a client with cookies that leads to it."""

    def __init__(self, server: Server, client: httpx.Client) -> None:
        self.server = server
        self.client = client

    @property
    def url(self) -> str:
        """Where it is, as the server sees it."""
        return f"{secured.SCHEME}://127.0.0.1:{self.server.port}"

    def json(self, path: str, method: str = "GET", **arguments: object) -> Any:
        """The JSON of a response that must be a 200."""
        reply = self.client.request(method, path, **arguments)  # type: ignore[arg-type]
        assert reply.status_code == 200, (reply.status_code, reply.text)
        return reply.json()

    def asynchronous(self) -> httpx.AsyncClient:
        """Another client, for requests side by side."""
        own: dict[str, Any] = {"verify": secured.context()} if secured.WANTED else {"http1": not by_h2.WANTED, "http2": by_h2.WANTED}
        return httpx.AsyncClient(base_url=self.url, timeout=30, trust_env=False, **own)

    def connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)

    def seen(self, name: str, times: int = 1) -> bool:
        """Waits until that has happened so often in an application of RAW_COMMON."""
        return self.json("/seen", params={"name": name, "times": times}) >= times

    def leave(self, path: str, **arguments: object) -> None:
        """Begins to read a response and closes the connection in its middle."""
        with self.client.stream("GET", path, **arguments) as response:  # type: ignore[arg-type]
            assert response.status_code == 200
            assert next(response.iter_raw())


def site(server: Server) -> Iterator[Site]:
    """The site of a server, which must end well when the tests are done."""
    try:
        # By socket.create_connection, which speaks TLS where that is wanted.
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=PATIENCE, trust_env=False) as client:
            if secured.WANTED:
                # As a browser does it, for forms that are protected.
                client.headers["referer"] = f"https://127.0.0.1:{server.port}/"
            yield Site(server, client)
        assert server.stop() == 0, server.said
    finally:
        server.kill()


def asgi_site(
    folder: Path, name: str, source: str, loop: str, *arguments: str, farewell: str = "", attribute: str = "app"
) -> Iterator[Site]:
    """A site of an ASGI application's source, which says ``farewell`` at its end."""
    (folder / f"{name}.py").write_text(source)
    (folder / "large.bin").write_bytes(LARGE)
    server = start_asgi(folder, f"{name}:{attribute}", loop, *arguments)
    yield from site(server)
    assert farewell in server.said


def streamed(client: httpx.Client, path: str, expected: list[bytes]) -> None:
    """Reads a response block by block; the second one comes only after another request."""
    # Not compressed: a compressor holds back what it has not enough of.
    with client.stream("GET", path, headers={"accept-encoding": "identity"}) as response:
        assert response.status_code == 200
        assert "content-length" not in response.headers
        blocks = response.iter_raw()
        assert next(blocks) == expected[0]
        assert client.get("/go").status_code == 204
        assert b"".join(blocks) == expected[1]


def prepare_django(folder: Path, source: str) -> None:
    (folder / "pages.py").write_text(source)
    subprocess.run([sys.executable, "pages.py"], cwd=folder, check=True, timeout=PATIENCE)


def token(page: str) -> str:
    """Django's token of a form."""
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found, page
    return found[1]
