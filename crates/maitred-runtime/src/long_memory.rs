//! The memory of long bodies, which the next ones use: of all threads, as the one that receives a body is seldom the one that drops it.
//!
//! Promises: no more than `MOST` bytes are kept, and none that were not used between two [sweeps](sweep). New memory
//! costs a page fault for each 4 KiB, a third of the cost of an upload of 10 MiB. Leaves out: short bodies, whose
//! memory a thread keeps (`body.rs`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes kept at most: a body of the longest that the default budget leaves in memory, or some shorter ones.
const MOST: usize = 16 * 1024 * 1024;

/// Memory that has waited for so long is given back at the next sweep, in nanoseconds.
const SWEEP_EVERY: u64 = 10_000_000_000;

/// The pieces of memory that wait, the one that was used last behind the others, and whether a sweep has seen them.
static KEPT: Mutex<Vec<(Vec<u8>, bool)>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<(Vec<u8>, bool)>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empty memory with room for `length` bytes, if there is some.
pub(crate) fn take(length: usize) -> Option<Vec<u8>> {
    let mut kept = kept();
    let place = kept.iter().rposition(|(memory, _)| memory.capacity() >= length)?;
    Some(kept.remove(place).0)
}

/// Keeps memory that is not used any more.
pub(crate) fn keep(mut memory: Vec<u8>) {
    memory.clear();
    let mut dropped = Vec::new();
    if memory.capacity() <= MOST {
        let mut kept = kept();
        kept.push((memory, false));
        while kept.iter().map(|(memory, _)| memory.capacity()).sum::<usize>() > MOST {
            dropped.push(kept.remove(0));
        }
    }
    // Given back to the system without the lock.
    drop(dropped);
}

/// Gives back the memory that the last sweep has seen already. To be called at any time; `now` in nanoseconds of a
/// clock that never goes back. Most calls are one load.
pub fn sweep(now: u64) {
    static SWEPT: AtomicU64 = AtomicU64::new(0);
    let last = SWEPT.load(Ordering::Relaxed);
    let is_due = now.saturating_sub(last) >= SWEEP_EVERY;
    if !is_due || SWEPT.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let mut kept = kept();
    let unused: Vec<_> = kept.extract_if(.., |(_, seen)| std::mem::replace(seen, true)).collect();
    drop(kept);
    drop(unused);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn memory_is_used_again_within_a_bound_and_given_back_when_unused() {
        let memory = Vec::with_capacity(10 * MIB);
        let place = memory.as_ptr();
        keep(memory);
        assert!(take(11 * MIB).is_none(), "too short");
        let again = take(9 * MIB).expect("kept");
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        keep(again);
        keep(Vec::with_capacity(8 * MIB));
        assert!(take(9 * MIB).is_none(), "the older one had to go");
        keep(Vec::with_capacity(17 * MIB));
        sweep(SWEEP_EVERY);
        assert!(take(17 * MIB).is_none(), "too long");
        let used = take(8 * MIB).expect("seen once");
        keep(used);
        sweep(2 * SWEEP_EVERY);
        sweep(3 * SWEEP_EVERY - 1);
        let used = take(8 * MIB).expect("not yet");
        keep(used);
        sweep(3 * SWEEP_EVERY);
        sweep(4 * SWEEP_EVERY);
        assert!(take(MIB).is_none());
        let memory = Vec::with_capacity(2 * MIB);
        let place = memory.as_ptr();
        keep(memory);
        let mut body = Body::default();
        body.memory_mut().expect("in memory").extend_from_slice(b"begun");
        assert!(body.try_reserve(MIB));
        assert_eq!(body.as_bytes().map(|bytes| (bytes.as_ptr(), bytes)), Some((place, &b"begun"[..])));
        drop(body);
        let after = take(MIB).expect("kept");
        assert_eq!(after.as_ptr(), place);
    }
}
