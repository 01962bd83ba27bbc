//! Layout of the figures of exchanges in memory. A recorder writes them; this process or another one reads them.
//!
//! ```text
//! head      words with a meaning of their own, below
//! names     of `Server-Timing` entries, by number
//! rings     of threads: samples, and how many of them were written and counted
//! leaves    from the start: key, requests, bytes, histograms      timings   from the end: key, histogram
//! chunks    of all histograms
//! ```
//! Before a sample moves from a ring into leaves, the head notes which count it adds one to, and the old value of that
//! count. If the process is killed in between, a reader can tell whether the sample is counted: no exchange is counted
//! twice or lost.
//!
//! Promises: reading survives any content. Leaves out: access for writing (`recorder.rs`, `table.rs`).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, compiler_fence, fence};
use std::time::Duration;

use crate::chunks::Chunks;
use crate::distribution::Distribution;
use crate::memory::load;
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
/// The sample that is being counted: the number of its count among all words, the old value of that count, and the name
/// of the sample.
const COUNTED: usize = 6;
const COUNTED_BEFORE: usize = 7;
const COUNTED_SAMPLE: usize = 8;
/// Bytes that the figures take, including memory that only their own process sees.
pub(crate) const BYTES: usize = 9;

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

/// Bits of the number of a sample in its ring, in the word that tells which one it is; the ring's number, from 1 on, is above.
const SAMPLE_BITS: u32 = 56;

const _: () = assert!(RINGS < 1 << (u64::BITS - SAMPLE_BITS));

/// The memory of a recorder, in its parts.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a> {
    pub(crate) all: &'a [AtomicU64],
    pub(crate) head: &'a [AtomicU64; HEAD],
    leaves: &'a [AtomicU64],
    pub(crate) chunks: Chunks<'a>,
}

/// Words for leaves and timings of so many bytes, and chunks of so many.
pub(crate) const fn area_words(leaves: usize, chunks: usize) -> usize {
    LEAVES_AT + leaves / size_of::<u64>() + chunks / size_of::<u64>()
}

/// Where the samples of this ring are.
#[inline]
pub(crate) fn ring(all: &[AtomicU64], number: u16) -> Option<Ring<'_>> {
    let words = all.get(RINGS_AT + usize::from(number) * RING..LEAVES_AT)?;
    words.first_chunk().map(Ring)
}

/// The memory of names.
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

    pub(crate) fn ring(&self, number: u16) -> Option<Ring<'a>> {
        ring(self.all, number)
    }

    /// Rings that may have samples.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (u16, Ring<'a>)> + use<'a> {
        let (all, used) = (self.all, self.head[RINGS_USED].load(Acquire).min(RINGS as u64) as u16);
        (0..used).filter_map(move |number| Some((number, ring(all, number)?)))
    }

    /// The words of a leaf.
    #[inline]
    pub(crate) fn leaf(&self, index: usize) -> Option<&'a [AtomicU64; LEAF]> {
        self.leaves.get(index.checked_mul(LEAF)?..)?.first_chunk()
    }

    /// The number of a word of a leaf among all words.
    pub(crate) const fn number_in_leaf(index: usize, word: usize) -> usize {
        LEAVES_AT + index * LEAF + word
    }

    /// The words of a timing.
    pub(crate) fn timing(&self, index: usize) -> Option<&'a [AtomicU64; TIMING]> {
        self.leaves.get(self.start_of_timing(index)?..)?.first_chunk()
    }

    fn start_of_timing(&self, index: usize) -> Option<usize> {
        self.leaves.len().checked_sub(index.checked_add(1)?.checked_mul(TIMING)?)
    }

    /// The number of a word of a timing among all words.
    pub(crate) fn number_in_timing(&self, index: usize, word: usize) -> usize {
        LEAVES_AT + self.start_of_timing(index).unwrap_or_default() + word
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

    /// Notes that the count with this number is about to count this sample of a ring.
    #[inline]
    pub(crate) fn note(&self, number: usize, before: u64, (ring, sample): (u16, u64)) {
        self.head[COUNTED].store(number as u64, Relaxed);
        self.head[COUNTED_BEFORE].store(before, Relaxed);
        // The stores up to here come before the next one in program order, so a killed process has done all of them or
        // not the next.
        compiler_fence(Release);
        self.head[COUNTED_SAMPLE].store(name_of(ring, sample), Relaxed);
        compiler_fence(Release);
    }

    /// Whether the oldest sample in a ring of an ended process has been counted already.
    pub(crate) fn has_counted(&self, ring: u16, sample: u64) -> bool {
        let number = usize::try_from(self.head[COUNTED].load(Relaxed)).unwrap_or(usize::MAX);
        self.head[COUNTED_SAMPLE].load(Relaxed) == name_of(ring, sample)
            && load(self.all, number) != self.head[COUNTED_BEFORE].load(Relaxed)
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

/// A sample of a ring as one word, which is never 0.
fn name_of(ring: u16, sample: u64) -> u64 {
    (u64::from(ring) + 1) << SAMPLE_BITS | sample & ((1 << SAMPLE_BITS) - 1)
}

/// The histograms of the spans of a leaf, and that of the whole time.
#[inline]
pub(crate) fn histograms(words: &[AtomicU64; LEAF]) -> impl Iterator<Item = Sparse<'_>> {
    words[SPANS..].as_chunks().0.iter().map(Sparse)
}
