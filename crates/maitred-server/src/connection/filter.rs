//! A request in the filters: from its head until it goes on or is answered.
//!
//! ```text
//! head ──► decide ──► pass: body, routes
//!            │  `───► answer at once; what follows of the body is dropped, or ends the connection
//!            `──────► wait: a password is checked. Nothing is read until the hasher wakes the connection,
//!                     and what is pipelined behind waits in its buffers
//! ```
//! Leaves out: the decisions of the filters (`filters/`).

use crate::connection::pipeline::Received;
use std::sync::Arc;

use maitred_filters::{Answer, Asker, At, Decision, Suspicion};
use maitred_http::{BodyLength, Status, target};
use maitred_limits::Rule;

use super::Context;
use super::answer::{refuse, respond};
use super::link::Link;
use super::response::Response;
use super::stream::Stream;
use super::streaming_body::MAX_DROPPED;
use super::wire::Wire;
use crate::destination::Destination;
use crate::site::Site;

/// Result of the filters for a request.
pub(super) enum Filtered {
    /// The request goes on.
    Pass(Box<Stream>),
    /// A password is being checked; the hasher wakes the connection.
    Wait(Box<Stream>),
    /// A filter has answered.
    Answered(Received),
}

fn rule_of(suspicion: Suspicion) -> Rule {
    match suspicion {
        Suspicion::WrongPassword => Rule::WrongPassword,
        Suspicion::TooMany => Rule::PasswordShare,
        Suspicion::TooManyOfAll => Rule::PasswordQueue,
    }
}

/// A check of a password, counted for its client in all processes.
struct CountedCheck {
    site: Arc<Site>,
    client: u128,
}

impl CountedCheck {
    /// Counts a check; none if the client has as many as allowed. Without a shared table the value counts nothing.
    fn begin(site: &Arc<Site>, client: u128, most: u32) -> Option<Box<dyn Send + Sync>> {
        site.guard.begin_check(client, most).map(|is_counted| match is_counted {
            true => Box::new(Self { site: Arc::clone(site), client }) as Box<dyn Send + Sync>,
            false => Box::new(()),
        })
    }
}

impl Drop for CountedCheck {
    fn drop(&mut self) {
        self.site.guard.end_check(self.client);
    }
}

/// Leads a request through the filters, or on from the filter where it has waited.
pub(super) fn filter(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Filtered {
    let group = context.group;
    let site = &group.site;
    let mut path = std::mem::take(&mut context.scratch.path);
    let client = wire.client_of(&stream);
    let peer = client.peer;
    let head = &mut stream.request.head;
    let passed = match stream.passed.take() {
        Some(passed) => {
            target::normalise_decoded(head.path(), &mut path);
            Ok(Some(passed))
        }
        None => {
            stream.times.filtering = site.later(context.now);
            site.filters.meet(head, &mut path, Asker { client: peer.ip(), secure: client.secure })
        }
    };
    let mut passed = match passed {
        Ok(Some(passed)) => passed,
        Ok(None) => {
            context.scratch.path = path;
            stream.times.filtering = 0;
            return Filtered::Pass(stream);
        }
        Err(ambiguity) => {
            context.scratch.path = path;
            stream.times.filtered = site.later(context.now);
            let refused = refuse(link, wire, context, stream, Status::BAD_REQUEST, ambiguity.reason());
            return Filtered::Answered(refused);
        }
    };
    let token = context.token;
    let wake = || -> Box<dyn Fn() + Send + Sync> {
        let group = Arc::clone(group);
        Box::new(move || group.resume(token))
    };
    let (now, hasher) = (context.now, site.filters.hasher());
    let client = hasher.and_then(|_| site.guard.number(peer));
    let count = |most: u32| CountedCheck::begin(&group.site, client?, most);
    let at = At { path: &path, peer, client, now, hasher, count: &count, wake: &wake };
    let before = head.path_and_query;
    let decision = passed.decide(head, &at);
    if head.path_and_query != before {
        stream.destination = Destination::find(site, head, stream.facts);
    }
    context.scratch.path = path;
    stream.passed = Some(passed);
    match decision {
        Decision::Wait => Filtered::Wait(stream),
        Decision::Pass => {
            stream.times.filtered = site.later(context.now);
            Filtered::Pass(stream)
        }
        Decision::Answer(answer) => {
            stream.times.filtered = site.later(context.now);
            if let Some(suspicion) = answer.suspicion {
                site.guard.applied.note(rule_of(suspicion), peer, &site.log);
            }
            Filtered::Answered(answer_filtered(link, wire, context, stream, answer))
        }
    }
}

/// Sends the answer of a filter before the body has arrived.
pub(super) fn answer_filtered(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    Answer { head, body, .. }: Answer,
) -> Received {
    let facts = stream.facts.unwrap_or_default();
    let request = &stream.request.head;
    let is_short = match request.body {
        BodyLength::Fixed(length) => length <= MAX_DROPPED,
        _ => true,
    };
    // A client that waits for 100 may or may not send the body after the response.
    let keeps = facts.complete || is_short && !facts.expect_continue;
    let response = Response::with_content(head, body.into_owned().into()).keep_alive(keeps);
    let received = respond(link, wire, context, stream, response);
    if matches!(received, Received::Answered) && !facts.complete {
        link.drop_rest(wire, context, facts);
    }
    received
}
