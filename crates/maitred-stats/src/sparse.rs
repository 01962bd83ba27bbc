//! A histogram that has memory only for the powers of two that occur.

use crate::chunks::{Chunks, NONE};
use crate::distribution::{Distribution, Moments};
use crate::scale::{self, SLOTS};

/// Slots in a row whose chunks are in the histogram itself: a factor of a thousand, over which few spans are spread.
const NEAR: usize = 10;

const _: () = assert!(NEAR < SLOTS);

/// 96 bytes and its chunks, which are in [`Chunks`]. Zeros need none: spans that an exchange does not have are zero.
pub(crate) struct Sparse {
    zeros: u64,
    /// Of values that are not zero, as the next ones.
    count: u64,
    sum: u64,
    squares: f64,
    /// 2^64 - 1 without values.
    min: u64,
    max: u64,
    /// The chunks of these slots, from slot `base` on.
    near: [u32; NEAR],
    /// When they are farther apart: the list in which they are.
    far: u32,
    base: u8,
    coarse: bool,
}

impl Default for Sparse {
    fn default() -> Self {
        Self {
            zeros: 0,
            count: 0,
            sum: 0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
            near: [NONE; NEAR],
            far: NONE,
            base: 0,
            coarse: false,
        }
    }
}

impl Sparse {
    /// Counts `value`. What a chunk cannot be had for is counted, but not placed.
    #[inline]
    pub(crate) fn record(&mut self, value: u64, chunks: &mut Chunks) {
        if value == 0 {
            self.zeros += 1;
            return;
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.squares += value as f64 * value as f64;
        let (slot, step) = scale::place(value);
        let known = self.near.get(slot.wrapping_sub(usize::from(self.base))).copied().unwrap_or(NONE);
        let chunk = if known == NONE { self.open(slot, chunks) } else { known };
        if chunk == NONE || !chunks.add(chunk, step) {
            self.coarse = true;
        }
    }

    fn chunk(&self, slot: usize, chunks: &Chunks) -> u32 {
        if self.far != NONE {
            return chunks.listed(self.far, slot);
        }
        self.near.get(slot.wrapping_sub(usize::from(self.base))).copied().unwrap_or(NONE)
    }

    /// The chunk of a slot that is not near.
    #[cold]
    fn open(&mut self, slot: usize, chunks: &mut Chunks) -> u32 {
        if self.far != NONE {
            let known = chunks.listed(self.far, slot);
            return if known == NONE { self.open_far(slot, chunks) } else { known };
        }
        if !self.bring_near(slot) {
            let Some(far) = chunks.take_list() else { return NONE };
            (0..SLOTS).for_each(|slot| chunks.list(far, slot, self.chunk(slot, chunks)));
            self.far = far;
            return self.open_far(slot, chunks);
        }
        let chunk = chunks.take().unwrap_or(NONE);
        self.near[slot - usize::from(self.base)] = chunk;
        chunk
    }

    fn open_far(&mut self, slot: usize, chunks: &mut Chunks) -> u32 {
        let chunk = chunks.take().unwrap_or(NONE);
        chunks.list(self.far, slot, chunk);
        chunk
    }

    /// Moves the row so that it has a place for `slot`, if that is possible.
    fn bring_near(&mut self, slot: usize) -> bool {
        let taken = |(_, chunk): &(usize, &u32)| **chunk != NONE;
        let first = self.near.iter().enumerate().find(taken);
        let last = self.near.iter().enumerate().rfind(taken);
        let base = usize::from(self.base);
        let (low, high) = match first.zip(last) {
            Some(((first, _), (last, _))) => ((base + first).min(slot), (base + last).max(slot)),
            None => (slot, slot),
        };
        if high - low >= NEAR {
            return false;
        }
        let mut near = [NONE; NEAR];
        for (index, chunk) in self.near.iter().enumerate().filter(taken) {
            near[base + index - low] = *chunk;
        }
        (self.near, self.base) = (near, low as u8);
        true
    }

    pub(crate) fn snapshot(&self, chunks: &Chunks) -> Distribution {
        let moments = Moments {
            zeros: self.zeros,
            count: self.zeros + self.count,
            sum: self.sum,
            squares: self.squares,
            min: if self.zeros > 0 || self.count == 0 { 0 } else { self.min },
            max: self.max,
            coarse: self.coarse,
        };
        let of = |slot| Some((slot, self.chunk(slot, chunks))).filter(|(_, chunk)| *chunk != NONE);
        let taken: Vec<(usize, u32)> = (0..SLOTS).filter_map(of).collect();
        let mut distribution = Distribution::with_moments(moments, taken.len());
        taken.into_iter().for_each(|(slot, chunk)| distribution.push(slot, chunks.read(chunk)));
        distribution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_distribution_of_its_values(
            values in vec((0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift), 0..200)
        ) {
            let mut chunks = Chunks::new(usize::MAX);
            let (mut one, mut other) = (Sparse::default(), Sparse::default());
            let mut expected = Distribution::new();
            for value in values {
                one.record(value, &mut chunks);
                // Chunks of several histograms are mixed.
                other.record(value / 3, &mut chunks);
                expected.record(value);
            }
            prop_assert_eq!(one.snapshot(&chunks), expected);
        }
    }

    #[test]
    fn without_memory_the_values_are_still_counted() {
        let mut chunks = Chunks::new(0);
        let mut histogram = Sparse::default();
        for value in [0, 10_000, 30_000] {
            histogram.record(value, &mut chunks);
        }
        let snapshot = histogram.snapshot(&chunks);
        assert!(snapshot.is_coarse());
        assert_eq!(
            (snapshot.count(), snapshot.sum(), snapshot.min(), snapshot.max()),
            (3, 40_000, 0, 30_000)
        );
        assert!((snapshot.deviation() - 12_472.19).abs() < 0.01, "{}", snapshot.deviation());
        assert_eq!((snapshot.percentile(50.0), snapshot.percentile(100.0)), (0, 30_000));
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<Sparse>(), 96);
    }
}
