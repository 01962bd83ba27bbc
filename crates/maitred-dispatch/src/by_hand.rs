//! A scheduler without threads: a test serves, in the order that it likes.

use std::sync::Arc;

use maitred_turns::Signals;

use super::{Scheduler, Serve};

impl<J: Send> Scheduler<J> {
    /// The next entry of the ready list.
    pub fn next_ready(&self) -> Option<(u64, Signals)> {
        self.ready.pop()
    }

    /// Gives a request to its pool, as a thread does that has read it.
    pub fn give<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        self.submit(job, server);
    }

    /// The next request that waits in the pool whose threads poll.
    pub fn next_queued(&self) -> Option<J> {
        self.pool.pop()
    }
}
