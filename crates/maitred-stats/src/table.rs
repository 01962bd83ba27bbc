//! The figures of exchanges by listener, pool, route and class of status, in bounded memory.
//!
//! Promises: never more than its limit, by its own account, whatever it is given. When the memory is used up, new leaves
//! are counted with the route "other", and values of known ones are counted but not placed
//! ([`Distribution::is_coarse`]). Leaves out: threads and locks (`recorder.rs`), what a route is called (`routes.rs`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::chunks::Chunks;
use crate::distribution::Distribution;
use crate::routes::OTHER;
use crate::sparse::Sparse;
use crate::times::{Span, Spans};

/// Which exchanges are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafKey {
    /// The number of the listener.
    pub listener: u16,
    /// The number of the pool.
    pub pool: u16,
    /// The number of the route, as [`Routes`](crate::Routes) gives it.
    pub route: u32,
    /// The first digit of the status; 0 without a response.
    pub class: u8,
}

impl LeafKey {
    /// As one word: of the route 24 bits, which are more than there are routes.
    pub(crate) fn pack(self) -> u64 {
        let Self { listener, pool, route, class } = self;
        u64::from(listener) << 48
            | u64::from(pool) << 32
            | u64::from(route & MAX_ROUTE) << 8
            | u64::from(class)
    }

    pub(crate) fn unpack(word: u64) -> Self {
        let route = (word >> 8) as u32 & MAX_ROUTE;
        Self { listener: (word >> 48) as u16, pool: (word >> 32) as u16, route, class: word as u8 }
    }
}

/// The largest number of a route that fits.
const MAX_ROUTE: u32 = 0x00ff_ffff;

/// Which entries of applications' `Server-Timing` fields are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimingKey {
    /// The number of the pool.
    pub pool: u16,
    /// The number of the route.
    pub route: u32,
    /// The number of the name.
    pub name: u8,
}

impl TimingKey {
    /// As one word.
    pub(crate) fn pack(self) -> u64 {
        LeafKey { listener: 0, pool: self.pool, route: self.route, class: self.name }.pack()
    }

    pub(crate) fn unpack(word: u64) -> Self {
        let LeafKey { pool, route, class, .. } = LeafKey::unpack(word);
        Self { pool, route, name: class }
    }
}

/// The listener and the pool of a leaf that stands for several, because there was no memory for one of each.
pub const SEVERAL: u16 = u16::MAX;

/// The figures of one leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leaf {
    /// Exchanges.
    pub requests: u64,
    /// Body bytes of their responses.
    pub bytes: u64,
    /// Their spans, in nanoseconds, in the order of [`Span::ALL`].
    pub spans: [Distribution; Span::ALL.len()],
    /// Each one's whole time, in nanoseconds.
    pub total: Distribution,
}

impl Leaf {
    /// Adds the figures of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        for (mine, theirs) in self.spans.iter_mut().zip(&other.spans) {
            mine.merge(theirs);
        }
        self.total.merge(&other.total);
    }
}

/// What is kept of one leaf.
struct Kept {
    key: LeafKey,
    requests: u64,
    bytes: u64,
    spans: [Sparse; Span::ALL.len()],
    total: Sparse,
}

struct KeptTiming {
    key: TimingKey,
    nanos: Sparse,
}

/// A place in a hash map of these keys: the entry with its control byte, in a table that has just doubled; and a
/// pointer in a list that has just doubled, with the allocator's own part.
const PLACE_COST: usize = (size_of::<(u64, u32)>() + 1) * 16 / 7 + 2 * size_of::<usize>() + 16;

const LEAF_COST: usize = size_of::<Kept>() + PLACE_COST;
const TIMING_COST: usize = size_of::<KeptTiming>() + PLACE_COST;

/// Of the limit, in sixteenths: what chunks of histograms may take at most. The rest is for leaves.
const CHUNKS_SHARE: usize = 12;

/// The figures, for whoever holds its lock.
pub(crate) struct Table {
    leaves: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    #[expect(
        clippy::vec_box,
        reason = "it grows without a copy of all leaves, which would be twice the memory"
    )]
    kept: Vec<Box<Kept>>,
    timings: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    kept_timings: Vec<KeptTiming>,
    chunks: Chunks,
    /// Without the chunks.
    used: usize,
    limit: usize,
    /// The leaf of the last exchange: the next one is often its neighbour.
    last: (u64, u32),
    /// Entries that found no place.
    unkept_timings: u64,
}

impl Table {
    /// Of at most `limit` bytes, but for leaves of exchanges for which there is no other: seven of them.
    pub(crate) fn new(limit: usize) -> Self {
        let mut table = Self {
            leaves: HashMap::default(),
            kept: Vec::new(),
            timings: HashMap::default(),
            kept_timings: Vec::new(),
            chunks: Chunks::new(limit / 16 * CHUNKS_SHARE),
            used: 0,
            limit,
            last: (of_several(0).pack(), 0),
            unkept_timings: 0,
        };
        (0..CLASSES).for_each(|class| _ = table.keep(of_several(class)));
        table
    }

    /// Counts one exchange, and its spans if they are known; the key is packed.
    pub(crate) fn count(&mut self, key: u64, bytes: u64, spans: Option<&Spans>) {
        let index = if self.last.0 == key { self.last.1 } else { self.find(key) };
        self.last = (key, index);
        let Some(kept) = self.kept.get_mut(index as usize) else { return };
        kept.requests += 1;
        kept.bytes = kept.bytes.saturating_add(bytes);
        let Some(spans) = spans else { return };
        for (histogram, nanos) in kept.spans.iter_mut().zip(spans.0) {
            histogram.record(nanos, &mut self.chunks);
        }
        kept.total.record(spans.total(), &mut self.chunks);
    }

    /// Counts one entry of a `Server-Timing` field.
    pub(crate) fn count_timing(&mut self, key: TimingKey, nanos: u64) {
        let index = match self.timings.get(&key.pack()) {
            Some(index) => *index,
            None => {
                match self.keep_timing(key).or_else(|| self.keep_timing(TimingKey { route: OTHER, ..key })) {
                    Some(index) => index,
                    None => return self.unkept_timings += 1,
                }
            }
        };
        let Some(kept) = self.kept_timings.get_mut(index as usize) else { return };
        kept.nanos.record(nanos, &mut self.chunks);
    }

    fn find(&mut self, key: u64) -> u32 {
        if let Some(index) = self.leaves.get(&key) {
            return *index;
        }
        let key = LeafKey::unpack(key);
        if self.has_room(LEAF_COST) {
            return self.keep(key);
        }
        let other = LeafKey { route: OTHER, ..key };
        let several = of_several(key.class.min(CLASSES - 1));
        self.leaves
            .get(&other.pack())
            .or_else(|| self.leaves.get(&several.pack()))
            .copied()
            .unwrap_or_default()
    }

    fn keep(&mut self, key: LeafKey) -> u32 {
        let index = self.kept.len() as u32;
        let kept = Kept { key, requests: 0, bytes: 0, spans: Default::default(), total: Sparse::default() };
        self.kept.push(Box::new(kept));
        self.leaves.insert(key.pack(), index);
        self.used += LEAF_COST;
        index
    }

    fn keep_timing(&mut self, key: TimingKey) -> Option<u32> {
        if let Some(index) = self.timings.get(&key.pack()) {
            return Some(*index);
        }
        if !self.has_room(TIMING_COST) {
            return None;
        }
        let index = self.kept_timings.len() as u32;
        self.kept_timings.push(KeptTiming { key, nanos: Sparse::default() });
        self.timings.insert(key.pack(), index);
        self.used += TIMING_COST;
        Some(index)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.used + bytes <= self.limit / 16 * (16 - CHUNKS_SHARE)
    }

    /// What it takes now.
    pub(crate) fn bytes(&self) -> usize {
        self.used + self.chunks.bytes()
    }

    /// Entries that were counted nowhere, for want of memory.
    pub(crate) fn unkept_timings(&self) -> u64 {
        self.unkept_timings
    }

    /// Up to `count` leaves, from number `first` on; none when there are no more.
    pub(crate) fn leaves(&self, first: usize, count: usize) -> Vec<(LeafKey, Leaf)> {
        let snapshot = |kept: &Kept| Leaf {
            requests: kept.requests,
            bytes: kept.bytes,
            spans: kept.spans.each_ref().map(|span| span.snapshot(&self.chunks)),
            total: kept.total.snapshot(&self.chunks),
        };
        self.kept.iter().skip(first).take(count).map(|kept| (kept.key, snapshot(kept))).collect()
    }

    /// The same of `Server-Timing`.
    pub(crate) fn timings(&self, first: usize, count: usize) -> Vec<(TimingKey, Distribution)> {
        let kept = self.kept_timings.iter().skip(first).take(count);
        kept.map(|kept| (kept.key, kept.nanos.snapshot(&self.chunks))).collect()
    }
}

/// Classes of status that have a leaf from the start: 0 to 5.
const CLASSES: u8 = 6;

fn of_several(class: u8) -> LeafKey {
    LeafKey { listener: SEVERAL, pool: SEVERAL, route: OTHER, class }
}

/// Mixes numbers that no peer chooses.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        // The fraction of the golden ratio: neighbours end up far from each other.
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
