//! The memory of long bodies, which the next ones use: of all threads, as the one that receives a body is seldom the one that drops it.
//!
//! Promises: `MOST` bytes wait here or are in their second use, however many connections there are: a body whose memory
//! was used before takes all of that, before its peer has sent as much. New memory costs a page fault for each 4 KiB, a
//! third of the cost of an upload of 10 MiB. Leaves out: short bodies, whose memory a thread keeps (`body.rs`), and when
//! memory is given back: maitred-spool, which counts bodies, calls [`leave_room`] and [`give_back_unused`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Half of the default budget of bodies: two bodies of the longest that it leaves in memory.
const MOST: usize = 32 * 1024 * 1024;

/// Memory that waits, and the count of lent memory. A process has one store; tests have others.
struct Store {
    /// The memory that was used last is behind the other pieces.
    waiting: Vec<Piece>,
    /// Bytes of bodies that use their memory for the second time or later.
    lent: usize,
}

struct Piece {
    memory: Vec<u8>,
    /// Has waited for one [`Store::take_unused`].
    seen: bool,
}

static STORE: Mutex<Store> = Mutex::new(Store::new());

/// Bytes that wait in the store of the process, for questions without its lock.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Counts memory of the store of the process as lent, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lent(usize);

impl Drop for Lent {
    fn drop(&mut self) {
        change(|store| store.lent -= self.0);
    }
}

/// Empty memory with room for `length` bytes, if there is some.
pub(crate) fn take(length: usize) -> Option<(Vec<u8>, Lent)> {
    if !is_kept() {
        return None;
    }
    let memory = change(|store| store.take(length))?;
    let lent = Lent(memory.capacity());
    Some((memory, lent))
}

/// Keeps the memory of a body that has gone. `lent` if it came from here.
pub(crate) fn keep(memory: Vec<u8>, lent: Option<Lent>) {
    // A body that was not filled has hardly used the memory.
    if lent.is_none() && memory.len() < memory.capacity() / 2 {
        return;
    }
    drop(lent);
    // Given back to the system without the lock.
    drop(change(|store| store.keep(memory)));
}

/// Whether memory waits.
pub fn is_kept() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// Has at most `room` bytes wait.
pub fn leave_room(room: u64) {
    if WAITING.load(Ordering::Relaxed) as u64 > room {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        drop(change(|store| store.shrink(room)));
    }
}

/// Gives back memory that no body has used since the last call. Returns whether that was the last.
pub fn give_back_unused() -> bool {
    drop(change(Store::take_unused));
    !is_kept()
}

fn change<T>(act: impl FnOnce(&mut Store) -> T) -> T {
    let mut store: MutexGuard<'_, Store> = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    let result = act(&mut store);
    WAITING.store(store.waits(), Ordering::Relaxed);
    result
}

impl Store {
    const fn new() -> Self {
        Self { waiting: Vec::new(), lent: 0 }
    }

    fn waits(&self) -> usize {
        self.waiting.iter().map(|piece| piece.memory.capacity()).sum()
    }

    /// The shortest piece with that room, and of several the one that was used last.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let pieces = self.waiting.iter().enumerate().rev();
        let fitting = pieces.map(|(place, piece)| (place, piece.memory.capacity()));
        let (place, bytes) = fitting.filter(|(_, bytes)| *bytes >= length).min_by_key(|(_, bytes)| *bytes)?;
        self.lent += bytes;
        Some(self.waiting.remove(place).memory)
    }

    /// Returns the pieces for which there is no room any more.
    fn keep(&mut self, mut memory: Vec<u8>) -> Vec<Piece> {
        memory.clear();
        self.waiting.push(Piece { memory, seen: false });
        self.shrink(MOST.saturating_sub(self.lent))
    }

    /// Takes out the pieces that have waited longest, until no more than `room` bytes wait.
    fn shrink(&mut self, room: usize) -> Vec<Piece> {
        let mut waits = self.waits();
        let more = self.waiting.iter().take_while(|piece| {
            let goes = waits > room;
            waits -= if goes { piece.memory.capacity() } else { 0 };
            goes
        });
        let count = more.count();
        self.waiting.drain(..count).collect()
    }

    fn take_unused(&mut self) -> Vec<Piece> {
        self.waiting.extract_if(.., |piece| std::mem::replace(&mut piece.seen, true)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    const MIB: usize = 1024 * 1024;

    fn store_of(pieces: &[usize]) -> Store {
        let mut store = Store::new();
        for mib in pieces {
            assert!(store.keep(Vec::with_capacity(mib * MIB)).is_empty(), "there is room");
        }
        store
    }

    fn mib(pieces: &[Piece]) -> Vec<usize> {
        pieces.iter().map(|piece| piece.memory.capacity() / MIB).collect()
    }

    #[test]
    fn the_shortest_memory_that_fits_is_taken_empty() {
        let mut store = store_of(&[8, 3, 4]);
        store.waiting[1].memory.extend_from_slice(b"of the last");
        let memory = store.waiting.remove(1).memory;
        assert!(store.keep(memory).is_empty());
        let taken = store.take(2 * MIB).expect("kept");
        assert_eq!((taken.capacity(), taken.len(), store.lent), (3 * MIB, 0, 3 * MIB));
        assert_eq!(mib(&store.waiting), [8, 4]);
        assert!(store.take(9 * MIB).is_none());
    }

    #[test]
    fn what_waits_and_what_is_lent_have_one_bound() {
        let mut store = store_of(&[16, 16]);
        assert_eq!(mib(&store.keep(Vec::with_capacity(8 * MIB))), [16], "the oldest goes");
        let lent = store.take(16 * MIB).expect("kept");
        assert_eq!(store.waits(), 8 * MIB);
        // Its peer has sent nothing yet: the memory counts all the same.
        assert_eq!(mib(&store.keep(Vec::with_capacity(16 * MIB))), [8]);
        assert_eq!(mib(&store.keep(Vec::with_capacity(16 * MIB))), [16]);
        assert_eq!(store.waits() + lent.capacity(), MOST);
        assert_eq!(mib(&store.keep(Vec::with_capacity(33 * MIB))), [16, 33], "longer than all");
    }

    #[test]
    fn memory_that_waits_is_given_back_for_room_and_when_it_is_not_used() {
        let mut store = store_of(&[4, 5, 6]);
        assert!(store.shrink(15 * MIB).is_empty());
        assert_eq!(mib(&store.shrink(11 * MIB)), [4]);
        assert!(store.take_unused().is_empty(), "not before it has waited");
        let used = store.take(6 * MIB).expect("kept");
        store.lent -= used.capacity();
        store.keep(used);
        assert_eq!(mib(&store.take_unused()), [5]);
        assert_eq!(mib(&store.take_unused()), [6]);
        assert_eq!(mib(&store.shrink(0)), []);
    }

    /// The only test that uses the store of the process for bodies so long.
    #[test]
    fn a_body_leaves_its_memory_for_the_next_one() {
        let body = |mib: usize| {
            let mut body = Body::default();
            assert!(body.try_reserve(mib * MIB));
            body.hold(Box::new(()));
            body.memory_mut().expect("in memory").resize(mib * MIB, b'x');
            body
        };
        let place = |body: &Body| body.as_bytes().expect("in memory").as_ptr();
        let first = body(10);
        let address = place(&first);
        drop(first);
        let mut begun = Body::default();
        begun.memory_mut().expect("in memory").extend_from_slice(b"begun");
        assert!(begun.try_reserve(9 * MIB));
        assert_eq!((place(&begun), begun.as_bytes()), (address, Some(&b"begun"[..])));
        assert!(change(|store| store.lent) >= 10 * MIB);
        // This body has no share of a budget, and only the end of a share has unused memory given back.
        drop(begun);
        assert!(take(9 * MIB).is_none() && change(|store| store.lent) < 10 * MIB);
        let mut hardly_used = Body::default();
        assert!(hardly_used.try_reserve(9 * MIB));
        hardly_used.hold(Box::new(()));
        drop(hardly_used);
        assert!(take(9 * MIB).is_none());
        drop(body(10));
        leave_room(0);
        assert!(take(9 * MIB).is_none());
    }

    #[test]
    fn a_body_that_is_announced_takes_room_for_as_much_as_has_come() {
        let mut body = Body::default();
        for length in [0, 400_000, 2 * MIB] {
            body.memory_mut().expect("in memory").resize(length, b'x');
            assert!(body.try_reserve(100 * MIB - length));
            let room = body.memory_mut().expect("in memory").capacity() - length;
            assert!((MIB / 2..=length.max(MIB)).contains(&room), "{room} behind {length}");
        }
    }
}
