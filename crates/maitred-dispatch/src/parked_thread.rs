//! The place of one thread of a pool: the thread sleeps there, and finds there what it was woken for.

use std::sync::PoisonError;

use maitred_io::parker::Parker;
use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// States of a place, see [`parking`](super::parking): not in the stack; in it, and parked; in it, to be skipped.
pub(super) const OUT: u8 = 0;
pub(super) const PARKED: u8 = 1;
pub(super) const CANCELLED: u8 = 2;

/// Where one thread sleeps.
pub(super) struct ParkedThread<J> {
    pub(super) parker: Parker,
    /// It was woken to monitor.
    monitors: AtomicBool,
    /// What it was given.
    given: Mutex<Option<J>>,
    pub(super) state: AtomicU8,
    /// The number of the place below it in the stack and one; 0 for none.
    pub(super) below: AtomicU64,
}

impl<J> Default for ParkedThread<J> {
    fn default() -> Self {
        Self {
            parker: Parker::default(),
            monitors: AtomicBool::new(false),
            given: Mutex::new(None),
            state: AtomicU8::new(OUT),
            below: AtomicU64::new(0),
        }
    }
}

impl<J> ParkedThread<J> {
    pub(super) fn wake(&self) {
        self.parker.unpark();
    }

    /// Wakes the thread to monitor.
    pub(super) fn monitor(&self) {
        self.monitors.store(true, Ordering::SeqCst);
        self.parker.unpark();
    }

    pub(super) fn give(&self, job: J) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        self.parker.unpark();
    }

    /// Whether the thread was woken to monitor; asked once.
    pub(super) fn take_monitors(&self) -> bool {
        self.monitors.swap(false, Ordering::SeqCst)
    }

    pub(super) fn take_given(&self) -> Option<J> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
