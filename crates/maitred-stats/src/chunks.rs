//! The memory of sparse histograms: chunks of 32 counts, given out of a bounded store.

use std::collections::BTreeMap;

use crate::scale::{SLOTS, STEPS};

/// Chunks that are allocated together: 8 KiB.
const SEGMENT: usize = 64;

/// What a segment costs: its chunks, and what the allocator and its place in the list take.
const SEGMENT_COST: usize = SEGMENT * STEPS * size_of::<u32>() + 48;

// A chunk can hold a number of a chunk for each slot, two in the place of a count.
const _: () = assert!(SLOTS <= 2 * STEPS);

/// Counts that can reach 2^32 go on in a map beside: one entry for four thousand million values.
pub(crate) struct Chunks {
    segments: Vec<Box<[[u32; STEPS]]>>,
    used: usize,
    max_segments: usize,
    carries: BTreeMap<(u16, u8), u32>,
}

impl Chunks {
    /// At most `bytes`, and no more chunks than a `u16` can number.
    pub(crate) fn new(bytes: usize) -> Self {
        let numbered = usize::from(u16::MAX) / SEGMENT;
        let max_segments = (bytes / SEGMENT_COST).min(numbered);
        Self { segments: Vec::new(), used: 0, max_segments, carries: BTreeMap::new() }
    }

    /// A chunk of zeros; none when all are in use.
    pub(crate) fn take(&mut self) -> Option<u16> {
        if self.used == self.segments.len() * SEGMENT {
            if self.segments.len() == self.max_segments {
                return None;
            }
            self.segments.push(vec![[0; STEPS]; SEGMENT].into_boxed_slice());
        }
        self.used += 1;
        Some((self.used - 1) as u16)
    }

    pub(crate) fn add(&mut self, chunk: u16, step: usize) {
        let count = &mut self.chunk(chunk)[step];
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carries.entry((chunk, step as u8)).or_default() += 1;
        }
    }

    pub(crate) fn read(&self, chunk: u16) -> [u64; STEPS] {
        let mut read = self.counts(chunk).map(u64::from);
        for ((_, step), carry) in self.carries.range((chunk, 0)..=(chunk, u8::MAX)) {
            read[usize::from(*step)] += u64::from(*carry) << u32::BITS;
        }
        read
    }

    /// Uses a chunk as a list: notes that `chunk` is that of `slot`.
    pub(crate) fn list(&mut self, list: u16, slot: usize, chunk: u16) {
        let shift = slot % 2 * 16;
        let pair = &mut self.chunk(list)[slot / 2];
        *pair = *pair & !(0xffff << shift) | u32::from(chunk) << shift;
    }

    /// The chunk of `slot` in such a list.
    pub(crate) fn listed(&self, list: u16, slot: usize) -> u16 {
        (self.counts(list)[slot / 2] >> (slot % 2 * 16)) as u16
    }

    fn chunk(&mut self, chunk: u16) -> &mut [u32; STEPS] {
        &mut self.segments[usize::from(chunk) / SEGMENT][usize::from(chunk) % SEGMENT]
    }

    fn counts(&self, chunk: u16) -> &[u32; STEPS] {
        &self.segments[usize::from(chunk) / SEGMENT][usize::from(chunk) % SEGMENT]
    }

    /// What is allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.segments.len() * SEGMENT_COST + self.carries.len() * 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_on_beyond_32_bits() {
        let mut chunks = Chunks::new(usize::MAX);
        let (first, second) = (chunks.take().unwrap(), chunks.take().unwrap());
        chunks.segments[0][usize::from(first)][3] = u32::MAX;
        chunks.add(first, 3);
        chunks.add(first, 3);
        chunks.add(second, 3);
        assert_eq!((chunks.read(first)[3], chunks.read(second)[3]), ((1 << 32) + 1, 1));
    }

    #[test]
    fn no_chunk_is_given_out_beyond_the_bound() {
        let mut chunks = Chunks::new(3 * SEGMENT_COST - 1);
        assert_eq!(std::iter::from_fn(|| chunks.take()).count(), 2 * SEGMENT);
        assert_eq!(chunks.bytes(), 2 * SEGMENT_COST);
        let mut all = Chunks::new(usize::MAX);
        assert_eq!(std::iter::from_fn(|| all.take()).last(), Some(1023 * SEGMENT as u16 - 1));
    }
}
