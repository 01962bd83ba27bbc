//! Request and response heads, independent of how a protocol version writes them.

use std::sync::Arc;

use crate::body::BodyLength;
use crate::fields::{FieldSet, Span};
use crate::method::Method;
use crate::proxied::Proxied;
use crate::status::Status;
use crate::tls::TlsSession;
use crate::trace::{Arrival, TracePlace};

/// The protocol version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl Version {
    /// The protocol as it stands in a request line and in `SERVER_PROTOCOL`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        }
    }
}

/// A request head. Reusable: [`clear`](Self::clear) keeps its memory.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The protocol version the request came in.
    pub version: Version,
    /// The body that follows.
    pub body: BodyLength,
    /// The header fields; the target's bytes live in the same buffer.
    pub fields: FieldSet,
    /// The request target as sent, in `fields`.
    pub target: Span,
    /// The authority the request is for (`host[:port]`): from the absolute-form target, else from
    /// `Host`, in `fields`; empty when there is none (HTTP/1.0).
    pub authority: Span,
    /// The path with its query (`/a/b?q=1`), or `*`, or the authority of a CONNECT, in `fields`.
    pub path_and_query: Span,
    /// The user that the server itself has authenticated, in `fields`; empty when there is none. Nothing that a peer
    /// sends becomes one without that.
    pub user: Span,
    /// The number of the virtual host that the request is for; 0 is the default host. The server finds it.
    pub host: u16,
    /// A number for method, shape of the path and host, which the server finds; 0 until then.
    pub shape_hash: u64,
    /// The TLS session by which it has come; none where TLS does not end at this server. Nothing that a peer sends in a head becomes
    /// one.
    pub tls: Option<Arc<TlsSession>>,
    /// A trusted proxy's account of its client's connection, in front of ours. Nothing in a head becomes it.
    pub proxied: Option<Arc<Proxied>>,
    /// The place in a trace, where the server traces.
    pub trace: Option<TracePlace>,
    /// The way by which it has come, where the server sends spans, figures or records.
    pub arrival: Arrival,
}

impl Default for RequestHead {
    fn default() -> Self {
        Self {
            method: Method::Get,
            version: Version::Http11,
            body: BodyLength::Empty,
            fields: FieldSet::new(),
            target: Span::default(),
            authority: Span::default(),
            path_and_query: Span::default(),
            user: Span::default(),
            host: 0,
            shape_hash: 0,
            tls: None,
            proxied: None,
            trace: None,
            arrival: Arrival::default(),
        }
    }
}

impl RequestHead {
    /// Forgets the request and keeps the memory.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.body = BodyLength::Empty;
        self.fields.clear();
        self.target = Span::default();
        self.authority = Span::default();
        self.path_and_query = Span::default();
        self.user = Span::default();
        self.host = 0;
        self.shape_hash = 0;
        self.tls = None;
        self.proxied = None;
        self.trace = None;
        self.arrival = Arrival::default();
    }

    /// The request target as sent.
    pub fn target(&self) -> &[u8] {
        self.fields.bytes(self.target)
    }

    /// `host[:port]` the request is for; empty when there is none.
    pub fn authority(&self) -> &[u8] {
        self.fields.bytes(self.authority)
    }

    /// The path with its query as sent, or `*`, or the authority of a CONNECT.
    pub fn path_and_query(&self) -> &[u8] {
        self.fields.bytes(self.path_and_query)
    }

    /// The name of the user that the server itself has authenticated; empty when there is none.
    pub fn user(&self) -> &[u8] {
        self.fields.bytes(self.user)
    }

    /// The path as sent, still percent-encoded, without the query.
    pub fn path(&self) -> &[u8] {
        let whole = self.path_and_query();
        whole.split(|byte| *byte == b'?').next().unwrap_or_default()
    }

    /// The query as sent, without its question mark; `None` when there is no question mark.
    pub fn query(&self) -> Option<&[u8]> {
        let whole = self.path_and_query();
        let mark = whole.iter().position(|byte| *byte == b'?')?;
        whole.get(mark + 1..)
    }
}

/// A response head as an application or the engine declares it, before framing.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: Status,
    /// A reason phrase other than the standard one, for versions that carry it: bytes, as RFC 9112 §4 has it.
    pub reason: Option<Box<[u8]>>,
    /// The header fields.
    pub fields: FieldSet,
}

impl ResponseHead {
    /// A head with this status and no field.
    pub fn new(status: Status) -> Self {
        Self { status, reason: None, fields: FieldSet::new() }
    }

    /// Appends a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push(name, value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path_and_query: &[u8]) -> RequestHead {
        let mut head = RequestHead::default();
        head.path_and_query = head.fields.adopt(path_and_query).unwrap_or_default();
        head
    }

    #[test]
    fn path_and_query_part_at_the_first_question_mark() {
        for (whole, path, query) in [
            ("/a/b", "/a/b", None),
            ("/a?", "/a", Some("")),
            ("/a?x=1?y", "/a", Some("x=1?y")),
            ("/?x", "/", Some("x")),
            ("*", "*", None),
            ("", "", None),
        ] {
            let head = head(whole.as_bytes());
            assert_eq!(head.path_and_query(), whole.as_bytes());
            assert_eq!(head.path(), path.as_bytes(), "{whole}");
            assert_eq!(head.query(), query.map(str::as_bytes), "{whole}");
        }
    }

    #[test]
    fn a_cleared_head_keeps_its_memory_and_nothing_else() {
        let mut head = head(b"/secret?token=1");
        head.method = Method::Post;
        head.body = BodyLength::Fixed(9);
        head.user = head.fields.adopt(b"somebody").unwrap_or_default();
        head.host = 3;
        head.tls = Some(Arc::default());
        head.proxied = Some(Arc::default());
        let memory = head.fields.memory();
        head.clear();
        assert_eq!(
            (head.method.clone(), head.body, head.path_and_query()),
            (Method::Get, BodyLength::Empty, &b""[..])
        );
        assert_eq!(head.fields.memory(), memory);
        // A span that was kept from before shows nothing of the next head.
        head.fields.push("Cookie", "private");
        assert!(head.target().is_empty() && head.authority().is_empty() && head.user().is_empty());
        assert_eq!((head.host, head.tls, head.proxied), (0, None, None));
    }
}
