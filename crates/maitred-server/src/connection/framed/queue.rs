//! What waits to be sent on each stream, and whose turn it is.
//!
//! A handler hands over values: heads, data, the end. They wait here until [`fill`](Connection::fill) makes frames of them,
//! a little ahead of the transport: so every stream gets its turn, and a stream whose peer gives no credit holds up no other.

use std::cell::RefCell;
use std::sync::Arc;

use maitred_files::Body;
use maitred_h2::{ErrorCode, Priority};
use maitred_http::{FieldSet, Peer, ResponseHead, Status};
use maitred_io::clock;
use maitred_limits::Shaper;
use maitred_limits::minimum::{Late, Minimum, RateWatch};
use maitred_log::End;
use maitred_runtime::{Content, Flow, SendError};
use maitred_spool::Share;
use maitred_stats::Times;
use smallvec::{SmallVec, smallvec};

use super::Framed;
use crate::connection;
use crate::connection::data_rate::{limits_of_one, own_nanos, send_timeout_of_all};
use crate::connection::protocol::Protocol;
use crate::connection::stream::{Kept, Record};
use crate::connection::writer::Writer;
use crate::connection::{Connection, Context, Group, Key, MAX_SPARE, Stream, Turn};
use crate::group::slots::Token;
use crate::site::Site;

/// Bytes of frames that are made ahead of what the transport has taken: what one call may take, and a new stream waits for at
/// most.
const AHEAD: u64 = 64 * 1024;

/// What waits to be sent of one exchange.
pub(crate) struct Queue {
    /// Interim ones, then the final one.
    heads: Heads,
    pub(in crate::connection) data: Option<Box<Writer>>,
    /// What holds it back, where there is a limit, and how many bytes that lets leave now.
    pub(in crate::connection) shaper: Option<Box<Shaper>>,
    allowed: u64,
    /// How long the peer may take nothing of it, in milliseconds; 0: as of all.
    pub(in crate::connection) send_timeout: u32,
    /// Nothing more comes.
    ended: bool,
    /// Of a WebSocket: its peer ends the other direction itself, behind its part of the closing handshake.
    pub(in crate::connection) both_ways: bool,
    /// It ends as a reset: the response is not whole.
    cut: bool,
    /// What stands behind the body.
    trailers: Option<Box<FieldSet>>,
    /// Bytes of the body that the peer takes now; fewer than none if it has made its windows smaller.
    pub(super) outward: i64,
    pub(super) priority: Priority,
    /// Bytes of the request's body that have come and that nobody has taken.
    pub(super) untaken: u64,
    /// Memory that a wider window may fill.
    pub(super) wide: Vec<Share>,
    /// The same while the request waits in the filters: what has come.
    pub(super) early: Vec<u8>,
    /// Where in the body answers of the engine to frames of a WebSocket end.
    replies_end: u64,
    /// Bytes of the body in frames so far, and the time that the peer has left to open a window; none while it waits for none.
    sent: u64,
    patience: Option<RateWatch>,
    /// When a frame of it was made last, or the first value came, in monotonic nanoseconds.
    pub(super) moved: u64,
    /// The peer has sent all of its request.
    pub(in crate::connection) received: bool,
    /// It waits for a window, and that is counted.
    waits: bool,
    /// Written down when its last byte has left.
    record: Option<Record>,
    /// The same of an answer of the engine's, of which the stream has the request still.
    own: Option<OwnAnswer>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of streams by its pointer")]
    static SPARE: RefCell<Vec<Box<Queue>>> = const { RefCell::new(Vec::new()) };
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            heads: Heads::new(),
            data: None,
            shaper: None,
            allowed: u64::MAX,
            send_timeout: 0,
            ended: false,
            both_ways: false,
            cut: false,
            trailers: None,
            outward: 0,
            priority: Priority::default(),
            untaken: 0,
            wide: Vec::new(),
            early: Vec::new(),
            replies_end: 0,
            sent: 0,
            patience: None,
            moved: 0,
            received: false,
            waits: false,
            record: None,
            own: None,
        }
    }
}

impl Queue {
    /// An empty one, with used memory if this thread has some.
    pub(super) fn take(window: u32) -> Box<Self> {
        let mut queue = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        queue.outward = window.into();
        queue
    }

    /// Keeps its memory for the next one.
    pub(in crate::connection) fn give_back(mut queue: Box<Self>) {
        *queue = Self::default();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(queue);
            }
        });
    }

    /// Bytes in memory.
    pub(crate) fn held(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.held()) + self.early.len() as u64
    }

    /// Whether answers of the engine wait to be sent, and so much that no more are added.
    pub(in crate::connection) fn is_clogged(&self) -> bool {
        /// As many as come at once of a peer that reads.
        const MOST: u64 = 4 * 1024;
        self.sent < self.replies_end && self.data.as_ref().is_some_and(|data| data.waiting(MOST) == MOST)
    }

    /// Appends answers of the engine.
    pub(in crate::connection) fn push_replies(&mut self, replies: &mut Vec<u8>) {
        let data = self.data.get_or_insert_with(connection::spare_writer);
        data.push_all(replies);
        self.replies_end = self.sent + data.waiting(u64::MAX);
    }

    /// Whether something has come that nobody has looked at, or the end of what is `open`.
    pub(super) fn has_early(&self, open: bool) -> bool {
        !self.early.is_empty() || self.received && open
    }

    /// Whether a frame of it could leave now.
    fn is_ready(&self, outward: i64) -> bool {
        !self.heads.is_empty() || self.room(outward) > 0 || self.ended && self.data.is_none()
    }

    /// Asks how much a limit lets leave now.
    fn look_at_limit(&mut self, now: u64) {
        self.allowed = match (&mut self.shaper, &self.data) {
            (Some(shaper), Some(data)) => shaper.grant(|most| data.waiting(most), now),
            _ => u64::MAX,
        };
    }

    /// Whether something of it waits.
    pub(super) fn has_more(&self) -> bool {
        !self.heads.is_empty() || self.data.is_some()
    }

    /// Whether nothing stands behind the heads.
    fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.data.is_none() && self.trailers.is_none()
    }

    /// How long its peer may take nothing of it, in milliseconds.
    pub(super) fn own_send_timeout(&self, site: &Site) -> u32 {
        if self.send_timeout > 0 { self.send_timeout } else { send_timeout_of_all(site) }
    }

    /// When to look at its peer; none while it does not wait for that. The connection has `outward` and takes nothing since `still`, if it does
    /// not. `limits` are those of all: where the whole connection stands still they end that, and a response has its own only if
    /// it asks for one.
    pub(super) fn reader_due(
        &mut self,
        outward: i64,
        still: Option<u64>,
        limits: (Minimum, u64),
        now: u64,
    ) -> Option<u64> {
        let own = (self.send_timeout > 0).then(|| own_nanos(self.send_timeout));
        let (minimum, timeout) = self.limits(limits);
        if self.is_stalled(outward) {
            let sent = self.sent;
            let patience = self.patience.get_or_insert_with(|| RateWatch::begin(minimum, now, sent));
            patience.note(now, sent);
            patience.touch(self.moved);
            return Some(patience.due(minimum, timeout));
        }
        self.patience = None;
        let is_held = self.heads.is_empty() && self.allowed == 0;
        let still = still.filter(|_| self.has_more() && !is_held)?;
        Some(self.moved.max(still).saturating_add(own?))
    }

    /// The least that its peer has to take, and how long it may take nothing: what it asks for, else those of all.
    fn limits(&self, all: (Minimum, u64)) -> (Minimum, u64) {
        match self.send_timeout {
            0 => all,
            own => limits_of_one(own_nanos(own), all),
        }
    }

    /// Its time has come: how its peer is late, or none if that has still time.
    pub(super) fn look_at_peer(&mut self, limits: (Minimum, u64), now: u64) -> Option<Late> {
        let (minimum, timeout) = self.limits(limits);
        match &mut self.patience {
            Some(patience) => patience.look(minimum, timeout, now, self.sent).err(),
            None => Some(Late::Silent),
        }
    }

    /// Whether it waits for the peer's credit, of its own or of the connection, which has `outward`.
    pub(super) fn is_stalled(&self, outward: i64) -> bool {
        self.heads.is_empty() && self.data.is_some() && self.outward.min(outward) <= 0
    }

    /// Bytes of the body that windows and limits let leave now.
    fn most(&self, outward: i64) -> u64 {
        u64::try_from(self.outward.min(outward)).unwrap_or(0).min(self.allowed)
    }

    /// Bytes of the body that can leave now.
    fn room(&self, outward: i64) -> u64 {
        self.data.as_ref().map_or(0, |data| data.waiting(self.most(outward)))
    }
}

/// What is written down of an answer of the engine's own.
pub(in crate::connection) struct OwnAnswer {
    pub(in crate::connection) peer: Peer,
    pub(in crate::connection) listener: u32,
    pub(in crate::connection) status: Status,
    pub(in crate::connection) body_bytes: u64,
    /// When it was made, in monotonic nanoseconds.
    pub(in crate::connection) begun: u64,
    pub(in crate::connection) refused: bool,
}

impl OwnAnswer {
    /// Its record, with the request of its stream.
    fn record(self, stream: Box<Stream>) -> Record {
        let Self { peer, listener, status, body_bytes, begun, refused } = self;
        Record {
            number: stream.request.number,
            peer,
            listener,
            pool: None,
            status,
            body_bytes,
            times: Times { begun, ..stream.times },
            end: End::Complete,
            refused,
            trace: None,
            route: None,
            request: Kept::Stream(stream),
        }
    }
}

/// Heads in their order: nearly always one.
pub(crate) type Heads = SmallVec<[ResponseHead; 1]>;

/// What is handed over at once.
pub(crate) struct Values {
    pub(crate) heads: Heads,
    pub(crate) content: Content,
    /// What stands behind the body, which ends with it.
    pub(crate) trailers: Option<Box<FieldSet>>,
    pub(crate) ended: bool,
}

impl Values {
    /// One interim response.
    pub(crate) fn interim(head: ResponseHead) -> Self {
        Self { heads: smallvec![head], content: Content::Static(b""), trailers: None, ended: false }
    }
}

/// Of so many frames one is that of the next stream in turn, however urgent it is: so none starves.
const TURN_OF_ALL: u8 = 16;

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
}

impl Connection {
    /// Takes what a handler sends, and makes frames of it as far as it may leave.
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn deliver_values(
        &mut self,
        group: &Group,
        key: Key,
        values: Values,
    ) -> Result<Flow, SendError> {
        if self.wire.is_dead() {
            self.wire.lose();
            return Err(SendError::Closed);
        }
        let Some(stream) = self.stream_of(key) else { return Err(SendError::Closed) };
        stream.awaited = None;
        stream.enqueue(values);
        self.fill(group, key.token)?;
        self.settle_framed(group, key.token, clock::monotonic());
        if let Some(writer) = self.writer_of(key) {
            writer.count(&group.site.spilling);
        }
        Ok(if self.is_full(group, key) { Flow::Full } else { Flow::Ready })
    }

    /// Makes frames as far as windows and the transport allow, and sends them.
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn fill(&mut self, group: &Group, token: Token) -> Result<(), SendError> {
        loop {
            self.frame(group);
            if self.end_stalled(group) {
                self.frame(group);
            }
            if self.wire.writer.is_none() {
                return Ok(());
            }
            self.send_kept(group, token)?;
            if self.wire.writer.is_some() {
                return Ok(());
            }
        }
    }

    /// Ends the streams that wait for a window of a peer that sends nothing any more: none will open. Whether there were any.
    fn end_stalled(&mut self, group: &Group) -> bool {
        let Some(framed) = self.protocol.framed().filter(|framed| framed.ended) else { return false };
        let outward = framed.outward;
        let is_stalled =
            |stream: &&Stream| stream.queue.as_ref().is_some_and(|queue| queue.is_stalled(outward));
        let stalled: Vec<u32> =
            framed.streams.values().filter(is_stalled).map(|stream| stream.number).collect();
        for number in &stalled {
            if let Some(framed) = self.protocol.framed() {
                framed.reset(*number, ErrorCode::Cancel);
            }
            self.cancel(group, *number, End::PeerGone);
        }
        !stalled.is_empty()
    }

    /// The same when a response has ended: an idle connection has its deadline, and one that nothing follows on ends.
    ///
    /// # Errors
    /// The peer is gone.
    pub(in crate::connection) fn fill_to_the_end(
        &mut self,
        group: &Group,
        token: Token,
    ) -> Result<(), SendError> {
        self.fill(group, token)?;
        self.settle_framed(group, token, clock::monotonic());
        if self.wire.last && self.wire.writer.is_none() && self.is_between_streams() {
            group.resume(token);
        }
        Ok(())
    }

    /// Makes frames until enough are ahead of the transport, or no stream has anything to send.
    fn frame(&mut self, group: &Group) {
        let now = clock::monotonic();
        if self.wire.writer.is_none() {
            self.wire.send_timeout = 0;
        }
        let (mut broken, reads) = (Vec::new(), !self.wire.transport.sends_files());
        let Some(framed) = self.protocol.framed() else { return };
        for stream in framed.streams.values_mut() {
            stream.enqueue_replies();
            if let Some(queue) = &mut stream.queue {
                queue.look_at_limit(now);
            }
        }
        if !framed.control.is_empty() {
            self.wire.writer.get_or_insert_with(connection::spare_writer).push_all(&mut framed.control);
        }
        while self.wire.writer.as_ref().is_none_or(|writer| writer.waiting(AHEAD) < AHEAD) {
            let Some(number) = framed.pick() else { break };
            framed.sent = number;
            let Framed { http2, streams, outward, wire, waits, unwanted, .. } = &mut *framed;
            let Some(queue) = streams.get_mut(number).and_then(|stream| stream.queue.as_mut()) else {
                break;
            };
            queue.moved = now;
            self.wire.send_timeout = self.wire.send_timeout.max(queue.own_send_timeout(&group.site));
            let writer = self.wire.writer.get_or_insert_with(connection::spare_writer);
            let mut ends = false;
            for head in std::mem::take(&mut queue.heads) {
                // The last one; an interim one never is.
                ends = queue.ended && queue.is_empty() && !queue.cut && head.status.code() >= 200;
                http2.put_head(number, &head, ends, wire);
                connection::recycle_head(head);
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
                    http2.put_data(number, length as usize, ends, wire);
                    writer.push_all(wire);
                    data.move_to(writer, length);
                    // A frame is shorter than 16 MiB.
                    queue.outward -= length as i64;
                    queue.sent += length;
                    *outward -= length as i64;
                    if let Some(shaper) = &mut queue.shaper {
                        shaper.use_up(length);
                    }
                    if all && let Some(data) = queue.data.take() {
                        connection::recycle_writer(data);
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
                    http2.put_reset(number, ErrorCode::InternalError, wire);
                } else if let Some(trailers) = queue.trailers.take() {
                    http2.put_trailers(number, &trailers, wire);
                } else {
                    http2.put_data(number, 0, true, wire);
                }
                ends = true;
            }
            if ends && !queue.received && !queue.cut && !queue.both_ways {
                unwanted.begin(number, http2, wire);
            }
            writer.push_all(wire);
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
            self.wire.note_broken(group, &error);
        }
    }

    /// Whether a handler of this stream has to wait.
    pub(crate) fn is_full(&self, group: &Group, key: Key) -> bool {
        match self.queue_of(key) {
            Some(queue) => queue.held() > group.site.spilling.memory(),
            None => self.is_writer_full(group),
        }
    }

    /// The last of a handler's response; `whole` says whether all of it is there, `label` what the application calls it.
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn end_values(
        &mut self,
        group: &Group,
        key: Key,
        values: Values,
        whole: bool,
        at_once: bool,
        (record, label): (&mut Option<Record>, Option<&Arc<str>>),
    ) -> Result<(), SendError> {
        self.wire.served = self.wire.served.saturating_add(1);
        let Some(stream) = self.stream_of(key) else { return Err(SendError::Closed) };
        stream.stop();
        stream.answered = true;
        stream.enqueue(values);
        if let Some(queue) = &mut stream.queue {
            queue.cut = !whole;
            queue.record = record.take();
        }
        self.note_sender(key, label);
        if self.wire.is_dead() {
            self.wire.lose();
            self.drop_stream(group, key.stream, self.wire.ended_as);
            group.resume(key.token);
            return Err(SendError::Closed);
        }
        if at_once {
            self.fill_to_the_end(group, key.token)?;
        }
        if let Some(writer) = self.writer_of(key) {
            writer.count(&group.site.spilling);
            self.relieve_later(group, key.token);
        }
        Ok(())
    }

    /// Takes a stream out that will not be sent to its end.
    fn drop_stream(&mut self, group: &Group, number: u32, end: End) {
        let stream = self.protocol.framed().and_then(|framed| framed.streams.remove(number));
        let Some(mut stream) = stream else { return };
        let own = stream.queue.as_mut().and_then(|queue| queue.own.take());
        stream.lose_queue(group, end);
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
    pub(in crate::connection) fn drop_answered(&mut self, group: &Group) {
        let end = self.wire.ended_as;
        let Some(framed) = self.protocol.framed() else { return };
        framed.count(&group.site);
        let over: Vec<u32> =
            framed.streams.values().filter(|stream| !stream.running).map(|stream| stream.number).collect();
        framed
            .streams
            .values_mut()
            .filter(|stream| stream.running)
            .for_each(|stream| stream.lose_queue(group, end));
        for number in over {
            self.drop_stream(group, number, end);
        }
    }

    /// Nothing more of a stream is sent, because of what `end` says, and its handler is told. It is there until the handler is done.
    pub(in crate::connection) fn cancel(&mut self, group: &Group, number: u32, end: End) {
        let Some(framed) = self.protocol.framed() else { return };
        let Some(stream) = framed.streams.get_mut(number) else { return };
        if !stream.running {
            self.drop_stream(group, number, end);
            return;
        }
        stream.dead = true;
        stream.ended_as = Some(end);
        stream.flags().set_gone();
        stream.tell();
        stream.lose_queue(group, end);
    }

    /// The handler of a stream that is dead has let go of it. Returns how its response ended, if it was cancelled.
    pub(crate) fn forget(&mut self, group: &Group, key: Key) -> Option<End> {
        let framed = self.protocol.framed()?;
        let stream = framed.streams.get_mut(key.stream).filter(|stream| stream.dead)?;
        stream.stop();
        let end = stream.ended_as;
        // One that was answered in its handler's place is there until that has left.
        if stream.queue.is_none()
            && let Some(stream) = framed.streams.remove(key.stream)
        {
            Stream::give_back(stream);
        }
        if self.wire.is_dead() || self.is_between_streams() {
            group.resume(key.token);
        }
        end
    }

    /// Sends what the turn has left, and goes on.
    pub(super) fn flush_framed(&mut self, context: &mut Context<'_>) -> Turn {
        match self.fill(context.group, context.token) {
            Ok(()) => Turn::Wait,
            Err(_) => self.peer_gone(context),
        }
    }

    /// Where the bytes of an exchange wait.
    pub(in crate::connection) fn writer_of(&mut self, key: Key) -> Option<&mut Writer> {
        match &mut self.protocol {
            Protocol::H1(_) => self.wire.writer.as_deref_mut(),
            Protocol::Framed(framed) => {
                framed.streams.get_mut(key.stream)?.queue.as_mut()?.data.as_deref_mut()
            }
        }
    }

    /// Ends a stream for an operator, or because the server stops; the others go on.
    pub(in crate::connection) fn reset_stream(&mut self, group: &Group, key: Key, end: End) {
        if let Some(framed) = self.protocol.framed() {
            framed.reset(key.stream, ErrorCode::Cancel);
            self.cancel(group, key.stream, end);
            group.resume(key.token);
        }
    }

    fn queue_of(&self, key: Key) -> Option<&Queue> {
        match &self.protocol {
            Protocol::H1(_) => None,
            Protocol::Framed(framed) => framed.streams.get(key.stream)?.queue.as_deref(),
        }
    }
}

impl Stream {
    /// Nobody takes what waits; what has been answered is written down as that.
    fn lose_queue(&mut self, group: &Group, end: End) {
        if let Some(mut record) = self.queue.take().and_then(|queue| queue.record) {
            record.end = end;
            group.site.note(record, clock::monotonic());
        }
    }

    /// The engine's own answer is all that is sent; what its handler has sent so far is not.
    pub(in crate::connection) fn answer_in_its_place(&mut self, heads: Heads, body: Body, record: Record) {
        if let Some(queue) = &mut self.queue {
            queue.record = Some(record);
        }
        self.answer_all(heads, body);
    }

    /// The engine answers; no handler has had the request.
    pub(in crate::connection) fn answer_itself(&mut self, heads: Heads, body: Body, own: OwnAnswer) {
        if let Some(queue) = &mut self.queue {
            queue.own = Some(own);
        }
        self.answer_all(heads, body);
    }

    fn answer_all(&mut self, heads: Heads, body: Body) {
        self.answered = true;
        if let Some(queue) = &mut self.queue {
            queue.heads.clear();
            (queue.data, queue.trailers) = (None, None);
        }
        let mut enqueue = |heads, content| {
            self.enqueue(Values { heads, content, trailers: None, ended: true });
        };
        match body {
            Body::Empty => enqueue(heads, Content::Static(b"")),
            Body::One(content) => enqueue(heads, content),
            Body::Many(contents) => {
                enqueue(heads, Content::Static(b""));
                contents.into_iter().for_each(|content| enqueue(Heads::new(), content));
            }
        }
    }

    /// Takes what its handler, or the engine, sends.
    pub(in crate::connection) fn enqueue(&mut self, values: Values) {
        let Some(queue) = &mut self.queue else { return };
        if queue.send_timeout > 0 && !queue.has_more() {
            queue.moved = clock::monotonic();
        }
        if queue.heads.is_empty() {
            queue.heads = values.heads;
        } else {
            queue.heads.extend(values.heads);
        }
        if !values.content.is_empty() {
            queue.data.get_or_insert_with(connection::spare_writer).push(values.content, 0);
        }
        if values.trailers.is_some() {
            queue.trailers = values.trailers;
        }
        queue.ended |= values.ended;
    }
}
