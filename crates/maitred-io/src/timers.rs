//! Deadlines of the connections of one poll group.
//!
//! A connection changes its deadline on every request, nearly always to a later one, and nearly no deadline is
//! ever reached. So a deadline is one atomic word per connection slot, and the queue behind it holds a *position*: a
//! point in time at or before the deadline at which the word is looked at again. Extending and cancelling write the
//! word only. Arming an idle slot and shortening below the queued position take the lock.
//!
//! There is no system call, no clock and no thread here: time is a parameter and the caller owns the timerfd.
//!
//! The queue is a binary heap with lazy deletion. Measured with 100,000 timers, an exact hierarchical wheel cost the
//! same for each operation (35 to 50 ns to arm or shorten) and moved due entries in 130 ns instead of 190, but when a
//! coarse slot came due it held the lock for 1.7 ms, the heap for 0.13 ms at most. A connection's entry moves once
//! per timeout, so the shorter pause weighs more. At 1,000,000 timers the wheel moved them three times as fast.
//!
//! # Races
//!
//! Any number of threads may call any method at any time.
//!
//! - [`Timers::set`] concurrent with [`Timers::expire`]: the deadline written is either reported by that `expire`
//!   (when it is due) or is queued afterwards; it is never lost. A deadline overwritten before `expire` looked is
//!   not reported.
//! - [`Timers::cancel`] concurrent with `expire`: one of the two takes the deadline. If it was `expire`, the id is
//!   in its `due` although `cancel` has returned; the owner of a slot that is reused checks its generation.
//! - Two `expire` calls share the due ids; each armed deadline is reported by one of them, once.
//! - Two threads may race to set the timerfd and the older value could win; [`Timers::arm_with`] has the loop
//!   that excludes it.
//!
//! The argument: `set` writes the deadline, then reads the queued position; `expire` clears the queued position,
//! then reads the deadline; all four are sequentially consistent. So either `set` sees the position cleared and
//! goes on under the lock, or `expire` sees the new deadline.

mod slots;

use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{NamedGuard, NamedLock};
use slots::{NEVER, Slots};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Stale queue entries always tolerated, so that a small group does not sweep after every few shortenings.
/// They cost 16 bytes each: 16 KiB.
const STALE_ALLOWED: usize = 1024;

/// The deadlines of one poll group, by connection slot number.
///
/// Memory: 16 bytes for each slot number up to the largest used (rounded up to a power of two), 16 bytes for each
/// queue entry. There is at most one live entry per slot, and never more stale entries than live ones (or
/// 1,024). Nothing is given back before the group ends.
pub struct Timers {
    slots: Slots,
    /// The first queued position; written under the lock only.
    earliest: AtomicU64,
    queue: NamedLock<Queue>,
}

struct Queue {
    /// Position and id, earliest first. An entry is live when it equals its slot's queued position.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// Entries whose slot has been queued elsewhere since.
    stale: usize,
}

impl Timers {
    /// An empty group.
    pub fn new() -> Self {
        Self {
            slots: Slots::new(),
            earliest: AtomicU64::new(NEVER),
            queue: NamedLock::with_name("timers".into(), Queue { heap: BinaryHeap::new(), stale: 0 }),
        }
    }

    /// Sets, extends or shortens the deadline of `id`, in nanoseconds of the caller's monotonic clock. A deadline in the
    /// past is due at the next [`expire`](Self::expire). `u64::MAX` means none, as with [`cancel`](Self::cancel).
    ///
    /// Costs one store, no lock and no wake-up, unless the new deadline lies before the position at which `id` is
    /// queued. Returns true when the earliest position of the group moved forward: the caller then sets its
    /// timerfd anew, see [`arm_with`](Self::arm_with).
    pub fn set(&self, id: u32, deadline: u64) -> bool {
        let slot = self.slots.slot(id);
        slot.deadline.store(deadline, SeqCst);
        if slot.queued.load(SeqCst) <= deadline {
            return false;
        }
        self.queue_earlier(id)
    }

    /// Removes the deadline of `id`, if it has one. One store: the position stays queued and is dropped when its
    /// time comes.
    pub fn cancel(&self, id: u32) {
        if let Some(slot) = self.slots.existing(id) {
            slot.deadline.store(NEVER, SeqCst);
        }
    }

    /// Appends to `due` the ids whose deadline is at or before `now` and removes their deadlines, so that each is
    /// reported once. An id whose deadline was extended meanwhile is queued again, not reported. The order is that
    /// of the queued positions.
    ///
    /// `now` may lag behind that of an earlier call (two threads have read the clock).
    pub fn expire(&self, now: u64, due: &mut Vec<u32>) {
        let now = now.min(NEVER - 1);
        if self.earliest.load(SeqCst) > now {
            return;
        }
        let mut queue = self.lock();
        let Queue { heap, stale } = &mut *queue;
        while let Some(mut first) = heap.peek_mut() {
            let Reverse((position, id)) = *first;
            if position > now {
                break;
            }
            let slot = self.slots.slot(id);
            if slot.queued.load(SeqCst) != position {
                PeekMut::pop(first);
                // Saturating: after a sweep a stale entry equal to the live one is no longer counted.
                *stale = stale.saturating_sub(1);
                continue;
            }
            slot.queued.store(NEVER, SeqCst);
            if let Some(later) = slot.take_due(now, || due.push(id)) {
                slot.queued.store(later, SeqCst);
                *first = Reverse((later, id));
            } else {
                PeekMut::pop(first);
            }
        }
        self.earliest.store(first_position(heap), SeqCst);
    }

    /// The first queued position, or `None` when nothing is queued. It may lie before the first true deadline, never
    /// after it: calling [`expire`](Self::expire) then reports nothing and moves it on.
    pub fn earliest(&self) -> Option<u64> {
        Some(self.earliest.load(SeqCst)).filter(|position| *position != NEVER)
    }

    /// Calls `set_timer` with [`earliest`](Self::earliest) until that is the value that was set last. With it, threads
    /// that arm the same timerfd concurrently cannot leave it at a value later than the earliest position. Call it when
    /// [`set`](Self::set) returned true and after every [`expire`](Self::expire).
    pub fn arm_with(&self, mut set_timer: impl FnMut(Option<u64>)) {
        let mut earliest = self.earliest();
        loop {
            set_timer(earliest);
            let after = self.earliest();
            if after == earliest {
                return;
            }
            earliest = after;
        }
    }

    /// The deadline of `id`, if it has one.
    pub fn deadline(&self, id: u32) -> Option<u64> {
        let deadline = self.slots.existing(id)?.deadline.load(SeqCst);
        (deadline != NEVER).then_some(deadline)
    }

    /// Number of queue entries, live and stale ones: the memory of the queue, in units of 16 bytes.
    pub fn queue_entries(&self) -> usize {
        self.lock().heap.len()
    }

    /// The slow half of [`set`](Self::set): queues `id` at its deadline.
    fn queue_earlier(&self, id: u32) -> bool {
        let mut queue = self.lock();
        let Queue { heap, stale } = &mut *queue;
        let slot = self.slots.slot(id);
        // Read again: since the store in `set` the deadline may have been reported, cancelled or replaced.
        let position = slot.deadline.load(SeqCst);
        let queued = slot.queued.load(SeqCst);
        if position >= queued {
            return false;
        }
        if queued != NEVER {
            *stale += 1;
        }
        heap.push(Reverse((position, id)));
        slot.queued.store(position, SeqCst);
        if *stale > STALE_ALLOWED.max(heap.len() / 2) {
            heap.retain(|Reverse((position, id))| self.slots.slot(*id).queued.load(SeqCst) == *position);
            *stale = 0;
        }
        let before = self.earliest.load(SeqCst);
        if position < before {
            self.earliest.store(position, SeqCst);
        }
        position < before
    }

    /// The counters of the lock of the heap.
    pub fn lock_snapshot(&self) -> maitred_stats::LockSnapshot {
        self.queue.snapshot()
    }

    fn lock(&self) -> NamedGuard<'_, Queue> {
        self.queue.lock()
    }
}

fn first_position(heap: &BinaryHeap<Reverse<(u64, u32)>>) -> u64 {
    heap.peek().map_or(NEVER, |Reverse((position, _))| *position)
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}
