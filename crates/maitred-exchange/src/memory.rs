//! Memory that a thread reuses from turn to turn, so that an idle connection holds none.

use std::cell::RefCell;

use maitred_http::{RequestHead, ResponseHead, Status, date};
use maitred_io::clock;
use maitred_runtime::Request;

/// Requests kept for use again by one thread; more are in flight only while uploads are slow.
pub const MAX_SPARE: usize = 64;

/// Room for the head of a usual response and a small body.
const RESPONSE: usize = 512;

/// A kept request holds at most this much of a body; the memory of a larger one is given back.
pub(crate) const MAX_KEPT: usize = 64 * 1024;

/// Most bytes of head fields that a kept request holds; usual heads need less than half.
const MAX_KEPT_HEAD: usize = 4 * 1024;

/// Most bytes of a kept response buffer: a head and a body that is copied.
const MAX_KEPT_BUFFER: usize = 20 * 1024;

/// Buffers kept by one thread: a few more than the responses that wait for the end of a turn of an event loop.
const MAX_SPARE_BUFFERS: usize = 32;

/// The present date, formatted once a second.
pub struct Date {
    pub(crate) second: u64,
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
    heads: Vec<ResponseHead>,
}

/// Empties `request`. Returns false when the request holds too much memory to be kept.
pub fn clear_request(request: &mut Request) -> bool {
    let RequestHead { fields, .. } = &request.head;
    let is_small = fields.memory() <= MAX_KEPT_HEAD;
    if is_small {
        request.websocket = false;
        request.database = None;
        request.outgoing = None;
        request.route.clear();
        request.head.clear();
        request.body.clear(MAX_KEPT);
    }
    is_small
}

/// An empty request, and an empty buffer for a response: with used memory if this thread has some.
pub fn spare_request() -> (Box<Request>, Vec<u8>) {
    (blank_request(), spare_buffer())
}

/// An empty request, with used memory if this thread has some.
pub fn blank_request() -> Box<Request> {
    ANSWERED.with_borrow_mut(|answered| answered.requests.pop()).unwrap_or_default()
}

/// An empty buffer for a response, with used memory if this thread has some.
pub fn spare_buffer() -> Vec<u8> {
    let spare = ANSWERED.with_borrow_mut(|answered| answered.buffers.pop());
    spare.unwrap_or_else(|| Vec::with_capacity(RESPONSE))
}

/// Keeps the memory of a request that has been answered.
pub fn recycle_request(mut request: Box<Request>) {
    if clear_request(&mut request) {
        ANSWERED.with_borrow_mut(|answered| {
            if answered.requests.len() < MAX_SPARE {
                answered.requests.push(request);
            }
        });
    }
}

/// Keeps the memory of a buffer in which a response was made.
pub fn recycle_buffer(mut buffer: Vec<u8>) {
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
pub fn spare_head(status: Status) -> ResponseHead {
    let spare = ANSWERED.with_borrow_mut(|answered| answered.heads.pop());
    spare.map_or_else(|| ResponseHead::new(status), |head| ResponseHead { status, ..head })
}

/// Keeps the memory of a head.
pub fn recycle_head(mut head: ResponseHead) {
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

/// Calls `use_it` with the present date, on a thread without a `Scratch`.
pub fn with_date<T>(use_it: impl FnOnce(&[u8; 29]) -> T) -> T {
    DATE.with_borrow_mut(|date| use_it(date.now()))
}
