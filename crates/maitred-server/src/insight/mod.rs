//! The figures of exchanges: by listener, pool, route and class of status.
//!
//! Promises: each exchange is counted once, where it is written down, whoever has answered it; a client that invents
//! paths does not make routes of them. Leaves out: the figures themselves and their memory (maitred-stats), showing them
//! (`group/metrics.rs`).
//!
//! The route of a request for the application is the [shape](crate::shape) of its path, since the application's own
//! routes are unknown here. Of a request that finds nothing (400, 404, 405, 501) no new route is made: a path exists
//! when it has been answered once. So at most 1,000 are known; all others are one, "other".

mod metrics;
mod snapshot;

use std::cell::RefCell;
use std::hash::RandomState;
use std::sync::Arc;

use maitred_http::{FieldSet, RequestHead, Status, target};
use maitred_stats::server_timing;
use maitred_stats::{Counter, LeafKey, LockSnapshot, OTHER, Recorder, Routes as RouteNames};

use crate::route::Routes;
use maitred_log::Outcome;
use maitred_match::Shape;

pub(crate) use metrics::{write_cache, write_exchanges, write_process};
pub use snapshot::{ApplicationTiming, LeafCount, Statistics};

/// The number of the pool of what the engine answers.
const ENGINE: u16 = u16::MAX - 1;

/// Entries of `Server-Timing` that are counted of one response.
const MAX_ENTRIES: usize = 32;

/// What a server counts of its exchanges.
pub(crate) struct Insight {
    recorder: Arc<Recorder>,
    routes: RouteNames,
    hasher: RandomState,
    /// The routes of the static mounts, by the number of the mount.
    mounts: Vec<EngineRoute>,
    /// What the engine answers about itself, called by its path.
    own: Vec<EngineRoute>,
    listeners: Vec<String>,
    pools: Vec<String>,
    /// Request bodies that were kept in files, by pool.
    spooled: Box<[Counter]>,
}

/// A route that the engine answers.
pub(crate) struct EngineRoute {
    pub(crate) name: String,
    /// Its number among all routes.
    number: u32,
}

/// What a server calls its parts.
pub(crate) struct Names<'a> {
    /// The paths of the engine's own answers.
    pub(crate) own: [&'a Option<String>; 2],
    pub(crate) listeners: Vec<String>,
    /// The default pool first.
    pub(crate) pools: Vec<String>,
}

impl Insight {
    pub(crate) fn new(routes: &Routes, names: Names<'_>) -> Self {
        let known = RouteNames::new();
        let Names { own, listeners, pools } = names;
        let add = |name: String| EngineRoute { number: known.add_fixed(&name), name };
        Self {
            recorder: Arc::new(Recorder::new()),
            mounts: routes.patterns().map(add).collect(),
            own: own.into_iter().flatten().cloned().map(add).collect(),
            hasher: RandomState::new(),
            routes: known,
            listeners,
            spooled: pools.iter().map(|_| Counter::new()).collect(),
            pools,
        }
    }

    /// Switches counting on or off; what was counted stays.
    pub(crate) fn set_on(&self, on: bool) {
        self.recorder.set_on(on);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.recorder.is_on()
    }

    /// Counts an exchange, and its times if they were looked at; `route` is the [route](Self::route_of_engine) of what the
    /// engine has answered.
    pub(crate) fn record(&self, outcome: &Outcome<'_>, route: Option<&EngineRoute>, timed: bool) {
        if !self.is_on() {
            return;
        }
        let route = match outcome.pool {
            Some(_) => self.route_of_application(outcome.head, outcome.status),
            None => route.map_or(OTHER, |route| route.number),
        };
        let key = LeafKey {
            listener: u16::try_from(outcome.listener).unwrap_or(u16::MAX),
            pool: outcome.pool.unwrap_or(ENGINE),
            route,
            class: (outcome.status.code() / 100) as u8,
        };
        self.recorder.record(key, outcome.body_bytes, timed.then(|| outcome.times.spans()));
    }

    /// Counts what an application says of its own time (`Server-Timing`) in the head of a response.
    pub(crate) fn record_timings(&self, pool: u16, head: &RequestHead, status: Status, fields: &FieldSet) {
        if !self.is_on() || !fields.contains("server-timing") {
            return;
        }
        let route = self.route_of_application(head, status);
        let entries = fields.all("server-timing").flat_map(server_timing::parse);
        for entry in entries.take(MAX_ENTRIES) {
            self.recorder.record_timing(pool, route, entry.name, entry.nanos);
        }
    }

    /// A request for this pool has a body in a file. Counted also while nothing else is.
    pub(crate) fn note_spooled(&self, pool: usize) {
        if let Some(count) = self.spooled.get(pool) {
            count.add(1);
        }
    }

    /// How many there were, by pool.
    pub(crate) fn spooled(&self) -> impl Iterator<Item = u64> + '_ {
        self.spooled.iter().map(Counter::total)
    }

    fn route_of_application(&self, head: &RequestHead, status: Status) -> u32 {
        let shape = Shape { method: head.method.as_str(), path: head.path() };
        let hash = shape.hash(&self.hasher);
        match self.routes.find(hash) {
            Some(known) => known,
            None if finds_nothing(status) => OTHER,
            None => self.routes.add(hash, || shape.to_string()),
        }
    }

    /// The route of a path that the engine has answered; none if nothing is there.
    pub(crate) fn route_of_engine(&self, path: &[u8], routes: &Routes) -> Option<&EngineRoute> {
        let own = self.own.iter().find(|own| own.name.as_bytes() == path);
        if own.is_some() || self.mounts.is_empty() {
            return own;
        }
        let mount = if is_plain(path) {
            routes.mount_of(path)
        } else {
            thread_local! {
                static PATH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
            }
            PATH.with_borrow_mut(|normal| {
                target::normalise(path, normal).ok().and_then(|()| routes.mount_of(normal))
            })
        };
        mount.map(|mount| &self.mounts[mount])
    }

    /// The counts of the lock that all threads share.
    pub(crate) fn lock_snapshot(&self) -> LockSnapshot {
        self.recorder.lock_snapshot()
    }
}

/// Whether the answer says that there is no such path, or none for this method.
fn finds_nothing(status: Status) -> bool {
    matches!(status.code(), 400 | 404 | 405 | 501)
}

/// Whether a path is its own normal form for sure.
fn is_plain(path: &[u8]) -> bool {
    !path.contains(&b'%') && !path.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'/' | b'.'))
}

#[cfg(all(test, not(shuttle)))]
mod tests;
