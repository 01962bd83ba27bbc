//! How many threads a pool has: waiting requests as a reason for one more thread, and the end of a thread.
//!
//! ```text
//! waiting requests   0 ....... low mark ....... high mark ....... capacity
//! one more thread      none      | one at a time  | at once, up to max
//! budget spent         it ends   | it goes on serving
//! ```
//! Promises: no clock, no lock, no counting of its own. The caller holds the pool's lock, passes its present limits and
//! the time, and counts as it is told; so a change at run time holds from the next question on.
//!
//! Leaves out: the other reason for a thread, that none polls. Without a limiter a request is run by the thread that reads it, so the
//! usual pool has nothing in its queue, and a thread may be made whenever none polls and there are fewer than the most.

use crate::settings::PoolLimits;

/// Threads of a pool end so far apart, idle ones and those that have run enough, in nanoseconds: those of one burst would end, and be
/// made anew, in one moment. Half and double: a pool shrinks in half or twice the time.
#[cfg(not(shuttle))]
pub const ENDS_APART: u64 = 1_000_000_000;

/// Time is not simulated.
#[cfg(shuttle)]
pub const ENDS_APART: u64 = 0;

/// A pool in one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that wait.
    pub queued: usize,
    /// Threads that exist or have been asked for.
    pub threads: usize,
    /// Threads that have not begun: the system may refuse them for long.
    pub starting: usize,
}

impl Load {
    /// Threads that there are.
    pub fn begun(&self) -> usize {
        self.threads.saturating_sub(self.starting)
    }
}

/// The next step of a thread after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The thread goes on serving.
    GoOn,
    /// The thread ends, and is not counted any more; a new one is to be made and counted in its place if `replace` says
    /// so, as the pool would have too few without it.
    End {
        /// A new thread is to be made.
        replace: bool,
    },
}

impl PoolLimits {
    /// Requests below which no thread is made: the queue's percentage, rounded down.
    pub fn low(&self) -> usize {
        share(self.queue, self.low_mark)
    }

    /// Requests beyond which threads are made in parallel, if they ever are.
    pub fn high(&self) -> Option<usize> {
        // A queue can be longer than it may be now.
        (self.high_mark < 100).then(|| share(self.queue, self.high_mark))
    }

    /// Threads that are kept.
    pub fn floor(&self) -> usize {
        self.min_threads.min(self.max_threads)
    }

    /// Whether one more thread may be made because requests wait. Never beyond the most; always below the least, and
    /// where no thread exists or is on its way: a request that waits there would wait for ever. Otherwise by the marks:
    /// not below the low one, one at a time up to the high one, in parallel beyond it.
    ///
    /// A request below the low mark does not wait for ever either: a thread exists, and looks at the queue before it
    /// rests.
    pub fn may_create(&self, load: Load) -> bool {
        let Load { queued, threads, starting } = load;
        let waits = queued > 0 && queued >= self.low();
        let is_many = self.high().is_some_and(|mark| queued > mark);
        threads < self.max_threads
            && (threads == 0 || threads < self.min_threads || (waits && (starting == 0 || is_many)))
    }

    /// Whether a thread ends that has had nothing to do since `idle_since`; both times in nanoseconds of one clock.
    /// Each thread has its own time, and [`Ends`] has those that reach it together end one by one.
    pub fn ends_idle(&self, load: Load, idle_since: u64, now: u64) -> bool {
        let (begun, idle) = (load.begun(), u128::from(now.saturating_sub(idle_since)));
        begun > self.max_threads
            || (begun > self.floor() && load.queued == 0 && idle >= self.thread_idle.as_nanos())
    }
}

/// `percent` of `whole`, rounded down.
fn share(whole: usize, percent: u8) -> usize {
    let (hundreds, rest, percent) = (whole / 100, whole % 100, usize::from(percent));
    hundreds.saturating_mul(percent).saturating_add(rest * percent.min(100) / 100)
}

/// When threads of a pool may end next for one reason: one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    next: u64,
}

impl Ends {
    /// Whether a thread that is idle may end at `now`, in monotonic nanoseconds; else how much longer it stays.
    pub fn end(&mut self, now: u64) -> Result<(), u64> {
        if now < self.next {
            return Err(self.next - now);
        }
        self.next = now + ENDS_APART;
        Ok(())
    }

    /// Decides the next step of a thread that has just finished a request and has `served` of them behind it, this one
    /// included. `now` in nanoseconds of a clock that does not go back.
    ///
    /// It ends at once where the pool has more threads than the most, which has been lowered then. With its budget
    /// spent it ends unless requests wait above the low mark, another one has ended for that within
    /// [`ENDS_APART`], or one that was asked for has not begun; it asks again after its next request, and where it
    /// has none its idle time ends it.
    pub fn after_request(&mut self, limits: &PoolLimits, load: Load, served: u64, now: u64) -> After {
        let Load { queued, threads, starting } = load;
        if load.begun() > limits.max_threads {
            return After::End { replace: false };
        }
        let spent = limits.thread_requests > 0 && served >= limits.thread_requests;
        if !spent || starting > 0 || queued > limits.low() || self.end(now).is_err() {
            return After::GoOn;
        }
        let left = threads.saturating_sub(1);
        After::End { replace: left < limits.floor() || (left == 0 && queued > 0) }
    }
}

#[cfg(test)]
#[path = "scaling_tests.rs"]
mod tests;
