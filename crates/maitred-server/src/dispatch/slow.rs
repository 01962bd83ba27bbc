//! Requests of routes that are slow again and again run beside the others, on all but a few of the threads.
//!
//! A thread that has one gives it to an idle thread, has one made, or runs it itself after another thread has taken
//! its place; whatever it does, nobody finds out first that it stands still. When as many such requests run as may,
//! further ones wait, and a fast request finds a thread.

use maitred_io::sync::atomic::Ordering;

use super::pool::{Call, Pool};
use super::queue::Queue;

/// One of so many threads is kept for other requests, and one at least.
const SHARE: usize = 4;

/// What becomes of a request of a slow route.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slow<J> {
    /// The caller runs it; it holds one of the places for such requests, see [`Pool::end_slow`].
    Run(J),
    /// Another thread runs it, now or later; the call is to be answered.
    Passed(Call),
    /// As many wait as may, and what is too much is refused.
    Refuse(J),
}

/// Threads that may run slow requests, of `max`. One that has become the only one may: some may wait from before.
pub(super) fn slow_limit(max: usize) -> usize {
    if max == 1 { 1 } else { max - (max / SHARE).max(1).min(max) }
}

impl<J> Pool<J> {
    /// Takes one of the places for slow requests, if one is free.
    fn enter_slow(&self) -> bool {
        let limit = slow_limit(self.max());
        let more = |inside| (inside < limit).then_some(inside + 1);
        self.slow_inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Finds a thread for a request of a slow route.
    pub(super) fn pass_slow(&self, job: J, now: u64) -> Slow<J> {
        if !self.enter_slow() {
            let mut queue = self.lock();
            if queue.is_full() {
                return Slow::Refuse(job);
            }
            self.push_slow(&mut queue, job, now);
            drop(queue);
            // One of those inside may have looked for another one before.
            return self.next_slow().map_or(Slow::Passed(Call::Nothing), |next| self.place_slow(next, now));
        }
        self.place_slow(job, now)
    }

    /// Finds a thread for a slow request that has its place.
    fn place_slow(&self, job: J, now: u64) -> Slow<J> {
        let job = match self.give(job) {
            Ok(()) => return Slow::Passed(Call::Unparked),
            Err(job) => job,
        };
        if self.call_for_one_more() {
            self.wait_slow(job, now);
            return Slow::Passed(Call::Spawn);
        }
        Slow::Run(job)
    }

    /// Has a slow request wait, whose place the caller gives back: for a thread that begins, or ends its request.
    pub(super) fn wait_slow(&self, job: J, now: u64) {
        self.push_slow(&mut self.lock(), job, now);
        self.slow_inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a slow request waits that may run.
    pub(super) fn has_slow(&self) -> bool {
        self.slow_waiting() > 0 && self.slow_inside.load(Ordering::SeqCst) < slow_limit(self.max())
    }

    fn push_slow(&self, queue: &mut Queue<J>, job: J, now: u64) {
        queue.push_slow(job, now);
        self.count_slow(queue);
    }

    /// A slow request for this thread, which then has a place.
    pub(super) fn next_slow(&self) -> Option<J> {
        if self.slow_waiting() == 0 || !self.enter_slow() {
            return None;
        }
        let next = self.pop_slow();
        if next.is_none() {
            self.slow_inside.fetch_sub(1, Ordering::SeqCst);
        }
        next
    }

    fn pop_slow(&self) -> Option<J> {
        let mut queue = self.lock();
        let waiting = queue.slow.pop_front();
        self.count_slow(&queue);
        waiting.map(|waiting| {
            super::trace::note_taken(waiting.since);
            waiting.job
        })
    }

    /// A slow request has ended: the next one for this thread, which else gives its place back.
    pub(super) fn end_slow(&self) -> Option<J> {
        // Given back before it is looked for: whoever makes one wait looks for a place afterwards.
        self.slow_inside.fetch_sub(1, Ordering::SeqCst);
        self.next_slow()
    }
}

#[cfg(test)]
mod tests {
    use super::slow_limit;

    #[test]
    fn a_thread_at_least_is_kept_for_fast_requests() {
        let limits: Vec<_> = [0, 1, 2, 3, 4, 8, 10, 20].map(slow_limit).into();
        assert_eq!(limits, [0, 1, 1, 2, 3, 6, 8, 15]);
    }
}
