//! What an application thread does at the interpreter gate: arrive, watch, run request after request.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::atomic::Ordering;
use maitred_io::sync::thread;

use super::gate::{Arrival, Left, Seen, Watched};
use super::unsent::set_defers;
use super::worker::{Worker, serve_batch};
use super::{Here, Serve};

/// After so many requests without a pause the runner wants a watcher: with one it may fetch several events at
/// once, and send several responses together.
const BUSY: u32 = 32;

/// Events a runner fetches at once while somebody watches: they go to the ready list, and the gain
/// of more is 2 to 3 %.
pub(super) const BATCH: usize = 16;

impl<S: Serve> Worker<'_, S> {
    /// This thread has a request to run.
    pub(super) fn arrive(&mut self, job: S::Job) {
        let arrival = self.scheduler().pool.arrive(job, clock::monotonic());
        self.follow(arrival);
    }

    /// Looks at the queue; whether there was something to do.
    pub(super) fn look(&mut self) -> bool {
        let pool = &self.scheduler().pool;
        if pool.queued() == 0 {
            return false;
        }
        let Some(arrival) = pool.look(clock::monotonic()) else { return false };
        self.follow(arrival);
        true
    }

    fn follow(&mut self, arrival: Arrival<S::Job>) {
        match arrival {
            Arrival::Run(job, entry) => self.run(job, entry),
            Arrival::Watch => self.watch(),
            Arrival::Park => self.away = true,
            Arrival::Refuse(job) => self.server.refuse(job),
        }
    }

    /// Watches the runner until it stands still or nobody runs.
    pub(super) fn watch(&mut self) {
        let scheduler = self.scheduler();
        let mut seen = Seen::default();
        loop {
            if scheduler.is_stopping() {
                scheduler.pool.end_watch();
                scheduler.send_unsent(self.server, clock::monotonic());
                return;
            }
            let now = clock::monotonic();
            let watched = scheduler.pool.watch(now, &mut seen);
            if !matches!(watched, Watched::Sleep(_)) {
                scheduler.send_promptly(self.server);
            }
            match watched {
                Watched::Run(job, entry) => return self.run(job, entry),
                Watched::Idle => return,
                Watched::Sleep(nanos) => scheduler.pool.gate.pause(now, nanos),
            }
        }
    }

    /// Runs request after request until there is none, or another thread has taken over. `entry` is this
    /// thread's.
    fn run(&mut self, job: S::Job, entry: u64) {
        let server = Arc::clone(self.server);
        let scheduler = server.scheduler();
        let mut run = Run { mine: entry, next: Some(job), beside: None, ended: false, count: 0 };
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
        scheduler.send_unsent(self.server, run.mine);
        if let Some(job) = run.next {
            // Taken over while this thread was looking for work: it is a second comer now.
            self.arrive(job);
        }
        if let Some(job) = run.beside {
            self.run_slow(job);
        }
    }

    /// Runs one request, and finds the next. Never waits but in application code.
    fn step(&mut self, run: &mut Run<S::Job>) {
        let scheduler = self.scheduler();
        let Some(job) = run.next.take() else {
            scheduler.send_unsent(self.server, run.mine);
            match scheduler.pool.leave(run.mine) {
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
                self.make_way(run.mine);
                (run.beside, run.ended) = (Some(job), true);
                return;
            }
        };
        run.count = run.count.wrapping_add(1);
        self.before_entry(run.mine, run.count.is_multiple_of(BUSY));
        // What came from the poller has just been read. Entries are told from others by their time.
        let entry = self.scratch.last_now().max(run.mine + 1);
        if !scheduler.pool.gate.renew(run.mine, entry) {
            (run.next, run.ended) = (Some(job), true);
            return;
        }
        let gate = &scheduler.pool.gate;
        set_defers(gate.may_defer(entry) && (gate.is_watched() || scheduler.pool.is_single()));
        let ended = scheduler.run(job, entry, &**self.server);
        self.served += 1;
        set_defers(false);
        run.mine = ended.max(entry + 1);
        self.scratch.set_now(Some(run.mine));
        if !scheduler.pool.gate.renew(entry, run.mine) {
            run.ended = true;
            return;
        }
        if scheduler.pool.gate.is_watched() {
            scheduler.pool.gate.get_on(run.mine);
        }
        scheduler.send_unsent_in_time(self.server, run.mine, &mut self.age);
        if self.is_done() {
            self.make_way(run.mine);
            run.ended = true;
            return;
        }
        run.next = self.next_job();
        if run.next.is_none() && !scheduler.unsent.is_empty() {
            scheduler.send_unsent(self.server, run.mine);
            // Whoever is answered sends the next request within microseconds.
            run.next = self.next_job();
        }
    }

    /// Gives up the role of the runner although something may wait, to whoever watches, polls or can be called.
    fn make_way(&self, mine: u64) {
        let scheduler = self.scheduler();
        scheduler.send_unsent(self.server, mine);
        if scheduler.pool.step_aside(mine, clock::monotonic()) {
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
        let several = scheduler.pool.gate.is_watched() || scheduler.pool.is_single();
        let events = if several { &mut self.more } else { &mut self.events };
        if let Err(error) = scheduler.poller.wait(events, Some(Duration::ZERO)) {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        serve_batch(self.server, events, &mut self.scratch)
    }
}

/// The requests of one thread, from its entry on.
struct Run<J> {
    /// The last entry or return.
    mine: u64,
    next: Option<J>,
    /// A request that this thread runs when it is the runner no more.
    beside: Option<J>,
    ended: bool,
    /// Requests so far.
    count: u32,
}
