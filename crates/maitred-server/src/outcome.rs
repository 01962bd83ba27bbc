//! What became of an exchange: one value, made once, at its end. The access log and the counters
//! read it and nothing else.

use std::net::SocketAddr;

use maitred_http::{RequestHead, Status};
use maitred_stats::Counter;

/// How an exchange ended.
pub(crate) struct Outcome<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) peer: SocketAddr,
    pub(crate) status: Status,
    /// Body bytes handed to the connection.
    pub(crate) body_bytes: u64,
    /// First byte read, in monotonic nanoseconds.
    pub(crate) began: u64,
    /// Response complete (handed to the socket or to the writer), likewise.
    pub(crate) ended: u64,
    pub(crate) end: End,
}

/// Who ended it, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The response was complete.
    Complete,
    /// The peer was gone before the response was complete.
    PeerGone,
    /// The application ended it in the middle, or sent less than it declared.
    Cut,
}

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
