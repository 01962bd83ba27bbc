//! Random ids, without a system call for each. They can be guessed, and are no secret.

use std::cell::RefCell;

use maitred_io::random;
pub use maitred_io::random::words as seed;
use maitred_trace::{Ids, SpanId, TraceId};

thread_local! {
    static IDS: RefCell<(u32, Ids)> = RefCell::new(seeded());
}

fn seeded() -> (u32, Ids) {
    (random::generation(), Ids::seeded(seed()))
}

fn with<T>(use_it: impl FnOnce(&mut Ids) -> T) -> T {
    IDS.with_borrow_mut(|ids| {
        // A child of fork(2) would make the ids of its parent.
        if ids.0 != random::generation() {
            *ids = seeded();
        }
        use_it(&mut ids.1)
    })
}

/// The id of a new span.
#[must_use]
pub fn span_id() -> [u8; 8] {
    with(|ids| *ids.span().bytes())
}

/// The ids of a trace that begins, and of its first span.
pub(super) fn root() -> (TraceId, SpanId) {
    with(|ids| (ids.trace(), ids.span()))
}
