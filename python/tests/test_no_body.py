"""Responses of which no body is sent (HEAD, 204, 205, 304) by applications whose bodies have no end: the head leaves, the application is
told, and the connection and the thread are free."""

from __future__ import annotations

import http.client
import itertools
import socket

import frames
import pytest
from conftest import PATIENCE, Serve, Server, needs

#: ``/closed`` tells what has been closed or ended so far.
WSGI = """
import itertools
ended = []

class Body:
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        return itertools.repeat(b"x" * 1000)

    def close(self):
        ended.append(self.path)

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/ended":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [" ".join(sorted(ended)).encode()]
    kind, status = path.strip("/").split("-")
    write = start_response(status + " Said", [("Content-Type", "text/plain"), ("X-Kind", kind)])
    if kind == "write":
        try:
            while True:
                write(b"x" * 1000)
        finally:
            ended.append(path)
    if kind == "long":
        try:
            for _ in range(60):
                write(b"x" * 100_000)
        except BrokenPipeError:
            ended.append("told")
        ended.append(path)
        return []
    if kind == "written":
        for _ in range(3):
            write(b"x" * 1000)
        ended.append(path)
        return []
    if kind == "file":
        return environ["wsgi.file_wrapper"](open(__file__, "rb"))
    return Body(path)
"""

ASGI = """
import asyncio
ended = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    path = scope["path"]
    if path == "/ended":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": " ".join(sorted(ended)).encode()})
    kind, status = path.strip("/").split("-")
    await send({"type": "http.response.start", "status": int(status), "headers": [(b"x-kind", kind.encode())]})
    try:
        if kind == "listens":
            await receive()
            await send({"type": "http.response.body", "body": b"x" if status == "200" else b"", "more_body": True})
            assert (await receive())["type"] == "http.disconnect"
            return
        if kind == "long":
            try:
                for _ in range(60):
                    await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            except OSError:
                ended.append("told")
            return
        for part in range(3 if kind == "written" else 10**9):
            await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
        await send({"type": "http.response.body", "body": b"x" * 1000})
    finally:
        ended.append(path)
"""


def ask(server: Server, version: str, method: str, path: str) -> tuple[int, str | None]:
    """Status and kind of the answer, which is complete behind its head: another request of the same connection is answered."""
    if version == "2":
        with frames.Connection.to(server.port) as peer:
            answer = peer.fetch(path, method)
            assert not answer.body and answer.reset is None
            assert peer.fetch("/ended").status == 200
            return answer.status, answer.fields.get("x-kind")
    kept = "" if version == "1.1" else "Connection: keep-alive\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        for asked in (f"{method} {path}", "GET /ended"):
            peer.sendall(f"{asked} HTTP/{version}\r\nHost: localhost\r\n{kept}\r\n".encode())
            response = http.client.HTTPResponse(peer, method=asked.split()[0])
            response.begin()
            read = response.read()
            if asked != "GET /ended":
                assert not read
                found = response.status, response.getheader("X-Kind")
        assert response.status == 200
        return found


def wait_until_ended(server: Server, path: str, times: int = 1) -> None:
    """An application that nobody listens to is told some time after its head has left."""
    while server.fetch("/ended").body.decode().split().count(path) < times:
        assert server.process.poll() is None


VERSIONS = ["1.0", "1.1", "2"]


@pytest.mark.parametrize("path", ["/iterable-200", "/iterable-204", "/iterable-304", "/write-200", "/write-304", "/written-200"])
def test_a_wsgi_application_is_told_that_nothing_more_is_wanted(path: str, serve: Serve) -> None:
    server = serve("--max-threads", "2", source=WSGI, checked=False)  # The validator wants an end of each body.
    for number, version in enumerate(VERSIONS, 1):
        for _ in range(3):
            assert ask(server, version, "HEAD", path) == (int(path[-3:]), path[1:-4]), version
        wait_until_ended(server, path, 3 * number)
    assert server.stop() == 0, server.said
    # A busy machine keeps the loop from a processor.
    errors = [line for line in server.said.splitlines() if " error " in line and "has been standing still" not in line]
    assert errors == []


@pytest.mark.parametrize("path", ["/iterable-204", "/iterable-205", "/iterable-304", "/write-204", "/write-205", "/write-304"])
def test_a_body_that_may_not_be_ends_its_iteration_and_is_logged(path: str, serve: Serve) -> None:
    server = serve("--max-threads", "1", source=WSGI, checked=False)  # As above.
    for number, version in enumerate(VERSIONS, 1):
        before = len(server.said)
        assert ask(server, version, "GET", path) == (int(path[-3:]), path[1:-4]), version
        wait_until_ended(server, path, number)
        server.wait_for(f"GET {path}", before)
    assert server.stop() == 0, server.said


def test_a_file_is_no_body_where_none_may_be(serve: Serve) -> None:
    server = serve(source=WSGI, checked=False)  # As above.
    for status, version, method in itertools.product(("204", "205", "304"), VERSIONS, ("HEAD", "GET")):
        assert ask(server, version, method, f"/file-{status}") == (int(status), "file"), (method, version)


def test_an_asgi_application_is_told_that_a_body_may_not_be(serve_asgi: Serve) -> None:
    server = serve_asgi(source=ASGI)
    for path in ("/endless-204", "/endless-205", "/endless-304", "/written-204"):
        for number, version in enumerate(VERSIONS, 1):
            assert ask(server, version, "GET", path) == (int(path[-3:]), path[1:-4]), version
            wait_until_ended(server, path, number)


@pytest.mark.parametrize("path", ["/endless-200", "/endless-304", "/listens-200", "/listens-204", "/listens-304", "/written-200"])
def test_an_asgi_application_is_told_that_nothing_more_is_wanted(path: str, serve_asgi: Serve) -> None:
    server = serve_asgi(source=ASGI)
    for number, version in enumerate(VERSIONS, 1):
        for _ in range(3):
            assert ask(server, version, "HEAD", path) == (int(path[-3:]), path[1:-4]), version
        wait_until_ended(server, path, 3 * number)
    assert server.stop() == 0, server.said
    assert "error" not in server.said


@pytest.mark.parametrize("version", VERSIONS)
def test_applications_that_make_much_of_an_unwanted_body_are_told_before_the_second_is_over(
    version: str, serve: Serve, serve_asgi: Serve
) -> None:
    wsgi, asgi = serve(source=WSGI, checked=False), serve_asgi(source=ASGI)  # As above.
    assert ask(wsgi, version, "HEAD", "/long-200") == ask(asgi, version, "HEAD", "/long-200") == (200, "long")
    for server in (wsgi, asgi):
        wait_until_ended(server, "/long-200")
        assert b"told" in server.fetch("/ended").body
        assert server.stop() == 0, server.said
        assert "error" not in server.said


def test_a_file_in_the_place_of_a_body_does_not_wait_for_its_end(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "file.txt").write_text("of the file")
    source = WSGI.replace('("X-Kind", kind)', '("X-Kind", kind), ("X-Sendfile", "%s/file.txt")' % folder)
    server = serve("--sendfile", f"/files={folder}", source=source, checked=False)  # As above.
    for path in ("/iterable-200", "/write-200"):
        assert server.fetch(path).body == b"of the file"
        wait_until_ended(server, path)
    assert server.stop() == 0, server.said


RAISES = """
def app(environ, start_response):
    write = start_response("200 OK", [("Content-Length", "5")])
    write(b"whole")
    if environ["PATH_INFO"] == "/more":
        write(b"surplus")
    raise ValueError("too late")
"""


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("path", ["/raises", "/more"])
def test_an_exception_behind_the_last_declared_byte_takes_nothing_back(path: str, version: str, serve: Serve) -> None:
    server = serve(source=RAISES, checked=False)  # The validator allows no `write` before an exception.
    if version == "2":
        with frames.Connection.to(server.port) as peer:
            answers = [peer.fetch(path) for _ in range(2)]
        assert [(bytes(answer.body), answer.is_complete, answer.reset) for answer in answers] == [(b"whole", True, None)] * 2
    else:
        peer = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        peer.connect()
        first = peer.sock
        for _ in range(2):
            peer.request("GET", path)
            assert peer.getresponse().read() == b"whole"
            assert peer.sock is first, "the connection is kept"
        peer.close()
    assert server.stop() == 0, server.said
    assert "after a complete response: the application raised ValueError" in server.said


DJANGO = """
import django.conf, django.http, django.urls, django.core.handlers.{handler}
ended = []

def stream(request):
    def blocks():
        try:
            while True:
                yield b"x" * 1000
        finally:
            ended.append("/stream")
    return django.http.StreamingHttpResponse(blocks())

def tell(request):
    return django.http.HttpResponse(" ".join(ended))

django.conf.settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DEBUG=False, SECRET_KEY="x")
django.setup()
urlpatterns = [django.urls.path("stream", stream), django.urls.path("ended", tell)]
app = django.core.handlers.{handler}.{kind}Handler()
"""


def test_django_closes_a_stream_of_which_only_the_head_is_wanted(serve: Serve) -> None:
    needs("django")
    source = DJANGO.format(handler="wsgi", kind="WSGI")
    server = serve("--max-threads", "2", source=source, checked=False)  # As above.
    for _ in range(3):
        assert server.fetch("/stream", "HEAD").status == 200
    wait_until_ended(server, "/stream")
    assert server.stop() == 0, server.said
