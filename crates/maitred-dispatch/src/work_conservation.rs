//! Idle while queued: time in which a request waited although a thread was idle.
//!
//! It should be nothing where threads run side by side: a request is queued only when no thread is idle. With one
//! interpreter a sample may find that no thread computes any more; when that began between two samples is not known, so half of the time
//! between them is counted.

use maitred_io::sync::atomic::{AtomicU64, Ordering};

use crate::counters::{IDLE_NANOS, IDLE_REQUESTS, QueueCounters};

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

/// The longest wait; written under the lock of a queue, whose counters have the rest.
#[derive(Default)]
pub(super) struct WorkConservation {
    longest: AtomicU64,
}

impl WorkConservation {
    /// A request has waited for `nanos` although it need not have.
    pub(super) fn add(&self, counted: &QueueCounters, nanos: u64) {
        counted.add(IDLE_REQUESTS, 1);
        counted.add(IDLE_NANOS, nanos);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, counted: &QueueCounters) -> Idleness {
        Idleness {
            requests: counted.total(IDLE_REQUESTS),
            total_ns: counted.total(IDLE_NANOS),
            longest_ns: self.longest.load(Ordering::Relaxed),
        }
    }
}
