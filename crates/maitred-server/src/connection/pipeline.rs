//! The way of a request: each part as it arrives, whatever protocol carries it.
//!
//! ```text
//! head -> client -> host and destination -> WebSocket? -> admission -> redirect -> filters -> body -> answer
//! ```
//! A part ends in the answer of the engine, in the handover to a handler, or in the wait for more ([`Received`]).

use maitred_h1::HeadFacts;
use maitred_http::{BodyLength, Method, Status};

use super::admission::{admit, answer_not_now};
use super::answer::refuse;
use super::answer::{ambiguous_pool, answer};
use super::body::{Keeping, advance_spool, keep};
use super::filter::{Filtered, answer_filtered, filter};
use super::link::Link;
use super::redirect::redirect;
use super::stream::Stream;
use super::streaming_body::{answer_live, is_read_live};
use super::websocket::offer_websocket;
use super::wire::{Phase, Wire};
use super::{Context, Turn};
use crate::destination::Destination;

/// State of an exchange after a received part.
pub(super) enum Received {
    /// The exchange can receive more.
    Goes(Box<Stream>),
    /// The exchange waits for the check of a password or for the disk; its further parts wait, too.
    Waits(Box<Stream>),
    /// The engine has answered the request.
    Answered,
    /// A handler has the request.
    HandedOver,
    /// The whole of an unwanted body has arrived; the response was given before.
    Dropped,
    /// The response is the last one of the connection.
    Ended(Turn),
}

impl Received {
    /// Returns the turn that follows if nothing else was received.
    pub(super) fn turn(self) -> Turn {
        match self {
            Self::Ended(turn) => turn,
            _ => Turn::Wait,
        }
    }
}

/// Returns the refusal of a request whose body must not be asked for.
fn objection(context: &Context<'_>, stream: &Stream) -> Option<(Status, &'static str)> {
    let head = &stream.request.head;
    match head.body {
        BodyLength::Fixed(length) if length > stream.max_body(&context.group.site) => {
            Some((Status::CONTENT_TOO_LARGE, stream.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

/// Handles a complete request head.
pub(super) fn head_received(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    facts: HeadFacts,
) -> Received {
    stream.facts = Some(facts);
    stream.times.complete = wire.received;
    wire.identify(context, &mut stream);
    if let Err(reason) = find_host(wire, context, &mut stream) {
        return refuse(link, wire, context, stream, Status::MISDIRECTED_REQUEST, reason);
    }
    stream = match offer_websocket(link, wire, context, stream) {
        Ok(stream) => stream,
        Err(answered) => return answered,
    };
    if let Err(refusal) = admit(link, wire, context, &stream) {
        return answer_not_now(link, wire, context, stream, refusal);
    }
    if let Some(answer) = redirect(wire, context, &stream) {
        return answer_filtered(link, wire, context, stream, answer);
    }
    pass_filters(link, wire, context, stream)
}

/// Finds the virtual host and the destination of the request. The engine's own paths exist on all hosts.
///
/// # Errors
/// The reason why this connection cannot serve the request (RFC 9110 section 15.5.20): no such host exists, or
/// that host asks clients for certificates by other rules than those of this connection.
fn find_host(wire: &Wire, context: &Context<'_>, stream: &mut Stream) -> Result<(), &'static str> {
    let site = &context.group.site;
    let head = &mut stream.request.head;
    let found = site.hosts.find(head.authority());
    head.host = found.unwrap_or_default();
    stream.destination = Destination::find(site, head, stream.facts);
    let rules = wire.ends.as_ref().and_then(|ends| ends.rules.as_ref());
    if matches!(stream.destination, Destination::Server) || stream.destination.is_engine() {
        Ok(())
    } else if found.is_none() {
        Err("this server has no such host")
    } else if rules.is_some_and(|rules| !rules.are_those_of(head.host)) {
        Err(
            "this host has other rules for certificates of clients than the one that this connection was made for",
        )
    } else {
        Ok(())
    }
}

/// Leads the request through the filters, or on from the filter where it has waited, and then to its destination.
pub(super) fn pass_filters(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Received {
    if context.group.site.filters.is_on() || stream.passed.is_some() {
        stream = match filter(link, wire, context, stream) {
            Filtered::Pass(stream) => stream,
            Filtered::Wait(stream) => return Received::Waits(stream),
            Filtered::Answered(received) => return received,
        };
    }
    if let Some(ambiguity) = ambiguous_pool(wire, context, &stream) {
        return refuse(link, wire, context, stream, Status::BAD_REQUEST, ambiguity.reason());
    }
    if stream.offer.is_some() {
        return answer(link, wire, context, stream);
    }
    if let Some((status, reason)) = objection(context, &stream) {
        return refuse(link, wire, context, stream, status, reason);
    }
    let facts = stream.facts.unwrap_or_default();
    if facts.expect_continue && !stream.destination.is_application() {
        // The engine answers without the body, so it does not ask for it. If the body comes anyway, it is dropped.
        stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
        return answer(link, wire, context, stream);
    }
    if facts.complete {
        return request_received(link, wire, context, stream);
    }
    if is_read_live(wire, context, &stream, facts) {
        return answer_live(link, wire, context, stream, facts);
    }
    prepare_body(link, context, &mut stream, facts);
    Received::Goes(stream)
}

/// Handles a part of the request body.
pub(super) fn data_received(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    bytes: &[u8],
) -> Received {
    if !keep(context, &mut stream, bytes) {
        if stream.keeping.is_dropped() {
            return end_dropped(wire, stream);
        }
        let reason = stream.too_large();
        return refuse(link, wire, context, stream, Status::CONTENT_TOO_LARGE, reason);
    }
    if stream.keeping.is_spool() {
        advance_spool(link, wire, context, stream)
    } else {
        Received::Goes(stream)
    }
}

/// Handles the end of a request.
pub(super) fn request_received(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Received {
    stream.times.complete = wire.received;
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.complete();
            advance_spool(link, wire, context, stream)
        }
        Keeping::Dropped(_) => {
            Stream::give_back(stream);
            Received::Dropped
        }
        Keeping::Shared(_) => {
            if let Keeping::Shared(mut share) = std::mem::take(&mut stream.keeping) {
                share.end();
                stream.request.body.hold(Box::new(share));
            }
            answer(link, wire, context, stream)
        }
        _ => answer(link, wire, context, stream),
    }
}

/// Prepares for the body that follows an accepted head.
fn prepare_body(link: &mut impl Link, context: &mut Context<'_>, stream: &mut Stream, facts: HeadFacts) {
    /// Memory set aside before the first byte of a body has come. It is not touched before.
    const MAX_RESERVED: u64 = 256 * 1024;
    if let BodyLength::Fixed(length) = stream.request.head.body {
        stream.request.body.reserve(length.min(MAX_RESERVED) as usize);
    }
    if facts.expect_continue {
        link.send_continue(context, stream);
    }
}

/// Ends a connection whose unread body is malformed or longer than the limit for dropping: no request can follow.
pub(super) fn end_dropped(wire: &mut Wire, stream: Box<Stream>) -> Received {
    Stream::give_back(stream);
    wire.last = true;
    wire.unread = true;
    wire.phase = Phase::Sending;
    Received::Ended(Turn::Wait)
}
