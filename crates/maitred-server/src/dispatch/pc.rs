//! PC, produce, consume: one thread polls, reads and runs every request itself. The driver stands by (D7).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use super::worker::{serve, serve_batch};
use super::{Here, SERVING, Serve, panic_text};
use crate::scratch::Scratch;

/// Events fetched by one wait; the rest is on the ready list, and the driver's, before a request runs.
const BATCH: usize = 64;

/// The life of the thread that does everything.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    SERVING.with(|serving| serving.set(true));
    let scheduler = server.scheduler();
    scheduler.pool.started();
    let mut one = One { server, scratch: Scratch::default(), events: Events::with_capacity(BATCH) };
    while !scheduler.is_stopping() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| one.round())) {
            server.report(format_args!("internal error, please report it: {}", panic_text(&*panic)));
        }
    }
    SERVING.with(|serving| serving.set(false));
    scheduler.pool.ended();
}

struct One<'a, S: Serve> {
    server: &'a Arc<S>,
    scratch: Scratch,
    events: Events,
}

impl<S: Serve> One<'_, S> {
    /// What the driver has left, as much from the ready list as there is, then what the poller has.
    fn round(&mut self) {
        let scheduler = self.server.scheduler();
        self.scratch.set_now(None);
        while let Some(job) = scheduler.pool.pop() {
            scheduler.run(job, clock::monotonic(), &**self.server);
        }
        for _ in 0..scheduler.ready.len() {
            let Some((token, signals)) = scheduler.ready.pop() else { break };
            if let Some(job) = serve(self.server, token, signals, &mut self.scratch) {
                self.consume(job);
            }
        }
        scheduler.pollers.fetch_add(1, Ordering::SeqCst);
        scheduler.driver.dismiss();
        let limit = if scheduler.is_idle() { None } else { Some(Duration::ZERO) };
        let waited = scheduler.poller.wait(&mut self.events, limit);
        scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
        if let Err(error) = waited {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        self.scratch.set_now(None);
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.scratch) {
            self.consume(job);
        }
    }

    fn consume(&mut self, job: S::Job) {
        let scheduler = self.server.scheduler();
        if let Some(Here::Run(job) | Here::Beside(job)) = scheduler.assign(job, self.server) {
            let ended = scheduler.run(job, self.scratch.last_now(), &**self.server);
            self.scratch.set_now(Some(ended));
        }
    }
}
