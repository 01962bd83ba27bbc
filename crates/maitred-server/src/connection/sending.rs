//! Sending for the exchanges of a connection: the turn of the queue, the wait for a slow peer, and the loss of the peer.
//!
//! The wire sends; here the exchanges learn what became of it: handlers that wait are told, the timer is set to the
//! earliest deadline, and records of a lost peer are written down.

use maitred_exchange::{Site, Stream, spare_writer};
use maitred_io::clock;
use maitred_io::transport::Moved;
use maitred_limits::Rule;
use maitred_limits::minimum::{Late, Minimum, RateWatch};
use maitred_log::End;
use maitred_runtime::{Flow, SendError};

use super::carrier::Carrier;
use super::shaped::Sent;
use super::spilling::{has_made_room, note_waiting};
use super::wire::{Reach, Wire};
use super::{Context, Group, NEVER, Turn, nanos};
use crate::group::slots::Token;
use maitred_exchange::stream::data_rate::{limits_of_one, own_nanos, send_timeout_of_all};

/// Sends the bytes of this turn, then the writer's, and writes down the records of the responses (log, statistics) when
/// the last byte has left. The rest stays with the writer, its records too.
///
/// Returns `Wait` when everything has left, or an edge or the timer goes on; `Later` when the turn has sent its share, or
/// `Close` when the peer is gone and no handler has an exchange. Records of a lost peer are written down with the end that
/// the wire has for them.
pub(super) fn flush(carrier: &mut impl Carrier, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
    let site = &context.group.site;
    if !context.scratch.records.is_empty() {
        let done = site.later(context.now);
        for record in &mut context.scratch.records {
            record.times.done = done;
        }
    }
    let out = &mut context.scratch.out;
    if !out.is_empty() {
        match &mut wire.writer {
            None if wire.shaper.is_some() => {
                wire.writer.insert(spare_writer()).push(std::mem::take(out).into(), 0);
            }
            None => match wire.transport.send(out, false) {
                Moved::Bytes(count) if count == out.len() => out.clear(),
                Moved::Bytes(count) => {
                    wire.writer.insert(spare_writer()).push(out.split_off(count).into(), 0);
                    out.clear();
                }
                Moved::Blocked => {
                    wire.writer.insert(spare_writer()).push(std::mem::take(out).into(), 0);
                }
                Moved::End | Moved::Failed(_) => {
                    out.clear();
                    return peer_gone(carrier, wire, context);
                }
            },
            Some(writer) => writer.push(std::mem::take(out).into(), 0),
        }
    }
    let Some(writer) = &mut wire.writer else {
        if !context.scratch.records.is_empty() {
            site.note_all(&mut context.scratch.records, site.later(context.now), None);
        }
        return Turn::Wait;
    };
    writer.records.append(&mut context.scratch.records);
    let before = writer.marks();
    let sent = wire.send_writer(context.group);
    let now = wire.writer.as_ref().map_or(before, |writer| writer.marks());
    let room = has_made_room(site, before, now) || wire.direct && matches!(sent, Sent::All);
    match sent {
        Sent::All => {
            wire.drop_writer(context.group);
            carrier.go_on_with_body(wire, context.group, context.token);
        }
        Sent::Held => hold(carrier, wire, context.group, context.token),
        Sent::Blocked | Sent::Budget => {
            await_reader(carrier, wire, context.group, context.token, Some(context.now));
        }
        Sent::Broken(error) => {
            wire.note_broken(context.group, &error);
            return peer_gone(carrier, wire, context);
        }
    }
    if matches!(sent, Sent::Blocked | Sent::Budget) {
        note_waiting(carrier, wire, context.group, context.token);
    }
    if room {
        carrier.tell();
    }
    if matches!(sent, Sent::Budget) { Turn::Later } else { Turn::Wait }
}

/// Handles the loss of both directions or a failed send.
pub(super) fn peer_gone(carrier: &mut impl Carrier, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
    wire.reach = wire.reach.max(Reach::Dead);
    wire.lose_writer(context.group);
    context.group.site.note_all(&mut context.scratch.records, context.now, Some(wire.ended_as));
    carrier.drop_answered(wire, context.group);
    if !carrier.is_running() {
        return Turn::Close;
    }
    carrier.tell_gone();
    if context.group.is_draining() {
        wire.abandon(context.group);
    }
    if carrier.awaits_response() {
        // The signal of the timer may have come together with this one.
        arm(carrier, wire, context.group, context.token);
    }
    Turn::Wait
}

/// Whether the peer has ended its sending side, or is gone.
pub(super) fn has_peer_ended(carrier: &impl Carrier, wire: &Wire) -> bool {
    // A handler that reads a body itself may see the end before the event arrives.
    wire.read_closed || wire.is_dead() || carrier.streams().any(Stream::has_read_end)
}

/// Replaces the deadline of the connection, and sets the timer to the earliest one of all.
pub(super) fn set_deadline(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    context: &Context<'_>,
    deadline: u64,
) {
    wire.deadline = deadline;
    arm(carrier, wire, context.group, context.token);
}

/// Sets the timer to the earliest deadline of the connection and its exchanges.
pub(super) fn arm(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token) {
    let other = carrier.request_due().min(carrier.resumes_at()).min(carrier.sockets_due(&group.site));
    wire.arm(group, token, other);
}

/// Sends the writer's bytes outside a turn's end, from any thread, and writes their records down when the last one has
/// left. What the socket does not take stays, and an edge, the timer or another turn goes on. Returns whether the
/// handler may send more.
///
/// # Errors
/// The peer is gone; see [`fail_sending`].
pub(super) fn send_kept(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    group: &Group,
    token: Token,
) -> Result<Flow, SendError> {
    let Some(writer) = &wire.writer else { return Ok(Flow::Ready) };
    if writer.is_blocked() {
        // With small blocks and a slow reader each block would cause an attempt; an attempt with a part of a file
        // reads that part first.
        note_waiting(carrier, wire, group, token);
        return Ok(flow(carrier, wire, group));
    }
    let before = writer.marks();
    let sent = wire.send_writer(group);
    let now = wire.writer.as_ref().map_or(before, |writer| writer.marks());
    if has_made_room(&group.site, before, now) {
        carrier.tell();
    }
    match sent {
        Sent::All => {
            wire.drop_writer(group);
            carrier.go_on_with_body(wire, group, token);
            Ok(Flow::Ready)
        }
        Sent::Held => {
            hold(carrier, wire, group, token);
            Ok(flow(carrier, wire, group))
        }
        Sent::Blocked => {
            put_off(carrier, wire, group, token);
            Ok(flow(carrier, wire, group))
        }
        Sent::Budget => {
            put_off(carrier, wire, group, token);
            group.resume(token);
            Ok(flow(carrier, wire, group))
        }
        Sent::Broken(error) => {
            wire.note_broken(group, &error);
            fail_sending(carrier, wire, group)
        }
    }
}

/// Restarts the send timeout at the last byte that has left.
pub(super) fn put_off(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token) {
    note_waiting(carrier, wire, group, token);
    await_reader(carrier, wire, group, token, None);
}

/// Handles a failed send outside a turn: drops the queued bytes, writes the records that wait with them down with the
/// end that the wire has for them, and tells the handlers. Always returns the error.
pub(super) fn fail_sending(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    group: &Group,
) -> Result<Flow, SendError> {
    wire.lose();
    wire.lose_writer(group);
    carrier.tell_gone();
    Err(SendError::Closed)
}

/// Starts or puts off the peer's time when the socket takes no more.
fn await_reader(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token, now: Option<u64>) {
    let Some(writer) = &mut wire.writer else { return };
    if writer.is_stuck() && writer.patience.is_some() {
        return;
    }
    let now = now.unwrap_or_else(clock::monotonic);
    let (minimum, timeout) = send_limits(carrier, wire, &group.site);
    let Some(writer) = &mut wire.writer else { return };
    let sent = writer.sent();
    let patience = writer.patience.get_or_insert_with(|| {
        RateWatch::begin(minimum, now, sent.wrapping_sub(wire.transport.unacknowledged()))
    });
    patience.touch(now);
    wire.deadline = patience.due(minimum, timeout);
    arm(carrier, wire, group, token);
}

/// The least rate of the peer and the longest time without progress. Of responses that share the connection the
/// longest time counts.
fn send_limits(carrier: &impl Carrier, wire: &Wire, site: &Site) -> (Minimum, u64) {
    let (minimum, all) = (site.guard.outward(), nanos(site.timeouts.send));
    match wire.send_timeout.max(carrier.longest_send_timeout(site)) {
        0 => (minimum, all),
        own if own == send_timeout_of_all(site) => (minimum, all),
        own => limits_of_one(own_nanos(own), (minimum, all)),
    }
}

/// Checks the peer when the deadline of a response has come.
pub(super) fn check_reader(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    context: &mut Context<'_>,
) -> Option<Turn> {
    let site = &context.group.site;
    let (minimum, timeout) = send_limits(carrier, wire, site);
    let writer = wire.writer.as_mut()?;
    let position = writer.sent().wrapping_sub(wire.transport.unacknowledged());
    let patience = writer.patience.get_or_insert_with(|| RateWatch::begin(minimum, context.now, position));
    match patience.look(minimum, timeout, context.now, position) {
        Ok(()) => {
            let due = patience.due(minimum, timeout);
            set_deadline(carrier, wire, context, due);
            None
        }
        Err(late) => {
            let rule = match late {
                Late::Slow => Rule::MinRateOut,
                Late::Silent if timeout == nanos(site.timeouts.send) => Rule::SendTimeout,
                Late::Silent => Rule::OwnSendTimeout,
            };
            site.guard.applied.note(rule, wire.peer, &site.log);
            wire.transport.reset_when_closed();
            wire.ended_as = End::TooSlow;
            Some(peer_gone(carrier, wire, context))
        }
    }
}

/// Sets the timer for a response that a limit holds back; the peer's time does not run meanwhile.
pub(super) fn hold(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token) {
    if let Some(writer) = &mut wire.writer {
        writer.patience = None;
    }
    note_waiting(carrier, wire, group, token);
    wire.deadline = NEVER;
    arm(carrier, wire, group, token);
}

/// Whether the handler of a response may send more.
pub(super) fn flow(carrier: &impl Carrier, wire: &Wire, group: &Group) -> Flow {
    if carrier.is_writer_full(wire, group) { Flow::Full } else { Flow::Ready }
}
