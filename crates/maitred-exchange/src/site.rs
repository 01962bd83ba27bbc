//! The state that all connections of a server share: hosts, limits, logs and counters.

mod calls;
mod computing;
mod contexts;
mod database;
mod figures;
mod handshakes;
mod http2;
mod http_metrics;
mod metrics;
pub(crate) mod naming;
mod outgoing;
mod recent;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod totals;
mod upstream_metrics;
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
use maitred_tls::{Challenges, Terms};

use crate::hosts::Hosts;
use crate::proxies::Proxies;
use crate::spill::Spilling;
use crate::traced::Traced;
use crate::tracing::Tracing;

pub use calls::{Calls, RunningCall, part_of_number};
pub use computing::Computing;
pub use contexts::{Contexts, Share};
pub use database::DatabaseUse;
pub use figures::SPOOLED_TOTAL;
pub use figures::{Counted, EngineRoute, Figures, Names};
pub use handshakes::Handshakes;
pub use http_metrics::HttpRequests;
pub use http2::Http2Settings;
pub use http2::{Http2Counters, Open};
pub use metrics::{page_of_workers, write_exchanges, write_pools};
pub use metrics::{write_build, write_cache, write_process};
pub use naming::shape_of;
pub use outgoing::OutgoingUse;
pub use recent::Recent;
pub use recent::{RecentCalls, RecentRequest, RecentRequests};
pub use snapshot::{ApplicationTiming, LeafCount, Statistics};
pub use totals::Totals;
pub use websockets::WebSocketCounters;
pub use websockets::WebSocketSettings;

/// Shared state, read-only after the start except for the counters.
pub struct Site {
    /// The virtual hosts.
    pub hosts: Hosts,
    /// Number of the pool of handlers that do not run on the event loop, where there is one.
    pub beside_loop: Option<usize>,
    /// Most requests that the event loop runs at the same time; 0 for no limit.
    pub loop_requests: usize,
    /// Filters that requests pass before they reach a handler.
    pub filters: Filters,
    /// Path of the health check, answered by the engine before any route.
    pub health_path: Option<String>,
    /// Path of the figures, answered by the engine before any route.
    pub metrics_path: Option<String>,
    /// Handler of that path, if it is not the engine itself.
    pub metrics_handler: Option<Arc<dyn Handler>>,
    /// Language of the application, for the figures.
    pub language: String,
    /// Limits of heads.
    pub limits: Limits,
    /// The trusted proxies.
    pub proxies: Proxies,
    /// Limits on peers.
    pub guard: Guard,
    /// Time limits.
    pub timeouts: Timeouts,
    /// TLS settings; none without TLS.
    pub tls: ArcSwapOption<Terms>,
    /// The open challenges of a certificate authority; none where no certificate is ordered.
    pub challenges: Option<Arc<dyn Challenges>>,
    /// Settings of HTTP/2; none where it is off.
    pub http2: Option<Http2Settings>,
    /// Counters of HTTP/2.
    pub http2_counters: Http2Counters,
    /// Settings of WebSocket; none where it is off.
    pub websockets: Option<WebSocketSettings>,
    /// Counters of WebSockets.
    pub websocket_counters: WebSocketCounters,
    /// Budget of compression contexts.
    pub contexts: Contexts,
    /// Counters of TLS handshakes.
    pub handshakes: Handshakes,
    /// With several processes: whether the log has said that sessions of long polling need a single process.
    pub polling: Option<Once>,
    /// Largest request body, in bytes.
    pub max_body: u64,
    /// Bytes of a body that stay in memory in any case.
    pub body_memory: u64,
    /// Shared budget of bodies beyond the memory for one.
    pub body_budget: Arc<BodyMemory>,
    /// The spooler; none without an application, which alone reads bodies.
    pub spooler: Option<Spooler>,
    /// Compression; none where it is off.
    pub compression: Option<Compression>,
    /// Memory limits of responses that wait for slow readers.
    pub spilling: Spilling,
    /// Folders of files that applications submit.
    pub submissions: Submissions,
    /// Error log and access log.
    pub log: Arc<Log>,
    /// Name of the calling thread, if it serves requests.
    pub own_name: fn() -> Option<String>,
    /// Counters of all exchanges.
    pub counters: Counters,
    /// Memory of all counters that survive a killed process.
    pub counted: Memory,
    /// Measurements of each exchange.
    pub measures: Measures,
    /// Figures made from the measurements.
    pub figures: Figures,
    /// Traces of the last requests: how each got its thread.
    pub traced: Traced,
    /// The slowest requests of the last minutes, and the last failed ones.
    pub recent: Recent,
    /// Traces by OpenTelemetry; none where they are off.
    pub tracing: Option<Tracing>,
    /// All figures as text, for `metrics_path`; set at the start.
    pub metrics: OnceLock<MetricsText>,
}

/// Makes the figures of a server as text.
pub type MetricsText = Box<dyn Fn(Format) -> String + Send + Sync>;

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
pub struct Measures {
    /// Times of the stations.
    pub times: AtomicBool,
    /// The kernel's time of receipt.
    pub receipt: AtomicBool,
    pub(crate) server_timing: AtomicBool,
    pub(crate) ids: AtomicBool,
    pub(crate) response_ids: AtomicBool,
}

impl Measures {
    /// As these settings say.
    pub fn new(insight: Insight) -> Self {
        let Insight { times, receipt, server_timing, ids, response_ids, .. } = insight;
        Self {
            times: times.into(),
            receipt: receipt.into(),
            server_timing: server_timing.into(),
            ids: ids.into(),
            response_ids: response_ids.into(),
        }
    }

    /// Changes the measurements.
    pub fn set(&self, insight: Insight) {
        self.times.store(insight.times, Ordering::Relaxed);
        self.receipt.store(insight.receipt, Ordering::Relaxed);
        self.server_timing.store(insight.server_timing, Ordering::Relaxed);
        self.ids.store(insight.ids, Ordering::Relaxed);
        self.response_ids.store(insight.response_ids, Ordering::Relaxed);
    }

    /// Returns the present state. [`Figures`] has the value of `statistics`.
    pub fn get(&self, statistics: bool) -> Insight {
        let [times, receipt, server_timing, ids, response_ids] =
            [&self.times, &self.receipt, &self.server_timing, &self.ids, &self.response_ids]
                .map(|on| on.load(Ordering::Relaxed));
        Insight { times, receipt, server_timing, ids, response_ids, statistics }
    }
}

impl Site {
    /// Reads the clock where times are measured, else returns `then`; in monotonic nanoseconds.
    pub fn later(&self, then: u64) -> u64 {
        if self.times() { clock::monotonic() } else { then }
    }

    /// Whether times of exchanges are measured.
    pub fn times(&self) -> bool {
        self.measures.times.load(Ordering::Relaxed) || self.log.writes_access() || self.tracing.is_some()
    }
}

/// Names of the figures.
pub const ACCEPTED_TOTAL: &str = "maitred_connections_accepted_total";
/// Requests answered.
pub const REQUESTS_TOTAL: &str = "maitred_requests_total";
/// Requests refused.
pub const REFUSED_TOTAL: &str = "maitred_refused_total";
/// Responses with a status of 500 and above.
pub const ERRORS_TOTAL: &str = "maitred_errors_total";
/// Responses that were cut.
pub const CUT_TOTAL: &str = "maitred_cut_total";
/// Requests without a response in time.
pub const TIMEOUTS_TOTAL: &str = "maitred_timeouts_total";
/// Bytes of response bodies.
pub const BODY_BYTES_TOTAL: &str = "maitred_body_bytes_total";

/// Counts since the start of the server.
pub struct Counters {
    /// Connections accepted.
    pub connections: Counter,
    /// Requests answered, refused ones not counted.
    pub requests: Counter,
    /// Requests refused before they reached a route.
    pub refused: Counter,
    /// Responses with a status of 500 and above.
    pub errors: Counter,
    /// Responses that did not end completely.
    pub cut: Counter,
    /// Requests without a response in time.
    pub timeouts: Counter,
    /// Bytes of response bodies.
    pub body_bytes: Counter,
}

impl Counters {
    /// Counters in this memory.
    pub fn new(arena: &Arena) -> Self {
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
