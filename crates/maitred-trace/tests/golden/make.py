"""Writes the requests that tests/golden.rs expects, by the package opentelemetry-proto of PyPI.

    pip install opentelemetry-proto && python make.py

One request of each signal, in protobuf (`.bin`, fields in the order of their numbers) and as OTLP/JSON: the JSON of protobuf
with enumerations as numbers and ids as digits (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
"""

import base64
import json
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")
SPAN = bytes.fromhex("00f067aa0ba902b7")
PARENT = bytes.fromhex("b7ad6b7169203331")
START, END = 1_790_000_000_123_456_789, 1_790_000_001_123_456_789
ENDINGS = ("traceId", "spanId", "parentSpanId")


def attributes(**values):
    kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
    return [{"key": key.replace("__", "."), "value": {kinds[type(value)]: value}} for key, value in values.items()]


def wrapped(request, signal, items):
    names = {"spans": "spans", "metrics": "metrics", "logs": "log_records"}
    resource = {"attributes": attributes(service__name="shop", deployment__environment="prüfung", process__pid=42)}
    scope = {"name": "maitred"}
    outer, inner = f"resource_{signal}", f"scope_{signal}"
    return request(**{outer: [{"resource": resource, inner: [{"scope": scope, names[signal]: items}]}]})


def write(name, request):
    folder = Path(__file__).parent
    (folder / f"{name}.bin").write_bytes(request.SerializeToString(deterministic=True))
    text = json.dumps(digits(MessageToDict(request, use_integers_for_enums=True)), indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n")


def digits(value, key=""):
    if isinstance(value, dict):
        return {key: digits(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [digits(item) for item in value]
    return base64.b64decode(value).hex() if key in ENDINGS else value


write("traces", wrapped(ExportTraceServiceRequest, "spans", [
    dict(trace_id=TRACE, span_id=SPAN, trace_state="vendor=1,other=x", parent_span_id=PARENT, name="GET /users/{name}",
         kind=2, start_time_unix_nano=START, end_time_unix_nano=END,
         attributes=attributes(http__request__method="GET", url__path="/users/\ufffd\ufffdä\"\\\u0001",
                               http__response__status_code=503, share=0.125, cached=True, error__type="503"),
         events=[dict(time_unix_nano=START + 1000, name="run", attributes=attributes(pool="default"))],
         links=[dict(trace_id=TRACE[::-1], span_id=PARENT, trace_state="a=b", attributes=attributes(kind="untrusted"), flags=0x301)],
         status=dict(code=2), flags=0x301),
    dict(trace_id=TRACE, span_id=PARENT, name="x" * 200, kind=3, start_time_unix_nano=START, end_time_unix_nano=START,
         attributes=attributes(a="123456", b="ääääää", c=-1, d=-0.5, e=False), dropped_attributes_count=2,
         dropped_events_count=1, dropped_links_count=1, status=dict(message="peer-gone", code=2), flags=0),
]))

period = dict(start_time_unix_nano=START, time_unix_nano=END)
write("metrics", wrapped(ExportMetricsServiceRequest, "metrics", [
    dict(name="http.server.active_requests", description="Requests in work.", unit="{request}", sum=dict(
        data_points=[dict(**period, as_int=3, attributes=attributes(http__request__method="GET")), dict(**period, as_int=-4)],
        aggregation_temporality=2, is_monotonic=True)),
    dict(name="maitred.load", gauge=dict(data_points=[dict(**period, as_double=0.25)])),
    dict(name="http.server.request.duration", unit="s", histogram=dict(
        data_points=[dict(**period, count=4, sum=3.5, bucket_counts=[1, 0, 2, 1], explicit_bounds=[0.25, 0.5, 1.5],
                          attributes=attributes(http__route="/"), min=0.125, max=2.0)],
        aggregation_temporality=2)),
    dict(name="spread", unit="s", exponential_histogram=dict(
        data_points=[dict(attributes=attributes(http__route="/"), **period, count=5, sum=2.8359375, scale=3, zero_count=1,
                          positive=dict(offset=-22, bucket_counts=[1, *[0] * 14, 1, *[0] * 7, 2]), min=0.0, max=1.0625,
                          zero_threshold=64 / 1024)],
        aggregation_temporality=2)),
]))

write("logs", wrapped(ExportLogsServiceRequest, "logs", [
    dict(time_unix_nano=START, severity_number=9, severity_text="INFO", body=dict(string_value="GET / 200"),
         attributes=attributes(url__path="/"), flags=1, trace_id=TRACE, span_id=SPAN, observed_time_unix_nano=START,
         event_name="http.server.request"),
    dict(time_unix_nano=END, severity_number=17, severity_text="ERROR", body=dict(string_value="boom"), observed_time_unix_nano=END),
]))
