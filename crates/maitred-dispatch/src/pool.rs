//! The application threads of a pool: the idle ones, the queue of requests, and the need for one more thread.
//!
//! A request goes straight to the most recently idle thread, which alone is woken, and is queued only when there is
//! none, or others wait. At a limiter no request is given to a parked thread, as the thread that enters first is to
//! have the request that has come first: its reader runs it, or queues it. Idle threads are parked last-in first-out,
//! so that the ones at the bottom reach their idle timeout.
//!
//! The queue, the counts of threads and the idle threads have a lock each (D2); a thread that takes several takes them in this order.
//! Nothing is missed: a request is in the queue before an idle thread is looked for, and a thread looks at the queue's
//! length after it has become one that can be found.

use std::sync::OnceLock;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::parking::{Parking, Place};
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use maitred_io::sync::{Arc, NamedGuard, NamedLock};
use maitred_pool::RouteClass;
use maitred_pool::fair::{FairQueue, Waiting};
use maitred_pool::scaling::{After, ENDS_APART};
use maitred_pool::{Overflow, PoolLimits};
use maitred_stats::Arena;
use maitred_stats::pool::{
    End, IDLE_NANOS, IDLE_REQUESTS, Idleness, PoolFigures, QueueCounters, REFUSED, Start, ThreadCounters,
    WAITED, queue_counters,
};

use crate::costs::{Costs, Seen};
use crate::limiter::Limiter;
use crate::numbers::{FIRST_PAUSE, LONG, UNNOTICED};
use crate::pool_threads::{Counts, PoolThreads};
use crate::trace;
use crate::writing::has_written;

/// The step that is needed so that a thread runs a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeAction {
    Woken,
    /// One more thread must be made; it is counted already.
    Spawn,
    /// No thread can be woken, and none may be made now: the next one that finishes looks at the queue.
    Nothing,
}

/// A pool of application threads: those that poll, or others.
pub struct Pool<J> {
    /// As the configuration calls it.
    pub name: String,
    queue: NamedLock<Queue<J>>,
    /// The counts and limits of the threads.
    pub threads: PoolThreads,
    pub(super) parking: Parking<Errand<J>>,
    /// The permits. Where threads run side by side the limiter only knows which threads are in application code.
    pub(super) limiter: Limiter,
    /// A thread needs a permit to enter: a parked one may not be able to.
    pub(super) exclusive: bool,
    // From here on copies of guarded values, to be read without the lock.
    queued: AtomicUsize,
    /// The costs of requests of each route, their routes, and whether they matter now.
    pub(super) costs: Costs,
    pub(super) sorting: OnceLock<Sorting<J>>,
    sorted: AtomicBool,
    /// Threads of other groups may run waiting requests.
    pub(super) offered: AtomicBool,
    /// A full queue takes more while the first in it has not waited for [`UNNOTICED`].
    pub(super) bursts: AtomicBool,
    /// Threads in requests of routes that are known to wait, and those that write the response of their request to a disk.
    pub(super) away: AtomicUsize,
    stopping: AtomicBool,
}

/// Numbers by which waiting requests are sorted.
pub(super) struct Sorting<J> {
    pub(super) route_of: fn(&J) -> u64,
    pub(super) connection_of: fn(&J) -> u64,
}

/// The reason for waking a parked thread.
pub(crate) enum Errand<J> {
    Look,
    Run(J),
    Monitor,
    /// The thread is not counted any more.
    End,
}

pub(crate) type Slot<J> = Arc<Place<Errand<J>>>;

impl<J> Pool<J> {
    pub(super) fn new(name: &str, limits: PoolLimits, exclusive: bool, limiter: Limiter) -> Self {
        let queue = Queue {
            jobs: FairQueue::default(),
            capacity: limits.queue,
            overflow: limits.overflow,
            counted: QueueCounters::new(),
            taken: 0,
            longest_idle: 0,
        };
        Self {
            name: name.to_owned(),
            queue: NamedLock::with_name(format!("{name}.queue").into(), queue),
            threads: PoolThreads::new(name, limits),
            parking: Parking::default(),
            limiter,
            exclusive,
            queued: AtomicUsize::new(0),
            costs: Costs::default(),
            sorting: OnceLock::new(),
            sorted: AtomicBool::new(false),
            offered: AtomicBool::new(false),
            bursts: AtomicBool::new(false),
            away: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    pub(super) fn lock(&self) -> NamedGuard<'_, Queue<J>> {
        self.queue.lock()
    }

    /// Has a request run: by the most recently idle thread, else by the thread that looks at the queue first.
    pub(crate) fn submit(&self, job: J, class: RouteClass, now: u64) -> Result<WakeAction, J> {
        // Of threads that were given one each, the first to wake would enter with its own, whichever came first.
        if self.exclusive {
            return self.enqueue_limited(job, class, now);
        }
        // Waiting requests go first, also while a thread that is about to look there can be found.
        if self.queued() == 0
            && let Some(place) = self.parking.pop()
        {
            place.wake(Some(Errand::Run(job)));
            return Ok(WakeAction::Woken);
        }
        self.push(&mut self.lock(), job, class, now)?;
        Ok(self.wake_for_queue())
    }

    pub(super) fn wake_for_queue(&self) -> WakeAction {
        self.wake(Counts::grow_for_queue)
    }

    /// Puts a job at the end of the queue, and wakes no thread for it.
    ///
    /// # Errors
    /// The queue is full: the job comes back.
    pub(super) fn push(&self, queue: &mut Queue<J>, job: J, class: RouteClass, now: u64) -> Result<(), J> {
        let is_burst = self.bursts.load(Ordering::Relaxed)
            && queue.jobs.oldest().is_none_or(|since| now.saturating_sub(since) < UNNOTICED);
        // There are threads for so many at most, which wait because the interpreter is busy.
        let held_back = || self.threads.max().saturating_sub(self.limiter.count_inside(|_| true));
        if !is_burst && queue.is_full(|| if self.exclusive { held_back() } else { 0 }) {
            return Err(job);
        }
        // It is only handed over, if a thread is idle and may enter.
        let enters = self.exclusive && queue.jobs.is_empty() && self.parked() > 0 && !self.limiter.is_taken();
        queue.counted.add(WAITED, (!enters).into());
        let connection = self.sorting.get().map_or(0, |sorting| (sorting.connection_of)(&job));
        queue.jobs.push(Waiting { job, since: now, class, connection }, |job| self.route(job));
        self.note_length(queue);
        Ok(())
    }

    fn note_length(&self, queue: &Queue<J>) {
        self.withdraw(queue);
        self.queued.store(queue.jobs.len(), Ordering::SeqCst);
        self.sorted.store(queue.jobs.is_sorted(), Ordering::Relaxed);
    }

    pub(super) fn route(&self, job: &J) -> u64 {
        self.sorting.get().map_or(0, |sorting| (sorting.route_of)(job))
    }

    /// The route of a request that is about to run; 0 while the queue is so short that costs do not matter.
    pub(super) fn charged_route(&self, job: &J) -> u64 {
        if self.sorted.load(Ordering::Relaxed) { self.route(job) } else { 0 }
    }

    /// The route of a request that is about to run at `now`; 0 if neither its costs nor its thread matter.
    pub(super) fn route_if_it_matters(&self, job: &J, now: u64) -> u64 {
        let matters = self.sorted.load(Ordering::Relaxed)
            || self.queued() > 0
            || self.parked() == 0
            || self.costs.is_watching(now);
        if matters { self.route(job) } else { 0 }
    }

    /// The first facts of a request that has run for `nanos` until `ended`; samples add theirs.
    pub(super) fn seen(&self, nanos: u64, ended: u64) -> Seen {
        Seen {
            nanos,
            computed: nanos,
            held: 0,
            // A thread is short as well: the request has had its share of all of them.
            share: nanos / self.threads.max().max(1) as u64,
            wrote: has_written(),
            // Where threads run side by side, a long request holds its thread in any state.
            samples: if self.exclusive { 0 } else { 2 },
            without: if nanos >= LONG { 2 } else { 1 },
            parallel: 0,
            ended,
        }
    }

    /// The request whose turn it is among those that `may` enter.
    pub(super) fn take_next(&self, queue: &mut Queue<J>, may: impl Fn(&Waiting<J>) -> bool) -> Option<J> {
        // A route that is not known is charged too, or would have its turn for ever.
        let waiting = queue.jobs.pop(|route| self.costs.of(route).max(FIRST_PAUSE), may)?;
        queue.taken += 1;
        trace::note_taken(waiting.since);
        self.note_length(queue);
        Some(waiting.job)
    }

    /// The next request in turn of a route that does not write to a disk, if `may` says so of its class and route.
    pub(super) fn pop_light(&self, may: impl Fn(RouteClass, u64) -> bool) -> Option<J> {
        self.take_next(&mut self.lock(), |waiting| {
            let route = self.route(&waiting.job);
            !self.costs.writes(route) && may(waiting.class, route)
        })
    }

    /// Has a thread poll: the last one that did is in application code.
    pub(crate) fn wake_poller(&self) -> WakeAction {
        self.wake(|counts, _| counts.grow(Start::Reading))
    }

    /// Wakes a parked thread, or has one made if `grow` counts one more; it gets the number of waiting requests.
    fn wake(&self, grow: impl FnOnce(&mut Counts, usize) -> bool) -> WakeAction {
        if self.wake_parked() {
            return WakeAction::Woken;
        }
        // A thread that ends idle does so under this lock: it is counted out, or sees the waiting requests.
        if grow(&mut self.threads.counts.lock(), self.queued()) {
            WakeAction::Spawn
        } else {
            WakeAction::Nothing
        }
    }

    /// Has a parked thread look around. False when none is parked.
    pub(super) fn wake_parked(&self) -> bool {
        self.parking.pop().map(|place| place.wake(None)).is_some()
    }

    pub(super) fn parked(&self) -> usize {
        self.parking.count()
    }

    pub(crate) fn discard(&self) {
        let mut queue = self.lock();
        let jobs = std::mem::take(&mut queue.jobs);
        self.note_length(&queue);
        // A request that is dropped is answered: not under the lock.
        drop(queue);
        drop(jobs);
    }

    pub(crate) fn pop(&self) -> Option<J> {
        if self.queued() == 0 {
            return None;
        }
        let mut queue = self.lock();
        let since = queue.jobs.oldest()?;
        if !self.exclusive && self.parked() > 0 {
            queue.note_idle(clock::monotonic().saturating_sub(since.max(self.parking.since())));
        }
        self.take_next(&mut queue, |_| true)
    }

    /// Counts one more thread for requests beside the one for a thread that has just begun: none may have been made on its way.
    pub(super) fn grow_behind_start(&self) -> bool {
        match self.queued().saturating_sub(1) {
            0 => false,
            waiting => self.threads.counts.lock().grow_for_queue(waiting),
        }
    }

    /// Sleeps until woken, if `still_idle` returns true; it gets whether requests wait. It is asked again when this
    /// thread can be woken: work that was made before a parked thread was looked for is not missed.
    pub(super) fn park(&self, slot: &Slot<J>, still_idle: impl Fn(bool) -> bool) -> Errand<J> {
        let since = clock::monotonic();
        let changes = self.threads.changes.load(Ordering::SeqCst);
        let rests = || {
            !self.stopping.load(Ordering::SeqCst)
                && self.threads.changes.load(Ordering::SeqCst) == changes
                && still_idle(self.queued() > 0)
        };
        if !rests() {
            return Errand::Look;
        }
        if self.threads.is_surplus.load(Ordering::SeqCst) && self.threads.ends_surplus() {
            return Errand::End;
        }
        let mut limit = Duration::from_nanos(self.threads.idle_limit());
        self.parking.push(slot, clock::monotonic());
        loop {
            if !rests() && self.parking.cancel(slot) {
                return Errand::Look;
            }
            if slot.sleep(Some(limit)) {
                break;
            }
            let mut counts = self.threads.counts.lock();
            // Under the lock, see `wake`.
            if !self.parking.cancel(slot) {
                // Woken at the moment at which the limit was reached.
                drop(counts);
                slot.sleep(None);
                break;
            }
            let now = clock::monotonic();
            if !counts.rule.ends_idle(counts.load(self.queued()), since, now) {
                return Errand::Look;
            }
            match counts.idle_ends.end(now) {
                Err(wait) if counts.threads <= counts.rule.max_threads => {
                    limit = Duration::from_nanos(wait);
                    self.parking.push_below(slot, now);
                }
                ends => {
                    counts.end(if ends.is_ok() { End::Idle } else { End::Limit });
                    return Errand::End;
                }
            }
        }
        slot.take_message().unwrap_or(Errand::Look)
    }

    /// Whether a thread that has run `served` requests ends. Its end is counted, and a thread that is to be made in its place.
    pub(super) fn after_request(&self, served: u64) -> After {
        trace::note_served(served);
        let spent = served >= self.threads.budget.load(Ordering::Relaxed);
        let may_end = || clock::monotonic_coarse() >= self.threads.budget_ends.load(Ordering::Relaxed);
        let asks = self.threads.is_surplus.load(Ordering::Relaxed) || spent && may_end();
        if !asks {
            return After::GoOn;
        }
        let mut counts = self.threads.counts.lock();
        let load = counts.load(self.queued());
        let Counts { rule, budget_ends, .. } = &mut *counts;
        let after = budget_ends.after_request(rule, load, served, clock::monotonic());
        if let After::End { replace } = after {
            let is_surplus = load.begun() > counts.rule.max_threads;
            counts.end(if is_surplus { End::Limit } else { End::Spent });
            self.threads.budget_ends.store(clock::monotonic() + ENDS_APART, Ordering::Relaxed);
            self.threads.publish(&counts);
            counts.count_new(replace.into(), Start::Spent);
            drop(counts);
            // It may have been one of those that poll: those that are parked rely on them.
            self.wake_parked();
        }
        after
    }

    /// Changes the limits from now on. How many threads are to be made, which are counted; those that are too many end.
    pub(crate) fn set_limits(&self, limits: &PoolLimits) -> usize {
        {
            let mut queue = self.lock();
            (queue.capacity, queue.overflow) = (limits.queue, limits.overflow);
        }
        let mut counts = self.threads.counts.lock();
        counts.limits = *limits;
        self.threads.renew(&mut counts);
        let missing = counts.rule.floor().saturating_sub(counts.threads);
        counts.count_new(missing, Start::Least);
        // For waiting requests; a thread that begins asks for the next one.
        let waiting = !self.exclusive && counts.grow_for_queue(self.queued());
        drop(counts);
        self.threads.changes.fetch_add(1, Ordering::SeqCst);
        // They sleep anew, with the new idle time, or end.
        while self.wake_parked() {}
        missing + usize::from(waiting)
    }

    /// A thread's request has timed out, and the thread has not returned: another one may be made in its place.
    pub(super) fn lose_thread(&self) -> WakeAction {
        let mut counts = self.threads.counts.lock();
        counts.lost += 1;
        self.threads.renew(&mut counts);
        drop(counts);
        if self.queued() == 0 {
            return WakeAction::Nothing;
        }
        self.wake(|counts, _| counts.grow(Start::Lost))
    }

    pub(crate) fn stop(&self) {
        self.threads.counts.lock().stopping = true;
        self.stopping.store(true, Ordering::SeqCst);
        while self.wake_parked() {}
    }

    pub(super) fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// The present figures of the pool.
    pub fn figures(&self) -> PoolFigures {
        let (waited, refused, idleness) = {
            let Queue { counted, longest_idle, .. } = &*self.lock();
            let (requests, total_ns) = (counted.total(IDLE_REQUESTS), counted.total(IDLE_NANOS));
            let idleness = Idleness { requests, total_ns, longest_ns: *longest_idle };
            (counted.total(WAITED), counted.total(REFUSED), idleness)
        };
        let counts = self.threads.counts.lock();
        let (starts, ends) = counts.counted.by_reason();
        PoolFigures {
            name: self.name.clone(),
            threads: counts.threads,
            starting: counts.starting,
            lost: counts.lost,
            max: counts.rule.max_threads,
            parked: self.parked(),
            made: counts.counted.total() as usize,
            starts,
            ends,
            queued: self.queued(),
            waited,
            refused,
            idleness,
        }
    }

    pub(super) fn count_in(&self, arena: &Arena) {
        self.lock().counted = queue_counters(arena, &self.name);
        self.threads.counts.lock().counted = ThreadCounters::in_arena(arena, &self.name);
    }

    /// The counts of its locks.
    pub fn lock_snapshots(&self) -> [maitred_stats::LockSnapshot; 2] {
        [self.queue.snapshot(), self.threads.counts.snapshot()]
    }

    /// The number of waiting requests.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// How long the oldest waiting request has waited, in nanoseconds; 0 while none waits.
    pub fn queue_age(&self, now: u64) -> u64 {
        self.lock().jobs.oldest().map_or(0, |since| now.saturating_sub(since))
    }

    /// The class of this route at `now` in monotonic nanoseconds. `route` is called only if the class of any route is known.
    pub fn class_of(&self, now: u64, route: impl FnOnce() -> u64) -> RouteClass {
        if self.costs.is_watching(now) { self.costs.class(route(), now) } else { RouteClass::Normal }
    }
}

// ---- The queue ----

pub(super) struct Queue<J> {
    pub(super) jobs: FairQueue<J>,
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
    pub(super) counted: QueueCounters,
    pub(super) taken: u64,
    /// The longest wait of a request although a thread was idle, in nanoseconds.
    longest_idle: u64,
}

impl<J> Queue<J> {
    /// A request has waited so long although a thread was idle. Where threads run side by side a request is queued only when none is.
    pub(super) fn note_idle(&mut self, nanos: u64) {
        self.counted.add(IDLE_REQUESTS, 1);
        self.counted.add(IDLE_NANOS, nanos);
        self.longest_idle = self.longest_idle.max(nanos);
    }

    /// Whether a new request is refused; counted. Of the waiting requests `held_back` do not wait for a thread.
    pub(super) fn is_full(&mut self, held_back: impl FnOnce() -> usize) -> bool {
        let waiting = self.jobs.len();
        let full = self.overflow == Overflow::Refuse
            && waiting >= self.capacity
            && waiting.saturating_sub(held_back()) >= self.capacity;
        self.counted.add(REFUSED, full.into());
        full
    }
}
