//! Memory for request bodies beyond the allowance of each: one budget for all of a server.
//!
//! ```text
//!   0 ............................... 7/8 .......... budget
//!   every body grows in memory        the largest that   nothing grows: a body
//!                                     is being received  that needs more goes
//!                                     goes to its file   to its file itself
//! ```
//! Promises: the bodies of all requests together hold at most the budget, one of them at most a quarter of it. A body
//! counts from its begin until its last reader has gone, or until its bytes are in its file. Leaves out: the bytes that
//! a body may hold without asking (`body-memory`), and files (`lib.rs`). Bytes that are [kept](Kept) beside bodies
//! count too, and may pass the budget. Memory of bodies that have gone waits for the next ones in what the budget has
//! left; a body that needs the room has it given back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_runtime::long_memory;

use super::unused;

/// The budget, and the bytes held of it.
#[derive(Default)]
pub struct BodyMemory {
    most: u64,
    held: AtomicU64,
    /// The part of it that is on its way to files.
    leaving: AtomicU64,
    /// Bodies that are being received.
    growing: Mutex<Vec<Arc<Growing>>>,
}

/// A body that is being received.
struct Growing {
    held: AtomicU64,
    /// The body goes to its file.
    leaves: AtomicBool,
    /// Has its connection look.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The bytes that are held of the budget, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyMemoryFigures {
    /// Held by bodies now.
    pub held: u64,
    /// The budget.
    pub most: u64,
}

impl BodyMemory {
    /// A budget of `most` bytes; with 0 no body holds any.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, ..Self::default() })
    }

    /// The bytes that are held, and the budget.
    pub fn figures(&self) -> BodyMemoryFigures {
        BodyMemoryFigures { held: self.held.load(Ordering::Relaxed), most: self.most }
    }

    /// A body begins that will have `length` bytes, if that is known. None if it goes to a file in any case. `wake` is called, from
    /// any thread, when the body has to [leave](Share::leaves) memory.
    pub fn begin(
        self: &Arc<Self>,
        length: Option<u64>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Share> {
        if self.most == 0 || length.is_some_and(|length| length > self.quarter()) {
            return None;
        }
        let growing = Arc::new(Growing { held: 0.into(), leaves: false.into(), wake: Box::new(wake) });
        self.lock().push(Arc::clone(&growing));
        Some(Share { memory: Arc::clone(self), growing: Some(growing), held: 0, leaving: 0 })
    }

    /// A share of so many bytes at once that does not grow, if there is room without another body leaving.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Option<Share> {
        if self.held.load(Ordering::Relaxed) + bytes > self.high_mark() {
            return None;
        }
        let mut share = Share { memory: Arc::clone(self), growing: None, held: 0, leaving: 0 };
        share.grow(bytes).then_some(share)
    }

    /// An empty account of bytes that count but cannot go to a file.
    pub fn keep(self: &Arc<Self>) -> Kept {
        Kept { memory: Arc::clone(self), held: 0 }
    }

    /// Whether so much is held that the largest bodies leave.
    pub fn is_low(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.high_mark()
    }

    /// Whether so much is held that bytes which cannot go to a file have to wait: bodies need the rest.
    pub fn is_half_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.most / 2
    }

    /// The most that one body may hold.
    fn quarter(&self) -> u64 {
        self.most / 4
    }

    /// The mark from which on the largest bodies leave.
    fn high_mark(&self) -> u64 {
        self.most - self.most / 8
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Growing>>> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the largest bodies that are being received leave, until those that stay fit into seven eighths.
    fn relieve(&self) {
        let mut woken = Vec::new();
        {
            let growing = self.lock();
            let held_by = |body: &Arc<Growing>| body.held.load(Ordering::Relaxed);
            let told: u64 = growing.iter().filter(|body| body.leaves()).map(held_by).sum();
            let leaving = told + self.leaving.load(Ordering::Relaxed);
            let mut stays = self.held.load(Ordering::Relaxed).saturating_sub(leaving);
            while stays > self.high_mark() {
                let Some(largest) =
                    growing.iter().filter(|body| !body.leaves()).max_by_key(|body| held_by(body))
                else {
                    break;
                };
                if held_by(largest) == 0 {
                    break;
                }
                stays = stays.saturating_sub(held_by(largest));
                largest.leaves.store(true, Ordering::Release);
                woken.push(Arc::clone(largest));
            }
        }
        // Without the lock: it may be anything.
        for body in woken {
            (body.wake)();
        }
    }
}

impl Growing {
    fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }
}

/// The share of one body in the budget, until it is dropped.
pub struct Share {
    memory: Arc<BodyMemory>,
    /// The body, while it is being received.
    growing: Option<Arc<Growing>>,
    held: u64,
    /// Bytes of the share that are on their way to the file.
    leaving: u64,
}

impl Share {
    /// Has it hold `bytes` in all. False if there is no room for that: the body goes to its file, and its share stays
    /// until that is written.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.held);
        let memory = &self.memory;
        if bytes > memory.quarter() {
            return false;
        }
        let fits = |held: u64| Some(held + more).filter(|sum| *sum <= memory.most);
        let Ok(before) = memory.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) else {
            return false;
        };
        self.held += more;
        long_memory::leave_room(memory.most - before - more);
        if let Some(growing) = &self.growing {
            growing.held.store(self.held, Ordering::Relaxed);
        }
        if before + more > memory.high_mark() {
            memory.relieve();
        }
        true
    }

    /// Whether it has to leave memory: others need the room, and it is the largest.
    pub fn leaves(&self) -> bool {
        self.growing.as_ref().is_some_and(|growing| growing.leaves())
    }

    /// The body goes to its file: it does not grow any more, and no other body has to leave for the room that it gives
    /// back soon.
    pub fn leave(&mut self) {
        self.leaving = self.held;
        self.memory.leaving.fetch_add(self.leaving, Ordering::Relaxed);
        self.end();
    }

    /// All of it has come: it does not grow any more.
    pub fn end(&mut self) {
        if let Some(growing) = self.growing.take() {
            let mut all = self.memory.lock();
            if let Some(place) = all.iter().position(|other| Arc::ptr_eq(other, &growing)) {
                all.swap_remove(place);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.end();
        let memory = &self.memory;
        memory.leaving.fetch_sub(self.leaving, Ordering::Relaxed);
        let before = memory.held.fetch_sub(self.held, Ordering::Relaxed);
        // The body's own memory waits now.
        long_memory::leave_room((memory.most + self.held).saturating_sub(before));
        unused::watch();
    }
}

/// Bytes that count against the budget until this is dropped, and may pass it: its holder looks [whether there is
/// room](BodyMemory::is_low).
pub struct Kept {
    memory: Arc<BodyMemory>,
    held: u64,
}

impl Kept {
    /// Has it hold `bytes` in all. Bodies leave for it where they have to.
    pub fn change(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.held, bytes);
        if bytes == before {
            return;
        }
        let memory = &self.memory;
        memory.held.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        long_memory::leave_room(memory.most.saturating_sub(memory.held.load(Ordering::Relaxed)));
        if bytes > before && memory.is_low() {
            memory.relieve();
        }
    }

    /// The bytes that it holds.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The budget.
    pub fn memory(&self) -> &BodyMemory {
        &self.memory
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.change(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn body(memory: &Arc<BodyMemory>, woken: &Arc<AtomicUsize>) -> Share {
        let woken = Arc::clone(woken);
        let count = move || {
            woken.fetch_add(1, Ordering::Relaxed);
        };
        memory.begin(None, count).expect("a budget")
    }

    #[test]
    fn held_bytes_are_given_back() {
        let (memory, woken) = (BodyMemory::new(1000), Arc::default());
        let mut one = body(&memory, &woken);
        assert!(one.grow(100) && one.grow(250) && one.grow(200));
        assert_eq!(memory.figures(), BodyMemoryFigures { held: 250, most: 1000 });
        one.end();
        assert_eq!(memory.figures().held, 250, "until nobody reads it");
        drop(one);
        assert_eq!(memory.figures().held, 0);
    }

    #[test]
    fn a_fixed_share_is_there_or_not() {
        let memory = BodyMemory::new(1000);
        let shares: Vec<Option<Share>> = (0..5).map(|_| memory.hold(240)).collect();
        assert_eq!(shares.iter().flatten().count(), 3);
        assert_eq!(memory.figures().held, 720);
        drop(shares);
        assert_eq!(memory.figures().held, 0);
        assert!(memory.hold(251).is_none(), "more than a quarter");
    }

    #[test]
    fn one_body_has_at_most_a_quarter() {
        let memory = BodyMemory::new(1000);
        assert!(memory.begin(Some(251), || ()).is_none(), "known from its begin");
        let mut one = memory.begin(None, || ()).expect("not known");
        assert!(one.grow(250) && !one.grow(251));
        assert_eq!(memory.figures().held, 250, "what it had");
        assert!(BodyMemory::new(0).begin(Some(1), || ()).is_none(), "no budget");
    }

    #[test]
    fn the_largest_leaves_first_and_only_as_many_as_have_to() {
        let (memory, woken) = (BodyMemory::new(1000), Arc::new(AtomicUsize::new(0)));
        let mut bodies: Vec<Share> = (0..5).map(|_| body(&memory, &woken)).collect();
        for (body, bytes) in bodies.iter_mut().zip([150, 230, 200, 180, 100]) {
            assert!(body.grow(bytes));
        }
        assert_eq!(woken.load(Ordering::Relaxed), 0, "860 of 1000");
        assert!(bodies[4].grow(120));
        let leaving: Vec<bool> = bodies.iter().map(Share::leaves).collect();
        assert_eq!((leaving, woken.load(Ordering::Relaxed)), (vec![false, true, false, false, false], 1));
        assert!(bodies[0].grow(200), "what leaves counts no more");
        bodies[1].leave();
        assert!(bodies[2].grow(250), "also while it is being written");
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert!(!bodies[3].grow(250), "but is held until it is written");
        drop(bodies.remove(1));
        assert!(bodies[2].grow(250));
    }

    #[test]
    fn bodies_leave_for_bytes_that_cannot() {
        let (memory, woken) = (BodyMemory::new(1000), Arc::new(AtomicUsize::new(0)));
        let mut body = body(&memory, &woken);
        assert!(body.grow(200));
        let mut kept = memory.keep();
        kept.change(600);
        assert!(!memory.is_low() && !body.leaves());
        kept.change(1100);
        assert!(memory.is_low() && body.leaves());
        assert_eq!((kept.held(), memory.figures().held), (1100, 1300), "it may pass the budget");
        kept.change(300);
        assert_eq!((kept.held(), memory.figures().held), (300, 500));
        drop(kept);
        assert_eq!(memory.figures().held, 200);
    }

    #[test]
    fn a_complete_body_does_not_leave() {
        let (memory, woken) = (BodyMemory::new(1000), Arc::new(AtomicUsize::new(0)));
        let mut done: Vec<Share> = (0..3).map(|_| body(&memory, &woken)).collect();
        done.iter_mut().for_each(|body| {
            assert!(body.grow(250));
            body.end();
        });
        let mut small = body(&memory, &woken);
        assert!(small.grow(200));
        assert!(small.leaves(), "there is nobody else");
        assert!(done.iter().all(|body| !body.leaves()));
    }
}
