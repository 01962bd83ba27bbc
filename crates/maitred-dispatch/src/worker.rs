//! The rounds of an application thread: it runs waiting requests, serves the ready list, polls, or parks.
//!
//! At a limiter it enters with a request, and goes on with further ones from the queue, the ready list and the poller for as long as it
//! has the permit; or it monitors, or parks while another thread does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::poller::{Events, Readiness};
use maitred_io::sync::atomic::Ordering;
use maitred_io::sync::thread;
use maitred_pool::{RouteClass, Strategy};
use maitred_turns::{Signals, TurnContext};

use crate::app_thread::AppThread;
use crate::limiter::{Admitted, Monitored, Monitoring};
use crate::numbers::{EVENTS, FEW_EVENTS, NOW_AND_THEN};
use crate::pool::{Errand, Pool, Slot};
use crate::ready::Ready;
use crate::{Scheduler, Serve, panic_text};

struct Worker<'a, S: Serve> {
    server: &'a Arc<S>,
    slot: Slot<S::Job>,
    thread: Arc<AppThread>,
    context: S::Context,
    events: Events,
    /// The events of looks at the poller between requests while a thread monitors, or if there is no other thread.
    more: Events,
    /// Turns from the ready list left before the poller is looked at.
    turns: usize,
    /// Another thread monitors: this one parks in the next round.
    away: bool,
    served: u64,
    /// The thread is not counted any more, and ends.
    done: bool,
}

pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.threads.started();
    let mut worker = Worker {
        server,
        slot: Slot::default(),
        thread: scheduler.pool.limiter.add(),
        context: S::Context::default(),
        events: Events::with_capacity(batch(scheduler)),
        more: Events::with_capacity(FEW_EVENTS),
        turns: 1,
        away: false,
        served: 0,
        done: false,
    };
    run_rounds(server, || {
        // A panic may have followed the end.
        if !worker.done {
            worker.round();
        }
        !worker.done
    });
    if worker.done {
        // Its successor may be long in coming.
        scheduler.backup_poller.watch();
    } else {
        scheduler.pool.threads.ended();
    }
    scheduler.pool.limiter.remove(&worker.thread);
}

/// Events fetched by one wait. Where a single thread polls, no other one could have taken them, and the backup poller takes over the ready list
/// if this one stands still. With several pollers a private batch would strand requests behind a slow one, and one on the ready list has
/// all threads meet at its lock. With EPC a batch would wait for the successor's wake-up.
fn batch<J>(scheduler: &Scheduler<J>) -> usize {
    if scheduler.pollers.max() == 1 && scheduler.strategy != Strategy::Epc { EVENTS } else { 1 }
}

impl<'a, S: Serve> Worker<'a, S> {
    fn scheduler(&self) -> &'a Scheduler<S::Job> {
        self.server.scheduler()
    }

    /// After as many turns from the ready list as a wait fetches, the poller is looked at: connections that always have more to do leave room.
    fn round(&mut self) {
        let scheduler = self.scheduler();
        self.context.clock_mut().set_now(None);
        if scheduler.pool.exclusive {
            // After a panic of ours this thread may have its permit still.
            self.thread.leave();
            scheduler.pool.limiter.give_back(&self.thread);
        }
        if std::mem::take(&mut self.away) {
            return self.park(|_| scheduler.pool.limiter.is_monitored());
        }
        if scheduler.pool.exclusive {
            if let Some(admitted) = scheduler.pool.look(&self.thread) {
                self.act_on(admitted);
                return;
            }
        } else if let Some(job) = scheduler.pool.pop() {
            self.run_plainly(job, clock::monotonic());
            return;
        }
        if self.turns > 0
            && let Some(event) = scheduler.ready.pop()
        {
            self.turns -= 1;
            if let Some(job) = Served::of(self.server, event, &mut self.context).run(self.server) {
                self.take(job);
            }
            return;
        }
        self.turns = scheduler.ready.len().clamp(1, batch(scheduler));
        let (counted, others) = scheduler.pollers.begin();
        // After it is counted: the backup poller, which defers work that comes while no thread polls, looks at that.
        let took = scheduler.take_deferred(self.server);
        if others >= scheduler.pollers.max() && !took {
            drop(counted);
            if let Some(job) = scheduler.peer_groups.visit(&scheduler.pool) {
                self.run_plainly(job, clock::monotonic());
                return;
            }
            return self.park(|waiting| {
                !waiting
                    && scheduler.ready.is_empty()
                    && !scheduler.peer_groups.is_offered()
                    && scheduler.pollers.are_enough()
            });
        }
        scheduler.backup_poller.release_polling();
        fetch(self.server, &mut self.events, scheduler.is_idle() && !took);
        drop(counted);
        let wanted = scheduler.pool.limiter.take_wanted();
        let idle = self.events.iter().len() == 0;
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.context) {
            self.take(job);
        } else if wanted && scheduler.pool.begin_monitoring() {
            self.act_on(Admitted::Monitor);
        } else if idle && let Some(job) = scheduler.peer_groups.visit(&scheduler.pool) {
            self.run_plainly(job, clock::monotonic());
        }
    }

    fn take(&mut self, job: S::Job) {
        if let Some(job) = self.scheduler().assign(job, self.server) {
            self.run_here(job);
        }
    }

    fn run_here(&mut self, job: S::Job) {
        if self.scheduler().pool.exclusive {
            self.act_on(self.arrive(job));
        } else {
            self.run_plainly(job, self.context.clock().turn_began());
        }
    }

    fn run_plainly(&mut self, job: S::Job, now: u64) {
        let scheduler = self.scheduler();
        let class = self.server.class(&job);
        scheduler.leave_polling_to_another(class, self.server);
        scheduler.run(job, class, now, self.server);
        self.served += 1;
        self.is_done();
    }

    fn is_done(&mut self) -> bool {
        self.done = self.scheduler().ends_after(0, self.served, self.server);
        self.done
    }

    fn park(&mut self, still_idle: impl Fn(bool) -> bool) {
        match self.scheduler().pool.park(&self.slot, still_idle) {
            Errand::End => self.done = true,
            Errand::Look => {}
            // Its turn was read before this thread parked.
            Errand::Run(job) => self.run_plainly(job, clock::monotonic()),
            Errand::Monitor => self.act_on(Admitted::Monitor),
        }
    }
}

/// Serves the events of one wait until one is a request for the application. The others are this thread's own only while the thread is
/// in the engine, which never waits: the rest is for all threads before application code runs, also in a panic.
pub(super) fn serve_batch<S: Serve>(
    server: &Arc<S>,
    events: &Events,
    context: &mut S::Context,
) -> Option<S::Job> {
    let mut rest = Rest { ready: &server.scheduler().ready, events: events.iter().map(signals) };
    while let Some(event) = rest.events.next() {
        // The state of a connection that was idle is in no cache: fetched while this one is served.
        if let Some((next, _)) = rest.events.clone().next() {
            server.prefetch(next);
        }
        let served = Served::of(server, event, context);
        if served.own.is_some() || !served.at_once.is_empty() {
            drop(rest);
            return served.run(server);
        }
    }
    None
}

pub(super) fn signals((token, readiness): (u64, Readiness)) -> (u64, Signals) {
    (token, Signals::of(readiness))
}

/// Those that have not been served go to the ready list when this is dropped.
struct Rest<'a, I: ExactSizeIterator<Item = (u64, Signals)>> {
    ready: &'a Ready,
    events: I,
}

impl<I: ExactSizeIterator<Item = (u64, Signals)>> Drop for Rest<'_, I> {
    fn drop(&mut self) {
        self.ready.extend(&mut self.events);
    }
}

/// The next request from the ready list, of which so many entries are `left` in this round.
pub(super) fn serve_listed<S: Serve>(
    server: &Arc<S>,
    left: &mut usize,
    context: &mut S::Context,
) -> Option<S::Job> {
    while *left > 0 {
        let event = server.scheduler().ready.pop()?;
        *left -= 1;
        if let Some(job) = Served::of(server, event, context).run(server) {
            return Some(job);
        }
    }
    None
}

struct Served<J> {
    /// The first one that may block, for this thread.
    own: Option<J>,
    at_once: Vec<J>,
}

impl<J: Send> Served<J> {
    /// Further requests are given to other threads. Requests begin in their order: at a limiter all wait, and this thread enters with the first.
    fn of<S: Serve<Job = J>>(server: &Arc<S>, event: (u64, Signals), context: &mut S::Context) -> Self {
        let scheduler = server.scheduler();
        scheduler.pollers.note_progress();
        let jobs = server.serve(event.0, event.1, context);
        let is_single = jobs.is_single();
        let mut served = Self { own: None, at_once: Vec::new() };
        for job in jobs {
            if server.is_non_blocking(&job) {
                served.at_once.push(job);
            } else if is_single {
                served.own = Some(job);
            } else {
                match server.pool(&job) {
                    0 if scheduler.pool.exclusive => scheduler.queue(job, server),
                    0 if served.own.is_none() => served.own = Some(job),
                    _ => scheduler.submit(job, server),
                }
            }
        }
        served
    }

    /// Runs those that never block, on the thread that has read them and without a permit. Returns the other one.
    fn run<S: Serve<Job = J>>(self, server: &Arc<S>) -> Option<J> {
        for job in self.at_once {
            let class = server.class(&job);
            server.scheduler().run(job, class, clock::monotonic(), server);
        }
        self.own
    }
}

// ---- At the limiter ----

impl<S: Serve> Worker<'_, S> {
    fn arrive(&self, job: S::Job) -> Admitted<S::Job> {
        let class = self.server.class(&job);
        self.scheduler().pool.arrive(job, class, &self.thread, clock::monotonic())
    }

    fn act_on(&mut self, mut admitted: Admitted<S::Job>) {
        let scheduler = self.scheduler();
        loop {
            let job = match admitted {
                Admitted::Run(job) => Some(job),
                Admitted::Monitor => {
                    if !scheduler.pollers.any() {
                        // This thread polled last, and the backup poller was not told when the others entered.
                        scheduler.backup_poller.watch();
                    }
                    let progress = || scheduler.pollers.progress.load(Ordering::Relaxed);
                    monitor(scheduler, &scheduler.pool, &self.thread, progress)
                }
                Admitted::Park => {
                    self.away = true;
                    None
                }
                Admitted::Refuse(job) => {
                    self.server.refuse(job);
                    None
                }
            };
            let Some(next) = job.and_then(|job| self.run(job)) else { return };
            admitted = self.arrive(next);
        }
    }

    /// Runs request after request while there is one and this thread has a permit. Returns the one that is left.
    fn run(&mut self, job: S::Job) -> Option<S::Job> {
        let (server, scheduler) = (self.server, self.scheduler());
        let beside = &scheduler.pool.limiter.interpreter.beside;
        let alone = || scheduler.inside.load(Ordering::SeqCst) == 0 && beside.load(Ordering::SeqCst) == 0;
        let now = clock::monotonic();
        let mut run = Run { now, next: Some(job), ended: false, count: 0 };
        while !run.ended {
            // The interpreter is kept between requests only while no other thread is in application code: one that has waited there can
            // have it at once at the end of a request, while in the middle of one it would have to interrupt. And only with a request
            // in hand: without one this thread would wait for the interpreter, which C code may keep for long.
            if run.next.is_some() && alone() {
                server.attached(&mut || {
                    while !run.ended && alone() {
                        self.step(&mut run);
                    }
                });
            } else {
                self.step(&mut run);
            }
        }
        run.next
    }

    /// Takes one step of a run; waits nowhere but in application code.
    fn step(&mut self, run: &mut Run<S::Job>) {
        let scheduler = self.scheduler();
        let limiter = &scheduler.pool.limiter;
        let Some(job) = run.next.take() else {
            run.next = scheduler.pool.leave(&self.thread);
            run.ended = run.next.is_none();
            return;
        };
        if scheduler.is_stopping() {
            // To drop it answers 500.
            drop(job);
            return;
        }
        let Some(job) = scheduler.assign(job, self.server) else {
            run.next = self.next_job();
            return;
        };
        let class = self.server.class(&job);
        run.count = run.count.wrapping_add(1);
        self.before_entry(class, run.count.is_multiple_of(NOW_AND_THEN));
        if !limiter.admit_next(&self.thread, class) {
            (run.next, run.ended) = (Some(job), true);
            return;
        }
        if class != RouteClass::Normal && !scheduler.pollers.any() {
            // No thread polls: a monitor looks now, and polls if nothing waits.
            limiter.timer.fire_now(run.now);
        }
        // The request's bytes from the poller have just been read.
        let entry = self.context.clock().turn_began().max(run.now);
        run.now = scheduler.run(job, class, entry, self.server);
        self.served += 1;
        self.context.clock_mut().set_now(Some(run.now));
        limiter.note_end(run.now);
        if !limiter.may_go_on(&self.thread) {
            run.ended = true;
            return;
        }
        if self.is_done() {
            // Requests may wait: the monitor, a polling thread or one that is unparked runs them.
            limiter.give_back(&self.thread);
            scheduler.make_way(self.server);
            run.ended = true;
            return;
        }
        run.next = self.next_job();
    }

    /// If requests wait, a parked thread is woken to monitor, or one that polls to look. If none waits and no thread polls, a parked one is
    /// woken; one is made only for a request that takes long, or for a `busy` thread. A thread that is `busy`, asked once in [`NOW_AND_THEN`]
    /// requests, has a parked one monitor, or asks the one that polls to: with a monitor it may fetch several events at once.
    fn before_entry(&self, class: RouteClass, busy: bool) {
        let scheduler = self.scheduler();
        if scheduler.pool.limiter.is_monitored() {
            return;
        }
        let polled = scheduler.pollers.any();
        if scheduler.pool.queued() > 0 || !scheduler.ready.is_empty() {
            if !scheduler.pool.wake_monitor() && polled {
                scheduler.pollers.waker.wake();
            } else if !polled {
                scheduler.leave_polling_to_another(class, self.server);
            }
        } else if !polled {
            if !scheduler.pool.wake_parked() && (busy || class != RouteClass::Normal) {
                scheduler.wake_poller(self.server);
            }
        } else if busy && !scheduler.pool.wake_monitor() {
            scheduler.pool.limiter.wanted.store(true, Ordering::SeqCst);
            scheduler.pollers.waker.wake();
            // On the same processor it would come too late: the next look at the poller takes the call away.
            thread::yield_now();
        }
    }

    /// The next request, without waiting: from the queue, the ready list, the poller.
    fn next_job(&mut self) -> Option<S::Job> {
        let scheduler = self.scheduler();
        if let Some(job) = scheduler.pool.next_in_turn(&self.thread) {
            return Some(job);
        }
        if let Some(job) = serve_listed(self.server, &mut self.turns, &mut self.context) {
            return self.next_behind(job);
        }
        self.turns = scheduler.ready.len().clamp(1, FEW_EVENTS);
        scheduler.pollers.note_poll(self.context.clock().turn_began());
        if scheduler.take_deferred(self.server)
            && let Some(job) = serve_listed(self.server, &mut 1, &mut self.context)
        {
            return self.next_behind(job);
        }
        let fetches_many = scheduler.pool.limiter.is_monitored() || scheduler.pool.threads.max() == 1;
        let events = if fetches_many { &mut self.more } else { &mut self.events };
        fetch(self.server, events, false);
        match serve_batch(self.server, events, &mut self.context) {
            Some(job) => self.next_behind(job),
            // Requests that came together are in the queue.
            None => scheduler.pool.next_in_turn(&self.thread),
        }
    }

    /// The next request when `job` has been read: those that wait may be of the same connection, and have come before it.
    fn next_behind(&self, job: S::Job) -> Option<S::Job> {
        let scheduler = self.scheduler();
        if scheduler.pool.queued() == 0 {
            return Some(job);
        }
        scheduler.submit(job, self.server);
        scheduler.pool.next_in_turn(&self.thread)
    }
}

/// Monitors until a request may enter or none waits. `progress` is a number that changes while threads get on.
pub(super) fn monitor<J: Send>(
    scheduler: &Scheduler<J>,
    pool: &Pool<J>,
    thread: &AppThread,
    progress: impl Fn() -> u64,
) -> Option<J> {
    let mut monitoring = Monitoring::begin(clock::monotonic());
    while !scheduler.is_stopping() {
        let moving = monitoring.is_moving(progress());
        match pool.monitor(thread, &mut monitoring, moving) {
            Monitored::Run(job) => return Some(job),
            Monitored::Idle => return None,
            Monitored::Pause(pause) => pool.limiter.timer.wait(clock::monotonic(), pause),
        }
    }
    pool.end_monitoring();
    None
}

struct Run<J> {
    /// The last return, or the begin.
    now: u64,
    next: Option<J>,
    ended: bool,
    count: u32,
}

// ---- Rounds, of all threads that serve ----

/// Takes round after round until the server stops, or one says that the thread does not go on.
pub(super) fn run_rounds<S: Serve>(server: &Arc<S>, mut round: impl FnMut() -> bool) {
    let scheduler = server.scheduler();
    scheduler.pollers.set_serving(true);
    let mut goes_on = true;
    while goes_on && !scheduler.is_stopping() {
        match catch_unwind(AssertUnwindSafe(&mut round)) {
            Ok(answer) => goes_on = answer,
            Err(panic) => {
                server.report(format_args!("internal error, please report it: {}", panic_text(&*panic)));
            }
        }
    }
    scheduler.pollers.set_serving(false);
}

/// Gets the events of the poller, and waits for one if `waits`.
pub(super) fn fetch<S: Serve>(server: &Arc<S>, events: &mut Events, waits: bool) {
    let limit = if waits { None } else { Some(Duration::ZERO) };
    if let Err(error) = server.scheduler().poller.wait(events, limit) {
        server.report(format_args!("waiting for events: {error}"));
    }
}
