//! One connection: the only loop that joins socket and protocol. A turn never waits and never runs application code: it
//! comes back with the request to run.
//!
//! ```text
//! Connection --wire------> Wire: transport, queued bytes, limits, timer
//!            `-protocol--> H1 (one exchange) or Framed (many): each is the Carrier of its exchanges
//! ```
//! Every connection begins as H1, with TLS and HTTP/2 too: its `receive` (`h1/receive.rs`) reads the PROXY header, shakes hands, sees
//! the agreed protocol or the preface of HTTP/2, and then has the connection go over to Framed.
//!
//! The way of an exchange is in maitred-exchange, which knows a turn as a [`Link`]: the section below. Calls of handlers are in
//! `calls.rs`.

mod accept;
mod accept_turns;
mod backpressure;
mod calls;
mod carrier;
mod drain;
pub(crate) mod framed;
mod h1;
mod handshake;
mod held;
mod linger;
mod proxy_header;
mod request_timeout;
mod responder;
mod secured;
mod sending;
mod shaped;
pub(crate) mod snapshot;
mod spilling;
#[cfg(test)]
mod spool_tests;
mod streaming_body;
pub(crate) mod websocket;
mod wire;

use std::sync::Arc;

use maitred_exchange::link::Readiness;
use maitred_exchange::memory::spare_request;
use maitred_exchange::{
    Awaited, Ends, Link, NEVER, Received, Response, Scratch, Site, Stream, Values, nanos,
};
use maitred_h1::{HeadFacts, Sender};
use maitred_http::{Peer, ResponseHead, Status, target};
use maitred_log::End;
use maitred_match::Ambiguity;
use maitred_runtime::{Body, Exchange, Handler};
use maitred_turns::Signals;

use crate::group::slots::{Place, Token};
use crate::group::{Job, Resident};
use crate::listener::Listening;
use carrier::{Carrier, see_carrier, with_carrier};
use drain::end_events;
use held::{Shares, first_request_time, idle_time, lacks_room};
use request_timeout::check_request;
use responder::{Origin, Responder};
use sending::{arm, check_reader, flush, peer_gone, set_deadline};
use streaming_body::live_reader;
use websocket::check_websockets;
use wire::{Phase, Wire};

pub(crate) use crate::group::slots::Key;
pub(crate) use carrier::Protocol;
pub(crate) use maitred_turns::Turn;

/// Most time slices of lingering for one connection: half a minute in all, as nginx does (`lingering_time`). A client
/// that sends a whole upload before it reads completes the upload also on a slow link.
const MAX_LINGERS: u8 = 15;

/// A connection that has a peer.
pub(crate) struct Connection {
    wire: Wire,
    protocol: Protocol,
    /// Shares of the process-wide memory budgets; none while the connection holds nothing that counts.
    shares: Option<Box<Shares>>,
}

/// A group of connections.
pub(crate) type Group = crate::group::Group<Connection>;

/// Context of a connection's turn.
pub(crate) type Context<'a> = crate::group::Context<'a, Connection>;

impl Resident for Connection {
    type Scratch = Scratch;

    fn turn(&mut self, context: &mut Context<'_>, signals: Signals) -> Turn {
        self.take_turn(context, signals)
    }

    fn account(&mut self, group: &Group, token: Token) {
        self.tell_budgets(group, token);
    }

    fn leave(&mut self, group: &Group) {
        if std::mem::take(&mut self.wire.abandoned) {
            group.groups.count_abandoned_closed();
        }
        self.wire.lose_writer(group);
        with_carrier!(self, |carrier, wire| carrier.drop_answered(wire, group));
        self.give_back_budgets(group);
    }

    fn cut(&mut self) {
        let is_dead = self.wire.is_dead();
        if !is_dead {
            self.wire.ended_as = End::Drain;
        }
        with_carrier!(self, |carrier, _wire| {
            if !is_dead {
                carrier.each_stream().for_each(|stream| stream.flags().ask_to_end());
            }
            carrier.tell_gone();
        });
    }

    fn send_what_waits(&mut self, group: &Group, token: Token, now: u64) {
        match &mut self.protocol {
            Protocol::H1(h1) => h1.send_what_waits(&mut self.wire, group, token, now),
            Protocol::Framed(framed) => framed.send_what_waits(&mut self.wire, group, token),
        }
    }

    fn end_turn(group: &Group, scratch: &mut Scratch, now: u64) {
        // Records of a turn that ended without sending.
        group.site.note_all(&mut scratch.records, now, Some(End::Cut));
    }

    fn clear(scratch: &mut Scratch) {
        scratch.out.clear();
    }

    fn accept(group: &Arc<Group>, listening: &Listening, token: Token) {
        listening.accept(group, token);
    }

    fn take_deferred(group: &Arc<Group>) -> bool {
        accept_turns::look(group, None)
    }

    fn close_listener(group: &Arc<Group>, listening: &Listening, token: Token) {
        listening.close(group, token);
    }
}

impl Connection {
    /// Handles `signals`, then goes on with the present phase.
    fn take_turn(&mut self, context: &mut Context<'_>, signals: Signals) -> Turn {
        self.wire.writer.iter_mut().for_each(|writer| writer.note_turn());
        if signals.any(Signals::READ_CLOSED) && !self.wire.read_closed {
            self.wire.read_closed = true;
            with_carrier!(self, |carrier, _wire| carrier.tell());
        }
        if signals.any(Signals::READ) {
            self.wire.unread = true;
        }
        if signals.any(Signals::CLOSED) {
            if let Protocol::H1(h1) = &mut self.protocol {
                h1.receive_last_of_websocket(&mut self.wire, context);
            }
            return self.lose_peer(context);
        }
        if signals.any(Signals::TIMER) {
            self.wire.armed = NEVER;
            if let Some(turn) = self.check_deadline(context, signals == Signals::TIMER) {
                return turn;
            }
        }
        if signals.any(Signals::DRAIN)
            && let Some(turn) = self.begin_drain(context)
        {
            return turn;
        }
        if context.group.is_draining() {
            let is_left = self.is_running() && (self.wire.is_dead() || self.is_deserted());
            if is_left {
                self.wire.abandon(context.group);
            } else if let Some(turn) =
                with_carrier!(self, |carrier, wire| end_events(carrier, wire, context, signals))
            {
                return turn;
            }
        }
        if self.wire.is_dead() {
            return if self.is_running() { Turn::Wait } else { Turn::Close };
        }
        if self.has_to_give_up_heads()
            && let Some(turn) = self.give_up_heads(context)
        {
            return turn;
        }
        if self.wire.writer.is_some() {
            match with_carrier!(self, |carrier, wire| flush(carrier, wire, context)) {
                Turn::Wait => {}
                other => return other,
            }
        }
        self.proceed(context)
    }

    fn proceed(&mut self, context: &mut Context<'_>) -> Turn {
        match self.wire.phase {
            Phase::Running => match &mut self.protocol {
                Protocol::H1(h1) => h1.go_on_running(&mut self.wire, context),
                Protocol::Framed(_) => Turn::Wait,
            },
            Phase::Sending if self.wire.writer.is_some() => Turn::Wait,
            Phase::Sending if self.wire.last => {
                let is_between = self.is_between_requests();
                self.wire.end_gently(context, is_between)
            }
            Phase::Sending => {
                self.wire.phase = Phase::Receiving;
                self.receive(context)
            }
            Phase::Receiving => self.receive(context),
            Phase::Lingering => self.wire.linger(context),
        }
    }

    /// Receives and answers, over the protocol that the peer speaks or goes over to.
    fn receive(&mut self, context: &mut Context<'_>) -> Turn {
        if let Protocol::H1(h1) = &mut self.protocol {
            let turn = h1.receive(&mut self.wire, context);
            let Some(framed) = h1.go_over_if_agreed(&mut self.wire, context) else { return turn };
            self.protocol = Protocol::Framed(framed);
            if matches!(turn, Turn::Close) {
                return turn;
            }
        }
        match &mut self.protocol {
            Protocol::H1(_) => Turn::Wait,
            Protocol::Framed(framed) => framed.receive(&mut self.wire, context),
        }
    }

    /// Shortens the time of an idle connection, and tells a peer of HTTP/2 that no further request is wanted.
    fn begin_drain(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        // A handshake has begun, so a request is on its way.
        let shakes_hands = self.wire.awaits_handshake() && self.wire.transport.has_session();
        if self.is_idle() && !shakes_hands {
            let is_new = self.wire.served == 0 && matches!(self.protocol, Protocol::H1(_));
            let time = if is_new { first_request_time(context.group) } else { idle_time(context.group) };
            let deadline = self.wire.deadline.min(context.now + time);
            with_carrier!(self, |carrier, wire| set_deadline(carrier, wire, context, deadline));
        }
        match &mut self.protocol {
            Protocol::Framed(framed) if self.wire.phase == Phase::Receiving => {
                match framed.begin_drain(&mut self.wire, context) {
                    Turn::Wait => None,
                    other => Some(other),
                }
            }
            _ => None,
        }
    }

    fn lose_peer(&mut self, context: &mut Context<'_>) -> Turn {
        with_carrier!(self, |carrier, wire| peer_gone(carrier, wire, context))
    }

    /// Whether no part of a request has arrived and nothing waits to be sent.
    fn is_idle(&self) -> bool {
        see_carrier!(self, |carrier, wire| carrier.is_idle(wire))
    }

    /// Whether a handler has one of the exchanges.
    fn is_running(&self) -> bool {
        see_carrier!(self, |carrier, _wire| carrier.is_running())
    }

    /// Whether no incomplete request has been received.
    fn is_between_requests(&self) -> bool {
        match &self.protocol {
            Protocol::H1(h1) => h1.is_between_requests(),
            Protocol::Framed(framed) => framed.streams.is_empty(),
        }
    }

    /// Whether only handlers whose streams were reset remain.
    fn is_deserted(&self) -> bool {
        matches!(&self.protocol, Protocol::Framed(framed) if framed.is_deserted())
    }

    /// Refuses the incomplete requests, because others need their memory. Returns none if the turn goes on.
    fn give_up_heads(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        match &mut self.protocol {
            Protocol::H1(h1) => h1.give_up_heads(&mut self.wire, context),
            Protocol::Framed(framed) => framed.give_up_heads(&mut self.wire, context),
        }
    }

    /// Handles the deadlines that have passed; none if the turn goes on. `alone` says that the timer is the only
    /// signal.
    fn check_deadline(&mut self, context: &mut Context<'_>, alone: bool) -> Option<Turn> {
        let late = with_carrier!(self, |carrier, wire| {
            check_websockets(carrier, wire, context);
            check_request(carrier, wire, context)
        });
        if late.is_some() {
            return late;
        }
        if let Protocol::Framed(framed) = &mut self.protocol
            && self.wire.phase == Phase::Receiving
        {
            return framed.check_streams(&mut self.wire, context, alone);
        }
        if context.now < self.wire.deadline {
            return with_carrier!(self, |carrier, wire| {
                // The rate limit lets more of the response leave; `flush` sends it.
                if carrier.resumes_at().min(wire.resumes_at()) <= context.now {
                    return None;
                }
                // The deadline was put off since the timer was set.
                arm(carrier, wire, context.group, context.token);
                alone.then_some(Turn::Wait)
            });
        }
        if self.wire.awaits_proxy_header() {
            let log = &context.group.site.log;
            let peer = self.wire.peer;
            log.warn(format_args!("{peer}: closed; no header of the PROXY protocol has come in time"));
            return Some(Turn::Close);
        }
        if self.wire.awaits_handshake() {
            return Some(self.wire.time_out_handshake(context));
        }
        match (self.wire.phase, &mut self.protocol) {
            (Phase::Lingering, _) if self.wire.lingering && self.wire.lingers < MAX_LINGERS => {
                self.wire.grant_linger(context);
                None
            }
            (Phase::Lingering, _) => Some(Turn::Close),
            (Phase::Running, Protocol::H1(h1)) if self.wire.writer.is_none() => {
                h1.end_late_body(&mut self.wire, context);
                None
            }
            (Phase::Receiving, Protocol::H1(h1)) if !h1.is_idle(&self.wire) => {
                h1.end_late_request(&mut self.wire, context)
            }
            (Phase::Receiving, _) => {
                // A request may have arrived at this moment and is served.
                self.wire.unread = true;
                let served = self.wire.served;
                let turn = self.receive(context);
                let nothing_came = matches!(turn, Turn::Wait) && self.is_idle() && self.wire.served == served;
                Some(if nothing_came { Turn::Close } else { turn })
            }
            (Phase::Running | Phase::Sending, _) => {
                with_carrier!(self, |carrier, wire| check_reader(carrier, wire, context))
            }
        }
    }
}

// ---- The link of its exchanges ----

/// A connection in its turn, as its exchanges know it: the [`Link`] of both protocols.
struct InTurn<'t, 'c, C> {
    carrier: &'t mut C,
    wire: &'t mut Wire,
    context: &'t mut Context<'c>,
}

/// Lends the parts of a connection to its exchanges.
fn in_turn<'t, 'c, C: Carrier>(
    carrier: &'t mut C,
    wire: &'t mut Wire,
    context: &'t mut Context<'c>,
) -> InTurn<'t, 'c, C> {
    InTurn { carrier, wire, context }
}

impl<C> InTurn<'_, '_, C> {
    fn listening(&self) -> Option<&Listening> {
        self.context.group.groups.listeners.get(self.wire.listener as usize)
    }
}

impl<'c, C: Carrier> Link<'c> for InTurn<'_, 'c, C> {
    fn site(&self) -> &'c Arc<Site> {
        let group = self.context.group;
        &group.site
    }

    fn now(&self) -> u64 {
        self.context.now
    }

    fn received(&self) -> u64 {
        self.wire.received
    }

    fn peer(&self) -> Peer {
        self.wire.peer
    }

    fn ends(&self) -> Option<&Ends> {
        self.wire.ends.as_deref()
    }

    fn redirect_port(&self) -> Option<u16> {
        self.listening()?.redirect()
    }

    fn read_ahead(&self) -> Option<bool> {
        self.listening()?.read_ahead()
    }

    fn readiness(&self) -> Readiness {
        match (self.context.group.groups.is_ready(), self.context.group.is_draining()) {
            (true, _) => Readiness::Ready,
            (false, false) => Readiness::Stopping,
            (false, true) => Readiness::Draining,
        }
    }

    fn pool_for(&mut self, stream: &Stream, handler: &dyn Handler) -> usize {
        let (group, head) = (self.context.group, &stream.request.head);
        let path = &mut self.context.scratch.path;
        let pool = group.pool_of(|map| {
            target::normalise_decoded(head.path(), path);
            map.find(head, path, self.wire.client_of(stream).peer.ip())
        });
        group.pool_for(handler, pool)
    }

    fn ambiguous_pool(&self, stream: &Stream) -> Option<Ambiguity> {
        let (group, client) = (self.context.group, self.client_of(stream).peer.ip());
        let found = group.pool_of(|map| map.ambiguity(&stream.request.head, client));
        found.filter(|_| stream.destination.is_application())
    }

    fn lacks_room(&self, stream: &Stream) -> bool {
        lacks_room(self.carrier, self.wire, self.context, stream)
    }

    fn memory(&mut self) -> &mut Scratch {
        self.context.scratch
    }

    fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        self.context.waker()
    }

    fn send_own(&mut self, stream: Box<Stream>, response: Response) -> Received {
        self.wire.served = self.wire.served.saturating_add(1);
        self.carrier.send_own(self.wire, self.context, stream, response)
    }

    fn send_continue(&mut self, stream: &mut Stream) {
        if stream.queue.is_some() {
            return stream.enqueue(Values::interim(ResponseHead::new(Status::CONTINUE)));
        }
        let version = stream.request.head.version;
        Sender::new(version, false, true).send_continue(&mut self.context.scratch.out);
    }

    fn run(&mut self, mut stream: Box<Stream>, handler: Arc<dyn Handler>, pool: usize) -> Received {
        let Self { carrier, wire, context } = self;
        let (spare, buffer) = spare_request();
        let mut request = std::mem::replace(&mut stream.request, spare);
        let client = wire.client_of(&stream);
        request.endpoint = wire.endpoint(context, client);
        let flags = stream.run();
        stream.summarise(&request, context.now, pool);
        let threads = &context.group.scheduler.pool_at(pool).threads;
        let limit = threads.request_limit();
        stream.awaited = limit.map(|limit| Awaited::begin(limit, context.now, &request, &stream, pool));
        let limited = limit.map(|_| Arc::clone(&flags));
        let interrupts = limited.is_some() && threads.interrupts();
        let key = context.key(stream.number);
        let origin = Origin {
            peer: client.peer,
            listener: wire.listener.into(),
            pool: u16::try_from(pool).unwrap_or(u16::MAX),
            times: stream.times,
        };
        let encoder = carrier.begin_run(wire, context, &stream, &request.head);
        let mut responder = Responder::new(context.group, key, flags, encoder, origin, buffer);
        (responder.direct, responder.interrupts) = (wire.direct, interrupts);
        responder.passed = stream.passed.take();
        if let Some(offer) = stream.offer.take() {
            responder.set_websocket(offer);
        }
        if let Some((reader, length)) = live_reader(context, &mut stream) {
            request.body = Body::live(Box::new(reader), length);
            responder.live = true;
        }
        carrier.put(stream);
        let exchange = Exchange::new(request, Box::new(responder));
        let shown = carrier.shown_number(key.stream);
        let home = Place { group: context.group.number, token: context.token.to_u64(), stream: shown };
        context.jobs.push(Job { handler, exchange, home, pool, limited });
        Received::HandedOver
    }

    fn drop_rest(&mut self, facts: HeadFacts) {
        self.carrier.drop_rest(self.wire, self.context, facts);
    }

    fn close_behind(&mut self) {
        (self.wire.last, self.wire.unread, self.wire.phase) = (true, true, Phase::Sending);
    }

    fn limit_rate(&mut self, pool: Option<usize>, stream: &mut Stream) {
        self.wire.limit_rate(self.context, pool, &stream.request.head, stream.queue.as_deref_mut());
    }

    fn beside_interpreter(&self, act: &mut dyn FnMut()) {
        if C::KEEPS_INTERPRETER {
            return act();
        }
        self.context.group.host.without_interpreter(act);
    }
}
