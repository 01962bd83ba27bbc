//! One application thread, as the interpreter gate sees it: whether it has a permit, and what it is doing.

use std::sync::Arc;

use maitred_io::activity::Activity;
use maitred_io::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// What a thread is to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It has nothing to do with application code.
    Out,
    /// It has a permit.
    Permitted,
    /// It is in application code and waits there for something, so that its permit has gone to another one.
    Waits,
    /// It is in application code and computes for long, beside those that have permits.
    Computes,
}

/// The seat of one thread.
pub(super) struct Seat {
    state: AtomicU8,
    /// Permits that are in use at its gate.
    pub(super) permits: Arc<AtomicUsize>,
    /// When it entered application code, in monotonic nanoseconds; 0 while it is not there.
    entered: AtomicU64,
    /// Under shuttle and everywhere else: asked of the system, by whoever measures.
    pub(super) activity: Activity,
    /// What was measured last, by whoever holds the meter.
    pub(super) last: Measured,
}

/// What a measurement leaves for the next one, in nanoseconds.
#[derive(Default)]
pub(super) struct Measured {
    /// Processor time.
    processor: AtomicU64,
    /// Which stay in application code that was, and its processor time before.
    entered: AtomicU64,
    before: AtomicU64,
    /// When it was seen to have used some last.
    moved: AtomicU64,
}

/// A thread in a window of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Processor time in the window, in nanoseconds.
    pub(super) used: u64,
    /// It is in application code.
    pub(super) inside: bool,
    /// Processor time of this stay there, as far as it was measured.
    pub(super) of_stay: u64,
    /// How long it has used none.
    pub(super) still: u64,
}

impl Seat {
    /// That of the calling thread, at the gate that counts its permits there.
    pub(super) fn own(permits: &Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(State::Out as u8),
            permits: Arc::clone(permits),
            entered: AtomicU64::new(0),
            activity: Activity::own(),
            last: Measured::default(),
        })
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Out,
            1 => State::Permitted,
            2 => State::Waits,
            _ => State::Computes,
        }
    }

    /// Changes the state if it is still `from`: the thread itself and whoever measures may do so at once.
    pub(super) fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the permit away from the thread, which becomes `to`. False if the thread has no permit.
    pub(super) fn lose_permit(&self, to: State) -> bool {
        let lost = self.change(State::Permitted, to);
        if lost {
            self.permits.fetch_sub(1, Ordering::SeqCst);
        }
        lost
    }

    /// A thread that waited goes on: it has a permit again, also one more than there may be.
    pub(super) fn regain_permit(&self) {
        self.permits.fetch_add(1, Ordering::SeqCst);
        if !self.change(State::Waits, State::Permitted) {
            self.permits.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The thread enters application code at `now`.
    pub(super) fn enter(&self, now: u64) {
        self.entered.store(now, Ordering::Relaxed);
    }

    /// It comes back.
    pub(super) fn leave(&self) {
        self.entered.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_inside(&self) -> bool {
        self.entered.load(Ordering::Relaxed) != 0
    }

    /// What the thread has done since it was measured last, `window` nanoseconds before `time`.
    pub(super) fn measure(&self, time: u64, window: u64) -> Window {
        let now = self.activity.processor_ns().unwrap_or(0);
        let used = now.saturating_sub(self.last.processor.swap(now, Ordering::Relaxed)).min(window);
        if used > 0 {
            self.last.moved.store(time, Ordering::Relaxed);
        }
        let entered = self.entered.load(Ordering::Relaxed);
        if self.last.entered.swap(entered, Ordering::Relaxed) != entered {
            self.last.before.store(now, Ordering::Relaxed);
        }
        let of_stay = now.saturating_sub(self.last.before.load(Ordering::Relaxed));
        let still = time.saturating_sub(self.last.moved.load(Ordering::Relaxed));
        Window { used, inside: entered != 0, of_stay, still }
    }
}
