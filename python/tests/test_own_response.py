"""What an application says of its own response: how fast it leaves, how long its reader may take nothing, that the
connection ends with it, and that a file is its body."""

from __future__ import annotations

import http.client
import socket
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server
from test_slow_readers import MIB, ask

#: Answers `/LENGTH?NAME=VALUE&...` with so many bytes and these fields. `/file` is a file that the engine sends.
SOURCES = {
    "wsgi": """
from urllib.parse import parse_qsl

def app(environ, start_response):
    what = environ["PATH_INFO"][1:]
    start_response("200 OK", [("Content-Type", "text/plain"), *parse_qsl(environ["QUERY_STRING"])])
    if what == "wrapped":
        return environ["wsgi.file_wrapper"](open("files/large", "rb"))
    if what == "parts":
        return (b"x" * 10000 for _ in range(10))
    return [b"x" * int(what or 0)]
""",
    "asgi": """
from urllib.parse import parse_qsl

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    what, fields = scope["path"][1:], parse_qsl(scope["query_string"])
    await send({"type": "http.response.start", "status": 200, "headers": [(n.lower(), v) for n, v in fields]})
    if what == "wrapped":
        import os
        await send({"type": "http.response.pathsend", "path": os.path.abspath("files/large")})
        return
    if what == "parts":
        for _ in range(10):
            await send({"type": "http.response.body", "body": b"x" * 10000, "more_body": True})
        what = 0
    await send({"type": "http.response.body", "body": b"x" * int(what or 0)})
""",
}

#: More than the buffers of two sockets hold.
LARGE = 50 * MIB


@pytest.fixture(params=SOURCES)
def start(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> Serve:
    """Starts the application of one interface, with one thread. The validator would refuse ``Connection``."""
    (tmp_path / "files").mkdir()
    threads = ["--max-threads", "1"] if request.param == "wsgi" else []

    def start(*arguments: str) -> Server:
        return serve(*threads, *arguments, source=SOURCES[request.param], checked=False)

    return start


@pytest.mark.parametrize("path", ["/100000", "/parts"])
def test_a_response_leaves_as_fast_as_it_asks_for(start: Serve, path: str) -> None:
    server = start()
    begun = time.monotonic()
    reply = server.fetch(f"{path}?Maitred-Bandwidth=200000")
    # Without what may leave at once.
    assert time.monotonic() - begun >= 0.4
    assert reply.body == b"x" * 100_000
    assert reply.headers["Maitred-Bandwidth"] is None


def test_a_slow_response_keeps_nobody(start: Serve) -> None:
    server = start()
    peer, _ = ask(server, "/100000?Maitred-Bandwidth=1000")
    with peer:
        assert len(server.fetch("/100000").body) == 100_000


def test_a_reader_has_the_time_that_the_response_says(start: Serve) -> None:
    server = start()
    peer, response = ask(server, f"/{LARGE}?Maitred-Send-Timeout=0.2")
    with peer:
        assert response.getheader("Maitred-Send-Timeout") is None
        server.wait_for(r"warn 127\.0\.0\.1: nothing was taken of a response; closed \(Maitred-Send-Timeout\)")
        with pytest.raises((OSError, http.client.IncompleteRead)):
            response.read()


def test_the_time_is_longer_where_the_response_says_so(start: Serve) -> None:
    server = start("--body-timeout", "0.2")
    patient, response = ask(server, f"/{LARGE}?Maitred-Send-Timeout=60")
    other, cut = ask(server, f"/{LARGE}")
    with patient, other:
        server.wait_for(r"nothing was taken of a response; closed \(--body-timeout\)")
        with pytest.raises((OSError, http.client.IncompleteRead)):
            cut.read()
        assert len(response.read()) == LARGE


def test_what_means_nothing_is_told_once(start: Serve) -> None:
    server = start()
    for _ in range(2):
        reply = server.fetch("/7?Maitred-Bandwidth=20k&Maitred-Send-Timeout=soon")
        assert reply.body == b"x" * 7
        assert reply.headers["Maitred-Bandwidth"] is None and reply.headers["Maitred-Send-Timeout"] is None
    said = [
        "GET /7?Maitred-Bandwidth=20k&Maitred-Send-Timeout=soon",
        "Maitred-Bandwidth cannot be '20k', so it has no effect: write bytes a second in digits, or off",
        "Maitred-Send-Timeout cannot be 'soon', so it has no effect: write seconds from 0.001 to 3600",
    ]
    assert server.stop() == 0
    lines = [line for line in server.said.splitlines() if " warn " in line]
    assert len(lines) == 2 and all(said[0] in line for line in lines), server.said
    assert said[1] in lines[0] and said[2] in lines[1]


def test_a_filter_keeps_an_application_from_it(start: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text('[[filter]]\npath = "/1*"\nremove-response = "Maitred-Bandwidth"\n')
    # At this rate it would take a day.
    assert len(start().fetch("/100000?Maitred-Bandwidth=1").body) == 100_000


def test_the_field_of_nginx_is_for_a_proxy_unless_files_are_submitted(start: Serve, tmp_path: Path) -> None:
    (tmp_path / "files/page").write_bytes(bytes(100_000))
    # At this rate it would take a day.
    assert start().fetch("/100000?X-Accel-Limit-Rate=1").headers["X-Accel-Limit-Rate"] == "1"
    server = start("--sendfile", f"/inside={tmp_path}/files")
    for path in ("/100000?", "/?X-Accel-Redirect=/inside/page&"):
        begun = time.monotonic()
        reply = server.fetch(f"{path}X-Accel-Limit-Rate=200000")
        assert time.monotonic() - begun >= 0.4, path
        assert len(reply.body) == 100_000 and reply.headers["X-Accel-Limit-Rate"] is None


def asked(server: Server, targets: list[str]) -> tuple[list[bytes], bytes]:
    """The heads of the answers on one connection, as many as come before the server closes it, with the last body."""
    heads, rest = [], b""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        for target in targets:
            peer.sendall(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            while not rest.endswith((b"x" * 5, b"0\r\n\r\n")):
                part = peer.recv(65536)
                if not part:
                    return heads, rest
                rest += part
            heads.append(rest.partition(b"\r\n\r\n")[0])
            rest = b""
        peer.shutdown(socket.SHUT_WR)
        return heads, peer.recv(1)


@pytest.mark.parametrize("path", ["/5", "/parts"])
def test_close_ends_the_connection_behind_the_response_and_is_no_matter_for_a_warning(start: Serve, path: str) -> None:
    server = start()
    heads, _ = asked(server, [path, path])
    assert len(heads) == 2, "it stays otherwise"
    reply = server.raw(f"GET {path}?Connection=close HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nconnection: close\r\n" in reply.lower()
    assert b"x" * 5 in reply
    # What is no matter of an application is.
    server.fetch(f"{path}?Keep-Alive=5")
    server.wait_for("the application set Keep-Alive, which belongs to the connection")
    assert server.stop() == 0
    assert server.said.count(" warn ") == 1, server.said


@pytest.mark.parametrize("target", [f"/{LARGE}", "/wrapped", "/?X-Sendfile={folder}/files/large"])
def test_the_thread_is_free_while_what_it_has_submitted_leaves(start: Serve, tmp_path: Path, target: str) -> None:
    (tmp_path / "files/large").write_bytes(b"x" * LARGE)
    server = start("--sendfile", f"/inside={tmp_path}/files")
    peer, response = ask(server, target.format(folder=tmp_path))
    with peer:
        # With the only thread there is, or the only loop.
        assert server.fetch("/5").body == b"xxxxx"
        assert len(response.read()) == LARGE
