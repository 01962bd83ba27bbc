//! The reasons why a call has no response, or not all of one.

use std::fmt;
use std::io::{self, ErrorKind};

use maitred_h1::Malformed;

use crate::error::{Error, Phase};
use crate::report::End;

/// The reason why a call has failed.
#[derive(Debug)]
pub enum CallError {
    /// The exchange has failed, or a time limit has passed.
    Exchange(Error),
    /// No connection of the pool became free in time: the holders of all.
    Held(String),
    /// The name has no address, or the resolver fails.
    Resolve(io::Error),
    /// No connection was made in time: the addresses that were tried.
    Unanswered(String),
    /// No address takes the connection: the last one and its reason.
    Connect(String, io::Error),
    /// The name has addresses, and none of those that may be connected: the first one.
    NotAllowed(String),
    /// The body of the request cannot be read.
    Body(io::Error),
    /// The body of the response is longer than so many bytes.
    TooLong(usize),
    /// The call was made before this process was forked: its connection belongs to the parent.
    Forked,
    /// The caller has cancelled the call.
    Cancelled,
    /// The server that drives the call has not begun, or has ended.
    NotServed,
}

impl CallError {
    /// The time limit that has passed.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::Exchange(Error::Timeout(phase)) => Some(*phase),
            Self::Held(_) => Some(Phase::Slot),
            Self::Unanswered(_) => Some(Phase::Connect),
            _ => None,
        }
    }

    /// The family of the failure: `timeout`, `resolve`, `connect`, `allow`, `tls`, `proxy`, `protocol` (the server's bytes are
    /// no response), `read` (the connection broke), `request` (the request cannot be sent as given), `closed`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Held(_) | Self::Unanswered(_) | Self::Exchange(Error::Timeout(_)) => "timeout",
            Self::Resolve(_) => "resolve",
            Self::Connect(..) => "connect",
            Self::NotAllowed(_) => "allow",
            Self::Exchange(Error::Request(_) | Error::BodyTooLong | Error::BodyTooShort(_))
            | Self::Body(_) => "request",
            Self::Exchange(Error::Tls(_) | Error::Identity(_)) => "tls",
            Self::Exchange(Error::Proxy(_)) => "proxy",
            Self::Exchange(Error::Broken) => "read",
            Self::Exchange(_) | Self::TooLong(_) => "protocol",
            Self::Forked | Self::Cancelled | Self::NotServed => "closed",
        }
    }

    /// The end of the call in its account.
    pub fn end(&self) -> End {
        if let Some(phase) = self.phase() {
            return End::TimedOut(phase);
        }
        if matches!(self, Self::Cancelled | Self::NotServed) {
            return End::Dropped;
        }
        End::Failed(match self {
            Self::Resolve(_) => "no-address",
            Self::Connect(_, error) if error.kind() == ErrorKind::ConnectionRefused => "refused",
            Self::Connect(..) => "unreachable",
            Self::NotAllowed(_) => "not-allowed",
            Self::Exchange(Error::Tls(_) | Error::Identity(_)) => "tls",
            Self::Exchange(Error::Proxy(_)) => "proxy",
            Self::Exchange(Error::Broken) => "reset",
            Self::Exchange(Error::Response(malformed)) if is_cut(*malformed) => "cut-off",
            Self::Exchange(Error::NotClosed | Error::IdleTimeout) => "cut-off",
            Self::Exchange(Error::Response(_) | Error::TooManyInterim | Error::Unasked) => "malformed",
            Self::TooLong(_) => "too-long",
            Self::Forked => "forked",
            Self::Exchange(_)
            | Self::Held(_)
            | Self::Unanswered(_)
            | Self::Body(_)
            | Self::Cancelled
            | Self::NotServed => "request",
        })
    }

    /// The same failure, as a later look at the call shows it.
    pub(crate) fn again(&self) -> Error {
        match (self, self.phase()) {
            (Self::Exchange(error), _) => error.clone(),
            (_, Some(phase)) => Error::Timeout(phase),
            _ => Error::Broken,
        }
    }
}

fn is_cut(malformed: Malformed) -> bool {
    matches!(
        malformed,
        Malformed::NoResponse | Malformed::CutInHead | Malformed::ShortBody | Malformed::CutInChunks
    )
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Exchange(error)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(error) => write!(f, "{error}"),
            Self::Held(holders) => write!(f, "timed out: {}: {holders}", Phase::Slot),
            Self::Unanswered(tried) => write!(f, "timed out: {}: tried {tried}", Phase::Connect),
            Self::Resolve(error) => write!(f, "the name has no address: {error}"),
            Self::Connect(place, error) => write!(f, "{place} takes no connection: {error}"),
            Self::NotAllowed(address) => {
                write!(f, "{address} is not among the addresses that are allowed for this call")
            }
            Self::Body(error) => write!(f, "the body of the request cannot be read: {error}"),
            Self::TooLong(most) => write!(f, "the body of the response is longer than {most} bytes"),
            Self::Forked => f.write_str("the call was begun before this process was forked; make it again"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::NotServed => f.write_str("no server drives the call: it has not begun, or has ended"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Exchange(error) => Some(error),
            Self::Resolve(error) | Self::Connect(_, error) | Self::Body(error) => Some(error),
            Self::Held(_) | Self::Unanswered(_) | Self::NotAllowed(_) | Self::TooLong(_) => None,
            Self::Forked | Self::Cancelled | Self::NotServed => None,
        }
    }
}
