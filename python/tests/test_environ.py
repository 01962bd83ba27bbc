"""What an application learns of a request (PEP 3333, "environ Variables")."""

from __future__ import annotations

import json

import pytest
from conftest import Server


def environ(server: Server, request: bytes) -> dict[str, object]:
    reply = server.ask(request)
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def test_the_table(apps: Server) -> None:
    seen = environ(
        apps,
        b"POST /checked/show?a=%20b&c HTTP/1.1\r\n"
        b"Host: example.org:81\r\nConnection: close\r\nContent-Type: text/x-own; a=b\r\nContent-Length: 3\r\n"
        b"Accept: a\r\nCookie: a=1\r\nX-Own: caf\xe9\r\naccept: b\r\nCookie: b=2\r\n"
        b"X_Own: spoofed\r\nProxy: http://evil\r\n\r\nabc",
    )
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/checked/show",
        "QUERY_STRING": "a=%20b&c",
        "REQUEST_URI": "/checked/show?a=%20b&c",
        "RAW_URI": "/checked/show?a=%20b&c",
        "CONTENT_TYPE": "text/x-own; a=b",
        "CONTENT_LENGTH": "3",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(apps.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "example.org:81",
        "HTTP_ACCEPT": "a, b",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_X_OWN": "caf\xe9",
        "wsgi.version": [1, 0],
        "wsgi.url_scheme": "http",
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    assert {key: seen.get(key) for key in expected} == expected
    assert int(str(seen["REMOTE_PORT"])) > 0
    absent = {"HTTP_PROXY", "HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH", "PATH", "HOME"}
    assert absent.isdisjoint(seen)


def test_a_get_has_no_content_fields(apps: Server) -> None:
    seen = environ(apps, b"GET /checked/show HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert {"CONTENT_TYPE", "CONTENT_LENGTH"}.isdisjoint(seen)
    assert seen["QUERY_STRING"] == ""


def test_a_chunked_body_has_a_length_and_no_coding(apps: Server) -> None:
    seen = environ(
        apps,
        b"POST /checked/show HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    )
    assert seen["CONTENT_LENGTH"] == "5"
    assert "HTTP_TRANSFER_ENCODING" not in seen


@pytest.mark.parametrize(
    ("path", "decoded"),
    [
        (b"/raw/show", "/raw/show"),
        (b"/r%61w/show", "/raw/show"),
        (b"/raw%2Fshow", "/raw/show"),
        (b"http://example.org/raw/show", "/raw/show"),
    ],
)
def test_path_info_is_decoded(apps: Server, path: bytes, decoded: str) -> None:
    seen = environ(apps, b"GET " + path + b" HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
    assert seen["PATH_INFO"] == decoded
    assert seen["REQUEST_URI"] == path.decode()


def test_the_authority_of_the_target_replaces_host(apps: Server) -> None:
    request = b"GET http://a.example/raw/show HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n"
    assert environ(apps, request)["HTTP_HOST"] == "a.example"


def test_http_1_0_without_host(apps: Server) -> None:
    seen = environ(apps, b"GET /checked/show HTTP/1.0\r\n\r\n")
    assert seen["SERVER_PROTOCOL"] == "HTTP/1.0"
    assert "HTTP_HOST" not in seen


def test_wsgi_errors_reach_the_log_line_by_line(apps: Server) -> None:
    start = len(apps.said)
    assert apps.fetch("/checked/log").body == b"logged"
    apps.wait_for(r"(?m)^.*one two\n(.*\n)*.*three\n(.*\n)*.*unfinished\n", start)


def test_an_application_thread_is_a_thread_of_python(apps: Server) -> None:
    kind, name, daemon, alive = json.loads(apps.fetch("/checked/thread").body)
    assert (kind, daemon, alive) == ("Thread", True, True)
    assert name


def test_one_thread_is_not_multithread(serve) -> None:
    source = (
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "    return [str(environ['wsgi.multithread']).encode()]\n"
    )
    assert serve("--max-threads", "1", source=source).fetch("/").body == b"False"
