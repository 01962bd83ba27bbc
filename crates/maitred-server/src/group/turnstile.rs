//! Where this process stands in the line of those that accept from the same sockets; `connection/turns.rs` moves it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections taken in a row, before the engine or the application has answered any request, after which others are let in.
const MOST_IN_A_ROW: u32 = 8;

/// What is further apart, in nanoseconds, is no row.
pub(crate) const ROW_APART: u64 = 1_000_000;

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
    row: Row,
}

impl Line {
    /// One was taken at `now`, when so many requests had been answered: whether others are to be let in.
    pub(crate) fn note_taken(&mut self, answered: u64, now: u64) -> bool {
        self.row.note_taken(answered, now)
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

/// Connections that this process has taken in a row.
#[derive(Debug, Default)]
struct Row {
    length: u32,
    answered: u64,
    last: u64,
}

impl Row {
    fn note_taken(&mut self, answered: u64, now: u64) -> bool {
        if answered != self.answered || now.saturating_sub(self.last) > ROW_APART {
            self.length = 0;
        }
        (self.answered, self.last) = (answered, now);
        self.length += 1;
        let ends = self.length == MOST_IN_A_ROW;
        if ends {
            self.length = 0;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_with_the_eighth_unless_something_was_answered_or_time_has_passed() {
        let mut row = Row::default();
        let mut take = |answered, now| row.note_taken(answered, now);
        let ends: Vec<_> = (0..20).filter(|number| take(5, *number)).collect();
        assert_eq!(ends, [7, 15]);
        assert!((0..100).all(|number| !take(number, 20)), "requests are answered");
        assert!((0..100).all(|number| !take(100, 20 + number * (ROW_APART + 1))), "they are far apart");
    }
}
