//! What waits for a thread of a pool.

use std::collections::VecDeque;

use super::slow::SlowQueue;
use crate::settings::{Overflow, PoolLimits};

/// First in, first out; requests of slow routes beside the others.
pub(super) struct Queue<J> {
    pub(super) jobs: VecDeque<Waiting<J>>,
    /// Requests of slow routes.
    pub(super) slow: SlowQueue<J>,
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
    /// Requests that have waited, and that were refused, so far.
    pub(super) waited: u64,
    pub(super) refused: u64,
    /// Requests that were taken from it so far.
    pub(super) taken: u64,
    /// Since when usual requests wait without a break, in monotonic nanoseconds.
    pub(super) waits_since: u64,
}

pub(super) struct Waiting<J> {
    pub(super) job: J,
    /// In monotonic nanoseconds.
    pub(super) since: u64,
}

impl<J> Queue<J> {
    /// An empty one.
    pub(super) fn new(limits: &PoolLimits) -> Self {
        Self {
            jobs: VecDeque::new(),
            slow: SlowQueue::default(),
            capacity: limits.queue,
            overflow: limits.overflow,
            waited: 0,
            refused: 0,
            taken: 0,
            waits_since: 0,
        }
    }

    /// Since when the first request waits, in monotonic nanoseconds.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.jobs.front().map(|waiting| waiting.since)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether what comes now is refused; counted. Of those that wait `held_back` do not wait for a thread.
    pub(super) fn is_full(&mut self, held_back: impl FnOnce() -> usize) -> bool {
        let waiting = self.jobs.len() + self.slow.len();
        let full = self.overflow == Overflow::Refuse
            && waiting >= self.capacity
            && waiting.saturating_sub(held_back()) >= self.capacity;
        self.refused += u64::from(full);
        full
    }
}
