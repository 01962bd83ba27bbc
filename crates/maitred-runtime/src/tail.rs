//! A handler's work behind the end of its response: `close()`, background tasks. Its client does not wait for it, but
//! it occupies the handler's thread or event loop.
//!
//! ```text
//! handler's thread   response ends ── Tail::leave ──┐
//!                    goes on …                      │ on the same thread
//!                    is done ──── Tail::take, end <─┘
//! ```
//! The code that ends a response leaves a tail on its own thread, so that handlers need not know of it: the thread takes the tail when its handler returns.
//! A handler that goes on elsewhere takes it itself, right behind the end.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

thread_local! {
    static LEFT: Cell<Option<Tail>> = const { Cell::new(None) };
}

/// Counts tails.
pub trait CountTail: Send + Sync {
    /// Counts the work of this key, which has gone on from `began` until `ended`, in monotonic nanoseconds.
    fn count(&self, key: u64, began: u64, ended: u64);
}

/// The rest of an exchange, from the end of its response on.
pub struct Tail {
    counts: Arc<dyn CountTail>,
    key: u64,
    began: u64,
}

impl Tail {
    /// A response has ended at this time, by the clock of `counts`. Left on this thread in the place of an earlier one.
    pub fn leave(counts: Arc<dyn CountTail>, key: u64, began: u64) {
        LEFT.set(Some(Self { counts, key, began }));
    }

    /// The tail that was left on this thread.
    pub fn take() -> Option<Self> {
        LEFT.take()
    }

    /// The handler was done at this time, in monotonic nanoseconds.
    pub fn end(self, ended: u64) {
        self.counts.count(self.key, self.began, ended);
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tail")
    }
}
