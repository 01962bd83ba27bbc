//! The interpreter gate of a pool: as many threads run application code as keep the interpreter busy, and no more.
//!
//! A language whose interpreter is one lock gains nothing from two threads that want it: each would interrupt the other in
//! the middle of a request. So a thread needs a **permit** to enter application code, and keeps it from request to request.
//! At first there is one. Who arrives and gets none queues its request; the first of them watches. A watcher that finds
//! that those inside wait for something ([`meter`](super::meter)) enters beside them, and the next one watches.
//!
//! ```text
//! permits < limit    arrive: enter
//! else               arrive: queue, and watch (the first) or park (the others)
//! inside             request after request: from the queue, the ready list, the poller
//! watcher            a permit is free: take the oldest request and enter
//!                    nobody computes:  those that wait lose their permits, those that wait for moments only keep them and
//!                                      the limit rises; enter
//!                    all compute:      look again; the limit falls
//! ```
//! A thread that comes back from a long wait without its permit asks for one, and is out if there is none. A request that
//! computes for much longer than others of its site gives its permit back too, and goes on beside: one at a time.
//!
//! Arriving where a permit is free, and leaving where nothing waits, take no lock. Who leaves looks at the queue's length
//! after it has given its permit back, and who queues asks for a permit after that: one of them sees the other.
//!
//! Invariants, checked under shuttle with measurements that are made up: the queue is not empty only while somebody
//! watches, or somebody with a permit is going to look at it, or no thread is left; at most one watches; a permit that is taken
//! away belongs to a thread in application code.
//!
//! Sections below: the seat of a thread.

use std::io;
use std::sync::Arc;

use maitred_io::activity::Activity;
use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::interpreter::{Found, Interpreter};
use crate::look_timer::{Ends, Pause};
use crate::meter;
use crate::meter::{Finding, Gated};
use crate::pool::{Call, Pool, Queue};
use crate::together::QUICK_OF_A_CROWD;
use crate::writing::set_seat;

/// Responses leave at once for this time after one had to wait for a handler that stood still, in nanoseconds.
const PROMPT: u64 = 100_000_000;

/// The gate of one pool, before its interpreter.
pub(super) struct Gate {
    pub(super) interpreter: Arc<Interpreter>,
    /// Permits that are in use, and how many may be. There can be more for a while.
    permits: Arc<AtomicUsize>,
    limit: AtomicUsize,
    /// Somebody watches. Written under the pool's lock.
    watched: AtomicBool,
    /// Between two looks of the watcher.
    pause: Pause,
    /// One thread computes all the time: until then it puts the watcher's looks off. 0 if none does. In monotonic nanoseconds.
    calm_until: AtomicU64,
    /// When a thread with a permit got on last, in monotonic nanoseconds, as far as it said so.
    got_on: AtomicU64,
    /// How many requests had been taken from the queue when the watcher looked last, and since when that is so. Written by
    /// the watcher.
    taken: AtomicU64,
    stands_since: AtomicU64,
    /// Somebody inside is busy and wants a watcher.
    wanted: AtomicBool,
    /// Until then responses leave at once: a handler has stood still while others waited.
    prompt: AtomicU64,
}

/// What a thread with a request, or one that found the queue not empty, does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival<J> {
    /// Runs this request; it has a permit.
    Run(J),
    /// Watches.
    Watch,
    /// Parks: somebody watches.
    Park,
    /// The queue is full, and what is too much is refused.
    Refuse(J),
}

/// What a look of the watcher led to.
pub(super) enum Watched<J> {
    /// Runs this request, with a permit; it does not watch any more.
    Run(J),
    /// Nothing waits: it does not watch any more.
    Idle,
    /// Looks again after so many nanoseconds.
    Sleep(u64),
}

/// What a thread with a permit does that has no other request.
pub(super) enum Left<J> {
    /// Runs this request, which came in the last moment.
    Next(J),
    /// It has no permit any more.
    Gone,
}

impl Gate {
    /// A gate before an interpreter.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(super) fn new(interpreter: &Arc<Interpreter>) -> io::Result<Self> {
        Ok(Self {
            interpreter: Arc::clone(interpreter),
            permits: Arc::default(),
            limit: AtomicUsize::new(1),
            watched: AtomicBool::new(false),
            pause: Pause::new()?,
            calm_until: AtomicU64::new(0),
            got_on: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            stands_since: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            prompt: AtomicU64::new(0),
        })
    }

    /// Notes the calling thread until [`unseat`](Self::unseat).
    pub(super) fn seat(&self) -> Arc<Seat> {
        let seat = Seat::own(&self.permits);
        self.interpreter.add(&seat);
        set_seat(Some(&seat));
        seat
    }

    /// The thread ends.
    pub(super) fn unseat(&self, seat: &Arc<Seat>) {
        set_seat(None);
        self.give_back(seat);
        self.interpreter.remove(seat);
    }

    /// Threads of this pool in application code.
    pub(super) fn inside(&self) -> usize {
        self.interpreter.inside(|seat| Arc::ptr_eq(&seat.permits, &self.permits))
    }

    /// Takes a permit for a thread without one, if one is free.
    pub(super) fn take(&self, seat: &Seat) -> bool {
        let limit = self.limit.load(Ordering::SeqCst);
        let more = |permits| (permits < limit).then_some(permits + 1);
        if self.permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            return false;
        }
        self.has_one_more(seat);
        true
    }

    /// Takes one more permit than there may be.
    pub(super) fn force(&self, seat: &Seat) {
        self.permits.fetch_add(1, Ordering::SeqCst);
        self.has_one_more(seat);
    }

    /// A permit that was counted becomes that of this thread, which has none and is the caller.
    fn has_one_more(&self, seat: &Seat) {
        let was_out = seat.change(State::Out, State::Permitted);
        debug_assert!(was_out, "a thread has one permit at most");
    }

    /// Gives a permit back, or what it has become; the thread is not in application code.
    pub(super) fn give_back(&self, seat: &Seat) {
        // Whoever measures may change it between two looks.
        loop {
            let state = seat.state();
            if seat.change(state, State::Out) {
                match state {
                    State::Permitted => _ = self.permits.fetch_sub(1, Ordering::SeqCst),
                    State::Computes => self.interpreter.give_long_back(),
                    State::Waits | State::Beside | State::Writes | State::Out => {}
                }
                return;
            }
        }
    }

    /// Whether a thread that is about to enter may do so: it has its permit still, or gets one. Otherwise it has none.
    pub(super) fn may_enter(&self, seat: &Seat) -> bool {
        if seat.state() == State::Permitted {
            return true;
        }
        self.give_back(seat);
        self.take(seat)
    }

    /// Whether a thread that comes out of application code may go on: it has its permit still and there are not too many, or
    /// gets one. Otherwise it has none.
    pub(super) fn may_go_on(&self, seat: &Seat) -> bool {
        if seat.state() == State::Permitted {
            let limit = self.limit.load(Ordering::SeqCst);
            if self.permits.load(Ordering::SeqCst) <= limit {
                return true;
            }
            let fewer = |permits| (permits > limit).then(|| permits - 1);
            if self.permits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_err() {
                return true;
            }
            if !seat.change(State::Permitted, State::Out) {
                // It was taken away in this moment: one was counted off for it already.
                self.permits.fetch_add(1, Ordering::SeqCst);
                self.give_back(seat);
            }
            return false;
        }
        self.may_enter(seat)
    }

    /// A request that is known to be slow enters without a permit; one that computes is counted, see
    /// [`take_long`](Interpreter::take_long).
    pub(super) fn enter_beside(&self, seat: &Seat, computes: bool) {
        seat.change(State::Out, if computes { State::Computes } else { State::Beside });
    }

    /// Such a request comes back. What was counted for one that computes is the caller's to give back.
    pub(super) fn leave_beside(&self, seat: &Seat) {
        if seat.state() == State::Computes && seat.change(State::Computes, State::Out) {
            return;
        }
        self.give_back(seat);
    }

    /// Whether anybody is inside with a permit.
    pub(super) fn is_taken(&self) -> bool {
        self.permits.load(Ordering::SeqCst) > 0
    }

    /// Whether one more may take a permit.
    fn is_free(&self) -> bool {
        self.permits.load(Ordering::SeqCst) < self.limit.load(Ordering::SeqCst)
    }

    /// The watcher's pause from `now` on.
    pub(super) fn pause(&self, now: u64, nanos: u64) {
        self.pause.wait(now, nanos, Ends::PutOff);
    }

    /// A thread with a permit gets on at `now`. Where it is the only one and computes, the watcher need not look, but now and
    /// then.
    pub(super) fn get_on(&self, now: u64) {
        self.got_on.store(now, Ordering::Relaxed);
        if self.is_calm(now) {
            self.pause.put_off(now, meter::CALM);
        }
    }

    /// Whether a thread with a permit has got on lately, so that it comes back soon, and sends what waits.
    pub(super) fn gets_on(&self, now: u64) -> bool {
        now.saturating_sub(self.got_on.load(Ordering::Relaxed)) < QUICK_OF_A_CROWD
    }

    fn is_calm(&self, now: u64) -> bool {
        now < self.calm_until.load(Ordering::Relaxed)
    }

    /// A thread with a permit has used `used` nanoseconds of processor time in the last `time`, and has gone to sleep meanwhile
    /// or not: whether it still computes all the time is to be looked at if not. One that has not slept has lacked a processor.
    pub(super) fn note_use(&self, used: u64, time: u64, slept: bool) {
        if slept && used < time / 10 * 9 {
            self.calm_until.store(0, Ordering::Relaxed);
        }
    }

    /// Somebody who waits for the watcher's look has it look now.
    pub(super) fn cut_short(&self, now: u64) {
        self.pause.cut_short(now);
    }

    /// Whether somebody watches.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::SeqCst)
    }

    /// Whether the response of a handler that is entered at `now` may wait for others, if somebody watches who
    /// sends it when the next handler stands still: none has for a while.
    pub(super) fn may_defer(&self, now: u64) -> bool {
        now >= self.prompt.load(Ordering::Relaxed)
    }

    /// A thread inside is busy and wants a watcher: whoever polls next.
    pub(super) fn want_watcher(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Whether a watcher is wanted; asked once.
    pub(super) fn take_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::SeqCst)
    }

    /// A response had to wait for a handler that stood still.
    pub(super) fn be_prompt(&self, now: u64) {
        self.prompt.store(now + PROMPT, Ordering::Relaxed);
    }

    /// Measures at `now`, and changes the limit and the permits as it follows. A request computes for long from
    /// `long` nanoseconds on; `max` is the most permits.
    fn look(&self, now: u64, long: u64, max: usize, line: Line) -> Looked {
        if self.taken.swap(line.taken, Ordering::Relaxed) != line.taken {
            self.stands_since.store(now, Ordering::Relaxed);
        }
        let limit = self.limit.load(Ordering::SeqCst);
        let stands_since = self.stands_since.load(Ordering::Relaxed).max(line.watched_since);
        let processors = self.interpreter.processors;
        let gated = Gated { limit, processors, stands_since, waits_since: line.waits_since };
        let Found { finding, calm } = self.interpreter.look(now, gated, long);
        // What is put off last before that is a look in time.
        let calm_until = if calm { now + (meter::LOOK_AT_LEAST - meter::CALM) } else { 0 };
        self.calm_until.store(calm_until, Ordering::Relaxed);
        let set = |limit: usize| self.limit.store(limit.clamp(1, max.max(1)), Ordering::SeqCst);
        match finding {
            Finding::Idle { since } => {
                let permits = self.permits.load(Ordering::SeqCst);
                if permits >= limit {
                    set(permits + 1);
                }
                return Looked::Enter { since };
            }
            Finding::StandsStill => {
                self.stands_since.store(now, Ordering::Relaxed);
                return Looked::Enter { since: now };
            }
            Finding::Try => {
                set(limit + 1);
                return Looked::Enter { since: now };
            }
            Finding::Busy { fewer: true } => set(limit - 1),
            Finding::Busy { fewer: false } => {}
            Finding::Unknown => return Looked::Again(self.interpreter.rest_of_window(now)),
        }
        Looked::Again(if calm { meter::CALM } else { meter::USUAL })
    }
}

/// What waits before a gate, as the lock of its queue has shown it.
struct Line {
    /// Requests that were taken from it so far.
    taken: u64,
    /// Since when some wait without a break, and since when somebody watches, in monotonic nanoseconds.
    waits_since: u64,
    watched_since: u64,
}

/// What a measurement led to.
enum Looked {
    /// One more request may enter, and could have since then, in monotonic nanoseconds.
    Enter { since: u64 },
    /// The next look is due after so many nanoseconds, unless a permit becomes free.
    Again(u64),
}

impl<J> Pool<J> {
    /// A thread has a request to run at `now`.
    pub(super) fn arrive(&self, job: J, seat: &Seat, now: u64) -> Arrival<J> {
        if self.queued() == 0 && self.gate.take(seat) {
            return Arrival::Run(job);
        }
        let mut queue = self.lock();
        if let Err(job) = self.push(&mut queue, job, now) {
            return Arrival::Refuse(job);
        }
        // Who had the permit may have left without seeing this request.
        match self.enter_with_oldest(&mut queue, seat) {
            Some(oldest) => Arrival::Run(oldest),
            None => self.watch_or_park(),
        }
    }

    /// A thread without a request looks at the queue; `None` when it is empty.
    pub(super) fn look(&self, seat: &Seat) -> Option<Arrival<J>> {
        let mut queue = self.lock();
        if queue.is_empty() {
            return None;
        }
        Some(match self.enter_with_oldest(&mut queue, seat) {
            Some(oldest) => Arrival::Run(oldest),
            None => self.watch_or_park(),
        })
    }

    /// Takes a permit and the oldest request, if there are both.
    fn enter_with_oldest(&self, queue: &mut Queue<J>, seat: &Seat) -> Option<J> {
        if queue.is_empty() || !self.gate.take(seat) {
            return None;
        }
        self.pop_from(queue)
    }

    /// A thread that polls is to watch instead. False when nobody is inside, or somebody watches.
    pub(super) fn begin_watch(&self) -> bool {
        let _queue = self.lock();
        self.gate.is_taken() && !self.gate.watched.swap(true, Ordering::SeqCst)
    }

    /// Under the lock.
    fn watch_or_park(&self) -> Arrival<J> {
        if self.gate.watched.swap(true, Ordering::SeqCst) { Arrival::Park } else { Arrival::Watch }
    }

    /// One look of the watcher, which has watched since `began`. A request computes for long from `long` nanoseconds on.
    pub(super) fn watch(&self, seat: &Seat, began: u64, long: u64) -> Watched<J> {
        let line = {
            let mut queue = self.lock();
            if queue.is_empty() {
                self.gate.watched.store(false, Ordering::SeqCst);
                return Watched::Idle;
            }
            if let Some(job) = self.enter_with_oldest(&mut queue, seat) {
                self.gate.watched.store(false, Ordering::SeqCst);
                return Watched::Run(job);
            }
            Line { taken: queue.taken, waits_since: queue.waits_since, watched_since: began }
        };
        let now = clock::monotonic();
        let since = match self.gate.look(now, long, self.max(), line) {
            Looked::Again(nanos) if !self.gate.is_free() => return Watched::Sleep(nanos),
            Looked::Again(_) => now,
            Looked::Enter { since } => since,
        };
        let mut queue = self.lock();
        self.gate.watched.store(false, Ordering::SeqCst);
        let Some(waits) = queue.oldest() else { return Watched::Idle };
        self.audit.add(&queue.counted, now.saturating_sub(since.max(waits).max(began)));
        self.gate.force(seat);
        self.pop_from(&mut queue).map_or(Watched::Idle, Watched::Run)
    }

    /// A look at `now` by a thread that has just left application code, if a trial is on, requests wait, and no thread is left
    /// to watch for them: else nobody would end it.
    pub(super) fn look_unwatched(&self, now: u64, long: u64) {
        let interpreter = &self.gate.interpreter;
        if !interpreter.tries()
            || self.queued() == 0
            || self.gate.is_watched()
            || !interpreter.is_unseen_since(now.saturating_sub(meter::USUAL))
        {
            return;
        }
        let line = {
            let queue = self.lock();
            Line { taken: queue.taken, waits_since: queue.waits_since, watched_since: queue.waits_since }
        };
        self.gate.look(now, long, self.max(), line);
    }

    /// The watcher ends although something may wait: the server stops.
    pub(super) fn end_watch(&self) {
        let _queue = self.lock();
        self.gate.watched.store(false, Ordering::SeqCst);
    }

    /// A thread with a permit has nothing to run.
    pub(super) fn leave(&self, seat: &Seat) -> Left<J> {
        loop {
            self.gate.give_back(seat);
            if self.queued() == 0 {
                return Left::Gone;
            }
            let mut queue = self.lock();
            if !self.gate.take(seat) {
                return Left::Gone;
            }
            if let Some(job) = self.pop_from(&mut queue) {
                return Left::Next(job);
            }
        }
    }

    /// A thread gives up its permit although something may wait. Whoever watches enters at once; false when nobody does and
    /// another thread is to be called.
    pub(super) fn step_aside(&self, seat: &Seat, now: u64) -> bool {
        self.gate.give_back(seat);
        let watched = self.gate.is_watched();
        if watched {
            self.gate.cut_short(now);
        }
        watched
    }

    /// Queues a request of a thread that may not run it. Who watches sees it; else a thread is called.
    ///
    /// # Errors
    /// The queue is full and its overflow is refused: the request.
    pub(super) fn enqueue_gated(&self, job: J, now: u64) -> Result<Call, J> {
        let watched = {
            let mut queue = self.lock();
            self.push(&mut queue, job, now)?;
            self.gate.is_watched()
        };
        Ok(if watched { Call::Unparked } else { self.call_for_queue() })
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

// ---- The seat of a thread ----
//
// A seat says whether an application thread has a permit, and what the thread is doing.

/// What a thread is to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It has nothing to do with application code.
    Out,
    /// It has a permit.
    Permitted,
    /// It is in application code and waits there for something, so that its permit has gone to another one.
    Waits,
    /// It is in application code and computes for long, beside those that have permits.
    Computes,
    /// It is in a request that is known to wait: what it computes in between keeps no usual request out.
    Beside,
    /// What its request has made is being written to a disk, without the interpreter: its permit has gone to another one.
    Writes,
}

/// The seat of one thread.
pub(super) struct Seat {
    state: AtomicU8,
    /// Permits that are in use at its gate.
    pub(super) permits: Arc<AtomicUsize>,
    /// When it entered application code, in monotonic nanoseconds; 0 while it is not there.
    entered: AtomicU64,
    /// The thread that measures asks the system for it, also under shuttle.
    pub(super) activity: Activity,
    /// What the holder of the meter measured last.
    pub(super) last: Measured,
}

/// What a measurement leaves for the next one, in nanoseconds.
#[derive(Default)]
pub(super) struct Measured {
    /// Processor time.
    processor: AtomicU64,
    /// Which stay in application code that was, and its processor time before.
    entered: AtomicU64,
    before: AtomicU64,
    /// When it was seen to have used some last.
    moved: AtomicU64,
}

/// A thread in a window of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Processor time in the window, in nanoseconds.
    pub(super) used: u64,
    /// It is in application code.
    pub(super) inside: bool,
    /// Processor time of this stay there, as far as it was measured.
    pub(super) of_stay: u64,
    /// How long it has used none.
    pub(super) still: u64,
}

impl Seat {
    /// That of the calling thread, at the gate that counts its permits there.
    pub(super) fn own(permits: &Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(State::Out as u8),
            permits: Arc::clone(permits),
            entered: AtomicU64::new(0),
            activity: Activity::own(),
            last: Measured::default(),
        })
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Out,
            1 => State::Permitted,
            2 => State::Waits,
            3 => State::Computes,
            4 => State::Beside,
            _ => State::Writes,
        }
    }

    /// Changes the state if it is still `from`. The thread itself and the one that measures may do so at the same time.
    pub(super) fn change(&self, from: State, to: State) -> bool {
        self.state.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the permit away from the thread, which becomes `to`. False if the thread has no permit.
    pub(super) fn lose_permit(&self, to: State) -> bool {
        let lost = self.change(State::Permitted, to);
        if lost {
            self.permits.fetch_sub(1, Ordering::SeqCst);
        }
        lost
    }

    /// A thread that waited goes on: it has a permit again, also one more than there may be.
    pub(super) fn regain_permit(&self) {
        self.permits.fetch_add(1, Ordering::SeqCst);
        if !self.change(State::Waits, State::Permitted) {
            self.permits.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The thread enters application code at `now`.
    pub(super) fn enter(&self, now: u64) {
        self.entered.store(now, Ordering::Relaxed);
    }

    /// It comes back.
    pub(super) fn leave(&self) {
        self.entered.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_inside(&self) -> bool {
        self.entered.load(Ordering::Relaxed) != 0
    }

    /// What the thread has done since it was measured last, `window` nanoseconds before `time`.
    pub(super) fn measure(&self, time: u64, window: u64) -> Window {
        let now = self.activity.processor_ns().unwrap_or(0);
        let used = now.saturating_sub(self.last.processor.swap(now, Ordering::Relaxed)).min(window);
        if used > 0 {
            self.last.moved.store(time, Ordering::Relaxed);
        }
        let entered = self.entered.load(Ordering::Relaxed);
        if self.last.entered.swap(entered, Ordering::Relaxed) != entered {
            self.last.before.store(now, Ordering::Relaxed);
        }
        let of_stay = now.saturating_sub(self.last.before.load(Ordering::Relaxed));
        let still = time.saturating_sub(self.last.moved.load(Ordering::Relaxed));
        Window { used, inside: entered != 0, of_stay, still }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_got_on_lately_sends_what_it_has_left() {
        let gate = Gate::new(&Arc::new(Interpreter::new(2))).unwrap();
        let now = clock::monotonic();
        assert!(!gate.gets_on(now), "none has yet");
        gate.get_on(now);
        assert!(gate.gets_on(now) && gate.gets_on(now + QUICK_OF_A_CROWD - 1));
        assert!(!gate.gets_on(now + QUICK_OF_A_CROWD), "it stands still");
    }

    #[test]
    fn a_calm_gate_is_looked_at_in_time_and_one_that_nobody_has_looked_at_is_not_calm() {
        let gate = Gate::new(&Arc::new(Interpreter::new(2))).unwrap();
        let seat = gate.seat();
        let mut now = clock::monotonic();
        seat.enter(now);
        let line = |since| Line { taken: 0, waits_since: since, watched_since: since };
        let began = now;
        let mut look = |nanos| {
            now += nanos;
            gate.look(now, meter::LOOK_AT_LEAST, 10, line(began));
            now
        };
        // This thread runs, and has hardly any of the time that it is told.
        let last = (0..5).map(|_| look(meter::USUAL)).last().unwrap();
        assert!(gate.is_calm(last));
        let put_off_to = |now| if gate.is_calm(now) { now + meter::CALM } else { 0 };
        let latest = (0..100).map(|step| put_off_to(last + step * meter::USUAL)).max().unwrap();
        assert!((last + meter::CALM..=last + meter::LOOK_AT_LEAST).contains(&latest), "{}", latest - last);
        let late = look(3 * meter::LOOK_AT_LEAST);
        assert!(!gate.is_calm(late), "what it was like long ago");
        gate.unseat(&seat);
    }
}
