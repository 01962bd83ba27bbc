//! The figures of exchanges by listener, pool, route and class of status, in bounded memory.
//!
//! Promises: never more than its limit, by its own account. When the memory is used up, new leaves are counted with the
//! route "other", and values of known ones are counted but not placed ([`Distribution::is_coarse`]). Leaves out: the
//! layout and reading (`area.rs`), threads and locks (`recorder.rs`), names of routes (`routes.rs`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::area::{Area, BODY_BYTES, KEY, LEAF, LEAVES, LOST, REQUESTS, TIMING, TIMINGS, histograms};
use crate::distribution::Distribution;
use crate::memory::{add, load};
use crate::rings::{DecodedSample, Ring, Sample, noted};
use crate::routes::OTHER;
use crate::sparse::{SPARSE, Sparse};
use crate::times::{Span, Spans};

/// The key of exchanges that are counted together.
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
    /// The key as one word: of the route 24 bits, which are more than there are routes.
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

/// The key of entries of applications' `Server-Timing` fields that are counted together.
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
    pub(crate) fn pack(self) -> u64 {
        LeafKey { listener: 0, pool: self.pool, route: self.route, class: self.name }.pack()
    }

    pub(crate) fn unpack(word: u64) -> Self {
        let LeafKey { pool, route, class, .. } = LeafKey::unpack(word);
        Self { pool, route, name: class }
    }
}

/// The numbers in the place of a pool, of timings whose attributes clients choose. All together have an eighth of the memory for leaves and
/// timings; further ones count with the last number.
pub const CHOSEN: std::ops::Range<u16> = 0x8000..0xffc0;

/// The last number.
pub const CHOSEN_OTHER: u16 = CHOSEN.end - 1;

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
    pub(crate) fn record(&mut self, bytes: u64, spans: Option<Spans>) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let Some(spans) = spans else { return };
        for (span, nanos) in self.spans.iter_mut().zip(spans.0) {
            span.record(nanos);
        }
        self.total.record(spans.total());
    }

    /// Adds the figures of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (mine, theirs) in self.spans.iter_mut().zip(&other.spans) {
            mine.merge(theirs);
        }
        self.total.merge(&other.total);
    }
}

/// A place in a hash map of these keys: the entry with its control byte, in a table that has just doubled.
const PLACE_COST: usize = (size_of::<(u64, u32)>() + 1) * 16 / 7;

const LEAF_COST: usize = LEAF * size_of::<u64>() + PLACE_COST;
const TIMING_COST: usize = TIMING * size_of::<u64>() + PLACE_COST;

/// The writer of leaves and timings: the thread that holds its lock. The leaves are in an [`Area`].
pub(crate) struct Table {
    /// Where they are.
    leaves: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    timings: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// Bytes in use, without the chunks.
    used: usize,
    /// Of these, bytes of [`CHOSEN`] timings.
    chosen: usize,
    limit: usize,
    /// The leaf of the last exchange: the next one is often its neighbour.
    last: (u64, u32),
}

impl Table {
    /// A table with leaves and timings of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            leaves: HashMap::default(),
            timings: HashMap::default(),
            used: 0,
            chosen: 0,
            limit,
            last: (of_several(0).pack(), 0),
        }
    }

    /// Makes the leaves of exchanges that find no place for a leaf of their own. Called once, at first.
    pub(crate) fn keep_those_of_several(&mut self, area: &Area<'_>) {
        (0..CLASSES).for_each(|class| _ = self.keep(of_several(class), area));
    }

    pub(crate) fn fold(&mut self, area: &Area<'_>, ring: Ring<'_>) {
        for (number, sample) in ring.samples() {
            ring.note_taken(number);
            self.count(area, sample);
        }
    }

    pub(crate) fn count(&mut self, area: &Area<'_>, sample: Sample) {
        match noted(sample) {
            DecodedSample::Exchange(key, bytes, spans) => self.count_exchange(area, key, bytes, spans),
            DecodedSample::Timing(key, nanos) => self.count_timing(area, key, nanos),
        }
    }

    fn count_exchange(&mut self, area: &Area<'_>, key: u64, bytes: u64, spans: Option<Spans>) {
        let index = if self.last.0 == key { self.last.1 } else { self.find(key, area) };
        self.last = (key, index);
        let Some(leaf) = area.leaf(index as usize) else { return };
        add(&leaf[REQUESTS], 1);
        leaf[BODY_BYTES].store(leaf[BODY_BYTES].load(Relaxed).saturating_add(bytes), Relaxed);
        let Some(spans) = spans else { return };
        for (histogram, nanos) in histograms(leaf).zip(spans.0.into_iter().chain([spans.total()])) {
            histogram.record(nanos, &area.chunks);
        }
    }

    fn count_timing(&mut self, area: &Area<'_>, key: TimingKey, nanos: u64) {
        match self.timing_of(key, area).and_then(|index| histogram(area, index)) {
            Some(histogram) => histogram.record(nanos, &area.chunks),
            None => add(&area.head[LOST], 1),
        }
    }

    /// The number of a timing, of the route "other" where there is no room for it.
    fn timing_of(&mut self, key: TimingKey, area: &Area<'_>) -> Option<u32> {
        let pool = if CHOSEN.contains(&key.pool) { CHOSEN_OTHER } else { key.pool };
        self.keep_timing(key, area)
            .or_else(|| self.keep_timing(TimingKey { pool, route: OTHER, ..key }, area))
    }

    fn find(&mut self, key: u64, area: &Area<'_>) -> u32 {
        if let Some(index) = self.leaves.get(&key) {
            return *index;
        }
        let key = LeafKey::unpack(key);
        if self.has_room(LEAF_COST) {
            return self.keep(key, area);
        }
        let other = LeafKey { route: OTHER, ..key };
        let several = of_several(key.class.min(CLASSES - 1));
        self.leaves
            .get(&other.pack())
            .or_else(|| self.leaves.get(&several.pack()))
            .copied()
            .unwrap_or_default()
    }

    fn keep(&mut self, key: LeafKey, area: &Area<'_>) -> u32 {
        let index = self.leaves.len();
        if let Some(leaf) = area.leaf(index) {
            leaf[KEY].store(key.pack(), Relaxed);
        }
        area.head[LEAVES].store(index as u64 + 1, Release);
        self.leaves.insert(key.pack(), index as u32);
        self.used += LEAF_COST;
        index as u32
    }

    fn keep_timing(&mut self, key: TimingKey, area: &Area<'_>) -> Option<u32> {
        if let Some(index) = self.timings.get(&key.pack()) {
            return Some(*index);
        }
        let chosen = if CHOSEN.contains(&key.pool) { TIMING_COST } else { 0 };
        let fits = chosen == 0 || key.pool == CHOSEN_OTHER || self.chosen + chosen <= self.limit / 8;
        if !fits || !self.has_room(TIMING_COST) {
            return None;
        }
        self.chosen += chosen;
        let index = self.timings.len();
        area.timing(index)?[KEY].store(key.pack(), Relaxed);
        area.head[TIMINGS].store(index as u64 + 1, Release);
        self.timings.insert(key.pack(), index as u32);
        self.used += TIMING_COST;
        Some(index as u32)
    }

    /// Adds the counts of routes to their replacements, and sets them to zero.
    pub(crate) fn move_routes(&mut self, area: &Area<'_>, moves: &HashMap<u32, u32>) {
        let of = |key: &u64| moves.get(&LeafKey::unpack(*key).route).copied();
        let leaves: Vec<(u64, u32, u32)> =
            self.leaves.iter().filter_map(|(key, index)| Some((*key, *index, of(key)?))).collect();
        for (key, index, route) in leaves {
            let target = self.find(LeafKey { route, ..LeafKey::unpack(key) }.pack(), area);
            let (Some(from), Some(into)) = (area.leaf(index as usize), area.leaf(target as usize)) else {
                continue;
            };
            for word in [REQUESTS, BODY_BYTES] {
                into[word].store(load(into, word).saturating_add(load(from, word)), Relaxed);
                from[word].store(0, Relaxed);
            }
            histograms(from).zip(histograms(into)).for_each(|(from, into)| from.pour(into, &area.chunks));
        }
        let timings: Vec<(u64, u32, u32)> =
            self.timings.iter().filter_map(|(key, index)| Some((*key, *index, of(key)?))).collect();
        for (key, index, route) in timings {
            let target = self.timing_of(TimingKey { route, ..TimingKey::unpack(key) }, area);
            let into = target.and_then(|target| histogram(area, target));
            if let (Some(from), Some(into)) = (histogram(area, index), into) {
                from.pour(into, &area.chunks);
            }
        }
    }

    pub(crate) fn requests(&self, area: &Area<'_>) -> Vec<u64> {
        let mut requests = Vec::new();
        for (key, index) in &self.leaves {
            let route = LeafKey::unpack(*key).route as usize;
            if requests.len() <= route {
                requests.resize(route + 1, 0_u64);
            }
            let counted = area.leaf(*index as usize).map_or(0, |leaf| load(leaf, REQUESTS));
            requests[route] = requests[route].saturating_add(counted);
        }
        requests
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.used + bytes <= self.limit
    }

    pub(crate) fn bytes(&self, area: &Area<'_>) -> usize {
        self.used + area.chunks.bytes()
    }
}

fn histogram<'a>(area: &Area<'a>, index: u32) -> Option<Sparse<'a>> {
    area.timing(index as usize)?.last_chunk::<SPARSE>().map(Sparse)
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
