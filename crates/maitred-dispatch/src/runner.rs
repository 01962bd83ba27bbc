//! What an application thread does at the interpreter gate: arrive, watch, run request after request.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::atomic::Ordering;
use maitred_io::sync::thread;

use super::gate::{Arrival, Left, Watched};
use super::response_batch::set_defers;
use super::turn_clock::TurnContext;
use super::worker::{Worker, serve_batch};
use super::{Here, QUICK, Serve};

/// After so many requests without a pause the runner wants a watcher: with one it may fetch several events at
/// once, and send several responses together.
const BUSY: u32 = 32;

/// Events a runner fetches at once while somebody watches: they go to the ready list, and the gain
/// of more is 2 to 3 %.
pub(super) const BATCH: usize = 16;

impl<S: Serve> Worker<'_, S> {
    /// This thread has a request to run.
    pub(super) fn arrive(&mut self, job: S::Job) {
        let arrival = self.scheduler().pool.arrive(job, &self.seat, clock::monotonic());
        self.follow(arrival);
    }

    /// Looks at the queue; whether there was something to do.
    pub(super) fn look(&mut self) -> bool {
        let pool = &self.scheduler().pool;
        if pool.queued() == 0 {
            return false;
        }
        let Some(arrival) = pool.look(&self.seat) else { return false };
        self.follow(arrival);
        true
    }

    /// Watches those inside, and runs what may enter.
    pub(super) fn watch(&mut self) {
        self.follow(Arrival::Watch);
    }

    fn follow(&mut self, mut arrival: Arrival<S::Job>) {
        loop {
            let job = match arrival {
                Arrival::Run(job) => Some(job),
                Arrival::Watch => self.watch_for_one(),
                Arrival::Park => {
                    self.away = true;
                    None
                }
                Arrival::Refuse(job) => {
                    self.server.refuse(job);
                    None
                }
            };
            // Without a permit this thread is a second comer, if it has one more request.
            let Some(next) = job.and_then(|job| self.run(job)) else { return };
            arrival = self.scheduler().pool.arrive(next, &self.seat, clock::monotonic());
        }
    }

    /// Watches until a request may enter or none waits.
    fn watch_for_one(&mut self) -> Option<S::Job> {
        let scheduler = self.scheduler();
        let began = clock::monotonic();
        loop {
            if scheduler.is_stopping() {
                scheduler.pool.end_watch();
                scheduler.send_unsent(self.server, clock::monotonic());
                return None;
            }
            let watched = scheduler.pool.watch(&self.seat, began, self.server.long());
            // Those inside have not put this look off: what they have left waits for a long request.
            scheduler.send_promptly(self.server);
            match watched {
                Watched::Run(job) => return Some(job),
                Watched::Idle => return None,
                Watched::Sleep(nanos) => scheduler.pool.gate.pause(clock::monotonic(), nanos),
            }
        }
    }

    /// Runs request after request until there is none, or this thread's permit is gone, which it has: a request that is left
    /// then.
    fn run(&mut self, job: S::Job) -> Option<S::Job> {
        let server = Arc::clone(self.server);
        let scheduler = server.scheduler();
        let now = clock::monotonic();
        let mut run = Run { now, next: Some(job), beside: None, ended: false, count: 0, quick: true };
        while !run.ended {
            // Another thread inside waits for something, and wants the interpreter when it has it: at the end of
            // a request it can have it at once, while in the middle of one it would have to interrupt.
            let alone = || scheduler.is_outside();
            if alone() {
                server.attached(&mut || {
                    while !run.ended && alone() {
                        self.step(&mut run);
                    }
                });
            } else {
                self.step(&mut run);
            }
        }
        // What this thread has left, and nobody watches any more.
        scheduler.send_unsent(self.server, run.now);
        if let Some(job) = run.beside {
            self.run_slow(job);
        }
        run.next
    }

    /// Runs one request, and finds the next. Never waits but in application code.
    fn step(&mut self, run: &mut Run<S::Job>) {
        let scheduler = self.scheduler();
        let Some(job) = run.next.take() else {
            scheduler.send_unsent(self.server, run.now);
            match scheduler.pool.leave(&self.seat) {
                Left::Next(job) => run.next = Some(job),
                Left::Gone => run.ended = true,
            }
            return;
        };
        if scheduler.is_stopping() {
            // Dropped unanswered: a 500.
            drop(job);
            return;
        }
        let job = match scheduler.assign(job, self.server) {
            Some(Here::Run(job)) => job,
            None => {
                run.next = self.next_job();
                return;
            }
            Some(Here::Beside(job)) => {
                self.make_way(run.now);
                (run.beside, run.ended) = (Some(job), true);
                return;
            }
        };
        run.count = run.count.wrapping_add(1);
        self.before_entry(run.now, run.count.is_multiple_of(BUSY));
        let gate = &scheduler.pool.gate;
        if !gate.may_enter(&self.seat) {
            (run.next, run.ended) = (Some(job), true);
            return;
        }
        // What came from the poller has just been read.
        let entry = self.context.clock().turn_began().max(run.now);
        // Others want the interpreter: what this request answers is sent after it was let go.
        let shares = !scheduler.is_outside();
        let defers = run.quick && gate.may_defer(entry) && (gate.is_watched() || scheduler.pool.is_single());
        set_defers(shares || defers);
        self.seat.enter(entry);
        run.now = scheduler.run(job, entry, &**self.server);
        self.seat.leave();
        run.quick = run.now - entry < QUICK;
        self.served += 1;
        set_defers(false);
        if shares {
            scheduler.send_unsent(self.server, run.now);
        }
        self.context.clock_mut().set_now(Some(run.now));
        scheduler.pool.look_unwatched(run.now, self.server.long());
        if !gate.may_go_on(&self.seat) {
            run.ended = true;
            return;
        }
        if gate.is_watched() {
            if run.count.is_multiple_of(BUSY) {
                self.note_use(run.now);
            }
            if run.quick {
                gate.get_on(run.now);
            }
        }
        scheduler.send_unsent_in_time(self.server, run.now, &mut self.age);
        if self.is_done() {
            self.make_way(run.now);
            run.ended = true;
            return;
        }
        run.next = self.next_job();
        if run.next.is_none() && !scheduler.unsent.is_empty() {
            scheduler.send_unsent(self.server, run.now);
            // Whoever is answered sends the next request within microseconds.
            run.next = self.next_job();
        }
    }

    /// Tells the gate how much of the time this thread computes.
    fn note_use(&mut self, now: u64) {
        let processor = self.seat.activity.processor_ns().unwrap_or(0);
        let (then, before) = std::mem::replace(&mut self.used, (now, processor));
        let time = now.saturating_sub(then);
        self.scheduler().pool.gate.note_use(processor.saturating_sub(before), time, now);
    }

    /// Gives up the permit although something may wait, to whoever watches, polls or can be called.
    fn make_way(&self, now: u64) {
        let scheduler = self.scheduler();
        scheduler.send_unsent(self.server, now);
        if scheduler.pool.step_aside(&self.seat, clock::monotonic()) {
            return;
        }
        if scheduler.pollers.load(Ordering::SeqCst) > 0 {
            scheduler.waker.wake();
        } else {
            scheduler.answer_call(&scheduler.pool.call_poller(), self.server);
        }
    }

    /// Nobody enters application code unless somebody watches, or the queue is empty and somebody
    /// polls, or no thread is left: then the driver does both. And nothing is unsent but with a watcher, or with
    /// the driver where there is no other thread.
    fn before_entry(&self, now: u64, busy: bool) {
        let scheduler = self.scheduler();
        if scheduler.pool.gate.is_watched() {
            return;
        }
        if !scheduler.pool.is_single() {
            scheduler.send_unsent(self.server, now);
        }
        let polled = scheduler.pollers.load(Ordering::SeqCst) > 0;
        if scheduler.pool.queued() > 0 || !scheduler.ready.is_empty() {
            if !scheduler.pool.call_watcher() && polled {
                scheduler.waker.wake();
            }
        } else if !polled {
            if !scheduler.pool.call_idle() && busy {
                let call = scheduler.pool.call_poller();
                scheduler.answer_call(&call, self.server);
            }
        } else if busy && !scheduler.pool.call_watcher() {
            scheduler.pool.gate.want_watcher();
            scheduler.waker.wake();
            // On the same processor it would come too late: the next look at the poller takes the call away.
            thread::yield_now();
        }
    }

    /// The next request for this thread, without waiting: from the queue, the ready list, the poller.
    fn next_job(&mut self) -> Option<S::Job> {
        let scheduler = self.scheduler();
        if let Some(job) = scheduler.pool.pop() {
            return Some(job);
        }
        while let Some((token, signals)) = self.next_ready() {
            if let Some(job) = self.serve(token, signals) {
                return Some(job);
            }
        }
        self.turns = scheduler.ready.len().clamp(1, BATCH);
        scheduler.note_poll(self.context.clock().turn_began());
        let several = scheduler.pool.gate.is_watched() || scheduler.pool.is_single();
        let events = if several { &mut self.more } else { &mut self.events };
        if let Err(error) = scheduler.poller.wait(events, Some(Duration::ZERO)) {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        serve_batch(self.server, events, &mut self.context)
    }
}

/// The requests of one thread, from its entry on.
struct Run<J> {
    /// The last return, or the begin.
    now: u64,
    next: Option<J>,
    /// A request that this thread runs when it has no permit any more.
    beside: Option<J>,
    ended: bool,
    /// Requests so far.
    count: u32,
    /// The last one took so little that a response may wait for the next.
    quick: bool,
}
