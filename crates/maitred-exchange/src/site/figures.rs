//! Figures of exchanges: by listener, pool, route and class of status.
//!
//! Promises: each exchange is counted once, where it is written down, with an answer of a handler or of the engine;
//! paths invented by a client do not become routes. Leaves out: the figures themselves and their memory
//! (maitred-stats), showing them (`metrics.rs`). `naming/` has the names of routes.

use std::cell::RefCell;
use std::sync::Arc;

use maitred_http::{FieldSet, RequestHead, Status, target};
use maitred_log::Outcome;
use maitred_match::Shape;
use maitred_stats::exposition::series;
use maitred_stats::{Arena, Counter, LeafKey, LockSnapshot, OTHER, Recorder, server_timing};

use super::calls::Calls;
use super::http_metrics;
use super::naming::Naming;
use crate::hosts::{Host, Hosts};

/// Name of the figure: requests whose body was kept in a file, by pool.
pub const SPOOLED_TOTAL: &str = "maitred_pool_spooled_total";

/// Number that stands for the engine in the place of a pool.
pub(crate) const ENGINE: u16 = u16::MAX - 1;

/// Arena section with the names of listeners and pools, by number.
pub(crate) const LISTENERS: &str = "listeners";
pub(crate) const POOLS: &str = "pools";

/// Name of the time of all statements of a request, in `Server-Timing` and in the figures.
pub(crate) const DATABASE_TIME: &str = "db";

/// Name of the time of all calls of a request to other servers, likewise.
pub(crate) const OUTGOING_TIME: &str = "outgoing";

/// Most entries of `Server-Timing` that are counted of one response.
const MAX_ENTRIES: usize = 32;

/// Figures of the exchanges of a server.
pub struct Figures {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) naming: Naming,
    /// Requests as OpenTelemetry counts them.
    pub(crate) http: http_metrics::Names,
    /// Calls to other servers.
    pub calls: Arc<Calls>,
    /// The routes of the mounts, by the numbers of host and mount.
    mounts: Vec<Vec<EngineRoute>>,
    /// Routes of the engine's own paths.
    own: Vec<EngineRoute>,
    /// Names of the listeners.
    pub listeners: Vec<String>,
    pub(crate) pools: Vec<String>,
    /// Request bodies that were kept in files, by pool.
    spooled: Box<[Counter]>,
}

/// A route that the engine answers.
pub struct EngineRoute {
    /// The pattern: `/static/*`.
    pub name: String,
    /// Number among all routes.
    pub number: u32,
}

/// Times of a request that the engine has counted itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Of databases.
    pub database: bool,
    /// Of calls to other servers.
    pub outgoing: bool,
}

impl Counted {
    fn has(self, name: &str) -> bool {
        self.database && name == DATABASE_TIME || self.outgoing && name == OUTGOING_TIME
    }
}

/// Names of the parts of a server.
pub struct Names<'a> {
    /// The paths of the engine's own answers.
    pub own: [&'a Option<String>; 2],
    /// Names of the listeners.
    pub listeners: Vec<String>,
    /// The default pool first.
    pub pools: Vec<String>,
}

impl Figures {
    /// Figures of these hosts in this memory.
    pub fn new(hosts: &Hosts, names: Names<'_>, arena: &Arena) -> Self {
        let called = hosts.all().iter().map(|host| host.name().into()).collect();
        let naming = Naming::new(called, arena);
        let Names { own, listeners, pools } = names;
        arena.texts(LISTENERS, &listeners);
        arena.texts(POOLS, &pools);
        let add = |name: String| EngineRoute { number: naming.routes.add_fixed(&name), name };
        let recorder = Arc::new(Recorder::in_arena(arena));
        Self {
            calls: Arc::new(Calls::new(arena, Arc::clone(&recorder))),
            recorder,
            http: http_metrics::Names::default(),
            mounts: hosts.all().iter().map(|host| patterns(host).map(add).collect()).collect(),
            own: own.into_iter().flatten().cloned().map(add).collect(),
            naming,
            listeners,
            spooled: pools.iter().map(|pool| spooled(arena, pool)).collect(),
            pools,
        }
    }

    /// Switches counting on or off; what was counted stays.
    pub fn set_on(&self, on: bool) {
        self.recorder.set_on(on);
    }

    /// Whether exchanges are counted.
    pub fn is_on(&self) -> bool {
        self.recorder.is_on()
    }

    /// Counts an exchange, with its times if measured. `route` is the [route](Self::route_of_engine) of an answer of
    /// the engine, `known` the number of an application's route, if known.
    pub fn record(
        &self,
        outcome: &Outcome<'_>,
        (route, known): (Option<&EngineRoute>, Option<u32>),
        timed: bool,
    ) {
        if !self.is_on() {
            return;
        }
        let number = || self.naming.number(outcome.head, outcome.told_route, outcome.status);
        let route = match outcome.pool {
            Some(_) => known.unwrap_or_else(number),
            None => route.map_or(OTHER, |route| route.number),
        };
        let key = LeafKey {
            listener: u16::try_from(outcome.listener).unwrap_or(u16::MAX),
            pool: outcome.pool.unwrap_or(ENGINE),
            route,
            class: (outcome.status.code() / 100) as u8,
        };
        self.recorder.record(key, outcome.body_bytes, timed.then(|| outcome.times.spans()));
        if route == OTHER {
            self.naming.make_room(&self.recorder, maitred_io::clock::monotonic_coarse());
        }
    }

    /// Number of the route of a request for an application, where requests are counted.
    pub fn number_of(&self, head: &RequestHead, route: &str, status: Status) -> Option<u32> {
        self.is_on().then(|| self.naming.number(head, route, status))
    }

    /// Counts the times that an application states in the head of a response (`Server-Timing`), but for entries with the name of a time that
    /// the engine has counted.
    pub fn record_timings(
        &self,
        (pool, counted): (u16, Counted),
        (head, route): (&RequestHead, &str),
        status: Status,
        fields: &FieldSet,
    ) {
        if !self.is_on() || !fields.contains("server-timing") {
            return;
        }
        let route = self.naming.number(head, route, status);
        let entries = fields.all("server-timing").flat_map(server_timing::parse);
        for entry in entries.take(MAX_ENTRIES).filter(|entry| !counted.has(entry.name)) {
            self.recorder.record_timing(pool, route, entry.name, entry.nanos);
        }
    }

    /// Counts a request of this pool with a body in a file, also while statistics are off.
    pub fn note_spooled(&self, pool: usize) {
        if let Some(count) = self.spooled.get(pool) {
            count.add(1);
        }
    }

    /// Numbers of such requests, by pool.
    pub fn spooled(&self) -> impl Iterator<Item = u64> + '_ {
        self.spooled.iter().map(Counter::total)
    }

    /// The name of the route of a request for an application that is not counted yet.
    pub fn name_of(&self, shape: Shape<'_>) -> String {
        self.naming.name_of(shape)
    }

    /// The name of the route of a counted exchange.
    pub fn name_of_exchange(&self, outcome: &Outcome<'_>) -> String {
        self.naming.name(outcome.head, outcome.told_route)
    }

    /// The route name given by the application of an exchange; none where the shape of the path is the name.
    pub fn told_name(&self, head: &RequestHead, route: &str) -> Option<String> {
        (!route.is_empty() || self.naming.knows_more()).then(|| self.naming.name(head, route))
    }

    /// The route of the engine's answer at a path of the host with this number; none without such a route.
    pub fn route_of_engine(&self, path: &[u8], host: u16, hosts: &Hosts) -> Option<&EngineRoute> {
        let own = self.own.iter().find(|own| own.name.as_bytes() == path);
        let mounts = self.mounts.get(usize::from(host)).filter(|mounts| !mounts.is_empty());
        let Some(mounts) = mounts.filter(|_| own.is_none()) else { return own };
        let routes = hosts.of(host).routes();
        let mount = if target::is_plain(path) {
            routes.mount_of(path)
        } else {
            thread_local! {
                static PATH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
            }
            PATH.with_borrow_mut(|normal| {
                target::normalise(path, normal).ok().and_then(|()| routes.mount_of(normal))
            })
        };
        mount.and_then(|mount| mounts.get(mount))
    }

    /// Publishes all counts to other processes.
    pub fn settle(&self) {
        self.recorder.fold_all();
    }

    /// Counts of the lock that all threads share.
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.recorder.lock_snapshot()
    }
}

fn spooled(arena: &Arena, pool: &str) -> Counter {
    Counter::in_arena(arena, &series(SPOOLED_TOTAL, &[("pool", pool)]))
}

/// The patterns of a host's mounts as figures call them: `/static/*`, `shop.example/static/*`.
fn patterns(host: &Host) -> impl Iterator<Item = String> {
    host.routes().patterns().map(|pattern| format!("{}{pattern}", host.name()))
}
