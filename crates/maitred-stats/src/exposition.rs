//! Metrics as text: in the Prometheus exposition format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), or as OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

mod accept;

use std::fmt::Write;

use crate::Distribution;

/// The formats of the metrics' text, which have the same content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The Prometheus text format 0.0.4, which every reader understands.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0, with units, and an end that shows that nothing is missing.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type` for this text.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

const QUANTILES: [(&str, f64); 4] = [("0.5", 50.0), ("0.9", 90.0), ("0.99", 99.0), ("0.999", 99.9)];

/// Upper bounds of the exposed histogram buckets, in 10 µs: 1, 2.5, 5 to each power of ten from 100 µs (below it a
/// request is free of waiting) to 100 s (above every default timeout).
const BOUNDS: [u64; 19] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// One value to show. Metrics of the same name with different labels follow each other in the list, and no two names
/// are the same without `_total`: to OpenMetrics these would be one.
#[derive(Clone, Copy, Debug)]
pub struct Metric<'a> {
    /// The full name, `[a-zA-Z_:][a-zA-Z0-9_:]*`, such as `maitred_requests_total`.
    pub name: &'a str,
    /// One sentence.
    pub help: &'a str,
    /// Label names (`[a-zA-Z_][a-zA-Z0-9_]*`) and values (any text).
    pub labels: &'a [(&'a str, &'a str)],
    /// Kind and value.
    pub value: Value<'a>,
}

/// The value of a [`Metric`], with its kind.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A value that only goes up; its name ends in `_total`.
    Counter(u64),
    /// A duration that only goes up, in nanoseconds, shown in seconds; its name ends in `_seconds_total`.
    SecondsTotal(u64),
    /// Goes up and down.
    Gauge(i64),
    /// A moment or a duration that goes up and down, in nanoseconds, shown in seconds; its name ends in `_seconds`.
    Seconds(u64),
    /// A histogram of nanoseconds, shown in seconds; its name ends in `_seconds`.
    Histogram(&'a Distribution),
    /// Percentiles, sum and count of nanoseconds, shown in seconds; its name ends in `_seconds`. Meant for metrics with
    /// many label values: a histogram has three times as many lines. Summaries cannot be added to each other.
    Summary(&'a Distribution),
    /// A summary of values without a unit, in thousandths, shown as whole numbers.
    Numbers(&'a Distribution),
}

impl Value<'_> {
    /// A gauge of a value that is never negative.
    pub fn gauge(value: u64) -> Self {
        Self::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl Value<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) | Self::SecondsTotal(_) => "counter",
            Self::Gauge(_) | Self::Seconds(_) => "gauge",
            Self::Histogram(_) => "histogram",
            Self::Summary(_) | Self::Numbers(_) => "summary",
        }
    }
}

/// A reader of metrics: they come in parts, all of one name in the same part.
pub trait Sink {
    /// Takes a part.
    fn take(&mut self, metrics: &[Metric<'_>]);
}

/// A page of metrics.
#[derive(Clone, Debug, Default)]
pub struct Page {
    format: Format,
    /// The page so far.
    pub text: String,
}

impl Page {
    /// An empty page of this format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, text: String::new() }
    }
}

impl Sink for Page {
    fn take(&mut self, metrics: &[Metric<'_>]) {
        write(metrics, self.format, &mut self.text);
    }
}

/// Appends `metrics` to `out`. `HELP` and `TYPE` stand once before metrics of the same name. When all are there,
/// [`end`] follows.
pub fn write(metrics: &[Metric<'_>], format: Format, out: &mut String) {
    let mut previous = "";
    for metric in metrics {
        debug_assert!(is_name(metric.name), "{} is no metric name", metric.name);
        if metric.name != previous {
            describe(metric, format, out);
            previous = metric.name;
        }
        match metric.value {
            Value::Counter(value) => sample(metric, "", None, format_args!("{value}"), out),
            Value::SecondsTotal(value) | Value::Seconds(value) => {
                sample(metric, "", None, format_args!("{}", seconds(value)), out);
            }
            Value::Gauge(value) => sample(metric, "", None, format_args!("{value}"), out),
            Value::Histogram(of) => histogram(metric, of, format, out),
            Value::Summary(of) => summary(metric, of, seconds, out),
            Value::Numbers(of) => summary(metric, of, |thousandths| whole(thousandths).to_string(), out),
        }
    }
}

/// A series as the texts have it: `maitred_pool_waited_total{pool="default"}`.
pub fn series(name: &str, labels: &[(&str, &str)]) -> String {
    let mut out = name.to_owned();
    label(labels.iter().copied(), &mut out);
    out
}

/// Appends the end of the text: in OpenMetrics a line that shows that nothing is missing.
pub fn end(format: Format, out: &mut String) {
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
}

fn describe(metric: &Metric<'_>, format: Format, out: &mut String) {
    let name = match format {
        Format::Prometheus => metric.name,
        Format::OpenMetrics => metric.name.strip_suffix("_total").unwrap_or(metric.name),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# TYPE {name} {}", metric.value.kind());
    let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
    if let Some(unit) = unit.filter(|_| format == Format::OpenMetrics) {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = write!(out, "# HELP {name} ");
    escape(metric.help, format == Format::OpenMetrics, out);
    out.push('\n');
}

fn histogram(metric: &Metric<'_>, of: &Distribution, format: Format, out: &mut String) {
    for bound in BOUNDS.map(|bound| bound * 10_000) {
        let mut text = seconds(bound);
        // OpenMetrics: a bound has a point, so that it is the same text wherever it comes from.
        if format == Format::OpenMetrics && !text.contains('.') {
            text.push_str(".0");
        }
        sample(metric, "_bucket", Some(("le", &text)), format_args!("{}", of.count_up_to(bound)), out);
    }
    let count = of.count();
    sample(metric, "_bucket", Some(("le", "+Inf")), format_args!("{count}"), out);
    sample(metric, "_sum", None, format_args!("{}", seconds(of.sum())), out);
    sample(metric, "_count", None, format_args!("{count}"), out);
}

fn summary(metric: &Metric<'_>, of: &Distribution, text: impl Fn(u64) -> String, out: &mut String) {
    for (quantile, percent) in QUANTILES {
        let value = text(of.percentile(percent));
        sample(metric, "", Some(("quantile", quantile)), format_args!("{value}"), out);
    }
    sample(metric, "_sum", None, format_args!("{}", text(of.sum())), out);
    sample(metric, "_count", None, format_args!("{}", of.count()), out);
}

fn sample(
    metric: &Metric<'_>,
    suffix: &str,
    last: Option<(&str, &str)>,
    value: std::fmt::Arguments<'_>,
    out: &mut String,
) {
    out.push_str(metric.name);
    out.push_str(suffix);
    label(metric.labels.iter().copied().chain(last), out);
    // Writing to a string cannot fail.
    let _ = writeln!(out, " {value}");
}

fn label<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>, out: &mut String) {
    let mut separator = '{';
    for (label, text) in labels {
        out.push(separator);
        out.push_str(label);
        out.push_str("=\"");
        escape(text, true, out);
        out.push('"');
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
}

/// The whole number next to so many thousandths.
pub const fn whole(thousandths: u64) -> u64 {
    thousandths.saturating_add(500) / 1000
}

/// Nanoseconds as a decimal number of seconds, exactly.
fn seconds(nanoseconds: u64) -> String {
    let (whole, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let text = format!("{whole}.{fraction:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Backslash and line feed are escaped everywhere, the quotation mark in label values only.
fn escape(text: &str, quoted: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quoted => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

fn is_name(name: &str) -> bool {
    let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b':';
    name.bytes().next().is_some_and(begins) && name.bytes().all(|byte| begins(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &[Metric<'_>]) -> String {
        let mut out = String::new();
        write(metrics, Format::Prometheus, &mut out);
        out
    }

    #[test]
    fn counters_and_gauges() {
        let requests = |code, value| Metric {
            name: "maitred_requests_total",
            help: "Requests answered.",
            labels: code,
            value: Value::Counter(value),
        };
        let connections = Metric {
            name: "maitred_connections",
            help: "Open connections.",
            labels: &[],
            value: Value::Gauge(-1),
        };
        assert_eq!(
            text(&[
                requests(&[("code", "200")], 7),
                requests(&[("code", "404"), ("host", "a")], 1),
                connections
            ]),
            "# TYPE maitred_requests_total counter\n\
             # HELP maitred_requests_total Requests answered.\n\
             maitred_requests_total{code=\"200\"} 7\n\
             maitred_requests_total{code=\"404\",host=\"a\"} 1\n\
             # TYPE maitred_connections gauge\n\
             # HELP maitred_connections Open connections.\n\
             maitred_connections -1\n"
        );
    }

    #[test]
    fn help_and_labels_are_escaped() {
        let metric = Metric {
            name: "x",
            help: "a \"b\" \\ \n",
            labels: &[("path", "a\"b\\c\nd")],
            value: Value::SecondsTotal(1_500_000_000),
        };
        assert_eq!(
            text(&[metric]),
            "# TYPE x counter\n# HELP x a \"b\" \\\\ \\n\nx{path=\"a\\\"b\\\\c\\nd\"} 1.5\n"
        );
    }

    #[test]
    fn a_histogram_is_cumulative_and_in_seconds() {
        let mut histogram = Distribution::default();
        for value in [50_000, 2_000_000, 2_000_000, 30_000_000_000, 200_000_000_000] {
            histogram.record(value);
        }
        let shown = text(&[Metric {
            name: "wait_seconds",
            help: "Waits.",
            labels: &[("lock", "q")],
            value: Value::Histogram(&histogram),
        }]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "# TYPE wait_seconds histogram");
        assert_eq!(lines[2], "wait_seconds_bucket{lock=\"q\",le=\"0.0001\"} 1");
        assert!(lines.contains(&"wait_seconds_bucket{lock=\"q\",le=\"0.0025\"} 3"));
        assert!(lines.contains(&"wait_seconds_bucket{lock=\"q\",le=\"100\"} 4"));
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "wait_seconds_bucket{lock=\"q\",le=\"+Inf\"} 5",
                "wait_seconds_sum{lock=\"q\"} 230.00405",
                "wait_seconds_count{lock=\"q\"} 5"
            ]
        );
    }

    #[test]
    fn open_metrics_has_units_families_and_an_end() {
        let spread = {
            let mut spread = Distribution::new();
            (1..=100).for_each(|millis| spread.record(millis * 1_000_000));
            spread
        };
        let metric = |name, value| Metric { name, help: "A \"b\".", labels: &[("a", "b")], value };
        let mut shown = String::new();
        let metrics = [
            metric("x_requests_total", Value::Counter(3)),
            metric("x_wait_seconds_total", Value::SecondsTotal(1_500_000_000)),
            metric("x_memory_bytes", Value::Gauge(7)),
            metric("x_run_seconds", Value::Summary(&spread)),
            metric("x_all_seconds", Value::Histogram(&spread)),
        ];
        write(&metrics, Format::OpenMetrics, &mut shown);
        end(Format::OpenMetrics, &mut shown);
        assert!(shown.starts_with(
            "# TYPE x_requests counter\n# HELP x_requests A \\\"b\\\".\nx_requests_total{a=\"b\"} 3\n\
             # TYPE x_wait_seconds counter\n# UNIT x_wait_seconds seconds\n"
        ));
        assert!(shown.contains("\nx_wait_seconds_total{a=\"b\"} 1.5\n"));
        assert!(shown.contains("\n# UNIT x_memory_bytes bytes\n"));
        assert!(shown.contains("\nx_run_seconds_sum{a=\"b\"} 5.05\nx_run_seconds_count{a=\"b\"} 100\n"));
        let quantile =
            shown.lines().find_map(|line| line.strip_prefix("x_run_seconds{a=\"b\",quantile=\"0.9\"} "));
        let quantile: f64 = quantile.expect("a quantile").parse().expect("a number");
        assert!((quantile / 0.09 - 1.0).abs() < 0.02, "{quantile}");
        assert!(shown.contains("\nx_all_seconds_bucket{a=\"b\",le=\"10.0\"} 100\n"));
        assert!(shown.ends_with("\n# EOF\n"));
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(
            [0, 1, 10_000_000_000, 1_000_000_001].map(seconds),
            ["0", "0.000000001", "10", "1.000000001"]
        );
    }
}
