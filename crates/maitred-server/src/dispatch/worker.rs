//! What an application thread does: look, poll, serve, run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::parker::Parker;
use maitred_io::poller::{Events, Readiness};
use maitred_io::sync::atomic::Ordering;

use super::pool::Parked;
use super::ready::Ready;
use super::{SERVING, Serve, panic_text};
use crate::group::claim::Signals;
use crate::scratch::Scratch;

/// Events fetched by one wait where a single thread polls: nobody else could have taken them, and
/// the driver takes over the ready list if this thread stands still. With several pollers a wait
/// fetches one: a private batch strands requests behind a slow one.
const BATCH: usize = 64;

/// A parked thread above the minimum ends after this time.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// The life of an application thread.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    SERVING.with(|serving| serving.set(true));
    let scheduler = server.scheduler();
    scheduler.pool.started();
    let parker = Arc::new(Parker::default());
    let mut scratch = Scratch::default();
    let mut events = Events::with_capacity(batch(scheduler.max_pollers));
    let mut turns = 1;
    while !scheduler.is_stopping() {
        let round = AssertUnwindSafe(|| round(server, &parker, &mut events, &mut scratch, &mut turns));
        match catch_unwind(round) {
            Ok(Parked::Called) => {}
            Ok(Parked::Superfluous) => {
                SERVING.with(|serving| serving.set(false));
                return;
            }
            Err(panic) => {
                server.report(format_args!("internal error, please report it: {}", panic_text(&*panic)));
            }
        }
    }
    SERVING.with(|serving| serving.set(false));
    scheduler.pool.ended();
}

fn batch(max_pollers: usize) -> usize {
    if max_pollers == 1 { BATCH } else { 1 }
}

/// One step. After as many `turns` from the ready list as a wait fetches, the poller is looked at:
/// connections that always have more to do leave room for those that have something new.
fn round<S: Serve>(
    server: &Arc<S>,
    parker: &Arc<Parker>,
    events: &mut Events,
    scratch: &mut Scratch,
    turns: &mut usize,
) -> Parked {
    let scheduler = server.scheduler();
    if let Some(job) = scheduler.pool.pop() {
        scheduler.run(job, &**server);
        return Parked::Called;
    }
    if *turns > 0
        && let Some((token, signals)) = scheduler.ready.pop()
    {
        *turns -= 1;
        if let Some(job) = serve(server, token, signals, scratch) {
            scheduler.run(job, &**server);
        }
        return Parked::Called;
    }
    *turns = scheduler.ready.len().clamp(1, batch(scheduler.max_pollers));
    if scheduler.pollers.fetch_add(1, Ordering::SeqCst) >= scheduler.max_pollers {
        scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
        return scheduler.pool.park(parker, IDLE_LIMIT, || {
            scheduler.ready.is_empty() && scheduler.pollers.load(Ordering::SeqCst) >= scheduler.max_pollers
        });
    }
    scheduler.driver.dismiss();
    let limit = if scheduler.is_idle() { None } else { Some(Duration::ZERO) };
    let waited = scheduler.poller.wait(events, limit);
    scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
    if let Err(error) = waited {
        server.report(format_args!("waiting for events: {error}"));
    }
    serve_batch(server, events, scratch);
    Parked::Called
}

/// Serves the events of one wait. They are this thread's own only as long as it is in the engine,
/// which never waits: before it enters application code, the rest becomes everybody's, and a panic
/// leaves nothing behind.
fn serve_batch<S: Serve>(server: &Arc<S>, events: &Events, scratch: &mut Scratch) {
    let ready = &server.scheduler().ready;
    let mut rest = Rest { ready, events: events.iter().map(signals) };
    while let Some((token, signals)) = rest.events.next() {
        // The state of a connection that was idle is in no cache: fetched while this one is served.
        if let Some((next, _)) = rest.events.clone().next() {
            server.prefetch(next);
        }
        if let Some(job) = serve(server, token, signals, scratch) {
            drop(rest);
            server.scheduler().run(job, &**server);
            return;
        }
    }
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

fn serve<S: Serve>(server: &Arc<S>, token: u64, signals: Signals, scratch: &mut Scratch) -> Option<S::Job> {
    server.scheduler().progress.fetch_add(1, Ordering::Relaxed);
    server.serve(token, signals, scratch)
}
