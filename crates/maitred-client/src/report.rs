//! The account of a call: its times, its bytes and its end.

use std::time::Duration;

use crate::error::Phase;
use crate::key::Key;

/// The account of one call, made when the call ends. A time that did not occur is `None`: a reused connection has no
/// `connect`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// The status of the final response.
    pub status: Option<u16>,
    /// The connection had served another call before.
    pub reused: bool,
    /// The request was sent a second time, on a new connection, because the first one was stale.
    pub retried: bool,
    /// Waiting for a slot of the pool.
    pub slot: Option<Duration>,
    /// Looking the name up.
    pub resolve: Option<Duration>,
    /// From the first SYN to the established connection.
    pub connect: Option<Duration>,
    /// The TLS handshake.
    pub tls: Option<Duration>,
    /// From the first byte of the request to the first byte of the response.
    pub first_byte: Option<Duration>,
    /// The whole call, up to the last byte of the response or the failure.
    pub total: Duration,
    /// Bytes of HTTP that the socket has taken, of head and body.
    pub sent: u64,
    /// Bytes of HTTP that have come.
    pub received: u64,
    /// The end.
    pub end: End,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum End {
    /// The response was read to its end.
    Complete,
    /// The caller has dropped the call or the response before its end.
    #[default]
    Dropped,
    /// A time limit has passed.
    TimedOut(Phase),
    /// The call has failed: the name of the failure in a log. On the way to the server: `no-address`, `not-allowed`, `refused`,
    /// `unreachable`, `proxy`, `tls`. Behind that: `reset`, `cut-off`, `malformed`. By the caller's fault: `request`, `too-long`,
    /// `forked`.
    Failed(&'static str),
}

/// The receiver of reports. It is called by the thread that ends the call, and must not wait.
pub trait Observer: Send + Sync {
    /// A call to `key` begins: the number by which [`ended`](Self::ended) names it.
    fn begun(&self, key: &Key) -> u64;

    /// The call `number` has come to this phase.
    fn phase(&self, _number: u64, _phase: Phase) {}

    /// The call `number` has ended.
    fn ended(&self, number: u64, key: &Key, report: &Report);

    /// The caller of the call `number`, as the error of a call that waits for its connection names it: `request 17`.
    fn describe(&self, _number: u64) -> Option<String> {
        None
    }
}

impl Phase {
    /// The name in logs and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Write => "write",
            Self::FirstByte => "first byte",
            Self::Read => "read",
            Self::Total => "total",
        }
    }
}
