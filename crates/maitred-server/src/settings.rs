//! Everything a server is told, in one struct with named fields.

use std::net::{AddrParseError, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use maitred_runtime::{NativeThreads, ThreadHost};

use crate::log::Log;
use crate::route::Routes;

/// What a server serves, where, and within which bounds.
pub struct Settings {
    /// Where to listen, in this order.
    pub listeners: Vec<ListenerSettings>,
    /// Application threads that are kept however idle; at least 1.
    pub min_threads: usize,
    /// The most application threads; at least `min_threads`.
    pub max_threads: usize,
    /// What answers which path.
    pub routes: Routes,
    /// Who makes application threads.
    pub threads: Arc<dyn ThreadHost>,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// Whether application code is interrupted whose request has passed [`Timeouts::request`], by handlers that can
    /// do that.
    pub interrupt: bool,
    /// The longest request body in bytes; longer ones get 413.
    pub max_body: u64,
    /// Bytes of a request body that are kept in memory; a longer one goes to a file without a name.
    pub body_memory: u64,
    /// The folder of these files.
    pub spool: PathBuf,
    /// The path for which the engine itself says that it serves, if any.
    pub health_path: Option<String>,
    /// Error log and access log.
    pub log: Arc<Log>,
}

impl Settings {
    /// The defaults, with no listener.
    pub fn new(routes: Routes, log: Arc<Log>) -> Self {
        Self {
            listeners: Vec::new(),
            min_threads: 1,
            max_threads: 10,
            routes,
            threads: Arc::new(NativeThreads),
            timeouts: Timeouts::default(),
            interrupt: false,
            max_body: 1024 * 1024 * 1024,
            body_memory: 256 * 1024,
            spool: PathBuf::from("/var/tmp"),
            health_path: None,
            log,
        }
    }
}

/// A listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether a request is received completely before its handler runs. Without it, a handler that
    /// [takes live bodies](maitred_runtime::Handler::takes_live_bodies) runs after the head and reads the body as it
    /// comes, so that a slow peer keeps its thread.
    pub read_ahead: bool,
}

impl From<SocketAddr> for ListenerSettings {
    fn from(address: SocketAddr) -> Self {
        Self { address, read_ahead: true }
    }
}

impl FromStr for ListenerSettings {
    type Err = AddrParseError;

    /// A socket address; the rest is as usual.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<SocketAddr>().map(Self::from)
    }
}

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
    /// From a complete request to the first byte of its handler's response, waiting for a thread included; then the
    /// engine answers 504 and closes, and for the handler it is as if the peer were gone. A response whose head has
    /// left is not timed. With a body that is read as it comes, the time begins anew with every part, and stands
    /// still while the handler waits for its peer. `None`: for ever.
    pub request: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            send: Duration::from_secs(60),
            request: None,
        }
    }
}
