//! The slots of a poll group: one a connection, numbered densely, never moved, never freed.
//!
//! An event carries slot and generation. The generation rises when a connection ends, so that an
//! event of a connection that is gone is told apart from one of its successor in the same slot.
//!
//! Sections below: the claim word; names; flags of an exchange.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use maitred_dispatch::Signals;
use maitred_io::sync::NamedLock;
use maitred_io::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use maitred_runtime::lock_order::SlotHeld;

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

// ---- The claim word ----
//
// Who may take a turn on a connection, and what happened meanwhile.
//
// ```text
//            signal(bits)                        take()
// free ------------------> claimed + bits -------------------> claimed
//   ^                          ^                                  |
//   |                          |  signal(bits) by another thread  | the owner's turn
//   |                          `----------------------------------|
//   `------------------------------------------------------------ release() when no bit is set
// ```
// Edges are reported once, to whichever thread waited. So a thread that finds the slot claimed
// leaves its bits, and the owner cannot release the slot before it has taken them: no edge is
// lost, and a connection never has two turns at once.
//
// The slot's generation stands in the same word: a signal meant for a connection that is gone is
// refused in the same step, so that it never reaches the next one in the slot.

const CLAIMED: u64 = 1;

/// The lower half: claimed and signals. The generation is the upper half.
const STATE: u64 = u32::MAX as u64;

const ONE_GENERATION: u64 = STATE + 1;

/// The word.
#[derive(Default)]
pub(crate) struct Claim {
    word: AtomicU64,
}

impl Claim {
    /// Which connection in this slot is the present one.
    pub(crate) fn generation(&self) -> u32 {
        (self.word.load(Ordering::Acquire) >> 32) as u32
    }

    /// The present connection is gone: what is on its way to it is refused from now on.
    pub(crate) fn retire(&self) {
        self.word.fetch_add(ONE_GENERATION, Ordering::AcqRel);
    }

    /// Leaves `signals` for the connection of `generation`, if it is the present one. True when the
    /// slot was free: the caller owns it now and must go through [`take`](Self::take) and
    /// [`release`](Self::release).
    pub(crate) fn signal(&self, generation: u32, signals: Signals) -> bool {
        let left = |word: u64| {
            (word >> 32 == u64::from(generation)).then_some(word | u64::from(signals.bits()) | CLAIMED)
        };
        // AcqRel: the new owner sees what the last one wrote; the owner that takes the bits sees
        // what this thread wrote before.
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, left)
            .is_ok_and(|before| before & CLAIMED == 0)
    }

    /// The owner takes what has been left.
    pub(crate) fn take(&self) -> Signals {
        let before = self.word.fetch_and(!STATE | CLAIMED, Ordering::AcqRel);
        Signals::from_bits((before & STATE & !CLAIMED) as u32)
    }

    /// The owner lets go. False when signals have come meanwhile: it is still the owner.
    pub(crate) fn release(&self) -> bool {
        let word = self.word.load(Ordering::Acquire);
        word & STATE == CLAIMED
            && self.word.compare_exchange(word, word & !CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

// ---- Names ----
//
// How an exchange is named from outside its connection.

/// What an event stands for: a slot, and which of the connections that were ever there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Token {
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_u64(value: u64) -> Self {
        Self { slot: value as u32, generation: (value >> 32) as u32 }
    }
}

/// An exchange of a connection of the same group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) token: Token,
    /// Its number within the connection.
    pub(crate) stream: u32,
}

/// Where a connection is, or an exchange of it, in all of a server. As text `GROUP.SLOT.GENERATION`, with `.STREAM` where a
/// connection has several exchanges at a time. A place is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the group.
    pub(crate) group: usize,
    /// The [`Token`] of the connection.
    pub(crate) token: u64,
    /// The number of the exchange in its connection; 0 where there is one at a time.
    pub(crate) stream: u32,
}

impl Place {
    /// The number of the exchange in its connection; 0 where there is one at a time.
    pub fn stream(self) -> u32 {
        self.stream
    }

    /// The exchange with this number of the same connection.
    #[must_use]
    pub fn with_stream(self, stream: u32) -> Self {
        Self { stream, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { slot, generation } = Token::from_u64(self.token);
        write!(f, "{}.{slot}.{generation}", self.group)?;
        match self.stream {
            0 => Ok(()),
            stream => write!(f, ".{stream}"),
        }
    }
}

/// What is not the text of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok()).ok_or(NoPlace);
        let mut parts = text.split('.');
        let group = number(parts.next())? as usize;
        let token = Token { slot: number(parts.next())?, generation: number(parts.next())? }.to_u64();
        let stream = match parts.next() {
            None => 0,
            stream => Some(number(stream)?).filter(|stream| *stream > 0).ok_or(NoPlace)?,
        };
        if parts.next().is_some() { Err(NoPlace) } else { Ok(Self { group, token, stream }) }
    }
}

// ---- Flags of an exchange ----

/// What several threads ask about an exchange while a handler has it, without the lock of its connection.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    word: AtomicU32,
    /// When a thread entered the handler, in monotonic nanoseconds; 0 before.
    begun: AtomicU64,
}

/// A thread is in the handler now.
const RUNNING: u32 = 1;
/// The time limit was over before the response began.
const OUT: u32 = 2;
/// The peer can be sent nothing any more.
const GONE: u32 = 4;
/// The peer has ended its side since the request was handed over.
const LEFT: u32 = 8;
/// The server, which stops, has asked the handler to end its stream of events.
const ASKED: u32 = 16;
/// Above: the number of the group whose thread has it, which need not be the connection's.
const GROUP: u32 = 8;

impl Flags {
    /// Those of the next exchange: nobody else has them.
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
    }

    fn has(&self, flag: u32) -> bool {
        self.word.load(Ordering::Acquire) & flag != 0
    }

    /// Whether its time was over. Once it was, it stays so.
    pub(crate) fn is_out(&self) -> bool {
        self.has(OUT)
    }

    /// Whether its peer can be sent nothing any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.has(GONE)
    }

    /// Whether its peer has ended its side since the request was handed over, or is gone.
    pub(crate) fn has_left(&self) -> bool {
        self.has(LEFT | GONE)
    }

    pub(crate) fn set_gone(&self) {
        self.word.fetch_or(GONE, Ordering::AcqRel);
    }

    pub(crate) fn set_left(&self) {
        self.word.fetch_or(LEFT, Ordering::AcqRel);
    }

    /// Whether the server, which stops, has asked the handler to end.
    pub(crate) fn is_asked_to_end(&self) -> bool {
        self.has(ASKED)
    }

    pub(crate) fn ask_to_end(&self) {
        self.word.fetch_or(ASKED, Ordering::AcqRel);
    }

    /// A thread of the group with this number enters the handler.
    pub(crate) fn enter(&self, group: usize, now: u64) {
        self.begun.store(now, Ordering::Relaxed);
        self.word.fetch_or((group as u32) << GROUP | RUNNING, Ordering::AcqRel);
    }

    /// The thread is back; whether the time was over meanwhile.
    pub(crate) fn leave(&self) -> bool {
        self.word.fetch_and(!RUNNING, Ordering::AcqRel) & OUT != 0
    }

    /// The time is over; if a thread is in the handler, the number of its group.
    pub(crate) fn end(&self) -> Option<usize> {
        let before = self.word.fetch_or(OUT | GONE, Ordering::AcqRel);
        (before & RUNNING != 0).then_some((before >> GROUP) as usize)
    }

    /// When a thread entered the handler, if one has.
    pub(crate) fn begun(&self) -> Option<u64> {
        Some(self.begun.load(Ordering::Relaxed)).filter(|begun| *begun > 0)
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

#[cfg(all(test, shuttle))]
mod claim_shuttle_tests {
    use maitred_io::sync::atomic::AtomicU32;
    use maitred_io::sync::{Arc, Mutex, schedules, thread};

    use super::*;

    const BITS: [Signals; 3] = [Signals::READ, Signals::WRITE, Signals::TIMER];

    /// Three threads leave a signal each; whoever owns the slot takes turns until it can release it.
    fn scenario(release: fn(&Claim) -> bool) {
        let claim = Arc::new(Claim::default());
        let owners = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(AtomicU32::new(0));
        let threads = BITS.map(|bit| {
            let (claim, owners, seen) = (Arc::clone(&claim), Arc::clone(&owners), Arc::clone(&seen));
            thread::spawn(move || {
                if !claim.signal(0, bit) {
                    return;
                }
                assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "one turn at a time");
                loop {
                    seen.fetch_or(claim.take().bits(), Ordering::SeqCst);
                    owners.fetch_sub(1, Ordering::SeqCst);
                    if release(&claim) {
                        return;
                    }
                    owners.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        for thread in threads {
            thread.join().expect("no thread fails");
        }
        let all = BITS.iter().fold(Signals::NONE, |all, bit| all.with(*bit));
        assert_eq!(seen.load(Ordering::SeqCst), all.bits(), "every signal is seen");
    }

    #[test]
    fn no_signal_is_lost_and_no_turn_overlaps() {
        shuttle::check_random(|| scenario(Claim::release), schedules(20_000));
    }

    /// A late event of a connection that ends meanwhile, and the next connection in its slot.
    fn reuse(late: fn(&Claim) -> bool) {
        let claim = Arc::new(Claim::default());
        let other = Arc::clone(&claim);
        let event = thread::spawn(move || {
            if late(&other) {
                // Owner of the slot: of the connection the event was for.
                let before = other.generation();
                let signals = other.take();
                assert!(before == 0 || !signals.any(Signals::CLOSED), "the next one lives");
                while !other.release() {
                    other.take();
                }
            }
        });
        // The first connection ends, unless the late event has the slot and ends it.
        if claim.signal(0, Signals::READ) {
            claim.take();
            claim.retire();
            while !claim.release() {
                claim.take();
            }
            if claim.signal(1, Signals::READ) {
                assert!(!claim.take().any(Signals::CLOSED), "the next one lives");
                while !claim.release() {
                    assert!(!claim.take().any(Signals::CLOSED), "the next one lives");
                }
            }
        }
        event.join().expect("no thread fails");
    }

    #[test]
    fn a_late_event_never_reaches_the_next_connection() {
        shuttle::check_random(|| reuse(|claim| claim.signal(0, Signals::CLOSED)), schedules(20_000));
    }

    /// The mutation: the generation is looked at before the signal is left, not in the same step.
    #[test]
    #[should_panic(expected = "the next one lives")]
    fn a_generation_looked_at_too_early_is_found_out() {
        let early =
            |claim: &Claim| claim.generation() == 0 && claim.signal(claim.generation(), Signals::CLOSED);
        shuttle::check_random(move || reuse(early), 20_000);
    }

    /// The mutation: a release that does not look whether signals have come.
    /// What the turns of a connection see of its two exchanges.
    #[derive(Default)]
    struct Ends {
        over: [bool; 2],
        closed: u32,
    }

    /// Takes turns until nothing has come meanwhile; the connection is closed when both exchanges are over.
    fn turns(claim: &Claim, ends: &Mutex<Ends>) {
        loop {
            claim.take();
            let mut ends = ends.lock().expect("not poisoned");
            if ends.over == [true, true] && ends.closed == 0 {
                ends.closed += 1;
            }
            drop(ends);
            if claim.release() {
                return;
            }
        }
    }

    /// Two exchanges of one connection end on two threads while an event comes for it.
    fn exchanges(end: fn(&Claim, &Mutex<Ends>, usize) -> bool) {
        let claim = Arc::new(Claim::default());
        let ends = Arc::new(Mutex::new(Ends::default()));
        let threads = [0, 1, 2].map(|number| {
            let (claim, ends) = (Arc::clone(&claim), Arc::clone(&ends));
            thread::spawn(move || {
                let claimed = match number {
                    2 => claim.signal(0, Signals::READ),
                    exchange => end(&claim, &ends, exchange),
                };
                if claimed {
                    turns(&claim, &ends);
                }
            })
        });
        for thread in threads {
            thread.join().expect("no thread fails");
        }
        assert_eq!(ends.lock().expect("not poisoned").closed, 1, "the last one closes it");
    }

    fn end_and_tell(claim: &Claim, ends: &Mutex<Ends>, exchange: usize) -> bool {
        ends.lock().expect("not poisoned").over[exchange] = true;
        claim.signal(0, Signals::RESUME)
    }

    #[test]
    fn two_exchanges_that_end_at_once_are_both_seen() {
        shuttle::check_random(|| exchanges(end_and_tell), schedules(20_000));
    }

    #[test]
    #[should_panic(expected = "the last one closes it")]
    fn an_exchange_that_tells_before_it_has_ended_is_found_out() {
        let early = |claim: &Claim, ends: &Mutex<Ends>, exchange: usize| {
            let claimed = claim.signal(0, Signals::RESUME);
            ends.lock().expect("not poisoned").over[exchange] = true;
            claimed
        };
        shuttle::check_random(move || exchanges(early), 20_000);
    }

    #[test]
    #[should_panic(expected = "every signal is seen")]
    fn a_careless_release_is_found_out() {
        let careless = |claim: &Claim| {
            claim.word.store(0, Ordering::SeqCst);
            true
        };
        shuttle::check_random(move || scenario(careless), 20_000);
    }
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_shown() {
        let place = Place { group: 3, token: Token { slot: 70_000, generation: 9 }.to_u64(), stream: 0 };
        assert_eq!(place.to_string(), "3.70000.9");
        assert_eq!("3.70000.9".parse(), Ok(place));
        let of_several = place.with_stream(7);
        assert_eq!(of_several.to_string(), "3.70000.9.7");
        assert_eq!("3.70000.9.7".parse(), Ok(of_several));
        for wrong in ["", "1", "1.2", "1.2.3.0", "1.2.3.4.5", "1.x.3", "1.2.-3"] {
            assert_eq!(wrong.parse::<Place>(), Err(NoPlace), "{wrong}");
        }
    }
}

#[cfg(test)]
mod flags_tests {
    use super::*;

    #[test]
    fn the_group_of_the_thread_inside_is_known_when_the_time_is_over() {
        let flags = Flags::default();
        flags.enter(3, 17);
        assert_eq!((flags.end(), flags.begun()), (Some(3), Some(17)));
        assert!(flags.leave() && flags.is_out());
        let waiting = Flags::default();
        assert_eq!((waiting.end(), waiting.begun()), (None, None));
    }
}
