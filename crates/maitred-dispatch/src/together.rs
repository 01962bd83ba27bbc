//! Complete responses that wait a moment, to leave together.
//!
//! A response that is sent at once wakes its peer in the middle of a batch of requests, and the sending of one
//! finds nothing of the other in the caches: together they cost a tenth to a third less. What waits is seen by
//! every thread, and somebody is always there to send it: the end of a turn of an event loop, or its driver; the
//! runner of the interpreter gate before it waits for anything, or its watcher.

use std::cell::Cell;
use std::sync::Arc;

use maitred_io::clock;

use crate::{Scheduler, Serve, Signals};

/// So many responses wait at most.
const MOST: usize = 16;

/// The first of them waits for so long at most if handlers come back at all, in nanoseconds.
const OLDEST: u64 = 500_000;

maitred_io::sync::thread_local! {
    /// Whether complete responses of this thread's handlers may wait.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static DEFERS: Cell<bool> = Cell::new(false);
}

/// Says whether complete responses of this thread's handlers may wait.
pub(crate) fn set_defers(defers: bool) {
    DEFERS.with(|cell| cell.set(defers));
}

/// Since when something waits, as the thread that made it wait has seen it.
#[derive(Default)]
pub(crate) struct Age(Option<u64>);

impl Age {
    /// Whether so many that wait have waited long enough at `now`, or are enough.
    fn is_over(&mut self, waiting: usize, now: u64) -> bool {
        let since = *self.0.get_or_insert(now);
        waiting >= MOST || now.saturating_sub(since) >= OLDEST
    }
}

impl<J: Send> Scheduler<J> {
    /// Whether a complete response of this thread waits.
    pub fn defers(&self) -> bool {
        DEFERS.with(Cell::get)
    }

    /// Sends the complete response of a connection later, with others.
    pub fn send_later(&self, token: u64) {
        self.unsent.push(token, Signals::RESUME);
        if self.looped.is_some() {
            self.driver.rouse();
        }
    }

    /// Sends what waits.
    pub(crate) fn send_unsent<S: Serve<Job = J>>(&self, server: &Arc<S>, now: u64) {
        while let Some((token, _)) = self.unsent.pop() {
            server.send(token, now);
        }
    }

    /// Sends what has had to wait for a handler that stands still; others do not for a while.
    pub(crate) fn send_promptly<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if !self.unsent.is_empty() {
            let now = clock::monotonic();
            self.pool.limiter.be_prompt(now);
            self.send_unsent(server, now);
        }
    }

    /// Sends what waits if it is much or old.
    pub(crate) fn send_unsent_in_time<S: Serve<Job = J>>(&self, server: &Arc<S>, now: u64, age: &mut Age) {
        let waiting = self.unsent.len();
        if waiting == 0 {
            *age = Age::default();
            return;
        }
        if age.is_over(waiting, now) {
            *age = Age::default();
            self.send_unsent(server, now);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn responses_leave_when_they_are_many_or_old() {
        let mut age = Age::default();
        assert!(!age.is_over(1, 5) && !age.is_over(2, 500_004));
        assert!(age.is_over(3, 500_005), "the first is old");
        assert!(!Age::default().is_over(15, 5) && Age::default().is_over(16, 5), "enough");
    }
}
