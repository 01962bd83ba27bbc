//! The ends of an exchange that are no response.

use std::fmt;

use maitred_h1::{HeadError, Malformed};
use maitred_tls::ServerFault;

use crate::proxy::ProxyFault;

/// A call that has failed. Its connection is not used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The request cannot be sent as given. No byte of it was sent.
    Request(HeadError),
    /// The body of the request is longer than its declared length.
    BodyTooLong,
    /// The body of the request ended so many bytes before its declared length.
    BodyTooShort(u64),
    /// The server's bytes are no response, or end within one.
    Response(Malformed),
    /// The server sent more interim responses than [`MAX_INTERIM`](crate::exchange::MAX_INTERIM).
    TooManyInterim,
    /// The server answered 408 to a connection that was idle, and closes it.
    IdleTimeout,
    /// The server sent bytes on an idle connection before a request.
    Unasked,
    /// The connection broke before the response was complete.
    Broken,
    /// A body without length ended without the end of TLS: it may be cut off (RFC 9112 §9.8).
    NotClosed,
    /// A file or another part of the TLS identity cannot be used.
    Identity(Box<str>),
    /// TLS with the server has failed.
    Tls(Box<ServerFault>),
    /// The proxy has failed, or refuses.
    Proxy(Box<ProxyFault>),
    /// A time limit has passed.
    Timeout(Phase),
}

/// The part of a call that a time limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for a slot of the pool.
    Slot,
    /// Looking the name up.
    Resolve,
    /// Connecting.
    Connect,
    /// The proxy's way to the server.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// The server takes no byte of the request.
    Write,
    /// The request was sent, and no byte of a response has come.
    FirstByte,
    /// No further byte of a response comes.
    Read,
    /// The whole call.
    Total,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(error) => write!(f, "the request cannot be sent: {error}"),
            Self::BodyTooLong => f.write_str("the body of the request is longer than its Content-Length"),
            Self::BodyTooShort(bytes) => {
                write!(f, "the body of the request ends {bytes} bytes before its Content-Length")
            }
            Self::Response(malformed) => write!(f, "{malformed}"),
            Self::TooManyInterim => f.write_str("the server sends interim responses without end"),
            Self::IdleTimeout => f.write_str("the server gave up the idle connection with 408"),
            Self::Unasked => f.write_str("the server sent bytes on the idle connection"),
            Self::Broken => f.write_str("the connection broke before the response was complete"),
            Self::NotClosed => {
                f.write_str("the connection ended without the end of TLS: the body may be cut off")
            }
            Self::Identity(text) => f.write_str(text),
            Self::Tls(fault) => write!(f, "{fault}"),
            Self::Proxy(fault) => write!(f, "{fault}"),
            Self::Timeout(phase) => write!(f, "timed out: {phase}"),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slot => "no connection of the pool became free",
            Self::Resolve => "the name was not looked up",
            Self::Connect => "no connection was made",
            Self::Proxy => "the proxy made no connection to the server",
            Self::Tls => "the TLS handshake was not complete",
            Self::Write => "the server does not take the request",
            Self::FirstByte => "no byte of a response came",
            Self::Read => "no further byte of the response came",
            Self::Total => "the response was not complete",
        })
    }
}

impl std::error::Error for Error {}

impl From<HeadError> for Error {
    fn from(error: HeadError) -> Self {
        Self::Request(error)
    }
}

impl From<ProxyFault> for Error {
    fn from(fault: ProxyFault) -> Self {
        Self::Proxy(Box::new(fault))
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Response(malformed)
    }
}
