//! Counts, limits, waiting requests and lost threads of a scheduler, for an operator.

use std::sync::Arc;

use maitred_pool::PoolLimits;
use maitred_stats::pool::MIGRATIONS_TOTAL;
use maitred_stats::{Arena, Counter, LockSnapshot};

use super::pool::{Pool, WakeAction};
use super::{Scheduler, Serve, without_threads};

impl<J: Send> Scheduler<J> {
    /// Counts in memory in which others find it, from now on: before the start. Of the pools that groups share one of them says so.
    pub fn count_in(&mut self, arena: &Arena, shared: bool) {
        self.peer_groups.migrations = Counter::in_arena(arena, MIGRATIONS_TOTAL);
        self.own_pools(shared).for_each(|pool| pool.count_in(arena));
    }

    /// The pool whose threads poll, and those that groups share if `shared` says so.
    fn own_pools(&self, shared: bool) -> impl Iterator<Item = &Pool<J>> {
        self.pools().take(if shared { usize::MAX } else { 1 })
    }

    /// Requests of other groups that threads of this one have run.
    pub fn migrations(&self) -> u64 {
        self.peer_groups.migrations.total()
    }

    /// Application threads that exist or have been asked for: those that poll, or the others.
    pub fn threads(&self, others: bool) -> usize {
        match &self.looped {
            _ if others => self.others.iter().map(|pool| pool.threads.count()).sum(),
            Some(_) => 1,
            None => self.pool.threads.count(),
        }
    }

    /// Calls `look` with the oldest `most` requests that wait in each pool, those that groups share if `shared` says so: with the number of
    /// the pool, and since when in monotonic nanoseconds. Under the queue's lock.
    pub fn look_at_waiting(&self, shared: bool, most: usize, mut look: impl FnMut(usize, &J, u64)) {
        for (number, pool) in self.own_pools(shared).enumerate() {
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

    /// A thread of the pool is lost until its request comes back.
    pub fn lose_thread<S: Serve<Job = J>>(&self, pool: usize, server: &Arc<S>) {
        // An event loop runs everything on one thread, in whose place there can be no other.
        if self.looped.is_none() {
            self.perform(pool, self.pool_at(pool).lose_thread(), server);
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
        let max_threads = limits.max_threads.max(1);
        let limits = match index {
            0 if self.looped.is_some() => without_threads(*limits),
            _ => PoolLimits { max_threads, min_threads: limits.min_threads.min(max_threads), ..*limits },
        };
        if index == 0 {
            // Before its parked threads are called, which look at this.
            self.pollers.set_threads(limits.max_threads);
        }
        for _ in 0..self.pool_at(index).set_limits(&limits) {
            self.perform(index, WakeAction::Spawn, server);
        }
        true
    }
}
