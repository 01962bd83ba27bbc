//! Counters shown as rows: in the control those above zero, in the figures all.

use maitred_stats::exposition::{Metric, Value, series};

/// Name of the figure, its labels, and the count.
pub(crate) type Row = (&'static str, Vec<(&'static str, &'static str)>, u64);

/// Counts above zero, by series.
pub(crate) fn totals(rows: impl Iterator<Item = Row>) -> Vec<(String, u64)> {
    let happened = rows.filter(|(_, _, count)| *count > 0);
    happened.map(|(name, labels, count)| (series(name, &labels), count)).collect()
}

/// Calls `show` with all counts as figures; `help` explains a name.
pub(crate) fn with_metrics(
    rows: impl Iterator<Item = Row>,
    help: fn(&str) -> &'static str,
    show: impl FnOnce(&[Metric<'_>]),
) {
    let rows: Vec<Row> = rows.collect();
    let metrics: Vec<Metric<'_>> = rows
        .iter()
        .map(|(name, labels, count)| Metric { name, help: help(name), labels, value: Value::Counter(*count) })
        .collect();
    show(&metrics);
}
