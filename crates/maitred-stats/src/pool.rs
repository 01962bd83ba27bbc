//! Counters of a pool of threads, its figures at one moment, and the names of both for readers of an [`Arena`].

use crate::exposition::series;
use crate::{Arena, LockedCounters};

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

/// Counters of the queue of a pool; written under its lock.
pub type QueueCounters = LockedCounters<4>;
/// [`WAITED_TOTAL`] in [`QueueCounters`].
pub const WAITED: usize = 0;
/// [`REFUSED_TOTAL`] in [`QueueCounters`].
pub const REFUSED: usize = 1;
/// [`IDLE_REQUESTS_TOTAL`] in [`QueueCounters`].
pub const IDLE_REQUESTS: usize = 2;
/// [`IDLE_SECONDS_TOTAL`] in [`QueueCounters`].
pub const IDLE_NANOS: usize = 3;

/// The counters of the queue of this pool.
pub fn queue_counters(arena: &Arena, pool: &str) -> QueueCounters {
    let names = [WAITED_TOTAL, REFUSED_TOTAL, IDLE_REQUESTS_TOTAL, IDLE_SECONDS_TOTAL];
    LockedCounters::in_arena(arena, names.map(|name| series(name, &[("pool", pool)])))
}

/// Why a thread was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The pool had fewer threads than the least.
    Least,
    /// Requests waited.
    Waiting,
    /// No thread was left that reads.
    Reading,
    /// The request of another one has timed out, and that one has not returned.
    Lost,
    /// Another thread has ended after as many requests as it may run.
    Spent,
}

/// The name of each [`Start`], in its order.
pub const START_REASONS: [&str; 5] = ["least", "waiting", "reading", "lost", "spent"];

/// Why a thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The thread had nothing to do for as long as it may.
    Idle,
    /// The pool had more threads than the most, which was lowered, or a lost thread has returned.
    Limit,
    /// The thread has run as many requests as it may.
    Spent,
    /// The server stops.
    Stop,
}

/// The name of each [`End`], in its order.
pub const END_REASONS: [&str; 4] = ["idle", "limit", "spent", "stop"];

/// Counters of the threads of a pool; written under the lock of their counts.
#[derive(Default)]
pub struct ThreadCounters(LockedCounters<{ 1 + START_REASONS.len() + END_REASONS.len() }>);

impl ThreadCounters {
    const MADE: usize = 0;
    const STARTS: usize = 1;
    const ENDS: usize = Self::STARTS + START_REASONS.len();

    /// The counters of the threads of this pool.
    pub fn in_arena(arena: &Arena, pool: &str) -> Self {
        let names = std::array::from_fn(|which| match which.checked_sub(Self::STARTS) {
            None => series(MADE_TOTAL, &[("pool", pool)]),
            Some(start) => match start.checked_sub(START_REASONS.len()) {
                None => series(STARTS_TOTAL, &[("pool", pool), ("reason", START_REASONS[start])]),
                Some(end) => series(ENDS_TOTAL, &[("pool", pool), ("reason", END_REASONS[end])]),
            },
        });
        Self(LockedCounters::in_arena(arena, names))
    }

    /// Counts a thread that was made. Returns how many have been.
    pub fn made(&self) -> u64 {
        self.0.add(Self::MADE, 1);
        self.total()
    }

    /// How many have been made.
    pub fn total(&self) -> u64 {
        self.0.total(Self::MADE)
    }

    /// Threads were asked for.
    pub fn starts(&self, reason: Start, count: usize) {
        self.0.add(Self::STARTS + reason as usize, count as u64);
    }

    /// Counts the end of a thread.
    pub fn ends(&self, reason: End) {
        self.0.add(Self::ENDS + reason as usize, 1);
    }

    /// The counts of all starts and ends, in the order of their names.
    pub fn by_reason(&self) -> ([u64; START_REASONS.len()], [u64; END_REASONS.len()]) {
        let of = |which| self.0.total(which);
        (std::array::from_fn(|at| of(Self::STARTS + at)), std::array::from_fn(|at| of(Self::ENDS + at)))
    }
}

/// Waits of requests although a thread was idle, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idleness {
    /// Requests that waited.
    pub requests: u64,
    /// How long all of them together, in nanoseconds.
    pub total_ns: u64,
    /// The longest wait, in nanoseconds.
    pub longest_ns: u64,
}

/// The figures of one pool.
#[derive(Clone, Debug)]
pub struct PoolFigures {
    /// The name of the pool.
    pub name: String,
    /// Threads that exist or have been asked for.
    pub threads: usize,
    /// Threads that have not begun.
    pub starting: usize,
    /// Threads whose request has timed out and that have not returned.
    pub lost: usize,
    /// The most there may be.
    pub max: usize,
    /// Threads that sleep until a request comes.
    pub parked: usize,
    /// Threads ever asked for.
    pub made: usize,
    /// Threads asked for, by [reason](START_REASONS).
    pub starts: [u64; START_REASONS.len()],
    /// Threads that have ended, by [reason](END_REASONS).
    pub ends: [u64; END_REASONS.len()],
    /// Requests that wait now.
    pub queued: usize,
    /// Requests that have waited since the start.
    pub waited: u64,
    /// Requests refused since the start because the queue was full.
    pub refused: u64,
    /// Requests that waited although a thread was idle.
    pub idleness: Idleness,
}

impl PoolFigures {
    /// Adds those of another part of the pool.
    pub fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        self.starting += other.starting;
        self.lost += other.lost;
        self.max += other.max;
        self.parked += other.parked;
        self.made += other.made;
        self.starts.iter_mut().zip(other.starts).for_each(|(own, more)| *own += more);
        self.ends.iter_mut().zip(other.ends).for_each(|(own, more)| *own += more);
        self.queued += other.queued;
        self.waited += other.waited;
        self.refused += other.refused;
        self.idleness.requests += other.idleness.requests;
        self.idleness.total_ns += other.idleness.total_ns;
        self.idleness.longest_ns = self.idleness.longest_ns.max(other.idleness.longest_ns);
    }
}
