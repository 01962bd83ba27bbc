//! The state that all connections of a server share: hosts, limits, logs and counters.
//!
//! Sections below: counters; figures of exchanges.

mod computing;
mod contexts;
mod database;
mod handshakes;
mod http2;
mod metrics;
mod naming;
mod recent;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod totals;
mod websockets;

use std::cell::RefCell;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use maitred_compress::Compression;
use maitred_files::Submissions;
use maitred_filters::Filters;
use maitred_h1::Limits;
use maitred_http::{FieldSet, RequestHead, Status, target};
use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_limits::Guard;
use maitred_log::{End, Log, Outcome};
use maitred_match::Shape;
use maitred_runtime::Handler;
use maitred_spool::{BodyMemory, Spooler};
use maitred_stats::exposition::{Format, series};
use maitred_stats::memory::Memory;
use maitred_stats::{Arena, Counter, LeafKey, LockSnapshot, OTHER, Recorder, server_timing};
use maitred_tls::Terms;

use crate::hosts::{Host, Hosts};
use crate::proxies::Proxies;
use crate::spill::Spilling;
use crate::thread_hosts::ThreadHosts;
use crate::traced::Traced;

pub use computing::Computing;
pub(crate) use contexts::{Contexts, Share};
pub use database::DatabaseUse;
pub(crate) use handshakes::Handshakes;
pub use http2::Http2Settings;
pub(crate) use http2::{Http2Counters, Open};
pub use metrics::{page_of_workers, write_exchanges};
pub(crate) use metrics::{write_build, write_cache, write_process};
use naming::Naming;
pub(crate) use recent::Recent;
pub use recent::{RecentRequest, RecentRequests};
pub use snapshot::{ApplicationTiming, LeafCount, Statistics};
pub use totals::Totals;
pub(crate) use websockets::WebSocketCounters;
pub use websockets::WebSocketSettings;

/// Shared state, read-only after the start except for the counters.
pub(crate) struct Site {
    pub(crate) hosts: Hosts,
    /// Number of the pool of handlers that do not run on the event loop, where there is one.
    pub(crate) beside_loop: Option<usize>,
    /// The makers of application threads.
    pub(crate) thread_hosts: ThreadHosts,
    /// Most requests that the event loop runs at the same time; 0 for no limit.
    pub(crate) loop_requests: usize,
    /// Filters that requests pass before they reach a handler.
    pub(crate) filters: Filters,
    /// Path of the health check, answered by the engine before any route.
    pub(crate) health_path: Option<String>,
    pub(crate) metrics_path: Option<String>,
    pub(crate) metrics_handler: Option<Arc<dyn Handler>>,
    /// Language of the application, for the figures.
    pub(crate) language: String,
    pub(crate) limits: Limits,
    /// The trusted proxies.
    pub(crate) proxies: Proxies,
    /// Limits on peers.
    pub(crate) guard: Guard,
    pub(crate) timeouts: Timeouts,
    /// TLS settings; none without TLS.
    pub(crate) tls: ArcSwapOption<Terms>,
    /// Settings of HTTP/2; none where it is off.
    pub(crate) http2: Option<Http2Settings>,
    pub(crate) http2_counters: Http2Counters,
    /// Settings of WebSocket; none where it is off.
    pub(crate) websockets: Option<WebSocketSettings>,
    pub(crate) websocket_counters: WebSocketCounters,
    /// Budget of compression contexts.
    pub(crate) contexts: Contexts,
    pub(crate) handshakes: Handshakes,
    /// With several processes: whether the log has said that sessions of long polling need a single process.
    pub(crate) polling: Option<Once>,
    pub(crate) max_body: u64,
    pub(crate) body_memory: u64,
    /// Shared budget of bodies beyond the memory for one.
    pub(crate) body_budget: Arc<BodyMemory>,
    /// The spooler; none without an application, which alone reads bodies.
    pub(crate) spooler: Option<Spooler>,
    /// Compression; none where it is off.
    pub(crate) compression: Option<Compression>,
    pub(crate) spilling: Spilling,
    pub(crate) submissions: Submissions,
    pub(crate) log: Arc<Log>,
    pub(crate) counters: Counters,
    /// Memory of all counters that survive a killed process.
    pub(crate) counted: Memory,
    /// Measurements of each exchange.
    pub(crate) measures: Measures,
    /// Figures made from the measurements.
    pub(crate) figures: Figures,
    /// Traces of the last requests: how each got its thread.
    pub(crate) traced: Traced,
    /// The slowest requests of the last minutes, and the last failed ones.
    pub(crate) recent: Recent,
    /// All figures as text, for `metrics_path`; set at the start.
    pub(crate) metrics: OnceLock<MetricsText>,
}

/// Makes the figures of a server as text.
pub(crate) type MetricsText = Box<dyn Fn(Format) -> String + Send + Sync>;

/// Time limits for the steps of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the accept to the end of the TLS handshake; then the connection is closed.
    pub handshake: Duration,
    /// From the first byte of a request head (or from the accept) to the end of the head; then 408.
    pub head: Duration,
    /// Without a byte of a request body; then 408.
    pub body: Duration,
    /// Between two requests; then the connection is closed.
    pub keep_alive: Duration,
    /// Without the peer taking a byte of a response; then the connection is closed.
    pub send: Duration,
    /// In a drain, without a request: an arriving request is answered; then the connection is closed. Four times as
    /// long for the first request of a connection.
    pub drain_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            send: Duration::from_secs(60),
            drain_idle: Duration::from_millis(300),
        }
    }
}

/// Measurements of requests, and their recipients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insight {
    /// Times of the stations of a request.
    pub times: bool,
    /// Adds the kernel's time of receipt, so that waiting in a socket's buffer is seen.
    pub receipt: bool,
    /// Counts by listener, pool, route and class of status, with times.
    pub statistics: bool,
    /// Adds `Server-Timing` to responses of the application.
    pub server_timing: bool,
    /// Adds `X-Request-ID` to a request without an id (`X-Request-ID`, `traceparent`): the id of the request in the
    /// logs.
    pub ids: bool,
    /// Adds `X-Request-ID`, the id of the request in the logs, to responses of the application and to errors of the
    /// engine.
    pub response_ids: bool,
}

impl Default for Insight {
    /// Measurements for logs and figures only.
    fn default() -> Self {
        Self {
            times: true,
            receipt: true,
            statistics: true,
            server_timing: false,
            ids: false,
            response_ids: false,
        }
    }
}

/// The measurements of each exchange, as in [`Insight`]; may change at any time.
pub(crate) struct Measures {
    pub(crate) times: AtomicBool,
    pub(crate) receipt: AtomicBool,
    pub(crate) server_timing: AtomicBool,
    pub(crate) ids: AtomicBool,
    pub(crate) response_ids: AtomicBool,
}

impl Measures {
    pub(crate) fn new(insight: Insight) -> Self {
        let Insight { times, receipt, server_timing, ids, response_ids, .. } = insight;
        Self {
            times: times.into(),
            receipt: receipt.into(),
            server_timing: server_timing.into(),
            ids: ids.into(),
            response_ids: response_ids.into(),
        }
    }

    pub(crate) fn set(&self, insight: Insight) {
        self.times.store(insight.times, Ordering::Relaxed);
        self.receipt.store(insight.receipt, Ordering::Relaxed);
        self.server_timing.store(insight.server_timing, Ordering::Relaxed);
        self.ids.store(insight.ids, Ordering::Relaxed);
        self.response_ids.store(insight.response_ids, Ordering::Relaxed);
    }

    /// Returns the present state. [`Figures`] has the value of `statistics`.
    pub(crate) fn get(&self, statistics: bool) -> Insight {
        let [times, receipt, server_timing, ids, response_ids] =
            [&self.times, &self.receipt, &self.server_timing, &self.ids, &self.response_ids]
                .map(|on| on.load(Ordering::Relaxed));
        Insight { times, receipt, server_timing, ids, response_ids, statistics }
    }
}

impl Site {
    /// Reads the clock where times are measured, else returns `then`; in monotonic nanoseconds.
    pub(crate) fn later(&self, then: u64) -> u64 {
        if self.times() { clock::monotonic() } else { then }
    }

    /// Whether times of exchanges are measured.
    pub(crate) fn times(&self) -> bool {
        self.measures.times.load(Ordering::Relaxed) || self.log.writes_access()
    }
}

// ---- Counters ----
//
// Counts of all exchanges together.

/// Names of the figures.
pub(crate) const ACCEPTED_TOTAL: &str = "maitred_connections_accepted_total";
pub(crate) const REQUESTS_TOTAL: &str = "maitred_requests_total";
pub(crate) const REFUSED_TOTAL: &str = "maitred_refused_total";
pub(crate) const ERRORS_TOTAL: &str = "maitred_errors_total";
pub(crate) const CUT_TOTAL: &str = "maitred_cut_total";
pub(crate) const TIMEOUTS_TOTAL: &str = "maitred_timeouts_total";
pub(crate) const BODY_BYTES_TOTAL: &str = "maitred_body_bytes_total";
/// Requests whose body was kept in a file, by pool.
pub const SPOOLED_TOTAL: &str = "maitred_pool_spooled_total";

/// Counts since the start of the server.
pub(crate) struct Counters {
    pub(crate) connections: Counter,
    pub(crate) requests: Counter,
    pub(crate) refused: Counter,
    pub(crate) errors: Counter,
    pub(crate) cut: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) body_bytes: Counter,
}

impl Counters {
    pub(crate) fn new(arena: &Arena) -> Self {
        let counter = |name| Counter::in_arena(arena, name);
        Self {
            connections: counter(ACCEPTED_TOTAL),
            requests: counter(REQUESTS_TOTAL),
            refused: counter(REFUSED_TOTAL),
            errors: counter(ERRORS_TOTAL),
            cut: counter(CUT_TOTAL),
            timeouts: counter(TIMEOUTS_TOTAL),
            body_bytes: counter(BODY_BYTES_TOTAL),
        }
    }

    pub(crate) fn count(&self, outcome: &Outcome<'_>) {
        self.requests.add(1);
        self.body_bytes.add(outcome.body_bytes);
        if outcome.status.code() >= 500 {
            self.errors.add(1);
        }
        if outcome.end != End::Complete {
            self.cut.add(1);
        }
    }
}

// ---- Figures of exchanges ----
//
// By listener, pool, route and class of status.
//
// Promises: each exchange is counted once, where it is written down, with an answer of a handler or of the engine;
// paths invented by a client do not become routes. Leaves out: the figures themselves and their memory
// (maitred-stats), showing them (`site/metrics.rs`).
//
// `site/naming/` has the names of routes.

/// Number that stands for the engine in the place of a pool.
const ENGINE: u16 = u16::MAX - 1;

/// Arena section with the names of listeners and pools, by number.
const LISTENERS: &str = "listeners";
const POOLS: &str = "pools";

/// Most entries of `Server-Timing` that are counted of one response.
const MAX_ENTRIES: usize = 32;

/// Figures of the exchanges of a server.
pub(crate) struct Figures {
    recorder: Arc<Recorder>,
    naming: Naming,
    /// The routes of the mounts, by the numbers of host and mount.
    mounts: Vec<Vec<EngineRoute>>,
    /// Routes of the engine's own paths.
    own: Vec<EngineRoute>,
    listeners: Vec<String>,
    pools: Vec<String>,
    /// Request bodies that were kept in files, by pool.
    spooled: Box<[Counter]>,
}

/// A route that the engine answers.
pub(crate) struct EngineRoute {
    pub(crate) name: String,
    /// Number among all routes.
    number: u32,
}

/// Names of the parts of a server.
pub(crate) struct Names<'a> {
    /// The paths of the engine's own answers.
    pub(crate) own: [&'a Option<String>; 2],
    pub(crate) listeners: Vec<String>,
    /// The default pool first.
    pub(crate) pools: Vec<String>,
}

impl Figures {
    pub(crate) fn new(hosts: &Hosts, names: Names<'_>, arena: &Arena) -> Self {
        let called = hosts.all().iter().map(|host| host.name().into()).collect();
        let naming = Naming::new(called, arena);
        let Names { own, listeners, pools } = names;
        arena.texts(LISTENERS, &listeners);
        arena.texts(POOLS, &pools);
        let add = |name: String| EngineRoute { number: naming.routes.add_fixed(&name), name };
        Self {
            recorder: Arc::new(Recorder::in_arena(arena)),
            mounts: hosts.all().iter().map(|host| patterns(host).map(add).collect()).collect(),
            own: own.into_iter().flatten().cloned().map(add).collect(),
            naming,
            listeners,
            spooled: pools.iter().map(|pool| spooled(arena, pool)).collect(),
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

    /// Counts an exchange, with its times if measured. `route` is the [route](Self::route_of_engine) of an answer of
    /// the engine, `known` the number of an application's route, if known.
    pub(crate) fn record(
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
    pub(crate) fn number_of(&self, head: &RequestHead, route: &str, status: Status) -> Option<u32> {
        self.is_on().then(|| self.naming.number(head, route, status))
    }

    /// Counts the times that an application states in the head of a response (`Server-Timing`). Database times are
    /// left out where `counted` has them already.
    pub(crate) fn record_timings(
        &self,
        (pool, counted): (u16, bool),
        (head, route): (&RequestHead, &str),
        status: Status,
        fields: &FieldSet,
    ) {
        if !self.is_on() || !fields.contains("server-timing") {
            return;
        }
        let route = self.naming.number(head, route, status);
        let entries = fields.all("server-timing").flat_map(server_timing::parse);
        for entry in entries.take(MAX_ENTRIES).filter(|entry| !counted || entry.name != database::TIME) {
            self.recorder.record_timing(pool, route, entry.name, entry.nanos);
        }
    }

    /// Counts a request of this pool with a body in a file, also while statistics are off.
    pub(crate) fn note_spooled(&self, pool: usize) {
        if let Some(count) = self.spooled.get(pool) {
            count.add(1);
        }
    }

    /// Numbers of such requests, by pool.
    pub(crate) fn spooled(&self) -> impl Iterator<Item = u64> + '_ {
        self.spooled.iter().map(Counter::total)
    }

    /// The name of the route of a request for an application that is not counted yet.
    pub(crate) fn name_of(&self, shape: Shape<'_>) -> String {
        self.naming.name_of(shape)
    }

    /// The name of the route of a counted exchange.
    pub(crate) fn name_of_exchange(&self, outcome: &Outcome<'_>) -> String {
        self.naming.name(outcome.head, outcome.told_route)
    }

    /// The route name given by the application of an exchange; none where the shape of the path is the name.
    pub(crate) fn told_name(&self, head: &RequestHead, route: &str) -> Option<String> {
        (!route.is_empty() || self.naming.knows_more()).then(|| self.naming.name(head, route))
    }

    /// The route of the engine's answer at a path of the host with this number; none without such a route.
    pub(crate) fn route_of_engine(&self, path: &[u8], host: u16, hosts: &Hosts) -> Option<&EngineRoute> {
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
    pub(crate) fn settle(&self) {
        self.recorder.fold_all();
    }

    /// Counts of the lock that all threads share.
    pub(crate) fn lock_snapshot(&self) -> LockSnapshot {
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
