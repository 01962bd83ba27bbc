"""Whatever an application makes of the path it gets: no spelling leads past what stands before it."""

from __future__ import annotations

import http.client
import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server
from frames import Connection

#: What a file below /media/private/ has, and what a view at such a path says.
SECRET = b"the secret"

#: Each of these applications answers for all its readings of a path at once, and names those that lead to the private files.
ANSWER = """
import posixpath, re, urllib.parse

def is_private(path):
    return path is not None and (path == "/media/private" or path.startswith("/media/private/"))

def answer(private):
    return "".join(["the secret", *(f"[{name}]" for name in private)]).encode() if private else b"open"
"""

WSGI = ANSWER + """
import threading

def app(environ, start_response):
    path = environ["SCRIPT_NAME"] + environ["PATH_INFO"]
    private = [name for name, read in READINGS.items() if is_private(read(path))]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer(private) + b"; " + threading.current_thread().name.encode()]
"""

#: What takes the path as it was sent is an application of this kind, too.
ASGI = ANSWER + """
def as_sent(path):
    return "/" + "/".join(urllib.parse.unquote(segment).replace("/", "|") for segment in path.split("/")[1:])

async def app(scope, receive, send):
    if scope["type"] == "http":
        private = [name for name, read in READINGS.items() if is_private(read(scope["path"]))]
        if is_private(as_sent(scope["raw_path"].decode("latin-1"))):
            private.append("as it was sent")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer(private)})
"""

READINGS = """
def resolved_without_an_empty_segment_s_end(path):
    kept = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept)

def below_its_route(path):
    return "/media" + posixpath.normpath("/" + path[len("/media/"):].lstrip("/")) if path.startswith("/media/") else None

READINGS = {
    "as it is": lambda path: path,
    "resolved": lambda path: posixpath.normpath("/" + path.lstrip("/")),
    "resolved without an empty segment's end": resolved_without_an_empty_segment_s_end,
    "resolved below its route": below_its_route,
    "slashes merged": lambda path: re.sub("/+", "/", path),
    "backslashes turned": lambda path: posixpath.normpath(path.replace(chr(92), "/")),
    "up to NUL": lambda path: posixpath.normpath(path.partition(chr(0))[0] or "/"),
}
"""

#: Each of them has to be led there; an application that serves files itself has the file.
LED = {
    "WSGI": ("[as it is]", "[resolved]", "[resolved without an empty segment's end]", "[resolved below its route]", "[slashes merged]",
             "[backslashes turned]", "[up to NUL]"),
    "ASGI": ("[as it is]", "[resolved]", "[resolved below its route]", "[as it was sent]"),
}

FLASK = """
import os
from flask import Flask, send_from_directory
app = Flask(__name__)

@app.get("/media/<path:name>")
def media(name):
    return send_from_directory(os.path.abspath("files"), name)
"""

DJANGO = """
import os
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="test", ALLOWED_HOSTS=["*"])
from django.core.wsgi import get_wsgi_application
from django.urls import re_path
from django.views.static import serve
urlpatterns = [re_path("^media/(?P<path>.*)$", serve, {"document_root": os.path.abspath("files")})]
app = get_wsgi_application()
"""

STARLETTE = """
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
app = Starlette(routes=[Mount("/media", StaticFiles(directory="files"))])
"""

APPLICATIONS = {"WSGI": WSGI + READINGS, "ASGI": ASGI + READINGS, "Flask": FLASK, "Django": DJANGO, "Starlette": STARLETTE}

DENY = """
[[filter]]
path = "/media/private/*"
access = "deny all"
"""

ALLOW = """
[[filter]]
access = "deny all"

[[filter]]
path = "/media/public/*"
access = "allow all"
"""

PASSWORD = """
[[filter]]
path = "/media/private/*"
basic-auth = "users.txt"
"""

OPENED = """
[[filter]]
basic-auth = "users.txt"

[[filter]]
path = "/media/public/*"
basic-auth = "off"
"""

HOST = """
[host."localhost"]
application = "app.py"

[[host."localhost".filter]]
path = "/media/private/*"
access = "deny all"
"""

STATIC = 'static = "/media/public=files/public"\n'
MOUNT = 'mount = "/media=app.py"\n'
AWAY = """
[[filter]]
path = "/media/private/*"
redirect = "/elsewhere"
"""

POOL = """
[pool.private]
match = "/media/private/*"
"""


@dataclass
class Case:
    """A configuration that protects."""

    file: str
    #: Without ``app.py`` as the application of every host and path.
    root: str = "app.py"


CASES = {
    "denied": Case(DENY),
    "all but allowed denied": Case(ALLOW),
    "password": Case(PASSWORD),
    "password but for some": Case(OPENED),
    "host": Case(HOST, root="other.py"),
    "static files": Case(STATIC.replace("/public", "") + DENY),
    "static files beside": Case(STATIC + DENY),
    "mount": Case(MOUNT + DENY, root="other.py"),
    "redirected": Case(AWAY),
    "pool": Case(POOL),
}

#: What frameworks route by themselves is at another path below a mount.
FRAMEWORKS = ("Flask", "Django", "Starlette")


def spellings() -> Iterator[str]:
    """Targets which some application takes for a path below /media/private/."""
    file = "/secret.txt"
    yield "/media/private" + file
    for slash in ("%2f", "%2F", "%5c", "\\", "//", "/%2f", "%2f/", "/./", "/.%2f", "%2f.%2f", "/%2e/", "/%2e%2f", "/x/../", "/x/..%2f",
                  "/x%2f..%2f", "/x/%2e%2e/", "/x/%2E.%2f", "//../", "/%2f../", "/%2f..%2f", "//../../", "/../", "/..%2f", "/../../../",
                  "/public/../", "/public/..%2f", "/public%2f..%2f", "/public/%2e%2e%5c", "/public/x/../../", "/public//..//",
                  "/public/%2e%2e/"):
        yield f"/media{slash}private{file}"
    for start in ("//media", "/.//media", "/x/../media", "/x/..%2fmedia", "/%2fmedia", "/%2e%2e/media", "/%6dedia", "/media/public/../../media"):
        yield f"{start}/private{file}"
    for end in ("%2fsecret.txt", "/x/../secret.txt", "/x/..%2fsecret.txt", "/../private/secret.txt", "/../public/open.txt", "/..%2fpublic/open.txt",
                "/%2e%2e/public/open.txt", "/../../media/public/open.txt", "%00", "/secret.txt%00", "//secret.txt", "/%73ecret.txt"):
        yield f"/media/private{end}"
    yield "/media/%70rivate/secret.txt"
    yield "http://localhost/media/x/..%2fprivate/secret.txt"


def folder_for(folder: Path, application: str, case: Case | None) -> None:
    for name, content in (("private/secret.txt", SECRET), ("public/open.txt", b"open")):
        path = folder / "files" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    (folder / "app.py").write_text(APPLICATIONS[application])
    (folder / "other.py").write_text("def app(environ, start_response):\n    start_response('200 OK', [])\n    return [b'other']\n")
    if case:
        (folder / "maitred.toml").write_text(case.file)
    if case and "users.txt" in case.file:
        words = [MAITRED, "passwd", "users.txt", "ann"]
        subprocess.run(words, cwd=folder, input="open sesame\n", text=True, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)


def by_http1(server: Server, target: str) -> tuple[int, bytes]:
    reply = server.ask(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return reply.status, reply.body


def by_http2(server: Server, target: str) -> tuple[int, bytes]:
    # Each its own, since a refusal may end the connection.
    with Connection.to(server.port) as connection:
        answer = connection.fetch(target.removeprefix("http://localhost"))
        return answer.status, bytes(answer.body)


ASKING = {"HTTP/1.1": by_http1, "HTTP/2": by_http2}


def asked(server: Server) -> Iterator[tuple[str, int, bytes]]:
    for (protocol, ask), target in itertools.product(ASKING.items(), spellings()):
        try:
            status, body = ask(server, target)
        except (http.client.HTTPException, ConnectionError) as error:
            pytest.fail(f"{protocol} {target}: {error!r}")
        yield f"{protocol} {target}: {status} {body[:300]!r}", status, body


@pytest.mark.parametrize("application", APPLICATIONS)
def test_without_protection_spellings_arrive(serve: Serve, tmp_path: Path, application: str) -> None:
    """These applications do read them so: else the other tests would show nothing."""
    folder_for(tmp_path, application, None)
    server = serve("app.py")
    reached = [(shown, body) for shown, status, body in asked(server) if status == 200 and SECRET in body]
    for mark in LED.get(application, ("",)):
        read = [shown for shown, body in reached if mark.encode() in body]
        assert len(read) >= 8, (mark, read)
    assert " 400 Bad Request" not in server.said


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("case", CASES)
def test_no_spelling_leads_past_protection(serve: Serve, tmp_path: Path, application: str, case: str) -> None:
    if case == "mount" and application in FRAMEWORKS or case == "pool" and application != "WSGI":
        pytest.skip("there is nothing of the kind")
    folder_for(tmp_path, application, CASES[case])
    server = serve(CASES[case].root, "--log-level", "info")
    seen = set()
    for shown, status, body in asked(server):
        if SECRET in body:
            assert case == "pool" and b"maitred-private-" in body, shown
        seen.add(status)
    assert 400 in seen, seen
    assert ": 400 Bad Request: rules or filters ask for the path, and it has a segment '.' or '..'" in server.said
    # Whoever has nothing to hide is served.
    for ask in ASKING.values():
        for target in ("/media/public/open.txt", "/media/public/%6fpen.txt"):
            status, body = ask(server, target)
            assert (status, body[:4]) == (200, b"open"), (target, status, body)
        if application == "WSGI" and "static" not in case:
            for target in ("/media/public/a%2Fb", "/media/public/a//b"):
                assert ask(server, target)[0] == 200, target


def test_a_path_arrives_as_it_was_sent_where_no_rule_asks_for_it(serve: Serve) -> None:
    server = serve(source="""
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['RAW_URI']} {environ['PATH_INFO']}".encode()]
""")
    for target, path in (("/files/a%2Fb", "/files/a/b"), ("/a/../b/./c", "/a/../b/./c"), ("//a//b", "//a//b"), ("/a%5Cb", "/a\\b")):
        assert by_http1(server, target) == (200, f"{target} {path}".encode())
        assert by_http2(server, target) == (200, f"{target} {path}".encode())
