//! The state that all connections of a server share: hosts, limits, logs and counters.

mod computing;
mod contexts;
mod database;
mod figures;
mod handshakes;
mod http2;
mod metrics;
pub(crate) mod naming;
mod recent;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod totals;
mod websockets;

use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use maitred_compress::Compression;
use maitred_files::Submissions;
use maitred_filters::Filters;
use maitred_h1::Limits;
use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_limits::Guard;
use maitred_log::{End, Log, Outcome};
use maitred_runtime::Handler;
use maitred_spool::{BodyMemory, Spooler};
use maitred_stats::exposition::Format;
use maitred_stats::memory::Memory;
use maitred_stats::{Arena, Counter};
use maitred_tls::Terms;

use crate::hosts::Hosts;
use crate::proxies::Proxies;
use crate::spill::Spilling;
use crate::thread_hosts::ThreadHosts;
use crate::traced::Traced;

pub use computing::Computing;
pub(crate) use contexts::{Contexts, Share};
pub use database::DatabaseUse;
pub use figures::SPOOLED_TOTAL;
pub(crate) use figures::{Figures, Names};
pub(crate) use handshakes::Handshakes;
pub use http2::Http2Settings;
pub(crate) use http2::{Http2Counters, Open};
pub use metrics::{page_of_workers, write_exchanges};
pub(crate) use metrics::{write_build, write_cache, write_process};
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

/// Names of the figures.
pub(crate) const ACCEPTED_TOTAL: &str = "maitred_connections_accepted_total";
pub(crate) const REQUESTS_TOTAL: &str = "maitred_requests_total";
pub(crate) const REFUSED_TOTAL: &str = "maitred_refused_total";
pub(crate) const ERRORS_TOTAL: &str = "maitred_errors_total";
pub(crate) const CUT_TOTAL: &str = "maitred_cut_total";
pub(crate) const TIMEOUTS_TOTAL: &str = "maitred_timeouts_total";
pub(crate) const BODY_BYTES_TOTAL: &str = "maitred_body_bytes_total";

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
