//! Memory a thread uses again from turn to turn, so that an idle connection holds none.

use std::cell::RefCell;

use maitred_dispatch::{TurnClock, TurnContext};
use maitred_http::{RequestHead, date};
use maitred_io::clock;
use maitred_runtime::Request;

use crate::connection::record::Record;
use crate::connection::writer::Writer;

/// Bytes received by one call: the largest part of a socket buffer worth copying at once; a request
/// head needs one page of it.
const RECEIVE: usize = 64 * 1024;

/// Requests kept for use again by one thread; more are in flight only while uploads are slow.
pub(crate) const MAX_SPARE: usize = 64;

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
    date: Date,
    clock: TurnClock,
    /// How far the real clock is ahead of the monotonic one, in nanoseconds, and when that was looked at.
    ahead: (u64, u64),
}

/// How long a difference of the clocks is good, in nanoseconds: what a clock that is being corrected drifts meanwhile
/// (adjtimex(2): 0.5 ms a second at most) is below what a span is wanted to.
const AHEAD_IS_GOOD: u64 = 20_000_000;

impl Scratch {
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

thread_local! {
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

/// Empties `request`. False when it holds too much memory to be kept.
pub(crate) fn clear(request: &mut Request) -> bool {
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
