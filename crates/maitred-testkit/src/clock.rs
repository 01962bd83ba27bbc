//! Time that passes when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that stands still until it is advanced. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    nanoseconds: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nanoseconds since the clock was made.
    pub fn now(&self) -> u64 {
        self.nanoseconds.load(Ordering::Acquire)
    }

    /// Lets `span` pass and returns the new time in nanoseconds.
    pub fn advance(&self, span: Duration) -> u64 {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(span, Ordering::AcqRel) + span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_time_and_it_moves_only_when_told() {
        let clock = VirtualClock::new();
        let other = clock.clone();
        assert_eq!(clock.advance(Duration::from_millis(3)), 3_000_000);
        assert_eq!((other.now(), other.now()), (3_000_000, 3_000_000));
    }
}
