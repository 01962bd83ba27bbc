//! What the pools and locks of a scheduler have counted.

use std::sync::Arc;

use maitred_stats::LockSnapshot;

use super::audit::Idleness;
use super::pool::{Call, Pool};
use super::{Scheduler, Serve};
use crate::settings::PoolLimits;

/// The figures of one pool.
#[derive(Clone, Debug)]
pub(crate) struct PoolFigures {
    pub(crate) name: String,
    /// Threads that exist or have been asked for, the most there may be, those that are parked, those ever asked for.
    pub(crate) threads: usize,
    pub(crate) max: usize,
    pub(crate) parked: usize,
    pub(crate) made: usize,
    /// Requests that wait now, that have waited, and that were refused because the queue was full.
    pub(crate) queued: usize,
    pub(crate) waited: u64,
    pub(crate) refused: u64,
    pub(crate) idleness: Idleness,
}

impl<J: Send> Scheduler<J> {
    /// The figures of all pools, the one that polls first.
    pub(crate) fn figures(&self) -> Vec<PoolFigures> {
        self.pools().map(Pool::figures).collect()
    }

    /// The names of all pools, the one that polls first.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.pools().map(|pool| &*pool.name).collect()
    }

    /// The counts of all locks.
    pub(crate) fn locks(&self) -> Vec<LockSnapshot> {
        let lists = [self.ready.lock_snapshot(), self.unsent.lock_snapshot()];
        lists.into_iter().chain(self.pools().flat_map(Pool::lock_snapshots)).collect()
    }

    /// Changes the limits of the pool called `name`; false when there is none.
    pub(crate) fn set_limits<S: Serve<Job = J>>(
        &self,
        name: &str,
        limits: &PoolLimits,
        server: &Arc<S>,
    ) -> bool {
        let Some(index) = self.pools().position(|pool| pool.name == name) else { return false };
        for _ in 0..self.pool_at(index).set_limits(limits) {
            self.answer_call_of(index, &Call::Spawn, server);
        }
        true
    }
}
