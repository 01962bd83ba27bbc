//! One connection: the only loop that joins socket and protocol.
//!
//! ```text
//!            a request is complete                 the handler has answered
//! Receiving -----------------------> Running ---------------------------> Receiving
//!     |  ^                                                                 |   |
//!     |  `--------------- everything has left ----- Sending <--------------'   |
//!     |  answered by the engine, the reader is slow --^ |                      |
//!     `--refused---------------------> Lingering <------'-- last response -----'
//! ```
//! A turn never waits and never runs application code: it comes back with the request to run.
//!
//! Section below: memory of a thread.

mod accept;
pub(crate) mod answer;
mod backpressure;
pub(crate) mod body;
pub(crate) mod client;
mod data_rate;
mod deliver;
mod drain;
mod filter;
pub(crate) mod framed;
mod handshake;
mod held;
mod linger;
mod own_response;
mod protocol;
mod proxy_header;
mod receive;
pub(crate) mod redirect;
mod request_timeout;
mod responder;
mod secured;
mod shaped;
pub(crate) mod snapshot;
mod spilling;
#[cfg(test)]
mod spool_tests;
pub(crate) mod stream;
mod streaming_body;
mod turns;
pub(crate) mod websocket;
mod wire;
pub(crate) mod writer;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use maitred_http::{Peer, RequestHead, ResponseHead, Status, date};
use maitred_io::clock;
use maitred_io::poller::Interest;
use maitred_io::sync::atomic::Ordering;
use maitred_io::transport::Moved;
use maitred_io::transport::Transport;
use maitred_log::End;
use maitred_runtime::Request;
use maitred_turns::{Signals, TurnClock, TurnContext};

use crate::group::Resident;
use crate::group::slots::Token;
use crate::listener::Listening;
use crate::site::Site;
use client::Ends;
use held::{Shares, first_request_time, idle_time};
use spilling::has_made_room;
use stream::{Record, Stream};
use wire::{Phase, Reach, Wire};
use writer::{Sent, Writer};

pub(crate) use crate::group::Turn;
pub(crate) use crate::group::slots::{Flags, Key};
pub(crate) use framed::Values;
pub(crate) use protocol::Protocol;

/// Most time slices of lingering for one connection: half a minute in all, as nginx does (`lingering_time`). A client
/// that sends a whole upload before it reads completes the upload also on a slow link.
const MAX_LINGERS: u8 = 15;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// A connection that has a peer.
pub(crate) struct Connection {
    wire: Wire,
    protocol: Protocol,
    /// The exchange under way; none between requests.
    stream: Option<Box<Stream>>,
    /// Shares of the process-wide memory budgets; none while the connection holds nothing that counts.
    shares: Option<Box<Shares>>,
    /// The drain does not wait for this connection.
    abandoned: bool,
}

/// A group of connections.
pub(crate) type Group = crate::group::Group<Connection>;

/// Context of a connection's turn.
pub(crate) type Context<'a> = crate::group::Context<'a, Connection>;

impl Group {
    /// Calls `act` with the connection of `key` if the connection exists and a handler still has that exchange.
    pub(crate) fn with_stream<T>(&self, key: Key, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.with_connection(key.token, |connection| {
            connection.stream_of(key)?;
            Some(act(connection))
        })?
    }
}

impl Resident for Connection {
    type Scratch = Scratch;

    fn turn(&mut self, context: &mut Context<'_>, signals: Signals) -> Turn {
        self.take_turn(context, signals)
    }

    fn account(&mut self, group: &Group, token: Token) {
        self.tell_budgets(group, token);
    }

    fn leave(&mut self, group: &Group) {
        if std::mem::take(&mut self.abandoned) {
            group.groups.count_abandoned_closed();
        }
        self.wire.lose_writer(group);
        self.drop_answered(group);
        self.give_back_budgets(group);
    }

    fn cut(&mut self) {
        if !self.wire.is_dead() {
            self.wire.ended_as = End::Drain;
            self.each_stream().for_each(|stream| stream.flags().ask_to_end());
        }
        self.tell_gone();
    }

    fn send_last(&mut self, group: &Group, token: Token, now: u64) {
        self.send_what_waits(group, token, now);
    }

    fn end_turn(group: &Group, scratch: &mut Scratch, now: u64) {
        // Records of a turn that ended without sending.
        group.site.note_all(&mut scratch.records, now, Some(End::Cut));
    }

    fn clear(scratch: &mut Scratch) {
        scratch.out.clear();
    }

    fn accept(group: &Arc<Group>, listening: &Listening, token: Token) {
        listening.accept(group, token);
    }

    fn take_deferred(group: &Arc<Group>) -> bool {
        turns::look(group, None)
    }

    fn close_listener(group: &Arc<Group>, listening: &Listening, token: Token) {
        listening.close(group, token);
    }
}

impl Connection {
    /// Takes a connection into the group.
    ///
    /// # Errors
    /// The poller cannot watch the transport. The transport is closed then.
    pub(crate) fn open(
        group: &Arc<Group>,
        transport: Transport,
        protocol: Protocol,
        (peer, ends): (Peer, Option<Box<Ends>>),
        listener: u32,
        counted: bool,
    ) -> io::Result<Token> {
        let Some((index, slot)) = group.slots.take() else {
            return Err(io::Error::other("the limit of connections is reached"));
        };
        let token = Token { slot: index, generation: slot.generation() };
        let awaits_header = ends.as_ref().is_some_and(|ends| ends.awaits_header);
        let awaits_handshake = ends.as_ref().is_some_and(|ends| ends.awaits_handshake);
        let timeouts = &group.site.timeouts;
        let time = match (awaits_header, awaits_handshake) {
            (true, _) => proxy_header::TIME,
            (false, true) => nanos(timeouts.handshake),
            (false, false) => nanos(timeouts.head),
        };
        let deadline = clock::monotonic() + time;
        // The lock is held until all fields are set: events may come as soon as the socket is watched.
        let mut place = slot.lock();
        let direct = group.groups.listeners.get(listener as usize).is_some_and(|own| !own.has_writer());
        let has_receipts = group.site.measures.receipt.load(Ordering::Relaxed);
        let connection = place.insert(Self {
            wire: Wire::new(transport, (peer, ends), listener, deadline, (has_receipts, direct, counted)),
            protocol,
            stream: None,
            shares: None,
            abandoned: false,
        });
        if let Err(error) =
            connection.wire.transport.watch(&group.scheduler.poller, token.to_u64(), Interest::ReadWrite)
        {
            *place = None;
            drop(place);
            group.slots.retire(slot);
            group.slots.give_back(index);
            return Err(error);
        }
        group.count_opened();
        group.site.counters.connections.add(1);
        group.set_deadline(index, deadline);
        Ok(token)
    }

    /// Handles `signals`, then goes on with the present phase.
    fn take_turn(&mut self, context: &mut Context<'_>, signals: Signals) -> Turn {
        self.wire.writer.iter_mut().for_each(|writer| writer.note_turn());
        if signals.any(Signals::READ_CLOSED) && !self.wire.read_closed {
            self.wire.read_closed = true;
            self.tell();
        }
        if signals.any(Signals::READ) {
            self.wire.unread = true;
        }
        if signals.any(Signals::CLOSED) {
            self.receive_last_of_websocket(context);
            return self.peer_gone(context);
        }
        if signals.any(Signals::TIMER) {
            self.wire.armed = NEVER;
            if let Some(turn) = self.check_deadline(context, signals == Signals::TIMER) {
                return turn;
            }
        }
        // A handshake has begun, so a request is on its way.
        let shakes_hands = self.wire.awaits_handshake() && self.wire.transport.has_session();
        if signals.any(Signals::DRAIN) && self.is_idle() && !shakes_hands {
            let is_new = self.wire.served == 0 && !self.protocol.is_framed();
            let time = if is_new { first_request_time(context.group) } else { idle_time(context.group) };
            self.set_deadline(context, self.wire.deadline.min(context.now + time));
        }
        if signals.any(Signals::DRAIN) && self.protocol.is_framed() && self.wire.phase == Phase::Receiving {
            match self.begin_drain(context) {
                Turn::Wait => {}
                other => return other,
            }
        }
        if context.group.is_draining() {
            if self.is_running() && (self.wire.is_dead() || self.is_deserted()) {
                self.abandon(context.group);
            } else if let Some(turn) = self.end_events(context, signals) {
                return turn;
            }
        }
        if self.wire.is_dead() {
            return if self.is_running() { Turn::Wait } else { Turn::Close };
        }
        if self.has_to_give_up_heads()
            && let Some(turn) = self.give_up_heads(context)
        {
            return turn;
        }
        if self.wire.writer.is_some() {
            match self.flush(context) {
                Turn::Wait => {}
                other => return other,
            }
        }
        self.proceed(context)
    }

    fn proceed(&mut self, context: &mut Context<'_>) -> Turn {
        match self.wire.phase {
            Phase::Running if self.has_socket() => self.receive_websocket(context),
            Phase::Running => {
                if self.tell_reader() {
                    self.each_stream().for_each(|stream| stream.put_off());
                } else {
                    self.wire.note_wake_while_running(context);
                }
                Turn::Wait
            }
            Phase::Sending if self.wire.writer.is_some() => Turn::Wait,
            Phase::Sending if self.wire.last => self.wire.end_gently(context, self.protocol.is_between_requests()),
            Phase::Sending => {
                self.wire.phase = Phase::Receiving;
                self.receive(context)
            }
            Phase::Receiving if self.protocol.is_framed() => self.receive_framed(context),
            Phase::Receiving => self.receive(context),
            Phase::Lingering => self.wire.linger(context),
        }
    }

    /// Whether no part of a request has arrived and nothing waits to be sent.
    fn is_idle(&self) -> bool {
        let between = match &self.protocol {
            Protocol::H1(_) => self.stream.is_none(),
            Protocol::Framed(framed) => framed.is_between() && self.wire.writer.is_none(),
        };
        self.wire.phase == Phase::Receiving && between && self.wire.input.is_empty()
    }

    /// Whether a handler has one of the exchanges.
    fn is_running(&self) -> bool {
        self.streams().any(|stream| stream.running)
    }

    /// Handles the loss of both directions or a failed send.
    fn peer_gone(&mut self, context: &mut Context<'_>) -> Turn {
        self.wire.reach = self.wire.reach.max(Reach::Dead);
        self.wire.lose_writer(context.group);
        context.group.site.note_all(&mut context.scratch.records, context.now, Some(self.wire.ended_as));
        self.drop_answered(context.group);
        if !self.is_running() {
            return Turn::Close;
        }
        self.tell_gone();
        if context.group.is_draining() {
            self.abandon(context.group);
        }
        if self.awaits_response() {
            // The signal of the timer may have come together with this one.
            self.arm(context.group, context.token);
        }
        Turn::Wait
    }

    /// Tells the handlers that the state of the connection has changed.
    pub(crate) fn tell(&mut self) {
        self.each_stream().for_each(|stream| stream.tell());
    }

    /// Tells the handlers that sending is impossible from now on.
    pub(crate) fn tell_gone(&mut self) {
        for stream in self.each_stream() {
            stream.flags().set_gone();
            stream.tell();
        }
    }

    /// Whether the peer has ended its sending side, or is gone.
    pub(crate) fn has_peer_ended(&self) -> bool {
        // A handler that reads a body itself may see the end before the event arrives.
        self.wire.read_closed || self.wire.is_dead() || self.streams().any(Stream::has_read_end)
    }

    fn set_deadline(&mut self, context: &Context<'_>, deadline: u64) {
        self.wire.deadline = deadline;
        self.arm(context.group, context.token);
    }

    /// Earliest deadline of the exchanges.
    fn request_due(&self) -> u64 {
        self.streams().map(|stream| stream.response_due().min(stream.due)).min().unwrap_or(NEVER)
    }

    /// Earliest deadline of the WebSockets.
    fn sockets_due(&self, site: &Site) -> u64 {
        self.streams().map(|stream| stream.socket_due(site)).min().unwrap_or(NEVER)
    }

    /// Sets the timer to the earliest deadline of the connection and its exchanges.
    fn arm(&mut self, group: &Group, token: Token) {
        let other = self.request_due().min(self.resumes_at()).min(self.sockets_due(&group.site));
        self.wire.arm(group, token, other);
    }

    /// Handles the deadlines that have passed; none if the turn goes on. `alone` says that the timer is the only
    /// signal.
    fn check_deadline(&mut self, context: &mut Context<'_>, alone: bool) -> Option<Turn> {
        self.check_websockets(context);
        if let Some(turn) = self.check_request(context) {
            return Some(turn);
        }
        if self.protocol.is_framed() && self.wire.phase == Phase::Receiving {
            return self.check_streams(context, alone);
        }
        if context.now < self.wire.deadline {
            // The rate limit lets more of the response leave; `flush` sends it.
            if self.resumes_at() <= context.now {
                return None;
            }
            // The deadline was put off since the timer was set.
            self.arm(context.group, context.token);
            return alone.then_some(Turn::Wait);
        }
        if self.wire.awaits_proxy_header() {
            let log = &context.group.site.log;
            log.warn(format_args!("{}: closed; no header of the PROXY protocol has come in time", self.wire.peer));
            return Some(Turn::Close);
        }
        if self.wire.awaits_handshake() {
            return Some(self.wire.time_out_handshake(context));
        }
        match self.wire.phase {
            Phase::Lingering if self.wire.lingering && self.wire.lingers < MAX_LINGERS => {
                self.wire.grant_linger(context);
                None
            }
            Phase::Lingering => Some(Turn::Close),
            Phase::Running if self.wire.writer.is_none() => {
                self.end_late_body(context);
                None
            }
            Phase::Running | Phase::Sending => self.check_reader(context),
            Phase::Receiving if self.is_idle() => {
                // A request may have arrived at this moment and is served.
                self.wire.unread = true;
                let served = self.wire.served;
                let turn = self.receive(context);
                let nothing_came = matches!(turn, Turn::Wait) && self.is_idle() && self.wire.served == served;
                Some(if nothing_came { Turn::Close } else { turn })
            }
            Phase::Receiving => self.check_body(context).map(|late| self.time_out_request(context, late)),
        }
    }

    /// Sends the bytes of this turn, then the writer's. Returns `Wait` when everything has left or the socket takes
    /// no more.
    fn flush(&mut self, context: &mut Context<'_>) -> Turn {
        let site = &context.group.site;
        if !context.scratch.records.is_empty() {
            let done = site.later(context.now);
            for record in &mut context.scratch.records {
                record.times.done = done;
            }
        }
        let out = &mut context.scratch.out;
        if !out.is_empty() {
            match &mut self.wire.writer {
                None if self.wire.shaper.is_some() => {
                    self.wire.writer.insert(spare_writer()).push(std::mem::take(out).into(), 0);
                }
                None => match self.wire.transport.send(out, false) {
                    Moved::Bytes(count) if count == out.len() => out.clear(),
                    Moved::Bytes(count) => {
                        self.wire.writer.insert(spare_writer()).push(out.split_off(count).into(), 0);
                        out.clear();
                    }
                    Moved::Blocked => {
                        self.wire.writer.insert(spare_writer()).push(std::mem::take(out).into(), 0);
                    }
                    Moved::End | Moved::Failed(_) => {
                        out.clear();
                        return self.peer_gone(context);
                    }
                },
                Some(writer) => writer.push(std::mem::take(out).into(), 0),
            }
        }
        let Some(writer) = &mut self.wire.writer else {
            if !context.scratch.records.is_empty() {
                site.note_all(&mut context.scratch.records, site.later(context.now), None);
            }
            return Turn::Wait;
        };
        writer.records.append(&mut context.scratch.records);
        let before = writer.marks();
        let sent = self.wire.send_writer(context.group);
        let now = self.wire.writer.as_ref().map_or(before, |writer| writer.marks());
        let room = has_made_room(site, before, now) || self.wire.direct && matches!(sent, Sent::All);
        match sent {
            Sent::All => {
                self.wire.drop_writer(context.group);
                self.go_on_with_body(context.group, context.token);
            }
            Sent::Held => self.hold(context.group, context.token),
            Sent::Blocked | Sent::Budget => {
                self.await_reader(context.group, context.token, Some(context.now));
            }
            Sent::Broken(error) => {
                self.wire.note_broken(context.group, &error);
                return self.peer_gone(context);
            }
        }
        if matches!(sent, Sent::Blocked | Sent::Budget) {
            self.note_waiting(context.group, context.token);
        }
        if room {
            self.tell();
        }
        if matches!(sent, Sent::Budget) { Turn::Later } else { Turn::Wait }
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

// ---- Memory of a thread ----
//
// Each thread reuses these buffers from turn to turn, so that an idle connection holds none.

/// Bytes received by one call: the largest part of a socket buffer worth copying at once; a request
/// head needs one page of it.
const RECEIVE: usize = 64 * 1024;

/// Requests kept for use again by one thread; more are in flight only while uploads are slow.
pub(crate) const MAX_SPARE: usize = 64;

/// Room for the head of a usual response and a small body.
const RESPONSE: usize = 512;

/// A kept request holds at most this much of a body; the memory of a larger one is given back.
const MAX_KEPT: usize = 64 * 1024;

/// Most bytes of head fields that a kept request holds; usual heads need less than half.
const MAX_KEPT_HEAD: usize = 4 * 1024;

/// Most bytes of a kept response buffer: a head and a body that is copied.
const MAX_KEPT_BUFFER: usize = 20 * 1024;

/// Buffers kept by one thread: a few more than the responses that wait for the end of a turn of an event loop.
const MAX_SPARE_BUFFERS: usize = 32;

/// The buffers of a thread that serves.
#[derive(Default)]
pub(crate) struct Scratch {
    receive: Vec<u8>,
    /// Response bytes of the present turn.
    pub(crate) out: Vec<u8>,
    /// Records of the exchanges whose responses end in `out`.
    pub(crate) records: Vec<Record>,
    /// A normalised path.
    pub(crate) path: Vec<u8>,
    date: Date,
    clock: TurnClock,
    /// Lead of the real clock over the monotonic one, and the time of that measurement; both in nanoseconds.
    ahead: (u64, u64),
}

/// How long a measured lead is used, in nanoseconds. A clock under correction drifts less in that time (adjtimex(2):
/// at most 0.5 ms a second) than the precision of a span.
const AHEAD_IS_GOOD: u64 = 20_000_000;

impl Scratch {
    /// Converts a time of the real clock to the monotonic clock; at most `now`. Both in nanoseconds.
    pub(crate) fn monotonic_of(&mut self, real: u64, now: u64) -> u64 {
        let (mut ahead, looked) = self.ahead;
        if now.saturating_sub(looked) > AHEAD_IS_GOOD {
            ahead = clock::real_ahead();
            self.ahead = (ahead, now);
        }
        real.saturating_sub(ahead).min(now)
    }

    /// The receive buffer; give it back with [`return_receive`](Self::return_receive).
    pub(crate) fn take_receive(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.receive);
        if buffer.is_empty() {
            buffer.resize(RECEIVE, 0);
        }
        buffer
    }

    pub(crate) fn return_receive(&mut self, buffer: Vec<u8>) {
        self.receive = buffer;
    }

    /// The `Date` of a response made now.
    pub(crate) fn date(&mut self) -> &[u8; 29] {
        self.date.now()
    }

    /// Seconds since 1970 of the last [`date`](Self::date).
    pub(crate) fn unix_seconds(&self) -> u64 {
        self.date.second
    }
}

impl TurnContext for Scratch {
    fn clock(&self) -> &TurnClock {
        &self.clock
    }

    fn clock_mut(&mut self) -> &mut TurnClock {
        &mut self.clock
    }
}

/// The present date, formatted once a second.
pub(crate) struct Date {
    second: u64,
    text: [u8; 29],
}

impl Default for Date {
    fn default() -> Self {
        Self { second: 0, text: date::format(0) }
    }
}

impl Date {
    pub(crate) fn now(&mut self) -> &[u8; 29] {
        let second = clock::unix_seconds();
        if second != self.second {
            self.second = second;
            self.text = date::format(second);
        }
        &self.text
    }
}

thread_local! {
    static ANSWERED: RefCell<Answered> = RefCell::default();
    static DATE: RefCell<Date> = RefCell::new(Date::default());
}

/// Memory of answered requests, kept for reuse.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they move in and out of exchanges and connections by their pointers")]
struct Answered {
    requests: Vec<Box<Request>>,
    buffers: Vec<Vec<u8>>,
    writers: Vec<Box<Writer>>,
    heads: Vec<ResponseHead>,
}

/// Empties `request`. Returns false when the request holds too much memory to be kept.
pub(crate) fn clear_request(request: &mut Request) -> bool {
    let RequestHead { fields, .. } = &request.head;
    let is_small = fields.memory() <= MAX_KEPT_HEAD;
    if is_small {
        request.websocket = false;
        request.database = None;
        request.route.clear();
        request.head.clear();
        request.body.clear(MAX_KEPT);
    }
    is_small
}

/// An empty request, and an empty buffer for a response: with used memory if this thread has some.
pub(crate) fn spare_request() -> (Box<Request>, Vec<u8>) {
    let buffer = spare_buffer();
    (ANSWERED.with_borrow_mut(|answered| answered.requests.pop()).unwrap_or_default(), buffer)
}

/// An empty buffer for a response, with used memory if this thread has some.
pub(crate) fn spare_buffer() -> Vec<u8> {
    let spare = ANSWERED.with_borrow_mut(|answered| answered.buffers.pop());
    spare.unwrap_or_else(|| Vec::with_capacity(RESPONSE))
}

/// Keeps the memory of a request that has been answered.
pub(crate) fn recycle_request(mut request: Box<Request>) {
    if clear_request(&mut request) {
        ANSWERED.with_borrow_mut(|answered| {
            if answered.requests.len() < MAX_SPARE {
                answered.requests.push(request);
            }
        });
    }
}

/// Keeps the memory of a buffer in which a response was made.
pub(crate) fn recycle_buffer(mut buffer: Vec<u8>) {
    if (RESPONSE..=MAX_KEPT_BUFFER).contains(&buffer.capacity()) {
        buffer.clear();
        ANSWERED.with_borrow_mut(|answered| {
            if answered.buffers.len() < MAX_SPARE_BUFFERS {
                answered.buffers.push(buffer);
            }
        });
    }
}

/// A head without fields, with used memory if this thread has some.
pub(crate) fn spare_head(status: Status) -> ResponseHead {
    let spare = ANSWERED.with_borrow_mut(|answered| answered.heads.pop());
    spare.map_or_else(|| ResponseHead::new(status), |head| ResponseHead { status, ..head })
}

/// Keeps the memory of a head.
pub(crate) fn recycle_head(mut head: ResponseHead) {
    if head.fields.memory() <= MAX_KEPT_BUFFER {
        head.fields.clear();
        head.reason = None;
        ANSWERED.with_borrow_mut(|answered| {
            if answered.heads.len() < MAX_SPARE {
                answered.heads.push(head);
            }
        });
    }
}

/// An empty writer.
pub(crate) fn spare_writer() -> Box<Writer> {
    let mut writer = ANSWERED.with_borrow_mut(|answered| answered.writers.pop()).unwrap_or_default();
    writer.begin();
    writer
}

/// Keeps the memory of a writer.
pub(crate) fn recycle_writer(mut writer: Box<Writer>) {
    if writer.clear() {
        ANSWERED.with_borrow_mut(|answered| {
            if answered.writers.len() < MAX_SPARE {
                answered.writers.push(writer);
            }
        });
    }
}

/// Calls `use_it` with the present date, on a thread without [`Scratch`].
pub(crate) fn with_date<T>(use_it: impl FnOnce(&[u8; 29]) -> T) -> T {
    DATE.with_borrow_mut(|date| use_it(date.now()))
}
