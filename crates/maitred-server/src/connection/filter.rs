//! A request in the filters: from its head until it goes on or is answered.
//!
//! ```text
//! head ──► decide ──► pass: body, routes
//!            │  `───► answer at once; what follows of the body is dropped, or ends the connection
//!            `──────► wait: a password is checked. Nothing is read until the hasher wakes the connection,
//!                     and what is pipelined behind waits in its buffers
//! ```
//! Leaves out: what filters decide (`filters/`).

use std::sync::Arc;

use maitred_files::Body;
use maitred_filters::{Answer, Asker, At, Decision, Passed, Suspicion};
use maitred_h1::Sender;
use maitred_http::{BodyLength, Method, RequestHead, ResponseHead, Status, Version, target};
use maitred_io::sync::atomic::Ordering;
use maitred_limits::Rule;
use maitred_log::RequestId;
use maitred_runtime::Content;

use super::body::Keeping;
use super::framed::Heads;
use super::responder::ValueSender;
use super::stream::{Received, Stream};
use super::streaming_body::MAX_DROPPED;
use super::{Connection, Context};
use crate::pages::ErrorPage;
use crate::site::Site;

/// What becomes of a request whose head is there.
pub(super) enum Filtered {
    /// It goes on.
    Pass(Box<Stream>),
    /// A password is being checked: the connection is woken.
    Wait(Box<Stream>),
    /// It has been answered.
    Answered(Received),
}

impl Connection {
    /// Leads a request through the filters, or on where it has waited.
    pub(super) fn filter(&mut self, context: &mut Context<'_>, mut stream: Box<Stream>) -> Filtered {
        let group = context.group;
        let site = &group.site;
        let mut path = std::mem::take(&mut context.scratch.path);
        let client = self.client_of(&stream);
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
                let refused = self.refuse(context, stream, Status::BAD_REQUEST, ambiguity.reason());
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
        let decision = passed.decide(head, &at);
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
                Filtered::Answered(self.answer_filtered(context, stream, answer))
            }
        }
    }

    /// Whether a password is being checked, so that there is nothing to do.
    pub(super) fn waits_for_filter(&self) -> bool {
        let passed = self.stream.as_ref().and_then(|stream| stream.passed.as_ref());
        passed.is_some_and(|passed| passed.is_waiting())
    }

    /// Answers before the body has come.
    pub(super) fn answer_filtered(
        &mut self,
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
        // Who waits for 100 may or may not send the body when it has the answer.
        let keeps = facts.complete || is_short && !facts.expect_continue;
        let keep_alive = facts.keep_alive && keeps && !context.group.is_draining();
        let sender = Sender::new(request.version, request.method == Method::Head, keep_alive);
        let (length, content) = (body.len() as u64, Content::Bytes(body.into_owned()));
        let body = if length > 0 { Body::One(content) } else { Body::Empty };
        let received = self.answer_now(context, sender, stream, &head, length, body);
        if matches!(received, Received::Answered) && !facts.complete {
            let mut rest = self.begin_stream(context.now);
            (rest.facts, rest.keeping) = (Some(facts), Keeping::Dropped(0));
            self.stream = Some(rest);
        }
        received
    }
}

fn rule_of(suspicion: Suspicion) -> Rule {
    match suspicion {
        Suspicion::WrongPassword => Rule::WrongPassword,
        Suspicion::TooMany => Rule::PasswordShare,
        Suspicion::TooManyOfAll => Rule::PasswordQueue,
    }
}

/// A request that the engine answers itself, for the fields that the answer is given.
pub(super) struct Asking<'a> {
    /// The filters that it has met; else those count that ask for nothing but host and scheme.
    pub(super) passed: Option<&'a Passed>,
    pub(super) head: &'a RequestHead,
    /// Of the request.
    pub(super) number: u64,
    pub(super) secure: bool,
}

impl Asking<'_> {
    /// The head of an answer as filters change it, and with the id of the request if clients are told that of an error; none if it
    /// stays as it is.
    pub(super) fn changed(&self, site: &Site, head: &ResponseHead) -> Option<ResponseHead> {
        let changed = match self.passed {
            Some(passed) => passed.response_head(self.head, head),
            None => site.filters.change_refused(head, self.head.host, self.secure),
        };
        let now = changed.as_ref().unwrap_or(head);
        if tells_id(site, now) {
            let id = RequestId::of(&self.head.fields, self.number).to_string();
            return Some(now.clone().with("X-Request-ID", id));
        }
        changed
    }
}

/// A check of a password that is counted among those of its client, in all processes.
struct CountedCheck {
    site: Arc<Site>,
    client: u128,
}

impl CountedCheck {
    /// None if the client has as many as it may. Where no table is shared, the value counts nothing.
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

/// Whether the client is told the id of its request with this answer of the engine's own.
pub(super) fn tells_id(site: &Site, head: &ResponseHead) -> bool {
    head.status.code() >= 400
        && site.measures.response_ids.load(Ordering::Relaxed)
        && !head.fields.contains("x-request-id")
}

/// The head of an answer of the engine's own, where exchanges are interleaved.
pub(super) fn error_head(
    context: &mut Context<'_>,
    asking: &Asking<'_>,
    status: Status,
    page: &ErrorPage,
) -> Heads {
    let date = *context.scratch.date();
    let head = page.head(status);
    let changed = asking.changed(&context.group.site, &head);
    let mut values = ValueSender::new(false);
    values.only(changed.as_ref().unwrap_or(&head), Some(page.body.len() as u64), &date)
}

/// Appends an answer of the engine's own that ends the connection, with the fields that filters give it.
pub(super) fn put_error(context: &mut Context<'_>, asking: &Asking<'_>, status: Status, page: &ErrorPage) {
    let date = *context.scratch.date();
    let out = &mut context.scratch.out;
    let site = &context.group.site;
    let head = page.head(status);
    if asking.passed.is_some() || site.filters.is_on() || !page.is_plain() || tells_id(site, &head) {
        let changed = asking.changed(site, &head);
        let mut sender = Sender::new(Version::Http11, false, false);
        let head = changed.unwrap_or(head);
        if sender.send_head(&head, Some(page.body.len() as u64), &date, out).is_ok() {
            out.extend_from_slice(&page.body);
            return;
        }
    }
    maitred_h1::error_response(status, &String::from_utf8_lossy(&page.body), &date, out);
}
