//! The framing state of one stream: what waits to be sent, and the windows of both directions.
//!
//! A handler hands over values: heads, data, the end. They wait here until the connection makes frames of them,
//! a little ahead of the transport: so every stream gets its turn, and a stream whose peer gives no credit holds up no other.

use std::cell::RefCell;

use maitred_files::Body;
use maitred_h2::Priority;
use maitred_http::{FieldSet, Peer, ResponseHead, Status};
use maitred_io::clock;
use maitred_limits::Shaper;
use maitred_limits::minimum::{Late, Minimum, RateWatch};
use maitred_log::End;
use maitred_runtime::Content;
use maitred_spool::Share;
use maitred_stats::Times;
use smallvec::{SmallVec, smallvec};

use crate::memory::MAX_SPARE;
use crate::record::{Kept, Record};
use crate::response::Response;
use crate::site::Site;
use crate::stream::Stream;
use crate::stream::data_rate::{limits_of_one, own_nanos, send_timeout_of_all};
use crate::writer::{Writer, spare_writer};

/// What waits to be sent of one exchange.
#[derive(Default)]
pub struct Queue {
    /// Interim ones, then the final one.
    pub heads: Heads,
    /// The bytes of the body.
    pub data: Option<Box<Writer>>,
    /// What holds it back, where there is a limit.
    pub shaper: Option<Box<Shaper>>,
    /// Bytes that the limit lets leave now; [`Queue::take`] begins with no limit.
    pub allowed: u64,
    /// How long the peer may take nothing of it, in milliseconds; 0: as of all.
    pub send_timeout: u32,
    /// Nothing more comes.
    pub ended: bool,
    /// Of a WebSocket: its peer ends the other direction itself, behind its part of the closing handshake.
    pub both_ways: bool,
    /// It ends as a reset: the response is not whole.
    pub cut: bool,
    /// What stands behind the body.
    pub trailers: Option<Box<FieldSet>>,
    /// Bytes of the body that the peer takes now; fewer than none if it has made its windows smaller.
    pub outward: i64,
    /// The urgency that the peer asks for.
    pub priority: Priority,
    /// Bytes of the request's body that have come and that nobody has taken.
    pub untaken: u64,
    /// Memory that a wider window may fill.
    pub wide: Vec<Share>,
    /// Bytes of the body that came before the filters or the application let them in.
    pub early: Vec<u8>,
    /// Where in the body answers of the engine to frames of a WebSocket end.
    pub replies_end: u64,
    /// Bytes of the body in frames so far.
    pub sent: u64,
    /// The peer's time to open its window; none while the queue does not wait for it.
    pub patience: Option<RateWatch>,
    /// When a frame of it was made last, or the first value came, in monotonic nanoseconds.
    pub moved: u64,
    /// The peer has sent all of its request.
    pub received: bool,
    /// It waits for a window, and that is counted.
    pub waits: bool,
    /// Written down when its last byte has left.
    pub record: Option<Record>,
    /// The same of an answer of the engine's, of which the stream has the request still.
    pub own: Option<OwnAnswer>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of streams by its pointer")]
    static SPARE: RefCell<Vec<Box<Queue>>> = const { RefCell::new(Vec::new()) };
}

impl Queue {
    /// An empty one, with used memory if this thread has some.
    pub fn take(window: u32) -> Box<Self> {
        let mut queue = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        (queue.outward, queue.allowed) = (window.into(), u64::MAX);
        queue
    }

    /// Keeps its memory for the next one.
    pub fn give_back(mut queue: Box<Self>) {
        *queue = Self::default();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(queue);
            }
        });
    }

    /// Bytes in memory.
    pub fn held(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.held()) + self.early.len() as u64
    }

    /// Whether answers of the engine wait to be sent, and so much that no more are added.
    pub fn is_clogged(&self) -> bool {
        /// As many as come at once of a peer that reads.
        const MOST: u64 = 4 * 1024;
        self.sent < self.replies_end && self.data.as_ref().is_some_and(|data| data.waiting(MOST) == MOST)
    }

    /// Appends answers of the engine.
    pub fn push_replies(&mut self, replies: &mut Vec<u8>) {
        let data = self.data.get_or_insert_with(spare_writer);
        data.push_all(replies);
        self.replies_end = self.sent + data.waiting(u64::MAX);
    }

    /// Whether something has come that nobody has looked at, or the end of what is `open`.
    pub fn has_early(&self, open: bool) -> bool {
        !self.early.is_empty() || self.received && open
    }

    /// Whether a frame of it could leave now.
    pub fn is_ready(&self, outward: i64) -> bool {
        !self.heads.is_empty() || self.room(outward) > 0 || self.ended && self.data.is_none()
    }

    /// Asks how much a limit lets leave now.
    pub fn look_at_limit(&mut self, now: u64) {
        self.allowed = match (&mut self.shaper, &self.data) {
            (Some(shaper), Some(data)) => shaper.grant(|most| data.waiting(most), now),
            _ => u64::MAX,
        };
    }

    /// Whether something of it waits.
    pub fn has_more(&self) -> bool {
        !self.heads.is_empty() || self.data.is_some()
    }

    /// Whether nothing stands behind the heads.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.data.is_none() && self.trailers.is_none()
    }

    /// How long its peer may take nothing of it, in milliseconds.
    pub fn own_send_timeout(&self, site: &Site) -> u32 {
        if self.send_timeout > 0 { self.send_timeout } else { send_timeout_of_all(site) }
    }

    /// When to look at its peer; none while it does not wait for that. The connection has `outward` and takes nothing since `still`, if it does
    /// not. `limits` are those of all: where the whole connection stands still they end that, and a response has its own only if
    /// it asks for one.
    pub fn reader_due(
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
        let still = still.filter(|_| self.is_sendable())?;
        Some(self.moved.max(still).saturating_add(own?))
    }

    /// Whether something waits that the rate of the response allows to send.
    pub fn is_sendable(&self) -> bool {
        self.has_more() && (!self.heads.is_empty() || self.allowed > 0)
    }

    /// The least that its peer has to take, and how long it may take nothing: what it asks for, else those of all.
    fn limits(&self, all: (Minimum, u64)) -> (Minimum, u64) {
        match self.send_timeout {
            0 => all,
            own => limits_of_one(own_nanos(own), all),
        }
    }

    /// Its time has come: how its peer is late, or none if that has still time.
    pub fn look_at_peer(&mut self, limits: (Minimum, u64), now: u64) -> Option<Late> {
        let (minimum, timeout) = self.limits(limits);
        match &mut self.patience {
            Some(patience) => patience.look(minimum, timeout, now, self.sent).err(),
            None => Some(Late::Silent),
        }
    }

    /// Whether it waits for the peer's credit, of its own or of the connection, which has `outward`.
    pub fn is_stalled(&self, outward: i64) -> bool {
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
pub struct OwnAnswer {
    peer: Peer,
    listener: u32,
    status: Status,
    body_bytes: u64,
    begun: u64,
    refused: bool,
}

impl OwnAnswer {
    /// The facts of this response to a client whose connection has come by this listener; made at `begun`.
    pub fn of(response: &Response, is_head: bool, (peer, listener): (Peer, u32), begun: u64) -> Self {
        let (status, body_bytes) = (response.head.status, response.body_bytes(is_head));
        Self { peer, listener, status, body_bytes, begun, refused: response.refused }
    }

    /// Its record, with the request of its stream.
    pub fn record(self, stream: Box<Stream>) -> Record {
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
            request: Kept::Request(stream.into_request()),
        }
    }
}

/// Heads in their order: nearly always one.
pub type Heads = SmallVec<[ResponseHead; 1]>;

/// What is handed over at once.
pub struct Values {
    /// The heads.
    pub heads: Heads,
    /// A part of the body.
    pub content: Content,
    /// What stands behind the body, which ends with it.
    pub trailers: Option<Box<FieldSet>>,
    /// Nothing follows.
    pub ended: bool,
}

impl Values {
    /// One interim response.
    pub fn interim(head: ResponseHead) -> Self {
        Self { heads: smallvec![head], content: Content::Static(b""), trailers: None, ended: false }
    }
}

impl Stream {
    /// Nobody takes what waits; what has been answered is written down as that.
    pub fn lose_queue(&mut self, site: &Site, end: End) {
        if let Some(mut record) = self.queue.take().and_then(|queue| queue.record) {
            record.end = end;
            site.note(record, clock::monotonic());
        }
    }

    /// The engine's own answer is all that is sent; what its handler has sent so far is not.
    pub fn answer_in_its_place(&mut self, heads: Heads, body: Body, record: Record) {
        if let Some(queue) = &mut self.queue {
            queue.record = Some(record);
        }
        self.answer_all(heads, body);
    }

    /// The engine answers; no handler has had the request.
    pub fn answer_itself(&mut self, heads: Heads, body: Body, own: OwnAnswer) {
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
    pub fn enqueue(&mut self, values: Values) {
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
            queue.data.get_or_insert_with(spare_writer).push(values.content, 0);
        }
        if values.trailers.is_some() {
            queue.trailers = values.trailers;
        }
        queue.ended |= values.ended;
    }
}
