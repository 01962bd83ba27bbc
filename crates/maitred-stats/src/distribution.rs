//! A distribution of many values: their number, mean, deviation and percentiles.

use crate::scale::{self, STEPS};

/// How values of one kind are spread, usually nanoseconds. A value read back ([`percentile`](Self::percentile)) is at
/// most 1/64 (1.6 %) away from the real one, or 32 below 2,048; number, sum, minimum and maximum are exact. Memory: 264
/// bytes for each power of two in which there are values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    pub(crate) zeros: u64,
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) squares: f64,
    /// 0 while empty.
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) coarse: bool,
    /// The chunks by slot, ascending.
    pub(crate) chunks: Vec<(u8, [u64; STEPS])>,
}

impl Distribution {
    /// A distribution without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `value`.
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.squares += value as f64 * value as f64;
        if value == 0 {
            self.zeros += 1;
            return;
        }
        let (slot, step) = scale::place(value);
        self.chunk(slot as u8)[step] += 1;
    }

    fn chunk(&mut self, slot: u8) -> &mut [u64; STEPS] {
        let index = match self.chunks.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(index) => index,
            Err(index) => {
                self.chunks.insert(index, (slot, [0; STEPS]));
                index
            }
        };
        &mut self.chunks[index].1
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.zeros = self.zeros.saturating_add(other.zeros);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares += other.squares;
        self.coarse |= other.coarse;
        for (slot, steps) in &other.chunks {
            for (mine, theirs) in self.chunk(*slot).iter_mut().zip(steps) {
                *mine = mine.saturating_add(*theirs);
            }
        }
    }

    /// The values that have come since this distribution was `earlier`. The smallest and the largest of them are known as well as the
    /// others are.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut rest = Self {
            zeros: self.zeros.saturating_sub(earlier.zeros),
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum.saturating_sub(earlier.sum),
            squares: (self.squares - earlier.squares).max(0.0),
            coarse: self.coarse,
            ..Self::default()
        };
        for (slot, steps) in &self.chunks {
            let before = earlier.chunks.binary_search_by_key(slot, |(slot, _)| *slot).ok();
            let before = before.map_or(&[0; STEPS], |at| &earlier.chunks[at].1);
            let rise = std::array::from_fn(|step| steps[step].saturating_sub(before[step]));
            if rise != [0; STEPS] {
                rest.chunks.push((*slot, rise));
            }
        }
        let mut found = rest.steps().filter(|(.., count)| *count > 0);
        let first = found.next();
        let last = found.last().or(first);
        rest.min =
            if rest.zeros > 0 { 0 } else { first.map_or(0, |(slot, step, _)| scale::bounds(slot, step).0) };
        rest.max = last.map_or(0, |(slot, step, _)| scale::bounds(slot, step).1);
        // The extremes over all values are exact, so they limit those of the newer values.
        (rest.min, rest.max) = (rest.min.max(self.min).min(self.max), rest.max.min(self.max));
        rest
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values; not above 2^64 - 1 (of nanoseconds: 584 years).
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest value; 0 without values.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation of all values, not of a sample; 0 without values.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 || self.min == self.max {
            return 0.0;
        }
        let mean = self.mean();
        // Sums of rounded squares can be a little below the square of the mean.
        (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }

    /// Whether some values are counted, but not where they lie, for want of memory: then percentiles and
    /// [`count_up_to`](Self::count_up_to) are those of the others.
    pub fn is_coarse(&self) -> bool {
        self.coarse
    }

    /// The value that `percent` (0 to 100) of the values do not exceed, within the error that is said above and never
    /// outside the smallest and the largest. 0 without values.
    pub fn percentile(&self, percent: f64) -> u64 {
        if percent >= 100.0 {
            return self.max;
        }
        let placed = self.steps().fold(self.zeros, |sum, (.., count)| sum.saturating_add(count));
        let share = percent.clamp(0.0, 100.0) / 100.0;
        let rank = ((share * placed as f64).ceil() as u64).max(1);
        let mut seen = self.zeros;
        if rank <= seen {
            return 0;
        }
        for (slot, step, count) in self.steps() {
            seen = seen.saturating_add(count);
            if rank <= seen {
                return scale::middle(slot, step).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many values are at or below `bound`. Values in the step that `bound` divides are not counted: those within
    /// 1/32 below it, or 64, may be missing.
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let below = self.steps().take_while(|(slot, step, _)| scale::bounds(*slot, *step).1 <= bound);
        below.fold(self.zeros, |sum, (.., count)| sum.saturating_add(count))
    }

    /// Calls `visit` with the smallest value of each step, ascending, and how many values are in it. Buckets whose bounds are
    /// powers of two from 2,048 on, or halves between them, take whole steps.
    pub fn each(&self, mut visit: impl FnMut(u64, u64)) {
        if self.zeros > 0 {
            visit(0, self.zeros);
        }
        for (slot, step, count) in self.steps().filter(|(.., count)| *count > 0) {
            visit(scale::bounds(slot, step).0, count);
        }
    }

    /// How many values there are between one bound and the next, which are a quarter of their power of two apart: upper bounds with counts,
    /// from the first to the last that has any. Those that are known not to lie anywhere ([`is_coarse`](Self::is_coarse)) are missing.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        const QUARTER: usize = STEPS / 4;
        let mut buckets: Vec<(u64, u64)> = Vec::new();
        if self.zeros > 0 {
            buckets.push((0, self.zeros));
        }
        for (slot, step, count) in self.steps().filter(|(.., count)| *count > 0) {
            let last_step = step / QUARTER * QUARTER + QUARTER - 1;
            let bound = scale::bounds(slot, last_step).1;
            match buckets.last_mut() {
                Some((known, sum)) if *known == bound => *sum += count,
                _ => buckets.push((bound, count)),
            }
        }
        buckets
    }

    /// Slot, step and count, ascending.
    fn steps(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.chunks.iter().flat_map(|(slot, steps)| {
            steps.iter().enumerate().map(|(step, count)| (usize::from(*slot), step, *count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::new();
        values.iter().for_each(|value| distribution.record(*value));
        distribution
    }

    /// Values of all magnitudes, as likely as each other.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        vec((0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift), 1..200)
    }

    proptest! {
        #[test]
        fn a_value_is_read_back_within_two_percent(values in values(), percent in 0.0..=100.0_f64) {
            let read = of(&values).percentile(percent);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = ((percent / 100.0 * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            prop_assert!(read.abs_diff(exact) <= (exact / 50).max(32), "{read} for {exact}");
        }

        #[test]
        fn buckets_have_every_value_below_their_bound(values in values()) {
            let buckets = of(&values).buckets();
            let (mut sorted, mut below) = (values, 0);
            sorted.sort_unstable();
            for (bound, count) in buckets {
                let next = sorted.partition_point(|value| *value <= bound) as u64;
                prop_assert_eq!(next - below, count, "{}", bound);
                below = next;
            }
            prop_assert_eq!(below, sorted.len() as u64);
        }

        #[test]
        fn merged_ones_are_as_one(left in values(), right in values()) {
            let both = of(&[left.clone(), right.clone()].concat());
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let share = (both.squares - merged.squares).abs() / both.squares.max(1.0);
            prop_assert!(share < 1e-12);
            merged.squares = both.squares;
            prop_assert_eq!(merged, both);
        }

        #[test]
        fn values_since_an_earlier_state_are_as_if_counted_alone(before in values(), after in values(), percent in 0.0..=100.0_f64) {
            let earlier = of(&before);
            let mut now = earlier.clone();
            now.merge(&of(&after));
            let (rest, alone) = (now.since(&earlier), of(&after));
            prop_assert_eq!((rest.count, rest.zeros), (alone.count, alone.zeros));
            prop_assert_eq!(rest.steps().filter(|(.., count)| *count > 0).collect::<Vec<_>>(), alone.steps().filter(|(.., count)| *count > 0).collect::<Vec<_>>());
            if now.sum < u64::MAX {
                prop_assert_eq!(rest.sum, alone.sum);
            }
            let (read, exact) = (rest.percentile(percent), alone.percentile(percent));
            prop_assert!(read.abs_diff(exact) <= (exact / 30).max(64), "{read} for {exact}");
            prop_assert_eq!(now.since(&now).count(), 0);
        }

        #[test]
        fn counts_up_to_a_bound_miss_only_values_near_it(values in values(), bound in any::<u64>(), shift in 0..64_u32) {
            let bound = bound >> shift;
            let read = of(&values).count_up_to(bound);
            let up_to = |bound: u64| values.iter().filter(|value| **value <= bound).count() as u64;
            prop_assert!(read <= up_to(bound));
            prop_assert!(read >= up_to(bound.saturating_sub((bound / 32).max(64))), "{read}");
        }
    }

    #[test]
    fn moments_of_known_values() {
        let known =
            of(&[2_000_000, 4_000_000, 4_000_000, 4_000_000, 5_000_000, 5_000_000, 7_000_000, 9_000_000]);
        assert_eq!((known.count(), known.min(), known.max()), (8, 2_000_000, 9_000_000));
        assert_eq!((known.mean(), known.deviation()), (5e6, 2e6));
        assert_eq!(of(&[60_000_000_007; 9]).deviation(), 0.0);
    }

    #[test]
    fn without_values_everything_is_zero() {
        let none = Distribution::new();
        assert_eq!((none.count(), none.min(), none.max(), none.percentile(50.0)), (0, 0, 0, 0));
        assert_eq!((none.mean(), none.deviation()), (0.0, 0.0));
        let mut one = of(&[7]);
        one.merge(&none);
        assert_eq!(one.min(), 7);
    }
}
