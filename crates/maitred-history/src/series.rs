//! What is kept of each interval: the series with their names, and how a row of them is stored.

use std::ops::Range;

use maitred_stats::Span;

/// Classes of status, by the first digit; 0 without a response.
pub const CLASSES: usize = 6;

/// What is counted, beside requests by class and bytes. The order is that of [`Counts`].
pub const COUNTERS: [&str; 11] = [
    "errors",
    "timeouts",
    "cut",
    "refused",
    "queue_refused",
    "limits",
    "connections",
    "http2_connections",
    "websockets",
    "tls_handshakes",
    "log_dropped",
];

/// What is looked at and not counted. The order is that of [`Gauges`](crate::Gauges).
pub const GAUGES: [&str; 7] = [
    "connections_open",
    "websockets_open",
    "queue",
    "threads_idle",
    "threads_busy",
    "threads_stuck",
    "memory_bytes",
];

/// The place of the queue among them, whose largest value is kept, too.
pub(crate) const QUEUE: usize = 2;

const REQUESTS: [&str; CLASSES + 1] = [
    "requests",
    "requests_0xx",
    "requests_1xx",
    "requests_2xx",
    "requests_3xx",
    "requests_4xx",
    "requests_5xx",
];

const TOTALS: [&str; 4] = ["mean_seconds", "p50_seconds", "p90_seconds", "p99_seconds"];

const SPANS: [[&str; 2]; Span::ALL.len()] = [
    ["accept_mean_seconds", "accept_p99_seconds"],
    ["queue_mean_seconds", "queue_p99_seconds"],
    ["gate_mean_seconds", "gate_p99_seconds"],
    ["filter_mean_seconds", "filter_p99_seconds"],
    ["run_mean_seconds", "run_p99_seconds"],
    ["write_mean_seconds", "write_p99_seconds"],
];

/// Where each kind is in a row.
pub(crate) const OF_REQUESTS: Range<usize> = 0..REQUESTS.len();
pub(crate) const OF_COUNTERS: Range<usize> = OF_REQUESTS.end..OF_REQUESTS.end + COUNTERS.len();
/// One number in two cells.
pub(crate) const BYTES_OUT: usize = OF_COUNTERS.end;
pub(crate) const COVERED: usize = BYTES_OUT + 2;
pub(crate) const CPU: usize = COVERED + 1;
pub(crate) const OF_TOTALS: Range<usize> = CPU + 1..CPU + 1 + TOTALS.len();
pub(crate) const OF_SPANS: Range<usize> = OF_TOTALS.end..OF_TOTALS.end + 2 * SPANS.len();
pub(crate) const THREADS_GATE: usize = OF_SPANS.end;
pub(crate) const OF_GAUGES: Range<usize> = THREADS_GATE + 1..THREADS_GATE + 1 + GAUGES.len();
pub(crate) const QUEUE_MAX: usize = OF_GAUGES.end;

/// Cells of a row.
pub(crate) const CELLS: usize = QUEUE_MAX + 1;

/// A series by its place in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series(usize);

impl Series {
    /// All of them, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CELLS).filter(|at| *at != BYTES_OUT + 1).map(Self)
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|series| series.name() == name)
    }

    /// What it is called. What ends in `_seconds` or `_bytes` has that unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        let at = self.0;
        match at {
            BYTES_OUT => "out_bytes",
            COVERED => "covered_seconds",
            CPU => "cpu_seconds",
            THREADS_GATE => "threads_gate",
            QUEUE_MAX => "queue_max",
            _ if OF_REQUESTS.contains(&at) => REQUESTS[at],
            _ if OF_COUNTERS.contains(&at) => COUNTERS[at - OF_COUNTERS.start],
            _ if OF_TOTALS.contains(&at) => TOTALS[at - OF_TOTALS.start],
            _ if OF_SPANS.contains(&at) => SPANS[(at - OF_SPANS.start) / 2][(at - OF_SPANS.start) % 2],
            _ => GAUGES[at - OF_GAUGES.start],
        }
    }

    /// Its value in a row; none where it was not known.
    pub(crate) fn value(self, cells: &[u32; CELLS]) -> Option<f64> {
        let at = self.0;
        if at == BYTES_OUT {
            return Some((u64::from(cells[at]) | u64::from(cells[at + 1]) << 32) as f64);
        }
        if at < BYTES_OUT {
            return Some(f64::from(cells[at]));
        }
        // Without the digits that a value of 32 bits does not have.
        let value = f32::from_bits(cells[at]);
        (!value.is_nan()).then(|| value.to_string().parse().unwrap_or_else(|_| f64::from(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_is_found_by_its_name() {
        let names: Vec<&str> = Series::all().map(Series::name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            assert_eq!(Series::find(name).map(Series::name), Some(*name));
        }
        for (span, [mean, p99]) in Span::ALL.iter().zip(SPANS) {
            assert!(mean.starts_with(span.name()) && p99.starts_with(span.name()));
        }
        assert_eq!(names.len(), CELLS - 1);
        assert_eq!(Series::find("request"), None);
        assert_eq!(GAUGES[QUEUE], "queue");
    }
}
