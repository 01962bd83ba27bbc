//! How long a connection waits for its peer: for a request body, and until a response is taken.
//!
//! Promises: what comes or leaves in time costs a store; only when a deadline rings, somebody looks whether enough has.
//! What a peer has taken is what its system has acknowledged, not what our socket took: that takes megabytes at once,
//! and then, from a slow reader, nothing for minutes. Time in which nothing waits for the peer does not count.

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

/// How long a peer may take nothing of a response that asks for nothing, in milliseconds.
pub(super) fn send_timeout_of_all(site: &Site) -> u32 {
    // What does not fit is longer than any response may ask for.
    u32::try_from(site.timeouts.send.as_millis()).unwrap_or(u32::MAX)
}

/// The time that a response asks for, in nanoseconds.
pub(super) fn own_nanos(milliseconds: u32) -> u64 {
    u64::from(milliseconds) * 1_000_000
}

/// The least that a peer has to take, and how long it may take nothing, where a response asks for `own`, in nanoseconds, and all have
/// these. Where it may take nothing for longer, the rate is an average over as long at least.
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
            // For the disk.
            self.patience = None;
            return now + timeout;
        }
        let received = self.received;
        let patience = self.patience.get_or_insert_with(|| RateWatch::begin(minimum, now, received));
        patience.note(now, received);
        patience.due(minimum, timeout)
    }

    /// Its deadline has come.
    ///
    /// # Errors
    /// How its peer is late; else it has time until the deadline that is returned.
    pub(super) fn check_body(&mut self, site: &Site, now: u64) -> Result<u64, Late> {
        let timeout = nanos(site.timeouts.body);
        let minimum = site.guard.inward();
        let received = self.received;
        // Without a watch the disk is late, or what is not read any more.
        let patience = self.patience.as_mut().filter(|_| self.facts.is_some()).ok_or(Late::Silent)?;
        patience.look(minimum, timeout, now, received)?;
        Ok(patience.due(minimum, timeout))
    }
}

impl Connection {
    /// The deadline of a request has come: how its peer is late, or none if it has still time, until when the deadline is
    /// put off.
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

    /// The socket takes no more: the rest waits for the peer, whose time begins or is put off.
    pub(super) fn await_reader(&mut self, group: &Group, token: Token, now: Option<u64>) {
        let Some(writer) = &mut self.writer else { return };
        if writer.is_stuck() && writer.patience.is_some() {
            return;
        }
        let now = now.unwrap_or_else(clock::monotonic);
        let (minimum, timeout) = self.send_limits(&group.site);
        let Some(writer) = &mut self.writer else { return };
        let sent = writer.sent();
        let patience = writer.patience.get_or_insert_with(|| {
            RateWatch::begin(minimum, now, sent.wrapping_sub(self.transport.unacknowledged()))
        });
        patience.touch(now);
        self.deadline = patience.due(minimum, timeout);
        self.arm(group, token);
    }

    /// The least that the peer has to take, and how long it may take nothing. Of responses that share the connection the
    /// longest time counts.
    fn send_limits(&self, site: &Site) -> (Minimum, u64) {
        let (minimum, all) = (site.guard.outward(), nanos(site.timeouts.send));
        let waiting = match &self.protocol {
            Protocol::H1(_) => 0,
            Protocol::Framed(framed) => framed.longest_send_timeout(site),
        };
        match self.send_timeout.max(waiting) {
            0 => (minimum, all),
            own if own == send_timeout_of_all(site) => (minimum, all),
            own => limits_of_one(own_nanos(own), (minimum, all)),
        }
    }

    /// Since when the peer has taken nothing of what waits for it, as far as is known; none while nothing does.
    pub(super) fn stands_still_since(&self) -> Option<u64> {
        self.writer.as_ref()?.patience.as_ref().map(RateWatch::moved)
    }

    /// The same, and what is known is as the system has it now.
    pub(super) fn look_at_reader(&mut self, now: u64) -> Option<u64> {
        let writer = self.writer.as_mut()?;
        let position = writer.sent().wrapping_sub(self.transport.unacknowledged());
        writer.patience.as_mut()?.note(now, position);
        self.stands_still_since()
    }

    /// The deadline of a response has come.
    pub(super) fn check_reader(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let site = &context.group.site;
        let (minimum, timeout) = self.send_limits(site);
        let writer = self.writer.as_mut()?;
        let position = writer.sent().wrapping_sub(self.transport.unacknowledged());
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
                site.guard.applied.note(rule, self.peer, &site.log);
                self.transport.reset_when_closed();
                self.ended_as = End::TooSlow;
                Some(self.peer_gone(context))
            }
        }
    }
}
