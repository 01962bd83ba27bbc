//! What a pool counts, and what that is called where others read it ([`Arena`]).

use maitred_stats::exposition::series;
use maitred_stats::{Arena, LockedCounters};

/// Requests that have waited for a thread.
pub const WAITED_TOTAL: &str = "maitred_pool_waited_total";
/// Requests refused because the queue was full.
pub const REFUSED_TOTAL: &str = "maitred_pool_refused_total";
/// Requests that waited although a thread was idle.
pub const IDLE_REQUESTS_TOTAL: &str = "maitred_pool_idle_while_waiting_requests_total";
/// How long they waited; in an arena in nanoseconds.
pub const IDLE_SECONDS_TOTAL: &str = "maitred_pool_idle_while_waiting_seconds_total";
/// Threads ever asked for.
pub const MADE_TOTAL: &str = "maitred_pool_threads_made_total";
/// Threads ever asked for, with the label `reason`: one of [`START_REASONS`].
pub const STARTS_TOTAL: &str = "maitred_pool_thread_starts_total";
/// Threads that have ended, with the label `reason`: one of [`END_REASONS`].
pub const ENDS_TOTAL: &str = "maitred_pool_thread_ends_total";
/// Requests run by a thread of another poll group.
pub const MIGRATIONS_TOTAL: &str = "maitred_migrations_total";

/// Written under the lock of the queue.
pub(crate) type QueueCounters = LockedCounters<4>;
pub(crate) const WAITED: usize = 0;
pub(crate) const REFUSED: usize = 1;
pub(crate) const IDLE_REQUESTS: usize = 2;
pub(crate) const IDLE_NANOS: usize = 3;

/// Those of the queue of this pool.
pub(crate) fn of_queue(arena: &Arena, pool: &str) -> QueueCounters {
    let names = [WAITED_TOTAL, REFUSED_TOTAL, IDLE_REQUESTS_TOTAL, IDLE_SECONDS_TOTAL];
    LockedCounters::in_arena(arena, names.map(|name| series(name, &[("pool", pool)])))
}

/// Why a thread was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// There were fewer than the least.
    Least,
    /// Requests waited.
    Waiting,
    /// No thread was left that polls.
    Reading,
    /// The request of another one has timed out, and that one has not returned.
    Lost,
    /// Another one has ended after as many requests as it may run.
    Spent,
}

/// Why a thread was asked for: there were fewer than the least; requests waited; no thread was left that polls; the request of another one
/// has timed out and it has not returned; another one has ended after as many requests as it may run.
pub const START_REASONS: [&str; 5] = ["least", "waiting", "reading", "lost", "spent"];

/// Why a thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It had nothing to do for as long as it may.
    Idle,
    /// There were more than the most, which was lowered, or one that was lost has returned.
    Limit,
    /// It has run as many requests as it may.
    Spent,
    /// The server stops.
    Stop,
}

/// Why a thread has ended: it was idle for as long as it may be; there were more than the most; it has run as many requests as it may;
/// the server stops.
pub const END_REASONS: [&str; 4] = ["idle", "limit", "spent", "stop"];

/// Written under the lock of the counts of threads.
pub(crate) struct ThreadCounters(LockedCounters<{ 1 + START_REASONS.len() + END_REASONS.len() }>);

impl ThreadCounters {
    const MADE: usize = 0;
    const STARTS: usize = 1;
    const ENDS: usize = Self::STARTS + START_REASONS.len();

    pub(crate) fn new() -> Self {
        Self(LockedCounters::new())
    }

    /// Those of the threads of this pool.
    pub(crate) fn in_arena(arena: &Arena, pool: &str) -> Self {
        let names = std::array::from_fn(|which| match which.checked_sub(Self::STARTS) {
            None => series(MADE_TOTAL, &[("pool", pool)]),
            Some(start) => match start.checked_sub(START_REASONS.len()) {
                None => series(STARTS_TOTAL, &[("pool", pool), ("reason", START_REASONS[start])]),
                Some(end) => series(ENDS_TOTAL, &[("pool", pool), ("reason", END_REASONS[end])]),
            },
        });
        Self(LockedCounters::in_arena(arena, names))
    }

    /// One more is made. The number of those that have been.
    pub(crate) fn made(&self) -> u64 {
        self.0.add(Self::MADE, 1);
        self.total()
    }

    /// Those that have been made.
    pub(crate) fn total(&self) -> u64 {
        self.0.total(Self::MADE)
    }

    pub(crate) fn starts(&self, reason: Start, count: usize) {
        self.0.add(Self::STARTS + reason as usize, count as u64);
    }

    pub(crate) fn ends(&self, reason: End) {
        self.0.add(Self::ENDS + reason as usize, 1);
    }

    /// The counts of all starts and ends, in the order of their labels.
    pub(crate) fn by_reason(&self) -> ([u64; START_REASONS.len()], [u64; END_REASONS.len()]) {
        let of = |which| self.0.total(which);
        (std::array::from_fn(|at| of(Self::STARTS + at)), std::array::from_fn(|at| of(Self::ENDS + at)))
    }
}
