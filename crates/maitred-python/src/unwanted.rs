//! What an application goes on to make of a body of which nothing is sent: the request is HEAD, or a file takes its place.
//!
//! Promises: the response is complete with the head, whatever the application does. Code that makes the body of a GET ends as
//! usual if it takes less than [`TIME_TO_END`], and sees an error as for a client that has gone if it goes on for ever.

use std::time::{Duration, Instant};

/// How long parts are dropped without a word: an application that makes a page in parts has done so by then, one that streams
/// has not ended.
const TIME_TO_END: Duration = Duration::from_secs(1);

/// Since when nothing more is sent.
#[derive(Clone, Copy)]
pub(crate) struct Unwanted(Instant);

impl Unwanted {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// Whether the application has to be told.
    pub(crate) fn is_over(self) -> bool {
        self.0.elapsed() > TIME_TO_END
    }
}
