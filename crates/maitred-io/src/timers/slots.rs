//! The two words of each slot, in chunks that never move.

use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::OnceLock;

/// No deadline; not queued.
pub(super) const NEVER: u64 = u64::MAX;

/// Slots in the first chunk: one 16 KiB chunk serves a small server.
const FIRST_CHUNK: u32 = 1024;

/// Chunk `n` holds `FIRST_CHUNK << n` slots, so that this many chunks hold every `u32`.
const CHUNKS: usize = (u32::BITS - FIRST_CHUNK.trailing_zeros() + 1) as usize;

pub(super) struct Slot {
    /// When the owner wants to be told, or `NEVER`.
    pub(super) deadline: AtomicU64,
    /// The position of the slot's live queue entry, or `NEVER`; written under the queue's lock only.
    pub(super) queued: AtomicU64,
}

const _: () = assert!(cfg!(shuttle) || size_of::<Slot>() == 16, "16 bytes per connection");

impl Slot {
    fn new() -> Self {
        Self { deadline: AtomicU64::new(NEVER), queued: AtomicU64::new(NEVER) }
    }

    /// Takes the deadline and calls `report` if it is at or before `now`; returns it if it is later.
    pub(super) fn take_due(&self, now: u64, report: impl FnOnce()) -> Option<u64> {
        let mut deadline = self.deadline.load(SeqCst);
        while deadline <= now {
            match self.deadline.compare_exchange(deadline, NEVER, SeqCst, SeqCst) {
                Ok(_) => {
                    report();
                    return None;
                }
                Err(changed) => deadline = changed,
            }
        }
        (deadline != NEVER).then_some(deadline)
    }
}

/// The slots by number. Standard `OnceLock`s also under shuttle: making a chunk has no step another thread could
/// see half done.
pub(super) struct Slots {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
}

impl Slots {
    pub(super) fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    pub(super) fn slot(&self, id: u32) -> &Slot {
        let (chunk, offset) = place(id);
        let slots = self.chunks[chunk]
            .get_or_init(|| (0..(FIRST_CHUNK as usize) << chunk).map(|_| Slot::new()).collect());
        &slots[offset]
    }

    /// The slot of `id`, unless it lies in a chunk no id of which was ever set.
    pub(super) fn existing(&self, id: u32) -> Option<&Slot> {
        let (chunk, offset) = place(id);
        Some(&self.chunks[chunk].get()?[offset])
    }
}

/// Chunk and offset: chunk `n` begins at id `FIRST_CHUNK * (2^n - 1)`.
fn place(id: u32) -> (usize, usize) {
    let shifted = u64::from(id) + u64::from(FIRST_CHUNK);
    let chunk = shifted.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (shifted - (u64::from(FIRST_CHUNK) << chunk)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_place_of_its_own() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST_CHUNK - 1), (0, FIRST_CHUNK as usize - 1));
        assert_eq!(place(FIRST_CHUNK), (1, 0));
        assert_eq!(place(3 * FIRST_CHUNK - 1), (1, 2 * FIRST_CHUNK as usize - 1));
        assert_eq!(place(3 * FIRST_CHUNK), (2, 0));
        let (chunk, offset) = place(u32::MAX);
        assert!(chunk < CHUNKS && offset < (FIRST_CHUNK as usize) << chunk);
    }
}
