//! What comes in frames, by stream.

use maitred_files::Body;
use maitred_h2::{ConnectionError, ErrorCode, Event, HeadFacts};
use maitred_http::Status;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_limits::minimum::Late;
use maitred_log::End;

use super::queue::{Heads, OwnAnswer, Queue};
use super::{Framed, Granted, http2};
use crate::connection::body::{Keeping, spill};
use crate::connection::protocol::Protocol;
use crate::connection::receive::MAX_RECEIVES_A_TURN;
use crate::connection::stream::{Received, Stream};
use crate::connection::{Connection, Context, Group, NEVER, Phase, Turn, idle_time, nanos};
use crate::group::slots::Token;

/// How long a connection may be idle whose peer has said that it makes no further requests, in nanoseconds.
const LEAVING: u64 = 2_000_000_000;

/// So many streams a peer may reset in a turn, and how long nothing more is read of one that does, in nanoseconds: each has cost a
/// request, and a flood of them would hold up other connections. All 128 streams of a page that is left are reset within 20 ms.
const RESETS_A_TURN: u32 = 32;
const RESETS_PAUSE: u64 = 5_000_000;

/// What is said of an extended CONNECT for anything but WebSocket.
const UNKNOWN_PROTOCOL: (Status, &str) =
    (Status::NOT_IMPLEMENTED, "this :protocol is not spoken here; websocket is");

impl Connection {
    /// Reads and answers until there is nothing to read, or the budget is used up.
    pub(in crate::connection) fn receive_framed(&mut self, context: &mut Context<'_>) -> Turn {
        let mut rest = MAX_RECEIVES_A_TURN;
        self.go_on_with_waiting(context);
        self.go_on_with_accepted(context);
        self.end_pause(context.now);
        if !self.wire.input.is_empty()
            && !self.is_paused()
            && let Err(error) = self.take_kept_frames(context, &[])
        {
            return self.end_faulty(context, error);
        }
        while self.reads_more() && rest > 0 {
            rest -= 1;
            let mut buffer = context.scratch.take_receive();
            let moved = self.wire.receive_some(context, &mut buffer);
            let taken = match moved {
                Moved::Bytes(count) => {
                    self.wire.note_read(count, buffer.len());
                    self.take_kept_frames(context, &buffer[..count])
                }
                Moved::Blocked => {
                    self.wire.unread = false;
                    Ok(())
                }
                Moved::End => {
                    (self.wire.unread, self.wire.last) = (false, true);
                    if let Some(framed) = self.protocol.framed() {
                        framed.ended = true;
                    }
                    self.drop_incomplete(context.group);
                    self.each_stream()
                        .filter(|stream| stream.has_open_socket())
                        .for_each(|stream| stream.end_socket());
                    Ok(())
                }
                Moved::Failed(error) => {
                    context.scratch.return_receive(buffer);
                    return self.wire.end_broken(context, &error);
                }
            };
            context.scratch.return_receive(buffer);
            if let Err(error) = taken {
                return self.end_faulty(context, error);
            }
        }
        match self.flush_framed(context) {
            Turn::Wait => {}
            turn => return turn,
        }
        if let Some(framed) = self.protocol.framed() {
            framed.count(&context.group.site);
        }
        if self.wire.last && self.wire.writer.is_none() && self.is_between_streams() {
            return Turn::Close;
        }
        self.settle_framed(context.group, context.token, context.now);
        if self.reads_more() { Turn::Later } else { Turn::Wait }
    }

    /// The peer sends no more: what it has not completed of requests never will be.
    fn drop_incomplete(&mut self, group: &Group) {
        let numbers: Vec<u32> =
            self.streams().filter(|stream| stream.waits_for_peer()).map(|stream| stream.number).collect();
        for number in numbers {
            self.cancel(group, number, End::PeerGone);
        }
    }

    fn reads_more(&self) -> bool {
        self.wire.unread && !self.is_clogged() && !self.is_paused()
    }

    /// Whether nothing is read for a moment of a peer that resets too many streams.
    fn is_paused(&self) -> bool {
        matches!(&self.protocol, Protocol::Framed(framed) if framed.pause > 0)
    }

    /// A turn begins.
    fn end_pause(&mut self, now: u64) {
        if let Some(framed) = self.protocol.framed()
            && framed.pause <= now
        {
            (framed.resets, framed.pause) = (0, 0);
        }
    }

    /// Whether so much waits for the peer that nothing more is read of it: answers to what it asks without reading.
    fn is_clogged(&self) -> bool {
        /// As h2o has it.
        const MOST: u64 = 512 * 1024;
        self.wire.writer.as_ref().is_some_and(|writer| writer.held() > MOST)
    }

    /// The peer has broken the rules: it is told, and everything of it ends.
    pub(in crate::connection) fn end_faulty(
        &mut self,
        context: &mut Context<'_>,
        error: ConnectionError,
    ) -> Turn {
        let ConnectionError { code, reason } = error;
        let site = &context.group.site;
        // The line is the same for all connections of an address, so that the log folds them.
        site.log.info(format_args!("{}: {reason}; the connection was closed", self.wire.peer.without_port()));
        if let Some(framed) = self.protocol.framed()
            && framed.broken.replace(error).is_none()
        {
            site.http2_counters.note_error(code);
        }
        let numbers: Vec<u32> = self.streams().map(|stream| stream.number).collect();
        for number in numbers {
            self.cancel(context.group, number, End::PeerGone);
        }
        if let Some(turn) = self.tell_last(context) {
            return turn;
        }
        if code == ErrorCode::EnhanceYourCalm {
            // The kernel drops what has come and refuses the rest: read and dropped here, a flood would go on to make work. The
            // reset that follows may overtake what the peer is told.
            self.wire.transport.shutdown_write();
            return Turn::Close;
        }
        self.wire.end_gently(context, self.protocol.is_between_requests())
    }

    /// The connection ends, and the peer is told so. What it still sends is read and dropped, so that it can read that.
    pub(in crate::connection) fn end_framed(&mut self, context: &mut Context<'_>) -> Turn {
        self.tell_last(context).unwrap_or_else(|| self.wire.end_gently(context, self.protocol.is_between_requests()))
    }

    /// Sends what is said last; `None` once it has left.
    fn tell_last(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let Some(framed) = self.protocol.framed() else { return Some(Turn::Close) };
        let peace = ConnectionError { code: ErrorCode::NoError, reason: "" };
        framed.http2.put_goaway(&framed.broken.unwrap_or(peace), &mut framed.control);
        if self.fill(context.group, context.token).is_err() {
            return Some(self.peer_gone(context));
        }
        self.wire.last = true;
        self.wire.phase = Phase::Sending;
        self.wire.writer.is_some().then_some(Turn::Wait)
    }

    /// No further request is wanted, because the server stops: the peer is told so, once.
    pub(in crate::connection) fn begin_drain(&mut self, context: &mut Context<'_>) -> Turn {
        let Some(framed) = self.protocol.framed() else { return Turn::Wait };
        // A new connection is for a request that is on its way: not every client would ask again.
        if !framed.is_asked || std::mem::replace(&mut framed.draining, true) {
            return Turn::Wait;
        }
        framed.http2.put_drain(&mut framed.control);
        self.flush_framed(context)
    }

    /// A response says that no further request is wanted on this connection: the peer is told so before it, and the connection ends
    /// when the requests that are under way have been answered.
    pub(in crate::connection) fn leave(&mut self) {
        let Some(framed) = self.protocol.framed() else { return };
        framed.leaving = true;
        if !std::mem::replace(&mut framed.draining, true) {
            framed.http2.put_drain(&mut framed.control);
        }
    }

    /// Whether no exchange is under way.
    pub(in crate::connection) fn is_between_streams(&self) -> bool {
        self.streams().next().is_none()
    }

    /// Looks at streams that wait for a password's check or for the disk.
    fn go_on_with_waiting(&mut self, context: &mut Context<'_>) {
        for stream in self.each_stream().filter(|stream| stream.keeping.leaves()) {
            spill(context, stream);
        }
        let waits = |stream: &Stream| {
            !stream.running && (stream.is_filtering() || stream.keeping.is_spool() && !stream.answered)
        };
        let waiting: Vec<u32> =
            self.each_stream().filter(|stream| waits(stream)).map(|stream| stream.number).collect();
        for number in waiting {
            let Some(framed) = self.protocol.framed() else { return };
            let Some(stream) = framed.streams.remove(number) else { continue };
            let received = if stream.is_filtering() {
                let passed = self.pass_filters(context, stream);
                if matches!(passed, Received::HandedOver) {
                    self.hand_over_early(number);
                }
                self.take_early(context, passed)
            } else {
                self.advance_spool(context, stream)
            };
            self.keep_on(received);
        }
    }

    /// A request that was in the filters goes on: so does what has come of it meanwhile.
    fn take_early(&mut self, context: &mut Context<'_>, received: Received) -> Received {
        let Received::Goes(mut stream) = received else { return received };
        let Some(queue) = &mut stream.queue else { return Received::Goes(stream) };
        let (early, ends) = (std::mem::take(&mut queue.early), queue.received);
        let received = if early.is_empty() {
            Received::Goes(stream)
        } else {
            self.data_received(context, stream, &early)
        };
        match received {
            Received::Goes(stream) if ends => self.request_received(context, stream),
            received => received,
        }
    }

    /// The same of one whose handler reads the body as it comes.
    fn hand_over_early(&mut self, number: u32) {
        let Some(framed) = self.protocol.framed() else { return };
        let Some(stream) = framed.streams.get_mut(number) else { return };
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
    fn go_on_with_accepted(&mut self, context: &mut Context<'_>) {
        let waits = |stream: &Stream| {
            let early = stream.queue.as_ref().is_some_and(|queue| queue.has_early(stream.has_open_socket()));
            stream.socket.is_some() && (early || stream.socket_has_input())
        };
        let waiting: Vec<u32> =
            self.streams().filter(|stream| waits(stream)).map(|stream| stream.number).collect();
        for number in waiting {
            let Some(framed) = self.protocol.framed() else { return };
            let Some(mut stream) = framed.streams.remove(number) else { continue };
            if let Some(queue) = &mut stream.queue {
                let (early, ends) = (std::mem::take(&mut queue.early), queue.received);
                self.take_for_socket(context, &mut stream, &early);
                if ends {
                    stream.end_socket();
                }
            }
            stream.enqueue_replies();
            let takes_more = stream.socket_takes_more();
            self.put(stream);
            if takes_more && let Some(framed) = self.protocol.framed() {
                framed.credit(number, u64::MAX);
            }
        }
    }

    /// Takes what is complete of the frames received, and keeps the rest.
    fn take_kept_frames(
        &mut self,
        context: &mut Context<'_>,
        received: &[u8],
    ) -> Result<(), ConnectionError> {
        let used = if self.wire.input.is_empty() {
            let used = self.take_frames(context, received)?;
            self.wire.input.extend_from_slice(&received[used..]);
            used
        } else {
            let mut input = std::mem::take(&mut self.wire.input);
            input.extend_from_slice(received);
            let used = self.take_frames(context, &input)?;
            if used < input.len() {
                input.drain(..used);
                self.wire.input = input;
            }
            used
        };
        let is_whole = self.wire.input.is_empty();
        if let Some(framed) = self.protocol.framed() {
            let is_whole = is_whole && !framed.http2.is_within_block();
            framed.partial = match framed.partial {
                _ if is_whole => 0,
                // The time of a frame counts from its first byte, that of a head from its first frame.
                0 => context.now,
                _ if used > 0 && !framed.http2.is_within_block() => context.now,
                since => since,
            };
        }
        Ok(())
    }

    /// Takes what is complete of the frames in `input`; returns how many bytes are used up.
    fn take_frames(&mut self, context: &mut Context<'_>, input: &[u8]) -> Result<usize, ConnectionError> {
        let mut at = 0;
        // The next request: its head is filled as soon as one comes.
        let mut next = Stream::blank();
        while let Some(framed) = self.protocol.framed() {
            let Framed { http2, control, .. } = &mut *framed;
            let (used, event) = http2.poll(&input[at..], context.now, &mut next.request.head, control)?;
            at += used;
            match event {
                Event::NeedMore => break,
                Event::Head { stream, facts } => {
                    let begun = std::mem::replace(&mut next, Stream::blank());
                    self.take_head(context, stream, begun, &facts);
                }
                Event::Data { stream, bytes } => self.take_data(context, stream, bytes),
                Event::End { stream } => self.take_end(context, stream),
                Event::Reset { stream } => {
                    framed.unwanted.end(stream);
                    framed.resets += 1;
                    let is_flood = framed.resets >= RESETS_A_TURN;
                    if is_flood {
                        framed.pause = context.now + RESETS_PAUSE;
                    }
                    self.cancel(context.group, stream, End::PeerGone);
                    if is_flood {
                        break;
                    }
                }
                Event::Credit { stream, bytes } => {
                    if matches!(framed.take_credit(stream, bytes, context.now)?, Granted::TooMuch) {
                        framed.reset(stream, ErrorCode::FlowControlError);
                        self.cancel(context.group, stream, End::PeerGone);
                    }
                }
                Event::Narrow { stream, bytes } => framed.widen(stream, bytes, &context.group.site),
                Event::Window { change } => framed.change_windows(change)?,
                Event::Priority { stream, priority } => {
                    framed.prioritised = true;
                    let stream = framed.streams.get_mut(stream);
                    if let Some(queue) = stream.and_then(|stream| stream.queue.as_mut()) {
                        queue.priority = priority;
                    }
                }
                Event::Leaving => framed.leaving = true,
            }
        }
        Stream::give_back(next);
        Ok(at)
    }

    /// A request begins.
    fn take_head(
        &mut self,
        context: &mut Context<'_>,
        number: u32,
        mut stream: Box<Stream>,
        told: &HeadFacts,
    ) {
        let group = context.group;
        let Some(framed) = self.protocol.framed() else { return };
        framed.is_asked = true;
        if group.is_draining() && !std::mem::replace(&mut framed.draining, true) {
            framed.http2.put_drain(&mut framed.control);
        }
        // Also those count that are reset, and that handlers still have.
        if framed.streams.len() >= group.site.http2.unwrap_or_default().streams as usize {
            framed.reset(number, ErrorCode::RefusedStream);
            return Stream::give_back(stream);
        }
        let mut queue = Queue::take(framed.http2.initial_window());
        queue.received = told.ends;
        if let Some(priority) = told.priority {
            framed.prioritised = true;
            queue.priority = priority;
        }
        self.wire.note_begun(&mut stream, context.now);
        if self.lacks_room(context, &stream) {
            if let Some(framed) = self.protocol.framed() {
                framed.reset(number, ErrorCode::RefusedStream);
            }
            return Stream::give_back(stream);
        }
        // RFC 8441 §4.
        let protocol = told.protocol.map(|span| stream.request.head.fields.bytes(span));
        let is_unknown = protocol.is_some_and(|protocol| protocol != b"websocket");
        (stream.number, stream.websocket) = (number, protocol.is_some());
        stream.queue = Some(queue);
        let facts = http2::facts_of(told);
        let received = match told.objection.or(is_unknown.then_some(UNKNOWN_PROTOCOL)) {
            None => self.head_received(context, stream, facts),
            Some((status, reason)) => {
                stream.facts = Some(facts);
                stream.times.complete = self.wire.received;
                self.wire.identify(context, &mut stream);
                self.refuse(context, stream, status, reason)
            }
        };
        self.keep_on(received);
    }

    fn take_data(&mut self, context: &mut Context<'_>, number: u32, bytes: &[u8]) {
        let count = bytes.len() as u64;
        let Some(framed) = self.protocol.framed() else { return };
        // It is in the stream's memory from here on, or dropped. A frame is smaller than 4 GiB.
        framed.http2.put_credit(0, count as u32, &mut framed.control);
        let Some(mut stream) = framed.streams.remove(number) else {
            return framed.unwanted.look(number, &mut framed.http2, &mut framed.control);
        };
        if let Some(queue) = &mut stream.queue {
            queue.untaken += count;
        }
        if stream.socket.is_some() {
            self.take_for_socket(context, &mut stream, bytes);
            stream.enqueue_replies();
            let takes_more = stream.socket_takes_more();
            self.put(stream);
            if takes_more && let Some(framed) = self.protocol.framed() {
                framed.credit(number, u64::MAX);
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
        let received = self.data_received(context, stream, bytes);
        self.keep_on(received);
    }

    fn take_end(&mut self, context: &mut Context<'_>, number: u32) {
        let Some(framed) = self.protocol.framed() else { return };
        framed.unwanted.end(number);
        let Some(mut stream) = framed.streams.remove(number) else { return };
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
        let received = self.request_received(context, stream);
        self.keep_on(received);
    }

    /// Keeps what goes on or waits.
    pub(super) fn keep_on(&mut self, received: Received) {
        match received {
            Received::Goes(stream) => {
                let number = stream.number;
                self.put(stream);
                if let Some(framed) = self.protocol.framed() {
                    // All that has come is in its memory, or in its file.
                    framed.credit(number, u64::MAX);
                }
            }
            Received::Waits(stream) => self.put(stream),
            Received::Answered | Received::HandedOver | Received::Dropped | Received::Ended(_) => {}
        }
    }

    /// Keeps a stream that the engine answers, until its last byte has left. Its request need not be complete.
    pub(in crate::connection) fn answer_stream(
        &mut self,
        mut stream: Box<Stream>,
        heads: Heads,
        body: Body,
        own: OwnAnswer,
    ) {
        stream.answer_itself(heads, body, own);
        self.put(stream);
    }

    /// Has the timer ring for what is due first.
    pub(in crate::connection) fn settle_framed(&mut self, group: &Group, token: Token, now: u64) {
        let limits = (group.site.guard.outward(), nanos(group.site.timeouts.send));
        let still = self.wire.stands_still_since();
        let Some(framed) = self.protocol.framed() else { return };
        let (outward, partial, leaving) = (framed.outward, framed.partial, framed.leaving);
        for stream in self.each_stream() {
            let queue = stream.queue.as_mut();
            if let Some(due) = queue.and_then(|queue| queue.reader_due(outward, still, limits, now)) {
                stream.due = due;
            } else if stream.running && stream.waits_for_body() {
                stream.due = stream.live_due(&group.site);
            } else if stream.running || stream.answered {
                stream.due = NEVER;
            } else {
                stream.due = stream.body_due(&group.site, now);
            }
        }
        if self.is_idle() {
            // Who makes no further requests ends the connection itself; if not, there is nothing to wait for.
            let most = if leaving { LEAVING } else { NEVER };
            self.wire.deadline = now + idle_time(group).min(most);
        } else if self.wire.writer.is_none() {
            // A head that does not come to its end holds back everything behind it.
            self.wire.deadline = if partial > 0 { partial + nanos(group.site.timeouts.head) } else { NEVER };
        }
        self.arm(group, token);
    }

    /// Looks at streams whose time is over, of the request's body or of a reader that takes nothing, and at the connection's. `alone`
    /// says that nothing else has happened.
    pub(in crate::connection) fn check_streams(
        &mut self,
        context: &mut Context<'_>,
        alone: bool,
    ) -> Option<Turn> {
        let now = context.now;
        let late: Vec<u32> =
            self.each_stream().filter(|stream| stream.due <= now).map(|stream| stream.number).collect();
        let is_one_late = !late.is_empty();
        for number in late {
            self.check_stream(context, number);
        }
        if now >= self.wire.deadline {
            if self.wire.writer.is_some() {
                return self.check_reader(context);
            }
            if self.is_idle() {
                return Some(self.end_framed(context));
            }
            if self.protocol.framed().is_some_and(|framed| framed.partial > 0) {
                let site = &context.group.site;
                site.guard.applied.note(Rule::HeadTimeout, self.wire.peer, &site.log);
                let numbers: Vec<u32> = self.streams().map(|stream| stream.number).collect();
                for number in numbers {
                    self.cancel(context.group, number, End::PeerGone);
                }
                return Some(self.end_framed(context));
            }
        } else if alone && !is_one_late && self.is_idle() {
            // It was put off since the timer was set.
            self.arm(context.group, context.token);
            return Some(Turn::Wait);
        }
        None
    }

    fn check_stream(&mut self, context: &mut Context<'_>, number: u32) {
        let (site, now) = (&context.group.site, context.now);
        let still = self.wire.look_at_reader(now);
        let Some(framed) = self.protocol.framed() else { return };
        let Some(mut stream) = framed.streams.remove(number) else { return };
        stream.due = NEVER;
        let limits = (site.guard.outward(), nanos(site.timeouts.send));
        let outward = framed.outward;
        if let Some(queue) = &mut stream.queue
            && let Some(due) = queue.reader_due(outward, still, limits, now)
        {
            let late = if now < due { None } else { queue.look_at_peer(limits, now) };
            let Some(late) = late else {
                // What it had taken was not known, or it has taken enough.
                stream.due = queue.reader_due(outward, still, limits, now).unwrap_or(NEVER);
                return self.put(stream);
            };
            // Its peer takes nothing: the others go on.
            framed.reset(number, ErrorCode::Cancel);
            let rule = match late {
                Late::Slow => Rule::MinRateOut,
                Late::Silent if queue.send_timeout > 0 => Rule::OwnSendTimeout,
                Late::Silent => Rule::SendTimeout,
            };
            site.guard.applied.note(rule, self.wire.peer, &site.log);
            self.put(stream);
            return self.cancel(context.group, number, End::TooSlow);
        }
        if stream.running && stream.waits_for_body() {
            if let Some(rule) = stream.end_late_live(site, now) {
                site.guard.applied.note(rule, self.wire.peer, &site.log);
            } else {
                stream.due = stream.live_due(site);
            }
            return self.put(stream);
        }
        if stream.running || stream.answered {
            return self.put(stream);
        }
        let late = match stream.check_body(site, now) {
            Ok(due) => {
                stream.due = due;
                return self.put(stream);
            }
            Err(late) => late,
        };
        let rule = if late == Late::Slow { Rule::MinRateIn } else { Rule::BodyTimeout };
        site.guard.applied.note(rule, self.wire.peer, &site.log);
        stream.times.complete = now;
        let reason = "the request body did not arrive in time";
        let received = self.refuse_noted(context, stream, Status::REQUEST_TIMEOUT, reason);
        self.keep_on(received);
    }
}
