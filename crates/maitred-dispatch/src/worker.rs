//! What an application thread does: look, poll, serve, run.

use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::{Events, Readiness};
use maitred_io::sync::atomic::Ordering;

use super::parking::ParkSlot;
use super::pool::{Call, Parked};
use super::ready::Ready;
use super::response_batch::{Age, set_defers};
use super::scaling::After;
use super::seat::Seat;
use super::slow::Pace;
use super::thread_loop::{Round, poll, run_rounds};
use super::{Here, Scheduler, Serve, runner};
use crate::signals::Signals;
use crate::turn_clock::TurnContext;

/// Events fetched by one wait where a single thread polls: nobody else could have taken them, and
/// the driver takes over the ready list if this thread stands still. With several pollers a wait
/// fetches one: a private batch strands requests behind a slow one, and one on the ready list has all threads meet at its
/// lock, for as long as the one that holds it has lost its core.
const BATCH: usize = 64;

/// One application thread.
pub(super) struct Worker<'a, S: Serve> {
    pub(super) server: &'a Arc<S>,
    pub(super) spot: ParkSlot<'a, S::Job>,
    /// At the interpreter gate, where there is one.
    pub(super) seat: Arc<Seat>,
    /// When this thread asked for its processor time last, and what it was, in nanoseconds.
    pub(super) used: (u64, u64),
    pub(super) context: S::Context,
    /// For waits.
    pub(super) events: Events,
    /// For looks of the runner while somebody watches.
    pub(super) more: Events,
    /// Turns from the ready list left before the poller is looked at.
    pub(super) turns: usize,
    pub(super) age: Age,
    /// Somebody watches the runner: this thread has nothing to do, polling included.
    pub(super) away: bool,
    /// Requests it has run.
    pub(super) served: u64,
    /// It is not counted any more, and ends.
    done: bool,
}

/// The life of an application thread.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.started();
    let mut worker = Worker {
        server,
        spot: scheduler.pool.spot(),
        seat: scheduler.pool.gate.seat(),
        used: (0, 0),
        context: S::Context::default(),
        events: Events::with_capacity(batch(scheduler.max_pollers())),
        more: Events::with_capacity(runner::BATCH),
        turns: 1,
        age: Age::default(),
        away: false,
        served: 0,
        done: false,
    };
    // One that is done may find the server stopping before it gets to its end.
    if run_rounds(server, || worker.round()) && !worker.done {
        scheduler.pool.ended();
    }
    scheduler.pool.gate.unseat(&worker.seat);
}

fn batch(max_pollers: usize) -> usize {
    if max_pollers == 1 { BATCH } else { 1 }
}

impl<'a, S: Serve> Worker<'a, S> {
    pub(super) fn scheduler(&self) -> &'a Scheduler<S::Job> {
        self.server.scheduler()
    }

    /// One step. After as many turns from the ready list as a wait fetches, the poller is looked at:
    /// connections that always have more to do leave room for those that have something new.
    fn round(&mut self) -> Round {
        let scheduler = self.scheduler();
        if self.done {
            self.send_unsent();
            return Round::End;
        }
        self.context.clock_mut().set_now(None);
        if scheduler.gated {
            // After a panic of ours this thread may have its permit still.
            self.seat.leave();
            scheduler.pool.gate.give_back(&self.seat);
            if !scheduler.pool.gate.is_watched() {
                self.send_unsent();
            }
        }
        if self.away {
            self.away = false;
            return self.park(|_| scheduler.pool.gate.is_watched());
        }
        if let Some((job, _)) = scheduler.pool.next_slow() {
            self.run_slow(job);
            return Round::GoOn;
        }
        if scheduler.gated {
            if self.look() {
                return Round::GoOn;
            }
        } else if let Some(job) = scheduler.pool.pop() {
            self.run_plainly(job, clock::monotonic());
            return Round::GoOn;
        }
        if let Some((token, signals)) = self.next_ready() {
            if let Some(job) = self.serve(token, signals) {
                self.take(job);
            }
            return Round::GoOn;
        }
        let max_pollers = scheduler.max_pollers();
        self.turns = scheduler.ready.len().clamp(1, batch(max_pollers));
        let others = scheduler.pollers.fetch_add(1, Ordering::SeqCst);
        if !scheduler.gated {
            // Also what another thread has left that saw nobody poll: it takes the driver for watching.
            self.send_unsent();
        }
        if others >= max_pollers {
            scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
            if let Some(job) = scheduler.visit() {
                self.run_visiting(job);
                return Round::GoOn;
            }
            return self.park(|waiting| {
                !waiting
                    && scheduler.ready.is_empty()
                    && !scheduler.is_offered()
                    && scheduler.pollers.load(Ordering::SeqCst) >= scheduler.max_pollers()
            });
        }
        poll(self.server, &mut self.events);
        let wanted = scheduler.pool.gate.take_wanted();
        let idle = self.events.iter().len() == 0;
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.context) {
            self.take(job);
        } else if wanted && scheduler.pool.begin_watch() {
            self.watch();
        } else if idle && let Some(job) = scheduler.visit() {
            self.run_visiting(job);
        }
        Round::GoOn
    }

    /// Runs a request it has read, or hands it to whoever may.
    fn take(&mut self, job: S::Job) {
        let scheduler = self.scheduler();
        match scheduler.assign(job, self.server) {
            None => {}
            Some(Here::Beside(job)) => self.run_slow(job),
            Some(Here::Run(job)) => self.run_here(job),
        }
    }

    fn run_here(&mut self, job: S::Job) {
        if self.scheduler().gated {
            self.arrive(job);
        } else {
            self.run_plainly(job, self.context.clock().turn_began());
        }
    }

    fn run_plainly(&mut self, job: S::Job, now: u64) {
        let scheduler = self.scheduler();
        // The driver sends what waits if this thread stands still, but it watches only while nobody polls.
        let watched = scheduler.pollers.load(Ordering::SeqCst) == 0;
        if !watched {
            self.send_unsent();
        }
        set_defers(watched && !scheduler.ready.is_empty() && scheduler.pool.gate.may_defer(now));
        let ended = scheduler.run(job, now, &**self.server);
        set_defers(false);
        self.served += 1;
        scheduler.send_unsent_in_time(self.server, ended, &mut self.age);
        self.is_done();
    }

    /// Runs a request of another group. Its response leaves at once: it would wait in that group, which is stuck.
    fn run_visiting(&mut self, job: S::Job) {
        self.send_unsent();
        self.scheduler().run(job, clock::monotonic(), &**self.server);
        self.served += 1;
        self.is_done();
    }

    /// Sends the responses that wait, if any do.
    fn send_unsent(&self) {
        let scheduler = self.scheduler();
        if !scheduler.unsent.is_empty() {
            scheduler.send_unsent(self.server, clock::monotonic());
        }
    }

    /// Whether this thread has run its share of requests and ends; asked after each.
    pub(super) fn is_done(&mut self) -> bool {
        if !self.done
            && let After::End { replace } = self.scheduler().pool.after_request(self.served)
        {
            self.done = true;
            if replace {
                self.scheduler().answer_call(&Call::Spawn, self.server);
            }
        }
        self.done
    }

    /// Runs a request of a slow route, which is counted, and others that wait.
    pub(super) fn run_slow(&mut self, job: S::Job) {
        let scheduler = self.scheduler();
        self.send_unsent();
        let mut next = Some(job);
        while let Some(job) = next {
            let pace = self.server.target(&job).pace;
            if scheduler.pollers.load(Ordering::SeqCst) == 0 && !scheduler.pool.gate.is_watched() {
                scheduler.answer_call(&scheduler.pool.call_poller(), self.server);
            }
            scheduler.call_extra(self.server);
            let now = clock::monotonic();
            scheduler.pool.gate.enter_beside(&self.seat, pace == Pace::Computes);
            self.seat.enter(now);
            scheduler.run(job, now, &**self.server);
            self.seat.leave();
            scheduler.pool.gate.leave_beside(&self.seat);
            self.served += 1;
            next = scheduler.pool.end_slow(pace);
        }
        self.is_done();
    }

    fn park(&mut self, still_idle: impl Fn(bool) -> bool) -> Round {
        match self.scheduler().pool.park(&self.spot, still_idle) {
            Parked::Superfluous => return Round::End,
            Parked::Called => {}
            Parked::Given(job) if self.server.target(&job).pace != Pace::Usual => self.run_slow(job),
            Parked::Given(job) => self.run_here(job),
        }
        if self.spot.take_watch() {
            self.watch();
        }
        Round::GoOn
    }

    /// Something from the ready list, if it is its turn.
    pub(super) fn next_ready(&mut self) -> Option<(u64, Signals)> {
        if self.turns == 0 {
            return None;
        }
        let next = self.scheduler().ready.pop()?;
        self.turns -= 1;
        Some(next)
    }

    pub(super) fn serve(&mut self, token: u64, signals: Signals) -> Option<S::Job> {
        serve(self.server, token, signals, &mut self.context)
    }
}

/// Serves the events of one wait until one is a request for the application. They are this thread's
/// own only as long as it is in the engine, which never waits: before it enters application code,
/// the rest becomes everybody's, and a panic leaves nothing behind.
pub(super) fn serve_batch<S: Serve>(
    server: &Arc<S>,
    events: &Events,
    context: &mut S::Context,
) -> Option<S::Job> {
    let ready = &server.scheduler().ready;
    let mut rest = Rest { ready, events: events.iter().map(signals) };
    while let Some((token, signals)) = rest.events.next() {
        // The state of a connection that was idle is in no cache: fetched while this one is served.
        if let Some((next, _)) = rest.events.clone().next() {
            server.prefetch(next);
        }
        if let Some(job) = serve(server, token, signals, context) {
            return Some(job);
        }
    }
    None
}

fn signals((token, readiness): (u64, Readiness)) -> (u64, Signals) {
    (token, Signals::of(readiness))
}

/// The events of a wait that have not been served; the ready list gets what is left of them.
struct Rest<'a, I: ExactSizeIterator<Item = (u64, Signals)>> {
    ready: &'a Ready,
    events: I,
}

impl<I: ExactSizeIterator<Item = (u64, Signals)>> Drop for Rest<'_, I> {
    fn drop(&mut self) {
        self.ready.extend(&mut self.events);
    }
}

/// Serves one event. What it brings for the application beside the first request is given to other threads.
pub(super) fn serve<S: Serve>(
    server: &Arc<S>,
    token: u64,
    signals: Signals,
    context: &mut S::Context,
) -> Option<S::Job> {
    let scheduler = server.scheduler();
    scheduler.note_progress();
    let mut jobs = server.serve(token, signals, context);
    let first = jobs.take_first();
    if !jobs.is_single() {
        // This thread runs one of them: the others must not wait for its end.
        jobs.into_iter().for_each(|job| scheduler.submit(job, server));
    }
    first
}
