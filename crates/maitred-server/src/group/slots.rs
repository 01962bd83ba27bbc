//! The slots of a poll group: one a connection, numbered densely, never moved, never freed.
//!
//! An event carries slot and generation. The generation rises when a connection ends, so that an
//! event of a connection that is gone is told apart from one of its successor in the same slot.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use maitred_io::sync::NamedLock;
use maitred_runtime::lock_order::SlotHeld;

use super::claim::Claim;

/// Slots in one allocation.
const CHUNK: usize = 256;

/// The most slots: one million connections a group, more than descriptors (Linux's default
/// fs.nr_open is 1,048,576).
pub(crate) const MAX_SLOTS: usize = 1 << 20;

/// One place for a connection.
pub(crate) struct Slot<R> {
    pub(crate) claim: Claim,
    resident: Mutex<Option<R>>,
}

impl<R> Slot<R> {
    fn new() -> Self {
        Self { claim: Claim::default(), resident: Mutex::new(None) }
    }

    /// What lives here, for a turn or for the responder of an exchange. Held only over work that
    /// does not wait, never over application code.
    pub(crate) fn lock(&self) -> Occupied<'_, R> {
        let held = SlotHeld::begin();
        let resident = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        Occupied { resident, _held: held }
    }

    pub(crate) fn generation(&self) -> u32 {
        self.claim.generation()
    }
}

/// What lives in a slot, under its lock.
pub(crate) struct Occupied<'a, R> {
    resident: MutexGuard<'a, Option<R>>,
    _held: SlotHeld,
}

impl<R> Deref for Occupied<'_, R> {
    type Target = Option<R>;

    fn deref(&self) -> &Option<R> {
        &self.resident
    }
}

impl<R> DerefMut for Occupied<'_, R> {
    fn deref_mut(&mut self) -> &mut Option<R> {
        &mut self.resident
    }
}

/// Made at once, and never moved.
type Chunk<R> = Box<[Slot<R>]>;

/// All slots of a group.
pub(crate) struct Slots<R> {
    chunks: Box<[OnceLock<Chunk<R>>]>,
    free: NamedLock<Free>,
}

struct Free {
    /// Used again last-in first-out: the warm ones.
    list: Vec<u32>,
    /// How many slots have ever been used.
    made: u32,
}

impl<R> Slots<R> {
    /// What the lock of the free list has counted.
    pub(crate) fn lock_snapshot(&self) -> maitred_stats::LockSnapshot {
        self.free.snapshot()
    }

    pub(crate) fn new() -> Self {
        let chunks = (0..MAX_SLOTS / CHUNK).map(|_| OnceLock::new()).collect();
        Self { chunks, free: NamedLock::with_name("slots".into(), Free { list: Vec::new(), made: 0 }) }
    }

    /// The slot with this number, if it was ever taken.
    pub(crate) fn find(&self, index: u32) -> Option<&Slot<R>> {
        self.chunks.get(index as usize / CHUNK)?.get()?.get(index as usize % CHUNK)
    }

    /// A free slot, or `None` at [`MAX_SLOTS`].
    pub(crate) fn take(&self) -> Option<(u32, &Slot<R>)> {
        let index = {
            let mut free = self.free.lock();
            match free.list.pop() {
                Some(index) => index,
                None if (free.made as usize) < MAX_SLOTS => {
                    free.made += 1;
                    free.made - 1
                }
                None => return None,
            }
        };
        let chunk = self.chunks.get(index as usize / CHUNK)?;
        let slots = chunk.get_or_init(|| (0..CHUNK).map(|_| Slot::new()).collect());
        slots.get(index as usize % CHUNK).map(|slot| (index, slot))
    }

    /// Gives a slot back whose connection has been taken out and whose claim is released.
    pub(crate) fn give_back(&self, index: u32) {
        self.free.lock().list.push(index);
    }

    /// Marks every event of the present connection as outdated.
    pub(crate) fn retire(&self, slot: &Slot<R>) {
        slot.claim.retire();
    }

    /// The numbers of all slots ever used.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.free.lock().made
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// nginx's idle keep-alive connection, measured; ours has no memory beside these while it is idle.
    const MAX_IDLE: usize = 517;

    /// Its deadline, and its place in the queue of deadlines in a heap that has just doubled.
    const TIMER: usize = 16 + 2 * 16;

    #[test]
    fn an_idle_connection_is_small() {
        let slot = size_of::<Slot<crate::connection::Connection>>();
        assert!(slot + TIMER <= MAX_IDLE / 2, "{slot} + {TIMER} bytes");
    }
}
