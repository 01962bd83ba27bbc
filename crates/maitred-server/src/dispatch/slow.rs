//! Requests of routes that are slow again and again run beside the others, on all but a few of the threads.
//!
//! A thread that has one gives it to an idle thread, has one made, or runs it itself after another thread has taken
//! its place; whatever it does, nobody finds out first that it stands still. When as many such requests run as may,
//! further ones wait, and a fast request finds a thread.

use super::pool::{Call, Pool, Queue, Slow};

/// One of so many threads is kept for other requests, and one at least.
const SHARE: usize = 4;

/// Threads that may run slow requests, of `max`.
pub(super) fn slow_limit(max: usize) -> usize {
    max - (max / SHARE).max(1).min(max)
}

impl<J> Pool<J> {
    /// Finds a thread for a request of a slow route.
    pub(super) fn pass_slow(&self, job: J, now: u64) -> Slow<J> {
        let mut queue = self.lock();
        if queue.slow_inside >= slow_limit(self.max()) {
            if queue.is_full() {
                return Slow::Refuse(job);
            }
            self.push_slow(&mut queue, job, now);
            return Slow::Passed(Call::Nothing);
        }
        queue.slow_inside += 1;
        // Held on: who looks for slow requests meanwhile finds this one's place taken, or the request.
        let job = match self.give(job) {
            Ok(()) => return Slow::Passed(Call::Unparked),
            Err(job) => job,
        };
        if self.call_for_one_more() {
            queue.slow_inside -= 1;
            self.push_slow(&mut queue, job, now);
            return Slow::Passed(Call::Spawn);
        }
        Slow::Run(job)
    }

    /// Has a slow request wait, whose place for such requests the caller gives back.
    pub(super) fn wait_slow(&self, job: J, now: u64) {
        let mut queue = self.lock();
        queue.slow_inside -= 1;
        self.push_slow(&mut queue, job, now);
    }

    /// Whether a slow request waits that may run.
    pub(super) fn has_slow(&self) -> bool {
        self.slow_waiting() > 0 && self.lock().slow_inside < slow_limit(self.max())
    }

    fn push_slow(&self, queue: &mut Queue<J>, job: J, now: u64) {
        queue.push_slow(job, now);
        self.count_slow(queue);
    }

    /// A slow request for this thread, which then holds one of the places for them.
    pub(super) fn next_slow(&self) -> Option<J> {
        if self.slow_waiting() == 0 {
            return None;
        }
        let mut queue = self.lock();
        if queue.slow_inside >= slow_limit(self.max()) {
            return None;
        }
        let waiting = queue.slow.pop_front()?;
        queue.slow_inside += 1;
        self.count_slow(&queue);
        Some(waiting.job)
    }

    /// A slow request has ended: the next one for this thread, which else gives its place back.
    pub(super) fn end_slow(&self) -> Option<J> {
        let mut queue = self.lock();
        let next = match queue.slow_inside > slow_limit(self.max()) {
            // Fewer may run since the limits were changed.
            true => None,
            false => queue.slow.pop_front(),
        };
        if next.is_none() {
            queue.slow_inside -= 1;
        }
        self.count_slow(&queue);
        next.map(|waiting| waiting.job)
    }
}

#[cfg(test)]
mod tests {
    use super::slow_limit;

    #[test]
    fn a_thread_at_least_is_kept_for_fast_requests() {
        let limits: Vec<_> = [0, 1, 2, 3, 4, 8, 10, 20].map(slow_limit).into();
        assert_eq!(limits, [0, 0, 1, 2, 3, 6, 8, 15]);
    }
}
