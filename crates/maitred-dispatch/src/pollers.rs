//! The threads of a group that wait for events: how many there are and may be, and how far they have got.

use std::cell::Cell;
use std::io;

use maitred_io::poller::Waker;
use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::numbers::LONG;

maitred_io::sync::thread_local! {
    /// The address of the pollers of the group that this thread serves, whose ready list it looks at by itself; 0 for none.
    static SERVING: Cell<usize> = Cell::new(0);
}

pub(super) struct Pollers {
    /// Application threads that wait on the poller.
    count: AtomicUsize,
    /// The threads that may poll at once now, and the most, whatever the number of threads.
    max: AtomicUsize,
    width: usize,
    /// Wakes a thread that waits on the poller.
    pub(super) waker: Waker,
    /// Rises whenever an application thread begins or ends something. The backup poller takes over when it stands still.
    pub(super) progress: AtomicU64,
    /// The last look at the poller by a thread between two requests, or by the backup poller while threads compute, in monotonic nanoseconds.
    polled: AtomicU64,
}

impl Pollers {
    /// For a group of so many `threads`, of which up to `width` wait at once.
    pub(super) fn new(width: usize, threads: usize) -> io::Result<Self> {
        let pollers = Self {
            count: AtomicUsize::new(0),
            max: AtomicUsize::new(0),
            width,
            waker: Waker::new()?,
            progress: AtomicU64::new(0),
            polled: AtomicU64::new(0),
        };
        pollers.set_threads(threads);
        Ok(pollers)
    }

    pub(super) fn set_threads(&self, threads: usize) {
        self.max.store(self.width.min(threads.max(1)), Ordering::SeqCst);
    }

    pub(super) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// The calling thread is going to wait, until the value is dropped. How many others do.
    pub(super) fn begin(&self) -> (Counted<'_>, usize) {
        Counted::begin_among(&self.count)
    }

    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    pub(super) fn are_enough(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.max()
    }

    /// Wakes a thread that waits on the poller. False when none waits.
    pub(super) fn wake(&self) -> bool {
        let any = self.any();
        if any {
            self.waker.wake();
        }
        any
    }

    /// Where two threads do so at once one of the steps may be lost: the backup poller only looks whether there were any.
    pub(super) fn note_progress(&self) {
        let steps = self.progress.load(Ordering::Relaxed);
        self.progress.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    pub(super) fn note_poll(&self, now: u64) {
        self.polled.store(now, Ordering::Relaxed);
    }

    /// At a limiter: the threads inside have had enough to do for long, and work without the application waits.
    pub(super) fn are_late(&self, now: u64) -> bool {
        now.saturating_sub(self.polled.load(Ordering::Relaxed)) > LONG
    }

    pub(super) fn set_serving(&self, serving: bool) {
        SERVING.with(|cell| cell.set(if serving { self.address() } else { 0 }));
    }

    pub(super) fn are_served_here(&self) -> bool {
        SERVING.with(Cell::get) == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A thread that is counted until this is dropped, also by a panic.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    pub(super) fn begin(count: &'a AtomicUsize) -> Self {
        Self::begin_among(count).0
    }

    /// And the number of those that were counted before.
    fn begin_among(count: &'a AtomicUsize) -> (Self, usize) {
        let others = count.fetch_add(1, Ordering::SeqCst);
        (Self(count), others)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
