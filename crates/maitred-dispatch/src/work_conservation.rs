//! The audit of work conservation: time in which a request waited although a thread was idle.
//!
//! It should be nothing where threads run side by side: a request is queued only when no thread is idle. With one
//! interpreter a queued request waits until the watcher takes the runner for one that stands still; from when on the
//! interpreter is free nobody can know, so all the time since the runner's last entry is counted.

use maitred_io::sync::atomic::{AtomicU64, Ordering};

/// What has been found since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idleness {
    /// Requests that waited.
    pub requests: u64,
    /// How long all of them together, in nanoseconds.
    pub total_ns: u64,
    /// The longest wait, in nanoseconds.
    pub longest_ns: u64,
}

impl Idleness {
    /// Adds what another part of the pool has found.
    pub(super) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Its counters; written under the lock of a queue.
#[derive(Default)]
pub(super) struct WorkConservation {
    requests: AtomicU64,
    total: AtomicU64,
    longest: AtomicU64,
}

impl WorkConservation {
    /// A request has waited for `nanos` although it need not have.
    pub(super) fn add(&self, nanos: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(nanos, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Idleness {
        Idleness {
            requests: self.requests.load(Ordering::Relaxed),
            total_ns: self.total.load(Ordering::Relaxed),
            longest_ns: self.longest.load(Ordering::Relaxed),
        }
    }
}
