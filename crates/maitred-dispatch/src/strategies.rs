//! The strategies that are there to compare with the adaptive one, in the words of Jetty.
//!
//! - PC, produce, consume: one thread polls, reads and runs every request itself. The backup poller stands by (D7).
//! - PEC, produce, execute, consume: the backup poller polls and reads, and hands every request to a thread that does not
//!   ([`assigned`](super::assigned)).
//! - EPC, execute, produce, consume ("eat what you kill"): one thread at a time is the producer; when it has a request it wakes another
//!   one to take over, and runs the request itself.

use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::Events;
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_turns::TurnContext;

use crate::Serve;
use crate::numbers::EVENTS;
use crate::pool::{Errand, Slot, WakeAction};
use crate::worker::{Round, fetch, poll, run_rounds, serve_batch, serve_listed};

/// A thread that polls.
struct Reader<'a, S: Serve> {
    server: &'a Arc<S>,
    context: S::Context,
    events: Events,
}

impl<'a, S: Serve> Reader<'a, S> {
    fn new(server: &'a Arc<S>, events: usize) -> Self {
        Self { server, context: S::Context::default(), events: Events::with_capacity(events) }
    }

    fn next_polled(&mut self) -> Option<S::Job> {
        self.context.clock_mut().set_now(None);
        serve_batch(self.server, &self.events, &mut self.context)
    }

    /// Gives away requests from the ready list, then one that `wait` brings.
    fn round(&mut self, wait: impl FnOnce(&mut Events), give: impl Fn(&mut S::Context, S::Job)) -> Round {
        self.context.clock_mut().set_now(None);
        let mut left = self.server.scheduler().ready.len();
        while let Some(job) = serve_listed(self.server, &mut left, &mut self.context) {
            give(&mut self.context, job);
        }
        wait(&mut self.events);
        if let Some(job) = self.next_polled() {
            give(&mut self.context, job);
        }
        Round::GoOn
    }
}

pub(super) fn run_pc<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.threads.started();
    let mut reader = Reader::new(server, EVENTS);
    let wait = |events: &mut Events| {
        scheduler.pollers.begin();
        let took = scheduler.take_deferred(server);
        poll(server, events, took);
    };
    let consume = |context: &mut S::Context, job| {
        if let Some(job) = scheduler.assign(job, server) {
            let class = server.class(&job);
            let ended = scheduler.run(job, class, context.clock().turn_began(), server);
            context.clock_mut().set_now(Some(ended));
        }
    };
    run_rounds(server, || {
        while let Some(job) = scheduler.pool.pop() {
            let class = server.class(&job);
            scheduler.run(job, class, clock::monotonic(), server);
        }
        reader.round(wait, consume)
    });
    scheduler.pool.threads.ended();
}

/// The life of the backup poller with PEC.
pub(super) fn run_pec<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let mut reader = Reader::new(server, EVENTS);
    let wait = |events: &mut Events| {
        let took = scheduler.take_deferred(server);
        fetch(server, events, scheduler.ready.is_empty() && !took);
    };
    // For ever: a thread that makes something ready wakes it.
    scheduler.pollers.begin();
    run_rounds(server, || reader.round(wait, |_, job| scheduler.submit(job, server)));
    scheduler.pollers.end();
}

/// The role of the producer of EPC.
#[derive(Default)]
pub(super) struct Production {
    is_taken: AtomicBool,
    /// A thread has been woken to take it.
    successor_woken: AtomicBool,
}

pub(super) fn run_epc<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.threads.started();
    // One event: others that a producer leaves behind would wait for its successor's wake-up.
    let mut member = Member { reader: Reader::new(server, 1), slot: Slot::default(), served: 0 };
    if run_rounds(server, || member.round()) {
        scheduler.pool.threads.ended();
    }
}

struct Member<'a, S: Serve> {
    reader: Reader<'a, S>,
    slot: Slot<S::Job>,
    served: u64,
}

impl<S: Serve> Member<'_, S> {
    /// A waiting request first, then production if no other thread does that, else idleness.
    fn round(&mut self) -> Round {
        let scheduler = self.reader.server.scheduler();
        if let Some(job) = scheduler.pool.pop() {
            return self.consume(job, clock::monotonic());
        }
        let production = &scheduler.production;
        if !production.is_taken.swap(true, Ordering::SeqCst) {
            production.successor_woken.store(false, Ordering::SeqCst);
            return self.produce().map_or(Round::GoOn, |job| self.execute(job));
        }
        let busy = || production.is_taken.load(Ordering::SeqCst);
        match scheduler.pool.park(&self.slot, |waiting| !waiting && busy()) {
            Errand::Look | Errand::Monitor => Round::GoOn,
            Errand::End => Round::End,
            Errand::Run(job) => self.consume(job, clock::monotonic()),
        }
    }

    /// Polls and reads until there is a request, or something else to look at. The role is given up also in a panic.
    fn produce(&mut self) -> Option<S::Job> {
        let server = self.reader.server;
        let scheduler = server.scheduler();
        let _seat = Seat::take(server);
        self.reader.context.clock_mut().set_now(None);
        let context = &mut self.reader.context;
        if let Some(job) = serve_listed(server, &mut scheduler.ready.len(), context) {
            return Some(job);
        }
        let took = scheduler.take_deferred(server);
        fetch(server, &mut self.reader.events, scheduler.is_idle() && !took);
        self.reader.next_polled()
    }

    /// Has another thread take over production before the request runs; one wake-up at a time is on its way.
    fn execute(&mut self, job: S::Job) -> Round {
        let server = self.reader.server;
        let scheduler = server.scheduler();
        let Some(job) = scheduler.assign(job, server) else { return Round::GoOn };
        let Production { is_taken, successor_woken } = &scheduler.production;
        if !is_taken.load(Ordering::SeqCst)
            && !successor_woken.swap(true, Ordering::SeqCst)
            && scheduler.wake_poller(server) == WakeAction::Nothing
        {
            successor_woken.store(false, Ordering::SeqCst);
        }
        self.consume(job, self.reader.context.clock().turn_began())
    }

    fn consume(&mut self, job: S::Job, now: u64) -> Round {
        let server = self.reader.server;
        let class = server.class(&job);
        server.scheduler().run(job, class, now, server);
        self.served += 1;
        if server.scheduler().ends_after(0, self.served, server) { Round::End } else { Round::GoOn }
    }
}

struct Seat<'a, S: Serve>(&'a Arc<S>);

impl<'a, S: Serve> Seat<'a, S> {
    fn take(server: &'a Arc<S>) -> Self {
        server.scheduler().pollers.begin();
        server.scheduler().backup_poller.release_polling();
        Self(server)
    }
}

impl<S: Serve> Drop for Seat<'_, S> {
    fn drop(&mut self) {
        let scheduler = self.0.scheduler();
        scheduler.pollers.end();
        scheduler.production.is_taken.store(false, Ordering::SeqCst);
    }
}
