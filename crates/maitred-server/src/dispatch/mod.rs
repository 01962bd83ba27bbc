//! Which thread runs a request.
//!
//! The thread that gets an event reads, parses, runs the handler and writes the answer itself. As
//! many threads poll as there are processors; further ones are parked. A driver without
//! interpreter watches while the last thread that polls is in application code, and calls a parked
//! thread, makes one, or takes the seat itself when that thread stands still.
//!
//! Where the language brings an event loop, that loop's thread is the only one that polls and runs application
//! code (`looped`), and the driver stands by (`standstill`).
//!
//! Promises (checked under shuttle on this code, see `model`): nothing that is ready is forgotten
//! while a thread is idle; never more than the most threads; with every application thread in
//! application code the driver serves.

mod driver;
mod gate;
mod looped;
#[cfg(all(test, shuttle))]
mod model_shuttle;
mod pool;
mod ready;
mod runner;
mod standstill;
mod unsent;
mod worker;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;

use maitred_io::poller::{Interest, Poller, Waker};
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use maitred_runtime::EventLoop;

use crate::group::claim::Signals;
use crate::scratch::Scratch;
use driver::Driver;
use looped::{LoopTurns, Looped};
use pool::{Call, Pool};
use ready::Ready;

pub(crate) use driver::run as run_driver;

/// The scheduler's own tokens; those of its user stay below.
const WAKER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// What the threads of a scheduler serve.
pub(crate) trait Serve: Send + Sync + Sized + 'static {
    /// A request that needs an application thread.
    type Job: Send;

    /// The scheduler of this.
    fn scheduler(&self) -> &Scheduler<Self::Job>;

    /// Serves one thing a wait or the ready list brought. Never waits, never runs application code.
    fn serve(self: &Arc<Self>, token: u64, signals: Signals, scratch: &mut Scratch) -> Option<Self::Job>;

    /// Sends the complete response that a handler has left with `token`; see [`Scheduler::send_later`].
    fn send(self: &Arc<Self>, token: u64, now: u64);

    /// Loads what serving `token` will touch; it is served soon.
    fn prefetch(&self, token: u64);

    /// Whether `job` may run on the thread that polls, also on the last one.
    fn is_non_blocking(&self, job: &Self::Job) -> bool;

    /// Runs application code.
    fn run(&self, job: Self::Job);

    /// Calls `act` with whatever the language needs to run application code held all the time.
    fn attached(&self, act: &mut dyn FnMut()) {
        act();
    }

    /// Has a thread made that calls [`work`].
    ///
    /// # Errors
    /// It cannot be made.
    fn spawn(self: &Arc<Self>, number: usize) -> io::Result<()>;

    /// Writes to the error log.
    fn report(&self, text: fmt::Arguments<'_>);
}

maitred_io::sync::thread_local! {
    /// This thread serves and looks at the ready list by itself.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static SERVING: Cell<bool> = Cell::new(false);
}

/// The threads of a group, what waits for them, and what they are doing.
pub(crate) struct Scheduler<J> {
    pub(crate) poller: Poller,
    /// Wakes one thread that polls.
    waker: Waker,
    /// Wakes all of them, for the end.
    stop: Waker,
    stopping: AtomicBool,
    ready: Ready,
    /// Connections whose complete response has not been sent: see [`unsent`].
    unsent: Ready,
    pool: Pool<J>,
    /// Application threads that wait on the poller.
    pollers: AtomicUsize,
    max_pollers: usize,
    /// One thread at a time can run application code: see [`gate`].
    gated: bool,
    /// Threads in application code.
    inside: AtomicUsize,
    /// Rises with everything an application thread begins or ends; standing still is what the
    /// driver looks for.
    progress: AtomicU64,
    driver: Driver,
    /// An event loop polls; there are no other application threads.
    looped: Option<Looped>,
    /// The mutation of the model test: see [`is_idle`](Self::is_idle).
    #[cfg(shuttle)]
    forgetful: bool,
}

impl<J: Send> Scheduler<J> {
    /// A scheduler for `min` to `max` application threads, of which `max_pollers` poll at once. `gated`:
    /// the application's language runs one thread at a time.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn new(min: usize, max: usize, max_pollers: usize, gated: bool) -> io::Result<Self> {
        let scheduler = Self {
            poller: Poller::new()?,
            waker: Waker::new()?,
            stop: Waker::new()?,
            stopping: AtomicBool::new(false),
            ready: Ready::default(),
            unsent: Ready::default(),
            pool: Pool::new(min, max)?,
            pollers: AtomicUsize::new(0),
            // While the runner runs, a second thread polls, and watches when something comes.
            max_pollers: max_pollers.max(if gated { 2 } else { 1 }).min(max.max(1)),
            gated,
            inside: AtomicUsize::new(0),
            progress: AtomicU64::new(0),
            driver: Driver::new()?,
            looped: None,
            #[cfg(shuttle)]
            forgetful: false,
        };
        scheduler.poller.add_waker(&scheduler.waker, WAKER, Interest::Read)?;
        scheduler.poller.add_waker(&scheduler.stop, STOP, Interest::ReadLevel)?;
        Ok(scheduler)
    }

    /// A scheduler for an event loop.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn for_loop(event_loop: Arc<dyn EventLoop>) -> io::Result<Self> {
        Ok(Self { looped: Some(Looped::new(event_loop)?), ..Self::new(0, 0, 1, false)? })
    }

    /// Makes the threads there are from the start, or attaches the event loop.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub(crate) fn start<S: Serve<Job = J>>(&self, server: &Arc<S>) -> io::Result<()> {
        if let Some(looped) = &self.looped {
            looped.event_loop.attach(Box::new(LoopTurns::new(server)));
        }
        while self.pool.claim_initial() {
            self.spawn(server)?;
        }
        Ok(())
    }

    fn spawn<S: Serve<Job = J>>(&self, server: &Arc<S>) -> io::Result<()> {
        server.spawn(self.pool.number()).inspect_err(|_| self.pool.not_started())
    }

    fn answer_call<S: Serve<Job = J>>(&self, call: &Call, server: &Arc<S>) {
        if *call == Call::Spawn
            && let Err(error) = self.spawn(server)
        {
            server.report(format_args!("cannot make an application thread: {error}"));
        }
    }

    /// Queues a request for the application threads; called by the driver, which may not run it.
    fn submit<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        let call = self.pool.submit(job);
        if call == Call::Nothing && (self.looped.is_some() || self.pollers.load(Ordering::SeqCst) > 0) {
            self.call();
        }
        self.answer_call(&call, server);
    }

    /// Calls a thread that polls.
    fn call(&self) {
        match &self.looped {
            Some(looped) => looped.ring(),
            None => self.waker.wake(),
        }
    }

    /// A thread gets on. Where two do so at once one of the steps may be lost, which nobody misses: what is looked
    /// for is that there are none.
    fn note_progress(&self) {
        let steps = self.progress.load(Ordering::Relaxed);
        self.progress.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// Runs application code on this thread. What claims not to block is watched like the rest: it
    /// would stop everything if the claim were wrong.
    fn run<S: Serve<Job = J>>(&self, job: J, server: &S) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.note_progress();
        if self.looped.is_some() {
            // What this thread has fetched is on the ready list, and the poller does not know of it.
            self.driver.rouse();
        } else if self.gated && self.pool.gate.is_watched() {
            // The watcher takes over when this thread stands still.
        } else if self.pollers.load(Ordering::SeqCst) == 0 {
            self.driver.watch();
        } else if !self.gated && !self.ready.is_empty() {
            // Left for this thread, which is away now; those that poll have looked already.
            self.waker.wake();
        }
        server.run(job);
        self.note_progress();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Puts something on the ready list, from a turn: this thread looks there next.
    pub(crate) fn ready_next(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        // A driver that is seated shares the list.
        self.driver.dismiss();
    }

    /// Puts something on the ready list, from application code or from a thread that does not serve.
    /// A thread that serves looks there when it leaves application code, and the driver if that takes
    /// long; any other thread calls somebody.
    pub(crate) fn make_ready(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        if let Some(looped) = &self.looped {
            // A turn looks at the list before its end.
            if !SERVING.with(Cell::get) {
                looped.ring();
            }
            self.driver.rouse();
        } else if SERVING.with(Cell::get) {
            self.driver.watch();
        } else if self.pollers.load(Ordering::SeqCst) > 0 {
            self.waker.wake();
        } else {
            self.driver.kick();
        }
    }

    /// Whether there is nothing to do but to wait. Asked after the caller has counted itself as a
    /// poller: whoever made work before that saw no poller to wake.
    fn is_idle(&self) -> bool {
        #[cfg(shuttle)]
        if self.forgetful {
            return true;
        }
        self.ready.is_empty() && self.pool.queued() == 0 && !self.is_stopping()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Ends every thread that is not in application code.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.stop.wake();
        self.pool.stop();
        if let Some(looped) = &self.looped {
            looped.ring();
        }
        self.driver.kick();
    }

    /// Drops the requests that wait for a thread, after the end.
    pub(crate) fn discard_queue(&self) {
        self.pool.discard();
    }

    /// Application threads that exist or have been asked for.
    pub(crate) fn threads(&self) -> usize {
        if self.looped.is_some() { 1 } else { self.pool.threads() }
    }
}

/// The life of an application thread.
pub(crate) fn work<S: Serve>(server: &Arc<S>) {
    worker::run(server);
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}
