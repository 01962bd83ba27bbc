"""Figures and lines of requests as a collector gets them: values against what the client has counted, by the stable names; ids in logs."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import by_h2
import pytest
import secured
from answering import answering, ok
from collector import Collector, collector
from conftest import PATIENCE, Serve
from crews import Start, crew, until
from test_traces import ASGI, PARENT, TRACE, WSGI, told

__all__ = ["collector", "crew"]

QUICK = {"OTEL_METRIC_EXPORT_INTERVAL": "50", "OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_TRACES_SAMPLER": "always_on"}
BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
HELD = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/held":
        print("is held", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "7")])
    return [b"a" * 7]
"""


def counted(collector: Collector, name: str = "http.server.request.duration") -> Counter[int]:
    """Requests by their status."""
    found: Counter[int] = Counter()
    for point in collector.points(name):
        found[int(point.attributes["http.response.status_code"])] += point.data.count
    return found


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_durations_are_those_that_the_client_has_asked_for(serve: Serve, collector: Collector, interface: str, protocol: str) -> None:
    server = serve("--otlp", collector.url, "--otlp-signals", "metrics", source={"wsgi": WSGI, "asgi": ASGI}[interface], checked=False,
                   **QUICK, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    statuses = [200] * 5 + [404] * 3 + [503] * 2
    for status in statuses:
        server.fetch("/" if status == 200 else f"/status/{status}")
    collector.until("all are counted", lambda: counted(collector) == Counter(statuses))
    for point in collector.points("http.server.request.duration"):
        assert (point.unit, point.kind) == ("s", "histogram")
        assert list(point.data.explicit_bounds) == BOUNDS and sum(point.data.bucket_counts) == point.data.count
        assert len(point.data.bucket_counts) == len(BOUNDS) + 1
        assert 0 < point.data.sum and 0 < point.data.start_time_unix_nano < point.data.time_unix_nano
        wanted = {"http.request.method": "GET", "url.scheme": secured.SCHEME, "network.protocol.version": by_h2.VERSION}
        assert {key: point.attributes.get(key) for key in wanted} == wanted
        assert point.attributes.get("error.type") == ("503" if point.attributes["http.response.status_code"] == 503 else None)
        # Attributes with the values of single requests would make a series of each.
        assert not {"url.path", "url.query", "client.address", "user_agent.original"} & set(point.attributes)
    # Cumulative: later messages have at least what the ones before had.
    counts = [
        sum(point.count for group in message.resource_metrics for scope in group.scope_metrics for metric in scope.metrics
            if metric.name == "http.server.request.duration" for point in metric.histogram.data_points)
        for message in collector.taken("/v1/metrics")
    ]
    assert counts == sorted(counts)
    assert not collector.spans()


def test_requests_that_run_are_active(serve: Serve, collector: Collector, tmp_path: Path) -> None:
    server = serve("--otlp", collector.url, source=HELD, **QUICK)
    thread = threading.Thread(target=server.fetch, args=("/held",))
    thread.start()
    server.wait_for("is held")
    active = lambda: sum(point.data.as_int for point in collector.points("http.server.active_requests"))  # noqa: E731
    collector.until("one is active", lambda: active() == 1)
    (tmp_path / "go").touch()
    thread.join(PATIENCE)
    collector.until("none is active", lambda: active() == 0)


def test_sizes_of_bodies(serve: Serve, collector: Collector) -> None:
    server = serve("--otlp", collector.url, source=HELD, checked=False, **QUICK)
    for size in (10, 1000):
        server.fetch("/", method="POST", body=b"x" * size)
    for name, total in (("http.server.request.body.size", 1010), ("http.server.response.body.size", 14)):
        points = lambda: collector.points(name)  # noqa: B023, E731
        collector.until(f"{name} has both", lambda: sum(point.data.count for point in points()) == 2)
        assert sum(point.data.sum for point in points()) == total and {point.unit for point in points()} == {"By"}


def test_calls_to_other_servers(serve: Serve, collector: Collector) -> None:
    with answering(ok(b"stock")) as other:
        server = serve("--otlp", collector.url, source=WSGI, checked=False, **QUICK, OTHER=other.url)
        for _ in range(3):
            server.fetch("/call")
        points = lambda: collector.points("http.client.request.duration")  # noqa: E731
        collector.until("all are counted", lambda: sum(point.data.count for point in points()) == 3)
        assert {(point.attributes["server.address"], point.attributes["server.port"]) for point in points()} == {("127.0.0.1", other.port)}
        assert {point.unit for point in points()} == {"s"}


def test_two_workers_add_up(crew: Start, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    server = crew("--otlp", collector.url, "--otlp-signals", "metrics")
    asked_for, pids = 0, set()
    while len(pids) < 2:
        pids.add(server.answer()[1])
        asked_for += 1
    collector.until("all are counted", lambda: counted(collector) == Counter({200: asked_for}))
    resources = [point.resource for point in collector.points("http.server.request.duration")]
    assert {each["process.pid"] for each in resources} == pids
    assert len({each["service.instance.id"] for each in resources}) == 2
    server.ends()


def test_our_own_figures_begin_with_our_name(serve: Serve, collector: Collector) -> None:
    server = serve("--otlp", collector.url, source=WSGI, checked=False, **QUICK)
    server.fetch("/")
    collector.until("figures came", lambda: bool(collector.points("http.server.request.duration")))
    names = {
        metric.name
        for message in collector.taken("/v1/metrics")
        for group in message.resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    }
    assert {name.partition(".")[0] for name in names} <= {"http", "process", "maitred"}, names
    assert any(name.startswith("maitred.") for name in names), names
    # The kernel takes long to tell the memory of a large process: collectors ask for it themselves.
    assert not any(name.startswith(("maitred.process", "maitred.tcp.memory")) for name in names), names


# Logs


@pytest.mark.parametrize("otlp", ["on", "off"])
def test_the_ids_of_a_trace_stand_in_the_logs(serve: Serve, collector: Collector, tmp_path: Path, otlp: str) -> None:
    server = serve("--otlp", collector.url if otlp == "on" else "off", "--access-log", "access.log", "--access-log-format", "json",
                   "--trace-trust", "all", source=WSGI, checked=False, **QUICK)
    server.fetch("/raises", traceparent=PARENT)
    server.fetch("/", traceparent=PARENT)
    log = tmp_path / "access.log"
    until("both are written", lambda: log.exists() and len(log.read_text().splitlines()) == 2)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert {row["trace_id"] for row in rows} == {TRACE}
    if otlp == "on":
        assert {row["span_id"] for row in rows} == {span.id for span in collector.wait(2)}
    server.wait_for(rf"error .*trace_id={TRACE}")


def test_a_format_may_have_the_ids(serve: Serve, collector: Collector, tmp_path: Path) -> None:
    server = serve("--otlp", collector.url, "--access-log", "access.log", "--access-log-format", "$path $trace_id $span_id", source=WSGI,
                   checked=False, **QUICK)
    trace, span, _ = told(server)
    log = tmp_path / "access.log"
    until("it is written", lambda: log.exists() and log.read_text() == f"/ {trace} {span}\n")


def test_lines_of_requests_go_there_too(serve: Serve, collector: Collector) -> None:
    server = serve("--otlp", collector.url, "--otlp-signals", "logs", source=WSGI, checked=False, **QUICK)
    # Without spans the field passes as it came, and the record names the span of the caller.
    trace, span, _ = told(server, "/orders/7", traceparent=PARENT)
    server.fetch("/status/503")
    collector.until("both came", lambda: len(collector.logs()) == 2)
    [(first, resource), (second, _)] = collector.logs()
    assert (first.trace_id.hex(), first.span_id.hex()) == (trace, span)
    assert "/orders/7" in str(first) and "503" in str(second)
    assert first.severity_number < second.severity_number and first.time_unix_nano > 0
    assert resource["process.pid"] == server.process.pid and not collector.spans()
