//! Where this process stands in the line of those that accept from the same sockets; `connection/turns.rs` moves it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that a worker takes while no other one takes any, before it leaves the line for a [`PAUSE`].
const MOST_IN_A_ROW: u32 = 3;

/// How long it stays out, in nanoseconds: three times what another one needs to wake. Its thread gives the processor away meanwhile.
pub(crate) const PAUSE: u64 = 150_000;

/// The place in the line.
#[derive(Default)]
pub(crate) struct Turnstile(Mutex<Line>);

impl Turnstile {
    /// Whoever has it is the only one of this process that accepts from shared sockets.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place, and what led there.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) side: Side,
    /// Connections taken in a row.
    row: u32,
}

impl Line {
    /// One was taken, and so was the one before, if `again`, by this process: whether others are to be let in.
    pub(crate) fn note_taken(&mut self, again: bool) -> bool {
        self.row = if again { self.row + 1 } else { 1 };
        let ends = self.row >= MOST_IN_A_ROW;
        if ends {
            self.row = 0;
        }
        ends
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
    /// Out of it until then: it has taken some in a row.
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
