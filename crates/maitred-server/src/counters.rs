//! What is counted of all exchanges together.

use maitred_log::{End, Outcome};
use maitred_stats::Counter;

/// Counts since the start of the server.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: Counter,
    pub(crate) requests: Counter,
    pub(crate) refused: Counter,
    pub(crate) errors: Counter,
    pub(crate) cut: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) body_bytes: Counter,
}

impl Counters {
    pub(crate) fn count(&self, outcome: &Outcome<'_>) {
        self.requests.add(1);
        self.body_bytes.add(outcome.body_bytes);
        if outcome.status.code() >= 500 {
            self.errors.add(1);
        }
        if outcome.end != End::Complete {
            self.cut.add(1);
        }
    }
}
