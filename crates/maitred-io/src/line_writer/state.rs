//! What the callers and the thread of a writer share under its lock: the lines that wait, and how far they are.

use super::batch::Batch;
use super::kept::Place;
use super::ring::Ring;
use super::{Notice, Severity};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// The lines that the thread has not taken yet.
pub(super) struct Pending {
    lines: Lines,
    /// Memory of them.
    cost: usize,
}

enum Lines {
    /// In the memory of this process.
    Own(Batch),
    /// Where another process finds them.
    Kept(Ring),
}

impl Pending {
    fn new(ring: Option<Ring>) -> Self {
        Self { lines: ring.map_or_else(|| Lines::Own(Batch::default()), Lines::Kept), cost: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cost == 0
    }

    /// Where another process finds the lines, if they are there.
    pub(super) fn ring(&mut self) -> Option<&mut Ring> {
        match &mut self.lines {
            Lines::Own(_) => None,
            Lines::Kept(ring) => Some(ring),
        }
    }

    /// False if there is no room in the memory.
    #[inline]
    fn push(&mut self, severity: Severity, line: &[u8]) -> bool {
        match &mut self.lines {
            Lines::Own(batch) => batch.push(severity, line),
            Lines::Kept(ring) => {
                if !ring.push(severity, line) {
                    return false;
                }
            }
        }
        self.cost += Batch::cost(line);
        true
    }

    fn push_notice(&mut self, line: &[u8], missing: u64) -> bool {
        let is_accepted = match &mut self.lines {
            Lines::Own(batch) => {
                batch.push_notice(line, missing);
                true
            }
            Lines::Kept(ring) => ring.push_notice(line, missing),
        };
        self.cost += if is_accepted { Batch::cost(line) } else { 0 };
        is_accepted
    }

    /// Moves lines to `batch`, which is empty: all, or many. False if there are none.
    pub(super) fn take(&mut self, batch: &mut Batch) -> bool {
        self.cost = match &mut self.lines {
            Lines::Own(lines) => {
                std::mem::swap(lines, batch);
                0
            }
            Lines::Kept(ring) => {
                ring.take(batch);
                if ring.is_empty() { 0 } else { self.cost.saturating_sub(batch.remaining_cost()).max(1) }
            }
        };
        !batch.is_empty()
    }
}

/// What another process has left.
pub(super) struct Adopted {
    pub(super) lines: Batch,
    /// Where the first of them may be already; looked at once.
    pub(super) place: Option<Place>,
}

pub(super) struct State {
    pub(super) pending: Pending,
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
    /// The error of the last write or reopening, `None` after a success.
    pub(super) failure: Option<rustix::io::Errno>,
    /// Requests to open the target again, and those of them carried out.
    pub(super) reopen_asked: u64,
    pub(super) reopened: u64,
    /// Somebody waits in `flush`: try again at once.
    pub(super) hurry: bool,
    /// How long lines wait for others.
    pub(super) linger: Duration,
    pub(super) closing: bool,
    pub(super) adopted: VecDeque<Adopted>,
    /// Nothing more is written: what is in the ring is left to another process.
    pub(super) left: bool,
}

impl State {
    pub(super) fn new(capacity: usize, ring: Option<Ring>) -> Self {
        let capacity = ring.as_ref().map_or(capacity, |ring| capacity.min(ring.room()));
        Self {
            pending: Pending::new(ring),
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
            adopted: VecDeque::new(),
            left: false,
        }
    }

    /// Whether half of the buffer waits.
    pub(super) fn is_much(&self) -> bool {
        self.pending.cost > self.capacity / 2
    }

    /// Puts `line` into the buffer, after the notice that is due. Drops it when there is no room.
    pub(super) fn accept(&mut self, severity: Severity, line: &[u8]) -> bool {
        let fits = self.in_flight + self.pending.cost + Batch::cost(line) <= self.capacity;
        if fits && self.unreported > 0 {
            self.push_notice();
        }
        if fits && self.pending.push(severity, line) {
            self.accepted += 1;
            return true;
        }
        self.dropped += 1;
        self.set_unreported(self.unreported + 1);
        false
    }

    pub(super) fn set_unreported(&mut self, lines: u64) {
        self.unreported = lines;
        if let Some(ring) = self.pending.ring() {
            ring.set_missing(lines);
        }
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
        let missing = self.unreported;
        if self.push_text_of(Notice::Missing(missing), missing) {
            self.set_unreported(0);
        }
    }

    /// Says something between the lines; false if there is no room in the memory.
    pub(super) fn push_text_of(&mut self, what: Notice, missing: u64) -> bool {
        let text = (self.notice)(what);
        let is_accepted = self.pending.push_notice(text.as_bytes(), missing);
        self.accepted += u64::from(is_accepted);
        is_accepted
    }

    /// So many more bytes of `batch` are written; `is_own`: its lines were accepted here.
    pub(super) fn settle(&mut self, batch: &mut Batch, is_own: bool, written: usize) {
        let lines = batch.advance(written);
        self.settled += lines;
        if let Some(ring) = self.pending.ring()
            && is_own
        {
            ring.settle(batch.lengths_of_last(lines));
        }
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
