//! The present bottleneck of a server: two pictures of it some seconds apart give no cause, or one with a sentence that
//! explains it.
//!
//! ```text
//! picture.rs    the state of a server in one moment, of one process or of several together
//! interval.rs   the differences between two pictures, and time that threads and requests have spent
//! rules.rs      the causes in their order, each with its thresholds
//! upstream.rs   the server that calls wait for, and the part of the calls
//! ```
//! Promises: a quiet server and one that is ordinarily busy have no cause. A sentence has the numbers that it follows
//! from. Pure: no I/O and no clock, the times are in the pictures.
//!
//! Leaves out: taking pictures (`finding/` of maitred-control), and growth over hours.

mod interval;
mod picture;
mod rules;
#[cfg(test)]
mod tests;
mod upstream;
mod words;

pub use interval::Interval;
pub use picture::{Certificate, Collector, Delivery, Log, Memory, Picture, Pool, Queue, Route, Server};

/// A bottleneck or a fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A certificate ends soon and cannot be renewed.
    Certificate,
    /// The application answers with errors.
    Errors,
    /// A log is not written as fast as lines come.
    Log,
    /// Files of bodies are not written as fast as bytes come.
    Spool,
    /// The process takes more and more memory.
    Memory,
    /// Clients do not take their responses.
    SlowReaders,
    /// The threads compute all the time.
    Interpreter,
    /// Requests wait for a database.
    Database,
    /// Requests of one route take long.
    SlowRoute,
    /// All threads of a pool are taken.
    Threads,
    /// A collector of OpenTelemetry does not take all that it gets.
    Collector,
    /// Threads wait for one that has a lock.
    Lock,
    /// Threads wait for files.
    Disk,
    /// Another server answers slowly.
    Upstream,
}

impl Cause {
    /// All of them, in the order in which they are looked for. The last three are the more precise causes behind a slow
    /// route, or behind threads that are taken, when it is known why the threads wait. [`Upstream`](Self::Upstream) is known from the
    /// calls themselves, where the engine's client makes them.
    pub const ALL: [Self; 14] = [
        Self::Certificate,
        Self::Errors,
        Self::Log,
        Self::Spool,
        Self::Memory,
        Self::SlowReaders,
        Self::Interpreter,
        Self::Database,
        Self::SlowRoute,
        Self::Threads,
        Self::Collector,
        Self::Lock,
        Self::Disk,
        Self::Upstream,
    ];

    /// The name in a word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Errors => "errors",
            Self::Log => "log",
            Self::Spool => "spool",
            Self::Memory => "memory",
            Self::SlowReaders => "slow-readers",
            Self::Interpreter => "interpreter",
            Self::Database => "database",
            Self::SlowRoute => "slow-route",
            Self::Threads => "threads",
            Self::Collector => "collector",
            Self::Lock => "lock",
            Self::Disk => "disk",
            Self::Upstream => "upstream",
        }
    }
}

/// A cause with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// One sentence: the subject, the numbers, the time.
    pub sentence: String,
    /// The next thing to look at.
    pub next: String,
    /// The route it is about, if it is about one.
    pub route: Option<String>,
    /// The pool, likewise.
    pub pool: Option<String>,
}

/// The shortest time between two pictures from which something follows, in nanoseconds. A shorter one has too few requests, and a
/// writer that has stood still for less may only wait for other lines.
pub const MIN_INTERVAL: u64 = 800_000_000;

/// The cause between these pictures, the earlier one first. None if there is none, or if less than [`MIN_INTERVAL`]
/// lies between.
pub fn find(before: &Picture, after: &Picture) -> Option<Finding> {
    if after.at.saturating_sub(before.at) < MIN_INTERVAL {
        return None;
    }
    rules::first(&Interval::between(before, after))
}
