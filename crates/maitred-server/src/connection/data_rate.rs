//! Waits of a connection for its peer: for a request body, and until a response is taken.
//!
//! Promises: bytes that arrive or leave in time cost one store; only a deadline causes a check of the rate. The bytes
//! taken by a peer are those that its system has acknowledged, not those that our socket took: the socket takes
//! megabytes at once, and then, with a slow reader, none for minutes. Time in which no bytes wait for the peer does
//! not count.

use maitred_io::clock;
use maitred_limits::Rule;
use maitred_limits::minimum::{Late, Minimum, RateWatch};
use maitred_log::End;

use super::body::Keeping;
use super::protocol::Protocol;
use super::stream::Stream;
use super::{Connection, Context, Group, Turn, nanos};
use crate::group::slots::Token;
use crate::site::Site;

/// Send timeout of a response without one of its own, in milliseconds.
pub(super) fn send_timeout_of_all(site: &Site) -> u32 {
    // A longer time exceeds every timeout that a response may ask for.
    u32::try_from(site.timeouts.send.as_millis()).unwrap_or(u32::MAX)
}

/// Converts a response's own timeout to nanoseconds.
pub(super) fn own_nanos(milliseconds: u32) -> u64 {
    u64::from(milliseconds) * 1_000_000
}

/// Combines the minimum rate and the send timeout of all responses with the timeout `own` that a response asks for,
/// in nanoseconds. With a longer timeout the rate is an average over at least that time.
pub(super) fn limits_of_one(own: u64, (minimum, all): (Minimum, u64)) -> (Minimum, u64) {
    let grace = if own > all { minimum.grace.max(own) } else { minimum.grace };
    (Minimum { grace, ..minimum }, own)
}

impl Stream {
    /// The deadline for the next bytes of its body, from `body-timeout` and `min-rate-in`.
    pub(super) fn body_due(&mut self, site: &Site, now: u64) -> u64 {
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
    pub(super) fn check_body(&mut self, site: &Site, now: u64) -> Result<u64, Late> {
        let timeout = nanos(site.timeouts.body);
        let minimum = site.guard.inward();
        let received = self.received;
        // Without a watch the exchange waits for the disk, or for bytes that are dropped.
        let patience = self.patience.as_mut().filter(|_| self.facts.is_some()).ok_or(Late::Silent)?;
        patience.look(minimum, timeout, now, received)?;
        Ok(patience.due(minimum, timeout))
    }
}

impl Connection {
    /// Checks the peer when the deadline of a request has come. Returns the way in which the peer is late, or none
    /// and puts the deadline off.
    pub(super) fn check_body(&mut self, context: &Context<'_>) -> Option<Late> {
        let checked = self.stream.as_mut().ok_or(Late::Silent);
        match checked.and_then(|stream| stream.check_body(&context.group.site, context.now)) {
            Err(late) => Some(late),
            Ok(due) => {
                self.set_deadline(context, due);
                None
            }
        }
    }

    /// Starts or puts off the peer's time when the socket takes no more.
    pub(super) fn await_reader(&mut self, group: &Group, token: Token, now: Option<u64>) {
        let Some(writer) = &mut self.wire.writer else { return };
        if writer.is_stuck() && writer.patience.is_some() {
            return;
        }
        let now = now.unwrap_or_else(clock::monotonic);
        let (minimum, timeout) = self.send_limits(&group.site);
        let Some(writer) = &mut self.wire.writer else { return };
        let sent = writer.sent();
        let patience = writer.patience.get_or_insert_with(|| {
            RateWatch::begin(minimum, now, sent.wrapping_sub(self.wire.transport.unacknowledged()))
        });
        patience.touch(now);
        self.wire.deadline = patience.due(minimum, timeout);
        self.arm(group, token);
    }

    /// The least rate of the peer and the longest time without progress. Of responses that share the connection the
    /// longest time counts.
    fn send_limits(&self, site: &Site) -> (Minimum, u64) {
        let (minimum, all) = (site.guard.outward(), nanos(site.timeouts.send));
        let waiting = match &self.protocol {
            Protocol::H1(_) => 0,
            Protocol::Framed(framed) => framed.longest_send_timeout(site),
        };
        match self.wire.send_timeout.max(waiting) {
            0 => (minimum, all),
            own if own == send_timeout_of_all(site) => (minimum, all),
            own => limits_of_one(own_nanos(own), (minimum, all)),
        }
    }

    /// Checks the peer when the deadline of a response has come.
    pub(super) fn check_reader(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let site = &context.group.site;
        let (minimum, timeout) = self.send_limits(site);
        let writer = self.wire.writer.as_mut()?;
        let position = writer.sent().wrapping_sub(self.wire.transport.unacknowledged());
        let patience =
            writer.patience.get_or_insert_with(|| RateWatch::begin(minimum, context.now, position));
        match patience.look(minimum, timeout, context.now, position) {
            Ok(()) => {
                let due = patience.due(minimum, timeout);
                self.set_deadline(context, due);
                None
            }
            Err(late) => {
                let rule = match late {
                    Late::Slow => Rule::MinRateOut,
                    Late::Silent if timeout == nanos(site.timeouts.send) => Rule::SendTimeout,
                    Late::Silent => Rule::OwnSendTimeout,
                };
                site.guard.applied.note(rule, self.wire.peer, &site.log);
                self.wire.transport.reset_when_closed();
                self.wire.ended_as = End::TooSlow;
                Some(self.peer_gone(context))
            }
        }
    }
}
