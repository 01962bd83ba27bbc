//! The driver: a thread without interpreter that polls when no application thread can (D7).
//!
//! ```text
//! parked --watch()--> watching --the last poller stands still--> call a thread, and: seated
//!    ^                  |   ^                                                          |
//!    `--nothing to do --'   `------ an application thread polls again (dismiss) -------'
//! ```
//! Watching looks at a counter once a millisecond and costs the hot path one load. Only when the
//! counter stands still while nobody polls is a thread called; until one polls, the driver does
//! what needs no application: it reads, parses, answers from files, moves writes and timers, and
//! queues the rest.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use maitred_io::poller::{Events, Interest, Poller, Waker};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_io::sync::{Condvar, Mutex};
use maitred_runtime::InvocationType;

use super::SERVING;
use crate::group::{Group, signals_of};
use crate::scratch::Scratch;

/// The first look after application code was entered with nobody polling: long enough that a
/// request of ordinary length is over (an interpreter's request takes 50 to 200 µs).
const FIRST_LOOK: Duration = Duration::from_micros(300);

/// Further looks. A look costs about 5 µs of a core: half a percent.
const LOOK: Duration = Duration::from_millis(1);

/// Looks without anything to watch before the driver parks, so that a steady load does not wake it
/// for every request.
const IDLE_LOOKS: u32 = 50;

/// Events fetched by one wait of the driver; they go to the ready list, which every thread sees.
const BATCH: usize = 16;

const GROUP: u64 = 0;
const DISMISS: u64 = 1;

/// The driver's state, shared with the threads it stands in for.
pub(crate) struct Driver {
    parked: AtomicBool,
    seated: AtomicBool,
    dismissed: Waker,
    called: Mutex<bool>,
    wake: Condvar,
}

impl Driver {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            parked: AtomicBool::new(false),
            seated: AtomicBool::new(false),
            dismissed: Waker::new()?,
            called: Mutex::new(false),
            wake: Condvar::new(),
        })
    }

    /// The last thread that polled has entered application code. One load while the driver
    /// watches already.
    pub(super) fn watch(&self) {
        if self.parked.load(Ordering::SeqCst) {
            self.kick();
        }
    }

    /// An application thread polls again. One load while the driver is not seated.
    pub(super) fn dismiss(&self) {
        if self.seated.load(Ordering::SeqCst) {
            self.dismissed.wake();
        }
    }

    /// Has the driver look at once.
    pub(super) fn kick(&self) {
        *self.called.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
        self.dismissed.wake();
    }

    /// Sleeps until kicked, at most for `limit` (`None`: for ever).
    fn sleep(&self, limit: Option<Duration>) {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if !*called {
            called = match limit {
                Some(limit) => self.wake.wait_timeout(called, limit).unwrap_or_else(PoisonError::into_inner).0,
                None => self.wake.wait(called).unwrap_or_else(PoisonError::into_inner),
            };
        }
        *called = false;
    }
}

/// The life of the driver.
pub(crate) fn run(group: &Arc<Group>) {
    SERVING.set(true);
    let seat = match Seat::new(group) {
        Ok(seat) => seat,
        Err(error) => {
            group.site.log.error(format_args!("the driver cannot poll: {error}"));
            return;
        }
    };
    let mut scratch = Scratch::default();
    // At the start no application thread polls yet.
    seat.take(group, &mut scratch);
    while !group.is_stopping() {
        park(group);
        watch(group, &seat, &mut scratch);
    }
}

/// Sleeps until there is something to watch.
fn park(group: &Group) {
    let dispatch = &group.dispatch;
    dispatch.driver.parked.store(true, Ordering::SeqCst);
    // Looked at after the store: whoever entered before it did not kick.
    let needed = dispatch.pollers.load(Ordering::SeqCst) == 0 && dispatch.inside.load(Ordering::SeqCst) > 0;
    if !needed && !group.is_stopping() {
        dispatch.driver.sleep(None);
    }
    dispatch.driver.parked.store(false, Ordering::SeqCst);
}

/// Looks until there has been nothing to watch for a while.
fn watch(group: &Arc<Group>, seat: &Seat, scratch: &mut Scratch) {
    let dispatch = &group.dispatch;
    let mut idle_looks = 0;
    let mut before = dispatch.progress.load(Ordering::Relaxed);
    let mut pause = FIRST_LOOK;
    while idle_looks < IDLE_LOOKS && !group.is_stopping() {
        dispatch.driver.sleep(Some(pause));
        pause = LOOK;
        let now = dispatch.progress.load(Ordering::Relaxed);
        if dispatch.pollers.load(Ordering::SeqCst) > 0 {
            idle_looks += 1;
        } else if now == before {
            idle_looks = 0;
            let call = dispatch.pool.call_poller();
            dispatch.answer_call(&call, group);
            seat.take(group, scratch);
        } else {
            idle_looks = 0;
        }
        before = now;
    }
}

/// The driver's own view of the group's poller: the poller is itself watched, beside the waker
/// that dismisses the driver. So the driver never is a waiter of the shared queue, where it would
/// be the last one in and take events from the application threads.
struct Seat {
    poller: Poller,
}

impl Seat {
    fn new(group: &Group) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&group.poller, GROUP, Interest::ReadLevel)?;
        poller.add(&group.dispatch.driver.dismissed, DISMISS, Interest::ReadLevel)?;
        Ok(Self { poller })
    }

    /// Polls for the group until an application thread does.
    fn take(&self, group: &Arc<Group>, scratch: &mut Scratch) {
        let dispatch = &group.dispatch;
        let mut outer = Events::with_capacity(2);
        let mut events = Events::with_capacity(BATCH);
        dispatch.driver.seated.store(true, Ordering::SeqCst);
        // Looked at after the store: a thread that polls since before it did not dismiss.
        while dispatch.pollers.load(Ordering::SeqCst) == 0 && !group.is_stopping() {
            while let Some((token, signals)) = group.ready.pop() {
                if let Some(job) = group.serve(token, signals, scratch) {
                    if job.handler.invocation_type() == InvocationType::NonBlocking {
                        dispatch.run(job, group);
                    } else {
                        dispatch.submit(job, group);
                    }
                }
            }
            let waited = self.poller.wait(&mut outer, None);
            if outer.iter().any(|(token, _)| token == DISMISS) {
                dispatch.driver.dismissed.clear();
            }
            let fetched = waited.and_then(|()| group.poller.wait(&mut events, Some(Duration::ZERO)));
            if let Err(error) = fetched {
                group.site.log.error(format_args!("waiting for events: {error}"));
            }
            for (token, readiness) in events.iter() {
                group.ready.push(token, signals_of(readiness));
            }
        }
        dispatch.driver.seated.store(false, Ordering::SeqCst);
        dispatch.driver.dismissed.clear();
        // What was fetched and not served belongs to whoever polls now.
        if !group.ready.is_empty() {
            group.waker.wake();
        }
    }
}
