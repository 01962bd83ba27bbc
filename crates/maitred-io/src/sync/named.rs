//! The named lock under shuttle: it has no counts, and its interleavings are explored.

use std::borrow::Cow;

use std::time::Duration;

use maitred_stats::LockSnapshot;

use super::{Mutex, MutexGuard};

/// A mutex whose name is not used.
pub struct NamedLock<T>(Mutex<T>);

impl<T> NamedLock<T> {
    /// A free lock around `value`.
    pub fn with_name(_name: Cow<'static, str>, value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes the lock, waiting if need be.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A snapshot of zeros: nothing is counted.
    pub fn snapshot(&self) -> LockSnapshot {
        let none = Duration::ZERO;
        LockSnapshot {
            name: Cow::Borrowed(""),
            acquisitions: 0,
            contended: 0,
            wait_total: none,
            wait_max: none,
        }
    }
}
