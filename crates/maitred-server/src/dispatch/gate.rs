//! The interpreter gate: one thread at a time runs application code, and a second comer watches it.
//!
//! A language whose interpreter is one lock gains nothing from two threads that want it: each would
//! interrupt the other in the middle of a request. So one thread, the runner, runs request after
//! request. Who arrives meanwhile queues its request; the first of them watches. Only when the runner
//! has stood still for [`THRESHOLD`] (it sleeps, or waits for a database, and the interpreter is
//! free) does the watcher take over, and the old runner finds out when it comes back.
//!
//! ```text
//! since == 0: nobody runs     arrive: run
//! since != 0                  arrive: queue, and watch (the first) or park (the others)
//! runner: entry by entry; pops the queue, looks at the ready list, polls without waiting
//! watcher: since old, or 0?   take the oldest request and run it, else poll
//! ```
//! Arriving where nobody runs, and leaving where nothing waits, take no lock: `since` is changed by compare-and-swap, always
//! from what was seen. Who leaves looks at the queue's length after it has made `since` 0, and who queues looks at `since`
//! after that: one of them sees the other.
//!
//! Invariants, checked under shuttle: the queue is not empty only while somebody watches or the
//! runner is going to look at it; at most one watches; `since` becomes 0 only by the thread whose entry it is, before
//! that thread looks at the queue or calls another one.

use std::io;

use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::pause::Pause;
use super::pool::Pool;
use super::queue::Queue;

/// A runner that stands still this long is waiting for something, not computing: a request of
/// ordinary length takes 50 to 200 µs, twice that on a slow machine. In nanoseconds.
const THRESHOLD: u64 = 500_000;

/// Responses leave at once for this time after one had to wait for a handler that stood still, in nanoseconds.
const PROMPT: u64 = 100_000_000;

/// The watcher's pause while the runner gets on: with [`CONFIRM`] a request waits for less than a millisecond where the
/// interpreter is free. In nanoseconds.
const LOOK: u64 = 700_000;

/// The watcher's pause before it takes a runner it has seen for the first time for one that stands still. A system that
/// stops the whole processor for a while, as a hypervisor does, wakes the watcher first. In nanoseconds.
const CONFIRM: u64 = 100_000;

/// Whether somebody who finds a request waiting may run it: nobody runs, or the runner that entered at `since` stands still.
fn is_stuck(since: u64, now: u64) -> bool {
    since == 0 || now.saturating_sub(since) >= THRESHOLD
}

/// What a look of the watcher saw.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    since: u64,
    /// When it began to watch.
    began: u64,
}

/// The words of the gate.
pub(super) struct Gate {
    /// When the runner entered application code last, in monotonic nanoseconds; 0: nobody runs.
    since: AtomicU64,
    /// Somebody watches. Written under the pool's lock.
    watched: AtomicBool,
    /// Between two looks of the watcher.
    pause: Pause,
    /// The runner is busy and wants a watcher.
    wanted: AtomicBool,
    /// Until then responses leave at once: a handler has stood still while others waited.
    prompt: AtomicU64,
}

/// What a thread with a request, or one that found the queue not empty, does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival<J> {
    /// Runs this request; the second value is its entry.
    Run(J, u64),
    /// Watches.
    Watch,
    /// Parks: somebody watches.
    Park,
    /// The queue is full, and what is too much is refused.
    Refuse(J),
}

/// What a look of the watcher led to.
pub(super) enum Watched<J> {
    /// Runs this request; it does not watch any more.
    Run(J, u64),
    /// Nothing waits: it does not watch any more.
    Idle,
    /// Looks again after so many nanoseconds.
    Sleep(u64),
}

/// What a runner without another request does.
pub(super) enum Left<J> {
    /// Runs this request, which came in the last moment.
    Next(J),
    /// It is no runner any more.
    Gone,
}

impl Gate {
    /// # Errors
    /// Out of descriptors.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            since: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            pause: Pause::new()?,
            wanted: AtomicBool::new(false),
            prompt: AtomicU64::new(0),
        })
    }

    /// The watcher's pause from `now` on.
    pub(super) fn pause(&self, now: u64, nanos: u64) {
        self.pause.wait(now, nanos);
    }

    /// The runner gets on at `now`, and somebody watches.
    pub(super) fn get_on(&self, now: u64) {
        self.pause.put_off(now, LOOK);
    }

    /// Makes the calling thread the runner, from `now` on, if `since` is what was seen.
    fn enter(&self, seen: u64, now: u64) -> bool {
        self.since.compare_exchange(seen, now, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether somebody watches.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::SeqCst)
    }

    /// The runner whose last entry or return was `mine` gets on at `now`. False when it has been
    /// taken over.
    pub(super) fn renew(&self, mine: u64, now: u64) -> bool {
        self.enter(mine, now)
    }

    /// Whether the response of a handler that is entered at `now` may wait for others, if somebody watches who
    /// sends it when the next handler stands still: none has for a while.
    pub(super) fn may_defer(&self, now: u64) -> bool {
        now >= self.prompt.load(Ordering::Relaxed)
    }

    /// The runner is busy and wants a watcher: whoever polls next.
    pub(super) fn want_watcher(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Whether the runner wants a watcher; asked once.
    pub(super) fn take_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::SeqCst)
    }

    /// A response had to wait for a handler that stood still.
    pub(super) fn be_prompt(&self, now: u64) {
        self.prompt.store(now + PROMPT, Ordering::Relaxed);
    }
}

impl<J> Pool<J> {
    /// A thread has a request to run at `now`.
    pub(super) fn arrive(&self, job: J, now: u64) -> Arrival<J> {
        if self.queued() == 0 && self.gate.enter(0, now) {
            return Arrival::Run(job, now);
        }
        let mut queue = self.lock();
        if let Err(job) = self.push(&mut queue, job, now) {
            return Arrival::Refuse(job);
        }
        // The runner may have left without seeing this request.
        if self.gate.enter(0, now)
            && let Some(oldest) = self.pop_from(&mut queue)
        {
            return Arrival::Run(oldest, now);
        }
        self.watch_or_park()
    }

    /// A thread without a request looks at the queue; `None` when it is empty.
    pub(super) fn look(&self, now: u64) -> Option<Arrival<J>> {
        let mut queue = self.lock();
        if queue.is_empty() {
            return None;
        }
        let since = self.gate.since.load(Ordering::SeqCst);
        // This thread has not been idle before.
        if is_stuck(since, now)
            && let Some(job) = self.take_over(&mut queue, since, now, now)
        {
            return Some(Arrival::Run(job, now));
        }
        Some(self.watch_or_park())
    }

    /// A thread that polls is to watch instead. False when nobody runs, or somebody watches.
    pub(super) fn begin_watch(&self) -> bool {
        let _queue = self.lock();
        self.gate.since.load(Ordering::SeqCst) != 0 && !self.gate.watched.swap(true, Ordering::SeqCst)
    }

    /// Under the lock.
    fn watch_or_park(&self) -> Arrival<J> {
        if self.gate.watched.swap(true, Ordering::SeqCst) { Arrival::Park } else { Arrival::Watch }
    }

    /// Takes over from the runner that `entered` then, with the oldest request; `None` when nothing waits or another one
    /// runs meanwhile. This thread has been idle since `idle`.
    fn take_over(&self, queue: &mut Queue<J>, entered: u64, idle: u64, now: u64) -> Option<J> {
        let waits = queue.oldest()?;
        if !self.gate.enter(entered, now) {
            return None;
        }
        let unused = now.saturating_sub(waits.max(entered).max(idle.min(self.idle_since().unwrap_or(idle))));
        if entered != 0 && unused > 0 {
            self.audit.add(unused);
        }
        self.pop_from(queue)
    }

    /// One look of the watcher at `now`. `seen` is what it saw at the look before.
    pub(super) fn watch(&self, now: u64, seen: &mut Seen) -> Watched<J> {
        let before = *seen;
        *seen = Seen {
            since: self.gate.since.load(Ordering::SeqCst),
            began: if before.began == 0 { now } else { before.began },
        };
        let age = now.saturating_sub(seen.since);
        if seen.since != 0 && age < THRESHOLD {
            // It has not put this look off: a long request, or the one that stands still.
            return Watched::Sleep((THRESHOLD - age).max(CONFIRM));
        }
        if seen.since != 0 && seen.since != before.since {
            // Where all threads were stopped for a while, the runner goes on now.
            return Watched::Sleep(CONFIRM);
        }
        let mut queue = self.lock();
        let next = match self.take_over(&mut queue, seen.since, seen.began, now) {
            Some(job) => Watched::Run(job, now),
            None if queue.is_empty() => Watched::Idle,
            // Another one has entered in this moment.
            None => return Watched::Sleep(CONFIRM),
        };
        self.gate.watched.store(false, Ordering::SeqCst);
        next
    }

    /// The watcher ends although something may wait: the server stops.
    pub(super) fn end_watch(&self) {
        let _queue = self.lock();
        self.gate.watched.store(false, Ordering::SeqCst);
    }

    /// The runner whose last return was `mine` has nothing to run.
    pub(super) fn leave(&self, mine: u64) -> Left<J> {
        while self.gate.renew(mine, 0) && self.queued() > 0 {
            let mut queue = self.lock();
            if !self.gate.enter(0, mine) {
                break;
            }
            if let Some(job) = self.pop_from(&mut queue) {
                return Left::Next(job);
            }
        }
        Left::Gone
    }

    /// The runner whose last return was `mine` has something to run beside the others. Whoever watches takes over
    /// at once; false when nobody does and another thread is to be called.
    pub(super) fn step_aside(&self, mine: u64, now: u64) -> bool {
        if !self.gate.renew(mine, 0) {
            return true;
        }
        let watched = self.gate.is_watched();
        if watched {
            self.gate.pause.cut_short(now);
        }
        watched
    }

    /// Has a parked thread watch, if none does. False when nobody is parked.
    pub(super) fn call_watcher(&self) -> bool {
        let queue = self.lock();
        if self.gate.is_watched() {
            return true;
        }
        let Some(place) = self.take_parked() else { return false };
        self.gate.watched.store(true, Ordering::SeqCst);
        // A call is a system call.
        drop(queue);
        place.watch();
        true
    }
}
