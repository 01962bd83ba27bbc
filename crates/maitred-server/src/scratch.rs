//! Memory a thread uses again from turn to turn, so that an idle connection holds none.

use std::cell::RefCell;

use maitred_dispatch::{TurnClock, TurnContext};
use maitred_h1::HeadFacts;
use maitred_http::{RequestHead, date};
use maitred_io::clock;
use maitred_runtime::Request;
use maitred_stats::Times;

use crate::connection::body::Keeping;
use crate::limits::minimum::RateWatch;
use crate::record::Record;
use crate::site::Site;
use crate::writer::Writer;
use maitred_filters::Passed;
use maitred_log::next_number;

/// Bytes received by one call: the largest part of a socket buffer worth copying at once; a request
/// head needs one page of it.
const RECEIVE: usize = 64 * 1024;

/// Requests kept for use again by one thread; more are in flight only while uploads are slow.
const MAX_SPARE: usize = 64;

/// Room for the head of a usual response and a small body.
const RESPONSE: usize = 512;

/// A kept request holds at most this much; a larger body's or head's memory is given back.
const MAX_KEPT: usize = 64 * 1024;

/// The same for the buffer of a response: it holds a head and a body that is copied.
const MAX_KEPT_BUFFER: usize = 20 * 1024;

/// Buffers kept by one thread: as many as responses leave together, and some.
const MAX_SPARE_BUFFERS: usize = 32;

/// The buffers of a thread that serves.
#[derive(Default)]
pub(crate) struct Scratch {
    receive: Vec<u8>,
    /// Response bytes of the present turn.
    pub(crate) out: Vec<u8>,
    /// The exchanges of the present turn whose responses are among them.
    pub(crate) records: Vec<Record>,
    /// A normalised path.
    pub(crate) path: Vec<u8>,
    /// Slots whose deadline is due.
    pub(crate) due: Vec<u32>,
    date: Date,
    clock: TurnClock,
    /// How far the real clock is ahead of the monotonic one, in nanoseconds, and when that was looked at.
    ahead: (u64, u64),
}

/// How long a difference of the clocks is good, in nanoseconds: what a clock that is being corrected drifts meanwhile
/// (adjtimex(2): 0.5 ms a second at most) is below what a span is wanted to.
const AHEAD_IS_GOOD: u64 = 20_000_000;

impl Scratch {
    /// The time now, in monotonic nanoseconds.
    pub(crate) fn now(&mut self) -> u64 {
        self.clock.now()
    }

    /// A time of the real clock, which is not later than `now`, on the monotonic one; both in nanoseconds.
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

/// A request while it is received.
#[derive(Default)]
pub(crate) struct Incoming {
    pub(crate) request: Box<Request>,
    /// Where the body goes.
    pub(crate) keeping: Keeping,
    /// The filters that it has met.
    pub(crate) passed: Option<Box<Passed>>,
    /// The head is complete, and this is what it said.
    pub(crate) facts: Option<HeadFacts>,
    /// When its first byte was read, in monotonic nanoseconds.
    pub(crate) began: u64,
    /// Of the stations the first two.
    pub(crate) times: Times,
    /// Bytes received since then, and the time that the peer has left to send the body; none while it is not waited for.
    pub(crate) received: u64,
    pub(crate) patience: Option<RateWatch>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Incoming>>> = const { RefCell::new(Vec::new()) };
    static ANSWERED: RefCell<Answered> = RefCell::default();
    static DATE: RefCell<Date> = RefCell::new(Date::default());
}

/// What answered requests have left.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they move in and out of exchanges and connections by their pointers")]
struct Answered {
    requests: Vec<Box<Request>>,
    buffers: Vec<Vec<u8>>,
    writers: Vec<Box<Writer>>,
}

impl Incoming {
    /// An empty one, with used memory if this thread has some.
    pub(crate) fn take(began: u64, arrived: u64) -> Box<Self> {
        let mut incoming = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        incoming.began = began;
        incoming.times = Times { arrived, ..Times::default() };
        incoming.request.number = next_number();
        incoming
    }

    /// Whether its head waits in the filters.
    pub(crate) fn is_filtering(&self) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.is_checking())
    }

    /// The longest body it may have, in bytes.
    pub(crate) fn max_body(&self, site: &Site) -> u64 {
        self.passed.as_ref().and_then(|passed| passed.max_body()).unwrap_or(site.max_body)
    }

    /// Why it is refused when its body is longer.
    pub(crate) fn too_large(&self) -> &'static str {
        match self.passed.as_ref().filter(|passed| passed.max_body().is_some()) {
            None => "the request body is larger than the limit (--max-body)",
            Some(passed) => {
                passed.note_too_long();
                "the request body is larger than the limit (max-body of a filter)"
            }
        }
    }

    /// Keeps the memory of `incoming` for the next request.
    pub(crate) fn give_back(mut incoming: Box<Self>) {
        if !clear(&mut incoming.request) {
            return;
        }
        incoming.keeping = Keeping::Memory;
        incoming.passed = None;
        incoming.facts = None;
        (incoming.received, incoming.patience) = (0, None);
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(incoming);
            }
        });
    }
}

/// Empties `request`. False when it holds too much memory to be kept.
fn clear(request: &mut Request) -> bool {
    let RequestHead { fields, .. } = &request.head;
    let is_small = fields.memory() <= MAX_KEPT;
    if is_small {
        request.head.clear();
        request.body.clear(MAX_KEPT);
    }
    is_small
}

/// An empty request, and an empty buffer for a response: with used memory if this thread has some.
pub(crate) fn spare() -> (Box<Request>, Vec<u8>) {
    ANSWERED.with_borrow_mut(|answered| {
        let buffer = answered.buffers.pop().unwrap_or_else(|| Vec::with_capacity(RESPONSE));
        (answered.requests.pop().unwrap_or_default(), buffer)
    })
}

/// Keeps the memory of a request that has been answered.
pub(crate) fn recycle(mut request: Box<Request>) {
    if clear(&mut request) {
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

/// An empty writer.
pub(crate) fn writer() -> Box<Writer> {
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
