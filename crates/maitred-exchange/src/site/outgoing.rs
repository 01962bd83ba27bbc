//! Calls of applications to other servers, by pool and route; `calls.rs` has them by server.
//!
//! Counted as database use is (`database.rs`): the time as if the application had stated it in `Server-Timing`, the numbers under names that
//! no entry of that field can have.

use maitred_log::Outcome;
use maitred_runtime::OutgoingCounts;
use maitred_stats::Distribution;

use super::figures::{Figures, OUTGOING_TIME};
use super::snapshot::{ApplicationTiming, Statistics};

const CALLS: &str = "outgoing;calls";
const FAILED: &str = "outgoing;failed";

/// Numbers are counted in thousandths, as in `database.rs`.
const THOUSANDTHS: u64 = 1000;

/// The calls of the requests of one route and pool.
#[derive(Clone, Debug, Default)]
pub struct OutgoingUse {
    /// The name of the pool.
    pub pool: String,
    /// The route.
    pub route: String,
    /// The time of a request's calls, in nanoseconds.
    pub time: Distribution,
    /// The calls of a request, in thousandths.
    pub calls: Distribution,
    /// The calls of a request without a response, of requests that had any, in thousandths.
    pub failed: Distribution,
}

impl Figures {
    /// Counts the calls of an exchange.
    pub fn record_outgoing(&self, outcome: &Outcome<'_>, counts: OutgoingCounts) {
        let Some(pool) = outcome.pool.filter(|_| self.is_on()) else { return };
        let route = self.naming.number(outcome.head, outcome.told_route, outcome.status);
        self.recorder.record_timing(pool, route, OUTGOING_TIME, counts.nanos);
        self.recorder.record_timing(pool, route, CALLS, counts.calls.saturating_mul(THOUSANDTHS));
        if counts.failed > 0 {
            self.recorder.record_timing(pool, route, FAILED, counts.failed.saturating_mul(THOUSANDTHS));
        }
    }
}

impl Statistics {
    /// Calls to other servers, by pool and route.
    #[must_use]
    pub fn outgoing(&self) -> Vec<OutgoingUse> {
        let with_calls = self.application.iter().filter(|timing| timing.name == CALLS);
        let of = |timing: &ApplicationTiming| {
            let beside = |name: &str| {
                let mut timings = self.application.iter();
                let found = timings
                    .find(|one| one.name == name && one.pool == timing.pool && one.route == timing.route);
                found.map(|one| one.durations.clone()).unwrap_or_default()
            };
            OutgoingUse {
                pool: timing.pool.clone(),
                route: timing.route.clone(),
                time: beside(OUTGOING_TIME),
                calls: timing.durations.clone(),
                failed: beside(FAILED),
            }
        };
        with_calls.map(of).collect()
    }
}
