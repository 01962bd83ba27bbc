//! The application's work on a body of which nothing is sent: the request is HEAD, or a file takes its place.
//!
//! Promises: the response is complete with the head. Code that makes the body of a GET ends as usual if it takes less
//! than [`TIME_TO_END`] and makes less than [`MOST_DROPPED`]; endless code sees an error as for a client that has gone.

use std::time::{Duration, Instant};

/// How long parts are dropped without an error: an application that makes a page in parts has ended by then, one that
/// streams has not.
const TIME_TO_END: Duration = Duration::from_secs(1);

/// Bytes that are dropped without an error: few pages in parts have more, and an application that makes parts without a
/// pause would have the interpreter for all of that time.
const MOST_DROPPED: u64 = 1024 * 1024;

/// Since when nothing more is sent, and how much was dropped.
#[derive(Clone, Copy)]
pub(crate) struct Unwanted {
    since: Instant,
    dropped: u64,
}

impl Unwanted {
    pub(crate) fn now() -> Self {
        Self { since: Instant::now(), dropped: 0 }
    }

    /// Counts a dropped part of this length. Returns whether the application has to see an error.
    pub(crate) fn has_to_end(&mut self, length: u64) -> bool {
        self.dropped = self.dropped.saturating_add(length);
        self.dropped > MOST_DROPPED || self.since.elapsed() > TIME_TO_END
    }
}
