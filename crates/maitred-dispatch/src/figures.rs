//! The counters of the pools and locks of a scheduler.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::sync::atomic::Ordering;
use maitred_pool::PoolLimits;
use maitred_stats::LockSnapshot;
use maitred_stats::pool::PoolFigures;

use super::pool::{Pool, WakeAction};
use super::{Scheduler, Serve};

impl<J: Send> Scheduler<J> {
    /// The figures of all pools, the one that polls first.
    pub fn figures(&self) -> Vec<PoolFigures> {
        self.pools().map(Pool::figures).collect()
    }

    /// The figures of the pool that polls, of which each group has a part.
    pub fn own_figures(&self) -> PoolFigures {
        self.pool.figures()
    }

    /// The names of all pools, the one that polls first.
    pub fn names(&self) -> Vec<&str> {
        self.pools().map(|pool| &*pool.name).collect()
    }

    /// The limits of all pools, the one that polls first.
    pub fn limits(&self) -> Vec<PoolLimits> {
        self.pools().map(|pool| pool.threads.limits()).collect()
    }

    /// Calls `look` with requests that wait, the number of their pool and since when in monotonic nanoseconds: the
    /// oldest `most` of each pool, and of the pools that groups share if `shared` says so. Under the queue's lock.
    pub fn look_at_waiting(&self, shared: bool, most: usize, mut look: impl FnMut(usize, &J, u64)) {
        let pools = if shared { 1 + self.others.len() } else { 1 };
        for (number, pool) in self.pools().enumerate().take(pools) {
            let queue = pool.lock();
            for waiting in queue.jobs.iter().take(most) {
                look(number, &waiting.job, waiting.since);
            }
        }
    }

    /// The counts of the locks that each group has.
    pub fn own_locks(&self) -> impl Iterator<Item = LockSnapshot> + use<J> {
        let unsent = self.looped.as_ref().map(|looped| looped.unsent.lock_snapshot());
        std::iter::once(self.ready.lock_snapshot()).chain(unsent).chain(self.pool.lock_snapshots())
    }

    /// The counters of the locks that all groups share.
    pub fn shared_locks(&self) -> impl Iterator<Item = LockSnapshot> + '_ {
        self.others.iter().flat_map(Pool::lock_snapshots)
    }

    /// The time limit of a request in this pool.
    pub fn request_limit(&self, pool: usize) -> Option<Duration> {
        self.pool_at(pool).threads.request_limit()
    }

    /// Whether the application is interrupted when that is over.
    pub fn interrupts(&self, pool: usize) -> bool {
        self.pool_at(pool).threads.interrupts()
    }

    /// A thread of the pool is lost until its request comes back.
    pub fn lose_thread<S: Serve<Job = J>>(&self, pool: usize, server: &Arc<S>) {
        // An event loop runs everything on one thread, in whose place there can be no other.
        if self.looped.is_none() {
            let call = self.pool_at(pool).lose_thread();
            self.perform_in(pool, &call, server);
        }
    }

    /// A lost thread is back.
    pub fn find_thread(&self, pool: usize) {
        if self.looped.is_none() {
            self.pool_at(pool).threads.find_lost();
        }
    }

    /// Changes the limits of the pool called `name`; false when there is none.
    pub fn set_limits<S: Serve<Job = J>>(&self, name: &str, limits: &PoolLimits, server: &Arc<S>) -> bool {
        let Some(index) = self.pools().position(|pool| pool.name == name) else { return false };
        let limits = &self.possible(index, *limits);
        if index == 0 {
            // Before its parked threads are called, which look at this.
            self.max_pollers.store(self.pollers_of(limits.max_threads), Ordering::SeqCst);
        }
        for _ in 0..self.pool_at(index).set_limits(limits) {
            self.perform_in(index, &WakeAction::Spawn, server);
        }
        true
    }
}
