//! Request bodies that handlers read while they arrive, on listeners that do not read ahead.
//!
//! ```text
//! handler's thread                     connection                       turns
//!   read() ------ slot's lock -----> kept input, then recv
//!     <---- bytes, the end, an error ---'
//!     <---- nothing there ------------- the edge is noted <------------ READ, the end, the cut
//!   waits for the edge, at most body-timeout <------- told --------------'
//! ```
//! Promises: the connection receives only bytes that the handler has asked for, so that a body takes one buffer of
//! memory and TCP slows its sender down. The engine sends `100 Continue` when the handler reads first. Bytes that the
//! handler leaves unread are dropped up to [`MAX_DROPPED`]; beyond that the connection ends. While the handler waits,
//! the peer has body-timeout for the next byte and must keep min-rate-in on average until the response begins; after
//! that both sides may pause as they like. Leaves out: the choice of the requests that are read live (`receive.rs`).

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use maitred_h1::{Event, HeadFacts, Receiver, RequestError, Sender};
use maitred_http::{BodyLength, RequestHead, ResponseHead, Status};
use maitred_io::clock;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_limits::minimum::{Late, RateWatch};
use maitred_runtime::{Last, LiveBody, Observe};

use super::body::{Keeping, fits_memory};
use super::framed::Values;
use super::protocol::Protocol;
use super::stream::{Received, Stream};
use super::{Connection, Context, Flags, Group, Key, NEVER, Turn, nanos};
use crate::group::slots::Token;
use crate::site::Site;

/// Bytes of an unread request body that are dropped after the response, so that the connection can be kept. As many
/// as in Go's net/http: about the bytes that arrive while a new connection would be made.
pub(super) const MAX_DROPPED: u64 = 256 * 1024;

/// Bytes received by one call, as for requests that are read ahead.
const RECEIVE: usize = 64 * 1024;

/// State of a body that its handler reads while it arrives.
pub(crate) struct Live {
    length: BodyLength,
    /// Limit of the body, in bytes.
    max: u64,
    received: u64,
    /// Bytes of `100 Continue`, until sent.
    interim: Option<Vec<u8>>,
    end: Option<End>,
    /// The response has begun: the rest of the body is a stream of its own, and the peer may pause without limit.
    answering: bool,
    /// Bytes that turns have received for the handler, where exchanges are interleaved.
    taken: VecDeque<u8>,
    /// The time that the peer has left, from the first moment in which the handler waits for the body.
    patience: Option<RateWatch>,
    /// Time since which the handler does not wait, in monotonic nanoseconds; 0 while it waits.
    rested: u64,
    /// Time since which the handler waits for the peer, in monotonic nanoseconds; 0 while it does not wait.
    since: u64,
    /// Flags of the exchange, which count the time of waiting; none until the handler has the body.
    flags: Option<Arc<Flags>>,
    /// Observer to tell when bytes may have arrived; set while the handler waits.
    waiting: Option<Arc<dyn Observe>>,
}

#[derive(Clone, Copy)]
enum End {
    Complete,
    Failed(ErrorKind, &'static str),
}

const PEER_GONE: End =
    End::Failed(ErrorKind::ConnectionReset, "the connection ended before the request body was complete");
const PEER_ENDED: End =
    End::Failed(ErrorKind::ConnectionReset, "the client ended the connection inside its request body");
const TOO_LARGE: End =
    End::Failed(ErrorKind::FileTooLarge, "the request body is larger than the limit (--max-body)");
const TOO_LATE: End = End::Failed(
    ErrorKind::TimedOut,
    "nothing of the request body came within the time limit (--body-timeout)",
);
const TOO_SLOW: End = End::Failed(ErrorKind::TimedOut, "the request body came too slowly (--min-rate-in)");
const OVER: End = End::Failed(ErrorKind::NotConnected, "the request has been answered; its body was dropped");

impl End {
    fn result(self) -> io::Result<usize> {
        match self {
            Self::Complete => Ok(0),
            Self::Failed(kind, text) => Err(io::Error::new(kind, text)),
        }
    }
}

impl From<RequestError> for End {
    fn from(error: RequestError) -> Self {
        Self::Failed(ErrorKind::InvalidData, error.reason)
    }
}

impl Live {
    /// Whether the connection cannot be kept after a response that begins now: the peer may or may not send a body
    /// that was not asked for, the unread rest is too long, or the state of the body is unknown.
    fn is_last(&self) -> bool {
        let left = match self.length {
            BodyLength::Fixed(length) => length - self.received,
            _ => 0,
        };
        match self.end {
            Some(End::Complete) => false,
            Some(End::Failed(..)) => true,
            None => self.interim.is_some() || left > MAX_DROPPED,
        }
    }

    /// Notes that the handler has read bytes and does not wait.
    fn rest(&mut self) {
        self.rested = clock::monotonic();
        self.count_wait(self.rested);
    }

    /// Ends a wait of the handler at `now`, since bytes or the end have arrived. The time for looking at them counts
    /// as the handler's own.
    fn count_wait(&mut self, now: u64) {
        let since = std::mem::take(&mut self.since);
        if let Some(flags) = self.flags.as_ref().filter(|_| since > 0) {
            flags.add_awaited(now.saturating_sub(since));
        }
    }

    /// Notes that the handler waits for the peer at `now`.
    fn wait(&mut self, site: &Site, now: u64) {
        if self.since == 0 {
            self.since = now;
        }
        let (minimum, received) = (site.guard.inward(), self.received);
        let patience = self.patience.get_or_insert_with(|| RateWatch::begin(minimum, now, received));
        let rested = std::mem::take(&mut self.rested);
        if rested > 0 {
            patience.skip(now.saturating_sub(rested), now);
        }
        patience.note(now, received);
    }

    /// Time of the next check of a peer for which the handler waits, in monotonic nanoseconds.
    fn due(&self, site: &Site) -> u64 {
        let timeout = nanos(site.timeouts.body);
        let timed = self.patience.as_ref().filter(|_| !self.answering);
        timed.map_or(u64::MAX, |patience| patience.due(site.guard.inward(), timeout))
    }

    /// Checks whether the peer is late. If so, ends the body and returns the rule that applies.
    fn look(&mut self, site: &Site, now: u64) -> Option<Rule> {
        let (minimum, received) = (site.guard.inward(), self.received);
        let patience = self.patience.as_mut().filter(|_| !self.answering)?;
        let late = patience.look(minimum, nanos(site.timeouts.body), now, received).err()?;
        let (end, rule) = match late {
            Late::Silent => (TOO_LATE, Rule::BodyTimeout),
            Late::Slow => (TOO_SLOW, Rule::MinRateIn),
        };
        self.end.get_or_insert(end);
        self.tell();
        Some(rule)
    }

    /// Keeps bytes that a turn has received for the handler.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.received > self.max {
            self.end.get_or_insert(TOO_LARGE);
        } else {
            self.taken.extend(bytes);
        }
        self.tell();
    }

    /// Notes the end of the body.
    pub(super) fn complete(&mut self) {
        self.end.get_or_insert(End::Complete);
        self.tell();
    }

    /// Tells a waiting handler to read again.
    pub(super) fn tell(&mut self) {
        self.count_wait(clock::monotonic());
        if let Some(waiting) = &self.waiting {
            waiting.changed();
        }
    }

    /// Moves decoded bytes of `data` to `buffer`. Returns the number of consumed bytes of `data` and of moved bytes.
    fn decode(
        &mut self,
        receiver: &mut Receiver,
        head: &mut RequestHead,
        site: &Site,
        data: &[u8],
        buffer: &mut [u8],
    ) -> (usize, usize) {
        let (mut at, mut filled) = (0, 0);
        while self.end.is_none() {
            let rest = &data[at..];
            let room = buffer.len() - filled;
            // No more bytes than fit `buffer`. A trailer section contains no data, so the decoder may see all of it.
            let part = &rest[..rest.len().min(room)];
            let step = match receiver.poll_event(part, head, &site.limits) {
                Ok(step) if step.consumed == 0 && room > 0 && matches!(step.event, Event::NeedMore) => {
                    receiver.poll_event(rest, head, &site.limits)
                }
                polled => polled,
            };
            let step = match step {
                Ok(step) => step,
                Err(error) => {
                    self.end = Some(error.into());
                    break;
                }
            };
            at += step.consumed;
            match step.event {
                Event::Data(bytes) => {
                    self.received += bytes.len() as u64;
                    if self.received > self.max {
                        self.end = Some(TOO_LARGE);
                        break;
                    }
                    buffer[filled..filled + bytes.len()].copy_from_slice(bytes);
                    filled += bytes.len();
                }
                Event::End => self.end = Some(End::Complete),
                Event::NeedMore if step.consumed == 0 || at == data.len() => break,
                Event::NeedMore | Event::Trailers(_) | Event::Head(_) => {}
            }
        }
        (at, filled)
    }

    /// Receives bytes of a body of known length where the handler wants them. None for other bodies.
    fn receive_in_place(
        &mut self,
        connection: &mut Connection,
        head: &mut RequestHead,
        site: &Site,
        buffer: &mut [u8],
    ) -> Option<Moved> {
        let Protocol::H1(receiver) = &mut connection.protocol else { return None };
        let left = receiver.fixed_left().filter(|left| *left > 0 && connection.input.is_empty())?;
        if self.received + left > self.max {
            return None;
        }
        let most = left.min(buffer.len() as u64) as usize;
        let moved = connection.transport.receive(&mut buffer[..most]);
        if let Moved::Bytes(count) = moved {
            receiver.skip_fixed(count as u64);
            self.received += count as u64;
            // The end of a body is an event without bytes.
            self.decode(receiver, head, site, b"", &mut []);
            let empty = count < most && connection.transport.empties_by_a_short_read();
            connection.unread = !empty || connection.read_closed;
        }
        Some(moved)
    }
}

impl Stream {
    fn live(&mut self) -> Option<&mut Live> {
        match &mut self.keeping {
            Keeping::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Whether the handler has read an end of the body that came from the loss of the peer.
    pub(super) fn has_read_end(&self) -> bool {
        let Keeping::Live(live) = &self.keeping else { return false };
        matches!(live.end, Some(End::Failed(ErrorKind::ConnectionReset, _)))
    }

    /// Time of the next check of a peer whose body the handler waits for, in monotonic nanoseconds.
    pub(super) fn live_due(&mut self, site: &Site) -> u64 {
        self.live().map_or(u64::MAX, |live| live.due(site))
    }

    /// Ends the body if the peer is late, and returns the rule that applies.
    pub(super) fn end_late_live(&mut self, site: &Site, now: u64) -> Option<Rule> {
        self.live().and_then(|live| live.look(site, now))
    }

    /// Whether the handler waits for the body under `body-timeout`.
    fn has_time_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some() && !live.answering)
    }

    /// Whether the handler waits for the body.
    pub(super) fn waits_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some())
    }
}

impl Connection {
    /// Whether a handler reads the body of this request while it arrives.
    pub(super) fn is_read_live(&self, context: &Context<'_>, stream: &Stream, facts: HeadFacts) -> bool {
        let of_listener = || context.group.groups.listeners.get(self.listener as usize)?.read_ahead();
        let said = stream.passed.as_ref().and_then(|passed| passed.read_ahead()).or_else(of_listener);
        if said == Some(true) {
            return false;
        }
        stream.destination.application().is_some_and(|handler| {
            // A client that sends `Expect: 100-continue` waits for the handler's decision. A body of unknown length
            // may end only after the response.
            let is_early = || facts.expect_continue || !fits_memory(context, stream);
            let waits_cheaply = || handler.runs_on_event_loop() && is_early();
            handler.takes_live_bodies() && said.map_or_else(waits_cheaply, |on| !on)
        })
    }

    /// Hands over a request of which only the head has arrived.
    pub(super) fn answer_live(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        facts: HeadFacts,
    ) -> Received {
        let mut interim = Vec::new();
        if facts.expect_continue {
            Sender::new(stream.request.head.version, false, true).send_continue(&mut interim);
        }
        stream.keeping = Keeping::Live(Live {
            length: stream.request.head.body,
            max: stream.max_body(&context.group.site),
            received: 0,
            interim: Some(interim).filter(|interim| !interim.is_empty()),
            end: None,
            answering: false,
            taken: VecDeque::new(),
            patience: None,
            rested: 0,
            since: 0,
            flags: None,
            waiting: None,
        });
        match self.answer(context, stream) {
            // Only the application answers such a request. If the engine has answered, no request can follow.
            Received::Answered => Received::Ended(Turn::Close),
            received => received,
        }
    }

    /// Returns the reader of a live body for the handler, and the length of the body if known.
    pub(super) fn live_reader(
        context: &Context<'_>,
        stream: &mut Stream,
    ) -> Option<(LiveReader, Option<u64>)> {
        let flags = stream.shared_flags();
        let key = context.key(stream.number);
        let Keeping::Live(live) = &mut stream.keeping else { return None };
        live.flags = Some(Arc::clone(&flags));
        let length = match live.length {
            BodyLength::Fixed(length) => Some(length),
            _ => None,
        };
        let reader = LiveReader {
            group: Arc::clone(context.group),
            key,
            flags,
            edge: Arc::default(),
            complete: false,
        };
        Some((reader, length))
    }

    /// Notes that the response begins and that the body is not asked for any more. Returns whether the connection
    /// must end after the response.
    pub(crate) fn begin_answer(&mut self, key: Key) -> bool {
        self.stream_of(key).and_then(Stream::live).is_some_and(|live| {
            let last = live.is_last();
            live.interim = None;
            live.answering = true;
            last
        })
    }

    /// Tells the handler that bytes or the end have arrived. Returns false when the handler does not wait.
    pub(super) fn tell_reader(&mut self) -> bool {
        let Some(live) = self.stream.as_deref_mut().and_then(Stream::live) else { return false };
        let Some(waiting) = live.waiting.take() else { return false };
        live.count_wait(clock::monotonic());
        waiting.changed();
        true
    }

    /// Sets the deadline for the next bytes of the body. A handler that waits in a loop has no deadline of its own.
    fn await_body(&mut self, group: &Group, token: Token, due: u64) {
        self.deadline = due;
        self.arm(group, token);
    }

    /// Restarts the peer's time for the body when the queued response bytes have left and the handler waits for the
    /// body.
    pub(super) fn go_on_with_body(&mut self, group: &Group, token: Token) {
        let Some(stream) = self.stream.as_deref_mut().filter(|_| self.writer.is_none()) else { return };
        if stream.has_time_for_body()
            && let Some(live) = stream.live()
        {
            if let Some(patience) = &mut live.patience {
                patience.touch(clock::monotonic());
            }
            let due = live.due(&group.site);
            self.await_body(group, token, due);
        }
    }

    /// Handles the deadline of a running request: if the handler waits for the body and the peer is late, ends the
    /// body; otherwise sets the time of the next check.
    pub(super) fn end_late_body(&mut self, context: &Context<'_>) {
        let (site, mut due) = (&context.group.site, NEVER);
        if let Some(stream) = self.stream.as_deref_mut()
            && stream.has_time_for_body()
        {
            match stream.end_late_live(site, context.now) {
                Some(rule) => site.guard.applied.note(rule, self.peer, &site.log),
                None => due = stream.live_due(site),
            }
        }
        self.set_deadline(context, due);
    }

    /// Reads from the bytes that turns have received; otherwise as [`read_live`](Self::read_live).
    fn read_taken(
        &mut self,
        site: &Site,
        stream: &mut Stream,
        buffer: &mut [u8],
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let Keeping::Live(live) = &mut stream.keeping else { return OVER.result().map(Some) };
        if let Some(_interim) = live.interim.take() {
            stream.enqueue(Values::interim(ResponseHead::new(Status::CONTINUE)));
        }
        let Keeping::Live(live) = &mut stream.keeping else { return OVER.result().map(Some) };
        let count = live.taken.read(buffer)?;
        if count > 0 {
            live.waiting = None;
            live.rest();
            return Ok(Some(count));
        }
        if self.is_dead() {
            live.end.get_or_insert(PEER_GONE);
        }
        if let Some(end) = live.end {
            return end.result().map(Some);
        }
        live.waiting = Some(Arc::clone(observer));
        live.wait(site, clock::monotonic());
        Ok(None)
    }

    /// Reads bytes for the handler. Returns `Ok(None)` when none have arrived; `observer` is told when some may have.
    fn read_live(
        &mut self,
        reader: &LiveReader,
        space: &mut [u8],
        buffer: &mut [u8],
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let Some(mut stream) = self.take_stream(reader.key) else { return OVER.result().map(Some) };
        if self.protocol.is_framed() {
            let read = self.read_taken(&reader.group.site, &mut stream, buffer, observer);
            self.put(stream);
            if let Ok(Some(count)) = read {
                if let Some(framed) = self.protocol.framed() {
                    framed.credit(reader.key.stream, count as u64);
                }
                self.note_body_read(reader.key);
            }
            // The next read finds out whether the peer is gone.
            let _ = self.fill(&reader.group, reader.key.token);
            self.settle_framed(&reader.group, reader.key.token, clock::monotonic());
            return read;
        }
        let Stream { keeping, request, .. } = &mut *stream;
        let read = match keeping {
            Keeping::Live(live) => {
                self.receive_live(live, &mut request.head, reader, space, buffer, observer)
            }
            _ => OVER.result().map(Some),
        };
        if self.is_dead() {
            stream.flags().set_gone();
        }
        self.stream = Some(stream);
        if matches!(read, Ok(Some(_))) {
            self.note_body_read(reader.key);
        }
        read
    }

    fn receive_live(
        &mut self,
        live: &mut Live,
        head: &mut RequestHead,
        reader: &LiveReader,
        space: &mut [u8],
        buffer: &mut [u8],
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let group = &reader.group;
        live.waiting = None;
        if self.is_dead() && live.end.is_none() {
            live.end = Some(PEER_GONE);
        }
        live.count_wait(clock::monotonic());
        if live.end.is_none()
            && let Some(mut interim) = live.interim.take()
        {
            // The check below finds out whether the peer is gone.
            let _ = self.deliver(group, reader.key, &mut interim, Last::NOTHING, b"");
        }
        loop {
            if let Some(end) = live.end {
                return end.result().map(Some);
            }
            // The end of a body is an event without bytes, so the decoder runs also without kept input.
            let mut input = std::mem::take(&mut self.input);
            let (used, filled) = match &mut self.protocol {
                Protocol::H1(receiver) => live.decode(receiver, head, &group.site, &input, buffer),
                Protocol::Framed(_) => (0, 0),
            };
            if used < input.len() {
                input.drain(..used);
                self.input = input;
            }
            if filled > 0 {
                live.rest();
                return Ok(Some(filled));
            }
            if live.end.is_some() {
                continue;
            }
            let moved = match live.receive_in_place(self, head, &group.site, buffer) {
                Some(Moved::Bytes(count)) => {
                    live.rest();
                    return Ok(Some(count));
                }
                Some(moved) => moved,
                None => self.transport.receive(space),
            };
            match moved {
                Moved::Bytes(count) => {
                    let empty = count < space.len() && self.transport.empties_by_a_short_read();
                    self.unread = !empty || self.read_closed;
                    self.input.extend_from_slice(&space[..count]);
                }
                Moved::Blocked => {
                    self.unread = false;
                    self.useless_wakes = 0;
                    live.waiting = Some(Arc::clone(observer));
                    live.wait(&group.site, clock::monotonic());
                    self.listen_again(group, reader.key.token);
                    if self.writer.is_none() && !live.answering {
                        self.await_body(group, reader.key.token, live.due(&group.site));
                    }
                    return Ok(None);
                }
                Moved::End => live.end = Some(PEER_ENDED),
                Moved::Failed(_) => live.end = Some(PEER_GONE),
            }
        }
    }

    /// Ends the exchange: the unread rest of the body is dropped, or the connection ends.
    pub(super) fn end_stream(&mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        // A socket closed with unread bytes is reset, and the peer loses the last frame.
        self.unread |= stream.awaits_last_frames();
        if let Keeping::Live(live) = &stream.keeping {
            let (complete, last) = (matches!(live.end, Some(End::Complete)), live.is_last());
            self.last |= last;
            if !complete && !last {
                stream.stop();
                stream.keeping = Keeping::Dropped(0);
                self.stream = Some(stream);
                return;
            }
        }
        Stream::give_back(stream);
    }
}

thread_local! {
    /// Buffer for received parts of live bodies.
    static SPACE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The handler's side of a live body.
pub(crate) struct LiveReader {
    group: Arc<Group>,
    key: Key,
    flags: Arc<Flags>,
    edge: Arc<Edge>,
    complete: bool,
}

impl LiveReader {
    fn take(&mut self, buffer: &mut [u8], observer: &Arc<dyn Observe>) -> io::Result<Option<usize>> {
        if self.complete {
            return Ok(Some(0));
        }
        // The buffer belongs to the thread: each reader that waits for its peer would hold one otherwise.
        let mut space = SPACE.take();
        space.resize(RECEIVE, 0);
        let read = self
            .group
            .with_stream(self.key, |connection| connection.read_live(self, &mut space, buffer, observer))
            .unwrap_or_else(|| if self.flags.is_gone() { PEER_GONE } else { OVER }.result().map(Some));
        SPACE.set(space);
        self.complete = matches!(read, Ok(Some(0)));
        read
    }

    fn time_out(&self) -> io::Result<usize> {
        self.group.with_stream(self.key, |connection| {
            if let Some(live) = connection.stream_of(self.key).and_then(Stream::live) {
                live.end.get_or_insert(TOO_LATE);
            }
        });
        TOO_LATE.result()
    }
}

impl LiveBody for LiveReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let until = Instant::now() + self.group.site.timeouts.body;
        let edge = Arc::clone(&self.edge);
        let observer: Arc<dyn Observe> = edge.clone();
        loop {
            edge.clear();
            if let Some(count) = self.take(buffer, &observer)? {
                return Ok(count);
            }
            if !edge.wait(until) {
                return self.time_out();
            }
        }
    }

    fn poll_read(&mut self, buffer: &mut [u8], observer: &Arc<dyn Observe>) -> io::Result<Option<usize>> {
        self.take(buffer, observer)
    }
}

/// Wait of a handler for the next bytes.
#[derive(Default)]
struct Edge {
    told: Mutex<bool>,
    wake: Condvar,
}

impl Edge {
    fn clear(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Waits until told. Returns false when the time is over first.
    fn wait(&self, until: Instant) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let (told, _) =
            self.wake.wait_timeout_while(told, left, |told| !*told).unwrap_or_else(PoisonError::into_inner);
        *told
    }
}

impl Observe for Edge {
    fn changed(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }
}
