//! The rings of threads: each thread notes its samples there until they are counted.
//!
//! ```text
//! a ring    64 samples; how many were ever written; how many of these were counted
//! ```
//! Only the thread that owns a ring writes samples and the first number. Only the holder of the table's lock writes the
//! second one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::table::{LeafKey, TimingKey};
use crate::times::{Span, Spans};

/// Samples of a thread before they go into the table: enough that its lock costs nothing, little enough (5 KiB) that a
/// hundred threads need no half megabyte.
pub(crate) const SAMPLES: usize = 64;

/// Words of a sample.
const SAMPLE: usize = 2 + Span::ALL.len();

/// Words of a ring: its samples, and a place for each number that is written by another thread.
pub(crate) const RING: usize = SAMPLES * SAMPLE + 2 * 8;
const WRITTEN: usize = SAMPLES * SAMPLE;
const TAKEN: usize = WRITTEN + 8;

pub(crate) const RING_BYTES: usize = RING * size_of::<u64>();

/// Threads that have a ring at a time. Further ones count in the table at once.
pub(crate) const THREADS: usize = 124;

/// Full rings that threads leave behind when the table is in use. Without one a thread waits for the table.
pub(crate) const LEFT: usize = 32;

/// All of them.
pub(crate) const RINGS: usize = THREADS + LEFT;

const _: () = assert!(SAMPLES.is_power_of_two());

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

/// A decoded sample.
#[derive(Clone, Copy)]
pub(crate) enum DecodedSample {
    /// The packed key, body bytes, and the spans if they are known.
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

#[derive(Clone, Copy)]
pub(crate) struct Ring<'a>(pub(crate) &'a [AtomicU64; RING]);

impl<'a> Ring<'a> {
    /// Adds a sample, on the ring's own thread, when it is not full. Returns whether it is full now.
    #[inline]
    pub(crate) fn push(self, sample: Sample) -> bool {
        let written = self.0[WRITTEN].load(Relaxed);
        for (word, value) in self.place(written).iter().zip(sample) {
            word.store(value, Relaxed);
        }
        // A thread that sees the new number sees the sample.
        self.0[WRITTEN].store(written.wrapping_add(1), Release);
        // The thread that counted a sample has read it before its place is written again.
        written.wrapping_add(1).wrapping_sub(self.0[TAKEN].load(Acquire)) == SAMPLES as u64
    }

    fn place(self, number: u64) -> &'a [AtomicU64] {
        let start = number as usize % SAMPLES * SAMPLE;
        &self.0[start..start + SAMPLE]
    }

    /// The samples that were not counted, with their numbers; never more than there are places.
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

    /// The sample with this number was counted, and all before.
    pub(crate) fn note_taken(self, number: u64) {
        self.0[TAKEN].store(number.wrapping_add(1), Release);
    }
}

/// The owners of the rings.
#[derive(Default)]
pub(crate) struct Owners {
    free: Vec<u16>,
    /// Full rings without an owner, for the next thread that has the table.
    left: Vec<u16>,
    /// Rings that threads own.
    owned: usize,
    used: u16,
}

impl Owners {
    /// A ring for a thread that has none; none when there are too many.
    pub(crate) fn join(&mut self) -> Option<u16> {
        let ring = (self.owned < THREADS).then(|| self.take())??;
        self.owned += 1;
        Some(ring)
    }

    /// Leaves a full ring behind and returns another one; none when too many were left behind.
    pub(crate) fn leave_behind(&mut self, full: u16) -> Option<u16> {
        let ring = (self.left.len() < LEFT).then(|| self.take())??;
        self.left.push(full);
        Some(ring)
    }

    /// The ring of a thread that ends; it is empty.
    pub(crate) fn give_back(&mut self, ring: u16) {
        self.owned -= 1;
        self.free.push(ring);
    }

    /// The rings that were left behind, and stay so until they are [`free`](Self::set_free).
    pub(crate) fn left(&self) -> Vec<u16> {
        self.left.clone()
    }

    /// Frees the first `count` rings that were left behind: they have been counted.
    pub(crate) fn set_free(&mut self, count: usize) {
        self.free.extend(self.left.drain(..count));
    }

    fn take(&mut self) -> Option<u16> {
        self.free.pop().or_else(|| {
            (usize::from(self.used) < RINGS).then(|| {
                self.used += 1;
                self.used - 1
            })
        })
    }

    /// How many were ever in use at the same time.
    pub(crate) fn used(&self) -> u16 {
        self.used
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.owned, self.left.len())
    }
}
