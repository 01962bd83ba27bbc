//! The dynamic table of one direction (RFC 7541 §2.3.2, §4): the newest entry comes first.
//!
//! ```text
//! bytes:    [ evicted | name value | name value | name value ]  <- insertions
//! entries:              oldest                    newest
//! ```
//!
//! The bytes of evicted entries stay in front until the room is needed. They are removed only when they are at least
//! half of all, so that a byte is moved once on average. The memory grows with the insertions, to twice the table's
//! size at most.

use std::collections::VecDeque;

use super::ENTRY_OVERHEAD;

/// The bytes of the buffer when the first entry comes: the usual fields of a response.
const FIRST_BYTES: usize = 512;

/// Entries in the order of their insertion.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicTable {
    bytes: Vec<u8>,
    /// The newest at the front.
    entries: VecDeque<Entry>,
    /// How many bytes were removed in front of `bytes`, modulo 2^32.
    removed: u32,
    /// RFC 7541 §4.1: the bytes of all entries and their overhead.
    size: usize,
    max: usize,
}

/// Where the bytes of an entry stand; the value follows the name.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Counted from the first byte that was ever inserted, modulo 2^32.
    start: u32,
    name: u32,
    value: u32,
}

impl Entry {
    fn size(self) -> usize {
        self.name as usize + self.value as usize + ENTRY_OVERHEAD
    }
}

impl DynamicTable {
    pub(super) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Name and value of an entry; 0 is the newest.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(index)?;
        let (_, bytes) = self.bytes.split_at_checked(self.place(*entry))?;
        let (name, behind) = bytes.split_at_checked(entry.name as usize)?;
        Some((name, behind.get(..entry.value as usize)?))
    }

    #[inline]
    fn place(&self, entry: Entry) -> usize {
        entry.start.wrapping_sub(self.removed) as usize
    }

    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
        self.evict_to(max);
    }

    /// Evicts until there is room and inserts; a field larger than the table only empties it (RFC 7541 §4.4). Whether it
    /// was inserted.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) -> bool {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict_to(self.max.saturating_sub(size));
        let (Ok(name_length), Ok(value_length)) = (u32::try_from(name.len()), u32::try_from(value.len()))
        else {
            return false;
        };
        if size > self.max {
            return false;
        }
        self.make_room(name.len() + value.len());
        let start = self.removed.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(Entry { start, name: name_length, value: value_length });
        self.size += size;
        true
    }

    fn evict_to(&mut self, limit: usize) {
        while self.size > limit {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry.size();
        }
    }

    /// Room for `needed` bytes behind the others, without those that were evicted where they are many.
    fn make_room(&mut self, needed: usize) {
        let capacity = self.bytes.capacity();
        if capacity - self.bytes.len() >= needed {
            return;
        }
        let evicted = self.entries.back().map_or(self.bytes.len(), |oldest| self.place(*oldest));
        if evicted >= self.bytes.len() / 2 {
            self.bytes.drain(..evicted);
            self.removed = self.removed.wrapping_add(evicted as u32);
        }
        let wanted = (self.bytes.len() + needed).max(FIRST_BYTES.min(self.max));
        if wanted > capacity {
            let grown = wanted.max((2 * capacity).min(2 * self.max));
            self.bytes.reserve_exact(grown - self.bytes.len());
        }
    }
}
