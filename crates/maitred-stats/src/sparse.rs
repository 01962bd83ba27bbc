//! A histogram that has memory only for the powers of two that occur.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::chunks::{Chunks, NONE, half, set_half};
use crate::distribution::Distribution;
use crate::memory::add;
use crate::scale::{self, SLOTS};

/// Slots in a row whose chunks are in the histogram itself: a factor of a thousand, over which few spans are spread.
const NEAR: usize = 10;

const _: () = assert!(NEAR < SLOTS);

/// Words of a histogram, beside its chunks, which are in [`Chunks`]. Zeros need none: spans that an exchange does not have are
/// zero.
pub(crate) const SPARSE: usize = 12;

const ZEROS: usize = 0;
/// The number of values that are not zero, then their sum, squares and extremes.
const COUNT: usize = 1;
const SUM: usize = 2;
const SQUARES: usize = 3;
/// The inverse of the smallest one: 0 without values.
const LEAST: usize = 4;
const MOST: usize = 5;
/// The chunks of the slots from `base` on, that of slot `n` at `n` modulo [`NEAR`].
const ROW: usize = 6;
/// When they are farther apart: the list in which they are, 32 bits; `base`, 8 bits; whether something was not placed.
const FORM: usize = 11;
const BASE: u32 = 32;
const COARSE: u64 = 1 << 40;

const _: () = assert!(ROW + NEAR / 2 == FORM && FORM + 1 == SPARSE);

/// A histogram in its words. It has one writer at a time.
#[derive(Clone, Copy)]
pub(crate) struct Sparse<'a>(pub(crate) &'a [AtomicU64; SPARSE]);

impl Sparse<'_> {
    /// Counts `value`. When no chunk is left, the value counts without a place.
    #[inline]
    pub(crate) fn record(self, value: u64, chunks: &Chunks<'_>) {
        if value == 0 {
            return add(&self.0[ZEROS], 1);
        }
        add(&self.0[COUNT], 1);
        keep_most(&self.0[LEAST], !value);
        keep_most(&self.0[MOST], value);
        self.0[SUM].store(self.get(SUM).saturating_add(value), Relaxed);
        let squares = f64::from_bits(self.get(SQUARES)) + value as f64 * value as f64;
        self.0[SQUARES].store(squares.to_bits(), Relaxed);
        let (slot, step) = scale::place(value);
        let chunk = self.chunk_for(slot, chunks);
        if chunk == NONE || !chunks.add(chunk, step) {
            self.0[FORM].store(self.get(FORM) | COARSE, Relaxed);
        }
    }

    /// Adds all that was counted to another one, and counts from zero. Chunks stay where they are.
    pub(crate) fn pour(self, into: Sparse<'_>, chunks: &Chunks<'_>) {
        let mut coarse = self.get(FORM) & COARSE;
        for slot in 0..SLOTS {
            let chunk = self.chunk(slot, chunks);
            if chunk == NONE {
                continue;
            }
            for (step, count) in chunks.read(chunk).into_iter().enumerate().filter(|(_, count)| *count > 0) {
                let other = into.chunk_for(slot, chunks);
                if other == NONE || !chunks.add_many(other, step, count) {
                    coarse = COARSE;
                }
            }
            chunks.clear(chunk);
        }
        for word in [ZEROS, COUNT, SUM] {
            into.0[word].store(into.get(word).saturating_add(self.get(word)), Relaxed);
        }
        let squares = f64::from_bits(into.get(SQUARES)) + f64::from_bits(self.get(SQUARES));
        into.0[SQUARES].store(squares.to_bits(), Relaxed);
        keep_most(&into.0[LEAST], self.get(LEAST));
        keep_most(&into.0[MOST], self.get(MOST));
        into.0[FORM].store(into.get(FORM) | coarse, Relaxed);
        [ZEROS, COUNT, SUM, SQUARES, LEAST, MOST].iter().for_each(|word| self.0[*word].store(0, Relaxed));
        self.0[FORM].store(self.get(FORM) & !COARSE, Relaxed);
    }

    #[inline]
    fn chunk_for(self, slot: usize, chunks: &Chunks<'_>) -> u32 {
        let known = self.near(slot, self.base());
        if known == NONE { self.open(slot, chunks) } else { known }
    }

    fn get(self, word: usize) -> u64 {
        self.0[word].load(Relaxed)
    }

    fn base(self) -> usize {
        usize::from((self.get(FORM) >> BASE) as u8)
    }

    fn far(self) -> u32 {
        self.get(FORM) as u32
    }

    /// The chunk of a slot in the row that begins at `base`.
    #[inline]
    fn near(self, slot: usize, base: usize) -> u32 {
        if slot.wrapping_sub(base) < NEAR { half(&self.0[ROW..FORM], slot % NEAR) } else { NONE }
    }

    fn chunk(self, slot: usize, chunks: &Chunks<'_>) -> u32 {
        match self.far() {
            NONE => self.near(slot, self.base()),
            far => chunks.listed(far, slot),
        }
    }

    #[cold]
    fn open(self, slot: usize, chunks: &Chunks<'_>) -> u32 {
        if self.far() != NONE {
            let known = chunks.listed(self.far(), slot);
            return if known == NONE { self.open_far(slot, chunks) } else { known };
        }
        if !self.bring_near(slot) {
            let Some(far) = chunks.take_list() else { return NONE };
            (0..SLOTS).for_each(|slot| chunks.list(far, slot, self.chunk(slot, chunks)));
            // The form is stored last: a process that ends before it leaves a valid row.
            self.0[FORM].store(self.get(FORM) | u64::from(far), Release);
            return self.open_far(slot, chunks);
        }
        let chunk = chunks.take().unwrap_or(NONE);
        set_half(&self.0[ROW..FORM], slot % NEAR, chunk);
        chunk
    }

    fn open_far(self, slot: usize, chunks: &Chunks<'_>) -> u32 {
        let chunk = chunks.take().unwrap_or(NONE);
        chunks.list(self.far(), slot, chunk);
        chunk
    }

    /// Moves the row so that it has a place for `slot`, if that is possible. A slot keeps its place, so this is one store.
    fn bring_near(self, slot: usize) -> bool {
        let base = self.base();
        let mut taken = (base..base + NEAR).filter(|slot| self.near(*slot, base) != NONE);
        let first = taken.next();
        let (low, high) = match (first, taken.next_back().or(first)) {
            (Some(first), Some(last)) => (first.min(slot), last.max(slot)),
            _ => (slot, slot),
        };
        if high - low >= NEAR {
            return false;
        }
        let others = self.get(FORM) & !(0xff << BASE);
        self.0[FORM].store(others | (low as u64) << BASE, Relaxed);
        true
    }

    /// The distribution as it is, also if it makes no sense.
    pub(crate) fn snapshot(self, chunks: &Chunks<'_>) -> Distribution {
        let (zeros, placed) = (self.get(ZEROS), self.get(COUNT));
        let (least, most) = (!self.get(LEAST), self.get(MOST));
        let squares = f64::from_bits(self.get(SQUARES));
        let chunk_of =
            |slot| Some((slot as u8, self.chunk(slot, chunks))).filter(|(_, chunk)| *chunk != NONE);
        Distribution {
            zeros,
            count: zeros.saturating_add(placed),
            sum: self.get(SUM),
            squares: if squares.is_finite() { squares.max(0.0) } else { 0.0 },
            min: if zeros > 0 || placed == 0 { 0 } else { least.min(most) },
            max: most,
            coarse: self.get(FORM) & COARSE != 0,
            chunks: (0..SLOTS).filter_map(chunk_of).map(|(slot, chunk)| (slot, chunks.read(chunk))).collect(),
        }
    }
}

/// Keeps the larger value, in a word of which the caller is the only writer.
#[inline]
fn keep_most(word: &AtomicU64, value: u64) {
    if word.load(Relaxed) < value {
        word.store(value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Run;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn histogram(run: &Run) -> Sparse<'_> {
        Sparse(run.words().first_chunk().expect("room"))
    }

    proptest! {
        #[test]
        fn it_is_the_distribution_of_its_values(
            values in vec((0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift), 0..200)
        ) {
            let memory = [Run::private(8000), Run::private(SPARSE), Run::private(SPARSE)];
            let chunks = Chunks::new(memory[0].words()).unwrap();
            let (one, other) = (histogram(&memory[1]), histogram(&memory[2]));
            let mut expected = Distribution::new();
            for value in values {
                one.record(value, &chunks);
                // Chunks of several histograms are mixed.
                other.record(value / 3, &chunks);
                expected.record(value);
            }
            prop_assert_eq!(one.snapshot(&chunks), expected);
        }
    }

    #[test]
    fn poured_values_move_to_the_other_histogram() {
        let memory = [Run::private(8000), Run::private(SPARSE), Run::private(SPARSE)];
        let chunks = Chunks::new(memory[0].words()).unwrap();
        let (one, other) = (histogram(&memory[1]), histogram(&memory[2]));
        let mut expected = Distribution::new();
        for round in 0..3_u64 {
            for value in (0..40_000).map(|number| number % 7 * (1 + round * 5_000)).chain([1 << 20]) {
                one.record(value, &chunks);
                expected.record(value);
            }
            other.record(round, &chunks);
            expected.record(round);
            one.pour(other, &chunks);
            assert_eq!(other.snapshot(&chunks), expected);
            assert_eq!((one.snapshot(&chunks).count(), one.snapshot(&chunks).sum()), (0, 0));
        }
        one.record(5, &chunks);
        assert_eq!((one.snapshot(&chunks).percentile(100.0), one.snapshot(&chunks).min()), (5, 5));
    }

    #[test]
    fn without_memory_the_values_are_still_counted() {
        let memory = [Run::private(crate::chunks::HEAD), Run::private(SPARSE)];
        let chunks = Chunks::new(memory[0].words()).unwrap();
        let histogram = histogram(&memory[1]);
        for value in [0, 10_000, 30_000] {
            histogram.record(value, &chunks);
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
}
