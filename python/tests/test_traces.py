"""Spans of requests and of their calls to other servers, as a collector gets them: ids, names, times, attributes, sampling."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import by_h2
import pytest
import secured
from answering import Answering, answering, ok
from certificates import authority, needs_openssl
from collector import Collector, Span, collector
from conftest import PATIENCE, Serve, Server
from frames import Connection
from test_outgoing_insight import dead
from websocket_frames import close, text
from websocket_wire import connect

__all__ = ["authority", "collector", "dead"]

#: Everything that the tests ask for, by the path.
WORK = """
import asyncio, os, time

from maitred import http

blocking, awaited = http.Client(timeout=20), http.AsyncClient(timeout=20)
secret = http.Client(timeout=20, propagate=False)

def status(path):
    return f"{path[8:]} As Asked" if path.startswith("/status/") else "200 OK"

def called(path):
    return os.environ["DEAD" if path == "/refused" else "OTHER"] + "/stock?token=secret"
"""
WSGI = WORK + """
def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/raises":
        raise ValueError("as asked")
    if path == "/slow":
        time.sleep(0.01)
    if path in ("/call", "/refused", "/secret"):
        try:
            (secret if path == "/secret" else blocking).get(called(path))
        except http.HTTPError:
            pass
    length = 100 if path == "/cut" else 0
    body = f"{environ.get('HTTP_TRACEPARENT')} {environ.get('HTTP_TRACESTATE')}".encode()
    start_response(status(path), [("Content-Length", str(len(body) + length))])
    return [body]
"""
ASGI = WORK + """
async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    if scope["type"] != "http":
        return
    path = scope["path"]
    if path == "/raises":
        raise ValueError("as asked")
    if path == "/slow":
        await asyncio.sleep(0.01)
    if path in ("/call", "/refused"):
        try:
            await awaited.get(called(path))
        except http.HTTPError:
            pass
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    body = f"{fields.get('traceparent')} {fields.get('tracestate')}".encode()
    length = len(body) + (100 if path == "/cut" else 0)
    await send({"type": "http.response.start", "status": int(status(path)[:3]), "headers": [(b"content-length", b"%d" % length)]})
    await send({"type": "http.response.body", "body": body})
"""
SOURCES = {"wsgi": WSGI, "asgi": ASGI}
#: Names of the conventions before 1.23.
OLD = re.compile(r"http\.(method|url|target|host|scheme|status_code|flavor|client_ip|user_agent|server_name)|net\..*")
PHASES = ["accept", "queue", "gate", "filter", "run", "receive", "write"]
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{CALLER}-01"
#: Clocks of client and server are one, but the server counts from another zero.
SLACK = 5 * 10**9


@pytest.fixture
def other() -> Iterator[Answering]:
    with answering(ok(b"stock")) as server:
        yield server


@pytest.fixture(params=SOURCES)
def interface(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def traced(serve: Serve, collector: Collector, source: str, *arguments: str, **environment: str) -> Server:
    """A server that sends its spans there, each at once."""
    return serve("--otlp", collector.url, *arguments, source=source, checked=False, **{"OTEL_BSP_SCHEDULE_DELAY": "20"} | environment)


def follows(field: str) -> tuple[str, str, int]:
    """Trace, span and flags of a `traceparent`."""
    found = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", field)
    assert found, field
    return found[1], found[2], int(found[3], 16)


def told(server: Server, path: str = "/", **fields: str) -> tuple[str, str, int]:
    """What the application gets as `traceparent`."""
    return follows(server.fetch(path, **fields).body.decode().split()[0])


def check_times(span: Span, before: int, after: int, within: tuple[int, int] | None = None) -> None:
    """It lies in the time of the client; its phases follow each other, and nothing is left between them."""
    assert before - SLACK <= span.start <= span.end <= after + SLACK, (before, span.start, span.end, after)
    times = [time for _, time, _ in span.events]
    assert times == sorted(times) and all(span.start <= time <= span.end for time in times), span


def test_a_request_is_a_span(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], "--trace-trust", "all", "--trace-query")
    before = time.time_ns()
    reply = server.fetch("/orders/7?colour=red", traceparent=PARENT, tracestate="a=1,b=2", User_Agent="tests/1")
    after = time.time_ns()
    span = collector.span("/orders/7")
    assert (span.trace, span.parent, span.kind, span.status) == (TRACE, CALLER, "SERVER", "UNSET")
    field, state = reply.body.decode().split()
    assert follows(field) == (TRACE, span.id, 1) and (state, span.state) == ("a=1,b=2", "a=1,b=2")
    wanted = {
        "http.request.method": "GET", "url.path": "/orders/7", "url.query": "colour=red", "url.scheme": secured.SCHEME,
        "http.response.status_code": 200, "server.address": "127.0.0.1", "server.port": server.port, "client.address": "127.0.0.1",
        "network.peer.address": "127.0.0.1", "network.protocol.version": by_h2.VERSION, "user_agent.original": "tests/1",
    }
    assert {key: span.attributes.get(key) for key in wanted} == wanted
    assert not [key for key in span.attributes if OLD.fullmatch(key)] and "error.type" not in span.attributes
    route = span.attributes.get("http.route")
    assert span.name == ("GET" if route is None else f"GET {route}") and "7" not in span.name
    check_times(span, before, after)


def test_phases_fill_the_span(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface])
    server.fetch("/")
    span = collector.span("/")
    names = [name for name, _, _ in span.events]
    assert names == [name for name in PHASES if name in names] and {"run", "write"} <= set(names), names
    assert span.events[0][1] == span.start
    times = [time for _, time, _ in span.events] + [span.end]
    assert sum(end - begin for begin, end in zip(times, times[1:])) == span.end - span.start


def test_phases_may_be_spans(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], "--trace-spans", "spans")
    server.fetch("/")
    collector.until("the phases came", lambda: bool(collector.spans(kind="SERVER") and collector.spans(kind="INTERNAL")))
    [span], phases = collector.spans(kind="SERVER"), collector.spans(kind="INTERNAL")
    assert {(each.trace, each.parent) for each in phases} == {(span.trace, span.id)} and not span.events
    assert len({each.id for each in phases} | {span.id}) == len(phases) + 1
    phases.sort(key=lambda each: (each.start, PHASES.index(each.name)))
    assert [each.name for each in phases] == [name for name in PHASES if name in [each.name for each in phases]]
    assert (phases[0].start, phases[-1].end) == (span.start, span.end)
    assert all(one.end == following.start for one, following in zip(phases, phases[1:]))
    assert sum(each.end - each.start for each in phases) == span.end - span.start


def test_what_fails_says_how(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], OTEL_TRACES_SAMPLER="always_off")
    for path in ("/status/404", "/status/503", "/raises"):
        server.fetch(path)
    with pytest.raises(Exception):  # The body is shorter than it was declared.
        server.fetch("/cut")
    found = {span.attributes["url.path"]: span for span in collector.wait(3)}
    # Always kept, and a client's own fault is none.
    assert {path: span.status for path, span in found.items()} == dict.fromkeys(["/status/503", "/raises", "/cut"], "ERROR")
    assert (found["/status/503"].attributes["error.type"], found["/raises"].attributes["error.type"]) == ("503", "500")
    assert found["/cut"].attributes["error.type"] == "cut"


def test_unknown_methods_do_not_become_names(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector, WSGI)
    server.fetch("/", method="BREW")
    span = collector.span("/")
    assert (span.attributes["http.request.method"], span.attributes["http.request.method_original"]) == ("_OTHER", "BREW")
    assert span.name.split()[0] == "HTTP"


# Sampling

#: Sampler and its argument; for each request the flags and the trace of its caller (none: it sends nothing), and whether it is kept.
LOW, HIGH = "1" * 16 + "0" * 15 + "1", "1" * 16 + "f" * 16
SAMPLERS = [
    ("", "", [("", "", True), ("00", TRACE, False)]),
    ("always_on", "", [("00", TRACE, True)]),
    ("always_off", "", [("01", TRACE, False)]),
    ("traceidratio", "0.5", [("00", LOW, True), ("01", HIGH, False)]),
    ("traceidratio", "0", [("01", LOW, False)]),
    ("traceidratio", "1", [("00", HIGH, True)]),
    ("parentbased_always_on", "", [("01", TRACE, True), ("00", TRACE, False), ("", "", True)]),
    ("parentbased_always_off", "", [("01", TRACE, True), ("", "", False)]),
    ("parentbased_traceidratio", "0", [("01", HIGH, True), ("", "", False)]),
    ("parentbased_traceidratio", "1", [("00", LOW, False), ("", "", True)]),
]


@pytest.mark.parametrize(("sampler", "ratio", "requests"), SAMPLERS)
def test_the_sampler_decides_and_the_application_is_told(
    serve: Serve, collector: Collector, sampler: str, ratio: str, requests: list[tuple[str, str, bool]]
) -> None:
    variables = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": ratio}
    server = traced(serve, collector, WSGI, "--trace-slow", "0", "--trace-trust", "all", **{k: v for k, v in variables.items() if v})
    expected = set()
    for flags, trace, keeps in requests:
        followed, span, told_flags = told(server, traceparent=f"00-{trace}-{CALLER}-{flags}") if flags else told(server)
        assert followed == trace or not trace
        assert told_flags & 1 == keeps, (flags, trace)
        expected |= {(followed, span)} if keeps else set()
    # Its end sends what it has.
    assert server.stop() == 0, server.said
    assert {(span.trace, span.id) for span in collector.spans()} == expected


def test_slow_requests_are_kept_whatever_the_sampler_says(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], "--trace-slow", "0.001", OTEL_TRACES_SAMPLER="always_off")
    trace, span, flags = told(server, "/slow")
    kept = collector.span("/slow")
    assert (kept.trace, kept.id, flags) == (trace, span, 0)


@pytest.mark.parametrize(("trust", "is_parent"), [("all", True), ("proxies", False), ("none", False), ("", False)])
def test_a_caller_without_trust_is_linked(serve: Serve, collector: Collector, trust: str, is_parent: bool) -> None:
    server = traced(serve, collector, WSGI, *(["--trace-trust", trust] if trust else []))
    trace, own, _ = told(server, traceparent=PARENT)
    span = collector.span("/")
    assert (trace == TRACE, own) == (is_parent, span.id)
    assert (span.trace, span.parent) == ((TRACE, CALLER) if is_parent else (trace, ""))
    assert span.links == ([] if is_parent else [(TRACE, CALLER)])


@pytest.mark.parametrize("signals", ["none", "metrics", "metrics,logs"])
def test_without_spans_the_fields_pass_as_they_came(serve: Serve, collector: Collector, interface: str, signals: str) -> None:
    arguments = [] if signals == "none" else ["--otlp", collector.url, "--otlp-signals", signals]
    server = serve(*arguments, source=SOURCES[interface], checked=False)
    assert server.fetch("/", traceparent=PARENT, tracestate="a=1").body.decode() == f"{PARENT} a=1"


# Calls to other servers


def sent_to(other: Answering) -> tuple[str, str, int]:
    """What the last request had as `traceparent`, which is there once."""
    fields = re.findall(rb"(?mi)^traceparent: (.*)\r$", other.requests[-1])
    assert len(fields) == 1, other.requests[-1]
    return follows(fields[0].decode())


def test_a_call_is_a_span_below_and_the_service_continues_it(serve: Serve, collector: Collector, other: Answering, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], OTHER=other.url)
    before = time.time_ns()
    own = told(server, "/call")
    after = time.time_ns()
    collector.wait(2)
    [span], [call] = collector.spans(kind="SERVER"), collector.spans(kind="CLIENT")
    assert own == (span.trace, span.id, 1)
    assert (call.trace, call.parent) == (span.trace, span.id)
    assert sent_to(other) == (call.trace, call.id, 1)
    assert span.start <= call.start <= call.end <= span.end
    check_times(call, before, after)
    wanted = {"http.request.method": "GET", "server.address": "127.0.0.1", "server.port": other.port, "http.response.status_code": 200}
    assert {key: call.attributes.get(key) for key in wanted} == wanted
    assert (call.name, call.status) == ("GET", "UNSET")
    assert "secret" not in str(call)


def test_a_call_that_is_refused_is_an_error(serve: Serve, collector: Collector, dead: int, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], DEAD=f"http://127.0.0.1:{dead}")
    server.fetch("/refused")
    collector.wait(2)
    [call] = collector.spans(kind="CLIENT")
    assert (call.status, call.attributes["error.type"], call.attributes["server.port"]) == ("ERROR", "refused", dead)
    assert "http.response.status_code" not in call.attributes
    [span] = collector.spans(kind="SERVER")
    assert span.status == "UNSET"


def test_a_client_may_keep_the_trace_back(serve: Serve, collector: Collector, other: Answering) -> None:
    server = traced(serve, collector, WSGI, OTHER=other.url)
    server.fetch("/secret", traceparent=PARENT)
    assert b"trace" not in other.requests[-1].lower()


# Protocols


def test_requests_of_one_connection_are_traces_of_their_own(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector, WSGI)
    peer = server.connect()
    for number in range(3):
        peer.request("GET", f"/{number}")
        peer.getresponse().read()
    peer.close()
    spans = collector.wait(3)
    assert len({span.trace for span in spans}) == len({span.id for span in spans}) == 3


def test_streams_of_http_2(serve: Serve, collector: Collector, interface: str) -> None:
    server = traced(serve, collector, SOURCES[interface], "--trace-trust", "all")
    with Connection.to(server.port) as connection:
        streams = [connection.ask(f"/{number}", fields=[("traceparent", PARENT)]) for number in range(3)]
        bodies = [bytes(connection.answer(stream).body).decode() for stream in streams]
    spans = {span.attributes["url.path"]: span for span in collector.wait(3)}
    for number, body in enumerate(bodies):
        span = spans[f"/{number}"]
        assert follows(body.split()[0]) == (TRACE, span.id, 1)
        assert (span.attributes["network.protocol.version"], span.attributes["server.address"]) == ("2", "localhost")


@needs_openssl
def test_tls(serve: Serve, collector: Collector, authority: object) -> None:
    pair = authority.issue("localhost", "127.0.0.1")  # type: ignore[attr-defined]
    server = traced(serve, collector, WSGI, *pair.options)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
        context: ssl.SSLContext = authority.client()  # type: ignore[attr-defined]
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            peer.sendall(b"GET /secure HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while peer.recv(65536):
                pass
    span = collector.span("/secure")
    assert (span.attributes["url.scheme"], span.attributes["server.address"]) == ("https", "localhost")


def test_a_websocket_is_a_span_of_its_handshake(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector, ASGI, "--trace-trust", "all")
    with connect(server.port, "/socket", f"traceparent: {PARENT}") as peer:
        peer.send(text("hello"))
        assert peer.frame()
        peer.send(close())
        peer.frame()
    span = collector.span("/socket")
    assert (span.trace, span.parent, span.attributes["http.response.status_code"], span.status) == (TRACE, CALLER, 101, "UNSET")


def test_the_conditions_of_a_proxy(serve: Serve, collector: Collector) -> None:
    """Scheme, host and client are those that a trusted proxy tells, and the peer is the proxy."""
    server = traced(serve, collector, WSGI, "--trusted-proxies", "127.0.0.1")
    server.fetch("/", X_Forwarded_For="203.0.113.9", X_Forwarded_Proto="https", Host="shop.example", traceparent=PARENT)
    span = collector.span("/")
    assert (span.trace, span.parent) == (TRACE, CALLER)
    wanted = {"url.scheme": "https", "server.address": "shop.example", "client.address": "203.0.113.9", "network.peer.address": "127.0.0.1"}
    assert {key: span.attributes.get(key) for key in wanted} == wanted


def test_files_have_their_mount_as_route(serve: Serve, collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.css").write_text("a{}")
    server = traced(serve, collector, WSGI, "--static", "/static=files")
    assert server.fetch("/static/a.css").status == 200
    span = collector.span("/static/a.css")
    assert (span.name, span.attributes["http.route"]) == ("GET /static/*", "/static/*")
