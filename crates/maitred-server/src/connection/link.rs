//! A connection in its turn, as its exchanges know it: the [`Link`] of both protocols.

use std::sync::Arc;

use maitred_exchange::link::Readiness;
use maitred_exchange::memory::spare_request;
use maitred_exchange::{Awaited, Ends, Link, Received, Response, Scratch, Site, Stream, Values};
use maitred_h1::{HeadFacts, Sender};
use maitred_http::{Peer, ResponseHead, Status, target};
use maitred_match::Ambiguity;
use maitred_runtime::{Body, Exchange, Handler};

use super::Context;
use super::carrier::Carrier;
use super::held::lacks_room;
use super::responder::{Origin, Responder};
use super::streaming_body::live_reader;
use super::wire::{Phase, Wire};
use crate::group::Job;
use crate::group::slots::Place;
use crate::listener::Listening;

/// See the module text.
pub(super) struct InTurn<'t, 'c, C> {
    carrier: &'t mut C,
    wire: &'t mut Wire,
    context: &'t mut Context<'c>,
}

/// Lends the parts of a connection to its exchanges.
pub(super) fn in_turn<'t, 'c, C: Carrier>(
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

    fn shape(&mut self, pool: Option<usize>, stream: &mut Stream) {
        self.wire.shape(self.context, pool, &stream.request.head, stream.queue.as_deref_mut());
    }

    fn beside_interpreter(&self, act: &mut dyn FnMut()) {
        if C::KEEPS_INTERPRETER {
            return act();
        }
        self.context.group.host.without_interpreter(act);
    }
}
