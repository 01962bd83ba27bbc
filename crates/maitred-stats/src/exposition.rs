//! Metrics as text, in the Prometheus exposition format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). The media type is [`MEDIA_TYPE`].

use crate::HistogramSnapshot;
use std::fmt::Write;

/// What to send in `Content-Type` with this text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the exposed histogram buckets, ns: 1, 2.5, 5 to each power of ten from 100 µs (below it a request
/// is free of waiting) to 100 s (above every default timeout).
const BOUNDS: [u64; 19] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    50_000_000_000,
    100_000_000_000,
];

/// One value to show. Metrics of the same name with different labels follow each other in the list.
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
    /// Only goes up; its name ends in `_total`.
    Counter(u64),
    /// A duration that only goes up, in nanoseconds, shown in seconds; its name ends in `_seconds_total`.
    SecondsTotal(u64),
    /// Goes up and down.
    Gauge(i64),
    /// A histogram of nanoseconds, shown in seconds; its name ends in `_seconds`.
    Histogram(&'a HistogramSnapshot),
}

impl Value<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) | Self::SecondsTotal(_) => "counter",
            Self::Gauge(_) => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Appends `metrics` to `out`. `HELP` and `TYPE` stand once before metrics of the same name.
pub fn write(metrics: &[Metric<'_>], out: &mut String) {
    let mut previous = "";
    for metric in metrics {
        debug_assert!(is_name(metric.name), "{} is no metric name", metric.name);
        if metric.name != previous {
            out.push_str("# HELP ");
            out.push_str(metric.name);
            out.push(' ');
            escape(metric.help, false, out);
            out.push_str("\n# TYPE ");
            out.push_str(metric.name);
            out.push(' ');
            out.push_str(metric.value.kind());
            out.push('\n');
            previous = metric.name;
        }
        match metric.value {
            Value::Counter(value) => sample(metric, "", None, format_args!("{value}"), out),
            Value::SecondsTotal(value) => sample(metric, "", None, format_args!("{}", seconds(value)), out),
            Value::Gauge(value) => sample(metric, "", None, format_args!("{value}"), out),
            Value::Histogram(snapshot) => histogram(metric, snapshot, out),
        }
    }
}

fn histogram(metric: &Metric<'_>, snapshot: &HistogramSnapshot, out: &mut String) {
    for bound in BOUNDS {
        let count = snapshot.count_up_to(bound);
        sample(metric, "_bucket", Some(&seconds(bound)), format_args!("{count}"), out);
    }
    let count = snapshot.count();
    sample(metric, "_bucket", Some("+Inf"), format_args!("{count}"), out);
    sample(metric, "_sum", None, format_args!("{}", seconds(snapshot.sum())), out);
    sample(metric, "_count", None, format_args!("{count}"), out);
}

/// One line: name, labels, value.
fn sample(
    metric: &Metric<'_>,
    suffix: &str,
    bound: Option<&str>,
    value: std::fmt::Arguments<'_>,
    out: &mut String,
) {
    out.push_str(metric.name);
    out.push_str(suffix);
    let mut separator = '{';
    for (label, text) in metric.labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
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
    // Writing to a string cannot fail.
    let _ = writeln!(out, " {value}");
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
    use crate::Histogram;

    fn text(metrics: &[Metric<'_>]) -> String {
        let mut out = String::new();
        write(metrics, &mut out);
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
            "# HELP maitred_requests_total Requests answered.\n\
             # TYPE maitred_requests_total counter\n\
             maitred_requests_total{code=\"200\"} 7\n\
             maitred_requests_total{code=\"404\",host=\"a\"} 1\n\
             # HELP maitred_connections Open connections.\n\
             # TYPE maitred_connections gauge\n\
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
            "# HELP x a \"b\" \\\\ \\n\n# TYPE x counter\nx{path=\"a\\\"b\\\\c\\nd\"} 1.5\n"
        );
    }

    #[test]
    fn a_histogram_is_cumulative_and_in_seconds() {
        let histogram = Histogram::new();
        for value in [50_000, 2_000_000, 2_000_000, 30_000_000_000, 200_000_000_000] {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        let shown = text(&[Metric {
            name: "wait_seconds",
            help: "Waits.",
            labels: &[("lock", "q")],
            value: Value::Histogram(&snapshot),
        }]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "# TYPE wait_seconds histogram");
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
    fn seconds_are_exact() {
        assert_eq!(
            [0, 1, 10_000_000_000, 1_000_000_001].map(seconds),
            ["0", "0.000000001", "10", "1.000000001"]
        );
    }
}
