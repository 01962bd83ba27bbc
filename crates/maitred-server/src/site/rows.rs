//! Counters that are shown as rows: by the control those that have happened, as figures all of them.

use maitred_stats::exposition::{Metric, Value, series};

/// How often something has happened: the name of the figure, its labels, and the count.
pub(super) type Row = (&'static str, Vec<(&'static str, &'static str)>, u64);

/// Those that have happened, by series.
pub(super) fn totals(rows: impl Iterator<Item = Row>) -> Vec<(String, u64)> {
    let happened = rows.filter(|(_, _, count)| *count > 0);
    happened.map(|(name, labels, count)| (series(name, &labels), count)).collect()
}

/// Calls `show` with all of them as figures; `help` explains a name.
pub(super) fn with_metrics(
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
