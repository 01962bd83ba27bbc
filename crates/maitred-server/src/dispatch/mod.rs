//! Which thread runs a request.
//!
//! The thread that gets an event reads, parses, runs the handler and writes the answer itself. As
//! many threads poll as there are processors; further ones are parked. A driver without
//! interpreter watches while the last thread that polls is in application code, and calls a parked
//! thread, makes one, or takes the seat itself when that thread stands still.

mod driver;
mod pool;
mod worker;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use maitred_runtime::{Exchange, Handler, InvocationType, ThreadHost};

use crate::group::Group;
pub(crate) use driver::{Driver, run as run_driver};
use pool::{Call, Pool};

/// A request that waits for, or is given to, an application thread.
pub(crate) struct Job {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Exchange,
}

thread_local! {
    /// This thread serves a group and looks at its ready list by itself.
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// The threads of a group and what they are doing.
pub(crate) struct Dispatch {
    pool: Pool,
    host: Arc<dyn ThreadHost>,
    /// Application threads that wait on the poller.
    pollers: AtomicUsize,
    max_pollers: usize,
    /// Threads in application code.
    inside: AtomicUsize,
    /// Rises with everything an application thread begins or ends; standing still is what the
    /// driver looks for.
    progress: AtomicU64,
    pub(crate) driver: Driver,
}

impl Dispatch {
    pub(crate) fn new(
        min: usize,
        max: usize,
        host: Arc<dyn ThreadHost>,
        processors: usize,
    ) -> std::io::Result<Self> {
        Ok(Self {
            pool: Pool::new(min, max),
            host,
            pollers: AtomicUsize::new(0),
            max_pollers: processors.max(1),
            inside: AtomicUsize::new(0),
            progress: AtomicU64::new(0),
            driver: Driver::new()?,
        })
    }

    /// Makes the threads there are from the start.
    pub(crate) fn start(&self, group: &Arc<Group>) {
        while self.pool.claim_initial() {
            self.spawn(group);
        }
    }

    fn spawn(&self, group: &Arc<Group>) {
        let number = self.pool.threads();
        let own = Arc::clone(group);
        let body = Box::new(move || worker::run(&own));
        if let Err(error) = self.host.spawn(format!("maitred-{number}"), body) {
            self.pool.not_started();
            group.site.log.error(format_args!("cannot make an application thread: {error}"));
        }
    }

    fn answer_call(&self, call: &Call, group: &Arc<Group>) {
        if *call == Call::Spawn {
            self.spawn(group);
        }
    }

    /// Queues a request for the application threads; called by the driver, which may not run it.
    fn submit(&self, job: Job, group: &Arc<Group>) {
        let call = self.pool.submit(job);
        if call == Call::Nothing && self.pollers.load(Ordering::SeqCst) > 0 {
            group.waker.wake();
        }
        self.answer_call(&call, group);
    }

    /// Runs application code on this thread.
    fn run(&self, job: Job, group: &Group) {
        let blocking = job.handler.invocation_type() != InvocationType::NonBlocking;
        if blocking {
            self.inside.fetch_add(1, Ordering::SeqCst);
            self.progress.fetch_add(1, Ordering::Relaxed);
            if self.pollers.load(Ordering::SeqCst) == 0 {
                self.driver.watch();
            }
        }
        let Job { handler, exchange } = job;
        // The exchange is dropped by the unwinding and answers 500.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.handle(exchange))) {
            group.site.log.error(format_args!("a handler panicked: {}", panic_text(&*panic)));
        }
        if blocking {
            self.progress.fetch_add(1, Ordering::Relaxed);
            self.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether the calling thread looks at the ready list by itself.
    pub(crate) fn on_serving_thread(&self) -> bool {
        SERVING.get()
    }

    /// Has somebody look at the ready list.
    pub(crate) fn call_for_ready_list(&self, group: &Group) {
        if self.pollers.load(Ordering::SeqCst) > 0 {
            group.waker.wake();
        } else {
            self.driver.kick();
        }
    }

    pub(crate) fn stop(&self) {
        self.pool.stop();
        self.driver.kick();
    }

    /// Application threads that exist or have been asked for.
    pub(crate) fn threads(&self) -> usize {
        self.pool.threads()
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}
