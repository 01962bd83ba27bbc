//! Who hears first that the peer has left: a `receive()`, or the next `send`.
//!
//! Frameworks have one task that waits in `receive()`, and cancels the one that sends: the end that they can clean up after. An exception
//! out of `send` before that would take its place. So where somebody listens, `send` returns a turn of the loop later, so many times that
//! the cancellation has come by then. Then it raises, and so does the first one where nobody listens (ASGI HTTP specification 2.4).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use maitred_runtime::Flow;

/// From the end of `receive()` to the cancellation of what sends Django needs four turns, and each middleware between them three to five more.
const SPARED: u32 = 32;

/// Of one channel.
#[derive(Default)]
pub(super) struct Departure {
    /// So many `receive()` wait.
    listening: AtomicU32,
    /// One has said that the peer has left.
    told: AtomicBool,
    /// The request's own coroutine has heard it, and not a task beside.
    told_itself: AtomicBool,
    /// So many `send` have found out.
    found: AtomicU32,
}

/// How `send` goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// At once.
    Ready,
    /// When there is room.
    Full,
    /// The peer has left: whoever listens has a turn first.
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

    /// Whether a `receive()` has said so.
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
