//! The parked threads of a pool: a stack without a lock, so that a thread that parks and one that gives work away never wait for one
//! another.
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
use std::time::Duration;

use crate::parker::Parker;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// States of a place: not in the stack; in it, and parked; in it, to be skipped.
const OUT: u8 = 0;
const PARKED: u8 = 1;
const CANCELLED: u8 = 2;

/// Places of the first chunk; each further one has twice as many.
const FIRST: usize = 8;

/// More than half a million places: no machine has so many threads.
const CHUNKS: usize = 16;

/// The place of one thread: it sleeps there, and finds there the message that it was woken with.
pub struct Place<M> {
    parker: Parker,
    message: Mutex<Option<M>>,
    state: AtomicU8,
    /// The number of the place below it in the stack and one; 0 for none.
    below: AtomicU64,
}

impl<M> Default for Place<M> {
    fn default() -> Self {
        Self {
            parker: Parker::default(),
            message: Mutex::new(None),
            state: AtomicU8::new(OUT),
            below: AtomicU64::new(0),
        }
    }
}

impl<M> Place<M> {
    /// Wakes the thread that was popped, with a message or without.
    pub fn wake(&self, message: Option<M>) {
        if message.is_some() {
            *self.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
        }
        self.parker.unpark();
    }

    /// Sleeps until the thread is woken, at most for `limit` (`None`: for ever). Whether it was woken.
    pub fn sleep(&self, limit: Option<Duration>) -> bool {
        self.parker.park(limit)
    }

    /// The message with which the thread was woken.
    pub fn take_message(&self) -> Option<M> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The stack; see the module text.
pub struct Parking<M> {
    /// The tag above, below the number of the uppermost place and one; 0 for none.
    head: AtomicU64,
    chunks: [OnceLock<Box<[Place<M>]>>; CHUNKS],
    /// Places that have no thread, and how many were ever taken.
    free: Mutex<(Vec<u32>, u32)>,
    count: AtomicUsize,
    since: AtomicU64,
}

/// The place of a thread, as long as it has it.
pub struct ParkSlot<'a, M> {
    parking: &'a Parking<M>,
    number: u32,
    place: &'a Place<M>,
}

impl<M> Deref for ParkSlot<'_, M> {
    type Target = Place<M>;

    fn deref(&self) -> &Place<M> {
        self.place
    }
}

impl<M> Drop for ParkSlot<'_, M> {
    fn drop(&mut self) {
        // The thread is not parked, and has taken its message.
        self.parking.free.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.number);
    }
}

impl<M> Default for Parking<M> {
    fn default() -> Self {
        Self {
            head: AtomicU64::new(0),
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new((Vec::new(), 0)),
            count: AtomicUsize::new(0),
            since: AtomicU64::new(0),
        }
    }
}

impl<M> Parking<M> {
    /// A place for a thread that begins.
    pub fn slot(&self) -> ParkSlot<'_, M> {
        let number = {
            let (list, made) = &mut *self.free.lock().unwrap_or_else(PoisonError::into_inner);
            list.pop().unwrap_or_else(|| {
                *made += 1;
                *made - 1
            })
        };
        ParkSlot { parking: self, number, place: self.place(number) }
    }

    fn place(&self, number: u32) -> &Place<M> {
        let nth = number as usize / FIRST + 1;
        let chunk = nth.ilog2() as usize;
        let first = FIRST * ((1 << chunk) - 1);
        let make = || (0..FIRST << chunk).map(|_| Place::default()).collect();
        &self.chunks[chunk].get_or_init(make)[number as usize - first]
    }

    /// The thread can be popped from now on. It looks for work afterwards, and cancels if there is some: a thread that has made work
    /// before either pops it, or has made the work early enough to be seen.
    pub fn push(&self, slot: &ParkSlot<'_, M>, now: u64) {
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
    pub fn cancel(&self, slot: &ParkSlot<'_, M>) -> bool {
        let was_parked = slot.state.compare_exchange(PARKED, CANCELLED, SeqCst, SeqCst).is_ok();
        if was_parked {
            self.count.fetch_sub(1, SeqCst);
        }
        was_parked
    }

    /// The place of the thread that was pushed last; the caller wakes it.
    pub fn pop(&self) -> Option<&Place<M>> {
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
    pub fn count(&self) -> usize {
        self.count.load(SeqCst)
    }

    /// The time since which there are parked threads, in monotonic nanoseconds.
    pub fn since(&self) -> u64 {
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
        let parking = Parking::<u8>::default();
        let slots: Vec<_> = (0..20).map(|_| parking.slot()).collect();
        slots.iter().for_each(|slot| parking.push(slot, 1));
        assert!(parking.cancel(&slots[18]));
        assert_eq!(parking.count(), 19);
        let popped: Vec<_> = std::iter::from_fn(|| parking.pop()).collect();
        let expected = slots.iter().rev().filter(|slot| slot.number != 18);
        assert!(popped.into_iter().zip(expected).all(|(place, slot)| std::ptr::eq(place, slot.place)));
        assert_eq!(parking.count(), 0);
        assert!(!parking.cancel(&slots[0]), "it was popped");
    }

    #[test]
    fn a_thread_that_parks_again_is_woken_once() {
        let parking = Parking::<u8>::default();
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
        let parking = Parking::<u8>::default();
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
        let parking = Parking::<u8>::default();
        let slots: Vec<_> = (0..1000).map(|_| parking.slot()).collect();
        for (index, slot) in slots.iter().enumerate() {
            assert_eq!(slot.number as usize, index);
            assert!(std::ptr::eq(parking.place(slot.number), slot.place));
        }
    }
}

#[cfg(all(test, shuttle))]
mod shuttle_tests {
    use crate::sync::{Arc, schedules, thread};

    use super::*;

    const ROUNDS: usize = 2;
    const SLEEPERS: usize = 3;
    const CALLERS: usize = 2;

    /// Threads park, and cancel or not; each that stays is woken once, and no other one is.
    #[test]
    fn a_parked_thread_is_woken_once() {
        let scenario = || {
            let parking = Arc::new(Parking::<u8>::default());
            let missing = Arc::new(AtomicUsize::new(SLEEPERS * ROUNDS));
            let parked = (0..SLEEPERS).map(|_| {
                let parking = Arc::clone(&parking);
                thread::spawn(move || {
                    let slot = parking.slot();
                    for _ in 0..ROUNDS {
                        parking.push(&slot, 1);
                        if parking.cancel(&slot) {
                            parking.push(&slot, 2);
                        }
                        assert!(slot.sleep(None));
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
                                place.wake(None);
                            }
                            None => thread::yield_now(),
                        }
                    }
                })
            });
            let callers: Vec<_> = callers.collect();
            threads.into_iter().chain(callers).for_each(|thread| thread.join().unwrap());
            assert_eq!((parking.count(), parking.pop().is_none()), (0, true));
        };
        shuttle::check_random(scenario, schedules(20_000));
        shuttle::check_pct(scenario, schedules(20_000), 3);
    }
}
