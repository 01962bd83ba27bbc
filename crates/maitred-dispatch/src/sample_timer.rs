//! The timer of a thread that watches others: it may be fired early, or pushed back with every request.
//!
//! To wake up for each look would cost two changes of the thread and a timer (10 to 30 µs in a virtual machine), and stop a watched thread
//! in the middle of a request. Setting the timer anew costs 1 to 4 µs.

use std::io;

use maitred_io::poller::Alarm;
use maitred_io::sync::atomic::{AtomicU64, Ordering};

pub(super) struct SampleTimer {
    alarm: Alarm,
    /// The time from which progress defers the alarm, in monotonic nanoseconds; `u64::MAX` while no thread waits.
    defers_from: AtomicU64,
    /// The latest end of the wait, likewise.
    latest: AtomicU64,
}

/// How long a thread waits, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) nanos: u64,
    /// Progress pushes the end back, up to so many nanoseconds from the begin; 0 if it does not.
    pub(super) most: u64,
}

impl SampleTimer {
    pub(super) fn new() -> io::Result<Self> {
        let (defers_from, latest) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Ok(Self { alarm: Alarm::new()?, defers_from, latest })
    }

    /// Waits from `now` on, or until the timer is fired.
    pub(super) fn wait(&self, now: u64, pause: Pause) {
        let end = now + pause.nanos;
        self.latest.store(now.saturating_add(pause.most), Ordering::Relaxed);
        self.defers_from.store(if pause.most == 0 { end } else { now }, Ordering::Relaxed);
        self.alarm.set(end);
        self.alarm.wait();
        self.defers_from.store(u64::MAX, Ordering::Relaxed);
    }

    /// A watched thread makes progress at `now`: the wait ends `nanos` later. One load where no thread waits, and until three
    /// quarters of `nanos` have gone by after it was deferred.
    pub(super) fn defer(&self, now: u64, nanos: u64) {
        if now >= self.defers_from.load(Ordering::Relaxed) {
            self.defers_from.store(now + nanos / 4 * 3, Ordering::Relaxed);
            self.alarm.set((now + nanos).min(self.latest.load(Ordering::Relaxed)));
        }
    }

    /// Ends the wait, if a thread waits. One load if not.
    pub(super) fn fire_now(&self, now: u64) {
        if self.defers_from.load(Ordering::Relaxed) != u64::MAX {
            self.alarm.set(now);
        }
    }
}
