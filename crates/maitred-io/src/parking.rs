//! The parked threads of a pool, the last to park on top.
//!
//! Promises: exactly one pop returns a thread that is parked, unless that cancels first. The lock is held for some instructions, and
//! never while a thread sleeps or is woken.

use std::sync::PoisonError;
use std::time::Duration;

use crate::parker::Parker;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The place of one thread: it sleeps there, and finds there the message that it was woken with.
pub struct Place<M> {
    parker: Parker,
    message: Mutex<Option<M>>,
}

impl<M> Default for Place<M> {
    fn default() -> Self {
        Self { parker: Parker::default(), message: Mutex::new(None) }
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

/// See the module text.
pub struct Parking<M> {
    parked: Mutex<Vec<Arc<Place<M>>>>,
    /// A copy of their number, and since when there are any.
    count: AtomicUsize,
    since: AtomicU64,
}

impl<M> Default for Parking<M> {
    fn default() -> Self {
        Self { parked: Mutex::new(Vec::new()), count: AtomicUsize::new(0), since: AtomicU64::new(0) }
    }
}

impl<M> Parking<M> {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Place<M>>>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread can be popped from now on. It looks for work afterwards, and cancels if there is some: a thread that has made work
    /// before either pops it, or has made the work early enough to be seen.
    pub fn push(&self, place: &Arc<Place<M>>, now: u64) {
        self.insert(place, now, usize::MAX);
    }

    /// The same for a thread whose idle time is over: all others are popped before it.
    pub fn push_below(&self, place: &Arc<Place<M>>, now: u64) {
        self.insert(place, now, 0);
    }

    fn insert(&self, place: &Arc<Place<M>>, now: u64, at: usize) {
        let mut parked = self.lock();
        let length = parked.len();
        if length == 0 {
            self.since.store(now, SeqCst);
        }
        parked.insert(at.min(length), Arc::clone(place));
        self.count.store(length + 1, SeqCst);
    }

    /// The thread is not parked any more. False when it has been popped: it is being woken.
    pub fn cancel(&self, place: &Arc<Place<M>>) -> bool {
        let mut parked = self.lock();
        let at = parked.iter().rposition(|other| Arc::ptr_eq(other, place));
        at.map(|at| parked.remove(at));
        self.count.store(parked.len(), SeqCst);
        at.is_some()
    }

    /// The place of the thread that was pushed last; the caller wakes it.
    pub fn pop(&self) -> Option<Arc<Place<M>>> {
        let mut parked = self.lock();
        let popped = parked.pop();
        self.count.store(parked.len(), SeqCst);
        popped
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn places<const N: usize>() -> [Arc<Place<u8>>; N] {
        std::array::from_fn(|_| Arc::default())
    }

    #[test]
    fn the_last_to_park_is_the_first_to_be_woken() {
        let (parking, places) = (Parking::default(), places::<20>());
        places.iter().for_each(|place| parking.push(place, 1));
        assert!(parking.cancel(&places[18]));
        assert_eq!(parking.count(), 19);
        let popped: Vec<_> = std::iter::from_fn(|| parking.pop()).collect();
        let expected = places.iter().enumerate().rev().filter(|(number, _)| *number != 18);
        assert!(popped.iter().zip(expected).all(|(popped, (_, place))| Arc::ptr_eq(popped, place)));
        assert_eq!((popped.len(), parking.count()), (19, 0));
        assert!(!parking.cancel(&places[0]), "it was popped");
    }

    #[test]
    fn a_thread_that_parks_again_is_woken_once() {
        let (parking, [one, other]) = (Parking::default(), places());
        parking.push(&one, 1);
        parking.push(&other, 2);
        assert!(parking.cancel(&one));
        parking.push(&one, 3);
        assert_eq!(parking.since(), 1);
        assert!(Arc::ptr_eq(&parking.pop().unwrap(), &one));
        assert!(Arc::ptr_eq(&parking.pop().unwrap(), &other));
        assert!(parking.pop().is_none());
        parking.push(&one, 4);
        parking.push_below(&other, 5);
        assert_eq!(parking.since(), 4);
        assert!(Arc::ptr_eq(&parking.pop().unwrap(), &one));
        assert!(parking.pop().is_some() && parking.pop().is_none());
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
                    let slot = Arc::<Place<u8>>::default();
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
