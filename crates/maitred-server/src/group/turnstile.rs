//! The place of this process in the line of processes that accept from the same sockets; `connection/accept_turns.rs` moves
//! it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that a process takes while no other process takes any, before it leaves the line for a [`PAUSE`].
const MOST_IN_A_ROW: u32 = 3;

/// Time outside the line, in nanoseconds: three times the wake-up time of another process. The thread gives the
/// processor away meanwhile.
pub(crate) const PAUSE: u64 = 150_000;

/// The place in the line, under a lock.
#[derive(Default)]
pub(crate) struct Turnstile(Mutex<Line>);

impl Turnstile {
    /// Locks the place. Only the holder accepts from shared sockets in this process.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place in the line, and its history.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) side: Side,
    /// Connections taken by this process in a row.
    row: u32,
}

impl Line {
    /// Notes a taken connection; `again` says that this process has taken the previous one, too. Returns whether to
    /// let other processes in.
    pub(crate) fn note_taken(&mut self, again: bool) -> bool {
        self.row = if again { self.row + 1 } else { 1 };
        let ends = self.row >= MOST_IN_A_ROW;
        if ends {
            self.row = 0;
        }
        ends
    }
}

/// The side of the line.
#[derive(Debug, Default)]
pub(crate) enum Side {
    /// In the line: connections are events.
    #[default]
    Open,
    /// Outside: this process was not free, and looks again when it is, or at `due`, in monotonic nanoseconds.
    Closed {
        /// The time.
        due: u64,
    },
    /// Outside until then: this process has taken some connections in a row.
    Paused {
        /// The time, in monotonic nanoseconds.
        until: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_with_the_third_unless_another_process_has_taken_one() {
        let mut line = Line::default();
        let mut take = |again| line.note_taken(again);
        assert_eq!(
            [false, true, true, true, true, true].map(&mut take),
            [false, false, true, false, false, true]
        );
        assert_eq!([true, true, false, true, true].map(&mut take), [false, false, false, false, true]);
    }
}
