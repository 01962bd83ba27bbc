//! A request in the filters: from its head until it goes on or is answered.
//!
//! ```text
//! head ──► decide ──► pass: body, routes
//!            │  `───► answer at once; what follows of the body is dropped, or ends the connection
//!            `──────► wait: a password is checked. Nothing is read until the hasher wakes the connection,
//!                     and what is pipelined behind waits in its buffers
//! ```
//! Leaves out: the decisions of the filters (`filters/`).

use std::sync::Arc;

use maitred_filters::{Answer, Asker, At, Decision, Suspicion};
use maitred_http::{BodyLength, Status, target};
use maitred_limits::Rule;

use crate::destination::Destination;
use crate::link::{Link, Received};
use crate::response::Response;
use crate::site::Site;
use crate::stages::{refuse, respond};
use crate::stream::Stream;
use crate::stream::body::MAX_DROPPED;

/// Result of the filters for a request.
pub enum Filtered {
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
pub fn filter<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Filtered {
    let site = link.site();
    let mut path = std::mem::take(&mut link.memory().path);
    let client = link.client_of(&stream);
    let peer = client.peer;
    let head = &mut stream.request.head;
    let passed = match stream.passed.take() {
        Some(passed) => {
            target::normalise_decoded(head.path(), &mut path);
            Ok(Some(passed))
        }
        None => {
            stream.times.filtering = site.later(link.now());
            site.filters.meet(head, &mut path, Asker { client: peer.ip(), secure: client.secure })
        }
    };
    let mut passed = match passed {
        Ok(Some(passed)) => passed,
        Ok(None) => {
            link.memory().path = path;
            stream.times.filtering = 0;
            return Filtered::Pass(stream);
        }
        Err(ambiguity) => {
            link.memory().path = path;
            stream.times.filtered = site.later(link.now());
            let refused = refuse(link, stream, Status::BAD_REQUEST, ambiguity.reason());
            return Filtered::Answered(refused);
        }
    };
    let wake = || -> Box<dyn Fn() + Send + Sync> { Box::new(link.waker()) };
    let (now, hasher) = (link.now(), site.filters.hasher());
    let client = hasher.and_then(|_| site.guard.number(peer));
    let count = |most: u32| CountedCheck::begin(site, client?, most);
    let at = At { path: &path, peer, client, now, hasher, count: &count, wake: &wake };
    let before = head.path_and_query;
    let decision = passed.decide(head, &at);
    if head.path_and_query != before {
        stream.destination = Destination::find(site, head, stream.facts);
    }
    link.memory().path = path;
    stream.passed = Some(passed);
    match decision {
        Decision::Wait => Filtered::Wait(stream),
        Decision::Pass => {
            stream.times.filtered = site.later(link.now());
            Filtered::Pass(stream)
        }
        Decision::Answer(answer) => {
            stream.times.filtered = site.later(link.now());
            if let Some(suspicion) = answer.suspicion {
                site.guard.applied.note(rule_of(suspicion), peer, &site.log);
            }
            Filtered::Answered(answer_filtered(link, stream, answer))
        }
    }
}

/// Sends the answer of a filter before the body has arrived.
pub fn answer_filtered<'a>(
    link: &mut impl Link<'a>,
    stream: Box<Stream>,
    Answer { head, body, .. }: Answer,
) -> Received {
    respond_early(link, stream, Response::with_content(head, body.into_owned().into()))
}

/// Sends a response of the engine before the body has arrived.
pub fn respond_early<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, response: Response) -> Received {
    let facts = stream.facts.unwrap_or_default();
    let request = &stream.request.head;
    let is_short = match request.body {
        BodyLength::Fixed(length) => length <= MAX_DROPPED,
        _ => true,
    };
    // A client that waits for 100 may or may not send the body after the response.
    let keeps = facts.complete || is_short && !facts.expect_continue;
    let received = respond(link, stream, response.keep_alive(keeps));
    if matches!(received, Received::Answered) && !facts.complete {
        link.drop_rest(facts);
    }
    received
}
