//! Threads that peers hold: a handler streams to a peer that takes nothing, so its thread waits for the peer, or writes to a disk for it.
//!
//! While requests wait and peers hold more than half of the threads of their pool, responses are given up: as many as requests wait, and
//! those first whose peers have taken nothing for the longest time. Each thread asks about its own response.
//!
//! Leaves out: since when a peer has taken nothing, and how its response ends (maitred-server).

use std::sync::Arc;

use maitred_io::clock;
use maitred_pool::RouteClass;

use crate::Scheduler;
use crate::app_thread::AppThread;
use crate::numbers::UNNOTICED;
use crate::pool::Pool;
use crate::writing::with_own_thread;

/// So long a peer takes nothing at least before its response is given up for a request that waits for a thread. A peer that takes
/// something every few seconds is safe: systems and HTTP/2 clients tell in steps of megabytes what they have taken, so a slow reader
/// seems to pause. Half: a reader of 1 MB/s may seem idle. Double: under an attack by peers that never read, an honest request waits
/// twice as long.
const PATIENCE: u64 = 5_000_000_000;

/// From this time on a peer that takes nothing counts as one that holds a thread. A peer that reads as fast as its network does not.
const HOLDS: u64 = PATIENCE / 2;

/// Notes since when the peer of this thread's request has taken nothing of the response, in monotonic nanoseconds; none if the response
/// does not wait for the peer.
pub fn note_idle_peer(idle_since: Option<u64>) {
    with_own_thread(|own| own.map(|own| own.note_peer(idle_since)));
}

/// Whether the response of this thread's request is to be given up at `now`: its peer has taken nothing since `idle_since`, and other
/// requests need the thread.
pub fn has_to_give_up_peer<J: Send>(scheduler: &Scheduler<J>, idle_since: u64, now: u64) -> bool {
    if now.saturating_sub(idle_since) < PATIENCE {
        return false;
    }
    with_own_thread(|own| {
        // A thread that the application has made keeps no request waiting.
        let Some(own) = own else { return false };
        let mut pools = scheduler.pools();
        let pool = pools.find(|pool| pool.limiter.has(own));
        pool.is_some_and(|pool| pool.needs_thread_of_peer(own, idle_since, now))
    })
}

impl<J> Pool<J> {
    /// Whether waiting requests need the thread `own` of a response whose peer has taken nothing since `idle_since`.
    fn needs_thread_of_peer(&self, own: &AppThread, idle_since: u64, now: u64) -> bool {
        if self.queued() == 0 {
            return false;
        }
        // Streams of one connection may be idle since the same moment.
        let rank = |thread: &AppThread, since: u64| (since, std::ptr::from_ref(thread));
        let (mut held, mut longer) = (0, 0);
        let inside = self.limiter.count_inside(|thread| {
            if let Some(since) = thread.peer_idle_since() {
                held += usize::from(now.saturating_sub(since) >= HOLDS);
                longer += usize::from(rank(thread, since) < rank(own, idle_since));
            }
            true
        });
        if 2 * held <= self.threads.max() || !self.threads.is_exhausted(inside) {
            return false;
        }
        let queue = self.lock();
        let is_late = queue.jobs.oldest().is_some_and(|since| now.saturating_sub(since) >= UNNOTICED);
        is_late && queue.jobs.len() > longer
    }
}

/// The calling thread, as a thread of the pool whose threads poll, in application code.
pub struct Inside<'a, J>(&'a Scheduler<J>, Arc<AppThread>);

impl<'a, J: Send> Inside<'a, J> {
    /// Counts the calling thread as one in application code until the value is dropped.
    pub fn enter(scheduler: &'a Scheduler<J>) -> Self {
        let thread = scheduler.pool.limiter.add();
        thread.enter(clock::monotonic(), 0, RouteClass::Normal);
        Self(scheduler, thread)
    }
}

impl<J> Drop for Inside<'_, J> {
    fn drop(&mut self) {
        self.1.leave();
        self.0.pool.limiter.remove(&self.1);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use maitred_pool::PoolLimits;
    use maitred_stats::pool::Start;

    use super::*;
    use crate::interpreter::Interpreter;
    use crate::limiter::Limiter;

    const SECOND: u64 = 1_000_000_000;

    /// A pool whose threads are all in application code.
    struct Full {
        pool: Pool<u32>,
        threads: Vec<Arc<AppThread>>,
    }

    /// The peers of the threads have taken nothing since these seconds.
    fn full(idle_since: &[Option<u64>]) -> Full {
        let limiter = Limiter::new(&Arc::new(Interpreter::new(None))).expect("descriptors");
        let max_threads = idle_since.len();
        let pool = Pool::new("full", PoolLimits { max_threads, ..PoolLimits::default() }, false, limiter);
        let threads: Vec<_> = idle_since.iter().map(|_| pool.limiter.add()).collect();
        pool.threads.counts.lock().count_new(max_threads, Start::Least);
        threads.iter().for_each(|_| pool.threads.started());
        for (thread, since) in threads.iter().zip(idle_since) {
            thread.enter(SECOND, 0, RouteClass::Normal);
            thread.note_peer(since.map(|since| since * SECOND));
        }
        Full { pool, threads }
    }

    impl Full {
        /// A request waits since this second.
        fn waits(&self, since: u64) {
            let queued = self.pool.push(&mut self.pool.lock(), 0, RouteClass::Normal, since * SECOND);
            assert!(queued.is_ok());
        }

        /// Which threads are to give up their peers at this second.
        fn give_up(&self, now: u64) -> Vec<usize> {
            let needs = |(place, thread): (usize, &Arc<AppThread>)| {
                let since = thread.peer_idle_since()?;
                let is_over = now * SECOND - since >= PATIENCE;
                (is_over && self.pool.needs_thread_of_peer(thread, since, now * SECOND)).then_some(place)
            };
            self.threads.iter().enumerate().filter_map(needs).collect()
        }
    }

    #[test]
    fn as_many_as_requests_wait_are_given_up_and_those_first_that_are_idle_for_longest() {
        let pool = full(&[Some(12), Some(10), Some(11)]);
        assert!(pool.give_up(20).is_empty(), "no request waits");
        pool.waits(19);
        assert_eq!(pool.give_up(20), [1]);
        pool.waits(19);
        assert_eq!(pool.give_up(20), [1, 2]);
    }

    #[test]
    fn a_request_that_has_just_come_takes_no_peer_its_response() {
        let pool = full(&[Some(10)]);
        pool.waits(20);
        assert!(pool.give_up(20).is_empty());
        assert_eq!(pool.give_up(21), [0]);
    }

    #[test]
    fn a_pool_whose_threads_mostly_work_or_that_has_a_free_one_gives_up_no_peer() {
        let pool = full(&[Some(10), Some(10), None, None]);
        pool.waits(15);
        assert!(pool.give_up(20).is_empty(), "two of four wait for peers");
        pool.threads[2].note_peer(Some(19 * SECOND));
        assert!(pool.give_up(20).is_empty(), "the third one reads");
        pool.threads[2].note_peer(Some(17 * SECOND));
        assert_eq!(pool.give_up(20), [0], "three of four");
        pool.threads[3].leave();
        assert!(pool.give_up(20).is_empty(), "a thread looks at the queue");
    }

    #[test]
    fn of_peers_that_are_idle_since_the_same_moment_one_is_given_up_for_each_request() {
        let pool = full(&[Some(10); 4]);
        for waiting in 1..=3 {
            pool.waits(15);
            assert_eq!(pool.give_up(20).len(), waiting);
        }
    }

    #[test]
    fn a_peer_that_takes_something_every_second_is_not_given_up() {
        let pool = full(&[Some(10)]);
        pool.waits(10);
        for now in 11..60 {
            pool.threads[0].note_peer(Some((now - 1) * SECOND));
            assert!(pool.give_up(now).is_empty());
        }
    }
}
