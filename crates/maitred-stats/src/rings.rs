//! The rings of threads: each thread notes its samples there until they are counted.
//!
//! ```text
//! a ring    96 samples; how many were ever written; how many of these were taken
//! ```
//! Only the thread that owns a ring writes samples and the first number. Only the holder of the table's lock writes the
//! second one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::table::{LeafKey, TimingKey};
use crate::times::{Span, Spans};

/// Samples of a thread before it wants to count them: enough that the table's lock costs nothing.
const WANTED: u64 = 64;

/// Samples of a ring: the thread waits for the table when it is full, so that a hundred threads need no megabyte.
pub(crate) const SAMPLES: usize = 96;

const SAMPLE: usize = 2 + Span::ALL.len();

pub(crate) const RING: usize = SAMPLES * SAMPLE + 2 * 8;
const WRITTEN: usize = SAMPLES * SAMPLE;
const TAKEN: usize = WRITTEN + 8;

pub(crate) const RING_BYTES: usize = RING * size_of::<u64>();

/// Threads that have a ring at a time. Further ones count in the table at once.
pub(crate) const RINGS: usize = 124;

/// One sample: a key and its values.
///
/// ```text
/// of an exchange: packed LeafKey,               body bytes, spans or UNTIMED
/// of a timing:    packed TimingKey | IS_TIMING, nanoseconds
/// ```
pub(crate) type Sample = [u64; SAMPLE];

/// Neither a class of status nor the number of a name has this bit.
pub(crate) const IS_TIMING: u64 = 0x80;

/// Stands in the place of the first span when no clock was read. As a span it would be 584 years.
const UNTIMED: u64 = u64::MAX;

pub(crate) fn exchange(key: LeafKey, bytes: u64, spans: Option<Spans>) -> Sample {
    let Spans([a, b, c, d, e, f, g]) = spans.unwrap_or(Spans([UNTIMED; Span::ALL.len()]));
    [key.pack() & !IS_TIMING, bytes, a, b, c, d, e, f, g]
}

pub(crate) fn timing(key: TimingKey, nanos: u64) -> Sample {
    [key.pack() | IS_TIMING, nanos, 0, 0, 0, 0, 0, 0, 0]
}

#[derive(Clone, Copy)]
pub(crate) enum DecodedSample {
    Exchange(u64, u64, Option<Spans>),
    Timing(TimingKey, u64),
}

#[inline]
pub(crate) fn noted([key, value, a, b, c, d, e, f, g]: Sample) -> DecodedSample {
    if key & IS_TIMING == 0 {
        DecodedSample::Exchange(key, value, (a != UNTIMED).then_some(Spans([a, b, c, d, e, f, g])))
    } else {
        DecodedSample::Timing(TimingKey::unpack(key & !IS_TIMING), value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Little,
    /// They are, if nothing else uses the table.
    Much,
    /// There is no room for another sample.
    Full,
}

#[derive(Clone, Copy)]
pub(crate) struct Ring<'a>(pub(crate) &'a [AtomicU64; RING]);

impl<'a> Ring<'a> {
    /// Adds a sample, on the ring's own thread, when it is not full. Returns how full it is now.
    #[inline]
    pub(crate) fn push(self, sample: Sample) -> Fill {
        let written = self.0[WRITTEN].load(Relaxed);
        for (word, value) in self.place(written).iter().zip(sample) {
            word.store(value, Relaxed);
        }
        // A thread that sees the new number sees the sample.
        self.0[WRITTEN].store(written.wrapping_add(1), Release);
        // The thread that took a sample has read it before its place is written again.
        match written.wrapping_add(1).wrapping_sub(self.0[TAKEN].load(Acquire)) {
            ..WANTED => Fill::Little,
            waiting if waiting < SAMPLES as u64 => Fill::Much,
            _ => Fill::Full,
        }
    }

    fn place(self, number: u64) -> &'a [AtomicU64] {
        let start = number as usize % SAMPLES * SAMPLE;
        &self.0[start..start + SAMPLE]
    }

    /// The samples that were not taken, with their numbers; never more than there are places.
    pub(crate) fn samples(self) -> impl Iterator<Item = (u64, Sample)> {
        let (taken, written) = (self.0[TAKEN].load(Relaxed), self.0[WRITTEN].load(Acquire));
        (0..written.wrapping_sub(taken).min(SAMPLES as u64)).map(move |at| {
            let number = taken.wrapping_add(at);
            let words = self.place(number);
            (number, std::array::from_fn(|word| words[word].load(Relaxed)))
        })
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0[TAKEN].load(Relaxed) == self.0[WRITTEN].load(Acquire)
    }

    /// The sample with this number is about to be counted, and all before were.
    pub(crate) fn note_taken(self, number: u64) {
        self.0[TAKEN].store(number.wrapping_add(1), Release);
    }
}

#[derive(Default)]
pub(crate) struct Owners {
    free: Vec<u16>,
    /// How many were ever in use at the same time.
    pub(crate) used: u16,
}

impl Owners {
    /// A ring for a thread that has none; none when there are too many.
    pub(crate) fn join(&mut self) -> Option<u16> {
        self.free.pop().or_else(|| {
            (usize::from(self.used) < RINGS).then(|| {
                self.used += 1;
                self.used - 1
            })
        })
    }

    pub(crate) fn give_back(&mut self, ring: u16) {
        self.free.push(ring);
    }

    #[cfg(test)]
    pub(crate) fn owned(&self) -> usize {
        usize::from(self.used) - self.free.len()
    }
}
