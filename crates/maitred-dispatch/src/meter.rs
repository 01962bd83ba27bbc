//! Tells computing from waiting: how much of an interpreter's time the threads in application code use, and what follows.
//!
//! The system does not say who holds the interpreter. It says how much processor time a thread has used, which goes on
//! while one computes and stands still while one waits, and whether it wants a processor. Of these, over a window of about a
//! millisecond:
//!
//! ```text
//! they use less than the window, and none of them runs or wants a processor    idle: one more request may enter
//! they use all of it, and more have permits than that takes                    one permit less
//! they use all of it, and there are more processors                            a trial: is more used with one more?
//! ```
//! Promises: no thread is asked anything, and nothing here decides what runs. Whoever looks holds the meter.

use crate::gate::{Seat, State, Window};

/// The shortest window that tells anything: some tens of micro-releases, as of a query in memory. In nanoseconds.
pub(super) const SHORTEST: u64 = 300_000;

/// The usual window, in nanoseconds.
pub(super) const USUAL: u64 = 1_000_000;

/// The window while one thread computes and nothing else happens: everything waits for that one anyway. In nanoseconds.
pub(super) const CALM: u64 = 5_000_000;

/// While one thread computes somebody looks at least that often, in nanoseconds: there could be a trial to make.
pub(super) const LOOK_AT_LEAST: u64 = 20_000_000;

/// A longer one is no window: nobody has looked meanwhile. In nanoseconds.
const STALE: u64 = 2 * LOOK_AT_LEAST;

/// A thread that has used nothing for so long waits for something that takes long: its permit is of no use to it. One that
/// waits for a moment needs it again soon. In nanoseconds.
pub(super) const STILL: u64 = 10_000_000;

/// What is used is an average over about so many nanoseconds.
const AVERAGE: u64 = 5_000_000;

/// An interpreter that is used less than that, in parts of the window, has time for one more.
const IDLE: f64 = 0.9;

/// Where one thread alone uses that much, a second one brings nothing: what it would use is lost to the two handing the
/// interpreter over to each other, 10 to 20 %.
const ALONE: f64 = 0.8;

/// So many looks in a row that find somebody who runs or wants a processor, or the interpreter nearly used up: one computes, although
/// others take the processor from it, and it does not use all of the time.
const STEADY: u32 = 4;

/// A thread that uses less than that waits for something that takes longer than the window.
const NOTHING: f64 = 0.05;

/// One that is used that much is busy with fewer; with one, if two use the lower of the two.
const BUSY: f64 = 0.99;
const BUSY_WITH_TWO: f64 = 0.9;

/// One permit less was one too few if they wait that soon, in nanoseconds.
const SOON: u64 = 20_000_000;

/// One permit more than processors are used pays if so much of one more is used: without the interpreter. Threads that fight
/// for an interpreter use up to 0.1 more, and get less done.
const PAYS: f64 = 0.3;

/// The pause between two trials: after one that paid, and at most. In nanoseconds.
const TRIAL_GAP: u64 = 20_000_000;
const MAX_TRIAL_GAP: u64 = 2_000_000_000;

/// How long a trial takes in which requests wait, and how long the number of permits stays before it is lowered, in nanoseconds.
const TRIAL: u64 = 5_000_000;

/// How long it takes at most, where that is not reached, in nanoseconds.
const LONGEST_TRIAL: u64 = 50_000_000;

/// What waits longest waits no longer than that for its turn while a thread is free, whatever is measured. In nanoseconds.
#[cfg(not(shuttle))]
const LONGEST_WAIT: u64 = 50_000_000;

/// Simulated time passes slowly.
#[cfg(shuttle)]
const LONGEST_WAIT: u64 = 2_000_000;

/// What the threads in application code do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// They wait: the interpreter is idle.
    Idle {
        /// Since about when, in monotonic nanoseconds.
        since: u64,
    },
    /// The queue has stood still for too long.
    StandsStill,
    /// To try whether one more brings something.
    Try,
    /// Busy; whether one permit less would do.
    Busy { fewer: bool },
    /// Not known yet.
    Unknown,
}

/// What is known of one interpreter.
#[derive(Default)]
pub(super) struct Meter {
    looked: u64,
    /// Processor time per time, an average.
    used: f64,
    /// When the number of permits was changed last.
    changed: u64,
    trial: Option<Trial>,
    next_trial: u64,
    trial_gap: u64,
    /// Looks that have not found the interpreter idle, in a row.
    busy: u32,
    /// When the number of permits was lowered, and how long it is to stay before it is lowered again.
    lowered: u64,
    lower_gap: u64,
}

struct Trial {
    began: u64,
    /// The permits there are meanwhile.
    permits: usize,
    /// What was used in windows of so much time, all in nanoseconds.
    used: u64,
    time: u64,
}

/// What the meter is told of the gate.
#[derive(Clone, Copy)]
pub(super) struct Gated {
    pub(super) limit: usize,
    pub(super) processors: usize,
    /// Since when its queue has stood still under a watcher's eyes, in monotonic nanoseconds.
    pub(super) stands_since: u64,
    /// Since when requests wait there without a break, likewise: what was before tells nothing.
    pub(super) waits_since: u64,
}

impl Meter {
    /// Whether a trial is on.
    pub(super) fn tries(&self) -> bool {
        self.trial.is_some()
    }

    /// How many threads compute at once, at least one: more than one only without the interpreter.
    pub(super) fn parallel(&self) -> usize {
        ((self.used + 1.0 - PAYS) as usize).max(1)
    }

    /// Whether one thread computes all the time, or as far as it has a processor.
    pub(super) fn is_calm(&self, limit: usize) -> bool {
        limit == 1 && self.trial.is_none() && (self.used >= IDLE || self.busy >= STEADY)
    }

    /// Looks at `now`, in monotonic nanoseconds; calls `note` with each thread that is in application code or has been.
    pub(super) fn look(
        &mut self,
        now: u64,
        gated: Gated,
        seats: &[std::sync::Arc<Seat>],
        mut note: impl FnMut(&Seat, Window, u64),
    ) -> Finding {
        let window = now.saturating_sub(self.looked);
        let fresh = self.looked < gated.waits_since || window > STALE;
        if window < SHORTEST && !fresh {
            return Finding::Unknown;
        }
        self.looked = now;
        if window > STALE {
            self.busy = 0;
        }
        let mut used = 0;
        let mut inside = Vec::with_capacity(seats.len());
        for seat in seats {
            let was = seat.measure(now, window);
            if seat.state() == State::Writes {
                continue;
            }
            if was.inside || seat.state() == State::Permitted {
                used += was.used;
            }
            if was.inside {
                inside.push((seat, was));
            }
        }
        if now.saturating_sub(gated.stands_since) >= LONGEST_WAIT {
            return Finding::StandsStill;
        }
        if fresh {
            return Finding::Unknown;
        }
        for (seat, was) in &inside {
            note(seat, *was, window);
        }
        let wanting = || inside.iter().filter(|(seat, _)| seat.activity.wants_processor()).count();
        self.find(now, used, window, gated, wanting)
    }

    /// What a window ends with in which so much was `used`; `wanting` counts those inside that want a processor. Threads that
    /// wait for the interpreter want none: those that do lack one, and would be no better off outside.
    fn find(
        &mut self,
        now: u64,
        used: u64,
        window: u64,
        gated: Gated,
        wanting: impl Fn() -> usize,
    ) -> Finding {
        let share = used as f64 / window as f64;
        self.used += (share - self.used) * (window as f64 / AVERAGE as f64).min(1.0);
        let usual = if gated.limit == 1 { ALONE } else { IDLE };
        let idle = share < IDLE && (self.used < usual || share < NOTHING);
        if idle && wanting() == 0 {
            self.busy = 0;
            self.abandon_trial();
            let was_too_few = now.saturating_sub(self.lowered) < SOON;
            self.lower_gap = if was_too_few { (self.lower_gap * 2).clamp(SOON, MAX_TRIAL_GAP) } else { 0 };
            self.lowered = 0;
            self.changed = now;
            return Finding::Idle { since: now - window };
        }
        self.busy = self.busy.saturating_add(1);
        self.go_on_trying(now, used, window, gated).unwrap_or_else(|| self.judge(now, gated, wanting))
    }

    /// Whether a look without a window makes the next one begin.
    pub(super) fn rest_of_window(&self, now: u64) -> u64 {
        SHORTEST.saturating_sub(now.saturating_sub(self.looked)).max(SHORTEST / 4)
    }

    /// Goes on with a trial, if one is on: what follows.
    fn go_on_trying(&mut self, now: u64, used: u64, window: u64, gated: Gated) -> Option<Finding> {
        let trial = self.trial.as_mut()?;
        trial.used += used;
        trial.time += window;
        let known = trial.time >= TRIAL;
        if !known && now.saturating_sub(trial.began) < LONGEST_TRIAL {
            return Some(Finding::Busy { fewer: false });
        }
        let after = trial.used as f64 / trial.time as f64;
        let pays = after >= (trial.permits - 1) as f64 + PAYS;
        self.trial = None;
        self.changed = now;
        if pays {
            self.used = after;
            self.trial_gap = TRIAL_GAP;
        } else if known {
            self.trial_gap = (self.trial_gap * 2).clamp(TRIAL_GAP, MAX_TRIAL_GAP);
        }
        self.next_trial = now + self.trial_gap.max(TRIAL_GAP);
        Some(Finding::Busy { fewer: !pays && gated.limit > 1 })
    }

    /// What follows where somebody computes, and no trial is on.
    fn judge(&mut self, now: u64, gated: Gated, wanting: impl Fn() -> usize) -> Finding {
        if now.saturating_sub(self.changed) < TRIAL {
            return Finding::Busy { fewer: false };
        }
        let parallel = self.parallel();
        let busy = if gated.limit == 2 { BUSY_WITH_TWO } else { BUSY };
        let may = now.saturating_sub(self.changed) >= self.lower_gap;
        if may && gated.limit > parallel && self.used >= busy && wanting() <= parallel {
            self.changed = now;
            self.lowered = now;
            return Finding::Busy { fewer: true };
        }
        let possible = gated.limit < gated.processors && self.used >= IDLE * gated.limit as f64;
        if possible && now >= self.next_trial {
            self.trial = Some(Trial { began: now, permits: gated.limit + 1, used: 0, time: 0 });
            return Finding::Try;
        }
        Finding::Busy { fewer: false }
    }

    /// What is used changes by itself: nothing follows from it.
    fn abandon_trial(&mut self) {
        if self.trial.take().is_some() {
            self.next_trial = self.looked + self.trial_gap.max(TRIAL_GAP);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const WINDOW: u64 = USUAL;

    /// One gate of a machine with two processors, whose limit goes where the meter says.
    struct Gate {
        meter: Meter,
        now: u64,
        limit: usize,
    }

    impl Gate {
        fn new(limit: usize) -> Self {
            Self { meter: Meter::default(), now: 1_000_000_000, limit }
        }

        /// So many windows in which `used` of one processor was used and so many wanted one.
        fn pass(&mut self, windows: usize, used: f64, wanting: usize) {
            for _ in 0..windows {
                self.now += WINDOW;
                let gated =
                    Gated { limit: self.limit, processors: 2, stands_since: self.now, waits_since: 0 };
                let used = (used * WINDOW as f64) as u64;
                match self.meter.find(self.now, used, WINDOW, gated, || wanting) {
                    Finding::Idle { .. } | Finding::Try => self.limit += 1,
                    Finding::Busy { fewer: true } => self.limit -= 1,
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn those_that_wait_make_room_until_the_interpreter_is_busy() {
        let mut gate = Gate::new(1);
        // Each uses a quarter of the time.
        for _ in 0..100 {
            gate.pass(1, (gate.limit as f64 / 4.0).min(1.0), usize::from(gate.limit >= 4));
        }
        assert!((3..=4).contains(&gate.limit), "{}", gate.limit);
    }

    #[test]
    fn one_that_lacks_a_processor_is_as_calm_as_one_that_has_it() {
        let mut gate = Gate::new(1);
        gate.pass(STEADY as usize - 1, 0.6, 1);
        assert!(!gate.meter.is_calm(1), "it may be chance");
        gate.pass(1, 0.6, 1);
        assert!(gate.meter.is_calm(1));
        assert!(!gate.meter.is_calm(2), "two compute");
        gate.pass(1, 0.6, 0);
        assert!(!gate.meter.is_calm(1), "it waits");
    }

    #[test]
    fn a_trial_ends_where_the_interpreter_is_what_they_compute_with() {
        let mut gate = Gate::new(1);
        let mut time_with_two = 0;
        for _ in 0..10_000 {
            gate.pass(1, 1.0, 1);
            time_with_two += usize::from(gate.limit == 2);
            assert!(gate.limit <= 2);
        }
        // Ten seconds: seven trials until the longest pause, then one every two seconds.
        assert!((5..20 * 6).contains(&time_with_two), "{time_with_two} windows");
    }

    #[test]
    fn a_permit_found_by_a_trial_stays_while_they_compute_without_the_interpreter() {
        let mut gate = Gate::new(1);
        gate.pass(20, 1.0, 1);
        gate.pass(1_000, 1.9, 2);
        assert_eq!((gate.limit, gate.meter.parallel()), (2, 2));
        gate.pass(50, 1.0, 1);
        assert_eq!(gate.limit, 1, "something else runs now");
    }

    #[test]
    fn who_lacks_a_processor_is_not_one_too_many() {
        let mut gate = Gate::new(2);
        gate.pass(100, 1.0, 2);
        assert_eq!(gate.limit, 2);
        gate.pass(100, 1.0, 1);
        assert_eq!(gate.limit, 1);
    }

    #[test]
    fn one_that_waits_for_moments_stays_alone() {
        let mut gate = Gate::new(1);
        gate.meter.used = 0.85;
        gate.pass(1_000, 0.85, 0);
        assert_eq!(gate.limit, 1);
        gate.pass(20, 0.75, 0);
        assert!(gate.limit > 1);
    }

    #[test]
    fn a_permit_fewer_is_tried_ever_more_rarely_where_it_is_one_too_few() {
        let mut gate = Gate::new(10);
        let mut lowered = 0;
        for _ in 0..10_000 {
            let before = gate.limit;
            gate.pass(1, if gate.limit == 10 { 1.0 } else { 0.85 }, usize::from(gate.limit == 10));
            lowered += usize::from(gate.limit < before);
        }
        assert!((3..30).contains(&lowered), "{lowered} times in ten seconds");
    }
}
