//! Where this process stands in the line of those that accept from the same sockets; `connection/turns.rs` moves it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The place in the line.
#[derive(Default)]
pub(crate) struct Turnstile(Mutex<Side>);

impl Turnstile {
    /// Whoever has it is the only one of this process that accepts from shared sockets.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Side> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On which side of the line.
#[derive(Debug, Default)]
pub(crate) enum Side {
    /// In it: connections are events.
    #[default]
    Open,
    /// Out of it: this process was not free, and looks again when it is, or at `due`, in monotonic nanoseconds.
    Closed {
        /// The time.
        due: u64,
    },
}
