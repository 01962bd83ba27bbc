//! Database use of applications, by pool and route.
//!
//! The times are counted as if the application had stated them in `Server-Timing`. The numbers are counted beside
//! them, under names that no `Server-Timing` entry can have: a semicolon ends such a name.

use maitred_log::Outcome;
use maitred_runtime::DatabaseCounts;
use maitred_stats::Distribution;
use maitred_stats::exposition::{Metric, Sink, Value, whole};

use super::figures::{DATABASE_TIME, Figures};
use super::snapshot::{ApplicationTiming, Statistics};

/// Time of a request's waits for connections of the database's pool.
pub(crate) const WAIT: &str = "db-wait";
const STATEMENTS: &str = "db;statements";
const FAILED: &str = "db;failed";
const CONNECTIONS: &str = "db;connections";

/// Numbers are counted in thousandths: a distribution knows values within 32 only roughly (see maitred-stats).
const THOUSANDTHS: u64 = 1000;

/// Database use of the requests of one route and pool.
#[derive(Clone, Debug, Default)]
pub struct DatabaseUse {
    /// The name of the pool.
    pub pool: String,
    /// The route.
    pub route: String,
    /// The time of a request's statements, in nanoseconds.
    pub time: Distribution,
    /// Time of a request's waits for connections, in nanoseconds; only of requests that waited.
    pub wait: Distribution,
    /// The completed statements of a request, in thousandths.
    pub statements: Distribution,
    /// The failed statements of a request, of requests that had any, in thousandths.
    pub failed: Distribution,
    /// The most connections that the database's pool had, in thousandths.
    pub connections: Distribution,
}

impl Figures {
    /// Counts the database use of an exchange.
    pub fn record_database(&self, outcome: &Outcome<'_>, counts: DatabaseCounts) {
        let Some(pool) = outcome.pool.filter(|_| self.is_on()) else { return };
        let route = self.naming.number(outcome.head, outcome.told_route, outcome.status);
        let record = |name, value| self.recorder.record_timing(pool, route, name, value);
        let number = |name, value: u64| record(name, value.saturating_mul(THOUSANDTHS));
        if counts.statements > 0 || counts.nanos > 0 {
            record(DATABASE_TIME, counts.nanos);
            number(STATEMENTS, counts.statements);
        }
        if counts.failed > 0 {
            number(FAILED, counts.failed);
        }
        if counts.wait_nanos > 0 {
            record(WAIT, counts.wait_nanos);
        }
        if counts.connections > 0 {
            number(CONNECTIONS, counts.connections);
        }
    }
}

impl ApplicationTiming {
    /// Whether the value is a duration, not a number.
    #[must_use]
    pub fn is_duration(&self) -> bool {
        !self.name.contains(';')
    }
}

impl Statistics {
    /// Database use, by pool and route.
    #[must_use]
    pub fn databases(&self) -> Vec<DatabaseUse> {
        let mut all: Vec<DatabaseUse> = Vec::new();
        let is_number =
            |timing: &&ApplicationTiming| [STATEMENTS, FAILED, CONNECTIONS].contains(&&*timing.name);
        for timing in self.application.iter().filter(is_number) {
            let found = all.iter().position(|one| one.pool == timing.pool && one.route == timing.route);
            let at = found.unwrap_or_else(|| {
                let (pool, route) = (timing.pool.clone(), timing.route.clone());
                all.push(DatabaseUse { pool, route, ..DatabaseUse::default() });
                all.len() - 1
            });
            let place = match &*timing.name {
                STATEMENTS => &mut all[at].statements,
                FAILED => &mut all[at].failed,
                CONNECTIONS => &mut all[at].connections,
                _ => continue,
            };
            place.clone_from(&timing.durations);
        }
        for one in &mut all {
            let of = |name: &str| {
                let mut timings = self.application.iter();
                timings.find(|timing| {
                    timing.name == name && timing.pool == one.pool && timing.route == one.route
                })
            };
            let [time, wait] =
                [DATABASE_TIME, WAIT].map(|name| of(name).map(|timing| timing.durations.clone()));
            (one.time, one.wait) = (time.unwrap_or_default(), wait.unwrap_or_default());
        }
        all
    }
}

/// Writes the numbers; the times are with those of `Server-Timing`.
pub(crate) fn write(statistics: &Statistics, out: &mut dyn Sink) {
    let all = statistics.databases();
    let labels: Vec<_> = all.iter().map(|one| [("pool", &*one.pool), ("route", &*one.route)]).collect();
    let all = || all.iter().zip(&labels);
    let statements = all().map(|(one, labels)| Metric {
        name: "maitred_database_statements",
        help: "Completed database statements of a request, of those that used a database.",
        labels,
        value: Value::Numbers(&one.statements),
    });
    let failed = all().map(|(one, labels)| Metric {
        name: "maitred_database_failed_statements_total",
        help: "Database statements that failed.",
        labels,
        value: Value::Counter(whole(one.failed.sum())),
    });
    let connections = all().map(|(one, labels)| Metric {
        name: "maitred_database_pool_connections",
        help: "The connections of the application's database pool: the most that a request has found.",
        labels,
        value: Value::gauge(whole(one.connections.max())),
    });
    let metrics: Vec<_> = statements.chain(failed).chain(connections).collect();
    out.take(&metrics);
}
