//! PEC, produce, execute, consume: one thread polls and reads, and hands every request to another one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use super::worker::{serve, serve_batch};
use super::{SERVING, Serve, panic_text};
use crate::scratch::Scratch;

/// Events fetched by one wait: nobody else fetches any, and none waits for application code.
const BATCH: usize = 64;

/// The life of the thread that produces.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    SERVING.with(|serving| serving.set(true));
    let scheduler = server.scheduler();
    let mut producer = Producer { server, scratch: Scratch::default(), events: Events::with_capacity(BATCH) };
    // For ever: whoever makes something ready wakes it.
    scheduler.pollers.fetch_add(1, Ordering::SeqCst);
    while !scheduler.is_stopping() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| producer.round())) {
            server.report(format_args!("internal error, please report it: {}", panic_text(&*panic)));
        }
    }
    scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
    SERVING.with(|serving| serving.set(false));
}

struct Producer<'a, S: Serve> {
    server: &'a Arc<S>,
    scratch: Scratch,
    events: Events,
}

impl<S: Serve> Producer<'_, S> {
    /// As much from the ready list as there is, then what the poller has.
    fn round(&mut self) {
        let scheduler = self.server.scheduler();
        self.scratch.set_now(None);
        for _ in 0..scheduler.ready.len() {
            let Some((token, signals)) = scheduler.ready.pop() else { break };
            if let Some(job) = serve(self.server, token, signals, &mut self.scratch) {
                self.hand_over(job);
            }
        }
        let limit = if scheduler.ready.is_empty() { None } else { Some(Duration::ZERO) };
        if let Err(error) = scheduler.poller.wait(&mut self.events, limit) {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        self.scratch.set_now(None);
        if let Some(job) = serve_batch(self.server, &self.events, &mut self.scratch) {
            self.hand_over(job);
        }
    }

    fn hand_over(&self, job: S::Job) {
        if self.server.is_non_blocking(&job) {
            self.server.run(job);
        } else {
            self.server.scheduler().submit(job, self.server);
        }
    }
}
