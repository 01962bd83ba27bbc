//! Measurement of some requests: processor time of the handler's thread, and its wait for a processor.
//!
//! Reading the processor time of a thread is a system call, of a microsecond on some machines, and reading its
//! waiting time another one. After a long request the next request of the thread is measured; after a short one some
//! are not.

use std::cell::Cell;

use maitred_io::{clock, process, thread_state};

use maitred_exchange::site::Computing;

/// A run below this is short, in nanoseconds.
const LONG: u64 = 1_000_000;

/// Number of requests after a short one that are not measured.
const SKIPPED: u32 = 31;

thread_local! {
    /// Number of requests of this thread to skip.
    static SKIP: Cell<u32> = const { Cell::new(0) };
}

/// The begin of a run.
pub(super) struct Measured {
    thread: usize,
    /// Time, processor time and waiting time of the thread at the begin; `None` where the run is not measured.
    before: Option<(u64, (u64, u64))>,
}

impl Measured {
    /// Begins a run on this thread.
    pub(super) fn begin() -> Self {
        let skip = SKIP.get();
        SKIP.set(skip.saturating_sub(1));
        Self { thread: thread(), before: (skip == 0).then(|| (clock::monotonic(), account())) }
    }

    /// Ends a run that has taken about `nanos` until `now`. None where the run was not measured, and on another thread.
    pub(super) fn end(self, nanos: u64, now: u64) -> Option<Computing> {
        if self.thread != thread() {
            return None;
        }
        if nanos >= LONG {
            SKIP.set(0);
        } else if self.before.is_some() {
            SKIP.set(SKIPPED);
        }
        let (at, (computed_before, starved_before)) = self.before?;
        let (ran, (computed, starved)) = (now.saturating_sub(at), account());
        let computed = computed.saturating_sub(computed_before).min(ran);
        let starved = starved.saturating_sub(starved_before).min(ran - computed);
        Some(Computing { computed, starved, measured: ran })
    }
}

/// Processor time of this thread so far, and its waiting time for a processor; both in nanoseconds.
fn account() -> (u64, u64) {
    (process::thread_processor_ns(), thread_state::own_starved_ns())
}

/// A number that differs between threads that live at the same time.
fn thread() -> usize {
    SKIP.with(|skip| std::ptr::from_ref(skip) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_short_run_some_are_not_measured_and_behind_a_long_one_the_next_is() {
        let run = |nanos| Measured::begin().end(nanos, clock::monotonic());
        let Computing { computed, starved, measured } = run(0).expect("the first");
        assert!(computed + starved <= measured && SKIP.get() == SKIPPED);
        SKIP.set(2);
        assert!(run(0).is_none() && run(LONG).is_none());
        assert!(run(LONG).is_some() && SKIP.get() == 0, "the one behind a long one");
    }

    #[test]
    fn what_ends_on_another_thread_is_not_known() {
        let measured = Measured::begin();
        let end = move || (measured.end(0, clock::monotonic()).is_none(), SKIP.get());
        assert_eq!(std::thread::spawn(end).join().expect("no panic"), (true, 0));
    }
}
