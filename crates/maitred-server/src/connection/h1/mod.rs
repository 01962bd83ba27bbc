//! HTTP/1 on a connection: one exchange at a time, in the order of the requests.
//!
//! ```text
//!            a request is complete                 the handler has answered
//! Receiving -----------------------> Running ---------------------------> Receiving
//!     |  ^                                                                 |   |
//!     |  `--------------- everything has left ----- Sending <--------------'   |
//!     |  answered by the engine, the reader is slow --^ |                      |
//!     `--refused---------------------> Lingering <------'-- last response -----'
//! ```
//! Leaves out: the format of HTTP/1 (maitred-h1).

mod live;
mod receive;
mod send;
mod websocket;

use maitred_exchange::{Awaited, Keeping, OwnLimits, Received, Response, Site, Stream, Writer};
use maitred_h1::{HeadFacts, Receiver, Sender};
use maitred_http::{Method, RequestHead};
use maitred_log::End;
use maitred_runtime::{Flow, SendError};

use super::carrier::{Carrier, Ended, Ending, ResponsePart};
use super::framed::{Framed, go_over};
use super::responder::Encoder;
use super::sending::peer_gone;
use super::wire::{Phase, Wire};
use super::{Context, Group, Key, NEVER, Turn};
use crate::group::slots::Token;

/// See the module text.
#[derive(Default)]
pub(crate) struct H1 {
    receiver: Receiver,
    /// The exchange under way; none between requests.
    pub(super) stream: Option<Box<Stream>>,
}

impl H1 {
    /// The connection in HTTP/2, if the peer goes over to it.
    pub(super) fn take_next(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Option<Box<Framed>> {
        wire.goes_over.then(|| match self.stream.take() {
            Some(stream) => go_over(wire, context, stream),
            None => Framed::new(&context.group.site),
        })
    }

    /// Whether no incomplete request has been received.
    pub(super) fn is_between_requests(&self) -> bool {
        self.receiver.is_between_requests()
    }
}

impl Carrier for H1 {
    const KEEPS_INTERPRETER: bool = false;

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.stream.as_deref().into_iter()
    }

    fn each_stream(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.stream.as_deref_mut().into_iter()
    }

    fn stream_of(&mut self, key: Key) -> Option<&mut Stream> {
        self.stream.as_deref_mut().filter(|stream| stream.is_answered_by(key.stream))
    }

    fn put(&mut self, stream: Box<Stream>) {
        self.stream = Some(stream);
    }

    fn take_stream(&mut self, key: Key) -> Option<Box<Stream>> {
        self.stream.take_if(|stream| stream.is_answered_by(key.stream))
    }

    fn shown_number(&self, _: u32) -> u32 {
        0
    }

    fn writers<'a>(&'a mut self, wire: &'a mut Wire) -> impl Iterator<Item = &'a mut Writer> {
        wire.writer.as_deref_mut().into_iter()
    }

    fn writer_of<'a>(&'a mut self, wire: &'a mut Wire, _: Key) -> Option<&'a mut Writer> {
        wire.writer.as_deref_mut()
    }

    fn is_idle(&self, wire: &Wire) -> bool {
        wire.phase == Phase::Receiving && self.stream.is_none() && wire.input.is_empty()
    }

    fn gathered(&self) -> u64 {
        0
    }

    fn memory_of_one(&self) -> u64 {
        0
    }

    fn send_own(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        response: Response,
    ) -> Received {
        send::own(wire, context, stream, response)
    }

    fn send_part(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
    ) -> Result<Flow, SendError> {
        if part.interim {
            return self.deliver_interim(wire, group, key, part.before);
        }
        self.deliver(wire, group, key, (part.before, part.content, part.behind))
    }

    fn send_last(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
        ending: Ending<'_>,
    ) -> Ended {
        self.deliver_last(wire, group, key, part, ending)
    }

    fn answer_late(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        awaited: Awaited,
    ) -> Option<Turn> {
        let ran = (stream.flags().begun(), stream.flags().awaited());
        Stream::give_back(stream);
        Some(self.answer_in_its_place(wire, context, awaited, ran))
    }

    fn begin_run(
        &mut self,
        wire: &mut Wire,
        context: &Context<'_>,
        stream: &Stream,
        head: &RequestHead,
    ) -> Encoder {
        wire.phase = Phase::Running;
        let keep_alive = stream.facts.is_some_and(|facts| facts.keep_alive) && !context.group.is_draining();
        Encoder::H1(Sender::new(head.version, head.method == Method::Head, keep_alive))
    }

    fn drop_rest(&mut self, wire: &mut Wire, context: &Context<'_>, facts: HeadFacts) {
        let mut rest = wire.begin_stream(context.now);
        (rest.facts, rest.keeping) = (Some(facts), Keeping::Dropped(0));
        self.stream = Some(rest);
    }

    fn credit(&mut self, _: u32, _: u64) {
        // The kernel tells the peer how much it may send.
    }

    fn limit_response(&mut self, wire: &mut Wire, _: Key, own: OwnLimits) {
        own.set(&mut wire.shaper, &mut wire.send_timeout);
    }

    fn send_socket_frames(&mut self, wire: &mut Wire, group: &Group, key: Key) -> Result<(), SendError> {
        self.send_replies(wire, group, key)
    }

    fn end_responses(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        _: &[u32],
        end: End,
    ) -> Option<Turn> {
        wire.ended_as = end;
        Some(peer_gone(self, wire, context))
    }

    fn is_full(&self, wire: &Wire, group: &Group, _: Key) -> bool {
        self.is_writer_full(wire, group)
    }

    fn is_writer_full(&self, wire: &Wire, group: &Group) -> bool {
        let pool = || self.stream.as_ref().map(|stream| stream.pool());
        wire.is_full(group, || pool().is_some_and(|pool| group.is_on_loop(pool)))
    }

    fn resumes_at(&self) -> u64 {
        NEVER
    }

    fn longest_send_timeout(&self, _: &Site) -> u32 {
        0
    }

    fn go_on_with_body(&mut self, wire: &mut Wire, group: &Group, token: Token) {
        self.go_on_with_live_body(wire, group, token);
    }

    fn drop_answered(&mut self, _: &Wire, _: &Group) {
        // The records of answered requests are with the writer.
    }
}
