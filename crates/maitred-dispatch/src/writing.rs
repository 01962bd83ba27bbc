//! A thread that writes to a disk what its request has made: it serves nobody meanwhile.
//!
//! Its permit goes to another thread: the interpreter is free. When all threads write, or are in slow requests, others are run by
//! the [`extra`](super::extra) thread. What a route writes is remembered ([`fair`](super::fair)).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicUsize, Ordering};

use crate::gate::{Seat, State};
use crate::pool::Pool;
use crate::{Scheduler, Serve};

maitred_io::sync::thread_local! {
    /// What the request of this thread has made goes to a disk, or will.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static WROTE: Cell<bool> = Cell::new(false);
    /// The seat of this thread.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static SEAT: RefCell<Option<Arc<Seat>>> = RefCell::new(None);
}

/// Whether the request that this thread has run was one that writes to a disk. Asked once.
pub(super) fn has_written() -> bool {
    WROTE.with(Cell::take)
}

/// The thread has this seat from now on.
pub(super) fn set_seat(seat: Option<&Arc<Seat>>) {
    SEAT.with(|own| *own.borrow_mut() = seat.cloned());
}

/// Asks about the seat of this thread, if it has one.
pub(super) fn with_seat<T>(ask: impl FnOnce(Option<&Seat>) -> T) -> T {
    SEAT.with(|own| ask(own.borrow().as_deref()))
}

/// A thread that writes, until this is dropped.
struct Writing<'a> {
    count: &'a AtomicUsize,
    seat: Option<Arc<Seat>>,
}

impl<'a> Writing<'a> {
    /// Begins, and says whether that has made a permit free.
    fn begin(count: &'a AtomicUsize) -> (Self, bool) {
        count.fetch_add(1, Ordering::SeqCst);
        let seat = SEAT.with(|own| own.borrow().clone());
        let frees = seat.as_ref().is_some_and(|seat| seat.lose_permit(State::Writes));
        if let Some(seat) = &seat {
            // One that has no permit gets none for the processor time that it uses now.
            seat.change(State::Waits, State::Writes);
        }
        (Self { count, seat }, frees)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        if let Some(seat) = &self.seat {
            // The meter gives the thread a permit again when the thread computes.
            seat.change(State::Writes, State::Waits);
        }
    }
}

impl<J: Send> Scheduler<J> {
    /// What the request of this thread has made goes to a disk, or will.
    pub fn note_written(&self) {
        WROTE.with(|cell| cell.set(true));
    }

    /// Calls `act`, in which the thread of a handler writes to a disk. It does not count as one that serves meanwhile.
    pub fn write_out<S: Serve<Job = J>, T>(&self, server: &Arc<S>, act: impl FnOnce() -> T) -> T {
        // What a loop's thread does nobody else can do, and other pools have no extra thread.
        if self.looped.is_some() || !self.is_served_here() {
            return act();
        }
        self.note_written();
        let (_writing, frees) = Writing::begin(&self.pool.writing);
        if frees && self.pool.queued() > 0 {
            self.make_way(server);
        }
        self.call_extra(server);
        act()
    }

    /// A permit has become free while requests wait: the watcher, a polling thread or one that is unparked takes it.
    pub(super) fn make_way<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if self.pool.gate.is_watched() {
            self.pool.gate.cut_short(clock::monotonic());
        } else if self.pollers.load(Ordering::SeqCst) > 0 {
            self.waker.wake();
        } else {
            self.answer_call(&self.pool.call_poller(), server);
        }
    }
}

impl<J> Pool<J> {
    /// Threads that write.
    pub(super) fn writing(&self) -> usize {
        self.writing.load(Ordering::SeqCst)
    }
}
