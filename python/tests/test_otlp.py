"""The way to the collector: protocols and variables, and a collector that is dead, slow, full or wrong. No request waits for it."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, authority, needs_openssl
from collector import HOLDS, JSON, PROTOBUF, RESETS, Answer, Collector, collecting, collector
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for
from crews import Start, crew, until
from test_control import asked
from test_outgoing_insight import dead

__all__ = ["authority", "collector", "crew", "dead"]

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""
#: Without further words: the spans of all requests, soon.
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_TRACES_SAMPLER": "always_on"}
#: Never by time: batches that are full, and the end.
NEVER = {**QUICK, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}


def traced(serve: Serve, url: str, *arguments: str, **environment: str) -> Server:
    return serve("--otlp", url, "--otlp-signals", "traces", "--control", "ctl.sock", *arguments, source=APP, checked=False, **environment)


def ask(server: Server, count: int) -> None:
    """So many requests are answered."""
    peer = server.connect()
    for number in range(count):
        peer.request("GET", f"/{number}")
        response = peer.getresponse()
        assert (response.status, response.read()) == (200, b"ok")
    peer.close()


def figures(folder: Path) -> dict[str, int]:
    """Spans that were sent, dropped, refused by the collector, and that wait."""
    rows: list[dict[str, Any]] = asked(folder, "otlp")["otlp"]
    [row] = [row for row in rows if row["signal"] == "traces"]
    return {key: int(row[key]) for key in ("sent", "dropped", "refused", "queued")}


def names(collector: Collector) -> list[str]:
    return sorted(span.attributes["url.path"] for span in collector.spans())


# Protocols and variables


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_both_encodings_with_and_without_gzip(serve: Serve, collector: Collector, protocol: str, compression: str) -> None:
    server = traced(serve, collector.url, **QUICK, OTEL_EXPORTER_OTLP_PROTOCOL=protocol, OTEL_EXPORTER_OTLP_COMPRESSION=compression,
                    OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20secret,x-tenant=shop")
    ask(server, 3)
    collector.wait(3)
    fields = collector.posts[0].fields
    assert fields["Content-Type"] == (JSON if protocol == "http/json" else PROTOBUF)
    assert fields.get("Content-Encoding", "none") == compression
    assert (fields["Authorization"], fields["X-Tenant"]) == ("Bearer secret", "shop")
    assert fields["User-Agent"].startswith("maitred/") and fields.get("traceparent") is None


def test_the_endpoint_of_the_variables(serve: Serve, collector: Collector) -> None:
    server = traced(serve, "on", **QUICK, OTEL_EXPORTER_OTLP_ENDPOINT=f"{collector.url}/")
    ask(server, 1)
    assert collector.wait() and collector.posts[0].path == "/v1/traces"


def test_the_endpoint_of_a_signal_is_used_as_it_is(serve: Serve, collector: Collector, dead: int) -> None:
    server = traced(serve, "on", **QUICK, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{dead}",
                    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v1/traces")
    ask(server, 1)
    collector.wait()


def test_the_resource_is_that_of_the_variables(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector.url, **QUICK, OTEL_SERVICE_NAME="shop",
                    OTEL_RESOURCE_ATTRIBUTES="service.version=7,deployment.environment.name=a%20test,service.name=other")
    ask(server, 1)
    resource = collector.span().resource
    wanted = {"service.name": "shop", "service.version": "7", "deployment.environment.name": "a test", "process.pid": server.process.pid}
    assert {key: resource[key] for key in wanted} == wanted and resource["service.instance.id"]


def test_without_a_name_the_service_is_unknown(serve: Serve, collector: Collector) -> None:
    ask(traced(serve, collector.url, **QUICK), 1)
    assert collector.span().resource["service.name"] == "unknown_service:maitred"


@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["started", "forked"])
def test_two_workers_are_two_instances(crew: Start, collector: Collector, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    server = crew("--otlp", collector.url, "--otlp-signals", "traces", *options)
    asked_for, pids = 0, set()
    while len(pids) < 2:
        pids.add(server.answer()[1])
        asked_for += 1
    spans = collector.wait(asked_for)
    assert {span.resource["process.pid"] for span in spans} == pids
    assert len({span.resource["service.instance.id"] for span in spans}) == 2
    server.ends()


@needs_openssl
def test_a_collector_with_tls_knows_its_clients(serve: Serve, authority: Authority) -> None:
    """By a certificate of an authority that only the variables name."""
    site, client = authority.issue("127.0.0.1"), authority.issue("shop")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(site.certificate, site.key)
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    with collecting(tls) as collector:
        trusts = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority.file)}
        unknown = traced(serve, "on", "--control", "off", **trusts)
        ask(unknown, 1)
        unknown.wait_for("warn .*certificate of the client")
        assert not collector.asked
        known = traced(serve, "on", **trusts, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(client.certificate),
                       OTEL_EXPORTER_OTLP_CLIENT_KEY=str(client.key))
        ask(known, 1)
        assert collector.span().resource["process.pid"] == known.process.pid


# The end


def test_a_drain_sends_the_last_batch(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector.url, **NEVER)
    ask(server, 3)
    assert not collector.posts
    assert server.stop() == 0, server.said
    assert names(collector) == ["/0", "/1", "/2"]


def test_the_drain_of_workers_sends_those_of_both(crew: Start, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NEVER.items():
        monkeypatch.setenv(name, value)
    server = crew("--otlp", collector.url, "--otlp-signals", "traces")
    asked_for, pids = 0, set()
    while len(pids) < 2:
        pids.add(server.answer()[1])
        asked_for += 1
    server.ends()
    assert len(collector.spans()) == asked_for and {span.resource["process.pid"] for span in collector.spans()} == pids


def test_an_end_does_not_wait_for_a_collector_that_does_not_answer(serve: Serve, collector: Collector, dead: int) -> None:
    collector.otherwise = HOLDS
    waits = {**NEVER, "OTEL_EXPORTER_OTLP_TIMEOUT": "3600000"}
    servers = [traced(serve, url, "--control", "off", **waits) for url in (collector.url, f"http://127.0.0.1:{dead}")]
    for server in servers:
        ask(server, 3)
        server.process.send_signal(signal.SIGTERM)
    assert [server.process.wait(PATIENCE) for server in servers] == [0, 0]
    assert collector.held == 1 and not collector.posts, "the batch was given up on its way: nothing else ends this post"


# Collectors that do not take what they get


def test_nothing_waits_for_a_collector_that_does_not_answer(serve: Serve, tmp_path: Path, collector: Collector) -> None:
    """Requests are answered while a batch is on its way; what comes beyond the queue is counted as dropped."""
    collector.answers = [HOLDS]
    server = traced(serve, collector.url, **QUICK, OTEL_BSP_MAX_QUEUE_SIZE="50", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10")
    ask(server, 1)
    collector.until("the first batch is held", lambda: collector.held == 1)
    ask(server, 200)
    assert not collector.posts, "all were answered before the collector was"
    until("the rest is counted", lambda: figures(tmp_path)["dropped"] > 0)
    counts = figures(tmp_path)
    assert counts["queued"] <= 50 + 10 and counts["sent"] == 0
    collector.goes_on.set()
    until("the queue is empty", lambda: figures(tmp_path)["queued"] == 0)
    counts = figures(tmp_path)
    assert counts["sent"] + counts["dropped"] == 201 and counts["refused"] == 0
    assert len(collector.spans()) == counts["sent"]
    # Once, and not for each span.
    assert len(re.findall(r"(?i)dropped", server.said)) <= 2, server.said


def test_a_dead_collector_costs_bounded_memory(serve: Serve, tmp_path: Path, dead: int) -> None:
    server = traced(serve, f"http://127.0.0.1:{dead}", "--metrics-path", "/metrics", **QUICK)
    ask(server, 3000)
    before = server.settled_memory()
    ask(server, 3000)
    assert server.memory("VmHWM") - before < 4 << 20
    counts = figures(tmp_path)
    assert counts["queued"] <= 2048 + 512 and counts["sent"] == 0 and counts["dropped"] >= 6000 - 2048 - 512
    assert counts["dropped"] + counts["queued"] + counts["refused"] == 6000
    page = server.fetch("/metrics").body.decode()
    shown = {key: int(value) for key, value in re.findall(r'(?m)^maitred_otlp_items_total\{signal="traces",result="(\w+)"\} (\d+)', page)}
    assert shown["dropped"] >= counts["dropped"] and shown["sent"] == 0
    # A collector that is not there is told, and the line is not repeated for each batch.
    assert 1 <= len(re.findall(rf"(?m)^.*127\.0\.0\.1:{dead}.*$", server.said)) <= 3, server.said


@pytest.mark.parametrize("answer", [Answer(429, retry_after="1"), Answer(503), Answer(502), Answer(504), RESETS], ids=["429", "503", "502", "504", "reset"])
def test_what_may_be_repeated_is_repeated(serve: Serve, tmp_path: Path, collector: Collector, answer: Answer) -> None:
    collector.answers = [answer]
    server = traced(serve, collector.url, **QUICK)
    ask(server, 1)
    collector.wait(1)
    assert [post.status for post in collector.posts] == [0 if answer.resets else answer.status, 200]
    assert collector.posts[0].message == collector.posts[1].message
    until("it is counted once", lambda: figures(tmp_path) == {"sent": 1, "dropped": 0, "refused": 0, "queued": 0})


@pytest.mark.parametrize("status", [307, 400, 401, 404, 413, 500])
def test_what_may_not_be_repeated_is_refused_once(serve: Serve, tmp_path: Path, collector: Collector, status: int) -> None:
    collector.answers = [Answer(status)]
    server = traced(serve, collector.url, **QUICK)
    ask(server, 1)
    until("it is counted", lambda: figures(tmp_path)["refused"] == 1)
    ask(server, 1)
    collector.wait(1)
    assert [post.status for post in collector.posts] == [status, 200]
    server.wait_for(rf"(warn|error) .*{status}")


def test_an_answer_without_end_counts_by_its_status(serve: Serve, tmp_path: Path, collector: Collector) -> None:
    collector.answers = [Answer(endless=True)]
    ask(traced(serve, collector.url, **QUICK), 1)
    until("it is counted", lambda: figures(tmp_path)["sent"] == 1)
    assert collector.asked == 1, "a batch that was taken came again"


def test_a_partial_success_is_counted(serve: Serve, tmp_path: Path, collector: Collector) -> None:
    collector.answers = [Answer(rejected=2)]
    server = traced(serve, collector.url, **NEVER, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="5")
    ask(server, 5)
    until("it is counted", lambda: figures(tmp_path)["refused"] == 2)
    assert figures(tmp_path)["sent"] == 3 and len(collector.posts) == 1
    server.wait_for("too old")


def test_a_batch_that_is_full_goes_at_once(serve: Serve, collector: Collector) -> None:
    server = traced(serve, collector.url, **NEVER, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10")
    ask(server, 35)
    collector.wait(30)
    assert [len(post.message.resource_spans[0].scope_spans[0].spans) for post in collector.posts] == [10, 10, 10]
    assert server.stop() == 0, server.said
    assert len(collector.spans()) == 35


# Wrong values are told before the start

WRONG = [
    ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "thrift"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://collector"}, "OTEL_EXPORTER_OTLP_ENDPOINT", "http"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT", "http"),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "authorization"}, "OTEL_EXPORTER_OTLP_HEADERS", "="),
    ({"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ({"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "OTEL_EXPORTER_OTLP_TIMEOUT", ""),
    ({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such/file"}, "OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
    ({"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
    ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, "OTEL_TRACES_SAMPLER_ARG", "1"),
    ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "OTEL_BSP_MAX_QUEUE_SIZE", ""),
    ({"OTEL_RESOURCE_ATTRIBUTES": "service.version"}, "OTEL_RESOURCE_ATTRIBUTES", "="),
]


@pytest.mark.parametrize(("variables", "name", "hint"), WRONG, ids=[f"{name} {list(row.values())[-1]}" for row, name, _ in WRONG])
def test_check_names_the_variable_that_is_wrong(tmp_path: Path, variables: dict[str, str], name: str, hint: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    done = subprocess.run([MAITRED, "check", "app.py", "--otlp", "on"], cwd=tmp_path, env=environment_for(variables),
                          capture_output=True, text=True, timeout=PATIENCE)
    said = done.stdout + done.stderr
    [line] = [line for line in said.splitlines() if name in line]
    assert done.returncode and hint in said, said
    assert list(variables.values())[-1] in line, said


def test_check_takes_no_offence_at_variables_of_a_server_that_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    variables = environment_for({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    done = subprocess.run([MAITRED, "check", "app.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
