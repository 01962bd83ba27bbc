//! One interpreter, shared by the gates of all pools: it knows the threads that run application code, and measures them.
//!
//! Each pool has a gate of its own, so that no pool waits for another one; what those inside do is measured over all pools,
//! since they share the interpreter.

use std::sync::{Arc, PoisonError};

use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::gate::{Seat, State};
use crate::meter;
use crate::meter::{Finding, Gated, Meter};

/// What the gates share.
pub(super) struct Interpreter {
    seats: Mutex<Vec<Arc<Seat>>>,
    meter: Mutex<Meter>,
    /// When somebody has looked last, in monotonic nanoseconds.
    looked: AtomicU64,
    /// A trial is on, which a look ends.
    tries: AtomicBool,
    /// Requests inside that compute for long, beside those with permits.
    computing: AtomicUsize,
    /// How many of those may be: as many as compute at once, for most of the time without the interpreter if it is more than one.
    parallel: AtomicUsize,
    /// Those its threads have.
    pub(super) processors: usize,
}

/// What a look has found, and whether one thread computes all the time.
pub(super) struct Found {
    pub(super) finding: Finding,
    pub(super) calm: bool,
}

impl Interpreter {
    /// One without threads, which will have so many processors.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            seats: Mutex::new(Vec::new()),
            meter: Mutex::new(Meter::default()),
            looked: AtomicU64::new(0),
            tries: AtomicBool::new(false),
            computing: AtomicUsize::new(0),
            parallel: AtomicUsize::new(1),
            processors,
        }
    }

    /// A thread begins.
    pub(super) fn add(&self, seat: &Arc<Seat>) {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(seat));
    }

    /// A thread ends.
    pub(super) fn remove(&self, seat: &Arc<Seat>) {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(seat, other));
    }

    /// Threads in application code of which `whose` says so.
    pub(super) fn inside(&self, whose: impl Fn(&Seat) -> bool) -> usize {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.iter().filter(|seat| seat.is_inside() && whose(seat)).count()
    }

    /// Whether a thread that is in application code, or about to be, runs or would if it had a processor. Some microseconds
    /// for each thread there.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy_beside(None)
    }

    /// The same of other threads than the one with this seat.
    pub(super) fn is_busy_beside(&self, own: Option<&Seat>) -> bool {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = |seat: &Seat| {
            !matches!(seat.state(), State::Out | State::Writes)
                && own.is_none_or(|own| !std::ptr::eq(own, seat))
        };
        seats.iter().any(|seat| counts(seat) && seat.activity.wants_processor())
    }

    /// Whether nobody has looked since then, in monotonic nanoseconds.
    pub(super) fn is_unseen_since(&self, then: u64) -> bool {
        self.looked.load(Ordering::Relaxed) < then
    }

    /// Whether a trial is on.
    pub(super) fn tries(&self) -> bool {
        self.tries.load(Ordering::Relaxed)
    }

    /// Counts one more request that computes for long, if it may enter.
    pub(super) fn take_long(&self) -> bool {
        let limit = self.parallel.load(Ordering::SeqCst);
        let more = |computing| (computing < limit).then_some(computing + 1);
        self.computing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// One of those has ended.
    pub(super) fn give_long_back(&self) {
        self.computing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether one more request that computes for long may enter.
    pub(super) fn has_room_for_long(&self) -> bool {
        self.computing.load(Ordering::SeqCst) < self.parallel.load(Ordering::SeqCst)
    }

    /// The request of this thread, which is counted for that, goes on without a permit.
    fn go_beside(&self, seat: &Seat) {
        if !seat.lose_permit(State::Computes) {
            self.give_long_back();
        }
    }

    /// Measures at `now`, for the gate that is `gated`, and changes what the threads are as it follows. A request computes for
    /// long from `long` nanoseconds on.
    pub(super) fn look(&self, now: u64, gated: Gated, long: u64) -> Found {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        self.looked.store(now, Ordering::Relaxed);
        let mut still = Vec::new();
        let finding = meter.look(now, gated, &seats, |seat, was, window| match seat.state() {
            State::Waits if was.used > window / 10 => seat.regain_permit(),
            State::Permitted if was.of_stay >= long && self.take_long() => self.go_beside(seat),
            State::Permitted if was.still >= meter::STILL => still.push(std::ptr::from_ref(seat)),
            _ => {}
        });
        self.tries.store(meter.tries(), Ordering::Relaxed);
        self.parallel.store(meter.parallel(), Ordering::SeqCst);
        if let Finding::Idle { .. } = finding {
            let still = seats.iter().filter(|seat| still.contains(&Arc::as_ptr(seat)) && seat.is_inside());
            still.for_each(|seat| _ = seat.lose_permit(State::Waits));
        }
        Found { finding, calm: meter.is_calm(gated.limit) }
    }

    /// How long from `now` on until a look finds something, in nanoseconds.
    pub(super) fn rest_of_window(&self, now: u64) -> u64 {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).rest_of_window(now)
    }
}
