"""What an application learns of a request (PEP 3333, "environ Variables")."""

from __future__ import annotations

import json

import by_h2
import pytest
import secured
from conftest import HERE, Serve, Server


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
        "SERVER_PROTOCOL": by_h2.PROTOCOL,
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "example.org:81",
        "HTTP_ACCEPT": "a, b",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_X_OWN": "caf\xe9",
        "wsgi.version": [1, 0],
        "wsgi.url_scheme": secured.SCHEME,
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


#: What is always there; fields of the request are added.
ALWAYS = {
    *("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "RAW_URI"),
    *("SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REMOTE_ADDR", "REMOTE_PORT"),
    *("wsgi.version", "wsgi.url_scheme", "wsgi.input", "wsgi.errors", "wsgi.multithread", "wsgi.multiprocess"),
    *("wsgi.run_once", "wsgi.file_wrapper", "wsgi.input_terminated", "wsgi.early_hints"),
    "maitred.accepts_encoding",
}
#: The same where TLS ends at the server, of a client without a certificate that names the server.
if secured.WANTED:
    ALWAYS |= {"HTTPS", "SSL_PROTOCOL", "SSL_CIPHER", "SSL_SESSION_RESUMED", "SSL_TLS_SNI", "SSL_CLIENT_VERIFY"}


def test_nothing_of_the_process_is_in_it(serve: Serve) -> None:
    hostile = {"HTTP_PROXY": "http://evil", "REQUEST_METHOD": "EVIL", "CONTENT_LENGTH": "7", "OWN": "secret"}
    server = serve(str(HERE / "apps.py"), **hostile)
    seen = environ(server, b"GET /raw/show HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nConnection: close\r\n\r\n")
    # Connection is the engine's own affair, but an application may look at it.
    assert set(seen) - ALWAYS <= {"HTTP_HOST", "HTTP_USER_AGENT", "HTTP_CONNECTION"}
    assert ALWAYS <= set(seen)
    assert not {"secret", "EVIL", "http://evil"} & {str(value) for value in seen.values()}


def test_texts_are_bytes_as_latin_1(apps: Server) -> None:
    seen = environ(
        apps,
        b"GET /raw/show?a=%C3%A9 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        b"X-Utf-8: caf\xc3\xa9\r\nX-All: " + bytes(range(0x80, 0x100)) + b"\r\nX-Encoded: %C3%A9\r\n\r\n",
    )
    # Each character stands for a byte (PEP 3333, "Unicode Issues"); the query and fields are not decoded. A target with
    # such bytes as they are is none (RFC 3986) and gets 400.
    assert seen["QUERY_STRING"] == "a=%C3%A9"
    assert seen["HTTP_X_UTF_8"] == "café".encode().decode("latin-1")
    assert seen["HTTP_X_ALL"] == bytes(range(0x80, 0x100)).decode("latin-1")
    assert seen["HTTP_X_ENCODED"] == "%C3%A9"
    # All of them are str, of latin-1 characters only.
    json.dumps(seen).encode("ascii")
    assert all(ord(character) < 256 for value in seen.values() if isinstance(value, str) for character in value)


def test_a_decoded_path_is_bytes_as_latin_1(serve: Serve) -> None:
    source = """
def app(environ, start_response):
    status = "200 " + "\u00e9t\u00e9"
    body = environ["PATH_INFO"].encode("latin-1")
    back = ("X-Back", environ["HTTP_X_OWN"])
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), back])
    return [body]
"""
    server = serve(source=source)
    received = server.raw(
        b"GET /caf%C3%A9/%e2%82%AC/%ff%2Fa HTTP/1.1\r\nHost: a\r\nX-Own: \xe2\x82\xac \xff\r\nConnection: close\r\n\r\n"
    )
    head, _, body = received.partition(b"\r\n\r\n")
    assert body == "/café/€/".encode() + b"\xff/a"
    # And back: characters of the application leave as the bytes they stand for.
    assert head.startswith(b"HTTP/1.1 200 \xe9t\xe9\r\n")
    assert b"\r\nX-Back: \xe2\x82\xac \xff\r\n" in head


@pytest.mark.parametrize(
    "call",
    ['start_response("200 OK", [("X-A", "\\u20ac")])', 'start_response("200 \\u20ac", [])', 'start_response("200 OK", [(b"X-A", b"a")])'],
)
def test_what_is_no_latin_1_text_is_refused(serve: Serve, call: str) -> None:
    # Unchecked: the rule that is broken is ours to find.
    server = serve(source=f"def app(environ, start_response):\n    {call}\n    return [b'never']\n", checked=False)
    assert server.fetch("/").status == 500
    server.wait_for("(?s)error GET /: the application raised an exception.*(Error)")


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
