//! The limiter of a pool: as many threads run application code as keep the interpreter busy, and no more.
//!
//! A language whose interpreter is one lock gains nothing from two threads that want it: each would interrupt the other in the
//! middle of a request. So a usual request enters application code with a **permit**, and a pool has one. The thread keeps it from
//! request to request. Two samples in a row that see the thread without the interpreter take the permit away: it goes to the next one.
//!
//! ```text
//! a request of           enters when
//! a usual route          the pool's permit is free, or a long computation has the interpreter, which gives each its turn
//! a route that computes  no other long computation has or wants the interpreter, and no request has waited for the last one
//! a route that computes  no long computation has or wants the interpreter, or fewer of them compute than there are
//!   without it           processors
//! a route that waits     always
//! ```
//! A request that may not enter is queued. The first application thread that has to queue one becomes the **monitor**: it takes
//! [samples](crate::interpreter) of the threads in application code while requests wait, and enters with the first request that
//! may. The other threads park. Nothing is sampled while nothing waits.
//!
//! Entering while a permit is free, and leaving while nothing waits, take no lock. A thread that leaves looks at the queue's
//! length after it has given its permit back, and a thread that queues a request asks for a permit after that: one of them
//! sees the other.
//!
//! Invariants, checked under shuttle with samples that are made up: the queue is not empty only while a thread monitors, or a
//! thread with a permit is going to look at it, or no thread is left; at most one thread monitors; a permit that is taken
//! away belongs to a thread in application code.

use std::io;
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use maitred_pool::RouteClass;

use crate::app_thread::{AppThread, Permit};
use crate::interpreter::{Interpreter, Sample};
use crate::numbers::{FIRST_PAUSE, LONG, UNNOTICED};
use crate::pool::{Errand, Pool, Queue, WakeAction};
use crate::sample_timer::{Pause, SampleTimer};
use crate::writing::set_own_thread;

/// Permits of a pool: one thread holds the interpreter.
const PERMITS: usize = 1;

/// Pauses between two samples while the same requests are in application code double up to this.
const LONGEST_PAUSE: u64 = LONG / 2;

/// Each end of a request pushes the next sample back. While requests end all the time, one is taken this long after the one before.
const LATEST: u64 = LONG;

/// A request enters, against the samples, if none has left the queue for so long under the eyes of a monitor: samples may be wrong.
const STANDSTILL: u64 = UNNOTICED / 2;

pub(super) struct Limiter {
    pub(super) interpreter: Arc<Interpreter>,
    /// Permits that are in use. There can be more than one for a while.
    pub(super) permits: Arc<AtomicUsize>,
    /// A thread monitors. Written under the pool's lock.
    monitored: AtomicBool,
    pub(super) timer: SampleTimer,
    /// A thread in application code is busy and wants a monitor.
    pub(super) wanted: AtomicBool,
}

/// The next step of a thread with a request, or of one that found the queue not empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admitted<J> {
    /// The thread runs this request, and has the permit that the request needs.
    Run(J),
    /// The request waits in the queue; the thread samples the threads that have permits until one is free.
    Monitor,
    /// The thread parks: another thread monitors.
    Park,
    /// The request is refused: the queue is full.
    Refuse(J),
}

/// The result of a step of the monitor.
pub(super) enum Monitored<J> {
    /// The thread runs this request, with the permit that the request needs, and does not monitor any more.
    Run(J),
    /// Nothing waits: the thread does not monitor any more.
    Idle,
    Pause(Pause),
}

/// The monitor's state between its steps. Times are in monotonic nanoseconds.
pub(super) struct Monitoring {
    pause: u64,
    /// When the last sample was taken, and whether the next one decides if a long computation may enter.
    sampled: u64,
    owed: bool,
    /// A number that changes while threads get on.
    progress: Option<u64>,
    /// Requests that have left the queue so far, and when the last one was seen to leave.
    taken: u64,
    since: u64,
}

impl Monitoring {
    pub(super) fn begin(now: u64) -> Self {
        Self { pause: FIRST_PAUSE, sampled: 0, owed: false, progress: None, taken: 0, since: now }
    }

    /// Whether requests have begun or ended since the last step.
    pub(super) fn is_moving(&mut self, progress: u64) -> bool {
        self.progress.replace(progress).is_some_and(|before| before != progress)
    }

    /// Whether the queue, from which so many requests have been taken by `now`, has stood still for too long.
    fn stands_still(&mut self, taken: u64, now: u64) -> bool {
        if std::mem::replace(&mut self.taken, taken) != taken {
            self.since = now;
        }
        now.saturating_sub(self.since) >= STANDSTILL
    }

    fn behind(&mut self, sample: Sample) -> Pause {
        self.owed = sample.owed;
        let nanos = if sample.unsure || sample.owed { FIRST_PAUSE } else { self.pause };
        self.pause = (nanos * 2).min(LONGEST_PAUSE);
        Pause { nanos, most: 0 }
    }

    fn while_moving(&mut self, now: u64) -> Pause {
        // A request that has not ended by then has been in application code for about as long.
        self.pause = LONGEST_PAUSE;
        let most = (self.sampled + LATEST).saturating_sub(now);
        Pause { nanos: LONGEST_PAUSE.min(most), most }
    }
}

impl Limiter {
    pub(super) fn new(interpreter: &Arc<Interpreter>) -> io::Result<Self> {
        Ok(Self {
            interpreter: Arc::clone(interpreter),
            permits: Arc::default(),
            monitored: AtomicBool::new(false),
            timer: SampleTimer::new()?,
            wanted: AtomicBool::new(false),
        })
    }

    /// Notes the calling thread until [`remove`](Self::remove).
    pub(super) fn add(&self) -> Arc<AppThread> {
        let thread = self.interpreter.add(&self.permits);
        set_own_thread(Some(&thread));
        thread
    }

    pub(super) fn remove(&self, thread: &Arc<AppThread>) {
        set_own_thread(None);
        self.give_back(thread);
        self.interpreter.remove(thread);
    }

    /// Whether the thread is one of this pool.
    pub(super) fn has(&self, thread: &AppThread) -> bool {
        Arc::ptr_eq(&thread.permits, &self.permits)
    }

    /// The number of this pool's threads in application code, or of those of them for which `counts` says so.
    pub(super) fn count_inside(&self, mut counts: impl FnMut(&AppThread) -> bool) -> usize {
        self.interpreter
            .ask_inside(|threads| threads.filter(|thread| self.has(thread) && counts(thread)).count())
    }

    /// A permit of usual requests, counted, if fewer are in use than there may be.
    fn claim_usual(&self) -> Option<Permit> {
        let more = |permits| (permits < PERMITS).then_some(permits + 1);
        self.permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok().map(|_| Permit::Normal)
    }

    /// The permit with which a request of this class may enter now, counted.
    fn claim(&self, class: RouteClass) -> Option<Permit> {
        let beside = |may_enter: bool| may_enter.then_some(Permit::Released);
        match class {
            RouteClass::Normal => self.claim_usual().or_else(|| beside(self.interpreter.has_long())),
            RouteClass::CpuBound => self.interpreter.take_long().then_some(Permit::Long),
            RouteClass::Parallel => beside(self.interpreter.has_processor()),
            RouteClass::Blocking => beside(true),
        }
    }

    /// Takes one more permit than there may be.
    pub(super) fn force(&self, thread: &AppThread) {
        self.permits.fetch_add(1, Ordering::SeqCst);
        self.grant(thread, Permit::Normal);
    }

    /// A permit that was counted becomes that of this thread, which has none and is the caller.
    fn grant(&self, thread: &AppThread, permit: Permit) {
        let had_none = thread.change(Permit::None, permit);
        debug_assert!(had_none, "a thread has one permit at most");
    }

    /// Gives a permit back, in its present kind; the thread is not in application code.
    pub(super) fn give_back(&self, thread: &AppThread) {
        // A sample may change it meanwhile.
        loop {
            let permit = thread.permit();
            if thread.change(permit, Permit::None) {
                match permit {
                    Permit::Normal => _ = self.permits.fetch_sub(1, Ordering::SeqCst),
                    Permit::Long => {
                        self.interpreter.give_long_back();
                        // The next long computation may wait behind usual requests that make progress.
                        self.timer.fire_now(clock::monotonic());
                    }
                    Permit::Released | Permit::None => {}
                }
                return;
            }
        }
    }

    /// Whether a request of this class may enter now, on a thread without a permit, which gets the one that it needs.
    pub(super) fn admit(&self, thread: &AppThread, class: RouteClass) -> bool {
        self.claim(class).map(|permit| self.grant(thread, permit)).is_some()
    }

    /// As [`admit`](Self::admit), on a thread that may have a permit already. It has none if the request may not enter.
    pub(super) fn admit_next(&self, thread: &AppThread, class: RouteClass) -> bool {
        match (thread.permit(), class) {
            (Permit::Normal, RouteClass::Normal) | (Permit::Long, RouteClass::CpuBound) => true,
            (Permit::Released, RouteClass::Normal | RouteClass::CpuBound | RouteClass::Blocking) => true,
            _ => {
                self.give_back(thread);
                self.admit(thread, class)
            }
        }
    }

    /// As [`admit`](Self::admit), on a thread with the permit of usual requests, which it keeps if the request may not enter.
    fn exchange(&self, thread: &AppThread, class: RouteClass) -> bool {
        let Some(permit) = self.claim(class) else { return false };
        self.give_back(thread);
        self.grant(thread, permit);
        true
    }

    /// Whether a thread that comes out of application code keeps its permit, as there are not too many, or gets one. Else it has none.
    pub(super) fn may_go_on(&self, thread: &AppThread) -> bool {
        if thread.permit() == Permit::Normal {
            let fewer = |permits| (permits > PERMITS).then(|| permits - 1);
            if self.permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_err() {
                return true;
            }
            if !thread.change(Permit::Normal, Permit::None) {
                // A sample of a moment ago has taken it away just now, and has counted it off.
                self.permits.fetch_add(1, Ordering::SeqCst);
                self.give_back(thread);
            }
            return false;
        }
        self.give_back(thread);
        self.claim_usual().map(|permit| self.grant(thread, permit)).is_some()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.permits.load(Ordering::SeqCst) > 0
    }

    /// A request has ended at `now`: the monitor need not look yet. One load while none waits.
    pub(super) fn note_end(&self, now: u64) {
        self.timer.defer(now, LONGEST_PAUSE);
    }

    pub(super) fn is_monitored(&self) -> bool {
        self.monitored.load(Ordering::SeqCst)
    }

    /// Whether a monitor is wanted; the answer clears the wish.
    pub(super) fn take_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::SeqCst)
    }
}

impl<J> Pool<J> {
    /// A thread without a permit has a request of this class to run at `now`. The request runs at once if none waits and a permit is
    /// free; else it is queued, and the thread watches the others or parks; it is refused if the queue is full.
    pub(super) fn arrive(&self, job: J, class: RouteClass, thread: &AppThread, now: u64) -> Admitted<J> {
        if self.queued() == 0 && self.limiter.admit(thread, class) {
            return Admitted::Run(job);
        }
        let mut queue = self.lock();
        if let Err(job) = self.push(&mut queue, job, class, now) {
            return Admitted::Refuse(job);
        }
        // The thread that had the permit may have left without seeing this request.
        self.enter_or_monitor(&mut queue, thread)
    }

    /// A thread without a permit and without a request looks at the queue; `None` when it is empty.
    pub(super) fn look(&self, thread: &AppThread) -> Option<Admitted<J>> {
        if self.queued() == 0 {
            return None;
        }
        let mut queue = self.lock();
        if queue.jobs.is_empty() {
            return None;
        }
        Some(self.enter_or_monitor(&mut queue, thread))
    }

    fn enter_or_monitor(&self, queue: &mut Queue<J>, thread: &AppThread) -> Admitted<J> {
        match self.enter_with_next(queue, thread, false) {
            Some(next) => Admitted::Run(next),
            None if self.limiter.monitored.swap(true, Ordering::SeqCst) => Admitted::Park,
            None => Admitted::Monitor,
        }
    }

    /// The next request that may enter, for a thread without a permit, which gets the one that it needs. `monitors`: it is the monitor.
    fn enter_with_next(&self, queue: &mut Queue<J>, thread: &AppThread, monitors: bool) -> Option<J> {
        let mut classes = queue.jobs.classes();
        let first = classes.next()?;
        let class = match self.limiter.admit(thread, first) {
            true => first,
            false => {
                let other = classes.find(|class| self.limiter.admit(thread, *class))?;
                let is_last = self.parked() == 0 && (monitors || !self.limiter.is_monitored());
                // On the last thread that is free, a route that waits would keep usual ones out for as long as it has requests.
                let gives_way = is_last && first == RouteClass::Normal && other.does_without();
                if gives_way { first } else { other }
            }
        };
        let next = self.take_next(queue, |waiting| waiting.class == class);
        debug_assert!(next.is_some(), "a request of this class waits");
        next
    }

    /// As [`enter_with_next`](Self::enter_with_next), with the permit of usual requests. Only a usual one, if another thread may take the others.
    pub(super) fn next_in_turn(&self, thread: &AppThread) -> Option<J> {
        if self.queued() == 0 {
            return None;
        }
        let mut queue = self.lock();
        let others_may = self.limiter.is_monitored() || self.parked() > 0;
        let class = queue.jobs.classes().find(|class| match class {
            RouteClass::Normal => true,
            _ => !others_may && self.limiter.exchange(thread, *class),
        })?;
        self.take_next(&mut queue, |waiting| waiting.class == class)
    }

    /// A thread that polls is to monitor instead. False when no thread has a permit, or another one monitors.
    pub(super) fn begin_monitoring(&self) -> bool {
        let _queue = self.lock();
        self.limiter.is_taken() && !self.limiter.monitored.swap(true, Ordering::SeqCst)
    }

    /// One step of the monitor, if need be with a sample. `moving`: requests have begun or ended since the last step.
    pub(super) fn monitor(
        &self,
        thread: &AppThread,
        monitoring: &mut Monitoring,
        moving: bool,
    ) -> Monitored<J> {
        let now = clock::monotonic();
        if moving && self.queued() == 0 && self.limiter.is_taken() {
            // More will come, and find a monitor.
            monitoring.sampled = now;
            return Monitored::Pause(monitoring.while_moving(now));
        }
        if let Some(step) = self.end_monitoring_if(thread, None) {
            return step;
        }
        if moving && !monitoring.owed && now.saturating_sub(monitoring.sampled) < LATEST {
            return Monitored::Pause(monitoring.while_moving(now));
        }
        monitoring.sampled = now;
        let sample = self.limiter.interpreter.sample(now);
        let stands_still = monitoring.stands_still(self.taken(), now);
        let step = self.end_monitoring_if(thread, Some((sample, stands_still)));
        step.unwrap_or_else(|| Monitored::Pause(monitoring.behind(sample)))
    }

    /// The end of monitoring, if a request may enter or none waits. `sampled`: behind this sample, and whether the queue stands still.
    fn end_monitoring_if(&self, thread: &AppThread, sampled: Option<(Sample, bool)>) -> Option<Monitored<J>> {
        let mut queue = self.lock();
        let Some(waits) = queue.jobs.oldest() else {
            self.limiter.monitored.store(false, Ordering::SeqCst);
            return Some(Monitored::Idle);
        };
        let mut next = self.enter_with_next(&mut queue, thread, true);
        if next.is_none() && matches!(sampled, Some((_, true))) {
            self.limiter.grant(thread, Permit::Released);
            next = self.take_next(&mut queue, |_| true);
        }
        let next = next?;
        self.limiter.monitored.store(false, Ordering::SeqCst);
        if let Some((Sample { busy: 0, before, .. }, _)) = sampled {
            // When between two samples the last thread began to wait is not known: in the middle, as a mean.
            let idle = clock::monotonic().saturating_sub(waits.max(before)) / 2;
            queue.note_idle(idle);
        }
        Some(Monitored::Run(next))
    }

    /// The monitor ends although requests may wait: the server stops.
    pub(super) fn end_monitoring(&self) {
        let _queue = self.lock();
        self.limiter.monitored.store(false, Ordering::SeqCst);
    }

    /// A thread gives its permit back. Returns the next request that may enter, with the permit that it needs.
    pub(super) fn leave(&self, thread: &AppThread) -> Option<J> {
        self.limiter.give_back(thread);
        if self.queued() == 0 {
            return None;
        }
        self.enter_with_next(&mut self.lock(), thread, false)
    }

    /// Queues a request of a thread that may not run it. A thread that monitors sees it; else a thread is woken.
    pub(super) fn enqueue_limited(&self, job: J, class: RouteClass, now: u64) -> Result<WakeAction, J> {
        let monitored = {
            let mut queue = self.lock();
            self.push(&mut queue, job, class, now)?;
            self.limiter.is_monitored()
        };
        if !monitored {
            return Ok(self.wake_for_queue());
        }
        if class.does_without() || !self.limiter.is_taken() {
            self.limiter.timer.fire_now(now);
        }
        Ok(WakeAction::Woken)
    }

    /// Has a parked thread monitor, if none does. False when none is parked.
    pub(super) fn wake_monitor(&self) -> bool {
        let queue = self.lock();
        if self.limiter.is_monitored() {
            return true;
        }
        let Some(place) = self.parking.pop() else { return false };
        self.limiter.monitored.store(true, Ordering::SeqCst);
        // A call is a system call.
        drop(queue);
        place.wake(Some(Errand::Monitor));
        true
    }
}
