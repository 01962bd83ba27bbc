//! Receiving requests: bytes to events, events to complete requests.
//!
//! Sections below: HTTP/1.

use std::io;

use maitred_h1::{Event, Step, note_request_line};
use maitred_h2::Preface;
use maitred_http::Status;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_limits::minimum::Late;
use maitred_spool::Progress;

use super::body::spill;
use super::protocol::Protocol;
use super::stream::{Received, Stream};
use super::{Connection, Context, Phase, Turn, first_request_time, idle_time, nanos};

/// Calls of recv in one turn before other connections get theirs: 16 × 64 KiB take about 300 µs.
pub(super) const MAX_RECEIVES_A_TURN: usize = 16;

/// Bytes received in one turn, where one call receives more.
const MAX_BYTES_A_TURN: usize = MAX_RECEIVES_A_TURN * 64 * 1024;

impl Connection {
    /// Receives and answers until the socket is empty, a request has to be run, or the budget of the turn is used up.
    pub(super) fn receive(&mut self, context: &mut Context<'_>) -> Turn {
        let turn = self.receive_all(context);
        if self.protocol.is_framed() {
            return if matches!(turn, Turn::Close) { turn } else { self.receive_framed(context) };
        }
        let flushed = self.flush(context);
        match (turn, flushed) {
            (turn, _) if self.wire.phase == Phase::Running => {
                self.set_running(context);
                turn
            }
            (_, Turn::Close) | (Turn::Close, _) => Turn::Close,
            (_, flushed) if self.wire.writer.is_some() => {
                // The connection is neither reading nor idle until the response has left: the send timeout applies.
                self.wire.phase = Phase::Sending;
                flushed
            }
            // The queued bytes have left meanwhile.
            _ if self.wire.phase == Phase::Sending && self.wire.last => self.wire.end_gently(context, self.protocol.is_between_requests()),
            _ if self.wire.phase == Phase::Sending => self.receive_again(),
            (turn, _) => {
                self.settle(context);
                turn
            }
        }
    }

    fn receive_again(&mut self) -> Turn {
        self.wire.phase = Phase::Receiving;
        Turn::Later
    }

    fn set_running(&mut self, context: &Context<'_>) {
        self.wire.useless_wakes = 0;
        if self.wire.writer.is_none() {
            // The timer stays as it is: the end of the exchange puts it off, which costs less than arming it.
            self.wire.deadline = super::NEVER;
        }
        if self.awaits_response() {
            self.arm(context.group, context.token);
        }
    }

    fn receive_all(&mut self, context: &mut Context<'_>) -> Turn {
        if self.wire.awaits_proxy_header()
            && let Some(turn) = self.wire.receive_proxy_header(context)
        {
            return turn;
        }
        if self.wire.awaits_handshake() {
            if let Some(turn) = self.wire.shake_hands(context) {
                return turn;
            }
            if self.wire.has_agreed_http2(&context.group.site) {
                self.speak_framed(&context.group.site);
            }
        }
        if !self.protocol.is_framed() && context.group.site.http2.is_some_and(|http2| http2.only) {
            self.speak_framed(&context.group.site);
        }
        if self.protocol.is_framed() {
            return Turn::Wait;
        }
        if self.waits_for_filter() {
            // While a password is checked, packets wake threads for nothing.
            self.wire.note_wake_while_running(context);
            return Turn::Wait;
        }
        let mut requests = 0;
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.keeping.leaves()) {
            spill(context, stream);
        }
        if let Some(stream) = self.stream.take_if(|stream| stream.keeping.is_spool()) {
            let received = self.advance_spool(context, stream);
            if let Some(turn) = self.after(context, received, &mut requests) {
                // While the disk is awaited, packets wake threads for nothing.
                self.wire.note_wake_while_running(context);
                return turn;
            }
        }
        self.wire.listen_again(context.group, context.token);
        // A body that paused may have ended there: its end is an event without bytes.
        let pauses = |stream: &Stream| stream.keeping.is_spool() || stream.is_filtering();
        let paused = self.stream.as_ref().is_some_and(|stream| pauses(stream));
        if !self.wire.input.is_empty() || paused {
            let input = std::mem::take(&mut self.wire.input);
            if let Some(turn) = self.consume_kept(context, input, &mut requests) {
                return turn;
            }
        }
        let mut room = MAX_BYTES_A_TURN;
        for _ in 0..MAX_RECEIVES_A_TURN {
            if !self.wire.unread {
                return Turn::Wait;
            }
            if room == 0 {
                break;
            }
            let moved = self.receive_into_body(context);
            // Also where no byte has arrived: the body may have left memory.
            if let Some(stream) = self.stream.take_if(|stream| stream.keeping.is_spool()) {
                let received = self.advance_spool(context, stream);
                if let Some(turn) = self.after(context, received, &mut requests) {
                    return turn;
                }
            }
            match moved {
                None => {}
                Some(Moved::Bytes(count)) => {
                    room = room.saturating_sub(count);
                    continue;
                }
                Some(Moved::Blocked) => continue,
                Some(Moved::End) => return self.end_of_input(context),
                Some(Moved::Failed(error)) => return self.wire.end_broken(context, &error),
            }
            let mut buffer = context.scratch.take_receive();
            let moved = self.wire.receive_some(context, &mut buffer);
            let turn = match moved {
                Moved::Bytes(count) => {
                    room = room.saturating_sub(count);
                    if self.wire.note_read(count, buffer.len()) {
                        self.wire.note_empty(context.now);
                    }
                    let turn = self.consume_received(context, &buffer[..count], &mut requests);
                    if let Some(stream) = &mut self.stream {
                        stream.received += count as u64;
                    }
                    turn
                }
                Moved::Blocked => {
                    self.wire.unread = false;
                    self.wire.note_empty(context.now);
                    Some(Turn::Wait)
                }
                Moved::End => Some(self.end_of_input(context)),
                Moved::Failed(error) => Some(self.wire.end_broken(context, &error)),
            };
            context.scratch.return_receive(buffer);
            if let Some(turn) = turn {
                return turn;
            }
        }
        Turn::Later
    }

    fn consume_received(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
        requests: &mut u32,
    ) -> Option<Turn> {
        if self.wire.input.is_empty() {
            let consumed = self.consume(context, data, requests);
            self.wire.input = data[consumed.bytes..].to_vec();
            return consumed.turn;
        }
        let mut input = std::mem::take(&mut self.wire.input);
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
            self.wire.input = input;
        }
        consumed.turn
    }

    /// Handles the end of the peer's sending side after all its bytes were read.
    fn end_of_input(&mut self, context: &Context<'_>) -> Turn {
        self.wire.unread = false;
        if !self.is_idle() {
            let log = &context.group.site.log;
            log.debug(format_args!("{}: the peer ended the connection inside a request", self.wire.peer));
        }
        // Responses to earlier requests may still have to leave.
        self.wire.last = true;
        self.wire.phase = Phase::Sending;
        Turn::Wait
    }

    /// Sets the deadline of the next event.
    fn settle(&mut self, context: &Context<'_>) {
        // A handshake has its own time, also in a drain.
        if self.wire.phase != Phase::Receiving || self.wire.awaits_handshake() {
            return;
        }
        let timeouts = &context.group.site.timeouts;
        match &mut self.stream {
            Some(stream) if stream.facts.is_some() => {
                let due = stream.body_due(&context.group.site, context.now);
                self.set_deadline(context, due);
            }
            Some(stream) => {
                let deadline = stream.began + nanos(timeouts.head);
                self.set_deadline(context, deadline);
            }
            // The deadline set at the accept stays: the head timeout.
            None if self.wire.served == 0 && !context.group.is_draining() => {}
            None if self.wire.served == 0 => {
                self.set_deadline(context, context.now + first_request_time(context.group));
            }
            None => self.set_deadline(context, context.now + idle_time(context.group)),
        }
    }

    /// Ends a request whose peer is late with bytes, or whose disk is late with the body.
    pub(super) fn time_out_request(&mut self, context: &mut Context<'_>, late: Late) -> Turn {
        let spooled = self.spool_progress();
        let is_checked =
            self.stream.as_ref().is_some_and(|stream| stream.is_filtering()) && !self.waits_for_filter();
        if matches!(spooled, Some(Progress::Written)) || is_checked {
            // The body was completed at this very moment.
            return self.receive(context);
        }
        let Some(mut stream) = self.stream.take() else { return Turn::Close };
        let rule = match (stream.facts, late) {
            (None, _) => {
                note_request_line(&self.wire.input, &mut stream.request.head);
                Rule::HeadTimeout
            }
            (_, Late::Silent) => Rule::BodyTimeout,
            (_, Late::Slow) => Rule::MinRateIn,
        };
        if !stream.is_filtering() && matches!(spooled, None | Some(Progress::Open)) {
            let site = &context.group.site;
            site.guard.applied.note(rule, self.wire.peer, &site.log);
        }
        if stream.keeping.is_dropped() {
            return Turn::Close;
        }
        if matches!(spooled, None | Some(Progress::Open)) && !stream.is_filtering() {
            // The whole wait was the peer's.
            stream.times.complete = context.now;
        }
        let received = match spooled {
            Some(Progress::Failed(error)) => self.refuse_unkept(context, stream, &error),
            Some(Progress::Waiting) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the disk takes too long");
                self.refuse_unkept(context, stream, &error)
            }
            _ if stream.is_filtering() => {
                let reason = "the password could not be checked in time";
                self.refuse(context, stream, Status::SERVICE_UNAVAILABLE, reason)
            }
            _ => {
                let reason = match rule {
                    Rule::HeadTimeout => "the request head did not arrive in time",
                    Rule::MinRateIn => "the request body came too slowly",
                    _ => "the request body did not arrive in time",
                };
                self.refuse_noted(context, stream, Status::REQUEST_TIMEOUT, reason)
            }
        };
        match self.flush(context) {
            Turn::Close => Turn::Close,
            _ if self.wire.writer.is_none() => self.wire.end_gently(context, self.protocol.is_between_requests()),
            _ => received.turn(),
        }
    }
}

// ---- HTTP/1 ----
//
// The protocol joined to its connection: bytes to events, and one exchange at a time.

/// Pipelined requests answered in one turn before other connections get theirs.
const MAX_REQUESTS_A_TURN: u32 = 64;

/// Response bytes gathered before they are sent while pipelined requests are being answered.
const MAX_GATHERED: usize = 64 * 1024;

/// Result of decoding received bytes.
pub(super) struct Consumed {
    pub(super) bytes: usize,
    /// The turn that follows before the rest is decoded; `None` when all bytes are used and more are needed.
    pub(super) turn: Option<Turn>,
}

impl Connection {
    /// Decodes events from `data` until the bytes are used up or other work has to come first.
    pub(super) fn consume(&mut self, context: &mut Context<'_>, data: &[u8], requests: &mut u32) -> Consumed {
        let mut at = 0;
        if self.wire.begun == 0 && self.stream.is_none() {
            match self.is_http2(context, data) {
                Preface::No => {}
                Preface::Perhaps => return Consumed { bytes: 0, turn: None },
                Preface::Yes => {
                    self.speak_framed(&context.group.site);
                    return Consumed { bytes: 0, turn: Some(Turn::Wait) };
                }
            }
        }
        loop {
            if self.stream.is_none() && at == data.len() {
                return Consumed { bytes: at, turn: None };
            }
            if *requests >= MAX_REQUESTS_A_TURN {
                return Consumed { bytes: at, turn: Some(Turn::Later) };
            }
            let mut stream = self.stream.take().unwrap_or_else(|| self.wire.begin_stream(context.now));
            let received = if stream.is_filtering() {
                // The head has been read already, and has waited in the filters.
                self.pass_filters(context, stream)
            } else {
                let head = &mut stream.request.head;
                let Protocol::H1(receiver) = &mut self.protocol else {
                    return Consumed { bytes: at, turn: Some(Turn::Close) };
                };
                match receiver.poll_event(&data[at..], head, &context.group.site.limits) {
                    Ok(Step { consumed, event }) => {
                        at += consumed;
                        match event {
                            Event::NeedMore if at == data.len() && self.protocol.is_between_requests() => {
                                // Empty lines only (RFC 9112 §2.2): no request has begun.
                                Stream::give_back(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::NeedMore => {
                                self.stream = Some(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::Head(facts) if self.goes_over(context, &stream, facts) => {
                                self.go_over(context, stream, facts);
                                return Consumed { bytes: at, turn: Some(Turn::Wait) };
                            }
                            Event::Head(facts) => self.head_received(context, stream, facts),
                            Event::Data(bytes) => self.data_received(context, stream, bytes),
                            Event::Trailers(_) => Received::Goes(stream),
                            Event::End => self.request_received(context, stream),
                        }
                    }
                    Err(_) if stream.keeping.is_dropped() => self.end_dropped(stream),
                    Err(error) => self.refuse(context, stream, error.status, error.reason),
                }
            };
            if let Some(turn) = self.after(context, received, requests) {
                return Consumed { bytes: at, turn: Some(turn) };
            }
        }
    }

    /// Whether a connection begins with HTTP/2 without an agreement (prior knowledge, RFC 9113 §3.3).
    fn is_http2(&self, context: &Context<'_>, data: &[u8]) -> Preface {
        // With TLS, ALPN makes the agreement.
        let may = context.group.site.http2.is_some() && self.wire.session().is_none();
        if may { maitred_h2::preface(data) } else { Preface::No }
    }

    /// Goes on with the connection after a received part. Returns none when more received bytes can be decoded.
    pub(super) fn after(
        &mut self,
        context: &mut Context<'_>,
        received: Received,
        requests: &mut u32,
    ) -> Option<Turn> {
        match received {
            Received::Goes(stream) => {
                self.stream = Some(stream);
                None
            }
            Received::Waits(stream) => {
                self.stream = Some(stream);
                Some(Turn::Wait)
            }
            Received::Dropped => None,
            Received::Answered => {
                *requests += 1;
                self.make_room(context)
            }
            Received::HandedOver => Some(Turn::Wait),
            Received::Ended(turn) => Some(turn),
        }
    }

    /// Sends the gathered responses if they are many. Returns the turn that ends when the reader is slow: the next
    /// request waits until they have left.
    fn make_room(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if context.scratch.out.len() <= MAX_GATHERED && self.wire.writer.is_none() {
            return None;
        }
        let flushed = self.flush(context);
        if self.wire.writer.is_none() && matches!(flushed, Turn::Wait) {
            return None;
        }
        if self.wire.phase == Phase::Receiving {
            self.wire.phase = Phase::Sending;
        }
        Some(flushed)
    }
}
