//! The parked threads of a pool: a stack without a lock, so that a thread that parks and one that gives a request away never wait
//! for one another.
//!
//! ```text
//!             push                        pop, then its caller wakes the thread
//!   OUT ─────────────────► PARKED ─────────────────────────────────────► OUT
//!                           │ ▲
//!                  cancel   ▼ │ push: its place is where it was
//!                        CANCELLED ──── pop: skipped ──────────────────► OUT
//! ```
//! Promises: exactly one pop returns a thread that is parked, unless that cancels first. The thread that was pushed last is popped
//! first; a thread that cancels and is pushed again keeps its place. No thread waits for another one.
//!
//! Places have numbers, and are never freed. Each change raises the tag of the head, so a change in between is noticed although the same
//! number is on top again (ABA). A thread that ends leaves its place to the next one, which may find it still in the stack.

use std::ops::Deref;
use std::sync::{OnceLock, PoisonError};

use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::parked_thread::{CANCELLED, OUT, PARKED, ParkedThread};

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
    /// Threads that are parked, or about to be.
    count: AtomicUsize,
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
        // The thread is not parked, and has taken what it was woken for.
        self.parking.free.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.number);
    }
}

impl<J> Parking<J> {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new((Vec::new(), 0)),
            count: AtomicUsize::new(0),
            since: AtomicU64::new(0),
        }
    }

    /// A place for a thread that begins.
    pub(super) fn slot(&self) -> ParkSlot<'_, J> {
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

    /// The thread can be popped from now on. It looks for work afterwards, and cancels if there is some: a thread that has made work
    /// before either pops it, or has made the work early enough to be seen.
    pub(super) fn push(&self, slot: &ParkSlot<'_, J>, now: u64) {
        // Before it can be popped, which counts it out.
        if self.count.fetch_add(1, SeqCst) == 0 {
            self.since.store(now, SeqCst);
        }
        if slot.state.compare_exchange(CANCELLED, PARKED, SeqCst, SeqCst).is_ok() {
            return;
        }
        slot.state.store(PARKED, SeqCst);
        let mut head = self.head.load(SeqCst);
        loop {
            slot.below.store(head & NUMBER, SeqCst);
            let new = next_tag(head) | u64::from(slot.number + 1);
            match self.head.compare_exchange(head, new, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// The thread is not parked any more. False when it has been popped: it is being woken.
    pub(super) fn cancel(&self, slot: &ParkSlot<'_, J>) -> bool {
        let was_parked = slot.state.compare_exchange(PARKED, CANCELLED, SeqCst, SeqCst).is_ok();
        if was_parked {
            self.count.fetch_sub(1, SeqCst);
        }
        was_parked
    }

    /// The place of the thread that was pushed last; the caller wakes it.
    pub(super) fn pop(&self) -> Option<&ParkedThread<J>> {
        let mut head = self.head.load(SeqCst);
        while let Some(number) = (head & NUMBER).checked_sub(1) {
            let place = self.place(number as u32);
            let new = next_tag(head) | place.below.load(SeqCst);
            if let Err(now) = self.head.compare_exchange(head, new, SeqCst, SeqCst) {
                head = now;
                continue;
            }
            if place.state.swap(OUT, SeqCst) == PARKED {
                self.count.fetch_sub(1, SeqCst);
                return Some(place);
            }
            // It has cancelled, and works.
            head = self.head.load(SeqCst);
        }
        None
    }

    /// Threads that are parked, or about to be.
    pub(super) fn len(&self) -> usize {
        self.count.load(SeqCst)
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
    fn the_last_to_park_is_the_first_to_be_woken() {
        let parking = Parking::<u8>::new();
        let slots: Vec<_> = (0..20).map(|_| parking.slot()).collect();
        slots.iter().for_each(|slot| parking.push(slot, 1));
        assert!(parking.cancel(&slots[18]));
        assert_eq!(parking.len(), 19);
        let popped: Vec<_> = std::iter::from_fn(|| parking.pop()).collect();
        let expected = slots.iter().rev().filter(|slot| slot.number != 18);
        assert!(popped.into_iter().zip(expected).all(|(place, slot)| std::ptr::eq(place, slot.place)));
        assert_eq!(parking.len(), 0);
        assert!(!parking.cancel(&slots[0]), "it was popped");
    }

    #[test]
    fn a_thread_that_parks_again_is_woken_once() {
        let parking = Parking::<u8>::new();
        let (one, other) = (parking.slot(), parking.slot());
        parking.push(&one, 1);
        parking.push(&other, 2);
        assert!(parking.cancel(&one));
        parking.push(&one, 3);
        assert!(std::ptr::eq(parking.pop().unwrap(), other.place));
        assert!(std::ptr::eq(parking.pop().unwrap(), one.place));
        assert!(parking.pop().is_none());
        parking.push(&one, 4);
        assert!(parking.pop().is_some() && parking.pop().is_none());
    }

    #[test]
    fn the_place_of_a_thread_that_has_ended_is_for_the_next_one() {
        let parking = Parking::<u8>::new();
        let first = parking.slot();
        parking.push(&first, 1);
        assert!(parking.cancel(&first));
        let number = first.number;
        drop(first);
        let second = parking.slot();
        assert_eq!(second.number, number);
        assert!(parking.pop().is_none(), "no thread is parked there");
        parking.push(&second, 2);
        assert!(std::ptr::eq(parking.pop().unwrap(), second.place));
    }

    #[test]
    fn places_do_not_move() {
        let parking = Parking::<u8>::new();
        let slots: Vec<_> = (0..1000).map(|_| parking.slot()).collect();
        for (index, slot) in slots.iter().enumerate() {
            assert_eq!(slot.number as usize, index);
            assert!(std::ptr::eq(parking.place(slot.number), slot.place));
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

    /// Threads park, and cancel or not; each that stays is woken once, and no other one is.
    #[test]
    fn a_parked_thread_is_woken_once() {
        let scenario = || {
            let parking = Arc::new(Parking::<u8>::new());
            let missing = Arc::new(AtomicUsize::new(PARKED * ROUNDS));
            let parked = (0..PARKED).map(|_| {
                let parking = Arc::clone(&parking);
                thread::spawn(move || {
                    let slot = parking.slot();
                    for _ in 0..ROUNDS {
                        parking.push(&slot, 1);
                        if parking.cancel(&slot) {
                            parking.push(&slot, 2);
                        }
                        assert!(slot.parker.park(None));
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
                                place.wake();
                            }
                            None => thread::yield_now(),
                        }
                    }
                })
            });
            let callers: Vec<_> = callers.collect();
            threads.into_iter().chain(callers).for_each(|thread| thread.join().unwrap());
            assert_eq!((parking.len(), parking.pop().is_none()), (0, true));
        };
        shuttle::check_random(scenario, schedules(20_000));
        shuttle::check_pct(scenario, schedules(20_000), 3);
    }
}
