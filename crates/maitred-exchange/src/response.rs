//! Responses that the engine makes itself: files, refusals, redirects, the state of the server, 504.

use std::sync::Arc;

use maitred_files::Body;
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Content;

use crate::pages::PLAIN;

/// A response that the engine makes itself.
pub struct Response {
    /// Shared with the cache of a static mount.
    pub head: Arc<ResponseHead>,
    /// Bytes of the body, also where the body is not sent because the request is HEAD.
    pub length: u64,
    /// The body.
    pub body: Body,
    /// Another request may follow on the connection, if the peer wants that.
    pub keep_alive: bool,
    /// The request reached no route, and counts as refused.
    pub refused: bool,
}

impl Response {
    /// A response without a body. As all but [`refusal`](Self::refusal), it lets another request follow on the connection, and is not
    /// refused.
    pub fn new(head: impl Into<Arc<ResponseHead>>) -> Self {
        Self { head: head.into(), length: 0, body: Body::Empty, keep_alive: true, refused: false }
    }

    /// A response with this body of `length` bytes. Another request may follow, and it is not refused.
    pub fn with_body(head: impl Into<Arc<ResponseHead>>, length: u64, body: Body) -> Self {
        Self { length, body, ..Self::new(head) }
    }

    /// A response with one part of content, if it is not empty.
    pub fn with_content(head: ResponseHead, content: Content) -> Self {
        match content.len() {
            0 => Self::new(head),
            length => Self::with_body(head, length, Body::One(content)),
        }
    }

    /// A line of text.
    pub fn text(status: Status, text: impl Into<Content>) -> Self {
        Self::with_content(ResponseHead::new(status).with("Content-Type", PLAIN), text.into())
    }

    /// The status and its reason phrase as a line of text.
    pub fn status(status: Status) -> Self {
        Self::text(status, format!("{} {}\n", status.code(), status.reason()))
    }

    /// The refusal of a request, with the reason as text: the last response of its connection.
    pub fn refusal(status: Status, reason: &str) -> Self {
        let text = format!("{} {}: {reason}\n", status.code(), status.reason());
        Self { keep_alive: false, refused: true, ..Self::text(status, text) }
    }

    /// The same response with one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Arc::make_mut(&mut self.head).fields.push(name, value);
        self
    }

    /// The same response, behind which the connection ends unless `keep_alive`.
    #[must_use]
    pub fn keep_alive(self, keep_alive: bool) -> Self {
        Self { keep_alive, ..self }
    }

    /// Bytes of the body that are sent.
    pub fn body_bytes(&self, is_head: bool) -> u64 {
        if is_head { 0 } else { self.length }
    }
}

/// A response without a length that goes on until its handler or its client ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endless {
    /// Server-sent events (HTML Standard): their client comes again.
    Events,
    /// A sequence of records or pictures; some have an end.
    Records,
}

impl Endless {
    /// Prefixes of the media types.
    const TYPES: [(&[u8], Self); 7] = [
        (b"text/event-stream", Self::Events),
        (b"application/x-ndjson", Self::Records),
        (b"application/ndjson", Self::Records),
        (b"application/jsonl", Self::Records),
        (b"application/json-seq", Self::Records),
        (b"application/stream+json", Self::Records),
        (b"multipart/x-mixed-replace", Self::Records),
    ];

    /// The kind that the media type of a response tells.
    pub fn of(head: &ResponseHead) -> Option<Self> {
        let kind = head.fields.first("content-type")?;
        let begins =
            |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        Self::TYPES.into_iter().find(|(name, _)| begins(name)).map(|(_, endless)| endless)
    }
}
