//! A request's use of databases: counted by its application, on any threads, read by the server.
//!
//! Leaves out: the definition and the timing of a statement (`python/maitred/instrument/`).

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The counts of one request; they stay as they are from the end of its response on.
#[derive(Debug, Default)]
pub struct Database {
    statements: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
    wait_nanos: AtomicU64,
    connections: AtomicU64,
    ended: AtomicBool,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// Statements that the database has completed.
    pub statements: u64,
    /// Statements that failed, or were given up.
    pub failed: u64,
    /// The time that they took, in nanoseconds.
    pub nanos: u64,
    /// How long connections of a pool were waited for, in nanoseconds.
    pub wait_nanos: u64,
    /// The most connections that this pool had then; 0 without one.
    pub connections: u64,
}

impl Database {
    /// Adds statements that took so long together; or one call that failed, of any kind.
    pub fn add(&self, nanos: u64, statements: u64, failed: bool) {
        if self.ended.load(Relaxed) {
            return;
        }
        self.nanos.fetch_add(nanos, Relaxed);
        if failed {
            self.failed.fetch_add(1, Relaxed);
        } else {
            self.statements.fetch_add(statements, Relaxed);
        }
    }

    /// A connection of a pool was waited for, which has so many.
    pub fn wait(&self, nanos: u64, connections: u64) {
        if self.ended.load(Relaxed) {
            return;
        }
        self.wait_nanos.fetch_add(nanos, Relaxed);
        self.connections.fetch_max(connections, Relaxed);
    }

    /// The response is complete.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> DatabaseCounts {
        DatabaseCounts {
            statements: self.statements.load(Relaxed),
            failed: self.failed.load(Relaxed),
            nanos: self.nanos.load(Relaxed),
            wait_nanos: self.wait_nanos.load(Relaxed),
            connections: self.connections.load(Relaxed),
        }
    }
}

impl DatabaseCounts {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_behind_the_end_of_the_response_are_not_counted() {
        let database = Database::default();
        assert!(database.counts().is_empty());
        database.add(5, 2, false);
        database.add(7, 1, true);
        database.wait(3, 4);
        database.wait(1, 2);
        database.end();
        database.add(100, 1, true);
        database.wait(100, 100);
        let expected = DatabaseCounts { statements: 2, failed: 1, nanos: 12, wait_nanos: 4, connections: 4 };
        assert_eq!(database.counts(), expected);
    }
}
