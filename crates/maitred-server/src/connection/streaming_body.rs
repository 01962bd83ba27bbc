//! Request bodies that handlers read while they arrive. Listeners choose that by `read-ahead`; without it, handlers of an event loop read
//! long bodies so.
//!
//! ```text
//! handler's thread                     connection                       turns
//!   read() ------ slot's lock -----> kept input, then recv
//!     <---- bytes, the end, an error ---'
//!     <---- nothing there ------------- the edge is noted <------------ READ, the end, the cut
//!   waits for the edge, at most body-timeout <------- told --------------'
//! ```
//! Promises: over HTTP/1 the connection receives only bytes that the handler has asked for, so that a body takes one buffer of
//! memory and TCP slows its sender down. Over HTTP/2 turns keep at most a stream window, and a read gives the peer credit. The engine sends `100 Continue` when the handler reads first. Bytes that the
//! handler leaves unread are dropped up to [`MAX_DROPPED`]; beyond that the connection ends. While the handler waits,
//! the peer has body-timeout for the next byte and must keep min-rate-in on average until the response begins; after
//! that both sides may pause as they like. The choice of these requests is `is_read_live`.

use crate::connection::answer::answer;
use crate::connection::link::Link;
use crate::connection::pipeline::Received;
use crate::connection::wire::Wire;
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
use maitred_runtime::{LiveBody, Observe};

use super::body::{Keeping, fits_memory};
use super::framed::Values;
use super::stream::Stream;
use super::{Context, Flags, Group, Key, Turn, nanos};
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
    /// Bytes of the body so far.
    received: u64,
    /// Bytes of `100 Continue`, until sent.
    pub(super) interim: Option<Vec<u8>>,
    pub(super) end: Option<End>,
    /// The response has begun: the rest of the body is a stream of its own, and the peer may pause without limit.
    pub(super) answering: bool,
    /// Bytes that turns have received for the handler, where exchanges are interleaved.
    taken: VecDeque<u8>,
    /// The time that the peer has left, from the first moment in which the handler waits for the body.
    pub(super) patience: Option<RateWatch>,
    /// Time since which the handler does not wait, in monotonic nanoseconds; 0 while it waits.
    rested: u64,
    /// Time since which the handler waits for the peer, in monotonic nanoseconds; 0 while it does not wait.
    since: u64,
    /// Flags of the exchange, which count the time of waiting; none until the handler has the body.
    flags: Option<Arc<Flags>>,
    /// Observer to tell when bytes may have arrived; set while the handler waits.
    pub(super) waiting: Option<Arc<dyn Observe>>,
}

#[derive(Clone, Copy)]
pub(super) enum End {
    Complete,
    Failed(ErrorKind, &'static str),
}

pub(super) const PEER_GONE: End =
    End::Failed(ErrorKind::ConnectionReset, "the connection ended before the request body was complete");
pub(super) const PEER_ENDED: End =
    End::Failed(ErrorKind::ConnectionReset, "the client ended the connection inside its request body");
const TOO_LARGE: End =
    End::Failed(ErrorKind::FileTooLarge, "the request body is larger than the limit (--max-body)");
const TOO_LATE: End = End::Failed(
    ErrorKind::TimedOut,
    "nothing of the request body came within the time limit (--body-timeout)",
);
const TOO_SLOW: End = End::Failed(ErrorKind::TimedOut, "the request body came too slowly (--min-rate-in)");
pub(super) const OVER: End =
    End::Failed(ErrorKind::NotConnected, "the request has been answered; its body was dropped");

impl End {
    pub(super) fn result(self) -> io::Result<usize> {
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
    fn new(length: BodyLength, max: u64, interim: Option<Vec<u8>>) -> Self {
        Self {
            length,
            max,
            received: 0,
            interim,
            end: None,
            answering: false,
            taken: VecDeque::new(),
            patience: None,
            rested: 0,
            since: 0,
            flags: None,
            waiting: None,
        }
    }

    /// Whether the connection cannot be kept after a response that begins now: the peer may or may not send a body
    /// that was not asked for, the unread rest is too long, or the state of the body is unknown.
    pub(super) fn is_last(&self) -> bool {
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
    pub(super) fn rest(&mut self) {
        self.rested = clock::monotonic();
        self.count_wait(self.rested);
    }

    /// Ends a wait of the handler at `now`, since bytes or the end have arrived. The time for looking at them counts
    /// as the handler's own.
    pub(super) fn count_wait(&mut self, now: u64) {
        let since = std::mem::take(&mut self.since);
        if let Some(flags) = self.flags.as_ref().filter(|_| since > 0) {
            flags.add_awaited(now.saturating_sub(since));
        }
    }

    /// Notes that the handler waits for the peer at `now`.
    pub(super) fn wait(&mut self, site: &Site, now: u64) {
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
    pub(super) fn due(&self, site: &Site) -> u64 {
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

    /// Bytes that turns have received and the handler has not read.
    pub(super) fn held(&self) -> u64 {
        self.taken.len() as u64
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
        // It waits no more, whether it reads then or not: the time of the peer does not run meanwhile.
        if let Some(waiting) = self.waiting.take() {
            waiting.changed();
        }
    }

    /// Moves decoded bytes of `data` to `buffer`. Returns the number of consumed bytes of `data` and of moved bytes.
    pub(super) fn decode(
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
    pub(super) fn receive_in_place(
        &mut self,
        wire: &mut Wire,
        receiver: &mut Receiver,
        head: &mut RequestHead,
        site: &Site,
        buffer: &mut [u8],
    ) -> Option<Moved> {
        let left =
            receiver.fixed_left().filter(|left| *left > 0 && wire.input.is_empty() && !buffer.is_empty())?;
        if self.received + left > self.max {
            return None;
        }
        let most = left.min(buffer.len() as u64) as usize;
        let moved = wire.transport.receive(&mut buffer[..most]);
        if let Moved::Bytes(count) = moved {
            receiver.skip_fixed(count as u64);
            self.received += count as u64;
            // The end of a body is an event without bytes.
            self.decode(receiver, head, site, b"", &mut []);
            wire.note_read(count, most);
        }
        Some(moved)
    }
}

impl Stream {
    pub(super) fn live(&mut self) -> Option<&mut Live> {
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

    /// Reads from the bytes that turns have received. Returns `Ok(None)` when there are none; `observer` is told when
    /// some have come. `is_dead`: the peer is gone.
    pub(super) fn read_taken(
        &mut self,
        is_dead: bool,
        site: &Site,
        buffer: &mut [u8],
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        if self.live().is_some_and(|live| live.interim.take().is_some()) {
            self.enqueue(Values::interim(ResponseHead::new(Status::CONTINUE)));
        }
        let Keeping::Live(live) = &mut self.keeping else { return OVER.result().map(Some) };
        let count = live.taken.read(buffer)?;
        if count > 0 {
            live.waiting = None;
            live.rest();
            return Ok(Some(count));
        }
        if is_dead {
            live.end.get_or_insert(PEER_GONE);
        }
        if let Some(end) = live.end {
            return end.result().map(Some);
        }
        live.waiting = Some(Arc::clone(observer));
        live.wait(site, clock::monotonic());
        Ok(None)
    }

    /// Notes that nothing more of the body comes, because the peer has ended its side of the connection inside it.
    pub(super) fn end_body_by_peer(&mut self) {
        if let Some(live) = self.live() {
            live.end.get_or_insert(PEER_ENDED);
            live.tell();
        }
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
    pub(super) fn has_time_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some() && !live.answering)
    }

    /// Whether the handler waits for the body.
    pub(super) fn waits_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some())
    }
}

/// Returns the reader of a live body for the handler, and the length of the body if known.
pub(super) fn live_reader(context: &Context<'_>, stream: &mut Stream) -> Option<(LiveReader, Option<u64>)> {
    let flags = stream.shared_flags();
    let key = context.key(stream.number);
    let Keeping::Live(live) = &mut stream.keeping else { return None };
    live.flags = Some(Arc::clone(&flags));
    let length = match live.length {
        BodyLength::Fixed(length) => Some(length),
        _ => None,
    };
    let reader =
        LiveReader { group: Arc::clone(context.group), key, flags, edge: Arc::default(), complete: false };
    Some((reader, length))
}

thread_local! {
    /// Buffer for received parts of live bodies.
    static SPACE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The handler's side of a live body.
pub(crate) struct LiveReader {
    pub(super) group: Arc<Group>,
    pub(super) key: Key,
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
            .with_stream(self.key, |connection| connection.read_live(self, (&mut space, buffer), observer))
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
    pub(super) fn wait(&self, until: Instant) -> bool {
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

/// Hands over a request of which only the head has arrived.
pub(super) fn answer_live(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    facts: HeadFacts,
) -> Received {
    let mut interim = Vec::new();
    if facts.expect_continue {
        Sender::new(stream.request.head.version, false, true).send_continue(&mut interim);
    }
    let max = stream.max_body(&context.group.site);
    let interim = Some(interim).filter(|interim| !interim.is_empty());
    stream.keeping = Keeping::Live(Live::new(stream.request.head.body, max, interim));
    match answer(link, wire, context, stream) {
        // Only the application answers such a request. If the engine has answered, no request can follow.
        Received::Answered => Received::Ended(Turn::Close),
        received => received,
    }
}

/// Whether a handler reads the body of this request while it arrives.
pub(super) fn is_read_live(wire: &Wire, context: &Context<'_>, stream: &Stream, facts: HeadFacts) -> bool {
    let of_listener = || context.group.groups.listeners.get(wire.listener as usize)?.read_ahead();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_was_told_waits_no_more() {
        let arrivals: [fn(&mut Live); 3] = [|live| live.take(b"bytes"), Live::complete, Live::tell];
        for arrive in arrivals {
            let mut live = Live::new(BodyLength::Chunked, 100, None);
            live.waiting = Some(Arc::new(Edge::default()));
            arrive(&mut live);
            // The time of the peer runs only while a reader waits for it.
            assert!(live.waiting.is_none());
        }
    }
}
