//! Receiving over HTTP/1: bytes to events, events to complete requests.

use std::io;
use std::ops::RangeInclusive;

use maitred_exchange::pipeline::{
    advance_spool, data_received, end_dropped, head_received, move_body_to_file, pass_filters, refuse_unkept,
    request_received, share,
};
use maitred_exchange::stages::{refuse, refuse_noted};
use maitred_exchange::{Keeping, Received, Stream};
use maitred_h1::{Event, Step, note_request_line};
use maitred_h2::Preface;
use maitred_http::Status;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_limits::minimum::Late;
use maitred_spool::Progress;

use super::H1;
use crate::connection::carrier::Carrier;
use crate::connection::framed::goes_over;
use crate::connection::held::{NO_ROOM, first_request_time, idle_time};
use crate::connection::sending::{arm, flush, set_deadline};
use crate::connection::wire::{MAX_RECEIVES_A_TURN, Phase, Wire};
use crate::connection::{Context, NEVER, Turn, in_turn, nanos};

/// Bytes received in one turn, where one call receives more.
const MAX_BYTES_A_TURN: usize = MAX_RECEIVES_A_TURN * 64 * 1024;

/// Pipelined requests answered in one turn before other connections get theirs.
const MAX_REQUESTS_A_TURN: u32 = 64;

/// Response bytes gathered before they are sent while pipelined requests are being answered.
const MAX_GATHERED: usize = 64 * 1024;

/// A body is received in place while at least this many bytes are missing: the last bytes come the usual way, which
/// asks for the time of their receipt.
const LAST: u64 = 16 * 1024;

/// Least and most bytes asked for by one call. For a body that is longer already the call asks for a quarter of the
/// received bytes, so that the budget holds little for bytes that the peer may never send.
const PIECES: RangeInclusive<u64> = 64 * 1024..=512 * 1024;

/// Result of decoding received bytes.
struct Consumed {
    bytes: usize,
    /// The turn that follows before the rest is decoded; `None` when all bytes are used and more are needed.
    turn: Option<Turn>,
}

impl H1 {
    /// Receives a part of a long body of known length in place: without a copy, and in larger pieces. None if the
    /// usual way is needed.
    fn receive_into_body(&mut self, wire: &mut Wire, context: &Context<'_>) -> Option<Moved> {
        let receiver = &mut self.receiver;
        let left = receiver.fixed_left().filter(|left| *left >= 2 * LAST && wire.input.is_empty())?;
        let stream = self.stream.as_mut()?;
        let site = &context.group.site;
        if site.guard.budget.is_over() {
            return None;
        }
        let before = stream.request.body.len();
        if matches!(stream.keeping, Keeping::Memory)
            && before + left > site.body_memory
            && let Some(share) = share(&context.group.site, stream, context.waker())
        {
            stream.keeping = Keeping::Shared(share);
        }
        let most = (left - LAST).min((before / 4).clamp(*PIECES.start(), *PIECES.end()));
        let fits = match &mut stream.keeping {
            Keeping::Memory => before + left <= site.body_memory,
            Keeping::Shared(share) => {
                let fits = share.grow(before + most) && !share.leaves();
                if !fits {
                    move_body_to_file(&context.group.site, stream, context.waker());
                }
                fits
            }
            Keeping::Spool(_) => true,
            _ => false,
        };
        if !fits {
            return None;
        }
        let transport = &mut wire.transport;
        let (moved, most) = if let Keeping::Spool(spool) = &mut stream.keeping {
            spool.receive(|gathered, room| {
                let most = (left - LAST).min(room as u64);
                (transport.receive_more(gathered, most as usize), most)
            })?
        } else {
            if !stream.request.body.try_reserve(left as usize) {
                move_body_to_file(&context.group.site, stream, context.waker());
                return None;
            }
            let memory = stream.request.body.memory_mut()?;
            (transport.receive_more(memory, most as usize), most)
        };
        if let Moved::Bytes(count) = moved {
            receiver.skip_fixed(count as u64);
            stream.received += count as u64;
            wire.note_read(count, most as usize);
            (wire.received, wire.emptied) = (context.now, u16::MAX);
        } else if matches!(moved, Moved::Blocked) {
            wire.unread = false;
        }
        Some(moved)
    }

    /// State of the spool at the deadline of the body, if the body is in the spool.
    fn spool_progress(&mut self) -> Option<Progress> {
        match &mut self.stream.as_mut()?.keeping {
            Keeping::Spool(spool) => Some(spool.advance()),
            _ => None,
        }
    }

    /// Checks the peer when the deadline of a request has come. Returns the way in which the peer is late, or none
    /// and puts the deadline off.
    pub(in crate::connection) fn check_body(
        &mut self,
        wire: &mut Wire,
        context: &Context<'_>,
    ) -> Option<Late> {
        let checked = self.stream.as_mut().ok_or(Late::Silent);
        match checked.and_then(|stream| stream.check_body(&context.group.site, context.now)) {
            Err(late) => Some(late),
            Ok(due) => {
                set_deadline(self, wire, context, due);
                None
            }
        }
    }

    /// Whether the request waits for the check of a password.
    fn waits_for_filter(&self) -> bool {
        let passed = self.stream.as_ref().and_then(|stream| stream.passed.as_ref());
        passed.is_some_and(|passed| passed.is_waiting())
    }

    /// Receives and answers until the socket is empty, a request has to be run, or the budget of the turn is used up.
    pub(in crate::connection) fn receive(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        let turn = self.receive_all(wire, context);
        if wire.goes_over {
            return turn;
        }
        let flushed = flush(self, wire, context);
        match (turn, flushed) {
            (turn, _) if wire.phase == Phase::Running => {
                self.set_running(wire, context);
                turn
            }
            (_, Turn::Close) | (Turn::Close, _) => Turn::Close,
            (_, flushed) if wire.writer.is_some() => {
                // The connection is neither reading nor idle until the response has left: the send timeout applies.
                wire.phase = Phase::Sending;
                flushed
            }
            // The queued bytes have left meanwhile.
            _ if wire.phase == Phase::Sending && wire.last => {
                wire.end_gently(context, self.is_between_requests())
            }
            _ if wire.phase == Phase::Sending => {
                wire.phase = Phase::Receiving;
                Turn::Later
            }
            (turn, _) => {
                self.settle(wire, context);
                turn
            }
        }
    }

    fn set_running(&mut self, wire: &mut Wire, context: &Context<'_>) {
        wire.useless_wakes = 0;
        if wire.writer.is_none() {
            // The timer stays as it is: the end of the exchange puts it off, which costs less than arming it.
            wire.deadline = NEVER;
        }
        if self.awaits_response() {
            arm(self, wire, context.group, context.token);
        }
    }

    fn receive_all(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        if wire.awaits_proxy_header()
            && let Some(turn) = wire.receive_proxy_header(context)
        {
            return turn;
        }
        if wire.awaits_handshake() {
            if let Some(turn) = wire.shake_hands(context) {
                return turn;
            }
            if wire.has_agreed_http2(&context.group.site) {
                wire.goes_over = true;
                return Turn::Wait;
            }
        }
        if context.group.site.http2.is_some_and(|http2| http2.only) {
            wire.goes_over = true;
            return Turn::Wait;
        }
        if self.waits_for_filter() {
            // While a password is checked, packets wake threads for nothing.
            wire.note_wake_while_running(context);
            return Turn::Wait;
        }
        let mut requests = 0;
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.keeping.leaves()) {
            move_body_to_file(&context.group.site, stream, context.waker());
        }
        if let Some(stream) = self.stream.take_if(|stream| stream.keeping.is_spool()) {
            let received = advance_spool(&mut in_turn(self, wire, context), stream);
            if let Some(turn) = self.after(wire, context, received, &mut requests) {
                // While the disk is awaited, packets wake threads for nothing.
                wire.note_wake_while_running(context);
                return turn;
            }
        }
        wire.listen_again(context.group, context.token);
        // A body that paused may have ended there: its end is an event without bytes.
        let pauses = |stream: &Stream| stream.keeping.is_spool() || stream.is_filtering();
        let paused = self.stream.as_ref().is_some_and(|stream| pauses(stream));
        if !wire.input.is_empty() || paused {
            let input = std::mem::take(&mut wire.input);
            if let Some(turn) = self.consume_kept(wire, context, input, &mut requests) {
                return turn;
            }
        }
        let mut room = MAX_BYTES_A_TURN;
        for _ in 0..MAX_RECEIVES_A_TURN {
            if !wire.unread {
                return Turn::Wait;
            }
            if room == 0 {
                break;
            }
            let moved = self.receive_into_body(wire, context);
            // Also where no byte has arrived: the body may have left memory.
            if let Some(stream) = self.stream.take_if(|stream| stream.keeping.is_spool()) {
                let received = advance_spool(&mut in_turn(self, wire, context), stream);
                if let Some(turn) = self.after(wire, context, received, &mut requests) {
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
                Some(Moved::End) => return self.end_of_input(wire, context),
                Some(Moved::Failed(error)) => return wire.end_broken(context, &error),
            }
            let mut buffer = context.scratch.take_receive();
            let moved = wire.receive_some(context, &mut buffer);
            let turn = match moved {
                Moved::Bytes(count) => {
                    room = room.saturating_sub(count);
                    if wire.note_read(count, buffer.len()) {
                        wire.note_empty(context.now);
                    }
                    let turn = self.consume_received(wire, context, &buffer[..count], &mut requests);
                    if let Some(stream) = &mut self.stream {
                        stream.received += count as u64;
                    }
                    turn
                }
                Moved::Blocked => {
                    wire.unread = false;
                    wire.note_empty(context.now);
                    Some(Turn::Wait)
                }
                Moved::End => Some(self.end_of_input(wire, context)),
                Moved::Failed(error) => Some(wire.end_broken(context, &error)),
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
        wire: &mut Wire,
        context: &mut Context<'_>,
        data: &[u8],
        requests: &mut u32,
    ) -> Option<Turn> {
        if wire.input.is_empty() {
            let consumed = self.consume(wire, context, data, requests);
            wire.input = data[consumed.bytes..].to_vec();
            return consumed.turn;
        }
        let mut input = std::mem::take(&mut wire.input);
        input.extend_from_slice(data);
        self.consume_kept(wire, context, input, requests)
    }

    fn consume_kept(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        mut input: Vec<u8>,
        requests: &mut u32,
    ) -> Option<Turn> {
        let consumed = self.consume(wire, context, &input, requests);
        if consumed.bytes < input.len() {
            input.drain(..consumed.bytes);
            wire.input = input;
        }
        consumed.turn
    }

    /// Handles the end of the peer's sending side after all its bytes were read.
    fn end_of_input(&mut self, wire: &mut Wire, context: &Context<'_>) -> Turn {
        wire.unread = false;
        if !self.is_idle(wire) {
            let log = &context.group.site.log;
            log.debug(format_args!("{}: the peer ended the connection inside a request", wire.peer));
        }
        // Responses to earlier requests may still have to leave.
        wire.last = true;
        wire.phase = Phase::Sending;
        Turn::Wait
    }

    /// Sets the deadline of the next event.
    fn settle(&mut self, wire: &mut Wire, context: &Context<'_>) {
        // A handshake has its own time, also in a drain.
        if wire.phase != Phase::Receiving || wire.awaits_handshake() {
            return;
        }
        let timeouts = &context.group.site.timeouts;
        match &mut self.stream {
            Some(stream) if stream.facts.is_some() => {
                let due = stream.body_due(&context.group.site, context.now);
                set_deadline(self, wire, context, due);
            }
            Some(stream) => {
                let deadline = stream.began + nanos(timeouts.head);
                set_deadline(self, wire, context, deadline);
            }
            // The deadline set at the accept stays: the head timeout.
            None if wire.served == 0 && !context.group.is_draining() => {}
            None if wire.served == 0 => {
                set_deadline(self, wire, context, context.now + first_request_time(context.group));
            }
            None => set_deadline(self, wire, context, context.now + idle_time(context.group)),
        }
    }

    /// Ends a request whose peer is late with bytes, or whose disk is late with the body.
    fn time_out_request(&mut self, wire: &mut Wire, context: &mut Context<'_>, late: Late) -> Turn {
        let spooled = self.spool_progress();
        let is_checked =
            self.stream.as_ref().is_some_and(|stream| stream.is_filtering()) && !self.waits_for_filter();
        if matches!(spooled, Some(Progress::Written)) || is_checked {
            // The body was completed at this very moment.
            return self.receive(wire, context);
        }
        let Some(mut stream) = self.stream.take() else { return Turn::Close };
        let rule = match (stream.facts, late) {
            (None, _) => {
                note_request_line(&wire.input, &mut stream.request.head);
                Rule::HeadTimeout
            }
            (_, Late::Silent) => Rule::BodyTimeout,
            (_, Late::Slow) => Rule::MinRateIn,
        };
        if !stream.is_filtering() && matches!(spooled, None | Some(Progress::Open)) {
            let site = &context.group.site;
            site.guard.applied.note(rule, wire.peer, &site.log);
        }
        if stream.keeping.is_dropped() {
            return Turn::Close;
        }
        if matches!(spooled, None | Some(Progress::Open)) && !stream.is_filtering() {
            // The whole wait was the peer's.
            stream.times.complete = context.now;
        }
        let received = match spooled {
            Some(Progress::Failed(error)) => refuse_unkept(&mut in_turn(self, wire, context), stream, &error),
            Some(Progress::Waiting) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the disk takes too long");
                refuse_unkept(&mut in_turn(self, wire, context), stream, &error)
            }
            _ if stream.is_filtering() => {
                let reason = "the password could not be checked in time";
                refuse(&mut in_turn(self, wire, context), stream, Status::SERVICE_UNAVAILABLE, reason)
            }
            _ => {
                let reason = match rule {
                    Rule::HeadTimeout => "the request head did not arrive in time",
                    Rule::MinRateIn => "the request body came too slowly",
                    _ => "the request body did not arrive in time",
                };
                refuse_noted(&mut in_turn(self, wire, context), stream, Status::REQUEST_TIMEOUT, reason)
            }
        };
        match flush(self, wire, context) {
            Turn::Close => Turn::Close,
            _ if wire.writer.is_none() => wire.end_gently(context, self.is_between_requests()),
            _ => received.turn(),
        }
    }

    /// Decodes events from `data` until the bytes are used up or other work has to come first.
    fn consume(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        data: &[u8],
        requests: &mut u32,
    ) -> Consumed {
        let mut at = 0;
        if wire.begun == 0 && self.stream.is_none() {
            match self.is_http2(wire, context, data) {
                Preface::No => {}
                Preface::Perhaps => return Consumed { bytes: 0, turn: None },
                Preface::Yes => {
                    wire.goes_over = true;
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
            let mut stream = self.stream.take().unwrap_or_else(|| wire.begin_stream(context.now));
            let received = if stream.is_filtering() {
                // The head has been read already, and has waited in the filters.
                pass_filters(&mut in_turn(self, wire, context), stream)
            } else {
                let head = &mut stream.request.head;
                match self.receiver.poll_event(&data[at..], head, &context.group.site.limits) {
                    Ok(Step { consumed, event }) => {
                        at += consumed;
                        match event {
                            Event::NeedMore if at == data.len() && self.is_between_requests() => {
                                // Empty lines only (RFC 9112 §2.2): no request has begun.
                                Stream::give_back(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::NeedMore => {
                                self.stream = Some(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::Head(facts) if goes_over(wire, context, &stream, facts) => {
                                stream.facts = Some(facts);
                                (self.stream, wire.goes_over) = (Some(stream), true);
                                return Consumed { bytes: at, turn: Some(Turn::Wait) };
                            }
                            Event::Head(facts) => {
                                head_received(&mut in_turn(self, wire, context), stream, facts)
                            }
                            Event::Data(bytes) => {
                                data_received(&mut in_turn(self, wire, context), stream, bytes)
                            }
                            Event::Trailers(_) => Received::Goes(stream),
                            Event::End => request_received(&mut in_turn(self, wire, context), stream),
                        }
                    }
                    Err(_) if stream.keeping.is_dropped() => {
                        end_dropped(&mut in_turn(self, wire, context), stream)
                    }
                    Err(error) => {
                        refuse(&mut in_turn(self, wire, context), stream, error.status, error.reason)
                    }
                }
            };
            if let Some(turn) = self.after(wire, context, received, requests) {
                return Consumed { bytes: at, turn: Some(turn) };
            }
        }
    }

    /// Whether a connection begins with HTTP/2 without an agreement (prior knowledge, RFC 9113 §3.3).
    pub(in crate::connection) fn is_http2(&self, wire: &Wire, context: &Context<'_>, data: &[u8]) -> Preface {
        // With TLS, ALPN makes the agreement.
        let may = context.group.site.http2.is_some() && wire.session().is_none();
        if may { maitred_h2::preface(data) } else { Preface::No }
    }

    /// Goes on with the connection after a received part. Returns none when more received bytes can be decoded.
    pub(in crate::connection) fn after(
        &mut self,
        wire: &mut Wire,
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
                self.make_room(wire, context)
            }
            Received::HandedOver => Some(Turn::Wait),
            Received::Ended(turn) => Some(turn),
        }
    }

    /// Sends the gathered responses if they are many. Returns the turn that ends when the reader is slow: the next
    /// request waits until they have left.
    fn make_room(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Option<Turn> {
        if context.scratch.out.len() <= MAX_GATHERED && wire.writer.is_none() {
            return None;
        }
        let flushed = flush(self, wire, context);
        if wire.writer.is_none() && matches!(flushed, Turn::Wait) {
            return None;
        }
        if wire.phase == Phase::Receiving {
            wire.phase = Phase::Sending;
        }
        Some(flushed)
    }

    /// Refuses an incomplete request, because others need its memory. Returns none if the turn goes on.
    pub(in crate::connection) fn give_up_heads(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Option<Turn> {
        let is_open = matches!(self.spool_progress(), None | Some(Progress::Open));
        let waits = |stream: &mut Box<Stream>| is_open && stream.waits_for_peer();
        if wire.phase != Phase::Receiving {
            return None;
        }
        let stream = self.stream.take_if(waits)?;
        context.group.site.guard.applied.note(Rule::HeadBudget, wire.peer, &context.group.site.log);
        if stream.keeping.is_dropped() {
            return Some(Turn::Close);
        }
        let received =
            refuse_noted(&mut in_turn(self, wire, context), stream, Status::SERVICE_UNAVAILABLE, NO_ROOM);
        Some(match flush(self, wire, context) {
            Turn::Close => Turn::Close,
            _ if wire.writer.is_none() => wire.end_gently(context, self.is_between_requests()),
            _ => received.turn(),
        })
    }

    /// Goes on while a handler answers: bytes for its WebSocket or its body, or a wake in vain.
    pub(in crate::connection) fn go_on_running(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Turn {
        if self.has_socket() {
            return self.receive_websocket(wire, context);
        }
        if self.tell_reader() {
            self.each_stream().for_each(|stream| stream.put_off());
        } else {
            wire.note_wake_while_running(context);
        }
        Turn::Wait
    }

    /// Ends an incomplete request whose peer is late; none if it is not.
    pub(in crate::connection) fn end_late_request(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Option<Turn> {
        self.check_body(wire, context).map(|late| self.time_out_request(wire, context, late))
    }
}
