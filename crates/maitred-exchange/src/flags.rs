//! The state of an exchange that threads read without the lock of its connection while a handler has it.

use maitred_io::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// See the module text.
#[derive(Debug, Default)]
pub struct Flags {
    word: AtomicU32,
    /// Time at which a thread entered the handler, in monotonic nanoseconds; 0 before.
    begun: AtomicU64,
    /// Time for which the handler has waited for bytes of the body, in nanoseconds.
    awaited: AtomicU64,
}

/// A thread is in the handler now.
const RUNNING: u32 = 1;
/// The time limit was over before the response began.
const OUT: u32 = 2;
/// Sending to the peer is impossible.
const GONE: u32 = 4;
/// The server stops and has asked the handler to end its stream of events.
const ASKED: u32 = 8;
/// First bit of the number of the group whose thread runs the handler, which may differ from the connection's.
const GROUP: u32 = 8;

impl Flags {
    /// Clears the flags for the next exchange; no other handle may exist.
    pub fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
        self.awaited.store(0, Ordering::Relaxed);
    }

    fn has(&self, flag: u32) -> bool {
        self.word.load(Ordering::Acquire) & flag != 0
    }

    /// Whether the time limit is over. Never becomes false again.
    pub fn is_out(&self) -> bool {
        self.has(OUT)
    }

    /// Whether sending to the peer is impossible.
    pub fn is_gone(&self) -> bool {
        self.has(GONE)
    }

    /// Notes that sending to the peer is impossible.
    pub fn set_gone(&self) {
        self.word.fetch_or(GONE, Ordering::AcqRel);
    }

    /// Whether the stopping server has asked the handler to end.
    pub fn is_asked_to_end(&self) -> bool {
        self.has(ASKED)
    }

    /// Notes that the stopping server asks the handler to end.
    pub fn ask_to_end(&self) {
        self.word.fetch_or(ASKED, Ordering::AcqRel);
    }

    /// Notes that a thread of the group with this number enters the handler.
    pub fn enter(&self, group: usize, now: u64) {
        self.begun.store(now, Ordering::Relaxed);
        self.word.fetch_or((group as u32) << GROUP | RUNNING, Ordering::AcqRel);
    }

    /// Notes that the thread is back. Returns whether the time limit was over meanwhile.
    pub fn leave(&self) -> bool {
        self.word.fetch_and(!RUNNING, Ordering::AcqRel) & OUT != 0
    }

    /// Ends the time limit. Returns the number of the group whose thread is in the handler, if any.
    pub fn end(&self) -> Option<usize> {
        let before = self.word.fetch_or(OUT | GONE, Ordering::AcqRel);
        (before & RUNNING != 0).then_some((before >> GROUP) as usize)
    }

    /// Adds a wait of the handler for bytes of the body.
    pub fn add_awaited(&self, nanos: u64) {
        self.awaited.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Time for which the handler has waited for bytes of the body, in nanoseconds.
    pub fn awaited(&self) -> u64 {
        self.awaited.load(Ordering::Relaxed)
    }

    /// Time at which a thread entered the handler, in monotonic nanoseconds; none before.
    pub fn begun(&self) -> Option<u64> {
        Some(self.begun.load(Ordering::Relaxed)).filter(|begun| *begun > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_thread_inside_is_known_when_the_time_is_over() {
        let flags = Flags::default();
        flags.enter(3, 17);
        assert_eq!((flags.end(), flags.begun()), (Some(3), Some(17)));
        assert!(flags.leave() && flags.is_out());
        let waiting = Flags::default();
        assert_eq!((waiting.end(), waiting.begun()), (None, None));
    }
}
