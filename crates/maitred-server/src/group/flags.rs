//! What several threads ask about an exchange without the lock of its connection.

use maitred_io::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What several threads ask about an exchange while a handler has it, without the lock of its connection.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    word: AtomicU32,
    /// When a thread entered the handler, in monotonic nanoseconds; 0 before.
    begun: AtomicU64,
}

/// A thread is in the handler now.
const RUNNING: u32 = 1;
/// The time limit was over before the response began.
const OUT: u32 = 2;
/// The peer can be sent nothing any more.
const GONE: u32 = 4;
/// The peer has ended its side since the request was handed over.
const LEFT: u32 = 8;
/// Above: the number of the group whose thread has it, which need not be the connection's.
const GROUP: u32 = 8;

impl Flags {
    /// Those of the next exchange: nobody else has them.
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
    }

    fn has(&self, flag: u32) -> bool {
        self.word.load(Ordering::Acquire) & flag != 0
    }

    /// Whether its time was over. Once it was, it stays so.
    pub(crate) fn is_out(&self) -> bool {
        self.has(OUT)
    }

    /// Whether its peer can be sent nothing any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.has(GONE)
    }

    /// Whether its peer has ended its side since the request was handed over, or is gone.
    pub(crate) fn has_left(&self) -> bool {
        self.has(LEFT | GONE)
    }

    pub(crate) fn set_gone(&self) {
        self.word.fetch_or(GONE, Ordering::AcqRel);
    }

    pub(crate) fn set_left(&self) {
        self.word.fetch_or(LEFT, Ordering::AcqRel);
    }

    /// A thread of the group with this number enters the handler.
    pub(crate) fn enter(&self, group: usize, now: u64) {
        self.begun.store(now, Ordering::Relaxed);
        self.word.fetch_or((group as u32) << GROUP | RUNNING, Ordering::AcqRel);
    }

    /// The thread is back; whether the time was over meanwhile.
    pub(crate) fn leave(&self) -> bool {
        self.word.fetch_and(!RUNNING, Ordering::AcqRel) & OUT != 0
    }

    /// The time is over; if a thread is in the handler, the number of its group.
    pub(crate) fn end(&self) -> Option<usize> {
        let before = self.word.fetch_or(OUT | GONE, Ordering::AcqRel);
        (before & RUNNING != 0).then_some((before >> GROUP) as usize)
    }

    /// When a thread entered the handler, if one has.
    pub(crate) fn begun(&self) -> Option<u64> {
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
