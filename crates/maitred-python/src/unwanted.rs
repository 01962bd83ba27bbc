//! What an application goes on to make of a body of which nothing is sent: the request is HEAD, or a file takes its place.
//!
//! Promises: the response is complete with the head, whatever the application does. Code that makes the body of a GET ends as
//! usual if it takes less than [`TIME_TO_END`] and makes less than [`MOST_DROPPED`], and sees an error as for a client that has gone
//! if it goes on for ever.

use std::time::{Duration, Instant};

/// How long parts are dropped without a word: an application that makes a page in parts has done so by then, one that streams
/// has not ended.
const TIME_TO_END: Duration = Duration::from_secs(1);

/// Bytes that are dropped without a word: few pages in parts have more, and an application that makes parts without a pause would
/// have the interpreter for all of that time.
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

    /// A part of this length is dropped. Whether the application has to be told.
    pub(crate) fn has_to_end(&mut self, length: u64) -> bool {
        self.dropped = self.dropped.saturating_add(length);
        self.dropped > MOST_DROPPED || self.since.elapsed() > TIME_TO_END
    }
}
