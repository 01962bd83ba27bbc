//! PEC, produce, execute, consume: one thread polls and reads, and hands every request to another one.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use crate::Serve;
use crate::turn_clock::TurnContext;
use crate::worker::{Round, run_rounds, serve, serve_batch};

/// Events fetched by one wait: nobody else fetches any, and none waits for application code.
const BATCH: usize = 64;

/// The life of the thread that produces.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let mut producer =
        Producer { server, context: S::Context::default(), events: Events::with_capacity(BATCH) };
    // For ever: whoever makes something ready wakes it.
    scheduler.pollers.fetch_add(1, Ordering::SeqCst);
    run_rounds(server, || producer.round());
    scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
}

struct Producer<'a, S: Serve> {
    server: &'a Arc<S>,
    context: S::Context,
    events: Events,
}

impl<S: Serve> Producer<'_, S> {
    /// As much from the ready list as there is, then what the poller has.
    fn round(&mut self) -> Round {
        let scheduler = self.server.scheduler();
        self.context.clock_mut().set_now(None);
        for _ in 0..scheduler.ready.len() {
            let Some((token, signals)) = scheduler.ready.pop() else { break };
            if let Some(job) = serve(self.server, token, signals, &mut self.context) {
                self.hand_over(job);
            }
        }
        let took = scheduler.take_deferred(self.server);
        let limit = if scheduler.ready.is_empty() && !took { None } else { Some(Duration::ZERO) };
        if let Err(error) = scheduler.poller.wait(&mut self.events, limit) {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        self.context.clock_mut().set_now(None);
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.context) {
            self.hand_over(job);
        }
        Round::GoOn
    }

    fn hand_over(&self, job: S::Job) {
        if self.server.is_non_blocking(&job) {
            self.server.run(job, self.context.clock().turn_began());
        } else {
            self.server.scheduler().submit(job, self.server);
        }
    }
}
