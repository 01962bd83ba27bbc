"""How an application may call what it is given, and what happens at the end, every application inside wsgiref.validate
where that lets the call through."""

from __future__ import annotations

import json
import socket

import pytest
from conftest import PATIENCE, Serve

CALLS = '''
import gc, json, sys, threading
from wsgiref.validate import validator

def headers(environ, start_response):
    found = {key: value for key, value in environ.items() if key.startswith(("HTTP_", "CONTENT_"))}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]

def interval(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(sys.getswitchinterval()).encode()]

def keywords(environ, start_response):
    start_response(status="201 Made", headers=[("X-By", "name")], exc_info=None)
    return [b"made"]

def mixed(environ, start_response):
    start_response("201 Made", headers=[("X-By", "both")])
    return [b"made"]

def wrong(environ, start_response):
    errors = []
    for args, named in [((), {}), (("200 OK",), {}), (("200 OK", [], None, 1), {}), (("200 OK", []), {"other": 1}),
                        (("200 OK", []), {"status": "200 OK"}), ((), {"status": "200 OK"})]:
        try:
            start_response(*args, **named)
        except TypeError:
            errors.append("TypeError")
    start_response("200 OK", [])
    return [" ".join(errors).encode()]

def kept(environ, start_response):
    """The callable after its response has ended, from another thread."""
    answered = threading.Event()
    said = []
    def later():
        answered.wait()
        for call in (lambda: start_response("200 OK", []), lambda: write(b"late")):
            try:
                call()
            except Exception as error:
                said.append(type(error).__name__)
        LATE.append(" ".join(said))
        DONE.set()
    write = start_response("200 OK", [])
    threading.Thread(target=later).start()
    class Body(list):
        def close(self):
            answered.set()
    return Body([b"kept"])

DONE = threading.Event()
LATE = []

def late(environ, start_response):
    DONE.wait()
    start_response("200 OK", [])
    return [LATE[0].encode()]

def unknown(environ, start_response):
    """A type of its own cannot be made by hand."""
    try:
        type(start_response)()
    except TypeError:
        start_response("200 OK", [])
        return [str(gc.is_tracked(start_response)).encode()]

def large(environ, start_response):
    """Blocks that are not copied, and that nobody else refers to any more."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    size = 3_000_000
    return [bytes([65 + number]) * size for number in range(3)] if "list" in environ["QUERY_STRING"] else (
        bytes([65 + number]) * size for number in range(3))

CHECKED = {each.__name__: validator(each) for each in (headers, interval, large)}

def app(environ, start_response):
    _, kind, name = environ["PATH_INFO"].split("/")
    return (CHECKED if kind == "checked" else globals())[name](environ, start_response)
'''


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory):
    from conftest import Server

    folder = tmp_path_factory.mktemp("calls")
    (folder / "app.py").write_text(CALLS)
    server = Server(["app.py", "--max-threads", "4"], folder, {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


@pytest.mark.parametrize("name", ["keywords", "mixed"])
def test_arguments_by_name(calls, name: str) -> None:
    reply = calls.fetch(f"/raw/{name}")
    assert (reply.status, reply.reason, reply.body) == (201, "Made", b"made")


def test_wrong_arguments_are_a_type_error(calls) -> None:
    assert calls.fetch("/raw/wrong").body == b" ".join([b"TypeError"] * 6)


def test_the_callable_outlives_its_response(calls) -> None:
    assert calls.fetch("/raw/kept").body == b"kept"
    assert calls.fetch("/raw/late").body == b"AssertionError RuntimeError"


def test_the_callable_is_not_tracked_and_not_made_by_hand(calls) -> None:
    assert calls.fetch("/raw/unknown").body == b"False"


def fields(server, *lines: bytes) -> dict[str, str]:
    head = b"".join(line + b"\r\n" for line in lines)
    return json.loads(server.ask(b"GET /checked/headers HTTP/1.1\r\nHost: h\r\n" + head + b"\r\n").body)


def test_fields_of_one_character_are_joined_as_well(calls) -> None:
    # Such values are one object in Python, wherever they come from.
    assert fields(calls, b"Accept: a", b"accept: a", b"ACCEPT: b")["HTTP_ACCEPT"] == "a, a, b"
    assert fields(calls, b"Cookie: a", b"Cookie: a")["HTTP_COOKIE"] == "a; a"
    assert fields(calls, b"X-Own: a", b"X-Own: a")["HTTP_X_OWN"] == "a, a"
    assert fields(calls, b"X-Empty:", b"X-Empty:")["HTTP_X_EMPTY"] == ", "


def test_a_content_type_may_be_said_again_but_not_changed(calls) -> None:
    assert fields(calls, b"content-type: a/b", b"Content-Type: a/b")["CONTENT_TYPE"] == "a/b"
    head = b"GET /checked/headers HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n\r\n"
    assert calls.ask(head).status == 400


def test_more_names_than_the_table_of_names_has_places(calls) -> None:
    for start in range(0, 1200, 60):
        names = [f"x-name-{number}" for number in range(start, start + 60)]
        seen = fields(calls, *(f"{name}: {name}".encode() for name in names), b"Accept: text/html")
        assert {seen[f"HTTP_{name.upper().replace('-', '_')}"] for name in names} == set(names)
        assert seen["HTTP_ACCEPT"] == "text/html"
    # Alike in length and at both ends: told apart all the same, in every order.
    alike = [f"x-alike-{middle}-alike-x" for middle in ("aaa", "aba", "abb", "bbb", "bab", "aab", "baa", "bba", "ccc", "cca")]
    for names in (alike, alike[::-1]):
        seen = fields(calls, *(f"{name}: {name}".encode() for name in names))
        assert {seen[f"HTTP_{name.upper().replace('-', '_')}"] for name in names} == set(alike)


def test_what_must_not_reach_the_application_does_not(calls) -> None:
    seen = fields(calls, b"proxy: a", b"PROXY: a", b"Proxy: a", b"X_Own: a", b"x_own-b: a", b"User_Agent: a")
    assert set(seen) == {"HTTP_HOST"}


@pytest.mark.parametrize("query", ["list", "generator"])
def test_large_blocks_arrive_whole_while_others_are_answered(calls, query: str) -> None:
    expected = b"".join(bytes([65 + number]) * 3_000_000 for number in range(3))
    with socket.create_connection(("127.0.0.1", calls.port), PATIENCE) as slow:
        request = f"GET /raw/large?{query} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        slow.sendall(request.encode())
        first = slow.recv(10)
        # What waits for the slow reader survives the requests of others on the same threads.
        for _ in range(5):
            assert calls.fetch(f"/raw/large?{query}").body == expected
        received = bytearray(first)
        while part := slow.recv(1 << 20):
            received += part
    body = bytes(received).partition(b"\r\n\r\n")[2]
    # A generator's blocks have the framing of chunks between them.
    assert body == expected if query == "list" else [body.count(b"A"), body.count(b"C")] == [3_000_000] * 2


def test_the_switch_interval_is_short(calls) -> None:
    assert calls.fetch("/checked/interval").body == b"0.0005"


def test_an_application_that_sets_a_switch_interval_keeps_it(serve: Serve) -> None:
    server = serve(source="import sys\nsys.setswitchinterval(0.002)\n" + CALLS)
    assert server.fetch("/checked/interval").body == b"0.002"


def test_one_thread_is_what_the_flags_say(serve: Serve) -> None:
    source = '''
from wsgiref.validate import validator

@validator
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [repr([environ["wsgi." + name] for name in ("multithread", "multiprocess", "run_once")]).encode()]
'''
    assert serve("--max-threads", "1", source=source).fetch("/").body == b"[False, False, False]"
    assert serve("--max-threads", "2", source=source).fetch("/").body == b"[True, False, False]"


def test_close_also_after_head_and_after_a_client_that_left(serve: Serve) -> None:
    source = '''
import threading
from wsgiref.validate import validator

CLOSED = {name: threading.Event() for name in ("list", "generator", "endless")}

class Body:
    def __init__(self, name, blocks):
        self.name, self.blocks = name, blocks
    def __iter__(self):
        return iter(self.blocks)
    def close(self):
        assert not CLOSED[self.name].is_set()
        CLOSED[self.name].set()

BLOCKS = {"list": lambda: [b"a", b"b"], "generator": lambda: (b"a" for _ in range(3)),
          "endless": lambda: iter(lambda: bytes(100_000), None)}

@validator
def app(environ, start_response):
    name = environ["PATH_INFO"][1:]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["QUERY_STRING"]:
        closed = CLOSED[name].wait(30)
        CLOSED[name].clear()
        return [str(closed).encode()]
    return Body(name, BLOCKS[name]())
'''
    server = serve("--max-threads", "2", source=source)
    for name in ("list", "generator"):
        for method in ("HEAD", "GET"):
            assert server.fetch(f"/{name}", method).status == 200
            assert server.fetch(f"/{name}?closed").body == b"True"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"GET /endless HTTP/1.1\r\nHost: h\r\n\r\n")
        assert peer.recv(100)
    assert server.fetch("/endless?closed").body == b"True"
