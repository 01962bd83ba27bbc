//! Errors of requests and of response heads: the cause, and the part of the connection that is lost.

use std::fmt;

use maitred_http::Status;

/// The peer sent a request that is not answered by a handler. The connection is lost with it: where
/// the next request would start is no longer certain. Answer with `status` and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// The status to answer with: 400, 414, 417, 431, 501 or 505.
    pub status: Status,
    /// The reason, for the error log; contains nothing the peer sent.
    pub reason: &'static str,
}

impl RequestError {
    pub(crate) const fn new(status: Status, reason: &'static str) -> Self {
        Self { status, reason }
    }

    pub(crate) const fn bad(reason: &'static str) -> Self {
        Self::new(Status::BAD_REQUEST, reason)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.reason)
    }
}

impl std::error::Error for RequestError {}

/// The application gave a response head that cannot be sent. Nothing was appended; another head may
/// be sent in its place, and only this response is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// A field name is not a token (RFC 9110 §5.6.2). The name is made printable.
    InvalidName(String),
    /// The value of the named field contains CR, LF, NUL or another control character (RFC 9110 §5.5).
    InvalidValue(String),
    /// The reason phrase contains a control character.
    InvalidReason,
    /// `Content-Length` is not a number, or several differ.
    ContentLength,
    /// A status below 200 does not end an exchange; see [`Sender::send_interim`](crate::Sender::send_interim).
    InterimStatus(Status),
    /// No status of an interim response that an application may send.
    NotInterim(Status),
    /// The head was sent already, or the response has ended.
    AlreadySent,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(name) => write!(f, "the field name {name:?} is not a token"),
            Self::InvalidValue(name) => {
                write!(f, "the value of the field {name:?} contains a line break or control character")
            }
            Self::InvalidReason => f.write_str("the reason phrase contains a control character"),
            Self::ContentLength => f.write_str("Content-Length is not one single number"),
            Self::InterimStatus(status) => write!(f, "{status} is no final status"),
            Self::NotInterim(status) => write!(f, "{status} is no interim status from 102 to 199"),
            Self::AlreadySent => f.write_str("the response head was sent already"),
        }
    }
}

impl std::error::Error for HeadError {}
