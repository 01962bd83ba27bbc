//! Complete responses that wait a moment, to leave together.
//!
//! A response that is sent at once wakes its peer in the middle of a batch of requests, and the sending of one
//! finds nothing of the other in the caches: together they cost a tenth to a third less. What waits is seen by
//! every thread, and somebody is always there to send it: the end of a turn of an event loop, or its driver; the
//! runner of the interpreter gate before it waits for anything, or its watcher.

use std::cell::Cell;
use std::sync::Arc;

use maitred_io::clock;

use crate::ready::Ready;
use crate::{Scheduler, Serve, Signals};

/// How many of them wait, and how long the first one does if handlers come back at all, in nanoseconds.
#[derive(Clone, Copy)]
struct Together {
    most: usize,
    oldest: u64,
}

impl Together {
    /// While few requests wait.
    const OF_FEW: Self = Self { most: 16, oldest: 250_000 };

    /// The same while many requests wait. A write wakes a client that sleeps on another processor, which takes
    /// 30 to 45 µs in a virtual machine. One such write in 2 ms takes about 2 % of the loop's time, one in 250 µs more than 10 %.
    const OF_A_CROWD: Self = Self { most: 64, oldest: 2_000_000 };
}

/// So many requests that are there and wait are a crowd.
const CROWD: usize = 4;

/// As [`QUICK`](crate::QUICK), of a request in a crowd: what it leaves waits for another one or two of its kind.
pub(crate) const QUICK_OF_A_CROWD: u64 = 1_000_000;

maitred_io::sync::thread_local! {
    /// Which responses of this thread's handlers may wait.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static DEFERS: Cell<Defers> = Cell::new(Defers::Nothing);
}

/// Which responses may wait for others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defers {
    Nothing,
    /// Those whose handlers have ended them.
    Ended,
    /// Also those whose bodies are complete while their handlers go on: somebody watches, and sends them if that takes long.
    Whole,
}

/// Says which responses of this thread's handlers may wait.
pub(crate) fn set_defers(defers: Defers) {
    DEFERS.with(|cell| cell.set(defers));
}

/// Since when something waits, and among how many, as the thread that made it wait has seen it.
#[derive(Default)]
pub(crate) struct Age {
    since: Option<u64>,
    /// A crowd stays one until its responses have left. Its last few would leave in twos and threes otherwise, and come back so.
    crowd: bool,
}

impl Age {
    /// Whether so many that wait have waited long enough at `now`, or are enough; behind a crowd more may wait, and longer.
    fn is_over(&mut self, waiting: usize, now: u64, crowd: bool) -> bool {
        let since = *self.since.get_or_insert(now);
        self.crowd |= crowd;
        let limit = if self.crowd { Together::OF_A_CROWD } else { Together::OF_FEW };
        waiting >= limit.most || now.saturating_sub(since) >= limit.oldest
    }
}

impl<J: Send> Scheduler<J> {
    /// Whether a complete response of this thread waits.
    pub fn defers(&self) -> bool {
        DEFERS.with(Cell::get) != Defers::Nothing
    }

    /// Whether a complete body of this thread may wait although its handler goes on: somebody watches now. The caller asks again after
    /// [`send_later`](Self::send_later): a watcher that stops sends what is on the list by then, and nothing later.
    pub fn defers_whole(&self) -> bool {
        DEFERS.with(Cell::get) == Defers::Whole && (self.pool.gate.is_watched() || self.pool.is_single())
    }

    /// Sends the complete response of a connection later, with others.
    pub fn send_later(&self, token: u64) {
        self.unsent.push(token, Signals::RESUME);
        if self.looped.is_some() {
            self.driver.rouse();
        }
    }

    /// Whether many requests wait.
    pub(crate) fn has_crowd(&self) -> bool {
        self.ready.len() + self.pool.queued() >= CROWD
    }

    /// Sends what waits.
    pub(crate) fn send_unsent<S: Serve<Job = J>>(&self, server: &Arc<S>, now: u64) {
        let mut some = [(0, Signals::RESUME); Together::OF_FEW.most];
        loop {
            let count = self.unsent.pop_some(&mut some);
            if count == 0 {
                break;
            }
            let mut leaving = Leaving { list: &self.unsent, rest: &some[..count] };
            server.send_all(&mut leaving.rest, now);
        }
    }

    /// Sends what has had to wait for a handler that stands still; others do not for a while.
    pub(crate) fn send_promptly<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if !self.unsent.is_empty() {
            let now = clock::monotonic();
            self.pool.gate.be_prompt(now);
            self.send_unsent(server, now);
        }
    }

    /// Sends what waits if it is much or old; `crowd` says whether many requests wait now.
    pub(crate) fn send_unsent_in_time<S: Serve<Job = J>>(
        &self,
        server: &Arc<S>,
        now: u64,
        age: &mut Age,
        crowd: bool,
    ) {
        let waiting = self.unsent.len();
        if waiting == 0 {
            *age = Age::default();
            return;
        }
        if age.is_over(waiting, now, crowd) {
            *age = Age::default();
            self.send_unsent(server, now);
        }
    }
}

/// What is being sent; what a panic leaves of it waits again.
struct Leaving<'a> {
    list: &'a Ready,
    rest: &'a [(u64, Signals)],
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.list.extend(self.rest.iter().copied());
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn few_leave_soon_and_a_crowd_stays_one_until_it_has_left() {
        let mut few = Age::default();
        assert!(!few.is_over(1, 5, false) && !few.is_over(2, 250_004, false));
        assert!(few.is_over(3, 250_005, false), "the first is old");
        assert!(Age::default().is_over(16, 5, false), "enough");

        let mut crowd = Age::default();
        assert!(!crowd.is_over(1, 5, true));
        assert!(!crowd.is_over(5, 400_000, false), "its last ones do not make it few");
        assert!(!crowd.is_over(63, 2_000_004, false));
        assert!(crowd.is_over(6, 2_000_005, false) && crowd.is_over(64, 6, false));
        assert!(Age::default().is_over(16, 2_000_006, false), "what comes behind it is none");
    }
}
