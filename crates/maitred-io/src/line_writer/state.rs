//! What the callers and the thread of a writer share under its lock: the lines that wait, and how far they are.

use super::batch::Batch;
use super::{Notice, Severity};
use std::io;
use std::time::{Duration, Instant};

pub(super) struct State {
    pub(super) pending: Batch,
    /// Cost of the lines the thread has taken and not yet written.
    pub(super) in_flight: usize,
    pub(super) capacity: usize,
    /// Lines and notices accepted, and those of them written or lost.
    pub(super) accepted: u64,
    pub(super) settled: u64,
    /// Lines dropped or lost ever, and those no line has told of yet.
    pub(super) dropped: u64,
    pub(super) unreported: u64,
    /// Trouble has been told of: what `dropped` was before.
    pub(super) trouble_since: Option<u64>,
    pub(super) notice: fn(Notice) -> String,
    /// When the reminder is to be called.
    pub(super) remind_at: Option<Instant>,
    pub(super) failure: Option<rustix::io::Errno>,
    pub(super) reopen_asked: u64,
    pub(super) reopened: u64,
    /// Somebody waits in `flush`: try again at once.
    pub(super) hurry: bool,
    pub(super) linger: Duration,
    pub(super) closing: bool,
}

impl State {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            pending: Batch::default(),
            in_flight: 0,
            capacity,
            accepted: 0,
            settled: 0,
            dropped: 0,
            unreported: 0,
            trouble_since: None,
            notice,
            remind_at: None,
            failure: None,
            reopen_asked: 0,
            reopened: 0,
            hurry: false,
            linger: Duration::ZERO,
            closing: false,
        }
    }

    pub(super) fn is_much(&self) -> bool {
        self.pending.remaining_cost() > self.capacity / 2
    }

    pub(super) fn accept(&mut self, severity: Severity, line: &[u8]) -> bool {
        if self.in_flight + self.pending.remaining_cost() + Batch::cost(line) > self.capacity {
            self.dropped += 1;
            self.unreported += 1;
            return false;
        }
        if self.unreported > 0 {
            self.push_notice();
        }
        self.pending.push(severity, line);
        self.accepted += 1;
        true
    }

    /// Whether this is the begin of a time of trouble, in which so many lines have been dropped already.
    pub(super) fn trouble_begins(&mut self, dropped: u64) -> bool {
        let begins = self.trouble_since.is_none();
        if begins {
            self.trouble_since = Some(self.dropped - dropped);
        }
        begins
    }

    /// Tells of the lines missing so far. It may exceed the capacity by one notice: a line has to fit first.
    pub(super) fn push_notice(&mut self) {
        let missing = std::mem::take(&mut self.unreported);
        self.push_text_of(Notice::Missing(missing), missing);
    }

    pub(super) fn push_text_of(&mut self, what: Notice, missing: u64) {
        let text = (self.notice)(what);
        self.pending.push_notice(text.as_bytes(), missing);
        self.accepted += 1;
    }
}

fn notice(what: Notice) -> String {
    match what {
        Notice::Missing(lines) => {
            format!("maitred: {lines} lines are missing here, the log could not be written")
        }
        Notice::NotRotated(error) => {
            let error = io::Error::from_raw_os_error(error);
            format!("maitred: this log could not be rotated, and goes on: {error}")
        }
    }
}
