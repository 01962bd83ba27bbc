//! Memory that connections hold: it counts against the process-wide budgets, and connections give up incomplete
//! requests when others need the memory.
//!
//! Section below: memory of heads.

use crate::connection::carrier::Carrier;
use crate::connection::wire::Phase;
use crate::connection::wire::Wire;
use maitred_exchange::{Queue, Record, Stream};
use std::mem::size_of;

use maitred_limits::Rule;
use maitred_limits::heads::{HeadShare, HeldHeads};
use maitred_runtime::Request;

use super::carrier::see_carrier;
use super::{Connection, Context, Group, nanos};
use crate::group::slots::Token;
use maitred_exchange::destination::asks_engine;

/// Longest idle time of a connection while a resource is scarce, in nanoseconds; the value of Jetty's
/// LowResourceMonitor.
const LOW_KEEP_ALIVE: u64 = 1_000_000_000;

/// The shares of a connection in the process-wide memory budgets.
#[derive(Default)]
pub(super) struct Shares {
    /// Bytes that the connection holds.
    buffers: u64,
    /// Share of the head budget; none while the heads have a usual size.
    heads: Option<HeadShare>,
}

impl Connection {
    /// Reports changes of the held memory to the budgets.
    pub(super) fn tell_budgets(&mut self, group: &Group, token: Token) {
        let guard = &group.site.guard;
        let (heads, buffers) =
            see_carrier!(self, |carrier, wire| (held_heads(carrier, wire).counted(), holds(carrier, wire)));
        if self.shares.is_none() && heads.sum() == 0 && buffers == 0 {
            return;
        }
        let mut shares = self.shares.take().unwrap_or_default();
        let asked = guard.heads.change(&mut shares.heads, (group.number, token.to_u64()), heads);
        for (number, token) in &asked {
            if let Some(group) = group.groups.find(*number) {
                group.resume(Token::from_u64(*token));
            }
        }
        let used_up = guard.budget.is_on() && {
            let now = buffers + heads.sum();
            let before = std::mem::replace(&mut shares.buffers, now);
            now != before && guard.budget.change(before, now)
        };
        if shares.heads.is_some() || shares.buffers > 0 {
            self.shares = Some(shares);
        }
        if used_up || !asked.is_empty() {
            group.groups.look_at_resources();
        }
    }

    /// Whether others need the memory of its incomplete requests.
    pub(super) fn has_to_give_up_heads(&self) -> bool {
        self.shares.as_ref().and_then(|shares| shares.heads.as_ref()).is_some_and(HeadShare::take_asked)
    }

    /// Gives back all shares at the end of the connection, and ends the count of the connection for its client.
    pub(super) fn give_back_budgets(&mut self, group: &Group) {
        let guard = &group.site.guard;
        if let Some(mut shares) = self.shares.take() {
            let asked = guard.heads.change(&mut shares.heads, (group.number, 0), HeldHeads::default());
            debug_assert!(asked.is_empty(), "nobody has to leave for less");
            guard.budget.change(shares.buffers, 0);
        }
        if self.wire.counted {
            guard.close(self.wire.peer);
        }
    }
}

/// Factor for the time of a connection without its first request in a drain, applied to
/// [`Timeouts::drain_idle`](crate::Timeouts::drain_idle). By default the product is more than the second within which
/// TCP sends a lost segment again (RFC 6298 §2.1).
const FIRST_REQUEST: u64 = 4;

/// Longest wait of a connection for its first request while the server drains, in nanoseconds.
pub(super) fn first_request_time(group: &Group) -> u64 {
    nanos(group.site.timeouts.drain_idle).saturating_mul(FIRST_REQUEST)
}

/// Longest idle time of a connection at present, in nanoseconds.
pub(super) fn idle_time(group: &Group) -> u64 {
    let keep_alive = nanos(group.site.timeouts.keep_alive);
    if group.is_draining() {
        nanos(group.site.timeouts.drain_idle)
    } else if group.site.guard.resources.low().is_some_and(|scarce| scarce.is_held_by_idle()) {
        keep_alive.min(LOW_KEEP_ALIVE)
    } else {
        keep_alive
    }
}

// ---- Memory of heads ----
//
// Few bytes of a peer can become many bytes of a head (HPACK), and a head is kept until its exchange is over. An
// incomplete request can be refused: no handler has begun with it.

/// Memory of a multiplexed stream beside its head, in bytes.
pub(super) const STREAM: u64 = (size_of::<Stream>() + size_of::<Request>() + size_of::<Queue>()) as u64;

/// Reason given to refused requests.
pub(super) const NO_ROOM: &str = "the server is short of memory";

/// Bytes in buffers of the connection, beside its heads.
pub(super) fn holds(carrier: &impl Carrier, wire: &Wire) -> u64 {
    let streams: u64 = carrier.streams().map(Stream::held).sum();
    // Received bytes of an incomplete head count as a head.
    let input = if wire.phase == Phase::Receiving { 0 } else { wire.input.len() as u64 };
    input + streams + wire.writer.as_ref().map_or(0, |writer| writer.held())
}

/// Bytes of the heads, including received parts of incomplete heads.
fn held_heads(carrier: &impl Carrier, wire: &Wire) -> HeldHeads {
    let mut held = HeldHeads::default();
    let more = carrier.memory_of_one();
    for stream in carrier.streams() {
        let sum = if stream.waits_for_peer() { &mut held.waiting } else { &mut held.running };
        *sum += stream.held_by_head() + more;
    }
    if let Some(writer) = &wire.writer {
        held.running += writer.records.iter().map(Record::held_by_head).sum::<u64>();
    }
    if wire.phase == Phase::Receiving {
        held.waiting += wire.input.capacity() as u64 + carrier.gathered();
    }
    held
}

/// Whether the head of this request exceeds the memory for one connection; notes that if so.
pub(super) fn lacks_room(
    carrier: &impl Carrier,
    wire: &Wire,
    context: &Context<'_>,
    stream: &Stream,
) -> bool {
    let site = &context.group.site;
    let head = &stream.request.head;
    let Some(most) = site.guard.heads.most_of_one() else { return false };
    let lacks =
        held_heads(carrier, wire).sum() + head.fields.memory() as u64 > most && !asks_engine(site, head);
    if lacks {
        site.guard.applied.note(Rule::HeadBudget, wire.peer, &site.log);
    }
    lacks
}
