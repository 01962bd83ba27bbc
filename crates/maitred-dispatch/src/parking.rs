//! The parked threads of a pool: a stack without a lock, so that who gives a request to a thread and who parks never meet.
//!
//! ```text
//!             lie_down                    pop, then its caller calls it
//!   OUT ─────────────────► LYING ──────────────────────────────────────► OUT
//!                           │ ▲
//!                  get_up   ▼ │ lie_down: its place is where it was
//!                          LEFT ──── pop: not for anybody ─────────────► OUT
//! ```
//! Promises: who lies is called by exactly one of those who pop, or gets up; the one that lay down last is popped first,
//! but for threads that got up and lay down again, which keep their place. No thread waits for another.
//!
//! Places are numbered, and never freed: a number that was popped in between is told by the tag of the head, which each
//! change raises (the usual way against ABA). A thread that ends gives its place to the next one, which may find it still in
//! the stack.

use std::ops::Deref;
use std::sync::{OnceLock, PoisonError};

use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::parked_thread::{LEFT, LYING, OUT, ParkedThread};

/// Places of the first chunk; each further one has twice as many.
const FIRST: usize = 8;

/// More than half a million places: no machine has so many threads.
const CHUNKS: usize = 16;

/// See the module text.
pub(super) struct Parking<J> {
    /// The tag above, below the number of the uppermost place and one; 0 for none.
    head: AtomicU64,
    chunks: [OnceLock<Box<[ParkedThread<J>]>>; CHUNKS],
    /// Places that have no thread, and how many were ever taken.
    free: Mutex<(Vec<u32>, u32)>,
    /// Threads that lie, or are about to.
    lying: AtomicUsize,
    /// Since when there are any, in monotonic nanoseconds.
    since: AtomicU64,
}

/// The place of a thread, as long as it has it.
pub(super) struct ParkSlot<'a, J> {
    parking: &'a Parking<J>,
    number: u32,
    place: &'a ParkedThread<J>,
}

impl<J> Deref for ParkSlot<'_, J> {
    type Target = ParkedThread<J>;

    fn deref(&self) -> &ParkedThread<J> {
        self.place
    }
}

impl<J> Drop for ParkSlot<'_, J> {
    fn drop(&mut self) {
        // It does not lie, and whatever it was called for it has taken.
        self.parking.free.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.number);
    }
}

impl<J> Parking<J> {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new((Vec::new(), 0)),
            lying: AtomicUsize::new(0),
            since: AtomicU64::new(0),
        }
    }

    /// A place for a thread that begins.
    pub(super) fn spot(&self) -> ParkSlot<'_, J> {
        let number = {
            let (list, made) = &mut *self.free.lock().unwrap_or_else(PoisonError::into_inner);
            list.pop().unwrap_or_else(|| {
                *made += 1;
                *made - 1
            })
        };
        ParkSlot { parking: self, number, place: self.place(number) }
    }

    fn place(&self, number: u32) -> &ParkedThread<J> {
        let nth = number as usize / FIRST + 1;
        let chunk = nth.ilog2() as usize;
        let first = FIRST * ((1 << chunk) - 1);
        let make = || (0..FIRST << chunk).map(|_| ParkedThread::default()).collect();
        &self.chunks[chunk].get_or_init(make)[number as usize - first]
    }

    /// The thread can be popped from now on. Whoever looks for work afterwards, and gets up if there is some, is not missed
    /// by those who made work and popped nobody.
    pub(super) fn lie_down(&self, spot: &ParkSlot<'_, J>, now: u64) {
        // Before it can be popped, which counts it out.
        if self.lying.fetch_add(1, SeqCst) == 0 {
            self.since.store(now, SeqCst);
        }
        if spot.state.compare_exchange(LEFT, LYING, SeqCst, SeqCst).is_ok() {
            return;
        }
        spot.state.store(LYING, SeqCst);
        let mut head = self.head.load(SeqCst);
        loop {
            spot.below.store(head & NUMBER, SeqCst);
            let new = next_tag(head) | u64::from(spot.number + 1);
            match self.head.compare_exchange(head, new, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// The thread does not lie any more. False when it has been popped: it is called.
    pub(super) fn get_up(&self, spot: &ParkSlot<'_, J>) -> bool {
        let lay = spot.state.compare_exchange(LYING, LEFT, SeqCst, SeqCst).is_ok();
        if lay {
            self.lying.fetch_sub(1, SeqCst);
        }
        lay
    }

    /// The place of the thread that lay down last; it has to be called.
    pub(super) fn pop(&self) -> Option<&ParkedThread<J>> {
        let mut head = self.head.load(SeqCst);
        while let Some(number) = (head & NUMBER).checked_sub(1) {
            let place = self.place(number as u32);
            let new = next_tag(head) | place.below.load(SeqCst);
            if let Err(now) = self.head.compare_exchange(head, new, SeqCst, SeqCst) {
                head = now;
                continue;
            }
            if place.state.swap(OUT, SeqCst) == LYING {
                self.lying.fetch_sub(1, SeqCst);
                return Some(place);
            }
            // It got up, and works.
            head = self.head.load(SeqCst);
        }
        None
    }

    /// Threads that lie, or are about to.
    pub(super) fn lying(&self) -> usize {
        self.lying.load(SeqCst)
    }

    /// Since when there are any, in monotonic nanoseconds.
    pub(super) fn since(&self) -> u64 {
        self.since.load(SeqCst)
    }
}

/// The part of the head that is a number.
const NUMBER: u64 = u32::MAX as u64;

fn next_tag(head: u64) -> u64 {
    (head & !NUMBER).wrapping_add(NUMBER + 1)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_lie_down_is_the_first_to_be_called() {
        let parking = Parking::<u8>::new();
        let spots: Vec<_> = (0..20).map(|_| parking.spot()).collect();
        spots.iter().for_each(|spot| parking.lie_down(spot, 1));
        assert!(parking.get_up(&spots[18]));
        assert_eq!(parking.lying(), 19);
        let called: Vec<_> = std::iter::from_fn(|| parking.pop()).collect();
        let expected = spots.iter().rev().filter(|spot| spot.number != 18);
        assert!(called.into_iter().zip(expected).all(|(place, spot)| std::ptr::eq(place, spot.place)));
        assert_eq!(parking.lying(), 0);
        assert!(!parking.get_up(&spots[0]), "it was called");
    }

    #[test]
    fn who_lies_down_again_is_called_once() {
        let parking = Parking::<u8>::new();
        let (one, other) = (parking.spot(), parking.spot());
        parking.lie_down(&one, 1);
        parking.lie_down(&other, 2);
        assert!(parking.get_up(&one));
        parking.lie_down(&one, 3);
        assert!(std::ptr::eq(parking.pop().unwrap(), other.place));
        assert!(std::ptr::eq(parking.pop().unwrap(), one.place));
        assert!(parking.pop().is_none());
        parking.lie_down(&one, 4);
        assert!(parking.pop().is_some() && parking.pop().is_none());
    }

    #[test]
    fn the_place_of_a_thread_that_has_ended_is_for_the_next_one() {
        let parking = Parking::<u8>::new();
        let first = parking.spot();
        parking.lie_down(&first, 1);
        assert!(parking.get_up(&first));
        let number = first.number;
        drop(first);
        let second = parking.spot();
        assert_eq!(second.number, number);
        assert!(parking.pop().is_none(), "nobody lies there");
        parking.lie_down(&second, 2);
        assert!(std::ptr::eq(parking.pop().unwrap(), second.place));
    }

    #[test]
    fn places_do_not_move() {
        let parking = Parking::<u8>::new();
        let spots: Vec<_> = (0..1000).map(|_| parking.spot()).collect();
        for (index, spot) in spots.iter().enumerate() {
            assert_eq!(spot.number as usize, index);
            assert!(std::ptr::eq(parking.place(spot.number), spot.place));
        }
    }
}

#[cfg(all(test, shuttle))]
mod shuttle_tests {
    use maitred_io::sync::{Arc, schedules, thread};

    use super::*;

    const ROUNDS: usize = 2;
    const PARKED: usize = 3;
    const CALLERS: usize = 2;

    /// Threads lie down, and get up again or not; each that stays is called once, and nobody else is.
    #[test]
    fn who_lies_is_called_by_one() {
        let scenario = || {
            let parking = Arc::new(Parking::<u8>::new());
            let missing = Arc::new(AtomicUsize::new(PARKED * ROUNDS));
            let parked = (0..PARKED).map(|_| {
                let parking = Arc::clone(&parking);
                thread::spawn(move || {
                    let spot = parking.spot();
                    for _ in 0..ROUNDS {
                        parking.lie_down(&spot, 1);
                        if parking.get_up(&spot) {
                            parking.lie_down(&spot, 2);
                        }
                        assert!(spot.parker.park(None));
                    }
                })
            });
            let threads: Vec<_> = parked.collect();
            let callers = (0..CALLERS).map(|_| {
                let (parking, missing) = (Arc::clone(&parking), Arc::clone(&missing));
                thread::spawn(move || {
                    while missing.load(SeqCst) > 0 {
                        match parking.pop() {
                            Some(place) => {
                                missing.fetch_sub(1, SeqCst);
                                place.call();
                            }
                            None => thread::yield_now(),
                        }
                    }
                })
            });
            let callers: Vec<_> = callers.collect();
            threads.into_iter().chain(callers).for_each(|thread| thread.join().unwrap());
            assert_eq!((parking.lying(), parking.pop().is_none()), (0, true));
        };
        shuttle::check_random(scenario, schedules(20_000));
        shuttle::check_pct(scenario, schedules(20_000), 3);
    }
}
