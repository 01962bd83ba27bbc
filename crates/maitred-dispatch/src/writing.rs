//! A thread that writes the response of its request to a disk: it serves no client meanwhile.
//!
//! Its permit goes to another thread: the interpreter is free. When all threads write, or are in slow requests, others
//! are run by the [reserve thread](super::reserve_thread). The routes that write are remembered ([`costs`](super::costs)).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use maitred_io::clock;

use crate::app_thread::AppThread;
use crate::pollers::Counted;
use crate::{Scheduler, Serve};

maitred_io::sync::thread_local! {
    /// The response of this thread's request goes to a disk, or will.
    static WROTE: Cell<bool> = Cell::new(false);
    static OWN: RefCell<Option<Arc<AppThread>>> = RefCell::new(None);
}

/// Whether the request that this thread has run was one that writes to a disk. Asked once.
pub(super) fn has_written() -> bool {
    WROTE.with(Cell::take)
}

pub(super) fn set_own_thread(thread: Option<&Arc<AppThread>>) {
    OWN.with(|own| *own.borrow_mut() = thread.cloned());
}

pub(super) fn with_own_thread<T>(ask: impl FnOnce(Option<&AppThread>) -> T) -> T {
    OWN.with(|own| ask(own.borrow().as_deref()))
}

impl<J: Send> Scheduler<J> {
    /// Notes that the response of this thread's request goes to a disk, or will.
    pub fn note_written(&self) {
        WROTE.with(|cell| cell.set(true));
    }

    /// Calls `act`, in which the thread of a handler writes to a disk. It does not count as one that serves meanwhile.
    pub fn write_out<S: Serve<Job = J>, T>(&self, server: &Arc<S>, act: impl FnOnce() -> T) -> T {
        // No other thread can do the work of a loop's thread, and other pools have no reserve thread.
        if self.looped.is_some() || !self.pollers.are_served_here() {
            return act();
        }
        self.note_written();
        let _away = Counted::begin(&self.pool.away);
        // A sample gives the thread a permit again when it uses the interpreter again.
        let frees = with_own_thread(|own| own.is_some_and(|own| self.pool.limiter.interpreter.release(own)));
        if frees && self.pool.queued() > 0 {
            self.make_way(server);
        }
        self.wake_reserve(false, server);
        act()
    }

    /// A permit has become free while requests wait: the monitor, a polling thread or one that is unparked takes it.
    pub(super) fn make_way<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if self.pool.limiter.is_monitored() {
            self.pool.limiter.timer.fire_now(clock::monotonic());
        } else if !self.pollers.wake() {
            self.wake_poller(server);
        }
    }
}
