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

use std::collections::VecDeque;
use std::io;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

use maitred_h1::{Event, Receiver, RequestError};
use maitred_http::{BodyLength, RequestHead, ResponseHead, Status};
use maitred_io::clock;
use maitred_limits::Rule;
use maitred_limits::minimum::{Late, RateWatch};
use maitred_runtime::Observe;
use maitred_spool::{Share, Spool};

use crate::flags::Flags;
use crate::nanos;
use crate::site::Site;
use crate::stream::Stream;
use crate::stream::queue::Values;

/// Bytes of an unread request body that are dropped after the response, so that the connection can be kept. As many
/// as in Go's net/http: about the bytes that arrive while a new connection would be made.
pub const MAX_DROPPED: u64 = 256 * 1024;

/// Destination of the bytes of a body.
#[derive(Default)]
pub enum Keeping {
    /// To the request.
    #[default]
    Memory,
    /// To the request, from the budget that all bodies share.
    Shared(Share),
    /// To a file.
    Spool(Spool),
    /// Nowhere, with a count: the engine answers without the body.
    Nowhere(u64),
    /// To the reader of the running handler.
    Live(Live),
    /// Nowhere: the handler has answered without the rest.
    Dropped(u64),
}

impl Keeping {
    /// Whether the body goes to a file.
    pub fn is_spool(&self) -> bool {
        matches!(self, Self::Spool(_))
    }

    /// Whether the body has to leave memory, because others need the room.
    pub fn leaves(&self) -> bool {
        matches!(self, Self::Shared(share) if share.leaves())
    }

    /// Tells a handler that waits for bytes to read again.
    pub fn tell(&mut self) {
        if let Self::Live(live) = self {
            live.tell();
        }
    }

    /// Whether the response has been given without this body.
    pub fn is_dropped(&self) -> bool {
        matches!(self, Self::Dropped(_))
    }
}

/// State of a body that its handler reads while it arrives.
pub struct Live {
    /// Length, if the head declares it.
    pub length: BodyLength,
    /// Limit of the body, in bytes.
    pub max: u64,
    /// Bytes of the body so far.
    pub received: u64,
    /// Bytes of `100 Continue`, until sent.
    pub interim: Option<Vec<u8>>,
    /// How the body has ended; none while more may come.
    pub end: Option<End>,
    /// The response has begun: the rest of the body is a stream of its own, and the peer may pause without limit.
    pub answering: bool,
    /// Bytes that turns have received for the handler, where exchanges are interleaved.
    taken: VecDeque<u8>,
    /// The time that the peer has left, from the first moment in which the handler waits for the body.
    pub patience: Option<RateWatch>,
    /// Time since which the handler does not wait, in monotonic nanoseconds; 0 while it waits.
    rested: u64,
    /// Time since which the handler waits for the peer, in monotonic nanoseconds; 0 while it does not wait.
    since: u64,
    /// Flags of the exchange, which count the time of waiting; none until the handler has the body.
    pub flags: Option<Arc<Flags>>,
    /// Observer to tell when bytes may have arrived; set while the handler waits.
    pub waiting: Option<Arc<dyn Observe>>,
}

/// How a body ends.
#[derive(Clone, Copy)]
pub enum End {
    /// With its last byte.
    Complete,
    /// Before it, with this error for the reader.
    Failed(ErrorKind, &'static str),
}

/// The connection is lost.
pub const PEER_GONE: End =
    End::Failed(ErrorKind::ConnectionReset, "the connection ended before the request body was complete");
/// The peer has ended its side.
pub const PEER_ENDED: End =
    End::Failed(ErrorKind::ConnectionReset, "the client ended the connection inside its request body");
const TOO_LARGE: End =
    End::Failed(ErrorKind::FileTooLarge, "the request body is larger than the limit (--max-body)");
/// The peer is late.
pub const TOO_LATE: End = End::Failed(
    ErrorKind::TimedOut,
    "nothing of the request body came within the time limit (--body-timeout)",
);
const TOO_SLOW: End = End::Failed(ErrorKind::TimedOut, "the request body came too slowly (--min-rate-in)");
/// The response was given without the rest.
pub const OVER: End =
    End::Failed(ErrorKind::NotConnected, "the request has been answered; its body was dropped");

impl End {
    /// The result of a read at the end.
    pub fn result(self) -> io::Result<usize> {
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
    /// A body of which nothing has come; `interim` has the bytes of `100 Continue`, if the peer waits for it.
    pub fn new(length: BodyLength, max: u64, interim: Option<Vec<u8>>) -> Self {
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
    pub fn is_last(&self) -> bool {
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
    pub fn rest(&mut self) {
        self.rested = clock::monotonic();
        self.count_wait(self.rested);
    }

    /// Ends a wait of the handler at `now`, since bytes or the end have arrived. The time for looking at them counts
    /// as the handler's own.
    pub fn count_wait(&mut self, now: u64) {
        let since = std::mem::take(&mut self.since);
        if let Some(flags) = self.flags.as_ref().filter(|_| since > 0) {
            flags.add_awaited(now.saturating_sub(since));
        }
    }

    /// Notes that the handler waits for the peer at `now`.
    pub fn wait(&mut self, site: &Site, now: u64) {
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
    pub fn due(&self, site: &Site) -> u64 {
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
    pub fn held(&self) -> u64 {
        self.taken.len() as u64
    }

    /// Keeps bytes that a turn has received for the handler.
    pub fn take(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.received > self.max {
            self.end.get_or_insert(TOO_LARGE);
        } else {
            self.taken.extend(bytes);
        }
        self.tell();
    }

    /// Notes the end of the body.
    pub fn complete(&mut self) {
        self.end.get_or_insert(End::Complete);
        self.tell();
    }

    /// Tells a waiting handler to read again.
    pub fn tell(&mut self) {
        self.count_wait(clock::monotonic());
        // It waits no more, whether it reads then or not: the time of the peer does not run meanwhile.
        if let Some(waiting) = self.waiting.take() {
            waiting.changed();
        }
    }

    /// Moves decoded bytes of `data` to `buffer`. Returns the number of consumed bytes of `data` and of moved bytes.
    pub fn decode(
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
}

impl Stream {
    /// The body, if its handler reads it while it arrives.
    pub fn live(&mut self) -> Option<&mut Live> {
        match &mut self.keeping {
            Keeping::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Whether the handler has read an end of the body that came from the loss of the peer.
    pub fn has_read_end(&self) -> bool {
        let Keeping::Live(live) = &self.keeping else { return false };
        matches!(live.end, Some(End::Failed(ErrorKind::ConnectionReset, _)))
    }

    /// Reads from the bytes that turns have received. Returns `Ok(None)` when there are none; `observer` is told when
    /// some have come. `is_dead`: the peer is gone.
    pub fn read_taken(
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
    pub fn end_body_by_peer(&mut self) {
        if let Some(live) = self.live() {
            live.end.get_or_insert(PEER_ENDED);
            live.tell();
        }
    }

    /// Time of the next check of a peer whose body the handler waits for, in monotonic nanoseconds.
    pub fn live_due(&mut self, site: &Site) -> u64 {
        self.live().map_or(u64::MAX, |live| live.due(site))
    }

    /// Ends the body if the peer is late, and returns the rule that applies.
    pub fn end_late_live(&mut self, site: &Site, now: u64) -> Option<Rule> {
        self.live().and_then(|live| live.look(site, now))
    }

    /// Whether the handler waits for the body under `body-timeout`.
    pub fn has_time_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some() && !live.answering)
    }

    /// Whether the handler waits for the body.
    pub fn waits_for_body(&mut self) -> bool {
        self.live().is_some_and(|live| live.waiting.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Reader;

    impl Observe for Reader {
        fn changed(&self) {}
    }

    #[test]
    fn a_reader_that_was_told_waits_no_more() {
        let arrivals: [fn(&mut Live); 3] = [|live| live.take(b"bytes"), Live::complete, Live::tell];
        for arrive in arrivals {
            let mut live = Live::new(BodyLength::Chunked, 100, None);
            live.waiting = Some(Arc::new(Reader));
            arrive(&mut live);
            // The time of the peer runs only while a reader waits for it.
            assert!(live.waiting.is_none());
        }
    }
}
