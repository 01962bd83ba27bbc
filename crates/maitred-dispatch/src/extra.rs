//! The extra thread of a pool: it runs usual requests while all other threads are in slow ones, or write to a disk.
//!
//! Slow requests may have every thread there may be; no thread is kept from them while they wait. What would then wait behind
//! them is run here, one after the other. The thread is made when it is needed for the first time, is not counted in
//! `max-threads`, and ends after the idle time of its pool. A pool of one thread has none: its application may rely on it.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::parker::Parker;
use maitred_io::sync::atomic::{AtomicBool, Ordering};

use super::{Scheduler, Serve};

/// Whether there is one, and where it sleeps.
#[derive(Default)]
pub(super) struct Extra {
    exists: AtomicBool,
    parker: Parker,
}

impl Extra {
    /// Has it look around, if there is one.
    pub(super) fn call(&self) {
        self.parker.unpark();
    }
}

impl<J: Send> Scheduler<J> {
    /// Has usual requests run although all threads are in slow ones, if that is so.
    pub(super) fn call_extra<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if !self.pool.needs_extra() || self.is_stopping() {
            return;
        }
        if !self.extra.exists.swap(true, Ordering::SeqCst)
            && let Err(error) = server.spawn_extra()
        {
            self.extra.exists.store(false, Ordering::SeqCst);
            server.report(format_args!("cannot make an application thread for short requests: {error}"));
        }
        self.extra.call();
    }
}

/// The life of the extra thread.
pub fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    let pool = &scheduler.pool;
    let seat = pool.gate.seat();
    scheduler.set_serving(true);
    while !scheduler.is_stopping() {
        if pool.needs_extra()
            && let Some(job) = pool.pop_light()
        {
            pool.gate.force(&seat);
            let now = clock::monotonic();
            seat.enter(now);
            scheduler.run_assigned(job, now, &**server, pool);
            seat.leave();
            pool.gate.give_back(&seat);
            continue;
        }
        let idle = Duration::from_nanos(pool.idle_limit());
        if !scheduler.extra.parker.park(Some(idle)) {
            // Whoever needs one from now on has one made; who did before this was seen, or is seen now.
            scheduler.extra.exists.store(false, Ordering::SeqCst);
            if !pool.needs_extra() || scheduler.extra.exists.swap(true, Ordering::SeqCst) {
                break;
            }
        }
    }
    scheduler.set_serving(false);
    pool.gate.unseat(&seat);
}
