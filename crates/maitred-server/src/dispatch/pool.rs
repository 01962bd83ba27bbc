//! The application threads of a pool: who is idle, what waits, and when one is made.
//!
//! A request goes straight to the most recently idle thread, which alone is woken, and is queued only when there is
//! none. Idle threads are parked last-in first-out, so that the ones at the bottom reach their idle timeout.
//!
//! The queue and the idle threads have a lock each (D2); who takes both takes the queue's first. Nobody is missed:
//! a request is in the queue before an idle thread is looked for, and a thread looks at the queue's length under the
//! lock under which it becomes idle.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use maitred_io::sync::{NamedGuard, NamedLock};

use super::audit::Audit;
use super::figures::PoolFigures;
use super::gate::Gate;
use super::place::Place;
use super::queue::{Queue, Waiting};
use super::scaling::{After, BudgetEnds, Load, Rule};
use super::trace;
use crate::settings::PoolLimits;

/// What has to be done so that a waiting request is run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// An idle thread has been unparked.
    Unparked,
    /// One more thread must be made; it is counted already.
    Spawn,
    /// Every thread there may be exists: the next one that finishes looks at the queue.
    Nothing,
}

/// The queue and the threads.
pub(crate) struct Pool<J> {
    pub(crate) name: String,
    queue: NamedLock<Queue<J>>,
    idle: NamedLock<Idle<J>>,
    /// For a language with one interpreter; unused otherwise.
    pub(super) gate: Gate,
    /// One thread at a time can run a request: idle ones could not.
    exclusive: bool,
    /// The length of the queue, to look at without the lock.
    queued: AtomicUsize,
    /// Threads of other groups may run what waits, likewise.
    pub(super) offered: AtomicBool,
    /// Slow requests that wait, likewise.
    slow_waiting: AtomicUsize,
    /// Threads that run slow requests, or are being found for one.
    pub(super) slow_inside: AtomicUsize,
    /// Parked threads, likewise, and since when there are any, in monotonic nanoseconds.
    pub(super) parked: AtomicUsize,
    parked_since: AtomicU64,
    /// The most threads, likewise.
    max: AtomicUsize,
    /// Requests after which a thread asks whether it ends, likewise.
    pub(super) budget: AtomicU64,
    /// There are more threads than there may be, likewise.
    is_surplus: AtomicBool,
    /// The limit of a request in nanoseconds, 0 for none, and whether it interrupts, likewise.
    request_limit: AtomicU64,
    interrupts: AtomicBool,
    pub(super) audit: Audit,
}

/// Who could run something.
struct Idle<J> {
    parked: Vec<Arc<Place<J>>>,
    /// Threads that run or have been asked for.
    threads: usize,
    /// Threads asked for that have not begun.
    starting: usize,
    stopping: bool,
    /// Threads ever asked for, for their names.
    made: usize,
    /// Threads whose request has timed out and that have not returned.
    lost: usize,
    limits: PoolLimits,
    /// The rule of the limits, with room for threads in the place of those that are lost.
    rule: Rule,
    budget_ends: BudgetEnds,
}

/// Why a parked thread goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parked<J> {
    /// There may be something to do.
    Called,
    /// It has been given this.
    Given(J),
    /// It may end; it is not counted any more.
    Superfluous,
}

impl<J> Pool<J> {
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn new(name: &str, limits: PoolLimits, exclusive: bool) -> io::Result<Self> {
        let idle = Idle {
            parked: Vec::new(),
            threads: 0,
            starting: 0,
            stopping: false,
            made: 0,
            lost: 0,
            limits,
            rule: Rule::of(&limits),
            budget_ends: BudgetEnds::default(),
        };
        let pool = Self {
            name: name.to_owned(),
            queue: NamedLock::with_name(format!("{name}.queue").into(), Queue::new(&limits)),
            idle: NamedLock::with_name(format!("{name}.idle").into(), idle),
            gate: Gate::new()?,
            exclusive,
            queued: AtomicUsize::new(0),
            offered: AtomicBool::new(false),
            slow_waiting: AtomicUsize::new(0),
            slow_inside: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            parked_since: AtomicU64::new(0),
            max: AtomicUsize::new(0),
            budget: AtomicU64::new(0),
            is_surplus: AtomicBool::new(false),
            request_limit: AtomicU64::new(0),
            interrupts: AtomicBool::new(false),
            audit: Audit::default(),
        };
        pool.publish(&pool.idle.lock());
        Ok(pool)
    }

    pub(super) fn lock(&self) -> NamedGuard<'_, Queue<J>> {
        self.queue.lock()
    }

    /// Has a request run: by the most recently idle thread, else by whoever looks at the queue first.
    ///
    /// # Errors
    /// The queue is full and its overflow is refused: the request.
    pub(crate) fn submit(&self, job: J, now: u64) -> Result<Call, J> {
        match self.give(job) {
            Ok(()) => Ok(Call::Unparked),
            Err(job) => self.enqueue(job, now),
        }
    }

    /// Gives a request to the most recently idle thread.
    ///
    /// # Errors
    /// No thread is idle: the request.
    pub(super) fn give(&self, job: J) -> Result<(), J> {
        if self.parked.load(Ordering::SeqCst) == 0 {
            return Err(job);
        }
        match self.take_parked() {
            Some(place) => {
                place.give(job);
                Ok(())
            }
            None => Err(job),
        }
    }

    /// Counts one more thread if there may be one.
    pub(super) fn call_for_one_more(&self) -> bool {
        self.idle.lock().grow(1)
    }

    /// Queues a request, and calls a thread that looks there.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(crate) fn enqueue(&self, job: J, now: u64) -> Result<Call, J> {
        self.push(&mut self.lock(), job, now)?;
        Ok(self.call(Idle::grow_for_queue))
    }

    /// Puts a request into the queue.
    ///
    /// # Errors
    /// The queue is full and its overflow is refused: the request.
    pub(super) fn push(&self, queue: &mut Queue<J>, job: J, now: u64) -> Result<(), J> {
        if queue.is_full() {
            return Err(job);
        }
        queue.waited += 1;
        queue.jobs.push_back(Waiting { job, since: now });
        self.queued.store(queue.jobs.len(), Ordering::SeqCst);
        Ok(())
    }

    pub(super) fn pop_from(&self, queue: &mut Queue<J>) -> Option<J> {
        let waiting = queue.jobs.pop_front()?;
        trace::note_taken(waiting.since);
        self.withdraw(queue);
        self.queued.store(queue.jobs.len(), Ordering::SeqCst);
        Some(waiting.job)
    }

    /// Calls a thread that can poll: the thread that did is stuck in application code.
    pub(crate) fn call_poller(&self) -> Call {
        self.call(|idle, _| idle.grow(1))
    }

    /// Calls an idle thread, or has one made if `grow` counts one more, which is told how many requests wait.
    fn call(&self, grow: impl FnOnce(&mut Idle<J>, usize) -> bool) -> Call {
        let mut idle = self.idle.lock();
        if let Some(place) = self.pop_parked(&mut idle) {
            // A call is a system call.
            drop(idle);
            place.call();
            return Call::Unparked;
        }
        if grow(&mut idle, self.queued()) { Call::Spawn } else { Call::Nothing }
    }

    fn pop_parked(&self, idle: &mut Idle<J>) -> Option<Arc<Place<J>>> {
        let place = idle.parked.pop();
        self.count_parked(idle);
        place
    }

    fn count_parked(&self, idle: &Idle<J>) {
        self.parked.store(idle.parked.len(), Ordering::SeqCst);
    }

    /// A parked thread, to be called.
    pub(super) fn take_parked(&self) -> Option<Arc<Place<J>>> {
        self.pop_parked(&mut self.idle.lock())
    }

    /// Has a parked thread poll. False when nobody is parked.
    pub(super) fn call_idle(&self) -> bool {
        let place = self.take_parked();
        if let Some(place) = &place {
            place.call();
        }
        place.is_some()
    }

    /// Drops all waiting requests.
    pub(crate) fn discard(&self) {
        let mut queue = self.lock();
        let jobs = (std::mem::take(&mut queue.jobs), std::mem::take(&mut queue.slow));
        self.withdraw(&queue);
        self.queued.store(0, Ordering::SeqCst);
        self.count_slow(&queue);
        // A request that is dropped is answered: not under the lock.
        drop(queue);
        drop(jobs);
    }

    /// The oldest waiting request.
    pub(crate) fn pop(&self) -> Option<J> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut queue = self.lock();
        let since = queue.oldest()?;
        if let (false, Some(idle)) = (self.exclusive, self.idle_since()) {
            self.audit.add(clock::monotonic().saturating_sub(since.max(idle)));
        }
        self.pop_from(&mut queue)
    }

    /// Since when a thread has been parked, in monotonic nanoseconds, if one is.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let parked = self.parked.load(Ordering::SeqCst) > 0;
        parked.then(|| self.parked_since.load(Ordering::Relaxed))
    }

    /// Counts a thread that must be made at the start.
    pub(crate) fn claim_initial(&self) -> bool {
        let mut idle = self.idle.lock();
        let wanted = idle.threads < idle.rule.floor();
        idle.count_new(wanted)
    }

    /// A number for the next thread's name.
    pub(crate) fn number(&self) -> usize {
        let mut idle = self.idle.lock();
        idle.made += 1;
        idle.made
    }

    /// A thread has begun.
    pub(crate) fn started(&self) {
        self.idle.lock().starting -= 1;
    }

    /// Counts one more thread for requests that wait beside the one for a thread that has just begun: while it was on
    /// its way none may have been made for them.
    pub(super) fn follow(&self) -> bool {
        match self.queued().saturating_sub(1) {
            0 => false,
            waiting => self.idle.lock().grow_for_queue(waiting),
        }
    }

    /// A thread could not be made.
    pub(crate) fn not_started(&self) {
        let mut idle = self.idle.lock();
        idle.starting -= 1;
        idle.threads -= 1;
    }

    /// A thread has ended for a reason other than idleness.
    pub(crate) fn ended(&self) {
        self.idle.lock().threads -= 1;
    }

    /// Sleeps until called, if `still_idle` says so under the lock, where it is told whether requests
    /// wait: a caller that made work before it looked for parked threads is not missed.
    pub(super) fn park(&self, place: &Arc<Place<J>>, still_idle: impl FnOnce(bool) -> bool) -> Parked<J> {
        let since = clock::monotonic();
        let limit = {
            let mut idle = self.idle.lock();
            if idle.stopping || !still_idle(self.queued() > 0) {
                return Parked::Called;
            }
            if idle.threads > idle.rule.max {
                idle.threads -= 1;
                self.publish(&idle);
                return Parked::Superfluous;
            }
            if idle.parked.is_empty() {
                self.parked_since.store(since, Ordering::Relaxed);
            }
            idle.parked.push(Arc::clone(place));
            self.count_parked(&idle);
            Duration::from_nanos(idle.rule.idle)
        };
        if !place.parker.park(Some(limit)) {
            let mut idle = self.idle.lock();
            if let Some(index) = idle.parked.iter().position(|other| Arc::ptr_eq(other, place)) {
                idle.parked.remove(index);
                self.count_parked(&idle);
                let now = clock::monotonic();
                if idle.rule.ends_idle(idle.load(self.queued()), since, now) {
                    idle.threads -= 1;
                    return Parked::Superfluous;
                }
                return Parked::Called;
            }
            // Called in the moment in which the limit was reached: take the call.
            drop(idle);
            place.parker.park(None);
        }
        place.take_given().map_or(Parked::Called, Parked::Given)
    }

    /// What a thread that has run `served` requests does next. Its end is counted; a thread in its place is to be
    /// made if it says so, and is counted too.
    pub(super) fn after_request(&self, served: u64) -> After {
        trace::note_served(served);
        if served < self.budget.load(Ordering::Relaxed) && !self.is_surplus.load(Ordering::Relaxed) {
            return After::GoOn;
        }
        let mut idle = self.idle.lock();
        let load = idle.load(self.queued());
        let Idle { rule, budget_ends, .. } = &mut *idle;
        let after = budget_ends.after_request(rule, load, served, clock::monotonic());
        if let After::End { replace } = after {
            idle.threads -= 1;
            let surplus = idle.threads > idle.rule.max;
            self.is_surplus.store(surplus, Ordering::Relaxed);
            idle.count_new(replace);
            // It may have been one of those that poll: those that are parked rely on them.
            let place = self.pop_parked(&mut idle);
            drop(idle);
            if let Some(place) = place {
                place.call();
            }
        }
        after
    }

    /// Changes the limits from now on. How many threads are to be made, which are counted; those that are too many end.
    pub(crate) fn set_limits(&self, limits: &PoolLimits) -> usize {
        {
            let mut queue = self.lock();
            (queue.capacity, queue.overflow) = (limits.queue, limits.overflow);
        }
        let mut idle = self.idle.lock();
        idle.limits = *limits;
        self.renew(&mut idle);
        // They sleep anew, with the new idle time, or end.
        for place in idle.parked.drain(..) {
            place.call();
        }
        self.count_parked(&idle);
        let missing = idle.rule.floor().saturating_sub(idle.threads);
        idle.threads += missing;
        idle.starting += missing;
        // What waits need not wait any longer where there may be more threads now; a thread that begins asks for the next.
        let waiting = !self.exclusive && idle.grow_for_queue(self.queued());
        let slow = self.has_slow() && idle.grow(1);
        missing + usize::from(waiting) + usize::from(slow)
    }

    /// The limits, as they are now.
    pub(super) fn limits(&self) -> PoolLimits {
        self.idle.lock().limits
    }

    /// A thread's request has timed out, and the thread has not returned: another one may be made in its place. Whether
    /// one is made now, which is counted.
    pub(super) fn lose_thread(&self) -> Call {
        let mut idle = self.idle.lock();
        idle.lost += 1;
        self.renew(&mut idle);
        drop(idle);
        if self.queued() == 0 && self.slow_waiting() == 0 {
            return Call::Nothing;
        }
        self.call_poller()
    }

    /// A lost thread has returned.
    pub(super) fn find_thread(&self) {
        let mut idle = self.idle.lock();
        idle.lost -= 1;
        self.renew(&mut idle);
    }

    /// From the complete request until its response has begun.
    pub(super) fn request_limit(&self) -> Option<Duration> {
        let nanos = self.request_limit.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Whether the application is interrupted when that is over.
    pub(super) fn interrupts(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }

    fn renew(&self, idle: &mut Idle<J>) {
        idle.rule = Rule::of(&idle.limits);
        idle.rule.max += idle.lost.min(idle.limits.max_lost);
        self.publish(idle);
    }

    fn publish(&self, idle: &Idle<J>) {
        let limit = idle.limits.request_timeout.map_or(0, |limit| limit.as_nanos().max(1));
        self.request_limit.store(u64::try_from(limit).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.interrupts.store(idle.limits.interrupt, Ordering::Relaxed);
        self.max.store(idle.rule.max, Ordering::Relaxed);
        self.budget.store(if idle.rule.budget == 0 { u64::MAX } else { idle.rule.budget }, Ordering::Relaxed);
        self.is_surplus.store(idle.threads > idle.rule.max, Ordering::Relaxed);
    }

    /// No thread parks any more; all that do are called.
    pub(crate) fn stop(&self) {
        let mut idle = self.idle.lock();
        idle.stopping = true;
        for place in idle.parked.drain(..) {
            place.call();
        }
        self.parked.store(0, Ordering::SeqCst);
    }

    /// Threads that exist or have been asked for.
    pub(crate) fn threads(&self) -> usize {
        self.idle.lock().threads
    }

    /// The most threads.
    pub(super) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Whether every thread there may be exists, and so many `inside` are all.
    pub(super) fn is_exhausted(&self, inside: usize) -> bool {
        let idle = self.idle.lock();
        idle.threads >= idle.rule.max && inside >= idle.threads
    }

    /// Whether one more thread may be made, and none is on its way.
    pub(super) fn has_room(&self) -> bool {
        let idle = self.idle.lock();
        idle.threads < idle.rule.max && idle.starting == 0
    }

    /// Slow requests that wait.
    pub(super) fn slow_waiting(&self) -> usize {
        self.slow_waiting.load(Ordering::SeqCst)
    }

    pub(super) fn count_slow(&self, queue: &Queue<J>) {
        self.slow_waiting.store(queue.slow.len(), Ordering::SeqCst);
    }

    /// Whether there is never more than one thread.
    pub(super) fn is_single(&self) -> bool {
        self.max() == 1
    }

    pub(super) fn figures(&self) -> PoolFigures {
        let (waited, refused) = {
            let queue = self.lock();
            (queue.waited, queue.refused)
        };
        let idle = self.idle.lock();
        PoolFigures {
            name: self.name.clone(),
            threads: idle.threads,
            lost: idle.lost,
            max: idle.rule.max,
            parked: idle.parked.len(),
            made: idle.made,
            queued: self.queued() + self.slow_waiting(),
            waited,
            refused,
            idleness: self.audit.snapshot(),
        }
    }

    pub(super) fn lock_snapshots(&self) -> [maitred_stats::LockSnapshot; 2] {
        [self.queue.snapshot(), self.idle.snapshot()]
    }

    /// Requests that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }
}

impl<J> Idle<J> {
    fn load(&self, queued: usize) -> Load {
        Load { queued, threads: self.threads, starting: self.starting }
    }

    /// Counts one more thread if there may be one because requests wait (D3).
    fn grow_for_queue(&mut self, queued: usize) -> bool {
        let grows = !self.stopping && self.rule.may_create(self.load(queued));
        self.count_new(grows)
    }

    /// Counts one more thread if there may be one and fewer than `wanted` are on their way.
    fn grow(&mut self, wanted: usize) -> bool {
        let grows = self.threads < self.rule.max && self.starting < wanted && !self.stopping;
        self.count_new(grows)
    }

    fn count_new(&mut self, grows: bool) -> bool {
        if grows {
            self.threads += 1;
            self.starting += 1;
        }
        grows
    }
}
