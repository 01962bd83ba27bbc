//! A watchdog's timer: the threads it watches push it back with every request.
//!
//! To wake up for each look would cost two changes of the thread and a timer, in a virtual machine some 10 to 30 µs, and stop
//! whoever is watched in the middle of a request. Setting the timer anew costs a fraction of that (4 µs there, 1 µs if the
//! processor's next timer is not this one).

use std::io;

use maitred_io::poller::Alarm;
use maitred_io::sync::atomic::{AtomicU64, Ordering};

/// What may change when a pause ends.
#[derive(Clone, Copy)]
pub(super) enum Ends {
    /// Those who are watched may put it off, or bring it nearer.
    PutOff,
    /// They leave it alone.
    AsSaid,
}

/// The pause.
pub(super) struct Pause {
    alarm: Alarm,
    /// When who is watched puts the alarm off, if it gets there; in monotonic nanoseconds, as all times here.
    put_off_at: AtomicU64,
}

impl Pause {
    /// # Errors
    /// Out of descriptors.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { alarm: Alarm::new()?, put_off_at: AtomicU64::new(u64::MAX) })
    }

    /// Waits from `now` on for so many nanoseconds.
    pub(super) fn wait(&self, now: u64, nanos: u64, ends: Ends) {
        let from = match ends {
            Ends::PutOff => now,
            Ends::AsSaid => now + nanos,
        };
        self.put_off_at.store(from, Ordering::Relaxed);
        self.alarm.set(now + nanos);
        self.alarm.wait();
        self.put_off_at.store(u64::MAX, Ordering::Relaxed);
    }

    /// Who is watched gets on at `now`: the pause ends `nanos` later. One load where nobody waits, and until three quarters of
    /// `nanos` have gone by after it was put off.
    pub(super) fn put_off(&self, now: u64, nanos: u64) {
        if now >= self.put_off_at.load(Ordering::Relaxed) {
            self.put_off_at.store(now + nanos / 4 * 3, Ordering::Relaxed);
            self.alarm.set(now + nanos);
        }
    }

    /// Ends the pause, if somebody waits. One load if not.
    pub(super) fn cut_short(&self, now: u64) {
        if self.put_off_at.load(Ordering::Relaxed) != u64::MAX {
            self.alarm.set(now);
        }
    }
}
