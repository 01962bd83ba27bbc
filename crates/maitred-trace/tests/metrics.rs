//! Figures of maitred-stats as metrics of OpenTelemetry.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use maitred_stats::{Distribution, Metric, Value as Shown};
use maitred_trace::metrics::{Buckets, Period, SECONDS, encode_exposed};
use maitred_trace::span::{ClientCall, ServerRequest, Status};
use maitred_trace::{Format, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PERIOD: Period = Period { start: 1, end: 2 };

fn exposed(metrics: &[Metric<'_>], buckets: Buckets<'_>) -> Vec<Json> {
    let mut found = Vec::new();
    encode_exposed(metrics, buckets, Format::Json, PERIOD, |item| {
        found.push(serde_json::from_slice(item).expect("JSON"));
    });
    found
}

fn of(values: &[u64]) -> Distribution {
    let mut distribution = Distribution::new();
    values.iter().for_each(|value| distribution.record(*value));
    distribution
}

#[test]
fn each_metric_of_ours_has_its_kind_and_unit() {
    let spread = of(&[1_000_000, 2_000_000_000]);
    let metric = |name, labels, value| Metric { name, help: "Help.", labels, value };
    let found = exposed(
        &[
            metric("maitred_requests_total", &[("pool", "a")], Shown::Counter(3)),
            metric("maitred_requests_total", &[("pool", "b")], Shown::Counter(4)),
            metric("maitred_pool_waited_seconds_total", &[], Shown::SecondsTotal(1_500_000_000)),
            metric("maitred_memory_bytes", &[], Shown::Gauge(-1)),
            metric("maitred_request_seconds", &[], Shown::Histogram(&spread)),
            metric("maitred_statements", &[], Shown::Numbers(&spread)),
        ],
        Buckets::Explicit(SECONDS),
    );
    let heads: Vec<_> = found.iter().map(|metric| (&metric["name"], &metric["unit"])).collect();
    assert_eq!(
        json!(heads),
        json!([
            ["maitred.requests", null],
            ["maitred.pool_waited", "s"],
            ["maitred.memory", "By"],
            ["maitred.request", "s"],
            ["maitred.statements", null],
        ])
    );
    let point = |value: &str, pool: &str| {
        json!({"startTimeUnixNano": "1", "timeUnixNano": "2", "asInt": value,
            "attributes": [{"key": "pool", "value": {"stringValue": pool}}]})
    };
    assert_eq!(found[0]["sum"]["dataPoints"], json!([point("3", "a"), point("4", "b")]));
    assert_eq!(found[0]["sum"]["isMonotonic"], json!(true));
    assert_eq!(found[1]["sum"]["dataPoints"][0]["asDouble"], json!(1.5));
    assert_eq!(found[2]["gauge"]["dataPoints"][0]["asInt"], json!("-1"));
    let counts = ["1", "0", "0", "0", "0", "0", "0", "0", "0", "0", "1", "0", "0", "0", "0"];
    assert_eq!(found[3]["histogram"]["dataPoints"][0]["bucketCounts"], json!(counts));
    assert_eq!(found[4]["exponentialHistogram"]["dataPoints"][0]["count"], json!("2"));
}

fn whole(number: &Json) -> u64 {
    number.as_str().expect("a string").parse().expect("a number")
}

fn sum(counts: &Json) -> u64 {
    counts.as_array().expect("counts").iter().map(whole).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buckets_add_up_to_the_count(values in vec((0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift), 0..100)) {
        let spread = of(&values);
        let metric = [Metric { name: "a_seconds", help: "", labels: &[], value: Shown::Summary(&spread) }];
        for buckets in [Buckets::Explicit(SECONDS), Buckets::Exponential, Buckets::Explicit(&[])] {
            let found = &exposed(&metric, buckets)[0];
            let (explicit, exponential) = (&found["histogram"], &found["exponentialHistogram"]);
            let point = if explicit.is_null() { &exponential["dataPoints"][0] } else { &explicit["dataPoints"][0] };
            prop_assert_eq!(whole(&point["count"]), values.len() as u64);
            if !explicit.is_null() {
                prop_assert_eq!(sum(&point["bucketCounts"]), values.len() as u64);
                continue;
            }
            let (counts, zeros) = (&point["positive"]["bucketCounts"], whole(&point["zeroCount"]));
            prop_assert_eq!(sum(counts) + zeros, values.len() as u64);
            let counts: Vec<u64> = counts.as_array().expect("counts").iter().map(whole).collect();
            prop_assert!(counts.len() <= 160, "{}", counts.len());
            // Each value lies in its bucket, or at most a step of the distribution away.
            let offset = point["positive"]["offset"].as_i64().expect("a number") as f64;
            let growth = (-point["scale"].as_f64().expect("a number")).exp2();
            let below = |bound: f64| values.iter().filter(|value| **value >= 64 && **value as f64 / 1e9 <= bound).count() as u64;
            let mut seen = 0;
            for (index, count) in counts.iter().enumerate() {
                seen += count;
                let bound = ((offset + index as f64 + 1.0) * growth).exp2();
                prop_assert!(below(bound - (bound / 30.0).max(64e-9)) <= seen && seen <= below(bound + (bound / 30.0).max(64e-9)));
            }
        }
    }
}

#[test]
fn the_names_of_spans_are_few() {
    for (method, route, name) in [
        (&b"GET"[..], "/users/{id}", "GET /users/{id}"),
        (b"QUERY", "", "QUERY"),
        (b"get", "/", "HTTP /"),
        (b"X-\xff", "", "HTTP"),
    ] {
        let mut found = String::new();
        ServerRequest { method, route, ..ServerRequest::default() }.name(&mut found);
        assert_eq!(found, name);
    }
    assert_eq!(ClientCall { method: b"PUT", url: b"http://a/b", ..ClientCall::default() }.name(), "PUT");
}

#[test]
fn a_span_fails_by_the_fault_of_its_side() {
    for (status, aborted, server, client) in [
        (200, None, Status::Unset, Status::Unset),
        (404, None, Status::Unset, Status::Error("")),
        (500, None, Status::Error(""), Status::Error("")),
        (200, Some("peer-gone"), Status::Error("peer-gone"), Status::Error("peer-gone")),
    ] {
        assert_eq!(ServerRequest { status, aborted, ..Default::default() }.span_status(), server);
        assert_eq!(ClientCall { status, failed: aborted, ..Default::default() }.span_status(), client);
    }
}

#[test]
fn attributes_have_the_stable_names() {
    let request = ServerRequest {
        method: b"BREW",
        route: "/pot/{n}",
        path: b"/pot/1",
        query: b"milk=1",
        scheme: "https",
        status: 503,
        aborted: None,
        server: b"shop.example",
        server_port: Some(443),
        client: "192.0.2.1",
        peer: "127.0.0.1",
        version: "2",
        user_agent: b"curl",
        request_body: Some(5),
        response_body: Some(0),
    };
    let mut found = Vec::new();
    request.attributes(&mut found);
    let text = |text: &'static str| Value::Wire(text.as_bytes());
    let expected = [
        ("http.request.method", Value::Text("_OTHER")),
        ("http.request.method_original", text("BREW")),
        ("url.scheme", text("https")),
        ("http.route", text("/pot/{n}")),
        ("network.protocol.version", text("2")),
        ("url.path", text("/pot/1")),
        ("url.query", text("milk=1")),
        ("server.address", text("shop.example")),
        ("user_agent.original", text("curl")),
        ("client.address", text("192.0.2.1")),
        ("network.peer.address", text("127.0.0.1")),
        ("http.response.status_code", Value::Integer(503)),
        ("server.port", Value::Integer(443)),
        ("http.request.body.size", Value::Integer(5)),
        ("http.response.body.size", Value::Integer(0)),
        ("error.type", Value::Code(503)),
    ];
    assert_eq!(found, expected);
    found.clear();
    let (method, server, failed) = (b"GET", "api", Some("refused"));
    ClientCall { method, server, port: 80, failed, resent: 1, ..Default::default() }.attributes(&mut found);
    let expected = [
        ("http.request.method", Value::Text("GET")),
        ("server.address", Value::Text("api")),
        ("server.port", Value::Integer(80)),
        ("error.type", Value::Text("refused")),
        ("http.request.resend_count", Value::Integer(1)),
    ];
    assert_eq!(found, expected);
}
