//! Responses that the engine makes itself: files, refusals, redirects, the state of the server, 504.
//!
//! ```text
//! OwnResponse -> page of its host -> fields of the filters -> id of the request -> HTTP/1: bytes
//!                                                                              `-> frames: values
//! ```
//! Every response of the engine goes this way, by every protocol. Responses of handlers go through their [responder](super::responder).

use crate::connection::pipeline::Received;
use std::sync::Arc;

use maitred_files::Body;
use maitred_filters::Passed;
use maitred_http::{RequestHead, ResponseHead, Status};
use maitred_io::sync::atomic::Ordering;
use maitred_log::RequestId;
use maitred_runtime::Content;

use super::Context;
use super::framed::Heads;
use super::link::Link;
use super::responder::ValueSender;
use super::stream::Stream;
use super::wire::Wire;
use crate::pages::PLAIN;
use crate::site::Site;

/// A response that the engine makes itself.
pub(super) struct OwnResponse {
    /// Shared with the cache of a static mount.
    pub(super) head: Arc<ResponseHead>,
    /// Bytes of the body, also where the body is not sent because the request is HEAD.
    pub(super) length: u64,
    pub(super) body: Body,
    /// Another request may follow on the connection, if the peer wants that.
    pub(super) keep_alive: bool,
    /// The request reached no route, and counts as refused.
    pub(super) refused: bool,
}

impl OwnResponse {
    /// A response without a body.
    pub(super) fn new(head: impl Into<Arc<ResponseHead>>) -> Self {
        Self { head: head.into(), length: 0, body: Body::Empty, keep_alive: true, refused: false }
    }

    /// A response with this body of `length` bytes.
    pub(super) fn with_body(head: impl Into<Arc<ResponseHead>>, length: u64, body: Body) -> Self {
        Self { length, body, ..Self::new(head) }
    }

    /// A response with one part of content, if it is not empty.
    pub(super) fn with_content(head: ResponseHead, content: Content) -> Self {
        match content.len() {
            0 => Self::new(head),
            length => Self::with_body(head, length, Body::One(content)),
        }
    }

    /// A line of text.
    pub(super) fn text(status: Status, text: impl Into<Content>) -> Self {
        Self::with_content(ResponseHead::new(status).with("Content-Type", PLAIN), text.into())
    }

    /// The status and its reason phrase as a line of text.
    pub(super) fn status(status: Status) -> Self {
        Self::text(status, format!("{} {}\n", status.code(), status.reason()))
    }

    /// The refusal of a request, with the reason as text: the last response of its connection.
    pub(super) fn refusal(status: Status, reason: &str) -> Self {
        let text = format!("{} {}: {reason}\n", status.code(), status.reason());
        Self { keep_alive: false, refused: true, ..Self::text(status, text) }
    }

    /// The same response with one more field.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Arc::make_mut(&mut self.head).fields.push(name, value);
        self
    }

    /// The same response, behind which the connection ends unless `keep_alive`.
    #[must_use]
    pub(super) fn keep_alive(self, keep_alive: bool) -> Self {
        Self { keep_alive, ..self }
    }

    /// The response as it is sent: an error with the page of its host, the fields that filters set, and the id of the request.
    pub(super) fn finished(mut self, site: &Site, asked: &Asked<'_>) -> Self {
        let status = self.head.status;
        if status.code() >= 400
            && let Some((head, content)) = site.hosts.of(asked.head.host).pages().replace(&self.head)
        {
            (self.head, self.length, self.body) = (head.into(), content.len(), Body::One(content));
        }
        let filtered = match asked.passed {
            Some(passed) => passed.response_head(asked.head, &self.head),
            // Limits on peers refuse before filters are met.
            None if status.code() >= 400 && site.filters.is_on() => {
                site.filters.change_refused(&self.head, asked.head.host, asked.secure)
            }
            None => None,
        };
        self.head = filtered.map_or(self.head, Arc::new);
        let tells_id = self.head.status.code() >= 400 && site.measures.response_ids.load(Ordering::Relaxed);
        if tells_id && !self.head.fields.contains("x-request-id") {
            let id = RequestId::of(&asked.head.fields, asked.number).to_string();
            Arc::make_mut(&mut self.head).fields.push("X-Request-ID", id);
        }
        self
    }

    /// The head as a value, where frames are made of it later.
    pub(super) fn heads(&self, context: &mut Context<'_>, is_head: bool) -> Heads {
        ValueSender::new(is_head).only(&self.head, Some(self.length), context.scratch.date())
    }

    /// Bytes of the body that are sent.
    pub(super) fn body_bytes(&self, is_head: bool) -> u64 {
        if is_head { 0 } else { self.length }
    }
}

/// The request that the engine answers, as far as the response depends on it.
pub(super) struct Asked<'a> {
    /// The filters that the request has passed. Without any, only rules for host and scheme count.
    pub(super) passed: Option<&'a Passed>,
    pub(super) head: &'a RequestHead,
    /// The number of the request.
    pub(super) number: u64,
    pub(super) secure: bool,
}

/// The option with the limit of the head, for the log.
fn option_of(reason: &str) -> &'static str {
    match reason {
        "field too large" => " (--max-field)",
        "request head too large" => " (--max-head)",
        _ => "",
    }
}

/// Sends a response of the engine to a request that no handler has.
pub(super) fn respond(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    response: OwnResponse,
) -> Received {
    let secure = wire.client_of(&stream).secure;
    let (head, number) = (&stream.request.head, stream.request.number);
    let asked = Asked { passed: stream.passed.as_deref(), head, number, secure };
    let response = response.finished(&context.group.site, &asked);
    wire.served = wire.served.saturating_add(1);
    link.send_own(wire, context, stream, response)
}

/// Refuses a request that is malformed or not allowed: the response is the last one of the connection.
pub(super) fn refuse(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    let log = &context.group.site.log;
    log.info(format_args!(
        "{}: {} {}: {reason}{}",
        wire.client_of(&stream).peer,
        status.code(),
        status.reason(),
        option_of(reason)
    ));
    refuse_noted(link, wire, context, stream, status, reason)
}

/// Refuses a request; the line of the rule is in the log already.
pub(super) fn refuse_noted(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    // A head that could not be read has no other facts.
    stream.request.head.tls = wire.session();
    context.group.site.counters.refused.add(1);
    respond(link, wire, context, stream, OwnResponse::refusal(status, reason))
}
