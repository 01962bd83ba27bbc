//! The backup poller: a thread without interpreter that polls when no application thread can (D7).
//!
//! ```text
//! parked --watch()--> watching --the last poller stands still--> wake a thread, and: polling
//!    ^                  |   ^                                                          |
//!    `--nothing to do --'   `---- an application thread polls again (release_polling) -'
//! ```
//! Watching means to look at a counter now and then, and each thread that comes out of application code defers the next
//! look: that costs the usual path a load or two. A thread is woken only when the counter stands still while no thread
//! polls. Until one polls, the backup poller does the work that needs no application: it reads, parses, answers from files,
//! moves writes and timers, runs handlers that never block, and queues the other requests. Where a limiter lets one
//! thread compute, it reads once each 2 ms instead, and wakes no thread unless it has read a request.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::parker::Parker;
use maitred_io::poller::{Events, Poller, Waker};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_turns::TurnContext;

use super::Serve;
use super::loop_watchdog::standby;
use crate::numbers::{EVENTS, FEW_EVENTS, IDLE_LOOKS, LONG, NOW_AND_THEN, USUAL};
use crate::sample_timer::{Pause, SampleTimer};
use crate::worker::{fetch, run_rounds, signals};

/// Further looks, and how far one is put off, in nanoseconds: a poller that stands still is noticed after a millisecond.
pub(super) const LOOK: u64 = LONG / 2 - USUAL;

pub(super) struct BackupPoller {
    parked: AtomicBool,
    polls: AtomicBool,
    /// The backup poller stands by beside an event loop.
    resting: AtomicBool,
    /// Ends polling, or the standby.
    released: Waker,
    pub(super) sleep: Parker,
    pub(super) timer: SampleTimer,
}

impl BackupPoller {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            parked: AtomicBool::new(false),
            polls: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            released: Waker::new()?,
            sleep: Parker::default(),
            timer: SampleTimer::new()?,
        })
    }

    /// The last thread that polled is not there, or has made something ready that it may leave. Two loads while it watches already.
    pub(super) fn watch(&self) {
        if self.parked.load(Ordering::SeqCst) {
            self.sleep.unpark();
        }
        // A backup poller that polls sleeps until the poller has an event: the ready list has none.
        self.release_polling();
    }

    /// Has a backup poller that polls look whether it still must. One load while it does not poll.
    pub(super) fn release_polling(&self) {
        if self.polls.load(Ordering::SeqCst) {
            self.released.wake();
        }
    }

    /// Something has come beside an event loop that the poller does not know of. Two loads while the backup poller does not wait.
    pub(super) fn wake_from_standby(&self) {
        if self.resting.load(Ordering::SeqCst) || self.polls.load(Ordering::SeqCst) {
            self.released.wake();
        }
    }

    /// Waits until the poller has something, or a thread wakes it, which looks at `resting` before `pending` is asked.
    pub(super) fn rest(&self, poller: &Poller, pending: impl FnOnce() -> bool) -> io::Result<()> {
        self.resting.store(true, Ordering::SeqCst);
        let rested = if pending() { Ok(()) } else { poller.watch(&self.released) };
        self.resting.store(false, Ordering::SeqCst);
        self.released.clear();
        rested
    }

    /// Has the backup poller look at once, in any state.
    pub(super) fn kick(&self) {
        self.sleep.unpark();
        self.timer.fire_now(clock::monotonic());
        self.released.wake();
    }
}

pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let mut context = S::Context::default();
    let mut first = true;
    run_rounds(server, || {
        if let Some(looped) = &scheduler.looped {
            standby(server, looped, &mut context);
            return true;
        }
        // At the start no application thread polls yet.
        if std::mem::take(&mut first) {
            take_over_polling(server, &mut context);
        }
        let BackupPoller { parked, sleep, .. } = &*scheduler.backup_poller;
        parked.store(true, Ordering::SeqCst);
        // Looked at after the store: a thread that entered before it did not wake the backup poller.
        if !needs_watch(server) && !scheduler.is_stopping() {
            sleep.park(None);
        }
        parked.store(false, Ordering::SeqCst);
        watch(server, &mut context);
        true
    });
}

/// With PEC it polls for ever, and hands all requests over.
pub(super) fn run_pec<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let (mut context, mut events) = (S::Context::default(), Events::with_capacity(EVENTS));
    // A thread that makes something ready wakes this one.
    let _counted = scheduler.pollers.begin();
    run_rounds(server, || {
        serve_ready(server, &mut context, || true, |job| scheduler.submit(job, server));
        let took = scheduler.take_deferred(server);
        fetch_for_all(server, &mut events, scheduler.ready.is_empty() && !took);
        true
    });
}

fn needs_watch<S: Serve>(server: &Arc<S>) -> bool {
    let scheduler = server.scheduler();
    let unpolled = !scheduler.pollers.any()
        && (scheduler.inside.load(Ordering::SeqCst) > 0 || scheduler.pool.threads.is_unmanned());
    unpolled || (!scheduler.ready.is_empty() && !scheduler.pool.limiter.is_monitored())
}

/// Polls again and again until several looks in a row have found nothing.
fn watch<S: Serve>(server: &Arc<S>, context: &mut S::Context) {
    let scheduler = server.scheduler();
    let mut idle_looks = 0;
    let mut before = scheduler.pollers.progress.load(Ordering::Relaxed);
    let mut pause = USUAL;
    while idle_looks < IDLE_LOOKS && !scheduler.is_stopping() {
        scheduler.backup_poller.timer.wait(clock::monotonic(), Pause { nanos: pause, most: u64::MAX });
        pause = LOOK;
        let now = scheduler.pollers.progress.load(Ordering::Relaxed);
        if !scheduler.ready.is_empty() && scheduler.pollers.any() {
            // The thread that made it ready has gone into application code; those that poll do not know of it.
            idle_looks = 0;
            scheduler.pollers.waker.wake();
        } else if !needs_watch(server) {
            idle_looks += 1;
        } else if now == before
            || (scheduler.pool.exclusive && scheduler.pollers.are_late(clock::monotonic()))
        {
            idle_looks = 0;
            if scheduler.pool.limiter.interpreter.is_busy_beside(None) {
                poll_once(server, context);
                (pause, before) = (LONG, now);
                continue;
            }
            scheduler.wake_reserve(false, server);
            if !scheduler.pool.limiter.is_monitored() {
                scheduler.wake_poller(server);
            }
            take_over_polling(server, context);
        } else {
            // With a limiter the thread that has the permit looks at the poller between its requests.
            (idle_looks, pause) = (0, if scheduler.pool.exclusive { LOOK } else { USUAL });
        }
        before = now;
    }
}

/// Polls once, while application code computes: to stay in the poller would take a processor from it for each request, which waits anyway.
fn poll_once<S: Serve>(server: &Arc<S>, context: &mut S::Context) {
    let scheduler = server.scheduler();
    scheduler.pollers.note_poll(clock::monotonic());
    let mut events = Events::with_capacity(EVENTS);
    fetch_for_all(server, &mut events, false);
    serve_ready(server, context, || !scheduler.is_stopping(), |job| scheduler.submit(job, server));
    wake_for_rest(server);
}

/// Polls until an application thread does, or application code computes again. The backup poller watches the poller from outside: among
/// those that wait on it, it would take events from the application threads.
fn take_over_polling<S: Serve>(server: &Arc<S>, context: &mut S::Context) {
    let scheduler = server.scheduler();
    let asked = Cell::new(0_u32);
    poll_while(server, context, || {
        asked.set(asked.get().wrapping_add(1));
        !(scheduler.pollers.any()
            || scheduler.is_stopping()
            || (asked.get().is_multiple_of(NOW_AND_THEN)
                && scheduler.pool.limiter.interpreter.is_busy_beside(None)))
    });
}

/// The thread that was woken has taken one request; the others need another thread, unless one monitors.
fn wake_for_rest<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let left = scheduler.pool.queued() > 0 || scheduler.peer_groups.is_offered();
    scheduler.wake_reserve(false, server);
    if left && !scheduler.pool.limiter.is_monitored() {
        scheduler.wake_poller(server);
    }
}

pub(super) fn fetch_for_all<S: Serve>(server: &Arc<S>, events: &mut Events, waits: bool) {
    fetch(server, events, waits);
    server.scheduler().ready.extend(events.iter().map(signals));
}

/// Serves the present entries of the ready list while `goes_on` says so: connections that come back to the list wait
/// until the poller was looked at. Gives away the requests that may block.
pub(super) fn serve_ready<S: Serve>(
    server: &Arc<S>,
    context: &mut S::Context,
    goes_on: impl Fn() -> bool,
    give: impl Fn(S::Job),
) {
    let ready = &server.scheduler().ready;
    for _ in 0..ready.len() {
        if !goes_on() {
            break;
        }
        let Some((token, signals)) = ready.pop() else { break };
        let jobs = server.serve(token, signals, context);
        let began = context.clock().turn_began();
        for job in jobs {
            if server.is_non_blocking(&job) {
                server.run(job, began);
            } else {
                give(job);
            }
        }
    }
}

/// Serves work that needs no application as long as the backup poller is `alone`, and queues the rest.
pub(super) fn poll_while<S: Serve>(server: &Arc<S>, context: &mut S::Context, alone: impl Fn() -> bool) {
    let scheduler = server.scheduler();
    let mut events = Events::with_capacity(FEW_EVENTS);
    // `alone` is asked after the store: a thread that polls since before it did not release the backup poller.
    scheduler.backup_poller.polls.store(true, Ordering::SeqCst);
    if scheduler.peer_groups.is_offered() {
        // A group that has offered it before the store did not wake the backup poller.
        scheduler.wake_poller(server);
    }
    while alone() {
        // Of a loop that came back and has entered the next handler; if it did before the store, it did not release the backup poller.
        if let Some(looped) = &scheduler.looped {
            looped.send_unsent(server);
        }
        serve_ready(server, context, &alone, |job| scheduler.submit(job, server));
        let watched = if scheduler.ready.is_empty() {
            scheduler.poller.watch(&scheduler.backup_poller.released)
        } else {
            Ok(())
        };
        scheduler.backup_poller.released.clear();
        if !alone() {
            break;
        }
        wake_for_rest(server);
        if let Err(error) = watched {
            server.report(format_args!("waiting for events: {error}"));
        }
        fetch_for_all(server, &mut events, false);
    }
    scheduler.backup_poller.polls.store(false, Ordering::SeqCst);
    // Fetched events that were not served are for the thread that polls now.
    if !scheduler.ready.is_empty() {
        scheduler.wake();
    }
}
