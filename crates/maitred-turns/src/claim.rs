//! The right to serve a connection or another object with a slot, and the signals that have come meanwhile.
//!
//! ```text
//!            signal(bits)                        take()
//! free ------------------> claimed + bits -------------------> claimed
//!   ^                          ^                                  |
//!   |                          |  signal(bits) by another thread  | the owner's turn
//!   |                          `----------------------------------|
//!   `------------------------------------------------------------ release() when no bit is set
//! ```
//! Edges are reported once, to whichever thread waited. So a thread that finds the slot claimed
//! leaves its bits, and the owner cannot release the slot before it has taken them: no edge is
//! lost, and a connection never has two turns at once.
//!
//! The slot's generation stands in the same word: a signal meant for a connection that is gone is
//! refused in the same step, so that it never reaches the next one in the slot.

use maitred_io::sync::atomic::{AtomicU64, Ordering};

use crate::Signals;

const CLAIMED: u64 = 1;

/// The lower half: claimed and signals. The generation is the upper half.
const STATE: u64 = u32::MAX as u64;

const ONE_GENERATION: u64 = STATE + 1;

/// The word.
#[derive(Default)]
pub struct Claim {
    word: AtomicU64,
}

impl Claim {
    /// The number of the present connection in this slot.
    pub fn generation(&self) -> u32 {
        (self.word.load(Ordering::Acquire) >> 32) as u32
    }

    /// Ends the present connection: signals that are on their way to it are refused from now on.
    pub fn retire(&self) {
        self.word.fetch_add(ONE_GENERATION, Ordering::AcqRel);
    }

    /// Leaves `signals` for the connection of `generation`, if it is the present one. True when the
    /// slot was free: the caller owns it now and must go through [`take`](Self::take) and
    /// [`release`](Self::release).
    pub fn signal(&self, generation: u32, signals: Signals) -> bool {
        let left = |word: u64| {
            (word >> 32 == u64::from(generation)).then_some(word | u64::from(signals.bits()) | CLAIMED)
        };
        // AcqRel: the new owner sees the stores of the last one; the owner that takes the bits sees the stores of this
        // thread before.
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, left)
            .is_ok_and(|before| before & CLAIMED == 0)
    }

    /// Takes the bits that other threads have left; called by the owner.
    pub fn take(&self) -> Signals {
        let before = self.word.fetch_and(!STATE | CLAIMED, Ordering::AcqRel);
        Signals::from_bits((before & STATE & !CLAIMED) as u32)
    }

    /// The owner lets go. False when signals have come meanwhile: it is still the owner.
    pub fn release(&self) -> bool {
        let word = self.word.load(Ordering::Acquire);
        word & STATE == CLAIMED
            && self.word.compare_exchange(word, word & !CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(all(test, shuttle))]
mod shuttle_tests {
    use maitred_io::sync::atomic::AtomicU32;
    use maitred_io::sync::{Arc, Mutex, schedules, thread};

    use super::*;

    const BITS: [Signals; 3] = [Signals::READ, Signals::WRITE, Signals::TIMER];

    /// Three threads leave a signal each; the owner of the slot takes turns until it can release it.
    fn scenario(release: fn(&Claim) -> bool) {
        let claim = Arc::new(Claim::default());
        let owners = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(AtomicU32::new(0));
        let threads = BITS.map(|bit| {
            let (claim, owners, seen) = (Arc::clone(&claim), Arc::clone(&owners), Arc::clone(&seen));
            thread::spawn(move || {
                if !claim.signal(0, bit) {
                    return;
                }
                assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "one turn at a time");
                loop {
                    seen.fetch_or(claim.take().bits(), Ordering::SeqCst);
                    owners.fetch_sub(1, Ordering::SeqCst);
                    if release(&claim) {
                        return;
                    }
                    owners.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        for thread in threads {
            thread.join().expect("no thread fails");
        }
        let all = BITS.iter().fold(Signals::NONE, |all, bit| all.with(*bit));
        assert_eq!(seen.load(Ordering::SeqCst), all.bits(), "every signal is seen");
    }

    #[test]
    fn no_signal_is_lost_and_no_turn_overlaps() {
        shuttle::check_random(|| scenario(Claim::release), schedules(20_000));
    }

    /// A late event of a connection that ends meanwhile, and the next connection in its slot.
    fn reuse(late: fn(&Claim) -> bool) {
        let claim = Arc::new(Claim::default());
        let other = Arc::clone(&claim);
        let event = thread::spawn(move || {
            if late(&other) {
                // Owner of the slot: of the connection the event was for.
                let before = other.generation();
                let signals = other.take();
                assert!(before == 0 || !signals.any(Signals::CLOSED), "the next one lives");
                while !other.release() {
                    other.take();
                }
            }
        });
        // The first connection ends, unless the late event has the slot and ends it.
        if claim.signal(0, Signals::READ) {
            claim.take();
            claim.retire();
            while !claim.release() {
                claim.take();
            }
            if claim.signal(1, Signals::READ) {
                assert!(!claim.take().any(Signals::CLOSED), "the next one lives");
                while !claim.release() {
                    assert!(!claim.take().any(Signals::CLOSED), "the next one lives");
                }
            }
        }
        event.join().expect("no thread fails");
    }

    #[test]
    fn a_late_event_never_reaches_the_next_connection() {
        shuttle::check_random(|| reuse(|claim| claim.signal(0, Signals::CLOSED)), schedules(20_000));
    }

    /// The mutation: the generation is looked at before the signal is left, not in the same step.
    #[test]
    #[should_panic(expected = "the next one lives")]
    fn a_generation_looked_at_too_early_is_found_out() {
        let early =
            |claim: &Claim| claim.generation() == 0 && claim.signal(claim.generation(), Signals::CLOSED);
        shuttle::check_random(move || reuse(early), 20_000);
    }

    /// The ends of two exchanges, as the turns of their connection see them.
    #[derive(Default)]
    struct Ends {
        over: [bool; 2],
        closed: u32,
    }

    /// Takes turns until nothing has come meanwhile; the connection is closed when both exchanges are over.
    fn turns(claim: &Claim, ends: &Mutex<Ends>) {
        loop {
            claim.take();
            let mut ends = ends.lock().expect("not poisoned");
            if ends.over == [true, true] && ends.closed == 0 {
                ends.closed += 1;
            }
            drop(ends);
            if claim.release() {
                return;
            }
        }
    }

    /// Two exchanges of one connection end on two threads while an event comes for it.
    fn exchanges(end: fn(&Claim, &Mutex<Ends>, usize) -> bool) {
        let claim = Arc::new(Claim::default());
        let ends = Arc::new(Mutex::new(Ends::default()));
        let threads = [0, 1, 2].map(|number| {
            let (claim, ends) = (Arc::clone(&claim), Arc::clone(&ends));
            thread::spawn(move || {
                let claimed = match number {
                    2 => claim.signal(0, Signals::READ),
                    exchange => end(&claim, &ends, exchange),
                };
                if claimed {
                    turns(&claim, &ends);
                }
            })
        });
        for thread in threads {
            thread.join().expect("no thread fails");
        }
        assert_eq!(ends.lock().expect("not poisoned").closed, 1, "the last one closes it");
    }

    fn end_and_tell(claim: &Claim, ends: &Mutex<Ends>, exchange: usize) -> bool {
        ends.lock().expect("not poisoned").over[exchange] = true;
        claim.signal(0, Signals::RESUME)
    }

    #[test]
    fn two_exchanges_that_end_at_once_are_both_seen() {
        shuttle::check_random(|| exchanges(end_and_tell), schedules(20_000));
    }

    #[test]
    #[should_panic(expected = "the last one closes it")]
    fn an_exchange_that_tells_before_it_has_ended_is_found_out() {
        let early = |claim: &Claim, ends: &Mutex<Ends>, exchange: usize| {
            let claimed = claim.signal(0, Signals::RESUME);
            ends.lock().expect("not poisoned").over[exchange] = true;
            claimed
        };
        shuttle::check_random(move || exchanges(early), 20_000);
    }

    /// The mutation: a release that does not look whether signals have come.
    #[test]
    #[should_panic(expected = "every signal is seen")]
    fn a_careless_release_is_found_out() {
        let careless = |claim: &Claim| {
            claim.word.store(0, Ordering::SeqCst);
            true
        };
        shuttle::check_random(move || scenario(careless), 20_000);
    }
}
