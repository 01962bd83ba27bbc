//! A request with its body.

use std::fmt;
use std::io::Read;

use maitred_http::{FieldSet, Method};

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
    Stream(&'a mut dyn Read),
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}
