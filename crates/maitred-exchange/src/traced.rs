//! The last entries of the dispatch trace for the control: how requests got their threads.
//!
//! No entry comes while the trace is off.

use std::collections::VecDeque;

use maitred_io::clock;
use maitred_io::sync::NamedLock;
use maitred_stats::{LockSnapshot, Span, Spans};

use maitred_dispatch::Trace;
use maitred_log::{Database, Outcome};

/// Entries that are kept: about 100 KiB.
const KEPT: usize = 256;

/// Bytes of a path that are kept.
const MAX_PATH: usize = 256;

/// The way of one request to its thread.
#[derive(Clone, Debug)]
pub struct Dispatched {
    /// Id of the request in the logs.
    pub id: String,
    /// The method.
    pub method: String,
    /// The path, cut at a length.
    pub path: String,
    /// Number of the pool.
    pub pool: Option<usize>,
    /// The status of the response.
    pub status: u16,
    /// Database use of the request.
    pub database: Option<Database>,
    /// Nanoseconds and number of the calls to other servers.
    pub outgoing: Option<(u64, u64)>,
    /// The dispatcher's findings.
    pub trace: Trace,
    spans: Spans,
    /// Time of the record, in monotonic nanoseconds.
    pub noted: u64,
}

/// The last entries, the oldest first.
pub struct Traced(NamedLock<VecDeque<Dispatched>>);

impl Default for Traced {
    fn default() -> Self {
        Self(NamedLock::with_name("traces".into(), VecDeque::new()))
    }
}

impl Traced {
    pub(crate) fn add(&self, outcome: &Outcome<'_>, trace: &Trace) {
        let path = outcome.head.path();
        let entry = Dispatched {
            id: outcome.id.to_string(),
            method: outcome.head.method.to_string(),
            path: path[..path.len().min(MAX_PATH)].escape_ascii().to_string(),
            pool: outcome.pool.map(usize::from),
            status: outcome.status.code(),
            database: outcome.database,
            outgoing: outcome.outgoing.map(|calls| (calls.nanos, calls.calls)),
            trace: *trace,
            spans: outcome.times.spans(),
            noted: clock::monotonic(),
        };
        let mut kept = self.0.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(entry);
    }

    /// All entries, the latest first.
    pub fn all(&self) -> Vec<Dispatched> {
        self.0.lock().iter().rev().cloned().collect()
    }

    /// Counts of the lock of the list.
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.0.snapshot()
    }
}

impl Dispatched {
    /// Wait for a thread, run, and whole time, in seconds.
    pub fn seconds(&self) -> [f64; 3] {
        let spans = &self.spans;
        [spans.get(Span::Queue), spans.get(Span::Run), spans.total()].map(|nanos| nanos as f64 / 1e9)
    }
}
