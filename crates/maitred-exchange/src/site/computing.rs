//! Processor time of applications' threads and their wait for a processor, by route: of some requests, so that both
//! are known as parts. And the time for which handlers went on after the end of their responses.
//!
//! Counted beside what applications say in `Server-Timing`, under names that no entry of that can have, as in `site/database.rs`.

use std::collections::{BTreeMap, HashMap};

use maitred_runtime::CountTail;
use maitred_stats::Distribution;

use super::{Figures, Site, Statistics};

const COMPUTED: &str = "run;computed";
const STARVED: &str = "run;starved";
const MEASURED: &str = "run;measured";
const AFTER: &str = "run;after";

/// Shortest work of a handler after its response that is counted, in nanoseconds; every handler needs some time to
/// return.
const LEAST_AFTER: u64 = 100_000;

/// Sums of measured requests in an application, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Computing {
    /// Processor time of their threads.
    pub computed: u64,
    /// Wait of their threads for a processor.
    pub starved: u64,
    /// Time of the requests in the application.
    pub measured: u64,
}

impl Figures {
    /// Counts a request that was measured.
    pub fn record_computing(&self, pool: u16, route: u32, run: Computing) {
        self.recorder.record_timing(pool, route, COMPUTED, run.computed);
        self.recorder.record_timing(pool, route, MEASURED, run.measured);
        if run.starved > 0 {
            self.recorder.record_timing(pool, route, STARVED, run.starved);
        }
    }

    /// Key of a pool and a route for the time after a response.
    pub fn tail_key(pool: u16, route: u32) -> u64 {
        u64::from(pool) << 32 | u64::from(route)
    }
}

impl CountTail for Site {
    fn count(&self, key: u64, began: u64, ended: u64) {
        let took = ended.saturating_sub(began);
        if took >= LEAST_AFTER && self.figures.is_on() && self.times() {
            self.figures.recorder.record_timing((key >> 32) as u16, key as u32, AFTER, took);
        }
    }
}

impl Statistics {
    /// Time for which handlers of each route went on after the end of their responses, in nanoseconds.
    #[must_use]
    pub fn after(&self) -> BTreeMap<&str, Distribution> {
        let mut routes = BTreeMap::<&str, Distribution>::new();
        for timing in self.application.iter().filter(|timing| &*timing.name == AFTER) {
            routes.entry(&timing.route).or_default().merge(&timing.durations);
        }
        routes
    }

    /// Sums of the measured requests of each route.
    #[must_use]
    pub fn computing(&self) -> HashMap<&str, Computing> {
        let mut routes = HashMap::<&str, Computing>::new();
        for timing in &self.application {
            let sum = match &*timing.name {
                COMPUTED => &mut routes.entry(&timing.route).or_default().computed,
                STARVED => &mut routes.entry(&timing.route).or_default().starved,
                MEASURED => &mut routes.entry(&timing.route).or_default().measured,
                _ => continue,
            };
            *sum = sum.saturating_add(timing.durations.sum());
        }
        routes
    }
}
