//! Whether new work is welcome. It matters for sources of work that several processes share: another process would do it at once.
//!
//! ```text
//! a source has work, and this process is not free:      the user stops watching the source, and reports that (set_deferred)
//! a thread of this process has nothing else to do:      it has the user look there (take_deferred), before it waits for events
//! ```
//! Nothing is missed: a thread that turns work away reports it before it asks once more whether this process is free,
//! and a thread that becomes free looks for deferred work after that.

use std::cell::Cell;
use std::sync::Arc;

use maitred_io::sync::atomic::Ordering;
use maitred_pool::Strategy;

use crate::writing::with_own_thread;
use crate::{Scheduler, Serve};

maitred_io::sync::thread_local! {
    static POLLS_AS_BACKUP: Cell<bool> = Cell::new(false);
}

pub(super) fn set_backup_poller() {
    POLLS_AS_BACKUP.with(|cell| cell.set(true));
}

impl<J: Send> Scheduler<J> {
    /// Whether a request that came now would run at once, on this thread, which serves, or another one of the pool that polls. Where threads
    /// share an interpreter the process is not free while another thread computes there, however many permits there may be: the number of
    /// permits follows from waiting requests, and there are none. The check costs some microseconds for each thread inside.
    pub fn is_free(&self) -> bool {
        if self.pool.queued() > 0 {
            return false;
        }
        let is_backup = POLLS_AS_BACKUP.with(Cell::get);
        if let Some(looped) = &self.looped {
            // A handler that was called in this turn begins after it.
            return !is_backup && looped.event_loop.later().handlers == 0;
        }
        if self.strategy == Strategy::Pec {
            return self.pool.parked() > 0 || self.pool.threads.has_room();
        }
        if is_backup && !self.pollers.any() {
            return false;
        }
        // The thread that asks may have a permit, and is between two requests.
        !with_own_thread(|own| self.pool.limiter.interpreter.is_busy_beside(own))
    }

    /// Whether this group is free, for a caller that is none of its threads.
    pub fn is_free_apart(&self) -> bool {
        self.pool.queued() == 0 && self.pollers.any()
    }

    /// Says whether work was turned away, so that a thread with nothing else to do has the user look for it.
    pub fn set_deferred(&self, deferred: bool) {
        self.deferred.store(deferred, Ordering::SeqCst);
    }

    /// Takes deferred work, for a thread that has nothing else to do. Returns whether there was some. One load if not.
    pub(super) fn take_deferred<S: Serve<Job = J>>(&self, server: &Arc<S>) -> bool {
        self.is_deferred() && server.take_deferred()
    }

    pub(super) fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::SeqCst)
    }
}
