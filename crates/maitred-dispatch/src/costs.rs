//! The costs and the class of each route, learnt from requests that have run.
//!
//! ```text
//! charge  nanoseconds (63) | writes to a disk (1)
//! class   second of the last evidence (32) | score (8) | class (2)
//! ```
//! The **charge** is the cost of a request in the fair queue: an average of the last ones.
//!
//! The **class** comes from samples; where threads run side by side, from the time that a request takes. A long request of several
//! samples tells it at once. Others are sampled once or twice, perhaps in a moment that is not typical: they add up a score. A class that
//! no request confirms any more is forgotten.
//! A table of a fixed size, no lock, no allocation. Two routes that share a place are charged with the sum of their
//! costs, and have one class. Threads that note at once lose a step, which changes an average by less than noise does.

use maitred_io::sync::atomic::{AtomicU64, Ordering};
use maitred_pool::RouteClass;

use crate::numbers::{COMPUTED, LONG, STEP, WAITS};

/// Places: some times as many routes as an application has.
const PLACES: usize = 1024;

/// A request of so many nanoseconds may tell its class alone; half of a long one, so that a route on the edge keeps its class.
const TELLING: u64 = LONG / 2;

/// A class is forgotten so many seconds after the last evidence, as documents promise; that of short requests, which [`WAITS`] of them
/// teach again, after a tenth.
const VALID: u64 = 10;
const VALID_SHORT: u64 = VALID / 10;

const SECOND: u64 = 1_000_000_000;
const WRITES: u64 = 1;
const CLASS_BITS: u64 = 0b11;
const CLASSES: [RouteClass; 4] =
    [RouteClass::Normal, RouteClass::Blocking, RouteClass::CpuBound, RouteClass::Parallel];
const SCORE_SHIFT: u32 = 2;
const SCORE_BITS: u64 = 0xff;
const SECOND_SHIFT: u32 = 32;

pub(super) struct Costs {
    places: Box<[Place]>,
    /// Routes matter until this second, as requests were long lately: before there are any, a load saves a hash for each request.
    watched_until: AtomicU64,
}

#[derive(Default)]
struct Place {
    charge: AtomicU64,
    class: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// How long it was in application code; how long samples have seen it compute, and hold the interpreter. In nanoseconds.
    pub(super) nanos: u64,
    pub(super) computed: u64,
    pub(super) held: u64,
    /// The request's share of the time of all threads, likewise.
    pub(super) share: u64,
    /// The response was written to a disk.
    pub(super) wrote: bool,
    /// Samples that were taken of it, and those that have seen it neither hold the interpreter nor want it.
    pub(super) samples: u64,
    pub(super) without: u64,
    /// Those of the latter that have seen it compute.
    pub(super) parallel: u64,
    /// The end of the request, in monotonic nanoseconds.
    pub(super) ended: u64,
}

#[derive(Clone, Copy)]
struct Known {
    class: RouteClass,
    score: u64,
    second: u64,
}

impl Known {
    fn of(word: u64) -> Self {
        let class = CLASSES[(word & CLASS_BITS) as usize];
        Self { class, score: word >> SCORE_SHIFT & SCORE_BITS, second: word >> SECOND_SHIFT }
    }

    fn word(self) -> u64 {
        self.second << SECOND_SHIFT | self.score << SCORE_SHIFT | self.class as u64
    }

    fn holds(self, second: u64) -> bool {
        let short = self.class == RouteClass::Blocking && self.score > 0;
        second.saturating_sub(self.second) <= if short { VALID_SHORT } else { VALID }
    }

    fn after(self, seen: Seen, second: u64) -> Self {
        let without = seen.without * 2 > seen.samples;
        let is_long = seen.nanos >= TELLING;
        if is_long && seen.samples > 1 {
            let class = match without {
                true if seen.parallel * 2 > seen.without => RouteClass::Parallel,
                true => RouteClass::Blocking,
                false if seen.held >= LONG => RouteClass::CpuBound,
                false if seen.held * 2 >= seen.nanos => RouteClass::Normal,
                false if self.class.does_without() && seen.without == 0 => RouteClass::Normal,
                // Most of the time it wanted the interpreter, which others had: that tells nothing of it.
                false => return self,
            };
            return Self { class, score: 0, second };
        }
        if is_long && self.class != RouteClass::Normal && self.score == 0 {
            // One sample is a moment; it does not outweigh a class from several.
            return self;
        }
        let score = if without { (self.score + 1).min(WAITS) } else { self.score.saturating_sub(COMPUTED) };
        let class = match score {
            WAITS => RouteClass::Blocking,
            0 => RouteClass::Normal,
            _ => self.class,
        };
        Self { class, score, second }
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| Place::default()).collect(), watched_until: AtomicU64::new(0) }
    }
}

impl Costs {
    fn place(&self, route: u64) -> &Place {
        &self.places[route as usize % PLACES]
    }

    /// The expected cost of a request of this route, in nanoseconds; 0 for an unknown route.
    pub(super) fn of(&self, route: u64) -> u64 {
        self.place(route).charge.load(Ordering::Relaxed) & !WRITES
    }

    /// Whether the last one has written to a disk.
    pub(super) fn writes(&self, route: u64) -> bool {
        self.place(route).charge.load(Ordering::Relaxed) & WRITES != 0
    }

    /// Whether it matters at `now`, in monotonic nanoseconds, of which route a request is: some have a class, or may get one. One load.
    pub(super) fn is_watching(&self, now: u64) -> bool {
        now / SECOND < self.watched_until.load(Ordering::Relaxed)
    }

    pub(super) fn watch(&self, nanos: u64, ended: u64) {
        if nanos >= TELLING {
            self.watched_until.store(ended / SECOND + VALID + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn class(&self, route: u64, now: u64) -> RouteClass {
        let known = Known::of(self.place(route).class.load(Ordering::Relaxed));
        if known.holds(now / SECOND) { known.class } else { RouteClass::Normal }
    }

    pub(super) fn note(&self, route: u64, seen: Seen) {
        let place = self.place(route);
        let own = seen.computed.max(seen.share);
        let charge = match self.of(route) {
            0 => own,
            before => before - before / STEP + own / STEP,
        };
        place.charge.store(charge & !WRITES | if seen.wrote { WRITES } else { 0 }, Ordering::Relaxed);
        let second = seen.ended / SECOND;
        let before = Known::of(place.class.load(Ordering::Relaxed));
        let nothing = Known { class: RouteClass::Normal, score: 0, second };
        let known = match seen.samples {
            // So short it has not computed for long, whether or not a sample has seen it.
            0 if before.class == RouteClass::CpuBound && seen.nanos < TELLING => nothing,
            0 => return,
            _ if before.holds(second) => before.after(seen, second),
            _ => nothing.after(seen, second),
        };
        place.class.store(known.word(), Ordering::Relaxed);
        if known.class != RouteClass::Normal {
            self.watched_until.store(second + VALID + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The observations of a request that did without the interpreter all the time, or had it all the time; `None`: no
    /// sample was taken.
    fn seen(nanos: u64, without: Option<bool>, ended: u64) -> Seen {
        let computed = if without == Some(true) { 0 } else { nanos };
        let samples = if without.is_some() { 4 } else { 0 };
        let without = if without == Some(true) { samples } else { 0 };
        Seen { nanos, computed, held: computed, samples, without, ended, ..Seen::default() }
    }

    #[test]
    fn a_route_that_computes_without_the_interpreter_is_told_from_one_that_waits() {
        let costs = Costs::default();
        costs.note(7, Seen { parallel: 3, ..seen(5 * MS, Some(true), SECOND) });
        assert_eq!(costs.class(7, SECOND), RouteClass::Parallel);
        costs.note(7, Seen { parallel: 2, ..seen(5 * MS, Some(true), SECOND) });
        assert_eq!(costs.class(7, SECOND), RouteClass::Blocking);
        costs.note(7, Seen { parallel: 4, ..seen(5 * MS, Some(true), SECOND) });
        assert_eq!(costs.class(7, 11 * SECOND), RouteClass::Parallel);
        assert_eq!(costs.class(7, 12 * SECOND), RouteClass::Normal, "forgotten");
    }

    #[test]
    fn a_long_request_tells_its_class_at_once_after_any_history_and_it_is_forgotten_within_ten_seconds() {
        let costs = Costs::default();
        for second in 1..60 {
            costs.note(7, seen(100_000, Some(false), second * SECOND));
        }
        assert_eq!(costs.class(7, 60 * SECOND), RouteClass::Normal);
        costs.note(7, seen(1200 * MS, Some(true), 61 * SECOND));
        assert_eq!(costs.class(7, 61 * SECOND), RouteClass::Blocking);
        costs.note(7, seen(20 * MS, Some(false), 62 * SECOND));
        assert_eq!(costs.class(7, 62 * SECOND), RouteClass::CpuBound);
        costs.note(7, seen(30 * MS, None, 63 * SECOND));
        assert_eq!(costs.class(7, 72 * SECOND), RouteClass::CpuBound, "no sample, no evidence");
        assert!(costs.is_watching(72 * SECOND));
        assert_eq!(costs.class(7, 73 * SECOND), RouteClass::Normal);
        assert!(!costs.is_watching(73 * SECOND));
        assert_eq!(costs.class(8, 62 * SECOND), RouteClass::Normal, "another route");
        costs.note(7, seen(20 * MS, Some(false), 74 * SECOND));
        costs.note(7, Seen { held: MS, ..seen(20 * MS, Some(false), 75 * SECOND) });
        assert_eq!(costs.class(7, 75 * SECOND), RouteClass::CpuBound, "it was kept from the interpreter");
        costs.note(7, seen(LONG - 1, Some(false), 76 * SECOND));
        assert_eq!(costs.class(7, 76 * SECOND), RouteClass::Normal);
        costs.note(7, seen(20 * MS, Some(false), 77 * SECOND));
        costs.note(7, seen(TELLING - 1, None, 77 * SECOND));
        assert_eq!(costs.class(7, 77 * SECOND), RouteClass::Normal, "it was short");
    }

    #[test]
    fn one_sample_of_a_long_request_is_a_moment_and_one_that_only_wants_the_interpreter_does_not_wait() {
        let costs = Costs::default();
        let once = |without| Seen { samples: 1, without, held: 0, ..seen(3 * MS, Some(without > 0), SECOND) };
        costs.note(7, once(1));
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal);
        (0..20).for_each(|turn| costs.note(7, once(u64::from(turn % 4 == 0))));
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal, "about to have the interpreter now and then");
        (0..WAITS).for_each(|_| costs.note(7, once(1)));
        assert_eq!(costs.class(7, SECOND), RouteClass::Blocking);
        costs.note(7, seen(5 * MS, Some(true), SECOND));
        costs.note(7, once(0));
        costs.note(7, Seen { held: MS, without: 1, ..seen(5 * MS, Some(false), SECOND) });
        assert_eq!(
            costs.class(7, SECOND),
            RouteClass::Blocking,
            "it waits and was then kept from the interpreter"
        );
        costs.note(7, Seen { held: MS, ..seen(5 * MS, Some(false), SECOND) });
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal);
    }

    #[test]
    fn short_requests_add_up_a_score() {
        let costs = Costs::default();
        let note =
            |waits, count: u64| (0..count).for_each(|_| costs.note(7, seen(300_000, Some(waits), SECOND)));
        note(true, WAITS - 1);
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal);
        note(false, 1);
        note(true, COMPUTED);
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal, "as many as before");
        note(true, 1);
        assert_eq!(costs.class(7, SECOND), RouteClass::Blocking);
        note(false, 2);
        assert_eq!(costs.class(7, SECOND), RouteClass::Blocking, "chance");
        note(false, 1);
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal);
        note(true, WAITS);
        assert_eq!(costs.class(7, 2 * SECOND), RouteClass::Blocking);
        assert_eq!(costs.class(7, 3 * SECOND), RouteClass::Normal, "no request has confirmed it");
    }

    #[test]
    fn the_charge_is_an_average_of_the_last_ones() {
        let costs = Costs::default();
        assert_eq!((costs.of(7), costs.writes(7)), (0, false));
        costs.note(7, Seen { wrote: true, ..seen(16 * MS, None, SECOND) });
        assert_eq!((costs.of(7), costs.writes(7)), (16 * MS, true));
        (0..40).for_each(|_| costs.note(7, seen(MS, None, SECOND)));
        assert!(costs.of(7) < 11 * MS / 10 && !costs.writes(7));
        assert_eq!(costs.class(7, SECOND), RouteClass::Normal);
    }
}
