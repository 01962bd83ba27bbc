//! What is done with the parts of a request as they are received, whatever protocol they come by: admit it, filter it, keep
//! its body, and answer it or hand it over.

use maitred_h1::{HeadFacts, Sender, TargetForm};
use maitred_http::{BodyLength, Method, Status};

use super::answer::leads_to_application;
use super::body::{Keeping, keep};
use super::filter::Filtered;
use super::stream::Stream;
use super::{Connection, Context, Phase, Turn};

/// What has become of an exchange by what was received of it.
pub(super) enum Received {
    /// More of it can be received.
    Goes(Box<Stream>),
    /// It waits for the check of a password, or for the disk; what follows of it waits, too.
    Waits(Box<Stream>),
    /// The engine has answered it.
    Answered,
    /// A handler has it.
    HandedOver,
    /// All of a body has come that nobody wanted: its answer has been given before.
    Dropped,
    /// Its answer is the last one of the connection.
    Ended(Turn),
}

impl Received {
    /// What a turn makes of it that received nothing else.
    pub(super) fn turn(self) -> Turn {
        match self {
            Self::Ended(turn) => turn,
            _ => Turn::Wait,
        }
    }
}

impl Connection {
    /// The head of a request is there.
    pub(super) fn head_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        facts: HeadFacts,
    ) -> Received {
        stream.facts = Some(facts);
        stream.times.complete = self.received;
        if let Err(refusal) = self.admit(context, &stream.request.head) {
            return self.answer_not_now(context, stream, refusal);
        }
        self.pass_filters(context, stream)
    }

    /// Leads it through the filters, if there are any, or on where it has waited, and then on.
    pub(super) fn pass_filters(&mut self, context: &mut Context<'_>, mut stream: Box<Stream>) -> Received {
        if context.group.site.filters.is_on() || stream.passed.is_some() {
            stream = match self.filter(context, stream) {
                Filtered::Pass(stream) => stream,
                Filtered::Wait(stream) => return Received::Waits(stream),
                Filtered::Answered(received) => return received,
            };
        }
        if let Some((status, reason)) = objection(context, &stream) {
            return self.refuse(context, stream, status, reason);
        }
        let facts = stream.facts.unwrap_or_default();
        if facts.expect_continue && !leads_to_application(context, &stream) {
            // The engine answers without the body, so it does not ask for it. If the body comes anyway, it is dropped.
            stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
            return self.answer(context, stream);
        }
        if facts.complete {
            return self.request_received(context, stream);
        }
        if self.is_read_live(context, &stream) {
            return self.answer_live(context, stream, facts);
        }
        self.prepare_body(context, &mut stream, facts);
        Received::Goes(stream)
    }

    /// A part of its body is there.
    pub(super) fn data_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        bytes: &[u8],
    ) -> Received {
        if !keep(context, &mut stream, bytes) {
            if stream.keeping.is_dropped() {
                return self.end_dropped(stream);
            }
            let reason = stream.too_large();
            return self.refuse(context, stream, Status::CONTENT_TOO_LARGE, reason);
        }
        if stream.keeping.is_spool() { self.advance_spool(context, stream) } else { Received::Goes(stream) }
    }

    /// All of it is there.
    pub(super) fn request_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
    ) -> Received {
        stream.times.complete = self.received;
        match &mut stream.keeping {
            Keeping::Spool(spool) => {
                spool.complete();
                self.advance_spool(context, stream)
            }
            Keeping::Dropped(_) => {
                Stream::give_back(stream);
                Received::Dropped
            }
            _ => self.answer(context, stream),
        }
    }

    /// The head is accepted and a body follows.
    fn prepare_body(&mut self, context: &mut Context<'_>, stream: &mut Stream, facts: HeadFacts) {
        /// Memory set aside before the first byte of a body has come.
        const MAX_RESERVED: u64 = 64 * 1024;
        if let BodyLength::Fixed(length) = stream.request.head.body {
            stream.request.body.reserve(length.min(MAX_RESERVED) as usize);
        }
        if facts.expect_continue {
            let version = stream.request.head.version;
            Sender::new(version, false, true).send_continue(&mut context.scratch.out);
        }
    }

    /// What an answered request leaves unread is more than is dropped, or malformed: nothing follows it.
    pub(super) fn end_dropped(&mut self, stream: Box<Stream>) -> Received {
        Stream::give_back(stream);
        self.last = true;
        self.unread = true;
        self.phase = Phase::Sending;
        Received::Ended(Turn::Wait)
    }
}

/// What speaks against a request before its body is asked for.
fn objection(context: &Context<'_>, stream: &Stream) -> Option<(Status, &'static str)> {
    let head = &stream.request.head;
    if stream.tunnel {
        return None;
    }
    match head.body {
        BodyLength::Fixed(length) if length > stream.max_body(&context.group.site) => {
            Some((Status::CONTENT_TOO_LARGE, stream.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

/// Whether the target is `*`.
pub(super) fn is_asterisk(facts: Option<HeadFacts>) -> bool {
    facts.is_some_and(|facts| facts.target_form == TargetForm::Asterisk)
}
