//! PC, produce, consume: one thread polls, reads and runs every request itself. The driver stands by (D7).

use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use crate::Serve;
use crate::turn_clock::TurnContext;
use crate::worker::{Round, poll, run_rounds, serve, serve_batch};

/// Events fetched by one wait; the rest is on the ready list, and the driver's, before a request runs.
const BATCH: usize = 64;

/// The life of the thread that does everything.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.started();
    let mut one = One { server, context: S::Context::default(), events: Events::with_capacity(BATCH) };
    run_rounds(server, || one.round());
    scheduler.pool.ended();
}

struct One<'a, S: Serve> {
    server: &'a Arc<S>,
    context: S::Context,
    events: Events,
}

impl<S: Serve> One<'_, S> {
    /// What the driver has left, as much from the ready list as there is, then what the poller has.
    fn round(&mut self) -> Round {
        let scheduler = self.server.scheduler();
        self.context.clock_mut().set_now(None);
        while let Some(job) = scheduler.pool.pop() {
            scheduler.run(job, clock::monotonic(), self.server);
        }
        for _ in 0..scheduler.ready.len() {
            let Some((token, signals)) = scheduler.ready.pop() else { break };
            if let Some(job) = serve(self.server, token, signals, &mut self.context) {
                self.consume(job);
            }
        }
        scheduler.pollers.fetch_add(1, Ordering::SeqCst);
        let took = scheduler.take_deferred(self.server);
        poll(self.server, &mut self.events, took);
        self.context.clock_mut().set_now(None);
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.context) {
            self.consume(job);
        }
        Round::GoOn
    }

    fn consume(&mut self, job: S::Job) {
        let scheduler = self.server.scheduler();
        if let Some(job) = scheduler.assign(job, self.server) {
            let ended = scheduler.run(job, self.context.clock().turn_began(), self.server);
            self.context.clock_mut().set_now(Some(ended));
        }
    }
}
