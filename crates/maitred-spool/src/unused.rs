//! Gives the memory of long bodies back some seconds after their last use.
//!
//! Promises: the thread is there only while memory waits for the next bodies. Leaves out: how much waits
//! (`long_memory.rs` of maitred-runtime), and giving it back for bodies that need the room (`memory.rs`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use maitred_io::memory;
use maitred_runtime::long_memory;

/// The time between two looks. Memory without a body goes at the second look, after one to two pauses. New memory for an
/// upload every few seconds costs nothing that could be measured.
const PAUSE: Duration = Duration::from_secs(2);

/// The system keeps 15 bytes of a name.
const THREAD: &str = "maitred-memory";

/// The thread is there.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Has the memory that waits given back after a while. Most calls are one load.
pub(crate) fn watch() {
    if !long_memory::is_kept() || WATCHED.swap(true, Ordering::AcqRel) {
        return;
    }
    if thread::Builder::new().name(THREAD.to_owned()).spawn(|| give_back(PAUSE)).is_err() {
        long_memory::leave_room(0);
        WATCHED.store(false, Ordering::Release);
    }
}

fn give_back(pause: Duration) {
    loop {
        thread::sleep(pause);
        if !long_memory::give_back_unused() {
            continue;
        }
        memory::give_back();
        WATCHED.store(false, Ordering::Release);
        // A body may have left memory since the look and found this thread still there: then this thread goes on.
        if !long_memory::is_kept() || WATCHED.swap(true, Ordering::AcqRel) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use maitred_runtime::Body;

    use super::*;
    use crate::BodyMemory;

    const MIB: usize = 1024 * 1024;

    /// A body of so many bytes is received and dropped; the address of its memory.
    fn pass(budget: &std::sync::Arc<BodyMemory>, length: usize) -> *const u8 {
        let mut share = budget.begin(Some(length as u64), || ()).expect("room");
        let mut body = Body::default();
        assert!(body.try_reserve(length) && share.grow(length as u64));
        let memory = body.memory_mut().expect("in memory");
        memory.resize(length, b'x');
        let place = memory.as_ptr();
        share.end();
        body.hold(Box::new(share));
        place
    }

    /// One test: the memory that waits is that of the process.
    #[test]
    fn memory_waits_within_the_budget_and_not_for_long() {
        let budget = BodyMemory::new(40 * MIB as u64);
        let first = pass(&budget, 10 * MIB);
        assert!(long_memory::is_kept());
        assert_eq!(pass(&budget, 9 * MIB), first, "used again");
        // The others need the room.
        let share = |_| budget.begin(None, || ()).expect("a budget");
        let mut others: Vec<_> = (0..4).map(share).collect();
        assert!(others.iter_mut().all(|share| share.grow(7 * MIB as u64)) && long_memory::is_kept());
        assert!(others.iter_mut().all(|share| share.grow(8 * MIB as u64)) && !long_memory::is_kept());
        drop(others);
        pass(&budget, 5 * MIB);
        let mut kept = budget.keep();
        kept.change(36 * MIB as u64);
        assert!(!long_memory::is_kept(), "bytes beside bodies need it, too");
        drop(kept);
        pass(&budget, 6 * MIB);
        pass(&budget, 7 * MIB);
        assert!(long_memory::is_kept());
        give_back(Duration::ZERO);
        assert!(!long_memory::is_kept());
        assert_eq!(budget.figures().held, 0);
    }
}
