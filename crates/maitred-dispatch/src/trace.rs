//! The state of a scheduler at the moment in which a thread got a request, for the dispatch trace, and only read while
//! that is on. The thread notes its own part here in passing.

use std::cell::Cell;
use std::fmt;

use maitred_io::sync::atomic::Ordering;

use crate::Scheduler;

maitred_io::sync::thread_local! {
    static SERVED: Cell<u64> = Cell::new(0);
    /// The start of the wait of the request that this thread took from a queue last, in monotonic nanoseconds.
    static SINCE: Cell<u64> = Cell::new(0);
}

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Requests that wait in the queue of its pool.
    pub waiting: usize,
    /// Threads of the pool.
    pub threads: usize,
    /// Threads of the pool that are parked.
    pub idle: usize,
    /// Requests that this thread may still run; none without a limit.
    pub budget: Option<u64>,
    /// The request has been in the queue; else a thread got it directly.
    pub queued: bool,
}

impl<J: Send> Scheduler<J> {
    /// The trace of a request of this pool that was complete at `complete`, and that this thread has now.
    pub fn trace(&self, pool: usize, complete: u64) -> Trace {
        let pool = self.pool_at(pool);
        let budget = pool.threads.budget.load(Ordering::Relaxed);
        let has_budget = !self.is_looped() && budget != u64::MAX;
        Trace {
            waiting: pool.queued(),
            threads: pool.threads.count(),
            idle: pool.parked(),
            budget: has_budget.then(|| budget.saturating_sub(SERVED.with(Cell::get))),
            // An older time belongs to an earlier request that was not traced.
            queued: SINCE.with(Cell::take) >= complete.max(1),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waiting, threads, idle, budget, queued } = *self;
        let budget = budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string());
        let way = if queued { "from the queue" } else { "direct" };
        write!(f, "{waiting} waiting, {threads} threads, {idle} idle, budget {budget}, {way}")
    }
}

pub(super) fn note_served(served: u64) {
    SERVED.with(|cell| cell.set(served));
}

/// Notes that this thread takes a request that has been in a queue since then.
pub(super) fn note_taken(since: u64) {
    SINCE.with(|cell| cell.set(since));
}
