//! What became of an exchange: one value, made once, at its end. The access log and the counters
//! read it and nothing else.

use std::net::SocketAddr;

use maitred_http::{RequestHead, Status};
use maitred_stats::{Counter, Times};

use crate::ids::RequestId;

/// How an exchange ended.
pub(crate) struct Outcome<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) id: RequestId<'a>,
    pub(crate) peer: SocketAddr,
    /// The number of the listener.
    pub(crate) listener: u32,
    /// The number of the pool, 0 for the default one; none where the engine has answered.
    pub(crate) pool: Option<u16>,
    /// The route of what the engine has answered, `/static/*`, if there is one and somebody wants to know.
    pub(crate) engine_route: Option<&'a str>,
    pub(crate) status: Status,
    /// Body bytes handed to the connection.
    pub(crate) body_bytes: u64,
    pub(crate) times: Times,
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

impl End {
    /// As in the access log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::PeerGone => "peer-gone",
            Self::Cut => "cut",
        }
    }
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
