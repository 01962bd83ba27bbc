//! The reserve thread of a pool: it runs requests of other routes while one route has all threads, or while all threads write to a
//! disk.
//!
//! No thread is kept from the requests of a slow route while they wait. The requests that would then wait behind them
//! are run here, one after the other: a request whose route is not known to wait, and holds less than half as much as
//! the one that holds most. A route holds the time for which its requests have been in application code, so nothing has
//! to be learnt or forgotten.
//!
//! The thread is made when it is needed for the first time, is not counted in `max-threads`, and ends after the idle
//! time of its pool. A pool of one thread has none: its application may rely on it. Nor has a poll group: threads of
//! other groups take waiting requests.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::parker::Parker;
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_pool::RouteClass;

use super::{Scheduler, Serve};
use crate::app_thread::AppThread;
use crate::numbers::{LONG, STUCK};
use crate::pool::Pool;

#[derive(Default)]
pub(super) struct ReserveThread {
    exists: AtomicBool,
    /// The thread sleeps until it is called; otherwise it looks again by itself.
    sleeps: AtomicBool,
    /// The thread waits for a request that it may run: none of those in the queue is one.
    watches: AtomicBool,
    parker: Parker,
}

impl ReserveThread {
    /// Has it look around, if there is one. `comes`: a request has come that it may run.
    pub(super) fn wake(&self, comes: bool) {
        if self.sleeps.load(Ordering::SeqCst) || comes && self.watches.load(Ordering::SeqCst) {
            self.parker.unpark();
        }
    }

    /// Sleeps for so many nanoseconds, or until it is called; not if `may_sleep` is false. Whether there is something to look at.
    fn sleep(&self, nanos: u64, may_sleep: impl FnOnce() -> bool) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        let called = !may_sleep() || self.parker.park(Some(Duration::from_nanos(nanos)));
        self.sleeps.store(false, Ordering::SeqCst);
        called
    }
}

impl<J: Send> Scheduler<J> {
    /// Has requests run although all threads are in those of other routes, if that may be so. `comes`: one has come that may run so.
    pub(super) fn wake_reserve<S: Serve<Job = J>>(&self, comes: bool, server: &Arc<S>) {
        let full = self.inside.load(Ordering::SeqCst) >= self.pool.threads.max();
        let is_alone = self.peer_groups.all.is_empty() && self.pool.threads.has_several();
        if !is_alone || !full || self.pool.queued() == 0 || self.is_stopping() {
            return;
        }
        if !self.reserve.exists.swap(true, Ordering::SeqCst) {
            server.spawn_reserve();
        }
        self.reserve.wake(comes);
    }
}

/// The life of the reserve thread.
pub fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let (pool, reserve) = (&scheduler.pool, &scheduler.reserve);
    let thread = pool.limiter.add();
    scheduler.pollers.set_serving(true);
    while !scheduler.is_stopping() {
        // Before the look: a request that comes behind it wakes this thread.
        reserve.watches.store(true, Ordering::SeqCst);
        let held_up = pool.queued() > 0 && pool.is_held_up();
        let job = if held_up { pool.pop_beside_holders() } else { None };
        reserve.watches.store(held_up && job.is_none(), Ordering::SeqCst);
        if pool.queued() > 0 {
            // No thread monitors while all are in application code.
            pool.limiter.interpreter.sample_if_due(clock::monotonic());
        }
        if let Some(job) = job {
            pool.limiter.force(&thread);
            scheduler.run_assigned(job, clock::monotonic(), &**server, pool);
            pool.limiter.give_back(&thread);
            continue;
        }
        if pool.queued() > 0 {
            // The requests in application code now may stay there.
            reserve.parker.park(Some(Duration::from_nanos(LONG)));
            continue;
        }
        let rests = || pool.queued() == 0 && !scheduler.is_stopping();
        if !reserve.sleep(pool.threads.idle_limit(), rests) {
            // After this store a new need makes a new thread. An earlier need is seen here.
            reserve.exists.store(false, Ordering::SeqCst);
            if pool.queued() == 0 || reserve.exists.swap(true, Ordering::SeqCst) {
                break;
            }
        }
    }
    scheduler.pollers.set_serving(false);
    pool.limiter.remove(&thread);
}

impl<J> Pool<J> {
    /// Whether no thread can take the waiting requests: all are in application code for long, or known to stay there.
    fn is_held_up(&self) -> bool {
        let (max, now) = (self.threads.max(), clock::monotonic());
        let is_stuck = |thread: &AppThread| thread.holding(now).is_some_and(|(_, nanos)| nanos >= STUCK);
        self.away.load(Ordering::SeqCst) >= max || self.limiter.count_inside(is_stuck) >= max
    }

    /// The next request of a route that holds little beside the one that holds most.
    fn pop_beside_holders(&self) -> Option<J> {
        let now = clock::monotonic();
        // Routes, and for how many nanoseconds their requests have been in application code, all together.
        let mut holdings: Vec<(u64, u64)> = Vec::new();
        self.limiter.interpreter.ask_inside(|threads| {
            for (route, nanos) in threads.filter_map(|thread| thread.holding(now)) {
                match holdings.iter_mut().find(|(other, _)| *other == route) {
                    Some((_, all)) => *all += nanos,
                    None => holdings.push((route, nanos)),
                }
            }
        });
        let most = holdings.iter().map(|(_, nanos)| *nanos).max().unwrap_or(0);
        self.pop_light(|class, route| {
            let own = holdings.iter().find(|(other, _)| *other == route);
            let enters = match class {
                RouteClass::Normal => true,
                RouteClass::CpuBound => !self.limiter.interpreter.has_long(),
                RouteClass::Parallel => self.limiter.interpreter.has_processor(),
                RouteClass::Blocking => false,
            };
            enters && own.is_none_or(|(_, nanos)| *nanos < most / 2)
        })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use maitred_pool::PoolLimits;

    use super::*;
    use crate::interpreter::Interpreter;
    use crate::limiter::Limiter;

    #[test]
    fn a_request_that_comes_wakes_the_thread_that_waits_for_one() {
        let reserve = ReserveThread::default();
        let called = || reserve.parker.park(Some(Duration::ZERO));
        reserve.wake(true);
        assert!(!called(), "it looks by itself");
        reserve.watches.store(true, Ordering::SeqCst);
        reserve.wake(false);
        assert!(!called(), "nothing has come that it may run");
        reserve.wake(true);
        assert!(called());
        reserve.watches.store(false, Ordering::SeqCst);
        reserve.sleeps.store(true, Ordering::SeqCst);
        reserve.wake(false);
        assert!(called(), "there may be something to look at");
    }

    #[test]
    fn one_long_computation_at_a_time_runs_there_too() {
        let interpreter = Arc::new(Interpreter::new(None));
        let limiter = Limiter::new(&interpreter).unwrap();
        let pool = Pool::new("beside", PoolLimits::default(), true, limiter);
        assert!(pool.enqueue_limited(1, RouteClass::CpuBound, 1).is_ok() && interpreter.take_long());
        assert_eq!(pool.pop_beside_holders(), None);
        assert!(pool.enqueue_limited(2, RouteClass::Normal, 1).is_ok());
        assert_eq!(pool.pop_beside_holders(), Some(2));
        interpreter.give_long_back();
        assert_eq!(pool.pop_beside_holders(), Some(1));
    }
}
