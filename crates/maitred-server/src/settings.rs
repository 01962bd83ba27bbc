//! Everything a server is told, in one struct with named fields.

use std::net::{AddrParseError, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use maitred_compress::CompressionSettings;
use maitred_files::Submissions;
use maitred_filters::{Filter, FilterRule};
use maitred_http::Method;
use maitred_io::listener::{Address, SocketOptions};
use maitred_io::shared_memory::SharedMemory;
use maitred_limits::{Limits, ProcessClients};
use maitred_log::Log;
use maitred_runtime::{Handler, NativeThreads, ThreadHost};
use maitred_tls::Terms;

use crate::hosts::HostSettings;
use crate::listener::BoundListeners;
use crate::pages::ErrorPages;
use crate::proxies::Forwarding;
use crate::routes::Routes;
use crate::sharing::Accept;
use crate::site::{Http2Settings, Insight, Timeouts, WebSocketSettings};
use crate::spill::WriterSettings;

pub use maitred_match::{
    CertificatePattern, HeaderPattern, HostCondition, HostPattern, Network, PathPattern,
};
pub use maitred_pool::{DEFAULT_POOL, Overflow, PoolLimits, PoolSettings, Strategy};

/// What a server serves, where, and within which bounds.
pub struct Settings {
    /// Where to listen, in this order.
    pub listeners: Vec<ListenerSettings>,
    /// Sockets that listen there already, one for each, in the same order. Without them the server listens when it starts.
    pub bound: Option<BoundListeners>,
    /// What listeners with TLS go by; needed if there are any. [`Server::set_tls`](crate::Server::set_tls) changes it.
    pub tls: Option<Arc<Terms>>,
    /// How HTTP/2 is spoken; none: it is not. By TLS clients and server agree on it (ALPN), so the terms have to offer it, too.
    pub http2: Option<Http2Settings>,
    /// How WebSocket is spoken; none: it is not, and a request for one is a request like any other.
    pub websockets: Option<WebSocketSettings>,
    /// Whether other processes accept at the same addresses.
    pub accept: Accept,
    /// Whether there are several of these processes: a further request of a client may reach another one.
    pub several: bool,
    /// Which proxies are believed. None unless set.
    pub forwarding: Forwarding,
    /// The pool of all requests that no rule leads elsewhere.
    pub pool: PoolSettings,
    /// Further pools, each with a name of its own.
    pub pools: Vec<PoolSettings>,
    /// Which requests are run by which pool. What takes precedence says [`PoolMap`](crate::pool_map::PoolMap).
    pub rules: Vec<PoolRule>,
    /// Requests that an event loop runs at the same time, at most; further ones wait in the queue of the default pool. 0 for any
    /// number. WebSockets do not count.
    pub loop_requests: usize,
    /// Poll groups: each has an epoll descriptor, connections, and a part of the threads of `pool`. 0: one for each
    /// eight processors. There are never more than threads, and there is one where a language runs one thread at a
    /// time or brings an event loop, and with another strategy than the adaptive one.
    pub poll_groups: usize,
    /// What answers which path of the default host.
    pub routes: Routes,
    /// What errors of the default host look like.
    pub pages: ErrorPages,
    /// Virtual hosts. With some, and without any of `routes`, requests for other hosts get 421.
    pub hosts: Vec<HostSettings>,
    /// What requests meet before that, and their responses behind it.
    pub filters: Vec<FilterRule>,
    /// Filters of the program's own, in this order at each place.
    pub native_filters: Vec<Arc<dyn Filter>>,
    /// Who makes application threads.
    pub threads: Arc<dyn ThreadHost>,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// How slow peers may be, how much one client may ask for, how fast responses leave.
    pub limits: Limits,
    /// The longest request body in bytes; longer ones get 413.
    pub max_body: u64,
    /// Bytes of a request head; a larger one gets 431.
    pub max_head: usize,
    /// Bytes of one field of a head, name and value; a larger one gets 431.
    pub max_field: usize,
    /// Bytes of a request body that are kept in memory in any case; a longer one is while there is room in the budget, and goes to
    /// a file without a name else.
    pub body_memory: u64,
    /// Bytes of memory for all request bodies longer than that; one of them has at most a quarter of it. Default: 64 MiB.
    pub body_budget: u64,
    /// The folder of these files, and of those with what waits for slow readers.
    pub spool: PathBuf,
    /// Threads that write there, at least one. Default: 1.
    pub spool_threads: usize,
    /// Output buffers: how much of a response may wait for a slow reader in memory, and how much in files.
    pub writer: WriterSettings,
    /// The folders whose files an application may have the engine send, by `X-Sendfile` and `X-Accel-Redirect`.
    pub submissions: Submissions,
    /// The path for which the engine itself says that it serves, if any.
    pub health_path: Option<String>,
    /// The path at which the engine itself shows its figures, if any.
    pub metrics_path: Option<String>,
    /// Who answers there instead: whoever knows the figures of several processes. It must not block.
    pub metrics_handler: Option<Arc<dyn Handler>>,
    /// What runs the applications, as the figures name it, such as `Python 3.11.2`; empty for nothing.
    pub language: String,
    /// What is measured of each request.
    pub insight: Insight,
    /// Memory of at least [`MEMORY_BYTES`](crate::figures::MEMORY_BYTES) in which another process reads what has been counted, also when this
    /// one has been killed ([`figures`](crate::figures)). Without it only this process does.
    pub figures: Option<Arc<SharedMemory>>,
    /// Where clients are counted, by this process and by others that serve the same addresses. Without it only by this one.
    pub clients: Option<ProcessClients>,
    /// Which responses of the application are compressed, if any. Files have settings of their own
    /// ([`StaticSettings`](maitred_files::StaticSettings)).
    pub compression: Option<CompressionSettings>,
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
            threads: Arc::new(native_threads(&log)),
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
            log,
        }
    }
}

/// Threads whose failures go to the error log.
fn native_threads(log: &Arc<Log>) -> NativeThreads {
    let log = Arc::clone(log);
    NativeThreads::new(move |line| log.error(format_args!("{line}")))
}

/// Leads requests to a pool: those that meet all conditions it has.
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
    /// Where the peer's address is, as the connection has it.
    pub client: Option<Network>,
    /// The client's certificate, of the TLS session that ends here.
    pub certificate: Option<CertificatePattern>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Where it listens.
    pub address: Address,
    /// What its sockets are told.
    pub options: SocketOptions,
    /// Connections speak TLS, by [`Settings::tls`].
    pub tls: bool,
    /// Every request is answered with 308 to the same host and path by https, at this port. Not together with `tls`.
    pub redirect: Option<u16>,
    /// Each connection begins with a header of the PROXY protocol, which a trusted proxy sends. Others are closed.
    pub proxy_protocol: bool,
    /// Whether a request is received completely before its handler runs. `Some(false)`: a handler that
    /// [takes live bodies](maitred_runtime::Handler::takes_live_bodies) runs after the head and reads the body as it
    /// comes, so that a slow peer keeps its thread. `None`: every body is received first but those that are for an event loop
    /// and announced as longer than [`Settings::body_memory`]: waiting takes no thread there.
    pub read_ahead: Option<bool>,
    /// Whether the engine sends what a handler has given it while that goes on. Without it, a handler that can wait
    /// waits until the kernel has taken everything, so that a slow reader keeps its thread. Handlers on an event loop
    /// cannot.
    pub writer: bool,
}

impl<A: Into<Address>> From<A> for ListenerSettings {
    fn from(address: A) -> Self {
        Self {
            address: address.into(),
            options: SocketOptions::default(),
            tls: false,
            redirect: None,
            proxy_protocol: false,
            read_ahead: None,
            writer: true,
        }
    }
}

impl FromStr for ListenerSettings {
    type Err = AddrParseError;

    /// A socket address; the rest is as usual.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<SocketAddr>().map(Self::from)
    }
}
