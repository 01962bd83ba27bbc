//! The clock of a thread that serves: a turn that follows another one need not look again.

use maitred_io::clock;

/// The state of a serving thread between its turns.
pub trait TurnContext: Default + Send {
    /// The clock of the thread.
    fn clock(&self) -> &TurnClock;

    /// The clock of the thread, to be set.
    fn clock_mut(&mut self) -> &mut TurnClock;
}

/// All times in monotonic nanoseconds.
#[derive(Debug, Default)]
pub struct TurnClock {
    /// The time now, if this thread has just looked at the clock.
    fresh: Option<u64>,
    /// The last [`now`](Self::now).
    last: u64,
}

impl TurnClock {
    /// The time now: the begin of a turn.
    pub fn now(&mut self) -> u64 {
        self.last = self.fresh.take().unwrap_or_else(clock::monotonic);
        self.last
    }

    /// The thread has just looked at the clock, or (`None`) may have waited since it did.
    pub fn set_now(&mut self, now: Option<u64>) {
        self.fresh = now;
    }

    /// When the present turn began.
    #[must_use]
    pub fn turn_began(&self) -> u64 {
        self.last
    }
}

/// A thread may keep nothing but its clock.
impl TurnContext for TurnClock {
    fn clock(&self) -> &TurnClock {
        self
    }

    fn clock_mut(&mut self) -> &mut TurnClock {
        self
    }
}
