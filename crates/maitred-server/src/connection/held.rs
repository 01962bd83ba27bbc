//! What a connection holds in memory: it counts against the budgets of all, and what is waited for is given up when others need it.
//!
//! Sections below: its heads.

use std::mem::size_of;

use maitred_http::Status;
use maitred_limits::Rule;
use maitred_limits::heads::{HeadShare, HeldHeads};
use maitred_log::End;
use maitred_runtime::Request;
use maitred_spool::Progress;

use super::framed::{Queue, Why};
use super::protocol::Protocol;
use super::stream::{Record, Stream};
use super::{Connection, Context, Group, Phase, Turn, nanos};
use crate::destination::asks_engine;
use crate::group::slots::Token;

/// How long a connection may be idle while there is little of something, as Jetty's LowResourceMonitor has it.
const LOW_KEEP_ALIVE: u64 = 1_000_000_000;

/// What a connection has of the budgets of all.
#[derive(Default)]
pub(super) struct Shares {
    /// Bytes that it holds.
    buffers: u64,
    /// Where they are more than usual ones.
    heads: Option<HeadShare>,
}

impl Connection {
    /// Bytes that it holds in buffers, beside its heads.
    fn holds(&self) -> u64 {
        let streams: u64 = self.streams().map(Stream::held).sum();
        // What has come of a head counts as one.
        let input = if self.phase == Phase::Receiving { 0 } else { self.input.len() as u64 };
        input + streams + self.writer.as_ref().map_or(0, |writer| writer.held())
    }

    /// Tells the budgets what has changed.
    pub(super) fn tell_budgets(&mut self, group: &Group, token: Token) {
        let guard = &group.site.guard;
        let (heads, buffers) = (self.held_heads().counted(), self.holds());
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

    /// It is over: it holds nothing, and is no connection of its client any more.
    pub(super) fn give_back_budgets(&mut self, group: &Group) {
        let guard = &group.site.guard;
        if let Some(mut shares) = self.shares.take() {
            let asked = guard.heads.change(&mut shares.heads, (group.number, 0), HeldHeads::default());
            debug_assert!(asked.is_empty(), "nobody has to leave for less");
            guard.budget.change(shares.buffers, 0);
        }
        if self.counted {
            guard.close(self.peer);
        }
    }
}

/// In a drain, a connection without its first request has this many times [`Timeouts::drain_idle`](crate::Timeouts::drain_idle): by
/// default more than the second within which TCP sends a lost segment again (RFC 6298 §2.1).
const FIRST_REQUEST: u64 = 4;

/// How long a connection may stay without its first request when the server drains, in nanoseconds.
pub(super) fn first_request_time(group: &Group) -> u64 {
    nanos(group.site.timeouts.drain_idle).saturating_mul(FIRST_REQUEST)
}

/// How long a connection may be idle now, in nanoseconds.
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

// ---- Its heads ----
//
// Few bytes of a peer can become many of a head (HPACK), and a head is kept until its exchange is over. A request whose peer has not
// completed it can be refused: nobody has begun with it.

/// What a stream of many costs beside its head.
const STREAM: u64 = (size_of::<Stream>() + size_of::<Request>() + size_of::<Queue>()) as u64;

/// What a request is told that is refused.
const NO_ROOM: &str = "the server is short of memory";

impl Connection {
    /// What its heads hold, and what has come of those to come.
    fn held_heads(&self) -> HeldHeads {
        let mut held = HeldHeads::default();
        let more = if self.protocol.is_framed() { STREAM } else { 0 };
        for stream in self.streams() {
            let sum = if stream.waits_for_peer() { &mut held.waiting } else { &mut held.running };
            *sum += stream.held_by_head() + more;
        }
        if let Some(writer) = &self.writer {
            held.running += writer.records.iter().map(Record::held_by_head).sum::<u64>();
        }
        if self.phase == Phase::Receiving {
            held.waiting += self.input.capacity() as u64 + self.gathered();
        }
        held
    }

    /// Bytes of a head that frames have brought a part of.
    fn gathered(&self) -> u64 {
        match &self.protocol {
            Protocol::H1(_) => 0,
            Protocol::Framed(framed) => framed.gathered(),
        }
    }

    /// Whether there is no room for the head of this request, which is noted then.
    pub(super) fn lacks_room(&self, context: &Context<'_>, stream: &Stream) -> bool {
        let site = &context.group.site;
        let head = &stream.request.head;
        let Some(most) = site.guard.heads.most_of_one() else { return false };
        let lacks = self.held_heads().sum() + head.fields.memory() as u64 > most && !asks_engine(site, head);
        if lacks {
            site.guard.applied.note(Rule::HeadBudget, self.peer, &site.log);
        }
        lacks
    }

    pub(super) fn has_to_give_up_heads(&self) -> bool {
        self.shares.as_ref().and_then(|shares| shares.heads.as_ref()).is_some_and(HeadShare::take_asked)
    }

    /// Refuses the requests that are not complete; none if the turn goes on.
    pub(super) fn give_up_heads(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let site = &context.group.site;
        if self.protocol.is_framed() {
            let waiting: Vec<u32> =
                self.streams().filter(|stream| stream.waits_for_peer()).map(|stream| stream.number).collect();
            let is_within_head = self.gathered() > 0;
            if is_within_head || !waiting.is_empty() {
                site.guard.applied.note(Rule::HeadBudget, self.peer, &site.log);
            }
            let framed = self.protocol.framed()?;
            for number in &waiting {
                framed.reset(*number, Why::Refused);
            }
            // Nothing else can come before the rest of that head.
            let fault = is_within_head.then(|| framed.calm(NO_ROOM));
            for number in waiting {
                self.cancel(context.group, number, End::Cut);
            }
            return fault.map(|fault| self.end_faulty(context, fault));
        }
        let is_open = matches!(self.spool_progress(), None | Some(Progress::Open));
        let waits = |stream: &mut Box<Stream>| is_open && stream.waits_for_peer();
        if self.phase != Phase::Receiving {
            return None;
        }
        let stream = self.stream.take_if(waits)?;
        site.guard.applied.note(Rule::HeadBudget, self.peer, &site.log);
        if stream.keeping.is_dropped() {
            return Some(Turn::Close);
        }
        let received = self.refuse_noted(context, stream, Status::SERVICE_UNAVAILABLE, NO_ROOM);
        Some(match self.flush(context) {
            Turn::Close => Turn::Close,
            _ if self.writer.is_none() => self.end_gently(context),
            _ => received.turn(),
        })
    }
}
