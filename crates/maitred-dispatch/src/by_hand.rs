//! A scheduler without threads: a test serves, in the order that it likes.

use std::sync::Arc;

use maitred_io::clock;
use maitred_pool::RouteClass;
use maitred_turns::Signals;

use super::{Scheduler, Serve};
use crate::app_thread::AppThread;

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

/// The calling thread, as a thread of the pool whose threads poll, in application code.
pub struct Inside<'a, J>(&'a Scheduler<J>, Arc<AppThread>);

impl<'a, J: Send> Inside<'a, J> {
    /// Begins.
    pub fn enter(scheduler: &'a Scheduler<J>) -> Self {
        let thread = scheduler.pool.limiter.add();
        thread.enter(clock::monotonic(), 0, RouteClass::Normal);
        Self(scheduler, thread)
    }
}

impl<J> Drop for Inside<'_, J> {
    fn drop(&mut self) {
        self.1.leave();
        self.0.pool.limiter.remove(&self.1);
    }
}
