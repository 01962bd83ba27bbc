//! The threads of a pool: how many there are, how many there may be, and for how long each may stay. The counts have a lock; copies of
//! them are read without it, at each request.

use std::time::Duration;

use maitred_io::sync::NamedLock;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use maitred_pool::PoolLimits;
use maitred_pool::scaling::{Ends, Load};
use maitred_stats::pool::{End, Start, ThreadCounters};

/// The threads of a pool.
pub struct PoolThreads {
    pub(crate) counts: NamedLock<Counts>,
    /// How often the limits were changed: a thread that is about to park looks at them again.
    pub(crate) changes: AtomicU64,
    /// How long a thread is parked at most, in nanoseconds.
    idle_limit: AtomicU64,
    max: AtomicUsize,
    several: AtomicBool,
    /// Requests after which a thread asks whether it ends, and when the next one may, in monotonic nanoseconds.
    pub(crate) budget: AtomicU64,
    pub(crate) budget_ends: AtomicU64,
    /// The pool has more threads than it may have.
    pub(crate) is_surplus: AtomicBool,
    /// The limit of a request in nanoseconds, 0 for none, and whether it interrupts.
    request_limit: AtomicU64,
    interrupts: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Counts {
    /// Threads that run or have been asked for.
    pub(crate) threads: usize,
    /// Threads asked for that have not begun.
    pub(crate) starting: usize,
    pub(crate) stopping: bool,
    /// Threads ever asked for, for their names, and why they were and have ended.
    pub(crate) counted: ThreadCounters,
    /// Threads whose request has timed out and that have not returned.
    pub(crate) lost: usize,
    pub(crate) limits: PoolLimits,
    /// The limits with room for threads in the place of lost ones.
    pub(crate) rule: PoolLimits,
    pub(crate) budget_ends: Ends,
    pub(crate) idle_ends: Ends,
}

impl PoolThreads {
    pub(crate) fn new(pool: &str, limits: PoolLimits) -> Self {
        let counts = Counts { limits, rule: limits, ..Counts::default() };
        let threads = Self {
            counts: NamedLock::with_name(format!("{pool}.threads").into(), counts),
            changes: AtomicU64::new(0),
            idle_limit: AtomicU64::new(0),
            max: AtomicUsize::new(0),
            several: AtomicBool::new(false),
            budget: AtomicU64::new(0),
            budget_ends: AtomicU64::new(0),
            is_surplus: AtomicBool::new(false),
            request_limit: AtomicU64::new(0),
            interrupts: AtomicBool::new(false),
        };
        threads.publish(&threads.counts.lock());
        threads
    }

    /// Counts one more thread if there are fewer than the least.
    pub(crate) fn claim_initial(&self) -> bool {
        let mut counts = self.counts.lock();
        let wanted = counts.threads < counts.rule.floor();
        counts.count_new(wanted.into(), Start::Least)
    }

    /// For the name of the next thread.
    pub(crate) fn number(&self) -> usize {
        let counts = self.counts.lock();
        counts.counted.made() as usize
    }

    pub(crate) fn started(&self) {
        self.counts.lock().starting -= 1;
    }

    pub(crate) fn ended(&self) {
        self.counts.lock().end(End::Stop);
    }

    /// Whether a thread ends because there are too many; it is not counted any more then.
    pub(crate) fn ends_surplus(&self) -> bool {
        let mut counts = self.counts.lock();
        let ends = counts.load(0).begun() > counts.rule.max_threads;
        if ends {
            counts.end(End::Limit);
            self.publish(&counts);
        }
        ends
    }

    /// The limits of the pool.
    pub fn limits(&self) -> PoolLimits {
        self.counts.lock().limits
    }

    /// A thread whose request had timed out has returned.
    pub(crate) fn find_lost(&self) {
        let mut counts = self.counts.lock();
        counts.lost -= 1;
        self.renew(&mut counts);
    }

    /// How long a request may wait for its response; none without a limit.
    pub fn request_limit(&self) -> Option<Duration> {
        let nanos = self.request_limit.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Whether the end of the time limit interrupts the thread of the request.
    pub fn interrupts(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Allows threads in the place of lost ones.
    pub(crate) fn renew(&self, counts: &mut Counts) {
        counts.rule = counts.limits;
        counts.rule.max_threads += counts.lost.min(counts.limits.max_lost);
        self.publish(counts);
    }

    pub(crate) fn publish(&self, counts: &Counts) {
        let Counts { limits, rule, .. } = counts;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let limit = limits.request_timeout.map_or(0, |limit| nanos(limit).max(1));
        self.request_limit.store(limit, Ordering::Relaxed);
        self.interrupts.store(limits.interrupt, Ordering::Relaxed);
        self.max.store(rule.max_threads, Ordering::Relaxed);
        self.several.store(limits.max_threads > 1, Ordering::Relaxed);
        let budget = if rule.thread_requests == 0 { u64::MAX } else { rule.thread_requests };
        self.budget.store(budget, Ordering::Relaxed);
        self.idle_limit.store(nanos(rule.thread_idle), Ordering::SeqCst);
        self.is_surplus.store(counts.threads > rule.max_threads, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.counts.lock().threads
    }

    pub(crate) fn idle_limit(&self) -> u64 {
        self.idle_limit.load(Ordering::SeqCst)
    }

    pub(crate) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Whether so many `inside` are all threads that have begun, and no further one may be asked for.
    pub(crate) fn is_exhausted(&self, inside: usize) -> bool {
        let counts = self.counts.lock();
        let is_last = counts.starting > 0 || counts.threads >= counts.rule.max_threads;
        is_last && inside >= counts.threads - counts.starting
    }

    /// Whether the pool has no thread that has begun and not ended.
    pub(crate) fn is_unmanned(&self) -> bool {
        let counts = self.counts.lock();
        counts.threads == counts.starting
    }

    /// Whether one more thread may be made, and none is on its way.
    pub(crate) fn has_room(&self) -> bool {
        let counts = self.counts.lock();
        counts.threads < counts.rule.max_threads && counts.starting == 0
    }

    /// Whether the configured limit is above 1.
    pub(crate) fn has_several(&self) -> bool {
        self.several.load(Ordering::Relaxed)
    }
}

impl Counts {
    pub(crate) fn load(&self, queued: usize) -> Load {
        Load { queued, threads: self.threads, starting: self.starting }
    }

    /// Counts one more thread if there may be one because requests wait (D3).
    pub(crate) fn grow_for_queue(&mut self, queued: usize) -> bool {
        let grows = !self.stopping && self.rule.may_create(self.load(queued));
        self.count_new(grows.into(), Start::Waiting)
    }

    /// Counts one more thread if there may be one and none is on its way.
    pub(crate) fn grow(&mut self, reason: Start) -> bool {
        let grows = self.threads < self.rule.max_threads && self.starting == 0 && !self.stopping;
        self.count_new(grows.into(), reason)
    }

    /// Counts threads that are asked for. Whether there are any.
    pub(crate) fn count_new(&mut self, threads: usize, reason: Start) -> bool {
        self.threads += threads;
        self.starting += threads;
        self.counted.starts(reason, threads);
        threads > 0
    }

    pub(crate) fn end(&mut self, reason: End) {
        self.threads -= 1;
        self.counted.ends(reason);
    }
}
