//! Random ids, without a system call for each. They can be guessed, and are no secret.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use maitred_trace::{Ids, SpanId, TraceId};

thread_local! {
    static IDS: RefCell<Ids> = RefCell::new(Ids::seeded(seed()));
}

/// Random numbers of the system.
#[must_use]
pub fn seed() -> [u64; 2] {
    let random = RandomState::new();
    [0_u8, 1].map(|number| random.hash_one(number))
}

/// The id of a new span.
#[must_use]
pub fn span_id() -> [u8; 8] {
    IDS.with_borrow_mut(|ids| *ids.span().bytes())
}

/// The ids of a trace that begins, and of its first span.
pub(super) fn root() -> (TraceId, SpanId) {
    IDS.with_borrow_mut(|ids| (ids.trace(), ids.span()))
}
