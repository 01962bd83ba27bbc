//! What became of an exchange: one value, made once, at its end. The access log, the counters and the statistics
//! read it and nothing else.

use maitred_http::{Peer, RequestHead, Status};
use maitred_stats::Times;

use crate::request_id::RequestId;

/// How an exchange ended.
pub struct Outcome<'a> {
    /// The request.
    pub head: &'a RequestHead,
    /// What it is called in logs.
    pub id: RequestId<'a>,
    /// Who has asked.
    pub peer: Peer,
    /// The number of the listener.
    pub listener: u32,
    /// The number of the pool, 0 for the default one; none where the engine has answered.
    pub pool: Option<u16>,
    /// The name of its route, `/static/*` or `GET /users/{name}`, if there is one and somebody wants to know; none where that of an
    /// application is the shape of its path.
    pub route: Option<&'a str>,
    /// What the application has called its route; empty where it has said nothing.
    pub told_route: &'a str,
    /// Of the response.
    pub status: Status,
    /// Body bytes handed to the connection.
    pub body_bytes: u64,
    /// When it passed its stations.
    pub times: Times,
    /// How it ended.
    pub end: End,
    /// What it has had of databases, if somebody has counted that.
    pub database: Option<Database>,
    /// The calls to other servers, if there were any.
    pub outgoing: Option<Outgoing<'a>>,
}

/// The calls of a request to other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// Calls that have ended.
    pub calls: u64,
    /// Calls without a response.
    pub failed: u64,
    /// The time of all calls, in nanoseconds.
    pub nanos: u64,
    /// The server of the slowest call, `https://api.example:443`.
    pub slowest: &'a str,
    /// The time of that call, in nanoseconds.
    pub slowest_nanos: u64,
    /// The part that took most of that call, `first byte`.
    pub slowest_part: &'static str,
}

/// What a request has had of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Database {
    /// Statements.
    pub statements: u64,
    /// What they took, in nanoseconds.
    pub nanos: u64,
}

/// Who ended it, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The response was complete.
    Complete,
    /// The peer was gone before the response was complete.
    PeerGone,
    /// The application ended it in the middle, or sent less than it declared.
    Cut,
    /// The server ended it, because its peer took nothing of it, or too little, for too long.
    TooSlow,
    /// An operator ended it.
    Operator,
    /// The server ended it, because it stops.
    Drain,
}

impl End {
    /// As in the access log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::PeerGone => "peer-gone",
            Self::Cut => "cut",
            Self::TooSlow => "too-slow",
            Self::Operator => "operator",
            Self::Drain => "drain",
        }
    }
}
