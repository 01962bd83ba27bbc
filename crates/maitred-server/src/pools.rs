//! The pools of a running server, and how poll groups share the limits of the default pool.

use std::sync::Arc;

use maitred_exchange::Site;
use maitred_io::machine;
use maitred_stats::pool::PoolFigures;

use crate::connection::Group;
use crate::group::groups;
use crate::pool_map::{PoolMap, UnknownPool};
use crate::settings::{DEFAULT_POOL, PoolLimits, PoolRule, Strategy};

/// The pools of a server: their limits, the rules that lead requests to them, their figures.
///
/// Lists are in the order of the pools' numbers.
#[derive(Clone, Copy)]
pub struct Pools<'s> {
    pub(crate) groups: &'s [Arc<Group>],
    /// Strategy of the default pool.
    pub(crate) strategy: Strategy,
}

impl<'s> Pools<'s> {
    fn first(self) -> &'s Arc<Group> {
        &self.groups[0]
    }

    /// The names of the pools.
    pub fn names(self) -> Vec<&'s str> {
        self.first().scheduler.pools().map(|pool| &*pool.name).collect()
    }

    /// The figures of the pools.
    pub fn figures(self) -> Vec<PoolFigures> {
        self.first().pool_figures()
    }

    /// Numbers of request bodies in files.
    pub fn spooled(self) -> Vec<u64> {
        self.first().site.figures.spooled().collect()
    }

    /// The limits: of the default pool the sums over all poll groups.
    pub fn limits(self) -> Vec<PoolLimits> {
        let mut limits: Vec<_> = self.first().scheduler.pools().map(|pool| pool.threads.limits()).collect();
        for group in &self.groups[1..] {
            let part = group.scheduler.pool_at(0).threads.limits();
            let whole = &mut limits[0];
            whole.min_threads += part.min_threads;
            whole.max_threads += part.max_threads;
            whole.queue += part.queue;
            whole.max_lost += part.max_lost;
        }
        limits
    }

    /// Changes the limits of the pool called `name`; [`DEFAULT_POOL`] names the default pool.
    /// The limits hold at once: surplus threads end after their request, missing threads are made, also for requests
    /// that wait already. Numbers of threads that the pool cannot have are brought into bounds; the default pool has
    /// at least one in each poll group. Returns false when no pool has this name.
    pub fn set_limits(self, name: &str, limits: &PoolLimits) -> bool {
        let first = self.first();
        if let Some(number) = first.scheduler.pools().position(|pool| pool.name == name) {
            first.site.guard.bandwidth.set_pool(number, limits.bandwidth);
        }
        if name != DEFAULT_POOL {
            return first.scheduler.set_limits(name, limits, first);
        }
        let limits = polling(limits, self.strategy, &first.site);
        let all = self.groups.iter().zip(parts(&limits, self.groups.len()));
        all.fold(true, |known, (group, part)| group.scheduler.set_limits(name, &part, group) && known)
    }

    /// Map from requests to pools.
    pub fn map(self) -> Arc<PoolMap> {
        self.first().pool_map()
    }

    /// Changes the rules from now on; waiting requests stay where they are.
    ///
    /// # Errors
    /// A rule leads to a pool that does not exist; nothing has changed.
    pub fn set_rules(self, rules: &[PoolRule]) -> Result<(), UnknownPool> {
        let map = Arc::new(PoolMap::new(&self.names()[1..], rules)?);
        for group in self.groups {
            group.set_pool_map(Arc::clone(&map));
        }
        Ok(())
    }

    /// Number of poll groups, which share the default pool.
    pub fn poll_groups(self) -> usize {
        self.groups.len()
    }

    /// Number of requests run by a thread of another poll group.
    pub fn migrations(self) -> u64 {
        self.groups.iter().map(|group| group.scheduler.migrations()).sum()
    }
}

/// Splits the limits of the pool whose threads poll into `count` parts, each with at least one thread.
pub(crate) fn parts(limits: &PoolLimits, count: usize) -> impl Iterator<Item = PoolLimits> {
    let limits = *limits;
    (0..count).map(move |index| {
        let share = |whole| groups::share(whole, index, count);
        let max_threads = share(limits.max_threads).max(1);
        PoolLimits {
            min_threads: share(limits.min_threads).clamp(1, max_threads),
            max_threads,
            queue: share(limits.queue).max(1),
            max_lost: share(limits.max_lost),
            ..limits
        }
    })
}

/// The limits of the pool whose threads poll, with at least one thread.
pub(crate) fn polling(limits: &PoolLimits, strategy: Strategy, site: &Site) -> PoolLimits {
    let max_threads = if strategy == Strategy::Pc { 1 } else { limits.max_threads.max(1) };
    // Files alone never block a thread, so the scheduler would never ask for a further one: one per processor.
    let least = if site.hosts.has_application() { 1 } else { machine::processors() };
    PoolLimits { min_threads: limits.min_threads.max(least).min(max_threads), max_threads, ..*limits }
}
