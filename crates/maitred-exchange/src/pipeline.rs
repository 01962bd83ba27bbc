//! The way of a request: each part as it arrives, whatever protocol carries it.
//!
//! ```text
//! head -> client -> host and destination -> WebSocket? -> admission -> redirect -> filters -> body -> answer
//! ```
//! A part ends in the answer of the engine, in the handover to a handler, or in the wait for more ([`Received`]).

use maitred_h1::HeadFacts;
use maitred_http::{BodyLength, Method, Status};
use maitred_turns::Turn;

use crate::admission::{admit, answer_not_now, offer_websocket, redirect};
use crate::answer::{answer, refuse};
use crate::body::{advance_spool, answer_live, is_read_live, keep};
use crate::client::identify;
use crate::filter::{Filtered, answer_filtered, filter};
use crate::link::{Link, Received};
use crate::stream::Destination;
use crate::stream::Stream;
use crate::stream::body::Keeping;

/// Returns the refusal of a request whose body must not be asked for.
fn objection<'a>(link: &impl Link<'a>, stream: &Stream) -> Option<(Status, &'static str)> {
    let head = &stream.request.head;
    match head.body {
        BodyLength::Fixed(length) if length > stream.max_body(link.site()) => {
            Some((Status::CONTENT_TOO_LARGE, stream.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

/// Handles a complete request head.
pub fn head_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, facts: HeadFacts) -> Received {
    stream.facts = Some(facts);
    stream.times.complete = link.received();
    stream.client = Some(identify(link.site(), link.peer(), link.ends(), &mut stream.request.head));
    if let Err(reason) = find_host(link, &mut stream) {
        return refuse(link, stream, Status::MISDIRECTED_REQUEST, reason);
    }
    stream = match offer_websocket(link, stream) {
        Ok(stream) => stream,
        Err(answered) => return answered,
    };
    if let Err(refusal) = admit(link, &stream) {
        return answer_not_now(link, stream, refusal);
    }
    if let Some(answer) = redirect(link, &stream) {
        return answer_filtered(link, stream, answer);
    }
    pass_filters(link, stream)
}

/// Finds the virtual host and the destination of the request. The engine's own paths exist on all hosts.
///
/// # Errors
/// The reason why this connection cannot serve the request (RFC 9110 section 15.5.20): no such host exists, or
/// that host asks clients for certificates by other rules than those of this connection.
fn find_host<'a>(link: &impl Link<'a>, stream: &mut Stream) -> Result<(), &'static str> {
    let site = link.site();
    let head = &mut stream.request.head;
    let found = site.hosts.find(head.authority());
    head.host = found.unwrap_or_default();
    stream.destination = Destination::find(site, head, stream.facts);
    let rules = link.ends().and_then(|ends| ends.rules.as_ref());
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
pub fn pass_filters<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    if link.site().filters.is_on() || stream.passed.is_some() {
        stream = match filter(link, stream) {
            Filtered::Pass(stream) => stream,
            Filtered::Wait(stream) => return Received::Waits(stream),
            Filtered::Answered(received) => return received,
        };
    }
    if let Some(ambiguity) = link.ambiguous_pool(&stream) {
        return refuse(link, stream, Status::BAD_REQUEST, ambiguity.reason());
    }
    if stream.offer.is_some() {
        return answer(link, stream);
    }
    if let Some((status, reason)) = objection(link, &stream) {
        return refuse(link, stream, status, reason);
    }
    let facts = stream.facts.unwrap_or_default();
    if facts.expect_continue && !stream.destination.is_application() {
        // The engine answers without the body, so it does not ask for it. If the body comes anyway, it is dropped.
        stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
        return answer(link, stream);
    }
    if facts.complete {
        return request_received(link, stream);
    }
    if is_read_live(link, &stream, facts) {
        return answer_live(link, stream, facts);
    }
    prepare_body(link, &mut stream, facts);
    Received::Goes(stream)
}

/// Handles a part of the request body.
pub fn data_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, bytes: &[u8]) -> Received {
    if !keep(link, &mut stream, bytes) {
        if stream.keeping.is_dropped() {
            return end_dropped(link, stream);
        }
        let reason = stream.too_large();
        return refuse(link, stream, Status::CONTENT_TOO_LARGE, reason);
    }
    if stream.keeping.is_spool() { advance_spool(link, stream) } else { Received::Goes(stream) }
}

/// Handles the end of a request.
pub fn request_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    stream.times.complete = link.received();
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.complete();
            advance_spool(link, stream)
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
            answer(link, stream)
        }
        _ => answer(link, stream),
    }
}

/// Prepares for the body that follows an accepted head.
fn prepare_body<'a>(link: &mut impl Link<'a>, stream: &mut Stream, facts: HeadFacts) {
    /// Memory set aside before the first byte of a body has come. It is not touched before.
    const MAX_RESERVED: u64 = 256 * 1024;
    if let BodyLength::Fixed(length) = stream.request.head.body {
        stream.request.body.reserve(length.min(MAX_RESERVED) as usize);
    }
    if facts.expect_continue {
        link.send_continue(stream);
    }
}

/// Ends a connection whose unread body is malformed or longer than the limit for dropping: no request can follow.
pub fn end_dropped<'a>(link: &mut impl Link<'a>, stream: Box<Stream>) -> Received {
    Stream::give_back(stream);
    link.close_behind();
    Received::Ended(Turn::Wait)
}
