//! Receiving requests: bytes to events, events to complete requests.

use std::io;

use maitred_h1::{Event, HeadFacts, Sender, Step, TargetForm};
use maitred_http::{BodyLength, Method, Status};
use maitred_io::socket::Moved;
use maitred_io::sync::atomic::Ordering;

use super::answer::leads_to_application;
use super::body::{Keeping, keep};
use super::filter::Filtered;
use super::held::idle_time;
use super::{Connection, Context, Phase, Turn, nanos};
use crate::limits::Rule;
use crate::limits::minimum::Late;
use crate::scratch::Incoming;
use crate::spool::Progress;

/// Calls of recv in one turn before other connections get theirs: 16 × 64 KiB is about 300 µs.
pub(super) const MAX_RECEIVES_A_TURN: usize = 16;

/// Pipelined requests answered in one turn before other connections get theirs.
const MAX_REQUESTS_A_TURN: u32 = 64;

/// Response bytes gathered before they are sent while pipelined requests are being answered.
const MAX_GATHERED: usize = 64 * 1024;

/// The most by which the time of a receipt may be wrong where the kernel is not asked for it, in nanoseconds: what the
/// documents promise of short spans. To be asked costs a fortieth of a small request.
const MAX_ERROR: u64 = 200_000;

/// In which it is noted how long after a receipt the socket was empty, in nanoseconds: small connections are worth more
/// than four microseconds.
const STEP: u64 = 4096;

/// What a look at received bytes led to.
struct Consumed {
    bytes: usize,
    /// Why the look ended before the bytes did; `None` when more bytes are needed.
    turn: Option<Turn>,
}

impl Connection {
    /// Reads and answers until there is nothing to read, a request has to be run, or the budget is
    /// used up.
    pub(super) fn receive(&mut self, context: &mut Context<'_>) -> Turn {
        let turn = self.receive_all(context);
        let flushed = self.flush(context);
        match (turn, flushed) {
            (Turn::Run, _) => {
                self.set_running(context);
                Turn::Run
            }
            (_, Turn::Close) | (Turn::Close, _) => Turn::Close,
            (_, flushed) if self.writer.is_some() => {
                // Neither read on nor idle before this has left: the deadline is the sending's.
                self.phase = Phase::Sending;
                flushed
            }
            // What was to be sent has left meanwhile.
            _ if self.phase == Phase::Sending && self.last => self.end_gently(context),
            _ if self.phase == Phase::Sending => self.receive_again(),
            (turn, _) => {
                self.settle(context);
                turn
            }
        }
    }

    fn receive_again(&mut self) -> Turn {
        self.phase = Phase::Receiving;
        Turn::Later
    }

    fn set_running(&mut self, context: &Context<'_>) {
        self.useless_wakes = 0;
        if self.writer.is_none() {
            // The timer stays as it is: the end of the exchange puts it off, which costs less than arming it.
            self.deadline = super::NEVER;
        }
        if self.awaits_response() {
            self.arm(context.group, context.token);
        }
    }

    fn receive_all(&mut self, context: &mut Context<'_>) -> Turn {
        if self.waits_for_filter() {
            // While a password is checked, packets wake threads for nothing.
            self.note_wake_while_running(context);
            return Turn::Wait;
        }
        let mut requests = 0;
        if let Some(turn) = self.advance_spool(context, &mut requests) {
            // While the disk is awaited, packets wake threads for nothing.
            self.note_wake_while_running(context);
            return turn;
        }
        self.listen_again(context.group, context.token);
        // A body that paused may have ended there: its end is an event without bytes.
        let pauses = |incoming: &Incoming| incoming.keeping.is_spool() || incoming.is_filtering();
        let paused = self.incoming.as_ref().is_some_and(|incoming| pauses(incoming));
        if !self.input.is_empty() || paused {
            let input = std::mem::take(&mut self.input);
            if let Some(turn) = self.consume_kept(context, input, &mut requests) {
                return turn;
            }
        }
        for _ in 0..MAX_RECEIVES_A_TURN {
            if !self.unread {
                return Turn::Wait;
            }
            let mut buffer = context.scratch.take_receive();
            let moved = self.receive_some(context, &mut buffer);
            let turn = match moved {
                Moved::Bytes(count) => {
                    // A short read has emptied the socket; only the end can hide behind it.
                    self.unread = count == buffer.len() || self.read_closed;
                    if count < buffer.len() {
                        self.note_empty(context.now);
                    }
                    let turn = self.consume_received(context, &buffer[..count], &mut requests);
                    if let Some(incoming) = &mut self.incoming {
                        incoming.received += count as u64;
                    }
                    turn
                }
                Moved::Blocked => {
                    self.unread = false;
                    self.note_empty(context.now);
                    Some(Turn::Wait)
                }
                Moved::End => Some(self.end_of_input(context)),
                Moved::Failed(_) => Some(Turn::Close),
            };
            context.scratch.return_receive(buffer);
            if let Some(turn) = turn {
                return turn;
            }
        }
        Turn::Later
    }

    /// The socket was empty at `now` or later: what comes has arrived after that.
    fn note_empty(&mut self, now: u64) {
        self.emptied = u16::try_from(now.saturating_sub(self.received) / STEP).unwrap_or(u16::MAX);
    }

    /// Receives, and notes when the kernel did. What comes soon after the socket was empty needs no stamp of the kernel's.
    fn receive_some(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Moved {
        let wanted = context.group.site.measures.receipt.load(Ordering::Relaxed);
        if wanted != self.has_receipts {
            // Without effect where the kernel has no such stamps.
            self.socket.set_receipts(wanted);
            self.has_receipts = wanted;
        }
        let empty = (self.emptied < u16::MAX).then(|| self.received + u64::from(self.emptied) * STEP);
        self.received = context.now;
        self.emptied = u16::MAX;
        if !wanted {
            return self.socket.receive(buffer);
        }
        if let Some(between) = empty.and_then(|empty| arrived_between(empty, context.now)) {
            self.received = between;
            return self.socket.receive(buffer);
        }
        let (moved, receipt) = self.socket.receive_with_receipt(buffer);
        if let Some(stamp) = receipt {
            self.received = context.scratch.monotonic_of(stamp, context.now);
        }
        moved
    }

    fn consume_received(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
        requests: &mut u32,
    ) -> Option<Turn> {
        if self.input.is_empty() {
            let consumed = self.consume(context, data, requests);
            self.input = data[consumed.bytes..].to_vec();
            return consumed.turn;
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(data);
        self.consume_kept(context, input, requests)
    }

    fn consume_kept(
        &mut self,
        context: &mut Context<'_>,
        mut input: Vec<u8>,
        requests: &mut u32,
    ) -> Option<Turn> {
        let consumed = self.consume(context, &input, requests);
        if consumed.bytes < input.len() {
            input.drain(..consumed.bytes);
            self.input = input;
        }
        consumed.turn
    }

    /// Takes events from `data` until it is used up or something has to be done first.
    fn consume(&mut self, context: &mut Context<'_>, data: &[u8], requests: &mut u32) -> Consumed {
        let mut at = 0;
        loop {
            if self.incoming.is_none() && at == data.len() {
                return Consumed { bytes: at, turn: None };
            }
            if *requests >= MAX_REQUESTS_A_TURN {
                return Consumed { bytes: at, turn: Some(Turn::Later) };
            }
            let mut incoming =
                self.incoming.take().unwrap_or_else(|| Incoming::take(context.now, self.received));
            let filtering = incoming.facts.filter(|_| incoming.is_filtering());
            let head = &mut incoming.request.head;
            let polled = match filtering {
                // It has been read already, and has waited in the filters.
                Some(facts) => Ok(Step { consumed: 0, event: Event::Head(facts) }),
                None => self.receiver.poll_event(&data[at..], head, &context.group.site.limits),
            };
            let step = match polled {
                Ok(step) => step,
                Err(_) if incoming.keeping.is_dropped() => {
                    return Consumed { bytes: data.len(), turn: Some(self.end_dropped(incoming)) };
                }
                Err(error) => {
                    let turn = self.refuse(context, incoming, error.status, error.reason);
                    return Consumed { bytes: data.len(), turn: Some(turn) };
                }
            };
            at += step.consumed;
            let complete = match step.event {
                Event::NeedMore if at == data.len() && self.receiver.is_between_requests() => {
                    // Empty lines only (RFC 9112 §2.2): no request has begun.
                    Incoming::give_back(incoming);
                    return Consumed { bytes: at, turn: None };
                }
                Event::NeedMore => {
                    self.incoming = Some(incoming);
                    return Consumed { bytes: at, turn: None };
                }
                Event::Head(facts) => {
                    incoming.facts = Some(facts);
                    if filtering.is_none() {
                        incoming.times.complete = self.received;
                    }
                    if filtering.is_none()
                        && let Err(refusal) = self.admit(context, &incoming.request.head)
                    {
                        match self.answer_not_now(context, incoming, refusal) {
                            None => *requests += 1,
                            turn => return Consumed { bytes: data.len(), turn },
                        }
                        match self.make_room(context) {
                            None => continue,
                            turn => return Consumed { bytes: at, turn },
                        }
                    }
                    if context.group.site.filters.is_on() || incoming.passed.is_some() {
                        incoming = match self.filter(context, incoming) {
                            Filtered::Pass(incoming) => incoming,
                            Filtered::Wait(incoming) => {
                                self.incoming = Some(incoming);
                                return Consumed { bytes: at, turn: Some(Turn::Wait) };
                            }
                            Filtered::Answered(None) => {
                                *requests += 1;
                                match self.make_room(context) {
                                    None => continue,
                                    turn => return Consumed { bytes: at, turn },
                                }
                            }
                            Filtered::Answered(turn) => return Consumed { bytes: data.len(), turn },
                        };
                    }
                    if let Some((status, reason)) = objection(context, &incoming) {
                        let turn = self.refuse(context, incoming, status, reason);
                        return Consumed { bytes: data.len(), turn: Some(turn) };
                    }
                    if facts.expect_continue && !leads_to_application(context, &incoming) {
                        // The answer does not depend on the body: it is not asked for, and what comes
                        // of it is no request.
                        incoming.facts = Some(HeadFacts { keep_alive: false, ..facts });
                        return Consumed { bytes: data.len(), turn: self.answer(context, incoming) };
                    }
                    if !facts.complete && self.is_read_live(context, &incoming) {
                        let turn = self.answer_live(context, incoming, facts);
                        return Consumed { bytes: at, turn: Some(turn) };
                    }
                    if !facts.complete {
                        self.prepare_body(context, &mut incoming, facts);
                    }
                    facts.complete
                }
                Event::Data(bytes) if incoming.keeping.is_dropped() => {
                    if !keep(context, &mut incoming, bytes) {
                        return Consumed { bytes: data.len(), turn: Some(self.end_dropped(incoming)) };
                    }
                    false
                }
                Event::Data(bytes) => {
                    if !keep(context, &mut incoming, bytes) {
                        let reason = incoming.too_large();
                        let turn = self.refuse(context, incoming, Status::CONTENT_TOO_LARGE, reason);
                        return Consumed { bytes: data.len(), turn: Some(turn) };
                    }
                    false
                }
                Event::Trailers(_) => false,
                Event::End => true,
            };
            if complete {
                incoming.times.complete = self.received;
            }
            if let Keeping::Spool(spool) = &mut incoming.keeping {
                if complete {
                    spool.complete();
                }
                self.incoming = Some(incoming);
                match self.advance_spool(context, requests) {
                    None => continue,
                    turn => return Consumed { bytes: at, turn },
                }
            }
            if !complete {
                self.incoming = Some(incoming);
                continue;
            }
            if incoming.keeping.is_dropped() {
                Incoming::give_back(incoming);
                continue;
            }
            *requests += 1;
            if let Some(turn) = self.answer(context, incoming) {
                return Consumed { bytes: at, turn: Some(turn) };
            }
            if let Some(turn) = self.make_room(context) {
                return Consumed { bytes: at, turn: Some(turn) };
            }
        }
    }

    /// Sends the answers so far if they are many. What ends the turn: the reader is slow, and the next request waits until
    /// they have left.
    fn make_room(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if context.scratch.out.len() <= MAX_GATHERED && self.writer.is_none() {
            return None;
        }
        let flushed = self.flush(context);
        if self.writer.is_none() && matches!(flushed, Turn::Wait) {
            return None;
        }
        if self.phase == Phase::Receiving {
            self.phase = Phase::Sending;
        }
        Some(flushed)
    }

    /// The head is accepted and a body follows.
    fn prepare_body(&mut self, context: &mut Context<'_>, incoming: &mut Incoming, facts: HeadFacts) {
        /// Memory set aside before the first byte of a body has come.
        const MAX_RESERVED: u64 = 64 * 1024;
        if let BodyLength::Fixed(length) = incoming.request.head.body {
            incoming.request.body.reserve(length.min(MAX_RESERVED) as usize);
        }
        if facts.expect_continue {
            let version = incoming.request.head.version;
            Sender::new(version, false, true).send_continue(&mut context.scratch.out);
        }
    }

    /// What an answered request leaves unread is more than is dropped, or malformed: nothing follows it.
    fn end_dropped(&mut self, incoming: Box<Incoming>) -> Turn {
        Incoming::give_back(incoming);
        self.last = true;
        self.unread = true;
        self.phase = Phase::Sending;
        Turn::Wait
    }

    /// The peer has ended its sending side and everything it sent has been read.
    fn end_of_input(&mut self, context: &Context<'_>) -> Turn {
        self.unread = false;
        if !self.is_idle() {
            let log = &context.group.site.log;
            log.debug(format_args!("{}: the peer ended the connection inside a request", self.peer));
        }
        // Answers to what came before may still have to leave.
        self.last = true;
        self.phase = Phase::Sending;
        Turn::Wait
    }

    /// Sets the deadline of what is awaited next.
    fn settle(&mut self, context: &Context<'_>) {
        if self.phase != Phase::Receiving {
            return;
        }
        let timeouts = &context.group.site.timeouts;
        match &self.incoming {
            Some(incoming) if incoming.facts.is_some() => {
                let due = self.body_due(context);
                self.set_deadline(context, due);
            }
            Some(incoming) => {
                let deadline = incoming.began + nanos(timeouts.head);
                self.set_deadline(context, deadline);
            }
            // The deadline of the accept stays: head timeout.
            None if self.served == 0 && !context.group.is_draining() => {}
            None => self.set_deadline(context, context.now + idle_time(context.group)),
        }
    }

    /// The peer is late with what it sends, or the disk with a body.
    pub(super) fn time_out_request(&mut self, context: &mut Context<'_>, late: Late) -> Turn {
        let spooled = self.spool_progress();
        let is_checked = self.incoming.as_ref().is_some_and(|incoming| incoming.is_filtering())
            && !self.waits_for_filter();
        if matches!(spooled, Some(Progress::Written)) || is_checked {
            // In this very moment.
            return self.receive(context);
        }
        let Some(mut incoming) = self.incoming.take() else { return Turn::Close };
        let rule = match (incoming.facts, late) {
            (None, _) => Rule::HeadTimeout,
            (_, Late::Silent) => Rule::BodyTimeout,
            (_, Late::Slow) => Rule::MinRateIn,
        };
        if !incoming.is_filtering() && matches!(spooled, None | Some(Progress::Open)) {
            let site = &context.group.site;
            site.guard.applied.note(rule, self.peer.ip(), &site.log);
        }
        if incoming.keeping.is_dropped() {
            return Turn::Close;
        }
        if matches!(spooled, None | Some(Progress::Open)) && !incoming.is_filtering() {
            // All of its time was its peer's.
            incoming.times.complete = context.now;
        }
        let turn = match spooled {
            Some(Progress::Failed(error)) => self.refuse_unkept(context, incoming, &error),
            Some(Progress::Waiting) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the disk takes too long");
                self.refuse_unkept(context, incoming, &error)
            }
            _ if incoming.is_filtering() => {
                let reason = "the password could not be checked in time";
                self.refuse(context, incoming, Status::SERVICE_UNAVAILABLE, reason)
            }
            _ => {
                let reason = match rule {
                    Rule::HeadTimeout => "the request head did not arrive in time",
                    Rule::MinRateIn => "the request body came too slowly",
                    _ => "the request body did not arrive in time",
                };
                self.answer_refused(context, incoming, Status::REQUEST_TIMEOUT, reason)
            }
        };
        match self.flush(context) {
            Turn::Close => Turn::Close,
            _ if self.writer.is_none() => self.end_gently(context),
            _ => turn,
        }
    }
}

/// When bytes have arrived that were not there at `empty` and are at `now`, both in monotonic nanoseconds, to within
/// [`MAX_ERROR`]; none if that cannot be said.
fn arrived_between(empty: u64, now: u64) -> Option<u64> {
    let within = now.saturating_sub(empty);
    (within <= 2 * MAX_ERROR).then(|| now - within / 2)
}

/// What speaks against a request before its body is asked for.
fn objection(context: &Context<'_>, incoming: &Incoming) -> Option<(Status, &'static str)> {
    let head = &incoming.request.head;
    match head.body {
        BodyLength::Fixed(length) if length > incoming.max_body(&context.group.site) => {
            Some((Status::CONTENT_TOO_LARGE, incoming.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

/// Whether the target is `*`.
pub(super) fn is_asterisk(facts: Option<HeadFacts>) -> bool {
    facts.is_some_and(|facts| facts.target_form == TargetForm::Asterisk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_soon_after_the_socket_was_empty_is_known_well_enough() {
        let empty = 1_000_000_000;
        for within in [0, 1, 60_000, 2 * MAX_ERROR] {
            let told = arrived_between(empty, empty + within).expect("known");
            for real in [empty, empty + within] {
                assert!(told.abs_diff(real) <= MAX_ERROR, "{within}");
            }
        }
        assert_eq!(arrived_between(empty, empty + 2 * MAX_ERROR + 1), None);
        // Another thread has looked at its clock a moment later.
        assert_eq!(arrived_between(empty, empty - 10), Some(empty - 10));
    }
}
