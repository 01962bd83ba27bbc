//! Sending in frames: the turn of each stream, frames ahead of the transport, and the end of streams.

use std::io;
use std::sync::Arc;

use maitred_exchange::{Awaited, Heads, Queue, Stream, Values, last_bytes, recycle_writer, spare_writer};
use maitred_files::Body;
use maitred_h2::{ErrorCode, Priority};
use maitred_http::Method;
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Observe, SendError};

use super::{Framed, heads_of};
use crate::connection::carrier::{Carrier, Ending, ResponsePart};
use crate::connection::sending::{peer_gone, send_kept};
use crate::connection::spilling::{note_sender, relieve_later};
use crate::connection::streaming_body::LiveReader;
use crate::connection::wire::Wire;
use crate::connection::{Context, Group, Key, Turn};
use crate::group::slots::Token;
use maitred_exchange::memory::recycle_head;
use maitred_exchange::stages::late_response;
use maitred_exchange::stream::body::OVER;

/// Bytes of frames that are made ahead of what the transport has taken: what one call may take, and a new stream waits for at
/// most.
const AHEAD: u64 = 64 * 1024;

/// Of so many frames one is that of the next stream in turn, however urgent it is: so none starves.
const TURN_OF_ALL: u8 = 16;

/// Content of a WebSocket's frame up to this size is copied behind its head.
const MAX_COPIED: u64 = 16 * 1024;

impl Framed {
    /// Whose turn it is: by urgency if the peer has ever said one (RFC 9218 §10), else one after the other.
    fn pick(&mut self) -> Option<u32> {
        let outward = self.outward;
        let ready = |stream: &&Stream| stream.queue.as_ref().is_some_and(|queue| queue.is_ready(outward));
        let mut in_turn = self.streams.in_turn(self.sent).filter(ready);
        self.turns = (self.turns + 1) % TURN_OF_ALL;
        if !self.prioritised || self.turns == 0 {
            return in_turn.next().map(|stream| stream.number);
        }
        let order = |(place, stream): (usize, &Stream)| {
            let Priority { urgency, incremental } =
                stream.queue.as_ref().map_or_else(Priority::default, |queue| queue.priority);
            // Of those that are of use only as a whole the first one, then parts of the others in turn.
            let place = if incremental { place as u64 } else { u64::from(stream.number) };
            ((urgency, incremental, place), stream.number)
        };
        in_turn.enumerate().map(order).min().map(|(_, number)| number)
    }

    /// Takes a part of a response, and makes frames of it as far as they may leave.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn deliver_part(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        ResponsePart { encoder, before, content, interim, .. }: ResponsePart<'_>,
    ) -> Result<Flow, SendError> {
        if wire.is_dead() {
            wire.lose();
            return Err(SendError::Closed);
        }
        let Some(stream) = self.stream_of(key) else { return Err(SendError::Closed) };
        // Behind an interim response the time limit of the request goes on.
        if !interim {
            stream.awaited = None;
        }
        let values = |heads, content| Values { heads, content, trailers: None, ended: false };
        let heads = encoder.take_heads();
        if before.is_empty() {
            stream.enqueue(values(heads, content.keep()));
        } else if content.len() <= MAX_COPIED {
            before.extend_from_slice(last_bytes(&content).unwrap_or_default());
            stream.enqueue(values(heads, Content::Bytes(std::mem::take(before))));
        } else {
            stream.enqueue(values(heads, Content::Bytes(std::mem::take(before))));
            stream.enqueue(values(Heads::new(), content.keep()));
        }
        self.fill(wire, group, key.token)?;
        self.settle_framed(wire, group, key.token, clock::monotonic());
        if let Some(writer) = self.writer_of(wire, key) {
            writer.count(&group.site.spilling);
        }
        Ok(if self.is_full(wire, group, key) { Flow::Full } else { Flow::Ready })
    }

    /// Makes frames as far as windows and the transport allow, and sends them.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn fill(&mut self, wire: &mut Wire, group: &Group, token: Token) -> Result<(), SendError> {
        loop {
            self.frame(wire, group);
            if self.end_stalled(group) {
                self.frame(wire, group);
            }
            if wire.writer.is_none() {
                return Ok(());
            }
            send_kept(self, wire, group, token)?;
            if wire.writer.is_some() {
                return Ok(());
            }
        }
    }

    /// Ends the streams that wait for a window of a peer that sends nothing any more: none will open. Whether there were any.
    fn end_stalled(&mut self, group: &Group) -> bool {
        if !self.ended {
            return false;
        }
        let outward = self.outward;
        let is_stalled =
            |stream: &&Stream| stream.queue.as_ref().is_some_and(|queue| queue.is_stalled(outward));
        let stalled: Vec<u32> =
            self.streams.values().filter(is_stalled).map(|stream| stream.number).collect();
        for number in &stalled {
            self.reset(*number, ErrorCode::Cancel);
            self.cancel(group, *number, End::PeerGone);
        }
        !stalled.is_empty()
    }

    /// The same when a response has ended: an idle connection has its deadline, and one that nothing follows on ends.
    ///
    /// # Errors
    /// The peer is gone.
    fn fill_to_the_end(&mut self, wire: &mut Wire, group: &Group, token: Token) -> Result<(), SendError> {
        self.fill(wire, group, token)?;
        self.settle_framed(wire, group, token, clock::monotonic());
        if wire.last && wire.writer.is_none() && self.is_between_streams() {
            group.resume(token);
        }
        Ok(())
    }

    /// Makes frames until enough are ahead of the transport, or no stream has anything to send.
    pub(in crate::connection) fn frame(&mut self, wire: &mut Wire, group: &Group) {
        let now = clock::monotonic();
        if wire.writer.is_none() {
            wire.send_timeout = 0;
        }
        let (mut broken, reads) = (Vec::new(), !wire.transport.sends_files());
        for stream in self.streams.values_mut() {
            stream.enqueue_replies();
            if let Some(queue) = &mut stream.queue {
                queue.look_at_limit(now);
            }
        }
        if !self.control.is_empty() {
            wire.writer.get_or_insert_with(spare_writer).push_all(&mut self.control);
        }
        while wire.writer.as_ref().is_none_or(|writer| writer.waiting(AHEAD) < AHEAD) {
            let Some(number) = self.pick() else { break };
            self.sent = number;
            let Self { http2, streams, outward, frames, waits, unwanted, .. } = &mut *self;
            let Some(queue) = streams.get_mut(number).and_then(|stream| stream.queue.as_mut()) else {
                break;
            };
            queue.moved = now;
            wire.send_timeout = wire.send_timeout.max(queue.own_send_timeout(&group.site));
            let writer = wire.writer.get_or_insert_with(spare_writer);
            let mut ends = false;
            for head in std::mem::take(&mut queue.heads) {
                // The last one; an interim one never is.
                ends = queue.ended && queue.is_empty() && !queue.cut && head.status.code() >= 200;
                http2.put_head(number, &head, ends, frames);
                recycle_head(head);
            }
            if !ends && let Some(data) = &mut queue.data {
                let most = u64::try_from(queue.outward.min(*outward)).unwrap_or(0).min(queue.allowed);
                let length = match data.prepare(data.waiting(most.min(http2.max_data() as u64)), reads) {
                    Ok(length) => length,
                    Err(error) => {
                        // The peer sees that its response is cut; the others go on.
                        broken.push(error);
                        (queue.data, queue.trailers) = (None, None);
                        (queue.ended, queue.cut) = (true, true);
                        0
                    }
                };
                if let Some(data) = queue.data.as_mut().filter(|_| length > 0) {
                    let all = data.waiting(length + 1) == length;
                    ends = queue.ended && all && !queue.cut && queue.trailers.is_none();
                    http2.put_data(number, length as usize, ends, frames);
                    writer.push_all(frames);
                    data.move_to(writer, length);
                    // A frame is shorter than 16 MiB.
                    queue.outward -= length as i64;
                    queue.sent += length;
                    *outward -= length as i64;
                    if let Some(shaper) = &mut queue.shaper {
                        shaper.use_up(length);
                    }
                    if all && let Some(data) = queue.data.take() {
                        recycle_writer(data);
                    }
                    queue.look_at_limit(now);
                    queue.waits = false;
                }
                if queue.is_stalled(*outward) && !std::mem::replace(&mut queue.waits, true) {
                    waits[usize::from(queue.outward > *outward)] += 1;
                }
            }
            if !ends && queue.ended && queue.data.is_none() {
                if queue.cut {
                    http2.put_reset(number, ErrorCode::InternalError, frames);
                } else if let Some(trailers) = queue.trailers.take() {
                    http2.put_trailers(number, &trailers, frames);
                } else {
                    http2.put_data(number, 0, true, frames);
                }
                ends = true;
            }
            if ends && !queue.received && !queue.cut && !queue.both_ways {
                unwanted.begin(number, http2, frames);
            }
            writer.push_all(frames);
            if !ends {
                continue;
            }
            writer.records.extend(queue.record.take());
            let own = queue.own.take();
            match (streams.remove(number), own) {
                // Its handler does not know yet that it was answered.
                (Some(mut stream), _) if stream.running => {
                    stream.queue = None;
                    streams.insert(stream);
                }
                (Some(stream), Some(own)) => writer.records.push(own.record(stream)),
                (Some(stream), None) => Stream::give_back(stream),
                (None, _) => {}
            }
        }
        for error in broken {
            wire.note_broken(group, &error);
        }
    }

    /// Sends the last part of a handler's response.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn deliver_last(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
        Ending { trailers, reusable: whole, defers, record, label }: Ending<'_>,
    ) -> Result<(), SendError> {
        let values =
            Values { heads: part.encoder.take_heads(), content: part.content.keep(), trailers, ended: true };
        wire.served = wire.served.saturating_add(1);
        let Some(stream) = self.stream_of(key) else { return Err(SendError::Closed) };
        stream.stop();
        stream.answered = true;
        stream.enqueue(values);
        if let Some(queue) = &mut stream.queue {
            queue.cut = !whole;
            queue.record = record.take();
        }
        note_sender(self, wire, key, label);
        if wire.is_dead() {
            wire.lose();
            self.drop_stream(group, key.stream, wire.ended_as);
            group.resume(key.token);
            return Err(SendError::Closed);
        }
        if !defers {
            self.fill_to_the_end(wire, group, key.token)?;
        }
        if let Some(writer) = self.writer_of(wire, key) {
            writer.count(&group.site.spilling);
            relieve_later(self, wire, group, key.token);
        }
        Ok(())
    }

    /// Takes a stream out that will not be sent to its end.
    fn drop_stream(&mut self, group: &Group, number: u32, end: End) {
        let Some(mut stream) = self.streams.remove(number) else { return };
        let own = stream.queue.as_mut().and_then(|queue| queue.own.take());
        stream.lose_queue(&group.site, end);
        match own {
            Some(own) => {
                let mut record = own.record(stream);
                record.end = end;
                group.site.note(record, clock::monotonic());
            }
            None => Stream::give_back(stream),
        }
    }

    /// The peer is gone: what has been answered is written down as that.
    pub(super) fn drop_all_answered(&mut self, wire: &Wire, group: &Group) {
        let end = wire.ended_as;
        self.count(&group.site);
        let over: Vec<u32> =
            self.streams.values().filter(|stream| !stream.running).map(|stream| stream.number).collect();
        self.streams
            .values_mut()
            .filter(|stream| stream.running)
            .for_each(|stream| stream.lose_queue(&group.site, end));
        for number in over {
            self.drop_stream(group, number, end);
        }
    }

    /// Nothing more of a stream is sent, because of what `end` says, and its handler is told. It is there until the handler is done.
    pub(super) fn cancel(&mut self, group: &Group, number: u32, end: End) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        if !stream.running {
            self.drop_stream(group, number, end);
            return;
        }
        stream.dead = true;
        stream.ended_as = Some(end);
        stream.flags().set_gone();
        stream.tell();
        stream.lose_queue(&group.site, end);
    }

    /// The handler of a stream that is dead has let go of it. Returns how its response ended, if it was cancelled.
    pub(in crate::connection) fn forget(&mut self, wire: &mut Wire, group: &Group, key: Key) -> Option<End> {
        let stream = self.streams.get_mut(key.stream).filter(|stream| stream.dead)?;
        stream.stop();
        let end = stream.ended_as;
        // One that was answered in its handler's place is there until that has left.
        if stream.queue.is_none()
            && let Some(stream) = self.streams.remove(key.stream)
        {
            Stream::give_back(stream);
        }
        if wire.is_dead() || self.is_between_streams() {
            group.resume(key.token);
        }
        end
    }

    /// Sends what the turn has left, and goes on.
    pub(super) fn flush_framed(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        match self.fill(wire, context.group, context.token) {
            Ok(()) => Turn::Wait,
            Err(_) => peer_gone(self, wire, context),
        }
    }

    /// Ends a stream for an operator, or because the server stops; the others go on.
    pub(in crate::connection) fn reset_stream(
        &mut self,
        _wire: &mut Wire,
        group: &Group,
        key: Key,
        end: End,
    ) {
        self.reset(key.stream, ErrorCode::Cancel);
        self.cancel(group, key.stream, end);
        group.resume(key.token);
    }

    pub(super) fn queue_of(&self, key: Key) -> Option<&Queue> {
        self.streams.get(key.stream)?.queue.as_deref()
    }

    /// Sends the response of the engine on one stream; other streams go on. The stream stays until the handler lets
    /// go of it.
    pub(super) fn answer_stream_in_its_place(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        awaited: Awaited,
    ) {
        let response = late_response(&context.group.site, &awaited);
        let is_head = awaited.head.method == Method::Head;
        let heads = heads_of(&response, context, is_head);
        let (begun, waited) = (stream.flags().begun(), stream.flags().awaited());
        let record = awaited.into_record(
            &context.group.site,
            context.now,
            wire.listener.into(),
            response.body_bytes(is_head),
            (begun, waited),
        );
        let body = if is_head { Body::Empty } else { response.body };
        stream.dead = true;
        stream.answer_in_its_place(heads, body, record);
        wire.served = wire.served.saturating_add(1);
        self.put(stream);
    }

    /// Sends the responses that handlers have left.
    pub(in crate::connection) fn send_what_waits(&mut self, wire: &mut Wire, group: &Group, token: Token) {
        if self.fill_to_the_end(wire, group, token).is_err() {
            group.resume(token);
        }
    }

    /// Reads bytes of a body for the handler. Returns `Ok(None)` when none have arrived; `observer` is told when some
    /// may have.
    pub(in crate::connection) fn read_live(
        &mut self,
        wire: &mut Wire,
        reader: &LiveReader,
        buffer: &mut [u8],
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let LiveReader { group, key, .. } = reader;
        let is_dead = wire.is_dead();
        let read = match self.stream_of(*key) {
            Some(stream) => stream.read_taken(is_dead, &group.site, buffer, observer),
            None => return OVER.result().map(Some),
        };
        if let Ok(Some(count)) = read {
            self.credit(key.stream, count as u64);
            self.note_body_read(*key);
        }
        // The next read finds out whether the peer is gone.
        let _ = self.fill(wire, group, key.token);
        self.settle_framed(wire, group, key.token, clock::monotonic());
        read
    }
}
