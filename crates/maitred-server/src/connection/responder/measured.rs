//! How long the thread of a handler has computed, of some requests.
//!
//! The clock of a thread's processor time is a system call, of a microsecond on some machines: a request that was long has the next one of its thread
//! measured, behind a short one some are not.

use std::cell::Cell;

use maitred_io::{clock, process};

/// A shorter run is short, in nanoseconds.
const LONG: u64 = 1_000_000;

/// So many requests behind a short one are not measured.
const SKIPPED: u32 = 31;

thread_local! {
    /// Requests that are not measured.
    static SKIP: Cell<u32> = const { Cell::new(0) };
}

/// The begin of a run.
pub(super) struct Measured {
    thread: usize,
    at: u64,
    /// What the thread had computed; `None` where that is not measured.
    processor: Option<u64>,
}

impl Measured {
    /// A run begins on this thread.
    pub(super) fn begin() -> Self {
        let skip = SKIP.get();
        SKIP.set(skip.saturating_sub(1));
        let processor = (skip == 0).then(process::thread_processor_ns);
        Self { thread: thread(), at: clock::monotonic(), processor }
    }

    /// It ends: how long it has computed, and how long it was, in nanoseconds. None where that was not measured, and on another
    /// thread.
    pub(super) fn end(self) -> Option<(u64, u64)> {
        if self.thread != thread() {
            return None;
        }
        let ran = clock::monotonic().saturating_sub(self.at);
        if ran >= LONG {
            SKIP.set(0);
        } else if self.processor.is_some() {
            SKIP.set(SKIPPED);
        }
        let before = self.processor?;
        let computed = process::thread_processor_ns().saturating_sub(before);
        Some((computed.min(ran), ran))
    }
}

/// Tells threads apart that live at the same time.
fn thread() -> usize {
    SKIP.with(|skip| std::ptr::from_ref(skip) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_short_run_some_are_not_measured_and_behind_a_long_one_the_next_is() {
        let long = || Measured { at: clock::monotonic() - 2 * LONG, ..Measured::begin() };
        let (computed, ran) = Measured::begin().end().expect("the first");
        assert!(computed <= ran);
        SKIP.set(2);
        assert!(Measured::begin().end().is_none() && long().end().is_none());
        let (computed, ran) = long().end().expect("the one behind a long one");
        assert!(computed < ran && ran >= 2 * LONG && SKIP.get() == 0);
    }

    #[test]
    fn what_ends_on_another_thread_is_not_known() {
        let measured = Measured::begin();
        assert!(std::thread::spawn(move || measured.end()).join().expect("no panic").is_none());
    }
}
