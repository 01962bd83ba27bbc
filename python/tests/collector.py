"""A collector of OpenTelemetry for tests: OTLP/HTTP in protobuf and JSON. It keeps every request, and answers as the test says.

Decoding is that of the `opentelemetry-proto` package, in which unknown fields, wrong types and ids of a wrong length are errors.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from conftest import PATIENCE, needs

needs("opentelemetry.proto")

from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2  # noqa: E402
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: E402
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402
from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: E402

#: By path: the message of a request and of its answer, and the name of the count in a partial success.
SIGNALS: dict[str, tuple[Any, Any, str]] = {
    "/v1/traces": (trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse, "rejected_spans"),
    "/v1/metrics": (metrics_service_pb2.ExportMetricsServiceRequest, metrics_service_pb2.ExportMetricsServiceResponse, "rejected_data_points"),
    "/v1/logs": (logs_service_pb2.ExportLogsServiceRequest, logs_service_pb2.ExportLogsServiceResponse, "rejected_log_records"),
}
PROTOBUF, JSON = "application/x-protobuf", "application/json"
#: OTLP/JSON has these as hexadecimal digits, JSON of protobuf as base64.
IDS = {"traceId", "spanId", "parentSpanId"}


@dataclass(frozen=True)
class Answer:
    """What the collector does with a request."""

    status: int = 200
    retry_after: str = ""
    #: Of a partial success.
    rejected: int = 0
    #: It answers when the test lets it go on.
    holds: bool = False
    resets: bool = False
    #: Its body goes on until the client has gone.
    endless: bool = False


TAKES, HOLDS, RESETS = Answer(), Answer(holds=True), Answer(resets=True)


@dataclass(frozen=True)
class Post:
    """A request as it came, and what is in it."""

    path: str
    fields: Message
    size: int
    message: Any
    #: Given its answer, of which this is the status; 0 for none.
    status: int


@dataclass(frozen=True)
class Span:
    trace: str
    id: str
    parent: str
    name: str
    kind: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]
    links: list[tuple[str, str]]
    status: str
    flags: int
    state: str
    #: The library that has made it.
    scope: str
    resource: dict[str, Any]


@dataclass(frozen=True)
class Point:
    """Of a metric; `data` is the message, a number or a histogram."""

    attributes: dict[str, Any]
    resource: dict[str, Any]
    unit: str
    kind: str
    data: Any


class Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Of a connection that was reset, or of a request that the collector has put down among its faults."""


@dataclass
class Collector:
    #: For the next requests, in their order; then `otherwise`.
    answers: list[Answer] = field(default_factory=list)
    otherwise: Answer = TAKES
    posts: list[Post] = field(default_factory=list)
    #: What could not be decoded.
    faults: list[str] = field(default_factory=list)
    #: Requests that have come, answered or not.
    asked: int = 0
    #: Requests that are held.
    held: int = 0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        self.goes_on = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                collector.take(self)

            def log_message(self, *arguments: Any) -> None:
                return

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        self.goes_on.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self.changed:
            self.asked += 1
            answer = self.answers.pop(0) if self.answers else self.otherwise
            self.held += answer.holds
            self.changed.notify_all()
        if answer.holds:
            self.goes_on.wait(PATIENCE)
        try:
            message = decoded(request.path, request.headers, body)
        except Exception as fault:
            self.keep(None, f"{request.path}: {type(fault).__name__}: {fault}")
            raise
        status = 0 if answer.resets else answer.status
        self.keep(Post(request.path, request.headers, len(body), message, status), "")
        if answer.resets:
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.connection.close()
            request.close_connection = True
            return
        reply(request, answer)

    def keep(self, post: Post | None, fault: str) -> None:
        with self.changed:
            if post:
                self.posts.append(post)
            if fault:
                self.faults.append(fault)
            self.changed.notify_all()

    def until(self, what: str, is_so: Callable[[], bool]) -> None:
        with self.changed:
            self.changed.wait_for(lambda: bool(self.faults) or is_so(), PATIENCE)
            assert not self.faults, self.faults
            assert is_so(), f"{what}; the collector has {[(post.path, post.status) for post in self.posts][-20:]}"

    def taken(self, path: str) -> list[Any]:
        """The messages that were answered with 200."""
        return [post.message for post in self.posts if post.path == path and post.status == 200]

    def spans(self, path: str = "", kind: str = "") -> list[Span]:
        """Of requests for this path, and of this kind."""
        found = [span for message in self.taken("/v1/traces") for span in spans_of(message)]
        return [span for span in found if path in ("", span.attributes.get("url.path")) and kind in ("", span.kind)]

    def wait(self, count: int = 1, path: str = "", kind: str = "") -> list[Span]:
        """Waits for so many of them; there must not be more."""
        self.until(f"{count} spans {kind} of {path or 'all paths'}", lambda: len(self.spans(path, kind)) >= count)
        found = self.spans(path, kind)
        assert len(found) == count, [(span.name, span.kind, span.attributes) for span in found]
        return found

    def span(self, path: str = "", kind: str = "SERVER") -> Span:
        return self.wait(1, path, kind)[0]

    def points(self, name: str) -> list[Point]:
        """Of a metric: those of the newest message of each process."""
        newest: dict[Any, list[Point]] = {}
        for message in self.taken("/v1/metrics"):
            if found := list(points_of(message, name)):
                newest[found[0].resource.get("service.instance.id")] = found
        return [point for points in newest.values() for point in points]

    def logs(self) -> list[tuple[Any, dict[str, Any]]]:
        """Records, with their resource."""
        return [
            (record, values(group.resource.attributes))
            for message in self.taken("/v1/logs")
            for group in message.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


@contextlib.contextmanager
def collecting(tls: ssl.SSLContext | None = None) -> Iterator[Collector]:
    collector = Collector(tls=tls)
    try:
        yield collector
        assert not collector.faults, collector.faults
    finally:
        collector.end()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as each:
        yield each


def decoded(path: str, fields: Message, body: bytes) -> Any:
    if fields.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    message = SIGNALS[path][0]()
    if fields["Content-Type"] == PROTOBUF:
        message.ParseFromString(body)
        again = type(message)()
        again.CopyFrom(message)
        again.DiscardUnknownFields()
        assert again == message, "there are unknown fields"
    else:
        assert fields["Content-Type"] == JSON, fields["Content-Type"]
        json_format.Parse(json.dumps(with_base64(json.loads(body))), message)
    return message


def with_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [with_base64(each) for each in value]
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(each)).decode() if key in IDS else with_base64(each)
            for key, each in value.items()
        }
    return value


def reply(request: BaseHTTPRequestHandler, answer: Answer) -> None:
    """In the encoding of the request, as the specification wants it."""
    body = b""
    if answer.status == 200:
        _, kind, rejected = SIGNALS[request.path]
        message = kind()
        if answer.rejected:
            setattr(message.partial_success, rejected, answer.rejected)
            message.partial_success.error_message = "too old"
        body = message.SerializeToString() if request.headers["Content-Type"] == PROTOBUF else json_format.MessageToJson(message).encode()
    with contextlib.suppress(ConnectionError):
        request.send_response(answer.status)
        request.send_header("Content-Type", request.headers["Content-Type"])
        if answer.endless:
            request.end_headers()
            while True:
                request.wfile.write(bytes(65536))
        request.send_header("Content-Length", str(len(body)))
        if 300 <= answer.status < 400:
            request.send_header("Location", request.path)
        if answer.retry_after:
            request.send_header("Retry-After", answer.retry_after)
        request.end_headers()
        request.wfile.write(body)


def value_of(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return getattr(value, which) if which else None


def values(attributes: Any) -> dict[str, Any]:
    found = {each.key: value_of(each.value) for each in attributes}
    assert len(found) == len(attributes), f"a key comes twice: {[each.key for each in attributes]}"
    return found


def hexadecimal(value: bytes, length: int, may_be_empty: bool = False) -> str:
    assert len(value) == length or (may_be_empty and not value), value
    assert any(value) or may_be_empty, "an id of zeros"
    return value.hex()


def spans_of(message: Any) -> Iterator[Span]:
    for group in message.resource_spans:
        resource = values(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    hexadecimal(span.trace_id, 16),
                    hexadecimal(span.span_id, 8),
                    hexadecimal(span.parent_span_id, 8, may_be_empty=True),
                    span.name,
                    trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    values(span.attributes),
                    [(event.name, event.time_unix_nano, values(event.attributes)) for event in span.events],
                    [(hexadecimal(link.trace_id, 16), hexadecimal(link.span_id, 8)) for link in span.links],
                    trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
                    span.flags,
                    span.trace_state,
                    scope.scope.name,
                    resource,
                )


def points_of(message: Any, name: str) -> Iterator[Point]:
    for group in message.resource_metrics:
        resource = values(group.resource.attributes)
        for scope in group.scope_metrics:
            for metric in scope.metrics:
                if metric.name == name:
                    kind = metric.WhichOneof("data")
                    for point in getattr(metric, kind).data_points:
                        yield Point(values(point.attributes), resource, metric.unit, kind, point)
