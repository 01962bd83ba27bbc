//! Figures put together for whoever asks.

use std::collections::BTreeMap;

use maitred_stats::{Distribution, Leaf, LeafKey, MAX_BYTES};

use crate::site::{ENGINE, Figures};

/// The figures of exchanges since the start, without those that were counted nowhere because counting was off.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Whether exchanges are counted now.
    pub on: bool,
    /// All exchanges.
    pub server: Leaf,
    /// By listener, called by its address.
    pub listeners: Vec<(String, Leaf)>,
    /// By pool; what the engine has answered itself is in `engine`.
    pub pools: Vec<(String, Leaf)>,
    /// By route: `GET /user/*`, `/static/*`, a path of the engine, or `other`. The order is that of their first requests.
    pub routes: Vec<(String, Leaf)>,
    /// By class of status: `2xx`; `0xx` without a response.
    pub classes: Vec<(String, Leaf)>,
    /// The counts of each combination that has occurred.
    pub leaves: Vec<LeafCount>,
    /// What applications said of their own time, by pool, route and name.
    pub application: Vec<ApplicationTiming>,
    /// Entries of applications' `Server-Timing` that were not counted, for want of memory.
    pub application_lost: u64,
    /// What the figures take, in bytes, but for what a reading makes of them.
    pub bytes: usize,
    /// What they may take.
    pub max_bytes: usize,
}

/// The exchanges of one listener, pool, route and class of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafCount {
    /// The address of the listener; `other` stands for several, for want of memory.
    pub listener: String,
    /// The name of the pool, `engine` for what the engine has answered itself; `other` likewise.
    pub pool: String,
    /// The route.
    pub route: String,
    /// The class of status.
    pub class: String,
    /// Exchanges.
    pub requests: u64,
    /// Body bytes of their responses.
    pub bytes: u64,
}

/// One name of the `Server-Timing` fields of an application.
#[derive(Clone, Debug)]
pub struct ApplicationTiming {
    /// The name of the pool.
    pub pool: String,
    /// The route.
    pub route: String,
    /// The name of the entries, `db`.
    pub name: String,
    /// Their durations, in nanoseconds.
    pub durations: Distribution,
}

impl Figures {
    /// The figures now. Takes some milliseconds and megabytes with many routes; nobody waits meanwhile for more than some
    /// ten microseconds.
    pub(crate) fn snapshot(&self) -> Statistics {
        let mut server = Leaf::default();
        let mut listeners = BTreeMap::<u16, Leaf>::new();
        let mut pools = BTreeMap::<u16, Leaf>::new();
        let mut routes = BTreeMap::<u32, Leaf>::new();
        let mut classes = BTreeMap::<u8, Leaf>::new();
        let mut counts = Vec::new();
        self.recorder.leaves(|key, leaf| {
            if leaf.requests == 0 {
                return;
            }
            let LeafKey { listener, pool, route, class } = key;
            counts.push((key, leaf.requests, leaf.bytes));
            server.merge(&leaf);
            listeners.entry(listener).or_default().merge(&leaf);
            pools.entry(pool).or_default().merge(&leaf);
            classes.entry(class).or_default().merge(&leaf);
            routes.entry(route).or_default().merge(&leaf);
        });
        // Afterwards: all routes and names that were counted are known now.
        let (route_names, timing_names) = (self.routes.names(), self.recorder.names());
        let name_of = |route: u32| route_names.get(route as usize).map_or("other", |name| name);
        let route = |route: u32| name_of(route).to_owned();
        let leaves = counts.into_iter().map(|(key, requests, bytes)| LeafCount {
            listener: self.listener(key.listener),
            pool: self.pool(key.pool),
            route: route(key.route),
            class: class(key.class),
            requests,
            bytes,
        });
        let mut application = Vec::new();
        self.recorder.timings(|key, durations| {
            application.push(ApplicationTiming {
                pool: self.pool(key.pool),
                route: route(key.route),
                name: timing_names.get(usize::from(key.name)).map_or("other", |name| name).to_owned(),
                durations,
            });
        });
        Statistics {
            on: self.is_on(),
            server,
            leaves: leaves.collect(),
            listeners: listeners.into_iter().map(|(key, leaf)| (self.listener(key), leaf)).collect(),
            pools: pools.into_iter().map(|(key, leaf)| (self.pool(key), leaf)).collect(),
            routes: routes.into_iter().map(|(key, leaf)| (route(key), leaf)).collect(),
            classes: classes.into_iter().map(|(key, leaf)| (class(key), leaf)).collect(),
            application,
            application_lost: self.recorder.lost_timings(),
            bytes: self.recorder.bytes() + self.routes.bytes(),
            max_bytes: MAX_BYTES,
        }
    }

    fn listener(&self, number: u16) -> String {
        self.listeners.get(usize::from(number)).map_or("other", |name| name).to_owned()
    }

    fn pool(&self, number: u16) -> String {
        match number {
            ENGINE => "engine".to_owned(),
            number => self.pools.get(usize::from(number)).map_or("other", |name| name).to_owned(),
        }
    }
}

fn class(class: u8) -> String {
    format!("{class}xx")
}
