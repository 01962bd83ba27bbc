//! Waits of a connection for its peer: for a request body, and until a response is taken.
//!
//! Promises: bytes that arrive or leave in time cost one store; only a deadline causes a check of the rate. The bytes
//! taken by a peer are those that its system has acknowledged, not those that our socket took: the socket takes
//! megabytes at once, and then, with a slow reader, none for minutes. Time in which no bytes wait for the peer does
//! not count.

use maitred_limits::minimum::{Late, Minimum, RateWatch};

use crate::nanos;
use crate::site::Site;
use crate::stream::Stream;
use crate::stream::body::Keeping;

/// Send timeout of a response without one of its own, in milliseconds.
pub fn send_timeout_of_all(site: &Site) -> u32 {
    // A longer time exceeds every timeout that a response may ask for.
    u32::try_from(site.timeouts.send.as_millis()).unwrap_or(u32::MAX)
}

/// Converts a response's own timeout to nanoseconds.
pub fn own_nanos(milliseconds: u32) -> u64 {
    u64::from(milliseconds) * 1_000_000
}

/// Combines the minimum rate and the send timeout of all responses with the timeout `own` that a response asks for,
/// in nanoseconds. With a longer timeout the rate is an average over at least that time.
pub fn limits_of_one(own: u64, (minimum, all): (Minimum, u64)) -> (Minimum, u64) {
    let grace = if own > all { minimum.grace.max(own) } else { minimum.grace };
    (Minimum { grace, ..minimum }, own)
}

impl Stream {
    /// The deadline for the next bytes of its body, from `body-timeout` and `min-rate-in`.
    pub fn body_due(&mut self, site: &Site, now: u64) -> u64 {
        let timeout = nanos(site.timeouts.body);
        let minimum = site.guard.inward();
        if matches!(&self.keeping, Keeping::Spool(spool) if spool.is_full()) {
            // The exchange waits for the disk, not for the peer.
            self.patience = None;
            return now + timeout;
        }
        let received = self.received;
        let patience = self.patience.get_or_insert_with(|| RateWatch::begin(minimum, now, received));
        patience.note(now, received);
        patience.due(minimum, timeout)
    }

    /// Checks the peer when the deadline of the body has come, and returns the next deadline.
    ///
    /// # Errors
    /// The way in which the peer is late.
    pub fn check_body(&mut self, site: &Site, now: u64) -> Result<u64, Late> {
        let timeout = nanos(site.timeouts.body);
        let minimum = site.guard.inward();
        let received = self.received;
        // Without a watch the exchange waits for the disk, or for bytes that are dropped.
        let patience = self.patience.as_mut().filter(|_| self.facts.is_some()).ok_or(Late::Silent)?;
        patience.look(minimum, timeout, now, received)?;
        Ok(patience.due(minimum, timeout))
    }
}
