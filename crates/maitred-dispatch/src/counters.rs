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

/// Written under the lock of the counts of threads.
pub(crate) type ThreadCounter = LockedCounters<1>;
pub(crate) const MADE: usize = 0;

/// That of the threads of this pool.
pub(crate) fn of_threads(arena: &Arena, pool: &str) -> ThreadCounter {
    LockedCounters::in_arena(arena, [series(MADE_TOTAL, &[("pool", pool)])])
}
