//! The counters in `stats` beside the statistics of exchanges: of one process, or added up over several.

use std::collections::BTreeMap;
use std::time::Duration;

use maitred_server::limits::RULES_TOTAL;
use maitred_server::{Server, Snapshot, figures};
use maitred_stats::pool::{MIGRATIONS_TOTAL, REFUSED_TOTAL, WAITED_TOTAL};
use serde::{Deserialize, Serialize};

/// See the module text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Since when the server runs.
    pub up: Duration,
    /// The counts of the server.
    pub counts: Snapshot,
    /// Requests run by a thread of another poll group.
    pub migrations: u64,
    /// How often each rule was applied to a peer.
    pub rules: Vec<(String, u64)>,
    /// Lines of the error log that could not be written.
    pub lost_errors: u64,
    /// Lines of the access log, where there is one.
    pub lost_access: Option<u64>,
    /// The counters of each pool, the default one first.
    pub pools: Vec<PoolCounted>,
}

/// The outcomes of the requests of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolCounted {
    /// The name of the pool.
    pub name: String,
    /// Requests that have waited for a thread.
    pub queued: u64,
    /// Requests refused because the queue was full.
    pub dropped: u64,
    /// Requests whose body was kept in a file.
    pub spooled: u64,
}

impl Counted {
    /// The counters of this process.
    pub fn of(server: &Server, up: Duration) -> Self {
        let (lost_errors, lost_access) = server.log().dropped();
        let pools = server.pools().figures().into_iter().zip(server.pools().spooled());
        let pools = pools.map(|(figures, spooled)| PoolCounted {
            name: figures.name,
            queued: figures.waited,
            dropped: figures.refused,
            spooled,
        });
        let rules = server.settings().guard().applied.totals();
        Self {
            up,
            counts: server.figures().snapshot(),
            migrations: server.pools().migrations(),
            rules: rules.map(|(name, count)| (name.to_owned(), count)).collect(),
            lost_errors,
            lost_access,
            pools: pools.collect(),
        }
    }

    /// Adds the counters of another process of the same server. The time is that of the process that runs longest.
    pub fn merge(&mut self, other: &Self) {
        self.up = self.up.max(other.up);
        self.counts.add(&other.counts);
        self.migrations += other.migrations;
        for (name, count) in &other.rules {
            match self.rules.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => self.rules.push((name.clone(), *count)),
            }
        }
        self.lost_errors += other.lost_errors;
        if let Some(lost) = other.lost_access {
            *self.lost_access.get_or_insert_default() += lost;
        }
        for pool in &other.pools {
            match self.pools.iter_mut().find(|known| known.name == pool.name) {
                Some(sum) => {
                    sum.queued += pool.queued;
                    sum.dropped += pool.dropped;
                    sum.spooled += pool.spooled;
                }
                None => self.pools.push(pool.clone()),
            }
        }
    }

    /// Adds the counters of processes that have ended ([`Retired::counters`](figures::Retired::counters)), for the
    /// known pools and rules.
    pub fn add_retired(&mut self, counters: &BTreeMap<String, u64>) {
        let count = |name: &str, labels: &[(&str, &str)]| {
            counters.get(&figures::series(name, labels)).copied().unwrap_or_default()
        };
        self.counts.add(&Snapshot::of_counters(counters));
        self.migrations += count(MIGRATIONS_TOTAL, &[]);
        for (name, sum) in &mut self.rules {
            *sum += count(RULES_TOTAL, &[("rule", name)]);
        }
        self.lost_errors += count(figures::LOG_DROPPED_TOTAL, &[("log", "error")]);
        if let Some(lost) = &mut self.lost_access {
            *lost += count(figures::LOG_DROPPED_TOTAL, &[("log", "access")]);
        }
        for pool in &mut self.pools {
            let labels = [("pool", &*pool.name)];
            pool.queued += count(WAITED_TOTAL, &labels);
            pool.dropped += count(REFUSED_TOTAL, &labels);
            pool.spooled += count(figures::SPOOLED_TOTAL, &labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Given, stats_of};
    use maitred_server::Statistics;
    use serde_json::json;

    fn counted(from: u64) -> Counted {
        let counts = Snapshot {
            connections: from,
            open: from + 1,
            requests: from + 2,
            refused: from + 3,
            errors: from + 4,
            cut: from + 5,
            timeouts: from + 6,
            body_bytes: from + 7,
            threads: from + 8,
        };
        let pool = |name: &str, by: u64| PoolCounted {
            name: name.to_owned(),
            queued: from + by,
            dropped: from + by + 1,
            spooled: from + by + 2,
        };
        Counted {
            up: Duration::from_nanos(from),
            counts,
            migrations: from + 9,
            rules: vec![("client-rate".to_owned(), from + 10)],
            lost_errors: from + 11,
            lost_access: Some(from + 12),
            pools: vec![pool("default", 13), pool("reports", 16)],
        }
    }

    #[test]
    fn it_is_the_same_on_the_other_side() {
        let counted = counted(100);
        let text = serde_json::to_string(&counted).expect("json");
        assert_eq!(serde_json::from_str::<Counted>(&text).expect("json"), counted);
    }

    #[test]
    fn several_processes_and_those_that_have_ended_are_added_up() {
        let mut sum = Counted::default();
        sum.merge(&counted(100));
        sum.merge(&counted(1000));
        let retired = [
            ("maitred_requests_total", 10_000),
            ("maitred_connections_accepted_total", 10_000),
            ("maitred_rules_applied_total{rule=\"client-rate\"}", 10_000),
            ("maitred_log_dropped_total{log=\"access\"}", 10_000),
            ("maitred_pool_waited_total{pool=\"reports\"}", 10_000),
            ("maitred_pool_spooled_total{pool=\"reports\"}", 10_000),
        ];
        sum.add_retired(&retired.map(|(name, count)| (name.to_owned(), count)).into());
        let given = Given(Vec::new());
        let shown = stats_of(&sum, &Statistics::default(), &given).expect("an answer");
        assert_eq!(shown["requests"], 11_104);
        assert_eq!((&shown["connections"], &shown["connections_open"]), (&11_100.into(), &1102.into()));
        assert_eq!((&shown["errors"], &shown["threads"]), (&1108.into(), &1116.into()));
        assert_eq!(shown["rules"], json!({ "client-rate": 11_120 }));
        assert_eq!(shown["log_lines_dropped"], json!({ "error": 1122, "access": 11_124 }));
        let pools = shown["pools"].as_array().expect("pools");
        assert_eq!((&pools[0]["name"], &pools[0]["queued"]), (&"default".into(), &1126.into()));
        assert_eq!((&pools[1]["queued"], &pools[1]["dropped"]), (&11_132.into(), &1134.into()));
        assert_eq!(pools[1]["spooled"], 11_136);
        let given = Given(vec![("pool".to_owned(), "repots".to_owned())]);
        let refused = stats_of(&sum, &Statistics::default(), &given).expect_err("no such pool");
        assert_eq!(refused.text, "there is no pool 'repots'; did you mean 'reports'?");
    }
}
