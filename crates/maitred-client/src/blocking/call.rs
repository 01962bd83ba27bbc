//! A request as a caller gives it, and the reasons why it has no response.

use std::fmt;
use std::io::{self, Read};

use maitred_http::{FieldSet, Method};

use crate::error::Error;

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The target, percent-encoded.
    pub target: &'a str,
    /// The value of `Host` unless it is among the fields.
    pub authority: &'a str,
    /// The fields.
    pub fields: FieldSet,
    /// The body.
    pub body: Body<'a>,
    /// Whether it may be sent twice; `None`: by its method.
    pub repeatable: Option<bool>,
}

/// The body of a request.
pub enum Body<'a> {
    /// All of it.
    Bytes(&'a [u8]),
    /// A stream. Its length stands in `Content-Length`, or the body is chunked.
    Stream(&'a mut (dyn Read + Send)),
}

/// The reason why a call has no response.
#[derive(Debug)]
pub enum CallError {
    /// The exchange has failed, or a time limit has passed.
    Exchange(Error),
    /// The name has no address, or the resolver fails.
    Resolve(io::Error),
    /// No address takes the connection: the last one and its reason.
    Connect(String, io::Error),
    /// The body of the request cannot be read.
    Body(io::Error),
    /// The body of the response is longer than so many bytes.
    TooLong(usize),
    /// The key wants a proxy or TLS, which this driver does not have.
    Unsupported,
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Exchange(error)
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(error) => write!(f, "{error}"),
            Self::Resolve(error) => write!(f, "the name has no address: {error}"),
            Self::Connect(place, error) => write!(f, "{place} takes no connection: {error}"),
            Self::Body(error) => write!(f, "the body of the request cannot be read: {error}"),
            Self::TooLong(most) => write!(f, "the body of the response is longer than {most} bytes"),
            Self::Unsupported => f.write_str("TLS and proxies are not supported here"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Exchange(error) => Some(error),
            Self::Resolve(error) | Self::Connect(_, error) | Self::Body(error) => Some(error),
            Self::TooLong(_) | Self::Unsupported => None,
        }
    }
}
