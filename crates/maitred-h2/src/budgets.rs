//! Budgets for useless work that a peer may cause: each with its reason, its source and its default.
//!
//! A budget is a leaky bucket: so many at once, and so many a second in the long run. Past it the connection ends with
//! ENHANCE_YOUR_CALM and the budget's name in the reason. All of them are for one connection: how many connections a peer has is
//! limited elsewhere.

use crate::error::ConnectionError;

/// A number at once, and a number a second in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number at once.
    pub burst: u32,
    /// A second.
    pub per_second: u32,
}

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// RST_STREAM of the peer on open streams.
    ///
    /// Reason: each costs a request without a client that waits for it (CVE-2023-44487). Source: a browser that leaves
    /// a page cancels all of its streams, at most 128 here; nghttp2 takes 1,000 and 33 a second, Envoy 500, Jetty 128 a
    /// second.
    pub resets: Rate,
    /// Streams reset for an error of the peer, and frames on streams that are over.
    ///
    /// Reason: a peer that makes the server reset has the same effect as with its own resets (CVE-2025-8671). Source:
    /// honest peers cause none, but for frames that are under way when a stream ends; h2 takes 1,024 in all.
    pub errors: Rate,
    /// Streams refused.
    ///
    /// Reason: a refused request was decoded in vain. Source: before a client knows the limit it may open any number; nginx takes the
    /// larger of 100 and the limit.
    pub refused: Rate,
    /// DATA frames on streams that this side has reset.
    ///
    /// Reason: such data is dropped. Source: a window of data is under way when a stream is reset: of 128 streams and in full frames 2,048.
    pub late: Rate,
    /// CONTINUATION frames of one block.
    ///
    /// Reason: they keep the connection busy without a request ever (CVE-2024-27316, CVE-2024-28182). Source: five full frames hold the
    /// largest block; nghttp2 takes 8.
    pub continuations: u32,
    /// Frames without content: DATA, CONTINUATION, and HEADERS without END_HEADERS, that end nothing.
    ///
    /// Reason: CVE-2019-9518. Source: some libraries send an empty DATA frame when they flush.
    pub empty: Rate,
    /// Bytes of overhead: the length of DATA frames that end nothing, with 32 bytes for the frame and its padding,
    /// beyond their content.
    ///
    /// Reason: each frame costs the same work, with any content. Source: messages of 32 bytes are free, of a single
    /// byte there are 8,456 at once and 2,114 a second; nginx ends a connection where seven of eight bytes are
    /// overhead.
    pub overhead: Rate,
    /// SETTINGS frames.
    ///
    /// Reason: each is acknowledged, and may change the windows of all streams (CVE-2019-9515). Source: clients send one, few send a
    /// second.
    pub settings: Rate,
    /// PING and GOAWAY frames.
    ///
    /// Reason: each is acknowledged (CVE-2019-9512). Source: gRPC sends one for each round trip while data comes; Envoy and nghttp2 keep
    /// 1,000 acknowledgements that are not sent.
    pub pings: Rate,
    /// PRIORITY and PRIORITY_UPDATE frames.
    ///
    /// Reason: CVE-2019-9513. Source: old Firefox begins with six, browsers send one where a picture comes into view; nginx takes the
    /// larger of 100 and the limit of streams for each request.
    pub priorities: Rate,
    /// WINDOW_UPDATE frames beyond ten for each DATA frame sent and two for each stream.
    ///
    /// Reason: each may wake a stream. Source: Envoy's 5 + 2 for a stream and 10 for a DATA frame sent.
    pub updates: Rate,
    /// Frames of types that are not known, or that an extension has.
    ///
    /// Reason: they are skipped. Source: Chrome sends one now and then, so that servers do skip them.
    pub unknown: Rate,
}

impl Default for Budgets {
    fn default() -> Self {
        let rate = |burst, per_second| Rate { burst, per_second };
        Self {
            resets: rate(500, 50),
            errors: rate(200, 10),
            refused: rate(256, 50),
            late: rate(4096, 128),
            continuations: 16,
            empty: rate(100, 10),
            overhead: rate(256 * 1024, 64 * 1024),
            settings: rate(64, 4),
            pings: rate(1000, 200),
            priorities: rate(500, 100),
            updates: rate(1000, 100),
            unknown: rate(500, 50),
        }
    }
}

// ---- Buckets ----

#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    pub(crate) resets: Bucket,
    pub(crate) errors: Bucket,
    pub(crate) refused: Bucket,
    pub(crate) late: Bucket,
    pub(crate) empty: Bucket,
    pub(crate) overhead: Bucket,
    pub(crate) settings: Bucket,
    pub(crate) pings: Bucket,
    pub(crate) priorities: Bucket,
    pub(crate) updates: Bucket,
    pub(crate) unknown: Bucket,
    /// WINDOW_UPDATE frames that sent streams and frames have earned for the peer.
    earned: u32,
}

/// WINDOW_UPDATE frames that the peer earns by a sent stream and by a sent DATA frame.
const FOR_A_STREAM: u32 = 2;
const FOR_A_FRAME: u32 = 10;
/// The most that a peer can earn: as much as by 10,000 frames, 160 MB of data in full ones.
const MOST_EARNED: u32 = 100_000;

impl Buckets {
    pub(crate) fn new(budgets: &Budgets) -> Self {
        let bucket = |rate, passed| Bucket { rate, level: 0, at: 0, passed };
        Self {
            resets: bucket(budgets.resets, "too many streams reset (budget resets)"),
            errors: bucket(budgets.errors, "too many errors of streams (budget errors)"),
            refused: bucket(budgets.refused, "too many streams beyond the limit (budget refused)"),
            late: bucket(budgets.late, "too many frames on streams that were reset (budget late)"),
            empty: bucket(budgets.empty, "too many empty frames (budget empty)"),
            overhead: bucket(budgets.overhead, "too many small frames of data (budget overhead)"),
            settings: bucket(budgets.settings, "too many SETTINGS (budget settings)"),
            pings: bucket(budgets.pings, "too many PINGs (budget pings)"),
            priorities: bucket(budgets.priorities, "too many changes of priorities (budget priorities)"),
            updates: bucket(budgets.updates, "too many WINDOW_UPDATEs (budget updates)"),
            unknown: bucket(budgets.unknown, "too many frames of unknown types (budget unknown)"),
            earned: 0,
        }
    }

    pub(crate) fn stream_opened(&mut self) {
        self.earned = (self.earned + FOR_A_STREAM).min(MOST_EARNED);
    }

    pub(crate) fn data_sent(&mut self) {
        self.earned = (self.earned + FOR_A_FRAME).min(MOST_EARNED);
    }

    /// A WINDOW_UPDATE has come.
    /// Errors: it is one too many.
    pub(crate) fn updated(&mut self, now: u64) -> Result<(), ConnectionError> {
        match self.earned.checked_sub(1) {
            Some(rest) => {
                self.earned = rest;
                Ok(())
            }
            None => self.updates.take(1, now),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    /// The level in billionths, so that a whole number leaks out in a nanosecond.
    level: u64,
    at: u64,
    passed: &'static str,
}

const ONE: u64 = 1_000_000_000;

impl Bucket {
    /// Puts `count` in.
    /// Errors: they do not fit.
    pub(crate) fn take(&mut self, count: u32, now: u64) -> Result<(), ConnectionError> {
        let leaked = now.saturating_sub(self.at).saturating_mul(u64::from(self.rate.per_second));
        self.at = self.at.max(now);
        // 2^32 × 10^9 fits 64 bits.
        self.level = self.level.saturating_sub(leaked).saturating_add(u64::from(count) * ONE);
        if self.level > u64::from(self.rate.burst) * ONE {
            return Err(ConnectionError::calm(self.passed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_takes_a_burst_and_then_its_rate() {
        let mut bucket = Bucket { rate: Rate { burst: 10, per_second: 2 }, level: 0, at: 0, passed: "full" };
        // The clock begins anywhere.
        let start = 77 * ONE;
        for _ in 0..10 {
            assert_eq!(bucket.take(1, start), Ok(()));
        }
        assert_eq!(bucket.clone().take(1, start), Err(ConnectionError::calm("full")));
        assert_eq!(bucket.clone().take(1, start + ONE / 2 - 1), Err(ConnectionError::calm("full")));
        assert_eq!(bucket.take(1, start + ONE / 2), Ok(()));
        assert_eq!(bucket.take(10, start + 7 * ONE), Ok(()));
        assert!(bucket.clone().take(1, start).is_err());
        assert_eq!(bucket.take(0, start), Ok(()));
        assert!(bucket.take(1, start + 7 * ONE).is_err(), "time does not go back");
    }

    #[test]
    fn data_sent_earns_window_updates() {
        let none = Rate { burst: 0, per_second: 0 };
        let mut buckets = Buckets::new(&Budgets { updates: none, ..Budgets::default() });
        assert!(buckets.clone().updated(0).is_err());
        buckets.stream_opened();
        buckets.data_sent();
        for _ in 0..12 {
            assert_eq!(buckets.updated(0), Ok(()));
        }
        assert!(buckets.updated(0).is_err());
    }
}
