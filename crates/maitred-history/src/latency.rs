//! The buckets in which the times of requests are counted in a row: rows are merged by adding them.
//!
//! ```text
//! bucket 0: below 2^14 ns (16.4 µs)     2n + 1: from 2^(14+n)     2n + 2: from 1.5 · 2^(14+n)     last: from 2^36 ns (68.7 s)
//! ```
//! A percentile that is made of them is in the right bucket, so at most half its value away (a third in the upper half of a power). The bounds
//! are bounds of [`Distribution`]'s steps, so no request is in a wrong bucket.

use maitred_stats::Distribution;

/// The first and the last power of two, of nanoseconds.
const POWERS: std::ops::Range<u32> = 14..36;

/// Buckets, with the one below all bounds.
pub const BUCKETS: usize = 2 * (POWERS.end - POWERS.start) as usize + 2;

/// The lower bound of a bucket, in nanoseconds; 0 of the first one.
pub fn lower(bucket: usize) -> u64 {
    let Some(half) = bucket.checked_sub(1) else { return 0 };
    let power = 1_u64 << (POWERS.start + (half / 2) as u32);
    if half % 2 == 0 { power } else { power + power / 2 }
}

fn place(nanos: u64) -> usize {
    if nanos < 1 << POWERS.start {
        return 0;
    }
    let power = nanos.ilog2();
    let is_upper = nanos >> (power - 1) & 1 == 1;
    (2 * (power - POWERS.start) as usize + 1 + usize::from(is_upper)).min(BUCKETS - 1)
}

pub(crate) fn counted(of: &Distribution) -> [u32; BUCKETS] {
    let mut counts = [0_u32; BUCKETS];
    let add = |nanos: u64, count: u64| {
        let place = &mut counts[place(nanos)];
        *place = place.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    };
    of.each(add);
    counts
}

/// The time that `percent` of the requests do not exceed, in seconds, as if those of a bucket were spread over it evenly; none without
/// requests.
pub fn percentile(counts: &[u32], percent: f64, most: f64) -> Option<f64> {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let rank = (percent / 100.0 * all as f64).ceil().max(1.0);
    let mut seen = 0.0;
    for (bucket, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = f64::from(*count);
        if seen + count >= rank {
            let from = lower(bucket) as f64 / 1e9;
            let to = if bucket + 1 < BUCKETS { lower(bucket + 1) as f64 / 1e9 } else { most.max(from) };
            return Some((from + (to - from) * (rank - seen - 0.5) / count).min(most));
        }
        seen += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        for bucket in 1..BUCKETS {
            assert_eq!((place(lower(bucket) - 1), place(lower(bucket))), (bucket - 1, bucket));
            let (from, to) = (lower(bucket), lower((bucket + 1).min(BUCKETS - 1)));
            assert!(bucket == BUCKETS - 1 || (to - from) * 2 <= from);
        }
        assert_eq!((place(0), place(u64::MAX), lower(BUCKETS - 1)), (0, BUCKETS - 1, 1 << 36));
    }

    proptest! {
        #[test]
        fn a_percentile_is_in_the_bucket_of_the_real_one(values in proptest::collection::vec(1..1_u64 << 38, 1..200), percent in 1.0..100.0_f64) {
            let mut all = Distribution::new();
            values.iter().for_each(|value| all.record(*value));
            let counts = counted(&all);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (bucket, count) in counts.iter().enumerate() {
                prop_assert_eq!(*count as usize, values.iter().filter(|value| place(**value) == bucket).count());
            }
            let real = sorted[((percent / 100.0 * values.len() as f64).ceil() as usize).max(1) - 1];
            let found = percentile(&counts, percent, all.max() as f64 / 1e9).expect("values");
            prop_assert_eq!(place((found * 1e9).round() as u64), place(real));
        }
    }
}
