//! Sums of the figures for the control and the metrics page.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::atomic::AtomicU64;

use maitred_stats::{
    Distribution, Foreign, Leaf, LeafKey, MAX_BYTES, OTHER_UPSTREAM, Owner, TimingKey, Upstream, read_texts,
    read_upstreams,
};

use super::calls::{CALLS, FIRST_BYTE, FIRST_SERVER, TOTAL};
use super::figures::{ENGINE, Figures, LISTENERS, POOLS};
use super::http_metrics::{self, HttpRequests};

/// The figures of exchanges since the start, without exchanges that ended while counting was off.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Whether exchanges are counted now.
    pub on: bool,
    /// All exchanges.
    pub server: Leaf,
    /// By address of the listener.
    pub listeners: Vec<(String, Leaf)>,
    /// By pool; `engine` has the engine's own answers.
    pub pools: Vec<(String, Leaf)>,
    /// By route: `GET /user/*`, `/static/*`, a path of the engine, or `other`. The order is that of their first requests.
    pub routes: Vec<(String, Leaf)>,
    /// By class of status: `2xx`; `0xx` without a response.
    pub classes: Vec<(String, Leaf)>,
    /// The counts of each combination that has occurred.
    pub leaves: Vec<LeafCount>,
    /// Times stated by applications, by pool, route and name.
    pub application: Vec<ApplicationTiming>,
    /// Entries of applications' `Server-Timing` that were not counted, for want of memory.
    pub application_lost: u64,
    /// Calls to other servers, by server, in the order of the first calls; `other` is the first where there are any.
    pub upstreams: Vec<Upstream>,
    /// Requests by the attributes of OpenTelemetry, where its metrics are sent; of one process only.
    pub http: Vec<HttpRequests>,
    /// Memory of the figures, in bytes, without that of a reading.
    pub bytes: usize,
    /// Limit of that memory, in bytes.
    pub max_bytes: usize,
}

/// The exchanges of one listener, pool, route and class of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafCount {
    /// The address of the listener; `other` stands for several, for want of memory.
    pub listener: String,
    /// The name of the pool; `engine` for the engine's own answers, `other` for several, for want of memory.
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
    /// The figures now. Takes some milliseconds and megabytes with many routes; threads that count wait at most some
    /// ten microseconds.
    pub fn snapshot(&self) -> Statistics {
        let mut sums = Sums::default();
        self.recorder.leaves(|key, leaf| sums.add(key, &leaf));
        self.recorder.timings(|key, nanos| sums.add_timing(key, &nanos));
        // Read after the counts, so that all counted routes and names are known.
        let (routes, timings) = (self.naming.routes.names(), self.recorder.names());
        let names =
            Called { listeners: &self.listeners, pools: &self.pools, routes: &routes, timings: &timings };
        Statistics {
            on: self.is_on(),
            application_lost: self.recorder.lost_timings(),
            bytes: self.recorder.bytes() + self.naming.routes.bytes(),
            max_bytes: MAX_BYTES,
            upstreams: sums.take_upstreams(self.calls.counts(), &timings),
            http: http_metrics::take(&mut sums.timings, &routes, &timings, &self.naming.hosts),
            ..sums.named(&names)
        }
    }
}

impl Statistics {
    /// The figures in the memory of another process; none unless they have this version.
    #[must_use]
    pub fn read(words: &[AtomicU64], owner: Owner) -> Option<Self> {
        let foreign = Foreign::find(words, owner)?;
        let mut sums = Sums::default();
        foreign.leaves(|key, leaf| sums.add(key, &leaf));
        foreign.timings(|key, nanos| sums.add_timing(key, &nanos));
        let (listeners, pools) = (read_texts(words, LISTENERS), read_texts(words, POOLS));
        let (routes, timings) = (foreign.routes(), foreign.names());
        let names = Called { listeners: &listeners, pools: &pools, routes: &routes, timings: &timings };
        let runs = owner == Owner::Runs;
        Some(Self {
            on: runs && foreign.is_on(),
            application_lost: foreign.lost_timings(),
            upstreams: sums.take_upstreams(read_upstreams(words, owner), &timings),
            http: http_metrics::take(&mut sums.timings, &routes, &timings, &[]),
            bytes: if runs { foreign.bytes().min(MAX_BYTES) } else { 0 },
            max_bytes: if runs { MAX_BYTES } else { 0 },
            ..sums.named(&names)
        })
    }

    /// Adds the figures of another process. Entries with the same name are added, whatever their numbers there.
    /// Percentiles of the sum are exactly those of all exchanges together.
    pub fn merge(&mut self, other: &Self) {
        self.on |= other.on;
        self.server.merge(&other.server);
        merge_leaves(&mut self.listeners, &other.listeners);
        merge_leaves(&mut self.pools, &other.pools);
        merge_leaves(&mut self.routes, &other.routes);
        merge_leaves(&mut self.classes, &other.classes);
        merge_by(&mut self.leaves, &other.leaves, LeafCount::names, |mine, theirs| {
            mine.requests = mine.requests.saturating_add(theirs.requests);
            mine.bytes = mine.bytes.saturating_add(theirs.bytes);
        });
        merge_by(&mut self.application, &other.application, ApplicationTiming::names, |mine, theirs| {
            mine.durations.merge(&theirs.durations);
        });
        merge_by(&mut self.upstreams, &other.upstreams, |one| one.name.clone(), Upstream::merge);
        self.application_lost = self.application_lost.saturating_add(other.application_lost);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.max_bytes = self.max_bytes.saturating_add(other.max_bytes);
    }
}

impl LeafCount {
    fn names(&self) -> [String; 4] {
        [&self.listener, &self.pool, &self.route, &self.class].map(Clone::clone)
    }
}

impl ApplicationTiming {
    fn names(&self) -> [String; 3] {
        [&self.pool, &self.route, &self.name].map(Clone::clone)
    }
}

fn merge_leaves(mine: &mut Vec<(String, Leaf)>, theirs: &[(String, Leaf)]) {
    merge_by(mine, theirs, |(name, _)| name.clone(), |(_, mine), (_, theirs)| mine.merge(theirs));
}

/// Adds entries with the same name, and appends entries with other names.
fn merge_by<T: Clone, K: Eq + Hash>(
    mine: &mut Vec<T>,
    theirs: &[T],
    name: impl Fn(&T) -> K,
    add: impl Fn(&mut T, &T),
) {
    let mut known: HashMap<K, usize> = mine.iter().enumerate().map(|(at, one)| (name(one), at)).collect();
    for one in theirs {
        match known.entry(name(one)) {
            Entry::Occupied(at) => add(&mut mine[*at.get()], one),
            Entry::Vacant(place) => {
                place.insert(mine.len());
                mine.push(one.clone());
            }
        }
    }
}

/// The figures by the numbers of one process.
#[derive(Default)]
struct Sums {
    server: Leaf,
    listeners: BTreeMap<u16, Leaf>,
    pools: BTreeMap<u16, Leaf>,
    routes: BTreeMap<u32, Leaf>,
    classes: BTreeMap<u8, Leaf>,
    counts: BTreeMap<LeafKey, (u64, u64)>,
    timings: BTreeMap<TimingKey, Distribution>,
}

/// The names of these numbers.
struct Called<'a> {
    listeners: &'a [String],
    pools: &'a [String],
    routes: &'a [String],
    timings: &'a [String],
}

impl Sums {
    fn add(&mut self, key: LeafKey, leaf: &Leaf) {
        if leaf.requests == 0 {
            return;
        }
        let LeafKey { listener, pool, route, class } = key;
        let (requests, bytes) = self.counts.entry(key).or_default();
        *requests = requests.saturating_add(leaf.requests);
        *bytes = bytes.saturating_add(leaf.bytes);
        self.server.merge(leaf);
        self.listeners.entry(listener).or_default().merge(leaf);
        self.pools.entry(pool).or_default().merge(leaf);
        self.classes.entry(class).or_default().merge(leaf);
        self.routes.entry(route).or_default().merge(leaf);
    }

    fn add_timing(&mut self, key: TimingKey, nanos: &Distribution) {
        // Exchanges of a route that has given up its place are counted elsewhere.
        if nanos.count() > 0 {
            self.timings.entry(key).or_default().merge(nanos);
        }
    }

    /// The servers with their distributions, which are no times of applications.
    fn take_upstreams(&mut self, mut upstreams: Vec<Upstream>, names: &[String]) -> Vec<Upstream> {
        let of_calls: Vec<TimingKey> = self.timings.keys().filter(|key| key.pool == CALLS).copied().collect();
        for key in of_calls {
            let Some(times) = self.timings.remove(&key) else { continue };
            let server = key.route.checked_sub(FIRST_SERVER).unwrap_or_else(|| OTHER_UPSTREAM.into());
            let Some(upstream) = upstreams.get_mut(server as usize) else { continue };
            match names.get(usize::from(key.name)).map(String::as_str) {
                Some(TOTAL) => upstream.total.merge(&times),
                Some(FIRST_BYTE) => upstream.first_byte.merge(&times),
                _ => {}
            }
        }
        upstreams.retain(|upstream| upstream.calls() + upstream.running > 0);
        upstreams
    }

    fn named(self, called: &Called<'_>) -> Statistics {
        let leaves = self.counts.into_iter().map(|(key, (requests, bytes))| LeafCount {
            listener: called.listener(key.listener),
            pool: called.pool(key.pool),
            route: called.route(key.route),
            class: class(key.class),
            requests,
            bytes,
        });
        let application = self.timings.into_iter().map(|(key, durations)| ApplicationTiming {
            pool: called.pool(key.pool),
            route: called.route(key.route),
            name: name_in(called.timings, key.name.into()),
            durations,
        });
        let listeners = self.listeners.into_iter().map(|(key, leaf)| (called.listener(key), leaf));
        let pools = self.pools.into_iter().map(|(key, leaf)| (called.pool(key), leaf));
        let routes = self.routes.into_iter().map(|(key, leaf)| (called.route(key), leaf));
        let classes = self.classes.into_iter().map(|(key, leaf)| (class(key), leaf));
        let statistics = Statistics {
            server: self.server,
            leaves: leaves.collect(),
            listeners: listeners.collect(),
            pools: pools.collect(),
            routes: routes.collect(),
            classes: classes.collect(),
            application: application.collect(),
            ..Statistics::default()
        };
        let names: HashSet<_> = statistics.routes.iter().map(|(name, _)| name).collect();
        if names.len() == statistics.routes.len() {
            return statistics;
        }
        // Two routes may have become one.
        let mut whole = Statistics::default();
        whole.merge(&statistics);
        whole
    }
}

impl Called<'_> {
    fn listener(&self, number: u16) -> String {
        name_in(self.listeners, number.into())
    }

    fn pool(&self, number: u16) -> String {
        if number == ENGINE { "engine".to_owned() } else { name_in(self.pools, number.into()) }
    }

    fn route(&self, number: u32) -> String {
        name_in(self.routes, number as usize)
    }
}

fn name_in(names: &[String], number: usize) -> String {
    names.get(number).map_or("other", |name| name).to_owned()
}

fn class(class: u8) -> String {
    format!("{class}xx")
}
