//! A token bucket: so many units in a second, and some at once. Pure: the time is given.
//!
//! It is one number, the time at which the bucket will be full again. Taking units moves it on by their cost; it may
//! lie at most the cost of a whole bucket ahead (GCRA, ITU-T I.371 annex A). A bucket that has not been used is full.

/// How fast a bucket is filled, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The number of units in `per` nanoseconds; neither is 0.
    units: u64,
    per: u64,
    /// The cost of a full bucket, in nanoseconds.
    depth: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Rate {
    /// Requests: `thousandths` of one a second, and `burst` at once. Both are at least 1.
    pub(crate) fn of_requests(thousandths: u64, burst: u64) -> Self {
        let mut rate = Self { units: thousandths.max(1), per: 1000 * SECOND, depth: 0 };
        // Of single ones, so that rounding does not cost the last of them.
        rate.depth = rate.cost(1).saturating_mul(burst.max(1));
        rate
    }

    /// Bytes: `per_second`, and `burst` at once. Both are at least 1.
    pub(crate) fn of_bytes(per_second: u64, burst: u64) -> Self {
        let mut rate = Self { units: per_second.max(1), per: SECOND, depth: 0 };
        rate.depth = rate.cost(burst.max(1));
        rate
    }

    /// How long it takes until so many units have come, in nanoseconds; rounded up, so that never more pass.
    fn cost(&self, units: u64) -> u64 {
        let cost = (u128::from(units) * u128::from(self.per)).div_ceil(u128::from(self.units));
        // A time that is never reached.
        u64::try_from(cost).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
    }
}

/// A bucket. Full at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The time in nanoseconds of the caller's monotonic clock.
    full_at: u64,
}

impl Bucket {
    /// The bucket that is full at this time, for a caller that keeps the number elsewhere.
    pub(crate) fn full_at(time: u64) -> Self {
        Self { full_at: time }
    }

    /// When it is full: from then on nothing is lost when it is forgotten.
    pub(crate) fn is_full_at(self) -> u64 {
        self.full_at
    }

    /// Takes units that are in the bucket.
    ///
    /// # Errors
    /// They are not. Nothing is taken; the value is when they will be there, if no other caller takes them.
    pub(crate) fn take(&mut self, rate: Rate, now: u64, units: u64) -> Result<(), u64> {
        let after = self.full_at.max(now).saturating_add(rate.cost(units));
        let earliest = after.saturating_sub(rate.depth);
        if earliest > now {
            return Err(earliest);
        }
        self.full_at = after;
        Ok(())
    }

    /// Takes units in advance; returns when they may be used, which is `now` at the earliest. A later caller gets later
    /// ones, so that waiting callers take turns.
    pub(crate) fn reserve(&mut self, rate: Rate, now: u64, units: u64) -> u64 {
        self.full_at = self.full_at.max(now).saturating_add(rate.cost(units));
        self.full_at.saturating_sub(rate.depth).max(now)
    }

    /// Gives back units that were reserved and not used.
    pub(crate) fn give_back(&mut self, rate: Rate, units: u64) {
        self.full_at = self.full_at.saturating_sub(rate.cost(units));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_000_000_000_000;

    /// The most requests that may pass in so many nanoseconds.
    fn most(thousandths: u64, burst: u64, nanos: u64) -> u128 {
        u128::from(thousandths) * u128::from(nanos) / 1_000_000_000_000 + u128::from(burst)
    }

    proptest! {
        #[test]
        fn never_more_passes_in_any_span_than_the_rate_and_a_burst(
            thousandths in 1_u64..2_000_000,
            burst in 1_u64..50,
            steps in prop::collection::vec(0_u64..400_000_000, 1..80),
        ) {
            let (rate, mut bucket, mut now) = (Rate::of_requests(thousandths, burst), Bucket::default(), START);
            let mut passed = Vec::new();
            for step in steps {
                now += step;
                if bucket.take(rate, now, 1).is_ok() {
                    passed.push(now);
                }
            }
            for (first, begin) in passed.iter().enumerate() {
                for (last, end) in passed.iter().enumerate().skip(first) {
                    let count = (last - first + 1) as u128;
                    // One more may be due at the very end of the span.
                    prop_assert!(count <= most(thousandths, burst, end - begin), "{count} in {}", end - begin);
                }
            }
        }

        #[test]
        fn the_whole_rate_passes_under_constant_demand(
            thousandths in 1_u64..2_000_000,
            burst in 1_u64..50,
            asked in 1_usize..300,
        ) {
            let (rate, mut bucket, mut now) = (Rate::of_requests(thousandths, burst), Bucket::default(), START);
            for _ in 0..asked {
                while let Err(then) = bucket.take(rate, now, 1) {
                    prop_assert!(then > now);
                    now = then;
                }
            }
            // Rounding is less than a nanosecond for each.
            let span = (now - START).saturating_sub(asked as u64);
            let waited = asked.saturating_sub(burst as usize) as u128;
            prop_assert!(u128::from(thousandths) * u128::from(span) / 1_000_000_000_000 <= waited, "{span}");
        }

        #[test]
        fn bytes_that_are_reserved_mature_at_the_rate_and_in_turn(
            per_second in 1_000_u64..10_000_000_000,
            sizes in prop::collection::vec(1_u64..100_000, 1..200),
        ) {
            let (rate, mut bucket) = (Rate::of_bytes(per_second, 1), Bucket::default());
            let (mut last, mut before) = (START, 0_u128);
            for size in sizes {
                let ready = bucket.reserve(rate, START, size);
                prop_assert!(ready >= last, "in turn");
                last = ready;
                before += u128::from(size);
                let passed = u128::from(per_second) * u128::from(ready - START + 1) / 1_000_000_000 + 1;
                prop_assert!(before <= passed, "{before} of {passed}");
            }
        }
    }

    #[test]
    fn returned_units_are_there_for_others() {
        let (rate, mut bucket) = (Rate::of_bytes(1000, 1), Bucket::default());
        bucket.reserve(rate, START, 500);
        let later = bucket.reserve(rate, START, 500);
        bucket.give_back(rate, 500);
        assert_eq!(bucket.reserve(rate, START, 500), later);
    }

    #[test]
    fn a_refusal_says_when_and_takes_nothing() {
        let (rate, mut bucket) = (Rate::of_requests(500, 2), Bucket::default());
        assert_eq!([bucket.take(rate, START, 1), bucket.take(rate, START, 1)], [Ok(()), Ok(())]);
        let full = bucket.is_full_at();
        assert_eq!(bucket.take(rate, START, 1), Err(START + 2 * SECOND));
        assert_eq!(bucket.is_full_at(), full);
        assert_eq!(bucket.take(rate, START + 2 * SECOND, 1), Ok(()));
    }
}
