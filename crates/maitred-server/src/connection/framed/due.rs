//! Deadlines of streams: request bodies that do not come, and readers that take nothing.

use maitred_h2::ErrorCode;
use maitred_http::Status;
use maitred_limits::Rule;
use maitred_limits::minimum::Late;
use maitred_log::End;

use super::Framed;
use crate::connection::carrier::Carrier;
use crate::connection::held::idle_time;
use crate::connection::in_turn;
use crate::connection::sending::{arm, check_reader};
use crate::connection::wire::Wire;
use crate::connection::{Context, Group, Key, NEVER, Turn, nanos};
use crate::group::slots::Token;
use maitred_exchange::stages::refuse_noted;

/// How long a connection may be idle whose peer has said that it makes no further requests, in nanoseconds.
const LEAVING: u64 = 2_000_000_000;

impl Framed {
    /// Has the timer ring for what is due first.
    pub(super) fn settle_framed(&mut self, wire: &mut Wire, group: &Group, token: Token, now: u64) {
        let limits = (group.site.guard.outward(), nanos(group.site.timeouts.send));
        let still = wire.stands_still_since();
        let (outward, partial, leaving) = (self.outward, self.partial, self.leaving);
        for stream in self.each_stream() {
            let queue = stream.queue.as_mut();
            if let Some(due) = queue.and_then(|queue| queue.reader_due(outward, still, limits, now)) {
                stream.due = due;
            } else if stream.running && stream.waits_for_body() {
                stream.due = stream.live_due(&group.site);
            } else if stream.running || stream.answered {
                stream.due = NEVER;
            } else {
                stream.due = stream.body_due(&group.site, now);
            }
        }
        if self.is_idle(wire) {
            // Who makes no further requests ends the connection itself; if not, there is nothing to wait for.
            let most = if leaving { LEAVING } else { NEVER };
            wire.deadline = now + idle_time(group).min(most);
        } else if wire.writer.is_none() {
            // A head that does not come to its end holds back everything behind it.
            wire.deadline = if partial > 0 { partial + nanos(group.site.timeouts.head) } else { NEVER };
        }
        arm(self, wire, group, token);
    }

    /// Since when the peer has taken nothing of an exchange; none while the exchange does not wait for that. The connection takes nothing
    /// since `still`, if it does not.
    pub(in crate::connection) fn peer_idle_since(&self, key: Key, still: Option<u64>) -> Option<u64> {
        let queue = self.queue_of(key)?;
        let since = match &queue.patience {
            Some(patience) if queue.is_stalled(self.outward) => patience.moved(),
            _ => still.filter(|_| queue.is_sendable())?,
        };
        Some(since.max(queue.moved))
    }

    /// Looks at streams whose time is over, of the request's body or of a reader that takes nothing, and at the connection's. `alone`
    /// says that nothing else has happened.
    pub(in crate::connection) fn check_streams(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        alone: bool,
    ) -> Option<Turn> {
        let now = context.now;
        let late: Vec<u32> =
            self.each_stream().filter(|stream| stream.due <= now).map(|stream| stream.number).collect();
        let is_one_late = !late.is_empty();
        for number in late {
            self.check_stream(wire, context, number);
        }
        if now >= wire.deadline {
            if wire.writer.is_some() {
                return check_reader(self, wire, context);
            }
            if self.is_idle(wire) {
                return Some(self.end_framed(wire, context));
            }
            if self.partial > 0 {
                let site = &context.group.site;
                site.guard.applied.note(Rule::HeadTimeout, wire.peer, &site.log);
                let numbers: Vec<u32> = self.streams().map(|stream| stream.number).collect();
                for number in numbers {
                    self.cancel(context.group, number, End::PeerGone);
                }
                return Some(self.end_framed(wire, context));
            }
        } else if alone && !is_one_late && self.is_idle(wire) {
            // It was put off since the timer was set.
            arm(self, wire, context.group, context.token);
            return Some(Turn::Wait);
        }
        None
    }

    pub(in crate::connection) fn check_stream(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        number: u32,
    ) {
        let (site, now) = (&context.group.site, context.now);
        let still = wire.look_at_reader(now);
        let Some(mut stream) = self.streams.remove(number) else { return };
        stream.due = NEVER;
        let limits = (site.guard.outward(), nanos(site.timeouts.send));
        let outward = self.outward;
        if let Some(queue) = &mut stream.queue
            && let Some(due) = queue.reader_due(outward, still, limits, now)
        {
            let late = if now < due { None } else { queue.look_at_peer(limits, now) };
            let Some(late) = late else {
                // What it had taken was not known, or it has taken enough.
                stream.due = queue.reader_due(outward, still, limits, now).unwrap_or(NEVER);
                return self.put(stream);
            };
            // Its peer takes nothing: the others go on.
            self.reset(number, ErrorCode::Cancel);
            let rule = match late {
                Late::Slow => Rule::MinRateOut,
                Late::Silent if queue.send_timeout > 0 => Rule::OwnSendTimeout,
                Late::Silent => Rule::SendTimeout,
            };
            site.guard.applied.note(rule, wire.peer, &site.log);
            self.put(stream);
            return self.cancel(context.group, number, End::TooSlow);
        }
        if stream.running && stream.waits_for_body() {
            if let Some(rule) = stream.end_late_live(site, now) {
                site.guard.applied.note(rule, wire.peer, &site.log);
            } else {
                stream.due = stream.live_due(site);
            }
            return self.put(stream);
        }
        if stream.running || stream.answered {
            return self.put(stream);
        }
        let late = match stream.check_body(site, now) {
            Ok(due) => {
                stream.due = due;
                return self.put(stream);
            }
            Err(late) => late,
        };
        let rule = if late == Late::Slow { Rule::MinRateIn } else { Rule::BodyTimeout };
        site.guard.applied.note(rule, wire.peer, &site.log);
        stream.times.complete = now;
        let reason = "the request body did not arrive in time";
        let received =
            refuse_noted(&mut in_turn(self, wire, context), stream, Status::REQUEST_TIMEOUT, reason);
        self.keep_on(received);
    }
}
