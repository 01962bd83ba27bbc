"""What callers send as `traceparent` and `tracestate`: the application gets one valid field, whatever came (W3C Trace Context §3.2, §3.3)."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from collector import Collector, Span, collecting
from conftest import PATIENCE, Server
from frames import Connection

WSGI = """
import json

def app(environ, start_response):
    fields = [[name[5:].lower(), value] for name, value in environ.items() if name.startswith("HTTP_") and "TRACE" in name]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(fields).encode()]
"""
ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    fields = [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"] if b"trace" in name]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(fields).encode()})
"""
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{CALLER}-01"


@dataclass(frozen=True)
class Row:
    what: str
    #: As they are sent, in latin-1.
    fields: tuple[tuple[str, str], ...]
    #: Whether the trace of the caller goes on.
    goes_on: bool
    #: What the application gets as `tracestate`.
    state: str = ""


def parent(value: str, goes_on: bool = False) -> tuple[tuple[tuple[str, str], ...], bool]:
    return (("traceparent", value),), goes_on


ROWS = [
    Row("sampled", *parent(GOOD, True)),
    Row("flags beside sampled", *parent(f"00-{TRACE}-{CALLER}-ff", True)),
    Row("random trace", *parent(f"00-{TRACE}-{CALLER}-03", True)),
    Row("a later version", *parent(f"01-{TRACE}-{CALLER}-01", True)),
    Row("a later version with more", *parent(f"cc-{TRACE}-{CALLER}-01-what-the-future-has", True)),
    Row("blanks around", *parent(f"  {GOOD} \t", True)),
    Row("name in capitals", (("TraceParent", GOOD),), True),
    Row("a later version, more without a hyphen", *parent(f"cc-{TRACE}-{CALLER}-01.more")),
    Row("a later version, flags too long", *parent(f"cc-{TRACE}-{CALLER}-011")),
    Row("version ff", *parent(f"ff-{TRACE}-{CALLER}-01")),
    Row("version in capitals", *parent(f"0A-{TRACE}-{CALLER}-01")),
    Row("version of one digit", *parent(f"0-{TRACE}-{CALLER}-01")),
    Row("version 00 with more", *parent(f"{GOOD}-more")),
    Row("version 00 with a hyphen behind", *parent(f"{GOOD}-")),
    Row("trace in capitals", *parent(f"00-{TRACE.upper()}-{CALLER}-01")),
    Row("trace of zeros", *parent(f"00-{'0' * 32}-{CALLER}-01")),
    Row("trace too short", *parent(f"00-{TRACE[:-1]}-{CALLER}-01")),
    Row("trace too long", *parent(f"00-{TRACE}0-{CALLER}-01")),
    Row("trace not hexadecimal", *parent(f"00-{TRACE[:-1]}g-{CALLER}-01")),
    Row("trace with a sign", *parent(f"00-+{TRACE[1:]}-{CALLER}-01")),
    Row("span in capitals", *parent(f"00-{TRACE}-{CALLER.upper()}-01")),
    Row("span of zeros", *parent(f"00-{TRACE}-{'0' * 16}-01")),
    Row("span too short", *parent(f"00-{TRACE}-{CALLER[:-1]}-01")),
    Row("span too long", *parent(f"00-{TRACE}-{CALLER}0-01")),
    Row("span not hexadecimal", *parent(f"00-{TRACE}-{CALLER[:-1]}_-01")),
    Row("flags of one digit", *parent(f"00-{TRACE}-{CALLER}-1")),
    Row("flags of three digits", *parent(f"00-{TRACE}-{CALLER}-001")),
    Row("flags not hexadecimal", *parent(f"00-{TRACE}-{CALLER}-0x")),
    Row("no flags", *parent(f"00-{TRACE}-{CALLER}")),
    Row("other separators", *parent(GOOD.replace("-", "_"))),
    Row("blanks inside", *parent(GOOD.replace("-", "- "))),
    Row("nothing", *parent("")),
    Row("hyphens", *parent("---")),
    Row("in quotes", *parent(f'"{GOOD}"')),
    Row("not ASCII", *parent(f"00-{TRACE[:-1]}\xb2-{CALLER}-01")),
    Row("full-width digits", *parent(GOOD.replace("4", "\uff14").encode().decode("latin-1"))),
    Row("a list", *parent(f"{GOOD}, {GOOD}")),
    Row("four kilobytes", *parent(GOOD + "0" * 4096)),
    Row("the same field twice", (("traceparent", GOOD), ("traceparent", GOOD)), False),
    Row("two fields that differ", (("traceparent", GOOD), ("Traceparent", GOOD.replace("4", "5"))), False),
    Row("a good field and a bad one", (("traceparent", "x"), ("traceparent", GOOD)), False),
    Row("another name", (("trace-parent", GOOD),), False),
    Row("a state", (("traceparent", GOOD), ("tracestate", "a=1, b=2")), True, "a=1,b=2"),
    Row("a state in two fields", (("traceparent", GOOD), ("tracestate", "a=1"), ("tracestate", "b=2")), True, "a=1,b=2"),
    Row("a state of 512 bytes", (("traceparent", GOOD), ("tracestate", "a=" + "x" * 254 + ",b=" + "y" * 253)), True, "a=" + "x" * 254 + ",b=" + "y" * 253),
    # Whole members, from the front (§3.3.1.5).
    Row("a state of 8 KiB", (("traceparent", GOOD), ("tracestate", ",".join(f"k{n}=" + "x" * 250 for n in range(32)))), True,
        ",".join(f"k{n}=" + "x" * 250 for n in range(2))),
    Row("a state of 33 members", (("traceparent", GOOD), ("tracestate", ",".join(f"k{n}=1" for n in range(33)))), True),
    Row("a state that is none", (("traceparent", GOOD), ("tracestate", "a=1, b")), True),
    Row("a state alone", (("tracestate", "a=1"),), False),
    Row("a state beside a bad field", (("traceparent", "x"), ("tracestate", "a=1")), False),
]


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 40 and len({row.what for row in ROWS}) == len(ROWS)


@pytest.fixture(scope="module", params=["wsgi", "asgi"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Collector]]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "app.py").write_text({"wsgi": WSGI, "asgi": ASGI}[request.param])
    with collecting() as collector:
        arguments = ["app.py", "--otlp", collector.url, "--trace-trust", "all"]
        server = Server(arguments, folder, {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_TRACES_SAMPLER": "always_on"})
        try:
            yield server, collector
            assert server.stop() == 0, server.said
        finally:
            server.kill()


def by_1(server: Server, row: Row, path: str) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in row.fields)
    return server.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode("latin-1")).body


def by_2(server: Server, row: Row, path: str) -> bytes:
    with Connection(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection:
        # Blanks around a value are malformed there (RFC 9113 §8.2.1).
        fields = [(name.lower().encode(), value.strip().encode("latin-1")) for name, value in row.fields]
        return bytes(connection.fetch(path, fields=fields).body)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_application_gets_one_valid_field(place: tuple[Server, Collector], protocol: int) -> None:
    server, collector = place
    got: dict[str, tuple[Row, str, str]] = {}
    wrong = []
    for number, row in enumerate(ROWS):
        path = f"/{protocol}/{number}"
        fields = json.loads((by_1 if protocol == 1 else by_2)(server, row, path))
        parents = [value for name, value in fields if name == "traceparent"]
        states = ",".join(value.replace(" ", "") for name, value in fields if name == "tracestate")
        found = re.fullmatch(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-0[13]", parents[0]) if len(parents) == 1 else None
        if not found or (found[1] == TRACE) != row.goes_on or found[2] == CALLER or states != row.state:
            wrong.append((row.what, fields))
        else:
            got[path] = row, found[1], found[2]
    assert not wrong
    collector.until("all have a span", lambda: len(by_path(collector, protocol)) == len(ROWS))
    for path, span in by_path(collector, protocol).items():
        row, trace, own = got[path]
        assert (span.trace, span.id, span.parent) == (trace, own, CALLER if row.goes_on else ""), row.what


def by_path(collector: Collector, protocol: int) -> dict[str, Span]:
    spans = collector.spans()
    found = {span.attributes["url.path"]: span for span in spans}
    assert len(found) == len(spans), "a request has two spans"
    return {path: span for path, span in found.items() if path.startswith(f"/{protocol}/")}


def test_a_trailer_is_no_parent(place: tuple[Server, Collector]) -> None:
    server, _ = place
    request = f"POST /trailer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: traceparent\r\n\r\n1\r\nx\r\n0\r\ntraceparent: {GOOD}\r\n\r\n"
    fields = json.loads(server.ask(request.encode()).body)
    assert [TRACE in value for name, value in fields if name == "traceparent"] == [False]
