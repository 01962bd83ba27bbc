//! A log-linear histogram: 32 buckets to each power of two, so that a value read back is at most 1/32 (3.1 %) too large.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets to a power of two, as a power of two. 2^5 keeps the error below the run-to-run noise of a latency.
const PRECISION: u32 = 5;
const STEPS: u64 = 1 << PRECISION;

/// Values below `STEPS` are exact (one bucket each); above, each of the remaining powers of two has `STEPS` buckets.
const BUCKETS: usize = ((u64::BITS - PRECISION + 1) << PRECISION) as usize;

/// Counts values of any magnitude, usually nanoseconds, in fixed memory (15 KiB). Any thread may record at any time:
/// three relaxed atomic operations. Where many threads record at a high rate, give each its own and
/// [`merge`](HistogramSnapshot::merge) the snapshots.
pub struct Histogram {
    buckets: Box<[AtomicU64; BUCKETS]>,
    sum: AtomicU64,
    max: AtomicU64,
}

impl Histogram {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        let buckets = Box::new(array::from_fn(|_| AtomicU64::new(0)));
        Self { buckets, sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }

    /// Counts `value`.
    pub fn record(&self, value: u64) {
        self.buckets[bucket(value)].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
        if self.max.load(Relaxed) < value {
            self.max.fetch_max(value, Relaxed);
        }
    }

    /// The counts now.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let buckets: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let count = buckets.iter().sum();
        HistogramSnapshot { buckets, count, sum: self.sum.load(Relaxed), max: self.max.load(Relaxed) }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// What a [`Histogram`] has counted at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl HistogramSnapshot {
    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values, wrapping at 2^64 (of nanoseconds: 584 years).
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest value, exact; 0 when empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that `percent` (0 to 100) of the values do not exceed; at most 1/32 too large and never above
    /// [`max`](Self::max). 0 when empty.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let share = percent.clamp(0.0, 100.0) / 100.0;
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_value(index).min(self.max);
            }
        }
        self.max
    }

    /// How many values are at or below `bound`. Values in the bucket that `bound` divides are not counted: those
    /// within 1/32 below it may be missing.
    #[must_use]
    pub fn count_up_to(&self, bound: u64) -> u64 {
        let index = bucket(bound);
        let whole = if last_value(index) == bound { index + 1 } else { index };
        self.buckets[..whole].iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

/// The bucket of `value`: its highest `PRECISION + 1` bits and their position.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION;
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value of bucket `index`.
fn last_value(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let first = (index % STEPS + STEPS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_value_without_gap() {
        let mut first = 0_u64;
        for index in 0..BUCKETS {
            let last = last_value(index);
            assert_eq!(bucket(first), index, "{first}");
            assert_eq!(bucket(last), index, "{last}");
            assert!(last - first <= first / STEPS, "bucket {index} is at most 1/32 wide");
            first = last.wrapping_add(1);
        }
        assert_eq!(first, 0, "the last bucket ends at 2^64 - 1");
    }

    #[test]
    fn percentiles_of_known_values() {
        let histogram = Histogram::new();
        for value in 1..=10_000 {
            histogram.record(value * 1000);
        }
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count(), snapshot.max()), (10_000, 10_000_000));
        assert_eq!(snapshot.sum(), 1000 * 10_000 * 10_001 / 2);
        for (percent, exact) in
            [(50.0, 5_000_000_u64), (90.0, 9_000_000), (99.0, 9_900_000), (99.9, 9_990_000)]
        {
            let read = snapshot.percentile(percent);
            assert!((exact..=exact + exact / STEPS).contains(&read), "p{percent}: {read}");
        }
        assert_eq!(snapshot.percentile(100.0), 10_000_000);
        assert_eq!(snapshot.percentile(0.0), 1007, "the bucket of the first value, 1000, ends at 1007");
    }

    #[test]
    fn empty_and_extreme_values() {
        let histogram = Histogram::new();
        assert_eq!(histogram.snapshot().percentile(99.0), 0);
        histogram.record(0);
        assert_eq!(histogram.snapshot().percentile(50.0), 0);
        histogram.record(u64::MAX);
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.percentile(50.0), 0);
        assert_eq!(snapshot.percentile(100.0), u64::MAX);
        assert_eq!(snapshot.count_up_to(u64::MAX), 2);
    }

    #[test]
    fn counts_up_to_a_bound() {
        let histogram = Histogram::new();
        for value in [1, 10, 31, 32, 1000, 2000] {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        assert_eq!([0, 1, 31, 32, 1500, 5000].map(|bound| snapshot.count_up_to(bound)), [0, 1, 3, 4, 5, 6]);
    }

    #[test]
    fn merged_snapshots_equal_one_histogram() {
        let (left, right, both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in 0..1000_u64 {
            let value = value * value * 7;
            if value % 3 == 0 {
                left.record(value)
            } else {
                right.record(value)
            }
            both.record(value);
        }
        let mut merged = left.snapshot();
        merged.merge(&right.snapshot());
        assert_eq!(merged, both.snapshot());
    }

    #[test]
    fn concurrent_records_are_all_counted() {
        let histogram = Histogram::new();
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let histogram = &histogram;
                scope.spawn(move || (0..5000).for_each(|value| histogram.record(value * thread)));
            }
        });
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count(), snapshot.max()), (20_000, 4 * 4999));
        assert_eq!(snapshot.sum(), 10 * (4999 * 5000 / 2));
    }
}
