//! The settings of a server, in one struct with named fields.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_compress::CompressionSettings;
use maitred_exchange::Routes;
use maitred_files::Submissions;
use maitred_filters::{Filter, FilterRule};
use maitred_http::Method;
use maitred_io::shared_memory::SharedMemory;
use maitred_limits::{Limits, ProcessClients};
use maitred_log::Log;
use maitred_runtime::{Handler, NativeThreads, ThreadHost};
use maitred_tls::{Challenges, Terms};

use crate::engine_client::EngineClient;
use crate::listener::{BoundListeners, ListenerSettings};
use crate::otlp_settings::OtlpSettings;
use crate::sharing::Accept;
use maitred_exchange::hosts::HostSettings;
use maitred_exchange::pages::ErrorPages;
use maitred_exchange::proxies::Forwarding;
use maitred_exchange::site::{Http2Settings, Insight, Timeouts, WebSocketSettings};
use maitred_exchange::spill::WriterSettings;
use maitred_exchange::tracing::Tracing;

pub use maitred_match::{
    CertificatePattern, HeaderPattern, HostCondition, HostPattern, Network, PathPattern,
};
pub use maitred_pool::{DEFAULT_POOL, Overflow, PoolLimits, PoolSettings, Strategy};

/// The settings of a server.
pub struct Settings {
    /// The listeners, in this order.
    pub listeners: Vec<ListenerSettings>,
    /// Sockets that listen already, one for each listener, in the same order. Without them the server binds when it
    /// starts.
    pub bound: Option<BoundListeners>,
    /// TLS settings for listeners with TLS; needed if there are any. [`set_tls`](crate::inspect::LiveSettings::set_tls)
    /// changes them.
    pub tls: Option<Arc<Terms>>,
    /// The open challenges of a certificate authority (ACME), which all listeners answer; none: requests for them are the application's.
    pub challenges: Option<Arc<dyn Challenges>>,
    /// Settings of HTTP/2; none: off. By TLS clients and server agree on HTTP/2 (ALPN), so the TLS settings have to
    /// offer it, too.
    pub http2: Option<Http2Settings>,
    /// Settings of WebSocket; none: off, and a request for one is a request like any other.
    pub websockets: Option<WebSocketSettings>,
    /// Whether other processes accept at the same addresses.
    pub accept: Accept,
    /// Whether there are several of these processes: a further request of a client may reach another one.
    pub several: bool,
    /// The trusted proxies. None unless set.
    pub forwarding: Forwarding,
    /// The pool of all requests that no rule leads elsewhere.
    pub pool: PoolSettings,
    /// Further pools, each with a name of its own.
    pub pools: Vec<PoolSettings>,
    /// Rules that lead requests to pools. [`PoolMap`](crate::pool_map::PoolMap) says which rule takes precedence.
    pub rules: Vec<PoolRule>,
    /// Most requests that an event loop runs at the same time; further ones wait in the queue of the default pool. 0
    /// for no limit. WebSockets do not count.
    pub loop_requests: usize,
    /// Poll groups: each has an epoll descriptor, connections, and a part of the threads of `pool`. 0: one for each
    /// eight processors. There are never more than threads, and there is one where a language runs one thread at a
    /// time or brings an event loop, and with another strategy than the adaptive one.
    pub poll_groups: usize,
    /// The routes of the default host.
    pub routes: Routes,
    /// The error pages of the default host.
    pub pages: ErrorPages,
    /// Virtual hosts. With some, and without any of `routes`, requests for other hosts get 421.
    pub hosts: Vec<HostSettings>,
    /// Rules of the filters that requests pass before the routes and responses behind them.
    pub filters: Vec<FilterRule>,
    /// Filters of the program's own, in this order at each place.
    pub native_filters: Vec<Arc<dyn Filter>>,
    /// The hosts that make application threads, one for each language, at least one. Pools name theirs by number, from 0 on.
    pub threads: Vec<Arc<dyn ThreadHost>>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Limits on clients, and rates of peers and responses.
    pub limits: Limits,
    /// The longest request body in bytes; longer ones get 413.
    pub max_body: u64,
    /// Bytes of a request head; a larger one gets 431.
    pub max_head: usize,
    /// Bytes of one field of a head, name and value; a larger one gets 431.
    pub max_field: usize,
    /// Bytes of a request body that are kept in memory in any case. A longer body stays in memory while the budget
    /// has room, and goes to a file without a name otherwise.
    pub body_memory: u64,
    /// Bytes of memory for all request bodies longer than `body_memory`; one of them has at most a quarter. Default:
    /// 64 MiB.
    pub body_budget: u64,
    /// The folder of these files, and of the files for slow readers.
    pub spool: PathBuf,
    /// Threads that write there, at least one. Default: 1.
    pub spool_threads: usize,
    /// Output queues: limits of a response that waits for a slow reader, in memory and in files.
    pub writer: WriterSettings,
    /// The folders whose files an application may have the engine send, by `X-Sendfile` and `X-Accel-Redirect`.
    pub submissions: Submissions,
    /// The path of the health check, if any.
    pub health_path: Option<String>,
    /// The path of the engine's figures, if any.
    pub metrics_path: Option<String>,
    /// Handler for `metrics_path` in place of the engine, with the figures of several processes. It must not block.
    pub metrics_handler: Option<Arc<dyn Handler>>,
    /// Name of the runtime of the applications in the figures, such as `Python 3.11.2`; empty without applications.
    pub language: String,
    /// Measurements of each request.
    pub insight: Insight,
    /// Memory of at least [`MEMORY_BYTES`](crate::figures::MEMORY_BYTES) from which another process reads the counts,
    /// also after the kill of this one ([`figures`](crate::figures)). Without it only this process reads them.
    pub figures: Option<Arc<SharedMemory>>,
    /// Counts of clients, shared with other processes that serve the same addresses. Without it this process counts
    /// alone.
    pub clients: Option<ProcessClients>,
    /// Settings for the compression of application responses, if any. Files have settings of their own
    /// ([`StaticSettings`](maitred_files::StaticSettings)).
    pub compression: Option<CompressionSettings>,
    /// Traces by OpenTelemetry, with the exporters of their spans; none: off.
    pub tracing: Option<Tracing>,
    /// The collector that empties the exporters.
    pub otlp: OtlpSettings,
    /// The client for calls of the engine itself to other servers. A clone of it can be kept before the server starts.
    pub client: EngineClient,
    /// Error log and access log.
    pub log: Arc<Log>,
}

impl Settings {
    /// The defaults, with no listener.
    pub fn new(routes: Routes, log: Arc<Log>) -> Self {
        Self {
            listeners: Vec::new(),
            bound: None,
            tls: None,
            challenges: None,
            http2: Some(Http2Settings::default()),
            websockets: Some(WebSocketSettings::default()),
            accept: Accept::Single,
            several: false,
            forwarding: Forwarding::default(),
            pool: PoolSettings::default(),
            pools: Vec::new(),
            rules: Vec::new(),
            loop_requests: 0,
            poll_groups: 0,
            routes,
            pages: ErrorPages::default(),
            hosts: Vec::new(),
            filters: Vec::new(),
            native_filters: Vec::new(),
            threads: vec![Arc::new(native_threads(&log))],
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            max_body: 1024 * 1024 * 1024,
            max_head: maitred_http::limits::MAX_HEAD,
            max_field: maitred_http::limits::MAX_FIELD_LINE,
            body_memory: 256 * 1024,
            body_budget: 64 * 1024 * 1024,
            spool_threads: 1,
            spool: PathBuf::from("/var/tmp"),
            writer: WriterSettings::default(),
            submissions: Submissions::default(),
            health_path: None,
            metrics_path: None,
            metrics_handler: None,
            language: String::new(),
            insight: Insight::default(),
            figures: None,
            clients: None,
            compression: None,
            tracing: None,
            otlp: OtlpSettings::default(),
            client: EngineClient::default(),
            log,
        }
    }
}

/// Threads whose failures go to the error log.
fn native_threads(log: &Arc<Log>) -> NativeThreads {
    let log = Arc::clone(log);
    NativeThreads::new(move |line| log.error(format_args!("{line}")))
}

/// A rule that leads requests to a pool: those that meet all conditions of the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolRule {
    /// The name of the pool: one of [`Settings::pools`], or [`DEFAULT_POOL`].
    pub pool: String,
    /// The virtual host.
    pub host: Option<HostCondition>,
    /// The method. HEAD is not GET.
    pub method: Option<Method>,
    /// The path.
    pub path: Option<PathPattern>,
    /// A header field.
    pub header: Option<HeaderPattern>,
    /// The network of the peer's address; the peer is the other end of the connection.
    pub client: Option<Network>,
    /// The client's certificate, of a TLS session with this server.
    pub certificate: Option<CertificatePattern>,
}
