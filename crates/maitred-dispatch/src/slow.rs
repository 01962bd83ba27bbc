//! Requests of routes that are slow beside the others of their site, and how those get past them.
//!
//! A slow request that **waits** may have any thread of its pool, like every other. A thread that gets one gives it to an idle
//! thread, has one made, or runs it itself after another thread has taken its place; no stall
//! has to be detected first. When all threads are in such requests, the others are run by one further thread, the [`extra`](super::extra).
//!
//! A slow request that **computes** where the language has one interpreter would keep that from all others: one at a time
//! runs, beside those that have permits of the gate.
//!
//! Requests of each kind are served in the order in which they came.

use std::collections::VecDeque;

use maitred_io::sync::atomic::{AtomicUsize, Ordering};

use crate::counters::WAITED;
use crate::fair::Waiting;
use crate::pool::{Call, Pool, Queue};
use crate::trace;

/// What the route of a request is known for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Nothing: a usual one.
    #[default]
    Usual,
    /// It waits much longer than others take.
    Waits,
    /// It computes much longer than others take.
    Computes,
}

/// What becomes of a request of a slow route.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slow<J> {
    /// The caller runs it; it is counted, see [`Pool::end_slow`].
    Run(J),
    /// Another thread runs it, now or later; the call is to be answered.
    Passed(Call),
    /// As many wait as may, and what is too much is refused.
    Refuse(J),
}

/// Slow requests of a pool that wait for a thread: those that wait, those that compute. Under the queue's lock.
pub(super) struct SlowQueue<J>([VecDeque<Waiting<J>>; 2]);

/// Counts to look at without the lock.
#[derive(Default)]
pub(super) struct SlowCounts {
    /// Requests that wait for a thread, of each kind.
    waiting: [AtomicUsize; 2],
    /// Threads in slow requests of each kind, or being found for one.
    inside: [AtomicUsize; 2],
}

impl<J> Default for SlowQueue<J> {
    fn default() -> Self {
        Self([VecDeque::new(), VecDeque::new()])
    }
}

impl<J> SlowQueue<J> {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<J>> {
        self.0.iter().flatten()
    }
}

const WAITS: usize = 0;
const COMPUTES: usize = 1;

impl<J> Pool<J> {
    /// The kind of a slow request here: computing keeps others from an interpreter only where there is one.
    fn kind(&self, pace: Pace) -> usize {
        if pace == Pace::Computes && self.exclusive { COMPUTES } else { WAITS }
    }

    /// Counts one more slow request inside, if it may be.
    fn enter_slow(&self, kind: usize) -> bool {
        if kind == COMPUTES && !self.gate.interpreter.take_long() {
            return false;
        }
        let limit = if kind == COMPUTES { usize::MAX } else { self.max() };
        let more = |inside| (inside < limit).then_some(inside + 1);
        self.slow.inside[kind].fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    fn leave_slow(&self, kind: usize) {
        if kind == COMPUTES {
            self.gate.interpreter.give_long_back();
        }
        self.slow.inside[kind].fetch_sub(1, Ordering::SeqCst);
    }

    /// Finds a thread for a request of a slow route.
    pub(super) fn pass_slow(&self, job: J, pace: Pace, now: u64) -> Slow<J> {
        let kind = self.kind(pace);
        if !self.enter_slow(kind) {
            let mut queue = self.lock();
            if queue.is_full(|| self.held_back()) {
                return Slow::Refuse(job);
            }
            self.push_slow(&mut queue, kind, job, now);
            drop(queue);
            // One of those inside may have looked for another one before.
            return self
                .next_slow()
                .map_or(Slow::Passed(Call::Nothing), |(next, kind)| self.place_slow(next, kind, now));
        }
        self.place_slow(job, kind, now)
    }

    /// Finds a thread for a slow request that is counted.
    fn place_slow(&self, job: J, kind: usize, now: u64) -> Slow<J> {
        let job = match self.give(job) {
            Ok(()) => return Slow::Passed(Call::Unparked),
            Err(job) => job,
        };
        if self.call_for_one_more() {
            self.wait_counted(job, kind, now);
            return Slow::Passed(Call::Spawn);
        }
        Slow::Run(job)
    }

    /// Has a slow request wait that is counted as inside, and is not from now on: for a thread that begins, or ends its
    /// request.
    pub(super) fn wait_slow(&self, job: J, pace: Pace, now: u64) {
        self.wait_counted(job, self.kind(pace), now);
    }

    fn wait_counted(&self, job: J, kind: usize, now: u64) {
        self.push_slow(&mut self.lock(), kind, job, now);
        self.leave_slow(kind);
    }

    fn push_slow(&self, queue: &mut Queue<J>, kind: usize, job: J, now: u64) {
        queue.counted.add(WAITED, 1);
        queue.slow.0[kind].push_back(Waiting { job, since: now });
        self.count_slow(queue);
    }

    /// Slow requests that wait for a thread.
    pub(super) fn slow_waiting(&self) -> usize {
        self.slow.waiting.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }

    pub(super) fn count_slow(&self, queue: &Queue<J>) {
        for (count, waiting) in self.slow.waiting.iter().zip(&queue.slow.0) {
            count.store(waiting.len(), Ordering::SeqCst);
        }
    }

    /// Whether a slow request waits that may run.
    pub(super) fn has_slow(&self) -> bool {
        let waits = |kind: usize| self.slow.waiting[kind].load(Ordering::SeqCst) > 0;
        (waits(WAITS) && self.slow.inside[WAITS].load(Ordering::SeqCst) < self.max())
            || (waits(COMPUTES) && self.gate.interpreter.has_room_for_long())
    }

    /// Whether all threads are in slow requests or write to a disk, while others wait: they need a thread more. A thread that
    /// writes in a slow request counts twice: then there may be one more a moment too soon.
    pub(super) fn needs_extra(&self) -> bool {
        let max = self.max();
        let away = || {
            let inside: usize = self.slow.inside.iter().map(|count| count.load(Ordering::SeqCst)).sum();
            inside + self.writing()
        };
        max > 1 && self.queued() > 0 && away() >= max
    }

    /// The oldest slow request that may run, for this thread, counted.
    pub(super) fn next_slow(&self) -> Option<(J, usize)> {
        if !self.has_slow() {
            return None;
        }
        let mut queue = self.lock();
        let since = |queue: &Queue<J>, kind: usize| queue.slow.0[kind].front().map(|waiting| waiting.since);
        let mut kinds = [WAITS, COMPUTES];
        if since(&queue, COMPUTES) < since(&queue, WAITS) {
            kinds.reverse();
        }
        let kind =
            kinds.into_iter().find(|kind| !queue.slow.0[*kind].is_empty() && self.enter_slow(*kind))?;
        let waiting = queue.slow.0[kind].pop_front();
        self.count_slow(&queue);
        waiting.map(|waiting| {
            trace::note_taken(waiting.since);
            (waiting.job, kind)
        })
    }

    /// A slow request has ended: the next one for this thread.
    pub(super) fn end_slow(&self, pace: Pace) -> Option<J> {
        // Counted off before it is looked for: whoever makes one wait looks for a place afterwards.
        self.leave_slow(self.kind(pace));
        self.next_slow().map(|(job, _)| job)
    }
}
