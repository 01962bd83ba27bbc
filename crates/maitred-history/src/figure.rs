//! The figures of each interval: their names, and how a row of them is stored.

use std::ops::Range;

use maitred_stats::Span;

use crate::latency::BUCKETS;

/// Classes of status, by the first digit; 0 without a response.
pub const CLASSES: usize = 6;

/// The counters, beside requests by class and bytes. The order is that of [`Counts`](crate::Counts).
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

/// The gauges, whose present values are noted. The order is that of [`Gauges`](crate::Gauges).
pub const GAUGES: [&str; 9] = [
    "connections_open",
    "http2_open",
    "websockets_open",
    "queue",
    "threads_idle",
    "threads_busy",
    "threads_stuck",
    "memory_bytes",
    "resident_bytes",
];

/// The place of the queue among them, whose largest value is kept, too.
pub(crate) const QUEUE: usize = 3;

const REQUESTS: [&str; CLASSES + 1] = [
    "requests",
    "requests_0xx",
    "requests_1xx",
    "requests_2xx",
    "requests_3xx",
    "requests_4xx",
    "requests_5xx",
];

const CPU: [&str; 2] = ["cpu_user_seconds", "cpu_system_seconds"];

const TOTALS: [&str; 5] = ["total_seconds", "p50_seconds", "p90_seconds", "p99_seconds", "max_seconds"];

/// The sum of each span, and its 99th percentile.
const SPANS: [[&str; 2]; Span::ALL.len()] = [
    ["accept_seconds", "accept_p99_seconds"],
    ["queue_seconds", "queue_p99_seconds"],
    ["gate_seconds", "gate_p99_seconds"],
    ["filter_seconds", "filter_p99_seconds"],
    ["run_seconds", "run_p99_seconds"],
    ["receive_seconds", "receive_p99_seconds"],
    ["write_seconds", "write_p99_seconds"],
];

/// Where each kind is in a row.
pub(crate) const OF_REQUESTS: Range<usize> = 0..REQUESTS.len();
pub(crate) const OF_COUNTERS: Range<usize> = OF_REQUESTS.end..OF_REQUESTS.end + COUNTERS.len();
/// A number in two cells.
pub(crate) const BYTES_OUT: usize = OF_COUNTERS.end;
pub(crate) const COVERED: usize = BYTES_OUT + 2;
pub(crate) const OF_CPU: Range<usize> = COVERED + 1..COVERED + 1 + CPU.len();
pub(crate) const OF_TOTALS: Range<usize> = OF_CPU.end..OF_CPU.end + TOTALS.len();
pub(crate) const OF_SPANS: Range<usize> = OF_TOTALS.end..OF_TOTALS.end + 2 * SPANS.len();
pub(crate) const THREADS_GATE: usize = OF_SPANS.end;
pub(crate) const OF_GAUGES: Range<usize> = THREADS_GATE + 1..THREADS_GATE + 1 + GAUGES.len();
pub(crate) const QUEUE_MAX: usize = OF_GAUGES.end;
/// How many requests are in each [bucket](crate::latency).
pub(crate) const OF_LATENCY: Range<usize> = QUEUE_MAX + 1..QUEUE_MAX + 1 + BUCKETS;

/// Cells of a row.
pub(crate) const CELLS: usize = OF_LATENCY.end;

/// A figure by its place in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure(usize);

impl Figure {
    /// All of them, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..OF_LATENCY.start).filter(|at| *at != BYTES_OUT + 1).map(Self)
    }

    /// The figure of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|figure| figure.name() == name)
    }

    /// The name of the figure. Names that end in `_seconds` or `_bytes` have that unit.
    pub fn name(self) -> &'static str {
        let at = self.0;
        match at {
            BYTES_OUT => "out_bytes",
            COVERED => "covered_seconds",
            THREADS_GATE => "threads_gate",
            QUEUE_MAX => "queue_max",
            _ if OF_REQUESTS.contains(&at) => REQUESTS[at],
            _ if OF_COUNTERS.contains(&at) => COUNTERS[at - OF_COUNTERS.start],
            _ if OF_CPU.contains(&at) => CPU[at - OF_CPU.start],
            _ if OF_TOTALS.contains(&at) => TOTALS[at - OF_TOTALS.start],
            _ if OF_SPANS.contains(&at) => SPANS[(at - OF_SPANS.start) / 2][(at - OF_SPANS.start) % 2],
            _ => GAUGES[at - OF_GAUGES.start],
        }
    }

    pub(crate) fn value(self, cells: &[u32; CELLS]) -> Option<f64> {
        let at = self.0;
        if at == BYTES_OUT {
            return Some(bytes_out(cells) as f64);
        }
        if at < BYTES_OUT {
            return Some(f64::from(cells[at]));
        }
        // Without the digits that a value of 32 bits does not have.
        let value = known(cells, at)?;
        Some(value.to_string().parse().unwrap_or_else(|_| f64::from(value)))
    }
}

/// A cell that is no count.
pub(crate) fn known(cells: &[u32; CELLS], at: usize) -> Option<f32> {
    let value = f32::from_bits(cells[at]);
    (!value.is_nan()).then_some(value)
}

pub(crate) fn put(cells: &mut [u32; CELLS], at: usize, value: Option<f64>) {
    cells[at] = value.map_or(f32::NAN, |value| value as f32).to_bits();
}

pub(crate) fn bytes_out(cells: &[u32; CELLS]) -> u64 {
    u64::from(cells[BYTES_OUT]) | u64::from(cells[BYTES_OUT + 1]) << 32
}

pub(crate) fn put_bytes_out(cells: &mut [u32; CELLS], bytes: u64) {
    (cells[BYTES_OUT], cells[BYTES_OUT + 1]) = (bytes as u32, (bytes >> 32) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_found_by_its_name() {
        let names: Vec<&str> = Figure::all().map(Figure::name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            assert_eq!(Figure::find(name).map(Figure::name), Some(*name));
        }
        for (span, [sum, p99]) in Span::ALL.iter().zip(SPANS) {
            assert!(sum.starts_with(span.name()) && p99.starts_with(span.name()));
        }
        assert_eq!(names.len(), CELLS - BUCKETS - 1);
        assert_eq!(Figure::find("request"), None);
        assert_eq!(GAUGES[QUEUE], "queue");
    }
}
