//! How long a connection waits for its peer: for a request body, and until a response is taken.
//!
//! Promises: what comes or leaves in time costs a store; only when a deadline rings, somebody looks whether enough has.
//! What a peer has taken is what its system has acknowledged, not what our socket took: that takes megabytes at once,
//! and then, from a slow reader, nothing for minutes. Time in which nothing waits for the peer does not count.

use maitred_io::clock;

use super::body::Keeping;
use super::{Connection, Context, Turn, nanos};
use crate::group::Group;
use crate::group::slots::Token;
use crate::limits::Rule;
use crate::limits::minimum::{Late, RateWatch};

impl Connection {
    /// The deadline for the next bytes of a request body, from `body-timeout` and `min-rate-in`.
    pub(super) fn body_due(&mut self, context: &Context<'_>) -> u64 {
        let timeout = nanos(context.group.site.timeouts.body);
        let minimum = context.group.site.guard.inward();
        let Some(incoming) = &mut self.incoming else { return context.now + timeout };
        if matches!(&incoming.keeping, Keeping::Spool(spool) if spool.is_full()) {
            // For the disk.
            incoming.patience = None;
            return context.now + timeout;
        }
        let received = incoming.received;
        let patience =
            incoming.patience.get_or_insert_with(|| RateWatch::begin(minimum, context.now, received));
        patience.note(context.now, received);
        patience.due(minimum, timeout)
    }

    /// The deadline of a request has come: how its peer is late, or none if it has still time, until when the deadline is
    /// put off.
    pub(super) fn check_body(&mut self, context: &Context<'_>) -> Option<Late> {
        let timeout = nanos(context.group.site.timeouts.body);
        let minimum = context.group.site.guard.inward();
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.facts.is_some()) else {
            return Some(Late::Silent);
        };
        let received = incoming.received;
        // Without it the disk is late, or what is not read any more.
        let Some(patience) = &mut incoming.patience else { return Some(Late::Silent) };
        match patience.look(minimum, timeout, context.now, received) {
            Err(late) => Some(late),
            Ok(()) => {
                let due = patience.due(minimum, timeout);
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
        let site = &group.site;
        let (minimum, timeout) = (site.guard.outward(), nanos(site.timeouts.send));
        let sent = writer.sent();
        let socket = &self.socket;
        let patience = writer.patience.get_or_insert_with(|| {
            RateWatch::begin(minimum, now, sent.wrapping_sub(socket.unacknowledged()))
        });
        patience.touch(now);
        self.deadline = patience.due(minimum, timeout);
        self.arm(group, token);
    }

    /// The deadline of a response has come.
    pub(super) fn check_reader(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let site = &context.group.site;
        let (minimum, timeout) = (site.guard.outward(), nanos(site.timeouts.send));
        let writer = self.writer.as_mut()?;
        let position = writer.sent().wrapping_sub(self.socket.unacknowledged());
        let patience =
            writer.patience.get_or_insert_with(|| RateWatch::begin(minimum, context.now, position));
        match patience.look(minimum, timeout, context.now, position) {
            Ok(()) => {
                let due = patience.due(minimum, timeout);
                self.set_deadline(context, due);
                None
            }
            Err(late) => {
                let rule = if late == Late::Slow { Rule::MinRateOut } else { Rule::SendTimeout };
                site.guard.applied.note(rule, self.peer.ip(), &site.log);
                self.socket.reset_when_closed();
                Some(self.peer_gone(context))
            }
        }
    }
}
