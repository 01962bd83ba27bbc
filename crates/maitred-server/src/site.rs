//! What every connection of a server shares: routes, bounds, logs and counters.
//!
//! Sections below: routes; counters; figures of exchanges.

mod metrics;
mod snapshot;
#[cfg(all(test, not(shuttle)))]
mod tests;

use std::cell::RefCell;
use std::hash::RandomState;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use maitred_compress::Compression;
use maitred_files::{CacheStatistics, Now, StaticFiles, Submissions};
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
use maitred_stats::exposition::Format;
use maitred_stats::{Counter, LeafKey, LockSnapshot, OTHER, Recorder, Routes as RouteNames, server_timing};

use crate::proxies::Proxies;
use crate::spill::Spilling;
use crate::traced::Traced;

pub(crate) use metrics::{write_cache, write_exchanges, write_process};
pub use snapshot::{ApplicationTiming, LeafCount, Statistics};

/// Read-only after the start, but for the counters.
pub(crate) struct Site {
    pub(crate) routes: Routes,
    /// What requests meet before that.
    pub(crate) filters: Filters,
    /// Answered by the engine, before any route.
    pub(crate) health_path: Option<String>,
    pub(crate) metrics_path: Option<String>,
    pub(crate) limits: Limits,
    /// Which proxies are believed.
    pub(crate) proxies: Proxies,
    /// What limits peers beside these.
    pub(crate) guard: Guard,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_body: u64,
    pub(crate) body_memory: u64,
    /// What bodies may have beyond that.
    pub(crate) body_budget: Arc<BodyMemory>,
    /// None without an application: nobody reads bodies then.
    pub(crate) spooler: Option<Spooler>,
    /// None where it is off.
    pub(crate) compression: Option<Compression>,
    pub(crate) spilling: Spilling,
    pub(crate) submissions: Submissions,
    pub(crate) log: Arc<Log>,
    pub(crate) counters: Counters,
    /// What is measured of each exchange.
    pub(crate) measures: Measures,
    /// What becomes of these measures.
    pub(crate) figures: Figures,
    /// How the last requests got their threads, while that is traced.
    pub(crate) traced: Traced,
    /// All figures as text, for `metrics_path`; there from the start on.
    pub(crate) metrics: OnceLock<MetricsText>,
}

/// Makes the figures of a server as text.
pub(crate) type MetricsText = Box<dyn Fn(Format) -> String + Send + Sync>;

/// How long a connection may take for each step.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request head (or from the accept) to its end; then 408.
    pub head: Duration,
    /// Without a byte of a request body; then 408.
    pub body: Duration,
    /// Between two requests; then the connection is closed.
    pub keep_alive: Duration,
    /// Without the peer taking a byte of a response; then the connection is closed.
    pub send: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            send: Duration::from_secs(60),
        }
    }
}

/// What is measured of each request, and who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insight {
    /// When it passed which station.
    pub times: bool,
    /// With the kernel's time of receipt, so that waiting in a socket's buffer is seen.
    pub receipt: bool,
    /// It is counted by listener, pool, route and class of status, with its times.
    pub statistics: bool,
    /// Responses of the application tell the client its times (`Server-Timing`).
    pub server_timing: bool,
    /// A request that brings no id (`X-Request-ID`, `traceparent`) comes to the application with the one that the logs
    /// know it by, as `X-Request-ID`.
    pub ids: bool,
}

impl Default for Insight {
    /// What is only told to logs and figures.
    fn default() -> Self {
        Self { times: true, receipt: true, statistics: true, server_timing: false, ids: false }
    }
}

/// What is measured of each exchange, as [`Insight`] says; may change at any time.
pub(crate) struct Measures {
    pub(crate) times: AtomicBool,
    pub(crate) receipt: AtomicBool,
    pub(crate) server_timing: AtomicBool,
    pub(crate) ids: AtomicBool,
}

impl Measures {
    pub(crate) fn new(insight: Insight) -> Self {
        let Insight { times, receipt, server_timing, ids, .. } = insight;
        Self {
            times: times.into(),
            receipt: receipt.into(),
            server_timing: server_timing.into(),
            ids: ids.into(),
        }
    }

    pub(crate) fn set(&self, insight: Insight) {
        self.times.store(insight.times, Ordering::Relaxed);
        self.receipt.store(insight.receipt, Ordering::Relaxed);
        self.server_timing.store(insight.server_timing, Ordering::Relaxed);
        self.ids.store(insight.ids, Ordering::Relaxed);
    }

    /// `statistics` is known to [`Figures`].
    pub(crate) fn get(&self, statistics: bool) -> Insight {
        let [times, receipt, server_timing, ids] =
            [&self.times, &self.receipt, &self.server_timing, &self.ids].map(|on| on.load(Ordering::Relaxed));
        Insight { times, receipt, server_timing, ids, statistics }
    }
}

impl Site {
    /// A later time of an exchange: looked at only where somebody wants to know, else `then`, in monotonic nanoseconds.
    pub(crate) fn later(&self, then: u64) -> u64 {
        if self.times() { clock::monotonic() } else { then }
    }

    /// Whether the times of exchanges are looked at.
    pub(crate) fn times(&self) -> bool {
        self.measures.times.load(Ordering::Relaxed) || self.log.writes_access()
    }
}

// ---- Routes ----
//
// Which handler answers which path.

/// The handlers of a server: static mounts first, by longest prefix, then the application.
#[derive(Default)]
pub struct Routes {
    mounts: Vec<Mount>,
    application: Option<Arc<dyn Handler>>,
}

struct Mount {
    /// Without a slash at the end: empty for the root.
    prefix: String,
    files: StaticFiles,
}

/// Where a path leads.
pub enum Route<'a> {
    /// A file below a static mount; the path starts with a slash.
    Static(&'a StaticFiles, &'a [u8]),
    /// The application.
    Application(&'a Arc<dyn Handler>),
    /// The folder of a mount, without its slash: the slash is missing.
    Slash,
    /// The path has no normal form, and only files could answer.
    Bad,
    /// Nothing answers this path.
    Nothing,
}

impl Routes {
    /// No route: every request gets 404.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves everything below `prefix` (`/static`, or `/` for all) from `files`.
    #[must_use]
    pub fn with_static(mut self, prefix: &str, files: StaticFiles) -> Self {
        self.mounts.push(Mount { prefix: prefix.trim_end_matches('/').to_owned(), files });
        self.mounts.sort_by_key(|mount| std::cmp::Reverse(mount.prefix.len()));
        self
    }

    /// Sends everything else to `handler`.
    #[must_use]
    pub fn with_application(mut self, handler: Arc<dyn Handler>) -> Self {
        self.application = Some(handler);
        self
    }

    /// Whether any path leads to a static mount.
    pub fn has_static(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// The patterns of the static mounts, `/static/*`, in the order of their numbers.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = String> {
        self.mounts.iter().map(|mount| format!("{}/*", mount.prefix))
    }

    /// The number of the static mount that answers a normalised path, its folder without a slash included.
    pub(crate) fn mount_of(&self, path: &[u8]) -> Option<usize> {
        let below = |mount: &Mount| {
            let rest = path.strip_prefix(mount.prefix.as_bytes());
            rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
        };
        self.mounts.iter().position(below)
    }

    /// Sums of what the caches of the static mounts have done and hold.
    pub(crate) fn cache_statistics(&self) -> CacheStatistics {
        let mut sum = CacheStatistics::default();
        self.mounts.iter().for_each(|mount| sum.add(&mount.files.statistics()));
        sum
    }

    /// Whether there is an application.
    pub fn has_application(&self) -> bool {
        self.application.is_some()
    }

    /// The static mounts, the longest prefix first, which has no slash at its end.
    pub fn mounts(&self) -> impl Iterator<Item = (&str, &StaticFiles)> {
        self.mounts.iter().map(|mount| (&*mount.prefix, &mount.files))
    }

    /// Closes what static mounts have not used for a while.
    pub(crate) fn sweep(&self, now: Now) {
        for mount in &self.mounts {
            mount.files.sweep(now);
        }
    }

    /// A file became shorter while it was sent: the next request must not be told its old length.
    pub(crate) fn forget_open_files(&self) {
        for mount in &self.mounts {
            mount.files.forget_open_files();
        }
    }

    /// Finds the route of a path as it was sent; `normal` is room for its normal form. Only what could lead to a static mount,
    /// and is not in normal form already, is normalised.
    pub(crate) fn find_sent<'a>(&'a self, path: &'a [u8], normal: &'a mut Vec<u8>) -> Route<'a> {
        if !self.has_static() {
            self.application()
        } else if is_plain(path) {
            self.find(path)
        } else if target::normalise(path, normal).is_ok() {
            self.find(normal)
        } else {
            self.unnormal()
        }
    }

    /// Finds the route of a normalised path.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> Route<'a> {
        for mount in &self.mounts {
            match path.strip_prefix(mount.prefix.as_bytes()) {
                Some([]) => return Route::Slash,
                Some(rest @ [b'/', ..]) => return Route::Static(&mount.files, rest),
                _ => {}
            }
        }
        self.application()
    }

    /// The route of a path without normal form: an application may understand it, files cannot.
    pub fn unnormal(&self) -> Route<'_> {
        self.application.as_ref().map_or(Route::Bad, Route::Application)
    }

    /// The route of a request that no static mount can answer.
    fn application(&self) -> Route<'_> {
        self.application.as_ref().map_or(Route::Nothing, Route::Application)
    }
}

// ---- Counters ----
//
// Of all exchanges together.

/// Counts since the start of the server.
#[derive(Default)]
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
// Promises: each exchange is counted once, where it is written down, whoever has answered it; a client that invents
// paths does not make routes of them. Leaves out: the figures themselves and their memory (maitred-stats), showing them
// (`site/metrics.rs`).
//
// The route of a request for the application is the shape (maitred-match) of its path, since the application's own
// routes are unknown here. Of a request that finds nothing (400, 404, 405, 501) no new route is made: a path exists
// when it has been answered once. So at most 1,000 are known; all others are one, "other".

/// The number of the pool of what the engine answers.
const ENGINE: u16 = u16::MAX - 1;

/// Entries of `Server-Timing` that are counted of one response.
const MAX_ENTRIES: usize = 32;

/// What a server counts of its exchanges.
pub(crate) struct Figures {
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

impl Figures {
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
    let mut after_slash = false;
    let fits = |byte: &u8| {
        let fits = match byte {
            b'%' | b'\\' | 0 => false,
            b'/' | b'.' => !after_slash,
            _ => true,
        };
        after_slash = *byte == b'/';
        fits
    };
    path.first() == Some(&b'/') && path.iter().all(fits)
}
