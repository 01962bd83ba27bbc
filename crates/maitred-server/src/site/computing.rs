//! How much of the time in an application its threads have computed, by route: of some requests, so that it is known as a part.
//!
//! Counted beside what applications say in `Server-Timing`, under names that no entry of that can have, as in `site/database.rs`.

use std::collections::HashMap;

use maitred_http::{RequestHead, Status};

use super::{Figures, Statistics};

const COMPUTED: &str = "run;computed";
const MEASURED: &str = "run;measured";

impl Figures {
    /// Counts a request that was measured: how long it has computed, and how long it has run, in nanoseconds.
    pub(crate) fn record_computing(
        &self,
        pool: u16,
        (head, route): (&RequestHead, &str),
        status: Status,
        (computed, ran): (u64, u64),
    ) {
        if self.is_on() {
            let route = self.naming.number(head, route, status);
            self.recorder.record_timing(pool, route, COMPUTED, computed);
            self.recorder.record_timing(pool, route, MEASURED, ran);
        }
    }
}

impl Statistics {
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
