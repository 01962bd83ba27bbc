//! What comes in frames, by stream.

use maitred_exchange::client::identify;
use maitred_exchange::pipeline::{
    advance_spool, data_received, head_received, move_body_to_file, pass_filters, request_received,
};
use maitred_exchange::stages::refuse;
use maitred_exchange::{Keeping, Queue, Received, Stream};
use maitred_h1::TargetForm;
use maitred_h2::{ConnectionError, ErrorCode, Event, HeadFacts};
use maitred_http::Status;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_log::End;

use super::{Framed, Granted};
use crate::connection::carrier::Carrier;
use crate::connection::held::{NO_ROOM, lacks_room};
use crate::connection::sending::peer_gone;
use crate::connection::websocket::take_for_socket;
use crate::connection::wire::{MAX_RECEIVES_A_TURN, Phase, Wire};
use crate::connection::{Context, Group, Turn, in_turn};

/// So many streams a peer may reset in a turn, and how long nothing more is read of one that does, in nanoseconds: each has cost a
/// request, and a flood of them would hold up other connections. All 128 streams of a page that is left are reset within 20 ms.
const RESETS_A_TURN: u32 = 32;
const RESETS_PAUSE: u64 = 5_000_000;

/// What is said of an extended CONNECT for anything but WebSocket.
const UNKNOWN_PROTOCOL: (Status, &str) =
    (Status::NOT_IMPLEMENTED, "this :protocol is not spoken here; websocket is");

impl Framed {
    /// Reads and answers until there is nothing to read, or the budget is used up.
    pub(in crate::connection) fn receive(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        let mut rest = MAX_RECEIVES_A_TURN;
        self.go_on_with_waiting(wire, context);
        self.go_on_with_accepted(wire, context);
        self.end_pause(context.now);
        if !wire.input.is_empty()
            && !self.is_paused()
            && let Err(error) = self.take_kept_frames(wire, context, &[])
        {
            return self.end_faulty(wire, context, error);
        }
        while self.reads_more(wire) && rest > 0 {
            rest -= 1;
            let mut buffer = context.scratch.take_receive();
            let moved = wire.receive_some(context, &mut buffer);
            let taken = match moved {
                Moved::Bytes(count) => {
                    wire.note_read(count, buffer.len());
                    self.take_kept_frames(wire, context, &buffer[..count])
                }
                Moved::Blocked => {
                    wire.unread = false;
                    Ok(())
                }
                Moved::End => {
                    (wire.unread, wire.last) = (false, true);
                    self.ended = true;
                    self.drop_incomplete(context.group);
                    for stream in self.each_stream() {
                        stream.end_body_by_peer();
                        if stream.has_open_socket() {
                            stream.end_socket();
                        }
                    }
                    Ok(())
                }
                Moved::Failed(error) => {
                    context.scratch.return_receive(buffer);
                    // The log has the error. Handlers may run: they are told.
                    let _ = wire.end_broken(context, &error);
                    return peer_gone(self, wire, context);
                }
            };
            context.scratch.return_receive(buffer);
            if let Err(error) = taken {
                return self.end_faulty(wire, context, error);
            }
        }
        match self.flush_framed(wire, context) {
            Turn::Wait => {}
            turn => return turn,
        }
        self.count(&context.group.site);
        if wire.last && wire.writer.is_none() && self.is_between_streams() {
            return Turn::Close;
        }
        self.settle_framed(wire, context.group, context.token, context.now);
        if self.reads_more(wire) { Turn::Later } else { Turn::Wait }
    }

    /// The peer sends no more: requests that no handler has yet are never completed.
    fn drop_incomplete(&mut self, group: &Group) {
        let numbers: Vec<u32> =
            self.streams().filter(|stream| stream.waits_for_peer()).map(|stream| stream.number).collect();
        for number in numbers {
            self.cancel(group, number, End::PeerGone);
        }
    }

    fn reads_more(&self, wire: &Wire) -> bool {
        wire.unread && !self.is_clogged(wire) && !self.is_paused()
    }

    /// Whether nothing is read for a moment of a peer that resets too many streams.
    fn is_paused(&self) -> bool {
        self.pause > 0
    }

    /// A turn begins.
    fn end_pause(&mut self, now: u64) {
        if self.pause <= now {
            (self.resets, self.pause) = (0, 0);
        }
    }

    /// Whether so much waits for the peer that nothing more is read of it: answers to what it asks without reading.
    pub(in crate::connection) fn is_clogged(&self, wire: &Wire) -> bool {
        /// As h2o has it.
        const MOST: u64 = 512 * 1024;
        wire.writer.as_ref().is_some_and(|writer| writer.held() > MOST)
    }

    /// The peer has broken the rules: it is told, and everything of it ends.
    fn end_faulty(&mut self, wire: &mut Wire, context: &mut Context<'_>, error: ConnectionError) -> Turn {
        let ConnectionError { code, reason } = error;
        let site = &context.group.site;
        // The line is the same for all connections of an address, so that the log folds them.
        site.log.info(format_args!("{}: {reason}; the connection was closed", wire.peer.without_port()));
        if self.broken.replace(error).is_none() {
            site.http2_counters.note_error(code);
        }
        let numbers: Vec<u32> = self.streams().map(|stream| stream.number).collect();
        for number in numbers {
            self.cancel(context.group, number, End::PeerGone);
        }
        if let Some(turn) = self.tell_last(wire, context) {
            return turn;
        }
        if code == ErrorCode::EnhanceYourCalm {
            // The kernel drops what has come and refuses the rest: read and dropped here, a flood would go on to make work. The
            // reset that follows may overtake what the peer is told.
            wire.transport.shutdown_write();
            return Turn::Close;
        }
        wire.end_gently(context, self.streams.is_empty())
    }

    /// The connection ends, and the peer is told so. What it still sends is read and dropped, so that it can read that.
    pub(super) fn end_framed(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        self.tell_last(wire, context).unwrap_or_else(|| wire.end_gently(context, self.streams.is_empty()))
    }

    /// Sends what is said last; `None` once it has left.
    fn tell_last(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Option<Turn> {
        let peace = ConnectionError { code: ErrorCode::NoError, reason: "" };
        self.http2.put_goaway(&self.broken.unwrap_or(peace), &mut self.control);
        if self.fill(wire, context.group, context.token).is_err() {
            return Some(peer_gone(self, wire, context));
        }
        wire.last = true;
        wire.phase = Phase::Sending;
        wire.writer.is_some().then_some(Turn::Wait)
    }

    /// No further request is wanted, because the server stops: the peer is told so, once.
    pub(in crate::connection) fn begin_drain(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        // A new connection is for a request that is on its way: not every client would ask again.
        if !self.is_asked || std::mem::replace(&mut self.draining, true) {
            return Turn::Wait;
        }
        self.http2.put_drain(&mut self.control);
        self.flush_framed(wire, context)
    }

    /// A response says that no further request is wanted on this connection: the peer is told so before it, and the connection ends
    /// when the requests that are under way have been answered.
    pub(in crate::connection) fn leave(&mut self) {
        self.leaving = true;
        if !std::mem::replace(&mut self.draining, true) {
            self.http2.put_drain(&mut self.control);
        }
    }

    /// Whether no exchange is under way.
    pub(in crate::connection) fn is_between_streams(&self) -> bool {
        self.streams().next().is_none()
    }

    /// Looks at streams that wait for a password's check or for the disk.
    fn go_on_with_waiting(&mut self, wire: &mut Wire, context: &mut Context<'_>) {
        for stream in self.each_stream().filter(|stream| stream.keeping.leaves()) {
            move_body_to_file(&context.group.site, stream, context.waker());
        }
        let waits = |stream: &Stream| {
            !stream.running && (stream.is_filtering() || stream.keeping.is_spool() && !stream.answered)
        };
        let waiting: Vec<u32> =
            self.each_stream().filter(|stream| waits(stream)).map(|stream| stream.number).collect();
        for number in waiting {
            let Some(stream) = self.streams.remove(number) else { continue };
            let received = if stream.is_filtering() {
                let passed = pass_filters(&mut in_turn(self, wire, context), stream);
                if matches!(passed, Received::HandedOver) {
                    self.hand_over_early(number);
                }
                self.take_early(wire, context, passed)
            } else {
                advance_spool(&mut in_turn(self, wire, context), stream)
            };
            self.keep_on(received);
        }
    }

    /// A request that was in the filters goes on: so does what has come of it meanwhile.
    fn take_early(&mut self, wire: &mut Wire, context: &mut Context<'_>, received: Received) -> Received {
        let Received::Goes(mut stream) = received else { return received };
        let Some(queue) = &mut stream.queue else { return Received::Goes(stream) };
        let (early, ends) = (std::mem::take(&mut queue.early), queue.received);
        let received = if early.is_empty() {
            Received::Goes(stream)
        } else {
            data_received(&mut in_turn(self, wire, context), stream, &early)
        };
        match received {
            Received::Goes(stream) if ends => request_received(&mut in_turn(self, wire, context), stream),
            received => received,
        }
    }

    /// Gives a live body the bytes that came while the filters checked its head.
    fn hand_over_early(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        let Stream { keeping: Keeping::Live(live), queue: Some(queue), .. } = &mut *stream else { return };
        let early = std::mem::take(&mut queue.early);
        if !early.is_empty() {
            live.take(&early);
        }
        if queue.received {
            live.complete();
        }
    }

    /// What has come for WebSockets before they were accepted, or there was room for it.
    fn go_on_with_accepted(&mut self, wire: &mut Wire, context: &mut Context<'_>) {
        let waits = |stream: &Stream| {
            let early = stream.queue.as_ref().is_some_and(|queue| queue.has_early(stream.has_open_socket()));
            stream.socket.is_some() && (early || stream.socket_has_input())
        };
        let waiting: Vec<u32> =
            self.streams().filter(|stream| waits(stream)).map(|stream| stream.number).collect();
        for number in waiting {
            let Some(mut stream) = self.streams.remove(number) else { continue };
            if let Some(queue) = &mut stream.queue {
                let (early, ends) = (std::mem::take(&mut queue.early), queue.received);
                take_for_socket(wire, context, &mut stream, &early);
                if ends {
                    stream.end_socket();
                }
            }
            stream.enqueue_replies();
            let takes_more = stream.socket_takes_more();
            self.put(stream);
            if takes_more {
                self.credit(number, u64::MAX);
            }
        }
    }

    /// Takes what is complete of the frames received, and keeps the rest.
    fn take_kept_frames(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        received: &[u8],
    ) -> Result<(), ConnectionError> {
        let used = if wire.input.is_empty() {
            let used = self.take_frames(wire, context, received)?;
            wire.input.extend_from_slice(&received[used..]);
            used
        } else {
            let mut input = std::mem::take(&mut wire.input);
            input.extend_from_slice(received);
            let used = self.take_frames(wire, context, &input)?;
            if used < input.len() {
                input.drain(..used);
                wire.input = input;
            }
            used
        };
        let is_whole = wire.input.is_empty();
        let is_whole = is_whole && !self.http2.is_within_block();
        self.partial = match self.partial {
            _ if is_whole => 0,
            // The time of a frame counts from its first byte, that of a head from its first frame.
            0 => context.now,
            _ if used > 0 && !self.http2.is_within_block() => context.now,
            since => since,
        };
        Ok(())
    }

    /// Takes what is complete of the frames in `input`; returns how many bytes are used up.
    fn take_frames(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        input: &[u8],
    ) -> Result<usize, ConnectionError> {
        let mut at = 0;
        // The next request: its head is filled as soon as one comes.
        let mut next = Stream::blank();
        loop {
            let Self { http2, control, .. } = &mut *self;
            let (used, event) = http2.poll(&input[at..], context.now, &mut next.request.head, control)?;
            at += used;
            match event {
                Event::NeedMore => break,
                Event::Head { stream, facts } => {
                    let begun = std::mem::replace(&mut next, Stream::blank());
                    self.take_head(wire, context, stream, begun, &facts);
                }
                Event::Data { stream, bytes } => self.take_data(wire, context, stream, bytes),
                Event::End { stream } => self.take_end(wire, context, stream),
                Event::Reset { stream } => {
                    self.unwanted.end(stream);
                    self.resets += 1;
                    let is_flood = self.resets >= RESETS_A_TURN;
                    if is_flood {
                        self.pause = context.now + RESETS_PAUSE;
                    }
                    self.cancel(context.group, stream, End::PeerGone);
                    if is_flood {
                        break;
                    }
                }
                Event::Credit { stream, bytes } => {
                    if matches!(self.take_credit(stream, bytes, context.now)?, Granted::TooMuch) {
                        self.reset(stream, ErrorCode::FlowControlError);
                        self.cancel(context.group, stream, End::PeerGone);
                    }
                }
                Event::Narrow { stream, bytes } => self.widen(stream, bytes, &context.group.site),
                Event::Window { change } => self.change_windows(change)?,
                Event::Priority { stream, priority } => {
                    self.prioritised = true;
                    let stream = self.streams.get_mut(stream);
                    if let Some(queue) = stream.and_then(|stream| stream.queue.as_mut()) {
                        queue.priority = priority;
                    }
                }
                Event::Leaving => self.leaving = true,
            }
        }
        Stream::give_back(next);
        Ok(at)
    }

    /// A request begins.
    fn take_head(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        number: u32,
        mut stream: Box<Stream>,
        told: &HeadFacts,
    ) {
        let group = context.group;
        self.is_asked = true;
        if group.is_draining() && !std::mem::replace(&mut self.draining, true) {
            self.http2.put_drain(&mut self.control);
        }
        // Also those count that are reset, and that handlers still have.
        if self.streams.len() >= group.site.http2.unwrap_or_default().streams as usize {
            self.reset(number, ErrorCode::RefusedStream);
            return Stream::give_back(stream);
        }
        let mut queue = Queue::take(self.http2.initial_window());
        queue.received = told.ends;
        if let Some(priority) = told.priority {
            self.prioritised = true;
            queue.priority = priority;
        }
        wire.note_begun(&mut stream, context.now);
        if lacks_room(self, wire, context, &stream) {
            self.reset(number, ErrorCode::RefusedStream);
            return Stream::give_back(stream);
        }
        // RFC 8441 §4.
        let protocol = told.protocol.map(|span| stream.request.head.fields.bytes(span));
        let is_unknown = protocol.is_some_and(|protocol| protocol != b"websocket");
        (stream.number, stream.websocket) = (number, protocol.is_some());
        stream.queue = Some(queue);
        let facts = facts_of(told);
        let received = match told.objection.or(is_unknown.then_some(UNKNOWN_PROTOCOL)) {
            None => head_received(&mut in_turn(self, wire, context), stream, facts),
            Some((status, reason)) => {
                stream.facts = Some(facts);
                stream.times.complete = wire.received;
                let head = &mut stream.request.head;
                stream.client = Some(identify(&group.site, wire.peer, wire.ends.as_deref(), head));
                refuse(&mut in_turn(self, wire, context), stream, status, reason)
            }
        };
        self.keep_on(received);
    }

    fn take_data(&mut self, wire: &mut Wire, context: &mut Context<'_>, number: u32, bytes: &[u8]) {
        let count = bytes.len() as u64;
        // The windows of streams bound the memory; that of the connection opens again whatever becomes of the bytes. A frame is smaller
        // than 4 GiB.
        self.http2.put_credit(0, count as u32, &mut self.control);
        let Some(mut stream) = self.streams.remove(number) else {
            return self.unwanted.look(number, &mut self.http2, &mut self.control);
        };
        if let Some(queue) = &mut stream.queue {
            queue.untaken += count;
        }
        if stream.socket.is_some() {
            take_for_socket(wire, context, &mut stream, bytes);
            stream.enqueue_replies();
            let takes_more = stream.socket_takes_more();
            self.put(stream);
            if takes_more {
                self.credit(number, u64::MAX);
            }
            return;
        }
        stream.received += count;
        if stream.answered || stream.dead {
            return self.put(stream);
        }
        if let Keeping::Live(live) = &mut stream.keeping {
            live.take(bytes);
            return self.put(stream);
        }
        if stream.is_filtering() || stream.websocket {
            // Nothing of it is looked at before the filters have let it pass, or its handler has accepted it.
            if let Some(queue) = &mut stream.queue {
                queue.early.extend_from_slice(bytes);
            }
            return self.put(stream);
        }
        let received = data_received(&mut in_turn(self, wire, context), stream, bytes);
        self.keep_on(received);
    }

    fn take_end(&mut self, wire: &mut Wire, context: &mut Context<'_>, number: u32) {
        self.unwanted.end(number);
        let Some(mut stream) = self.streams.remove(number) else { return };
        if let Some(queue) = &mut stream.queue {
            queue.received = true;
        }
        if stream.answered || stream.dead {
            return self.put(stream);
        }
        if let Keeping::Live(live) = &mut stream.keeping {
            live.complete();
            return self.put(stream);
        }
        if stream.socket.is_some() {
            stream.end_socket();
            return self.put(stream);
        }
        if stream.is_filtering() || stream.websocket {
            return self.put(stream);
        }
        let received = request_received(&mut in_turn(self, wire, context), stream);
        self.keep_on(received);
    }

    /// Keeps what goes on or waits.
    pub(super) fn keep_on(&mut self, received: Received) {
        match received {
            Received::Goes(stream) => {
                let number = stream.number;
                self.put(stream);
                // All that has come is in its memory, or in its file.
                self.credit(number, u64::MAX);
            }
            Received::Waits(stream) => self.put(stream),
            Received::Answered | Received::HandedOver | Received::Dropped | Received::Ended(_) => {}
        }
    }

    /// Refuses the incomplete requests, because others need their memory. Returns none if the turn goes on.
    pub(in crate::connection) fn give_up_heads(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Option<Turn> {
        let site = &context.group.site;
        let waiting: Vec<u32> =
            self.streams().filter(|stream| stream.waits_for_peer()).map(|stream| stream.number).collect();
        let is_within_head = self.gathered() > 0;
        if is_within_head || !waiting.is_empty() {
            site.guard.applied.note(Rule::HeadBudget, wire.peer, &site.log);
        }
        for number in &waiting {
            self.reset(*number, ErrorCode::RefusedStream);
        }
        // No other frame can come before the rest of that head.
        let error = ConnectionError { code: ErrorCode::EnhanceYourCalm, reason: NO_ROOM };
        for number in waiting {
            self.cancel(context.group, number, End::Cut);
        }
        is_within_head.then(|| self.end_faulty(wire, context, error))
    }
}

/// The facts of a head, as HTTP/1 gives them.
fn facts_of(told: &HeadFacts) -> maitred_h1::HeadFacts {
    maitred_h1::HeadFacts {
        complete: told.ends,
        keep_alive: true,
        expect_continue: told.expect_continue,
        upgrade: false,
        target_form: if told.asterisk { TargetForm::Asterisk } else { TargetForm::Origin },
    }
}
