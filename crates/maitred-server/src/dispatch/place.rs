//! Where a thread of a pool sleeps, and what it is woken for.

use std::sync::PoisonError;

use maitred_io::parker::Parker;
use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicBool, Ordering};

/// Where one thread sleeps.
pub(super) struct Place<J> {
    pub(super) parker: Parker,
    /// It was called to watch.
    watch: AtomicBool,
    /// What it was given.
    given: Mutex<Option<J>>,
}

impl<J> Default for Place<J> {
    fn default() -> Self {
        Self { parker: Parker::default(), watch: AtomicBool::new(false), given: Mutex::new(None) }
    }
}

impl<J> Place<J> {
    pub(super) fn call(&self) {
        self.parker.unpark();
    }

    /// Calls the thread to watch.
    pub(super) fn watch(&self) {
        self.watch.store(true, Ordering::SeqCst);
        self.parker.unpark();
    }

    pub(super) fn give(&self, job: J) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        self.parker.unpark();
    }

    /// Whether the thread was called to watch; asked once.
    pub(super) fn take_watch(&self) -> bool {
        self.watch.swap(false, Ordering::SeqCst)
    }

    pub(super) fn take_given(&self) -> Option<J> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
