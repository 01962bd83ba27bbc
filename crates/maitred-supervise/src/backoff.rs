//! How long a slot waits before its next attempt: the first one is made at once, then 0.1 s, doubled up to 10 s.

use std::time::Duration;

/// The wait after the second failure in a row.
const FIRST: Duration = Duration::from_millis(100);

/// The longest wait: a worker that cannot start costs six attempts a minute.
const LONGEST: Duration = Duration::from_secs(10);

/// A worker that has served for so long has no failure behind it.
pub(crate) const HEALTHY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure; returns how long the next attempt waits. `random` spreads the waits of several slots: up to a
    /// quarter is taken away.
    pub(crate) fn fail(&mut self, random: u64) -> Duration {
        let wait = match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST),
        };
        self.failures = self.failures.saturating_add(1);
        let less = wait.as_nanos() as u64 / 4;
        wait - Duration::from_nanos(if less == 0 { 0 } else { random % less })
    }

    /// Forgets the failures: the worker has served long enough.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Numbers that spread waits and limits; no promise is made about them.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// xorshift64 (Marsaglia 2003).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempt_is_made_at_once_and_later_ones_wait_longer() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..10).map(|_| backoff.fail(0).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        backoff.reset();
        assert_eq!(backoff.fail(7), Duration::ZERO);
    }

    #[test]
    fn waits_are_spread_and_never_longer() {
        let mut random = Random::new(4);
        let mut backoff = Backoff { failures: 3 };
        let wait = Backoff { failures: 3 }.fail(0);
        for _ in 0..100 {
            backoff.failures = 3;
            let spread = backoff.fail(random.next());
            assert!(spread <= wait && spread * 4 >= wait * 3, "{spread:?}");
        }
        for failures in [1_000_000, u32::MAX] {
            assert_eq!(Backoff { failures }.fail(0), LONGEST);
        }
    }
}
