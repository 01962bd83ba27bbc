//! Requests are those that the package opentelemetry-proto makes of the same values (`golden/make.py`).
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::path::Path;

use maitred_stats::Distribution;
use maitred_trace::exporter::Settings;
use maitred_trace::logs::{Record, Severity};
use maitred_trace::metrics::{Buckets, Data, Metric, Number, Period, Point};
use maitred_trace::span::{Event, Kind, Link, Parent, Span, Status};
use maitred_trace::{Context, Exporter, Flags, Format, Limits, Signal, SpanId, Step, TraceId, Value};

const START: u64 = 1_790_000_000_123_456_789;
const END: u64 = START + 1_000_000_000;

fn context() -> Context {
    Context::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("valid")
}

fn parent() -> SpanId {
    SpanId::new(0xb7ad_6b71_6920_3331_u64.to_be_bytes()).expect("not zero")
}

fn of(values: &[u64]) -> Distribution {
    let mut distribution = Distribution::new();
    values.iter().for_each(|value| distribution.record(*value));
    distribution
}

fn spans(format: Format, each: &mut dyn FnMut(&[u8])) {
    let Context { trace, span: id, flags } = context();
    let reversed = u128::from_le_bytes(*trace.bytes()).to_be_bytes();
    let link = Context { trace: TraceId::new(reversed).expect("not zero"), span: parent(), flags };
    let mut out = Vec::new();
    Span {
        trace,
        id,
        parent: Some(Parent { id: parent(), remote: true }),
        flags,
        state: "vendor=1,other=x",
        name: "GET /users/{name}",
        kind: Kind::Server,
        start: START,
        end: END,
        attributes: &[
            ("http.request.method", Value::Text("GET")),
            ("url.path", Value::Wire(b"/users/\xff\xe4\xc3\xa4\"\\\x01")),
            ("http.response.status_code", Value::Integer(503)),
            ("share", Value::Float(0.125)),
            ("cached", Value::Bool(true)),
            ("error.type", Value::Code(503)),
        ],
        events: &[Event { time: START + 1000, name: "run", attributes: &[("pool", Value::Text("default"))] }],
        links: &[Link { context: link, state: "a=b", attributes: &[("kind", Value::Text("untrusted"))] }],
        status: Status::Error(""),
    }
    .encode(format, &Limits::default(), &mut out);
    each(&out);
    out.clear();
    let event = Event { time: START, name: "too many", attributes: &[] };
    Span {
        trace,
        id: parent(),
        parent: None,
        flags: Flags::sampled(false),
        state: "",
        name: &"x".repeat(200),
        kind: Kind::Client,
        start: START,
        end: START - 1,
        attributes: &[
            ("a", Value::Text("123456789")),
            ("b", Value::Wire("äääääääää".as_bytes())),
            ("c", Value::Integer(-1)),
            ("d", Value::Float(-0.5)),
            ("e", Value::Bool(false)),
            ("f", Value::Bool(true)),
            ("g", Value::Bool(true)),
        ],
        events: &[event],
        links: &[Link { context: link, state: "", attributes: &[] }],
        status: Status::Error("peer-gone"),
    }
    .encode(format, &Limits { attributes: 5, text: 6, events: 0, links: 0 }, &mut out);
    each(&out);
}

fn metrics(format: Format, each: &mut dyn FnMut(&[u8])) {
    let point = |value| Point { attributes: &[], value };
    let get = Point { attributes: &[("http.request.method", Value::Text("GET"))], value: Number::count(3) };
    let route: &[_] = &[("http.route", Value::Text("/"))];
    let (few, spread) = (of(&[128, 640, 768, 2048]), of(&[0, 128, 600, 1088, 1088]));
    for (name, description, unit, data) in [
        (
            "http.server.active_requests",
            "Requests in work.",
            "{request}",
            Data::Sum { monotonic: true, points: &[get, point(Number::Integer(-4))] },
        ),
        ("maitred.load", "", "", Data::Gauge(&[point(Number::Float(0.25))])),
        (
            "http.server.request.duration",
            "",
            "s",
            Data::Histogram {
                scale: 1.0 / 1024.0,
                buckets: Buckets::Explicit(&[0.25, 0.5, 1.5]),
                points: &[(route, &few)],
            },
        ),
        (
            "spread",
            "",
            "s",
            Data::Histogram {
                scale: 1.0 / 1024.0,
                buckets: Buckets::Exponential,
                points: &[(route, &spread)],
            },
        ),
    ] {
        let mut out = Vec::new();
        Metric { name, description, unit, data }.encode(format, Period { start: START, end: END }, &mut out);
        each(&out);
    }
}

fn logs(format: Format, each: &mut dyn FnMut(&[u8])) {
    let line = Record {
        time: START,
        severity: Severity::Info,
        event: "http.server.request",
        body: Value::Text("GET / 200"),
        attributes: &[("url.path", Value::Wire(b"/"))],
        context: Some(context()),
    };
    let error = Record {
        time: END,
        severity: Severity::Error,
        event: "",
        body: Value::Text("boom"),
        attributes: &[],
        context: None,
    };
    for record in [line, error] {
        let mut out = Vec::new();
        record.encode(format, &Limits::default(), &mut out);
        each(&out);
    }
}

type Make = fn(Format, &mut dyn FnMut(&[u8]));

fn posted(signal: Signal, format: Format, make: Make) -> Vec<u8> {
    let resource = [("service.name", "shop"), ("deployment.environment", "prüfung")];
    let resource = resource.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let mut exporter =
        Exporter::new(signal, Settings { format, resource, pid: Some(42), ..Settings::default() }, [1, 2]);
    make(format, &mut |item| {
        let _ = exporter.push(item, 0);
    });
    exporter.flush();
    let Step::Post(post) = exporter.next(0) else { panic!("it is due") };
    post.body()
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).expect("a file")
}

const ALL: [(Signal, Make); 3] = [(Signal::Traces, spans), (Signal::Metrics, metrics), (Signal::Logs, logs)];

#[test]
fn protobuf_is_byte_by_byte_that_of_the_package() {
    for (signal, make) in ALL {
        let posted = posted(signal, Format::Protobuf, make);
        let golden = golden(&format!("{}.bin", signal.name()));
        let differs = posted.iter().zip(&golden).position(|(left, right)| left != right);
        assert!(posted == golden, "{signal:?} differs at {differs:?}: {posted:02x?}\n{golden:02x?}");
    }
}

#[test]
fn json_has_the_same_members() {
    for (signal, make) in ALL {
        let read = |bytes: &[u8]| {
            let mut value = serde_json::from_slice(bytes).expect("JSON");
            as_floats(&mut value);
            value
        };
        let golden = golden(&format!("{}.json", signal.name()));
        assert_eq!(read(&posted(signal, Format::Json, make)), read(&golden), "{signal:?}");
    }
}

/// 1 and 1.0 are the same number.
fn as_floats(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) => *value = number.as_f64().into(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(as_floats),
        serde_json::Value::Object(members) => members.values_mut().for_each(as_floats),
        _ => {}
    }
}
