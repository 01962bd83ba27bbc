//! Layout of the figures of exchanges in memory. A recorder writes them; this process or another one reads them.
//!
//! ```text
//! head      words with a meaning of their own, below
//! names     of `Server-Timing` entries, by number
//! rings     of threads: samples, and how many of them were written and taken
//! leaves    from the start: key, requests, bytes, histograms      timings   from the end: key, histogram
//! chunks    of all histograms
//! ```
//! A sample is taken from its ring before it is counted in a leaf: a process that is killed in between loses this one.
//!
//! Promises: reading survives any content. Leaves out: access for writing (`recorder.rs`, `table.rs`).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

use crate::chunks::Chunks;
use crate::distribution::Distribution;
use crate::names::NAMES_WORDS;
use crate::rings::{RING, RINGS, Ring};
use crate::sparse::{SPARSE, Sparse};
use crate::table::{Leaf, LeafKey, TimingKey};
use crate::times::Span;

pub(crate) const HEAD: usize = 16;
/// Whether exchanges are counted.
pub(crate) const ON: usize = 0;
/// Odd while leaves are being changed.
const SEQUENCE: usize = 1;
/// Leaves and timings that there are.
pub(crate) const LEAVES: usize = 2;
pub(crate) const TIMINGS: usize = 3;
/// Entries of `Server-Timing` that found no place.
pub(crate) const LOST: usize = 4;
/// Rings that were ever used.
pub(crate) const RINGS_USED: usize = 5;
/// Bytes that the figures take, including memory that only their own process sees.
pub(crate) const BYTES: usize = 6;

const NAMES_AT: usize = HEAD;
const RINGS_AT: usize = (NAMES_AT + NAMES_WORDS).next_multiple_of(16);
const LEAVES_AT: usize = RINGS_AT + RINGS * RING;

/// Words of a leaf: its key, requests, bytes, none, and the histograms of its spans and of its whole time.
pub(crate) const LEAF: usize = 4 + (Span::ALL.len() + 1) * SPARSE;
pub(crate) const KEY: usize = 0;
pub(crate) const REQUESTS: usize = 1;
pub(crate) const BODY_BYTES: usize = 2;
const SPANS: usize = 4;

/// Words of a timing: its key, and its histogram.
pub(crate) const TIMING: usize = 1 + SPARSE;

/// Bytes before leaves and chunks.
pub(crate) const FIXED_BYTES: usize = LEAVES_AT * size_of::<u64>();

#[derive(Clone, Copy)]
pub(crate) struct Area<'a> {
    pub(crate) all: &'a [AtomicU64],
    pub(crate) head: &'a [AtomicU64; HEAD],
    leaves: &'a [AtomicU64],
    pub(crate) chunks: Chunks<'a>,
}

pub(crate) const fn area_words(leaves: usize, chunks: usize) -> usize {
    LEAVES_AT + leaves / size_of::<u64>() + chunks / size_of::<u64>()
}

#[inline]
pub(crate) fn ring(all: &[AtomicU64], number: u16) -> Option<Ring<'_>> {
    let words = all.get(RINGS_AT + usize::from(number) * RING..LEAVES_AT)?;
    words.first_chunk().map(Ring)
}

pub(crate) fn names(all: &[AtomicU64]) -> &[AtomicU64] {
    all.get(NAMES_AT..NAMES_AT + NAMES_WORDS).unwrap_or_default()
}

impl<'a> Area<'a> {
    /// An area with so many bytes for leaves and timings, and the rest for chunks; none when there is too little for
    /// that.
    pub(crate) fn new(all: &'a [AtomicU64], leaf_bytes: usize) -> Option<Self> {
        let (leaves, chunks) = all.get(LEAVES_AT..)?.split_at_checked(leaf_bytes / size_of::<u64>())?;
        Some(Self { all, head: all.first_chunk()?, leaves, chunks: Chunks::new(chunks)? })
    }

    pub(crate) fn rings(&self) -> impl Iterator<Item = Ring<'a>> + use<'a> {
        let (all, used) = (self.all, self.head[RINGS_USED].load(Acquire).min(RINGS as u64) as u16);
        (0..used).filter_map(move |number| ring(all, number))
    }

    #[inline]
    pub(crate) fn leaf(&self, index: usize) -> Option<&'a [AtomicU64; LEAF]> {
        self.leaves.get(index.checked_mul(LEAF)?..)?.first_chunk()
    }

    pub(crate) fn timing(&self, index: usize) -> Option<&'a [AtomicU64; TIMING]> {
        let start = self.leaves.len().checked_sub(index.checked_add(1)?.checked_mul(TIMING)?)?;
        self.leaves.get(start..)?.first_chunk()
    }

    /// The number of leaves or timings, limited to those that fit: a damaged count cannot lead outside the memory.
    fn count(&self, which: usize) -> usize {
        self.head[which].load(Acquire).min(self.leaves.len() as u64) as usize
    }

    /// Up to `count` leaves, from number `first` on; none when there are no more.
    pub(crate) fn read_leaves(&self, first: usize, count: usize) -> Vec<(LeafKey, Leaf)> {
        let last = self.count(LEAVES).min(first.saturating_add(count));
        (first..last).filter_map(|index| Some(self.read_leaf(self.leaf(index)?))).collect()
    }

    fn read_leaf(&self, words: &[AtomicU64; LEAF]) -> (LeafKey, Leaf) {
        let mut histograms = histograms(words).map(|histogram| histogram.snapshot(&self.chunks));
        let leaf = Leaf {
            requests: words[REQUESTS].load(Relaxed),
            bytes: words[BODY_BYTES].load(Relaxed),
            spans: std::array::from_fn(|_| histograms.next().unwrap_or_default()),
            total: histograms.next().unwrap_or_default(),
        };
        (LeafKey::unpack(words[KEY].load(Relaxed)), leaf)
    }

    /// Up to `count` entries of `Server-Timing`, from number `first` on; none when there are no more.
    pub(crate) fn read_timings(&self, first: usize, count: usize) -> Vec<(TimingKey, Distribution)> {
        let last = self.count(TIMINGS).min(first.saturating_add(count));
        let timing = |index: usize| {
            let (key, histogram) = self.timing(index)?.split_first()?;
            let histogram = Sparse(histogram.first_chunk()?).snapshot(&self.chunks);
            Some((TimingKey::unpack(key.load(Relaxed)), histogram))
        };
        (first..last).filter_map(timing).collect()
    }

    /// Changes leaves so that a reader elsewhere knows that it may have seen one half changed.
    pub(crate) fn change(&self, work: impl FnOnce()) {
        let sequence = &self.head[SEQUENCE];
        let begun = sequence.load(Relaxed) | 1;
        sequence.store(begun, Relaxed);
        fence(Release);
        work();
        sequence.store(begun.wrapping_add(1), Release);
    }

    /// Returns the result of a `read` during which no change took place. Each try counts `tries` down. When they are
    /// used up, the last read is returned as it is: a process that was stopped during a change is not waited for.
    pub(crate) fn unchanged<T>(&self, tries: &mut u32, read: impl Fn() -> T) -> T {
        let sequence = &self.head[SEQUENCE];
        while *tries > 0 {
            let begun = sequence.load(Acquire);
            if begun.is_multiple_of(2) {
                let found = read();
                fence(Acquire);
                if sequence.load(Relaxed) == begun {
                    return found;
                }
            }
            *tries -= 1;
            std::thread::sleep(PAUSE);
        }
        read()
    }
}

/// The pause between two tries: a change takes some microseconds, unless its thread has lost its processor.
const PAUSE: Duration = Duration::from_micros(50);

/// The histograms of the spans of a leaf, and that of the whole time.
#[inline]
pub(crate) fn histograms(words: &[AtomicU64; LEAF]) -> impl Iterator<Item = Sparse<'_>> {
    words[SPANS..].as_chunks().0.iter().map(Sparse)
}
