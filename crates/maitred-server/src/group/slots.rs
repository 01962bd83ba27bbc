//! The slots of a poll group: one a connection, numbered densely, never moved, never freed.
//!
//! An event carries slot and generation. The generation rises when a connection ends, so that an
//! event of a connection that is gone is told apart from one of its successor in the same slot.
//!
//! Section below: names.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use maitred_io::sync::NamedLock;
use maitred_runtime::lock_order::SlotHeld;
use maitred_turns::Claim;

/// Slots in one allocation.
const CHUNK: usize = 256;

/// The most slots: one million connections a group, more than descriptors (Linux's default
/// fs.nr_open is 1,048,576).
pub(crate) const MAX_SLOTS: usize = 1 << 20;

/// A slot of one connection.
pub(crate) struct Slot<R> {
    pub(crate) claim: Claim,
    resident: Mutex<Option<R>>,
}

impl<R> Slot<R> {
    fn new() -> Self {
        Self { claim: Claim::default(), resident: Mutex::new(None) }
    }

    /// Locks the resident, for a turn or for the responder of an exchange. The lock is held only over work that does
    /// not wait, never over application code.
    pub(crate) fn lock(&self) -> Occupied<'_, R> {
        let held = SlotHeld::begin();
        let resident = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        Occupied { resident, _held: held }
    }

    pub(crate) fn generation(&self) -> u32 {
        self.claim.generation()
    }
}

/// The resident of a slot, under the lock.
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

/// Allocated as a whole, and never moved.
type Chunk<R> = Box<[Slot<R>]>;

/// All slots of a group.
pub(crate) struct Slots<R> {
    chunks: Box<[OnceLock<Chunk<R>>]>,
    free: NamedLock<Free>,
}

struct Free {
    /// Free slots, reused last-in first-out, since the last ones are warm in the cache.
    list: Vec<u32>,
    /// Number of slots that have ever been used.
    made: u32,
}

impl<R> Slots<R> {
    /// Counts of the lock of the free list.
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

// ---- Names ----
//
// Names of exchanges outside their connection.

/// Token of events: a slot, and the generation of its connection.
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
    /// Number of the exchange within the connection.
    pub(crate) stream: u32,
}

/// The place of a connection, or of one of its exchanges, in a server. As text `GROUP.SLOT.GENERATION`, with
/// `.STREAM` where a connection has several exchanges at a time. A place is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the group.
    pub(crate) group: usize,
    /// The [`Token`] of the connection.
    pub(crate) token: u64,
    /// The number of the exchange in its connection; 0 where the connection has one exchange at a time.
    pub(crate) stream: u32,
}

impl Place {
    /// The number of the exchange in its connection; 0 where the connection has one exchange at a time.
    pub fn stream(self) -> u32 {
        self.stream
    }

    /// The place of the exchange with this number in the same connection.
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

/// Error for a text that is not a [`Place`].
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

#[cfg(test)]
mod tests {
    use super::*;

    /// nginx's idle keep-alive connection, measured; ours has no memory beside these while it is idle.
    const MAX_IDLE: usize = 517;

    /// The deadline, and its place in the queue of deadlines in a heap that has just doubled.
    const TIMER: usize = 16 + 2 * 16;

    #[test]
    fn an_idle_connection_is_small() {
        let slot = size_of::<Slot<crate::connection::Connection>>();
        assert!(slot + TIMER <= MAX_IDLE / 2, "{slot} + {TIMER} bytes");
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
