//! The thread that keeps the interpreter from one that asks for it.
//!
//! Python code gives it up one switch interval (5 ms) after another thread has asked for it. A thread that computes on
//! with it for many times as long is in C code that does not. Its processor time counts: on a busy machine it holds the
//! interpreter for longer while it waits for a processor.
//!
//! Leaves out: threads that are not the server's, and C code that sleeps with the interpreter, which is found when the
//! interpreter could not be had for [`PATIENCE`](super::PATIENCE).

use std::time::Duration;

use maitred_io::tasks;
use maitred_runtime::InterpreterLock;

/// Ten switch intervals: a thread that asks is late by one or two where it has to wait for a processor itself.
const KEPT: Duration = Duration::from_millis(50);

/// Looks at the interpreter while another thread asks for it.
pub(super) struct Kept<'a> {
    gil: Option<&'a dyn InterpreterLock>,
    serving: &'a [i32],
    /// The thread that has it, by its key, and the processor time of each thread when that was first seen.
    since: (u64, Vec<Duration>),
    /// The interpreter has changed hands.
    pub(super) changed: bool,
}

impl<'a> Kept<'a> {
    /// A watch over these threads of the server.
    pub(super) fn by(gil: Option<&'a dyn InterpreterLock>, serving: &'a [i32]) -> Self {
        Self { gil, serving, since: (0, Vec::new()), changed: false }
    }

    /// The thread that has had the interpreter in all looks so far, and computed for so long with it.
    pub(super) fn look(&mut self) -> Option<i32> {
        let holder = self.gil?.holder();
        let ran = |tid: &i32| tasks::schedule(*tid).map_or(Duration::ZERO, |(ran, _)| ran);
        let now: Vec<Duration> = self.serving.iter().map(ran).collect();
        if holder == 0 || holder != self.since.0 {
            self.changed |= !self.since.1.is_empty();
            self.since = (holder, now);
            return None;
        }
        let computed = now.iter().zip(&self.since.1).map(|(now, then)| now.saturating_sub(*then));
        let (computed, tid) = computed.zip(self.serving).max()?;
        (computed >= KEPT).then_some(*tid)
    }
}
