//! How much of the time in an application its threads have computed, by route: of some requests, so that it is known as a part. And how long
//! handlers went on behind the end of their responses.
//!
//! Counted beside what applications say in `Server-Timing`, under names that no entry of that can have, as in `site/database.rs`.

use std::collections::{BTreeMap, HashMap};

use maitred_io::clock;
use maitred_runtime::CountTail;
use maitred_stats::Distribution;

use super::{Figures, Site, Statistics};

const COMPUTED: &str = "run;computed";
const MEASURED: &str = "run;measured";
const AFTER: &str = "run;after";

/// What a handler does behind its response in less time is not counted, as every one returns: in nanoseconds.
const LEAST_AFTER: u64 = 100_000;

impl Figures {
    /// Counts a request that was measured: how long it has computed, and how long it has run, in nanoseconds.
    pub(crate) fn record_computing(&self, pool: u16, route: u32, (computed, ran): (u64, u64)) {
        self.recorder.record_timing(pool, route, COMPUTED, computed);
        self.recorder.record_timing(pool, route, MEASURED, ran);
    }

    /// What stands for a pool and a route where a handler goes on behind its response.
    pub(crate) fn tail_key(pool: u16, route: u32) -> u64 {
        u64::from(pool) << 32 | u64::from(route)
    }
}

impl CountTail for Site {
    fn count(&self, key: u64, began: u64) {
        let took = clock::monotonic().saturating_sub(began);
        if took >= LEAST_AFTER && self.figures.is_on() && self.times() {
            self.figures.recorder.record_timing((key >> 32) as u16, key as u32, AFTER, took);
        }
    }
}

impl Statistics {
    /// How long handlers of each route went on behind the end of their responses, in nanoseconds.
    #[must_use]
    pub fn after(&self) -> BTreeMap<&str, Distribution> {
        let mut routes = BTreeMap::<&str, Distribution>::new();
        for timing in self.application.iter().filter(|timing| &*timing.name == AFTER) {
            routes.entry(&timing.route).or_default().merge(&timing.durations);
        }
        routes
    }

    /// Of the requests of each route that were measured, how long they have computed and how long they have run, in nanoseconds.
    #[must_use]
    pub fn computing(&self) -> HashMap<&str, (u64, u64)> {
        let mut routes = HashMap::<&str, (u64, u64)>::new();
        for timing in &self.application {
            let sum = match &*timing.name {
                COMPUTED => &mut routes.entry(&timing.route).or_default().0,
                MEASURED => &mut routes.entry(&timing.route).or_default().1,
                _ => continue,
            };
            *sum = sum.saturating_add(timing.durations.sum());
        }
        routes
    }
}
