//! Variables of OpenTelemetry.
#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::time::Duration;

use maitred_trace::{Environment, Format, Sampler, Signal, TraceId};

fn read_of(
    variables: &[(&str, &str)],
    base: Option<&str>,
    wanted: &[Signal],
) -> Result<Option<Environment>, String> {
    let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).into());
    Environment::read(of, base, wanted)
}

fn read(variables: &[(&str, &str)], base: Option<&str>) -> Result<Environment, String> {
    let found = read_of(variables, base, &[Signal::Traces, Signal::Metrics, Signal::Logs])?;
    Ok(found.expect("not disabled"))
}

#[test]
fn without_variables_it_is_as_the_specification_says() {
    let found =
        read(&[("OTEL_SERVICE_NAME", " "), ("OTEL_EXPORTER_OTLP_ENDPOINT", "")], None).expect("right");
    assert_eq!(found.resource, [("service.name".to_owned(), "unknown_service:maitred".to_owned())]);
    let traces = found.traces.expect("on");
    assert_eq!((traces.url.as_str(), traces.format), ("http://localhost:4318/v1/traces", Format::Protobuf));
    assert_eq!((traces.timeout, traces.delay), (Duration::from_secs(10), Duration::from_secs(5)));
    assert_eq!((traces.batch, traces.queue, traces.gzip), (512, 2048, false));
    assert_eq!(found.metric_interval, Duration::from_secs(60));
    assert!(!found.exponential);
}

#[test]
fn endpoints_of_a_signal_are_used_as_they_are_and_others_get_its_path() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318/otlp/"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://metrics/any?path"),
        ("OTEL_LOGS_EXPORTER", "none"),
    ];
    let found = read(&variables, None).expect("right");
    assert_eq!(found.traces.expect("on").url, "https://collector:4318/otlp/v1/traces");
    assert_eq!(found.metrics.expect("on").url, "http://metrics/any?path");
    assert_eq!(found.logs, None);
    let found = read(&variables, Some("http://[::1]:4318")).expect("right");
    assert_eq!(found.metrics.expect("on").url, "http://[::1]:4318/v1/metrics");
}

#[test]
fn grpc_of_the_application_does_not_matter_beside_a_url_of_ours() {
    let variables = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let found = read(&variables, Some("http://collector:4318")).expect("right");
    assert_eq!(found.logs.expect("on").format, Format::Protobuf);
}

#[test]
fn values_of_a_signal_are_stronger() {
    let found = read(
        &[
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x=1"),
            ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "api-key=logs"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/a.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/a.key"),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
            ("OTEL_TRACES_EXPORTER", "console, otlp"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
        ],
        None,
    )
    .expect("right");
    let (traces, logs) = (found.traces.expect("on"), found.logs.expect("on"));
    let owned = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(traces.headers, [owned("api-key", "a b="), owned("x", "1")]);
    assert_eq!(logs.headers, [owned("api-key", "logs")]);
    assert_eq!((traces.timeout.as_millis(), logs.timeout.as_millis()), (500, 2500));
    assert_eq!((traces.gzip, logs.gzip), (true, false));
    assert_eq!((traces.format, logs.format), (Format::Protobuf, Format::Json));
    assert_eq!((traces.queue, traces.batch, logs.queue), (100, 100, 2048));
    assert_eq!((traces.delay.as_millis(), logs.delay.as_millis()), (100, 1000));
    assert_eq!(traces.certificate.as_deref(), Some("/ca.pem"));
    assert_eq!(traces.client, Some(owned("/a.pem", "/a.key")));
    assert_eq!(found.metrics, None, "an exporter that is the application's");
}

#[test]
fn resources_are_decoded_and_the_name_is_stronger() {
    let attributes = "service.name=b, team=a%2Cb%20%C3%A4,,empty=";
    let found = read(&[("OTEL_RESOURCE_ATTRIBUTES", attributes), ("OTEL_SERVICE_NAME", "a")], None);
    let resource = found.expect("right").resource;
    let resource: Vec<_> = resource.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(resource, [("service.name", "a"), ("team", "a,b ä"), ("empty", "")]);
}

#[test]
fn wrong_values_are_errors_that_name_their_variable() {
    for (name, value, told) in [
        ("OTEL_TRACES_SAMPLER", "sometimes", "is no sampler of maitred"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote", "it has always_on"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "maitred does not speak grpc; say http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/xml", "say http/protobuf or http/json"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "is no URL"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https:///v1", "is no URL"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://a b", "is no URL"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "say gzip or none"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "no whole number"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "too short"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key", "is not KEY=VALUE"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1%0d%0ax: y", "no field of HTTP"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=1", "no field of HTTP"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key", "the certificate is missing"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a", "is not KEY=VALUE"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=%ff", "not UTF-8"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "too few"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1", "no whole number"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "too short"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "many", "no whole number"),
        ("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "summary", "is unknown"),
    ] {
        let error = read(&[(name, value)], None).expect_err(value);
        assert!(error.starts_with(name) && error.contains(told), "{name}={value}: {error}");
    }
    for ratio in ["2", "-0.1", "NaN", "half"] {
        let variables = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", ratio)];
        let error = read(&variables, None).expect_err(ratio);
        assert!(error.starts_with("OTEL_TRACES_SAMPLER_ARG") && error.contains("0 to 1"), "{error}");
    }
}

#[test]
fn variables_that_do_not_matter_may_be_wrong() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let off = [("OTEL_SDK_DISABLED", "TRUE"), grpc];
    assert_eq!(read_of(&off, None, &[Signal::Traces]), Ok(None));
    for (wanted, name, value) in [
        (Signal::Traces, "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        (Signal::Traces, "OTEL_METRIC_EXPORT_INTERVAL", "0"),
        (Signal::Metrics, "OTEL_TRACES_SAMPLER", "sometimes"),
        (Signal::Metrics, "OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ] {
        assert!(read_of(&[(name, value)], None, &[wanted]).is_ok(), "{name}");
        assert!(read(&[(name, value)], None).is_err(), "{name}");
    }
}

#[test]
fn the_queue_of_spans_is_not_that_of_metrics() {
    let found = read(&[("OTEL_BSP_MAX_QUEUE_SIZE", "50"), ("OTEL_BSP_SCHEDULE_DELAY", "100")], None);
    let metrics = found.expect("right").metrics.expect("on");
    assert_eq!((metrics.queue, metrics.batch, metrics.delay.as_secs()), (2048, 512, 5));
}

#[test]
fn a_key_goes_to_no_other_endpoint_than_its_own() {
    let all = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "a=b"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://vendor.example"),
    ];
    let of = |variables, base| {
        let found = read(variables, base).expect("right");
        (found.traces.expect("on").headers.len(), found.logs.expect("on").headers)
    };
    let own = vec![("a".to_owned(), "b".to_owned())];
    assert_eq!(of(&all, Some("http://localhost:4318")), (0, own.clone()));
    assert_eq!(of(&all, None), (1, own.clone()));
    assert_eq!(of(&all[..2], Some("http://localhost:4318")), (1, own));
}

#[test]
fn samplers_follow_the_parent_or_the_low_half_of_the_trace() {
    let trace = |low: u64| TraceId::new((1_u128 << 100 | u128::from(low)).to_be_bytes()).expect("not zero");
    let all = [(None, 0), (None, u64::MAX), (Some(true), u64::MAX), (Some(false), 0)];
    for (name, argument, expected) in [
        ("always_on", None, [true; 4]),
        ("always_off", Some("1"), [false; 4]),
        ("traceidratio", None, [true; 4]),
        ("traceidratio", Some("0.5"), [true, false, false, true]),
        ("traceidratio", Some("0"), [false; 4]),
        ("traceidratio", Some("1.0"), [true; 4]),
        ("parentbased_always_on", None, [true, true, true, false]),
        ("ParentBased_Always_Off", None, [false, false, true, false]),
        ("parentbased_traceidratio", Some("0.25"), [true, false, true, false]),
    ] {
        let sampler = Sampler::parse(name, argument).expect(name);
        assert_eq!(
            all.map(|(parent, low)| sampler.keeps(trace(low), parent)),
            expected,
            "{name} {argument:?}"
        );
    }
    let ratio = |ratio| Sampler::parse("traceidratio", Some(ratio)).expect("a ratio");
    let (half, quarter) = (1 << 63, 1 << 62);
    assert!(ratio("0.5").keeps(trace(half - 1), None) && !ratio("0.5").keeps(trace(half), None));
    assert!(!ratio("0.25").keeps(trace(quarter), None));
}
