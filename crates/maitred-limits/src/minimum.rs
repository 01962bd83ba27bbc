//! How long a peer may be silent, and how slow it may be, while something waits for it. Pure: the time is given.
//!
//! ```text
//! patience   <---- grace ---->  at first, and never more
//!            a second less for each second, a second more for each `rate` bytes
//! ```
//! [`due`](RateWatch::due) returns when to look again, and [`look`](RateWatch::look) judges the peer then. Between two
//! looks nothing is counted: moved bytes cost at most a store. A peer that is a little too slow is found out after a
//! few looks, one that has stopped after one. Time in which nothing waits for the peer is left out by beginning anew.

/// The least bytes a second, on an average over `grace` nanoseconds. A rate of 0 asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minimum {
    /// The rate in bytes a second.
    pub rate: u64,
    /// The grace in nanoseconds.
    pub grace: u64,
}

/// The reason why a peer is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// No byte has moved for the whole timeout.
    Silent,
    /// Bytes have moved, but fewer than the minimum.
    Slow,
}

/// The time that a peer has left.
#[derive(Clone, Copy, Debug)]
pub struct RateWatch {
    /// The time of the last look, the bytes that had moved by then, and the time that was left, in nanoseconds.
    looked: u64,
    position: u64,
    left: u64,
    /// The last time at which bytes are known to have moved, and their number by then.
    moved: u64,
    noted: u64,
}

/// The time from one look to the next is a part of the grace, so that a peer with little time left is not looked at all
/// the time.
const LOOKS_IN_GRACE: u64 = 8;

impl RateWatch {
    /// Begins a watch when something waits for the peer from `now` on; `position` are the bytes that have moved so far,
    /// from anywhere.
    pub fn begin(minimum: Minimum, now: u64, position: u64) -> Self {
        Self { looked: now, position, left: minimum.grace, moved: now, noted: position }
    }

    /// Notes that bytes have moved.
    pub fn touch(&mut self, now: u64) {
        self.moved = self.moved.max(now);
    }

    /// Leaves out a time in which nothing has waited for the peer, until `now`.
    pub fn skip(&mut self, pause: u64, now: u64) {
        self.looked = self.looked.saturating_add(pause).min(now);
        self.touch(now);
    }

    /// Notes how many bytes have moved so far, and that some have if the number is another one.
    pub fn note(&mut self, now: u64, position: u64) {
        if position != self.noted {
            self.noted = position;
            self.touch(now);
        }
    }

    /// When something is known to have moved.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// When to look.
    pub fn due(&self, minimum: Minimum, timeout: u64) -> u64 {
        let silent = self.moved.saturating_add(timeout);
        if minimum.rate == 0 {
            return silent;
        }
        silent.min(self.looked.saturating_add(self.left.max(minimum.grace / LOOKS_IN_GRACE)))
    }

    /// Looks at a peer for which `position` bytes have moved so far; the count may wrap.
    ///
    /// # Errors
    /// Its time is over.
    pub fn look(&mut self, minimum: Minimum, timeout: u64, now: u64, position: u64) -> Result<(), Late> {
        // Less than before is nothing: content may be counted a moment before it is seen to have left.
        let since = |before: u64| (position.wrapping_sub(before) as i64).max(0) as u64;
        let bytes = since(self.position);
        if since(self.noted) > 0 {
            self.noted = position;
            self.touch(now);
        }
        let elapsed = now.saturating_sub(self.looked);
        (self.looked, self.position) = (now, position);
        if now.saturating_sub(self.moved) >= timeout {
            return Err(Late::Silent);
        }
        if minimum.rate == 0 {
            self.left = minimum.grace;
            return Ok(());
        }
        let earned = u128::from(bytes) * 1_000_000_000 / u128::from(minimum.rate);
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        self.left = self.left.saturating_add(earned).saturating_sub(elapsed).min(minimum.grace);
        if self.left == 0 { Err(Late::Slow) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MINIMUM: Minimum = Minimum { rate: 240, grace: 30 * SECOND };
    const TIMEOUT: u64 = 30 * SECOND;

    /// How long a peer lives for which `bytes` move every `gap`, at most an hour; looked at only when it is due.
    fn life(minimum: Minimum, timeout: u64, gap: u64, bytes: u64) -> (u64, Option<Late>) {
        let mut patience = RateWatch::begin(minimum, 0, 0);
        let mut moved = 0;
        loop {
            let due = patience.due(minimum, timeout);
            if due > 3_600 * SECOND {
                return (due, None);
            }
            // Bytes that move before that only touch.
            let pieces = due / gap;
            if pieces > moved {
                moved = pieces;
                patience.touch(pieces * gap);
                if patience.due(minimum, timeout) > due {
                    continue;
                }
            }
            if let Err(late) = patience.look(minimum, timeout, due, moved * bytes) {
                return (due, Some(late));
            }
        }
    }

    #[test]
    fn an_honest_peer_with_gaps_lives_and_attackers_do_not() {
        // 8 KiB a second in pieces, with two seconds between them; and the same behind buffers that let 64 KiB pass at
        // once.
        assert_eq!(life(MINIMUM, TIMEOUT, 2 * SECOND, 16 << 10).1, None);
        assert_eq!(life(MINIMUM, TIMEOUT, 8 * SECOND, 64 << 10).1, None);
        // slowhttptest: 24 bytes of a body every 10 s; 5 bytes of a response a second.
        assert_eq!(life(MINIMUM, TIMEOUT, 10 * SECOND, 24), (33_750_000_000, Some(Late::Slow)));
        assert_eq!(life(MINIMUM, TIMEOUT, SECOND, 5), (33_750_000_000, Some(Late::Slow)));
        // One that has stopped.
        assert_eq!(life(MINIMUM, TIMEOUT, 86_400 * SECOND, 1), (30 * SECOND, Some(Late::Silent)));
        let off = Minimum { rate: 0, ..MINIMUM };
        assert_eq!(life(off, TIMEOUT, 29 * SECOND, 1).1, None);
        assert_eq!(life(off, TIMEOUT, 31 * SECOND, 1), (30 * SECOND, Some(Late::Silent)));
    }

    #[test]
    fn bytes_that_were_noted_do_not_move_again_at_the_next_look() {
        let mut patience = RateWatch::begin(MINIMUM, 0, 0);
        patience.note(SECOND, 100_000);
        assert_eq!(patience.due(MINIMUM, TIMEOUT), 30 * SECOND);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 30 * SECOND, 100_000), Ok(()));
        assert_eq!(patience.due(MINIMUM, TIMEOUT), 31 * SECOND);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 31 * SECOND, 100_000), Err(Late::Silent));
    }

    #[test]
    fn earlier_speed_does_not_buy_more_than_the_grace() {
        let mut patience = RateWatch::begin(MINIMUM, 0, 0);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, SECOND, 100_000_000), Ok(()));
        assert_eq!(patience.due(MINIMUM, u64::MAX), 31 * SECOND);
        assert_eq!(patience.look(MINIMUM, u64::MAX, 31 * SECOND, 100_000_000), Err(Late::Slow));
    }

    #[test]
    fn time_in_which_nothing_waits_for_the_peer_does_not_count() {
        let mut patience = RateWatch::begin(MINIMUM, 0, 0);
        // A byte each 10 s, and a minute of rest after each.
        for turn in 0..3 {
            let waited = turn * 70 * SECOND;
            patience.note(waited + 10 * SECOND, turn + 1);
            patience.skip(60 * SECOND, waited + 70 * SECOND);
        }
        assert_eq!(patience.due(MINIMUM, TIMEOUT), 210 * SECOND);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 209 * SECOND, 3), Ok(()));
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 211 * SECOND, 3), Err(Late::Slow));
    }

    #[test]
    fn a_count_may_wrap_and_go_back() {
        let mut patience = RateWatch::begin(MINIMUM, 0, u64::MAX - 10);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 10 * SECOND, 100_000), Ok(()));
        assert_eq!(patience.left, 30 * SECOND);
        assert_eq!(patience.look(MINIMUM, TIMEOUT, 20 * SECOND, 90_000), Ok(()));
        assert_eq!(patience.left, 20 * SECOND);
    }

    proptest! {
        #[test]
        fn twice_the_minimum_lives_and_a_tenth_of_it_does_not(
            rate in 10_u64..1_000_000,
            gap_ms in 1_u64..3_000,
        ) {
            let minimum = Minimum { rate, grace: 10 * SECOND };
            let gap = gap_ms * 1_000_000;
            let bytes = |share: u64| (rate * gap_ms / 1000 * share / 10).max(1);
            prop_assume!(rate * gap_ms / 1000 >= 20);
            prop_assert_eq!(life(minimum, 60 * SECOND, gap, bytes(20)).1, None);
            let (ended, late) = life(minimum, 60 * SECOND, gap, bytes(1));
            prop_assert_eq!(late, Some(Late::Slow));
            prop_assert!(ended <= 20 * SECOND, "{}", ended);
        }
    }
}
