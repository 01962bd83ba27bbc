//! The claim word of a slot: who may take a turn on a connection, and what happened meanwhile.
//!
//! ```text
//!            signal(bits)                        take()
//! free ------------------> claimed + bits -------------------> claimed
//!   ^                          ^                                  |
//!   |                          |  signal(bits) by another thread  | the owner's turn
//!   |                          `----------------------------------|
//!   `------------------------------------------------------------ release() when no bit is set
//! ```
//! Edges are reported once, to whichever thread waited. So a thread that finds the slot claimed
//! leaves its bits, and the owner cannot release the slot before it has taken them: no edge is
//! lost, and a connection never has two turns at once.

use maitred_io::sync::atomic::{AtomicU32, Ordering};

/// Something that happened to a connection; bits are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Signals(u32);

const CLAIMED: u32 = 1;

impl Signals {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// There may be bytes to read.
    pub(crate) const READ: Self = Self(1 << 1);
    /// The peer has ended its sending side: read until the end.
    pub(crate) const READ_CLOSED: Self = Self(1 << 2);
    /// There is room to write.
    pub(crate) const WRITE: Self = Self(1 << 3);
    /// The connection is dead in both directions.
    pub(crate) const CLOSED: Self = Self(1 << 4);
    /// A deadline is due.
    pub(crate) const TIMER: Self = Self(1 << 5);
    /// Go on: a budget was used up, or an exchange has ended.
    pub(crate) const RESUME: Self = Self(1 << 6);
    /// The server drains.
    pub(crate) const DRAIN: Self = Self(1 << 7);

    /// Whether any of `other` is set.
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The word.
#[derive(Default)]
pub(crate) struct Claim {
    word: AtomicU32,
}

impl Claim {
    /// Leaves `signals`. True when the slot was free: the caller owns it now and must go through
    /// [`take`](Self::take) and [`release`](Self::release).
    pub(crate) fn signal(&self, signals: Signals) -> bool {
        // AcqRel: the new owner sees what the last one wrote; the owner that takes the bits sees
        // what this thread wrote before.
        self.word.fetch_or(signals.0 | CLAIMED, Ordering::AcqRel) & CLAIMED == 0
    }

    /// The owner takes what has been left.
    pub(crate) fn take(&self) -> Signals {
        Signals(self.word.fetch_and(CLAIMED, Ordering::AcqRel) & !CLAIMED)
    }

    /// The owner lets go. False when signals have come meanwhile: it is still the owner.
    pub(crate) fn release(&self) -> bool {
        self.word.compare_exchange(CLAIMED, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
