//! How many threads a pool has: when requests that wait are a reason for one more, and when a thread ends.
//!
//! ```text
//! waiting requests   0 ....... low mark ....... high mark ....... capacity
//! one more thread      none      | one at a time  | at once, up to max
//! budget spent         it ends   | it goes on serving
//! ```
//! Promises: no clock, no lock, no counting of its own. Whoever asks holds the pool's lock, brings the pool's
//! [`Rule`] of this moment and the time, and counts as it is told; so what is changed at run time holds from the next
//! question on.
//!
//! Leaves out: the other reason for a thread, that nobody polls. A request is run by the thread that reads it, so the
//! usual pool has nothing in its queue, and 10 % of a queue of 1,000 would be an absurd threshold for the second
//! thread. Whoever finds that nobody polls may have a thread made whenever there are fewer than the most; what is
//! here is the rule for requests that wait though somebody polls.

use crate::settings::PoolLimits;

/// How far apart threads of a pool end because their budget is spent, in nanoseconds. Threads that were made together
/// have spent it together, and without this the pool would have to make all of them anew in one moment.
#[cfg(not(shuttle))]
pub(crate) const BUDGET_ENDS_APART: u64 = 1_000_000_000;

/// Time is not simulated.
#[cfg(shuttle)]
pub(crate) const BUDGET_ENDS_APART: u64 = 0;

/// How far apart threads of a pool end because they are idle, in nanoseconds. Threads that were last called in one burst have
/// been idle equally long.
#[cfg(not(shuttle))]
const IDLE_ENDS_APART: u64 = 1_000_000_000;

/// Time is not simulated.
#[cfg(shuttle)]
const IDLE_ENDS_APART: u64 = 0;

/// From this percentage on the high mark cannot be reached.
const NEVER_PARALLEL: u32 = 100;

/// The limits of a pool, as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Threads that are kept however idle. More than `max` means `max`.
    pub min: usize,
    /// The most threads.
    pub max: usize,
    /// Requests that may wait.
    pub capacity: usize,
    /// Below so many per cent of the capacity no thread is made; 0: every waiting request is a reason for one.
    pub low: u32,
    /// Above so many per cent threads are made in parallel; 100 or more: never.
    pub high: u32,
    /// How long a thread above `min` may have nothing to do, in nanoseconds.
    pub idle: u64,
    /// Requests after which a thread ends; 0: never.
    pub budget: u64,
}

/// A pool in one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Requests that wait.
    pub queued: usize,
    /// Threads that exist or have been asked for.
    pub threads: usize,
    /// Those of them that have not begun: the system may refuse them for long.
    pub starting: usize,
}

impl Load {
    /// Threads that there are.
    pub(crate) fn begun(&self) -> usize {
        self.threads.saturating_sub(self.starting)
    }
}

/// What a thread does after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It goes on serving.
    GoOn,
    /// It ends, and is not counted any more; a new one is to be made and counted in its place if `replace` says so.
    End {
        /// The pool would have too few without it.
        replace: bool,
    },
}

impl Rule {
    /// The rule that limits are.
    pub(crate) fn of(limits: &PoolLimits) -> Self {
        Self {
            min: limits.min_threads,
            max: limits.max_threads,
            capacity: limits.queue,
            low: limits.low_mark.into(),
            high: limits.high_mark.into(),
            idle: u64::try_from(limits.thread_idle.as_nanos()).unwrap_or(u64::MAX),
            budget: limits.thread_requests,
        }
    }

    /// Requests below which no thread is made: the capacity's percentage, rounded down.
    pub(crate) fn low_mark(&self) -> usize {
        share(self.capacity, self.low)
    }

    /// Requests beyond which threads are made in parallel, if they ever are.
    pub(crate) fn high_mark(&self) -> Option<usize> {
        // A queue can be longer than its capacity after that was made smaller.
        (self.high < NEVER_PARALLEL).then(|| share(self.capacity, self.high))
    }

    /// Threads that are kept.
    pub(crate) fn floor(&self) -> usize {
        self.min.min(self.max)
    }

    /// Whether so few wait that no thread is made.
    fn is_below_low(&self, queued: usize) -> bool {
        queued == 0 || queued < self.low_mark()
    }

    fn is_above_low(&self, queued: usize) -> bool {
        queued > self.low_mark()
    }

    fn is_above_high(&self, queued: usize) -> bool {
        self.high_mark().is_some_and(|mark| queued > mark)
    }

    /// Whether one more thread may be made because requests wait. Never beyond the most; always below the least, and
    /// where no thread exists or is on its way: a request that waits there would wait for ever. Otherwise by the marks:
    /// not below the low one, one at a time up to the high one, in parallel beyond it.
    ///
    /// A request below the low mark does not wait for ever either: a thread exists, and looks at the queue before it
    /// rests.
    pub(crate) fn may_create(&self, load: Load) -> bool {
        let Load { queued, threads, starting } = load;
        if threads >= self.max {
            return false;
        }
        threads == 0
            || threads < self.min
            || (!self.is_below_low(queued) && (starting == 0 || self.is_above_high(queued)))
    }

    /// Whether a thread ends that has had nothing to do since `idle_since`; both times in nanoseconds of one clock.
    /// Each thread has its own time, and [`IdleEnds`] has those that reach it together end one by one.
    pub(crate) fn ends_idle(&self, load: Load, idle_since: u64, now: u64) -> bool {
        let begun = load.begun();
        begun > self.max
            || (begun > self.floor() && load.queued == 0 && now.saturating_sub(idle_since) >= self.idle)
    }
}

/// `percent` of `whole`, rounded down.
fn share(whole: usize, percent: u32) -> usize {
    let (hundreds, rest) = (whole / 100, whole % 100);
    let percent = percent as usize;
    hundreds.saturating_mul(percent).saturating_add(rest * percent.min(NEVER_PARALLEL as usize) / 100)
}

/// When threads of a pool may end because they are idle: one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleEnds {
    next: u64,
}

impl IdleEnds {
    /// Whether a thread that ends idle may do so at `now`, in monotonic nanoseconds; else how much longer it stays.
    pub(crate) fn end(&mut self, now: u64) -> Result<(), u64> {
        if now < self.next {
            return Err(self.next - now);
        }
        self.next = now + IDLE_ENDS_APART;
        Ok(())
    }
}

/// When threads of a pool have ended because their budget was spent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BudgetEnds {
    last: Option<u64>,
}

impl BudgetEnds {
    /// What a thread does that has `served` requests behind it, the present one included, and has just finished one.
    /// `now` in nanoseconds of a clock that does not go back.
    ///
    /// It ends at once where the pool has more threads than the most, which has been lowered then. With its budget
    /// spent it ends unless requests wait above the low mark, another one has ended for that within
    /// [`BUDGET_ENDS_APART`], or one that was asked for has not begun; it asks again after its next request, and where it
    /// has none its idle time ends it.
    pub(crate) fn after_request(&mut self, rule: &Rule, load: Load, served: u64, now: u64) -> After {
        let Load { queued, threads, starting } = load;
        if load.begun() > rule.max {
            return After::End { replace: false };
        }
        let spent = rule.budget > 0 && served >= rule.budget;
        let soon = self.last.is_some_and(|last| now.saturating_sub(last) < BUDGET_ENDS_APART);
        if !spent || soon || starting > 0 || rule.is_above_low(queued) {
            return After::GoOn;
        }
        self.last = Some(now);
        let left = threads.saturating_sub(1);
        After::End { replace: left < rule.floor() || (left == 0 && queued > 0) }
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "scaling_tests.rs"]
mod tests;
