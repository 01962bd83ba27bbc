//! The order in which parts of an application learn that the peer has left: a `receive()` first, or the next `send`.
//!
//! Frameworks have one task that waits in `receive()`, and cancels the one that sends: they can clean up after that
//! end. An exception out of `send` before that would take its place. So while a `receive()` waits, `send` returns a
//! turn of the loop later, so many times that the cancellation has come by then. Then it raises. Without a waiting
//! `receive()` the first `send` raises (ASGI HTTP specification 2.4).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use maitred_runtime::Flow;

/// How many calls of `send` return late. From the end of `receive()` to the cancellation of the sending task Django
/// needs four turns, and each middleware between them three to five more.
const SPARED: u32 = 32;

#[derive(Default)]
pub(super) struct Departure {
    /// The number of calls of `receive()` that wait.
    listening: AtomicU32,
    told: AtomicBool,
    /// The `receive()` that has said so was called by the request's own coroutine, not by another task.
    told_itself: AtomicBool,
    /// The number of calls of `send` that have found the peer gone.
    found: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// `send` goes on at once.
    Ready,
    /// When there is room.
    Full,
    /// The peer has left, and a waiting `receive()` has a turn first.
    Left,
}

impl From<Flow> for Onward {
    fn from(flow: Flow) -> Self {
        match flow {
            Flow::Ready => Self::Ready,
            Flow::Full => Self::Full,
        }
    }
}

impl Departure {
    pub(super) fn listen(&self) {
        self.listening.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unlisten(&self) {
        self.listening.fetch_sub(1, Ordering::Relaxed);
    }

    /// A `receive()` says that the peer has left, to the coroutine of the request `itself` or to another task.
    pub(super) fn tell(&self, itself: bool) {
        self.told.store(true, Ordering::Relaxed);
        if itself {
            self.told_itself.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// A `send`, of the coroutine of the request `itself` or of another task, has found the peer gone; whether it is spared the
    /// exception. A coroutine that was told before is not.
    pub(super) fn spares(&self, itself: bool) -> bool {
        let found = self.found.load(Ordering::Relaxed);
        let is_heard = self.told.load(Ordering::Relaxed) || self.listening.load(Ordering::Relaxed) > 0;
        let knows = itself && self.told_itself.load(Ordering::Relaxed);
        let spared = found < SPARED && is_heard && !knows;
        self.found.store(if spared { found + 1 } else { SPARED }, Ordering::Relaxed);
        spared
    }
}
