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
mod websocket;

use std::io::IoSlice;

use maitred_exchange::stages::late_response;
use maitred_exchange::stream::queue::OwnAnswer;
use maitred_exchange::{
    Awaited, Keeping, OwnLimits, Received, Response, Site, Stream, Writer, last_bytes, spare_writer,
};
use maitred_files::Body;
use maitred_h1::{HeadError, HeadFacts, Receiver, Sender};
use maitred_http::{Method, RequestHead};
use maitred_io::clock;
use maitred_io::poller::Interest;
use maitred_io::transport::Moved;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Last, SendError};

use super::carrier::{Carrier, Ended, Ending, ResponsePart};
use super::framed::{Framed, go_over};
use super::held::idle_time;
use super::responder::Encoder;
use super::sending::{arm, fail_sending, flow, flush, peer_gone, put_off, send_kept};
use super::spilling::{note_sender, relieve_later};
use super::wire::{Phase, Wire, copy_small};
use super::{Context, Group, Key, NEVER, Turn};
use crate::group::slots::Token;

/// Content up to this size is copied behind its head and leaves in the same write; above it the copy costs more than a
/// second segment.
const MAX_COPIED: u64 = 16 * 1024;

/// See the module text.
#[derive(Default)]
pub(crate) struct H1 {
    receiver: Receiver,
    /// The exchange under way; none between requests.
    pub(super) stream: Option<Box<Stream>>,
}

impl H1 {
    /// Goes over to HTTP/2 if handshake, preface or `Upgrade: h2c` have agreed on it: the connection from now on, with the
    /// exchange under way as its first stream.
    pub(super) fn go_over_if_agreed(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Option<Box<Framed>> {
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
        mut stream: Box<Stream>,
        response: Response,
    ) -> Received {
        let is_head = stream.request.head.method == Method::Head;
        let refused = response.refused;
        let wishes = stream.facts.is_some_and(|facts| facts.keep_alive);
        let keep_alive = response.keep_alive && wishes && !context.group.is_draining();
        let sender = Sender::new(stream.request.head.version, is_head, keep_alive);
        let ends = (wire.client_of(&stream).peer, wire.listener.into());
        let own = OwnAnswer::of(&response, is_head, ends, context.now);
        let Ok(reusable) = write_own(wire, context, sender, response) else {
            return Received::Ended(Turn::Close);
        };
        if refused {
            // For a request refused before its last byte, the peer's time ends with the last byte read.
            stream.times.complete = stream.times.complete.max(wire.received);
        }
        context.scratch.records.push(own.record(stream));
        if reusable {
            return Received::Answered;
        }
        wire.last = true;
        wire.unread |= refused;
        wire.phase = Phase::Sending;
        Received::Ended(Turn::Wait)
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
        Ending { reusable, defers, record, label, .. }: Ending<'_>,
    ) -> Ended {
        let sent = if part.is_empty() {
            Ok(Flow::Ready)
        } else if !defers {
            self.send_part(wire, group, key, part)
        } else if wire.is_dead() {
            wire.lose();
            Err(SendError::Closed)
        } else {
            self.begin_response(key);
            wire.queue(part.before, part.content, part.behind);
            Ok(Flow::Ready)
        };
        note_sender(self, wire, key, label);
        let at = clock::monotonic();
        // Read at this point: the behaviour of a peer that has everything is no part of the exchange.
        let lost = wire.lost_as();
        self.end_exchange(wire, group, key, reusable, at);
        wire.keep_record(record);
        Ended { sent: sent.map(drop), lost, at }
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

// ---- Sending: responses of handlers, from any thread, under the lock of the slot, and those of the engine ----
//
// Bytes that the socket does not take stay with the writer, and turns send them on.

impl H1 {
    /// Sends a part of a handler's response: `head` and the bytes before the content, the content, the bytes behind
    /// it. One write where the socket takes everything; the rest stays with the writer.
    ///
    /// # Errors
    /// The peer is gone.
    fn deliver(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        (before, content, behind): (&mut Vec<u8>, Last<'_>, &'static [u8]),
    ) -> Result<Flow, SendError> {
        let token = key.token;
        if wire.is_dead() {
            wire.lose();
            return Err(SendError::Closed);
        }
        self.begin_response(key);
        if wire.shaper.is_some() {
            wire.queue(before, content, behind);
            return send_kept(self, wire, group, token);
        }
        if wire.writer.is_none() && copy_small(before, &content, behind) {
            return self.send_or_keep(wire, group, token, before);
        }
        match last_bytes(&content) {
            Some(bytes) if wire.writer.is_none() => {
                let parts = [IoSlice::new(before), IoSlice::new(bytes), IoSlice::new(behind)];
                let done = match wire.transport.send_all(&parts, false) {
                    Moved::Bytes(count) => count,
                    Moved::Blocked => 0,
                    Moved::End | Moved::Failed(_) => return fail_sending(self, wire, group),
                };
                let (before_length, length) = (before.len(), bytes.len());
                if done == before_length + length + behind.len() {
                    before.clear();
                    return Ok(Flow::Ready);
                }
                let left = |earlier: usize| done.saturating_sub(earlier) as u64;
                let writer = wire.writer.get_or_insert_with(spare_writer);
                writer.push(std::mem::take(before).into(), left(0).min(before_length as u64));
                writer.push(content.keep(), left(before_length).min(length as u64));
                writer.push(Content::Static(behind), left(before_length + length));
                if done == 0 {
                    put_off(self, wire, group, token);
                    return Ok(flow(self, wire, group));
                }
            }
            _ => wire.queue(before, content, behind),
        }
        send_kept(self, wire, group, token)
    }

    /// Sends an interim response, or drops it if an earlier one still waits. The time limit of the request goes on.
    ///
    /// # Errors
    /// The peer is gone.
    fn deliver_interim(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        Key { token, .. }: Key,
        interim: &mut Vec<u8>,
    ) -> Result<Flow, SendError> {
        if wire.is_dead() {
            return Err(SendError::Closed);
        }
        if wire.writer.is_some() || interim.is_empty() {
            return Ok(Flow::Ready);
        }
        wire.writer_push(interim);
        send_kept(self, wire, group, token)
    }

    fn send_or_keep(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        token: Token,
        bytes: &mut Vec<u8>,
    ) -> Result<Flow, SendError> {
        if bytes.is_empty() {
            return Ok(Flow::Ready);
        }
        match wire.transport.send(bytes, false) {
            Moved::Bytes(count) if count == bytes.len() => {
                bytes.clear();
                Ok(Flow::Ready)
            }
            Moved::Bytes(count) => {
                bytes.drain(..count);
                wire.writer_push(bytes);
                send_kept(self, wire, group, token)
            }
            Moved::Blocked => {
                wire.writer_push(bytes);
                put_off(self, wire, group, token);
                Ok(flow(self, wire, group))
            }
            Moved::End | Moved::Failed(_) => fail_sending(self, wire, group),
        }
    }

    /// Ends the exchange of a handler that finished its response at `now`. `reusable` says whether another request
    /// may follow.
    fn end_exchange(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        Key { token, .. }: Key,
        reusable: bool,
        now: u64,
    ) {
        wire.served = wire.served.saturating_add(1);
        wire.last |= !reusable;
        self.end_stream(wire);
        wire.phase = Phase::Sending;
        if wire.is_dead() || (wire.last && wire.writer.is_none()) {
            group.resume(token);
            return;
        }
        if wire.writer.is_none() {
            self.listen_on(wire, group, token, now);
        }
        relieve_later(self, wire, group, token);
        // Otherwise the next edge, the deadline, or `send_what_waits` goes on.
    }

    /// Sends the response that [`send_last`](Carrier::send_last) has kept, if no turn has done so meanwhile.
    pub(in crate::connection) fn send_what_waits(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        token: Token,
        now: u64,
    ) {
        if wire.phase != Phase::Sending || wire.writer.is_none() {
            return;
        }
        let sent = send_kept(self, wire, group, token);
        if sent.is_err() || (wire.last && wire.writer.is_none()) {
            group.resume(token);
        } else if wire.writer.is_none() {
            self.listen_on(wire, group, token, now);
        }
    }

    /// Waits for the next request after everything has left.
    fn listen_on(&mut self, wire: &mut Wire, group: &Group, token: Token, now: u64) {
        wire.phase = Phase::Receiving;
        if wire.watched == Interest::Write {
            wire.listen_again(group, token);
            // The new edge reports unread bytes. If the descriptor could not be armed, no edge comes.
            wire.unread = wire.watched == Interest::Write;
        }
        wire.deadline = now + idle_time(group);
        arm(self, wire, group, token);
        if wire.unread || !wire.input.is_empty() || self.stream.is_some() {
            group.resume(token);
        }
    }

    /// Sends the response of the engine as the last one of the connection.
    pub(in crate::connection) fn answer_in_its_place(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        awaited: Awaited,
        ran: (Option<u64>, u64),
    ) -> Turn {
        let site = &context.group.site;
        let response = late_response(&context.group.site, &awaited);
        let (version, is_head) = (awaited.head.version, awaited.head.method == Method::Head);
        let record = awaited.into_record(
            &context.group.site,
            context.now,
            wire.listener.into(),
            response.body_bytes(is_head),
            ran,
        );
        if write_own(wire, context, Sender::new(version, is_head, false), response).is_err() {
            return Turn::Close;
        }
        context.scratch.records.push(record);
        wire.served = wire.served.saturating_add(1);
        wire.last = true;
        wire.unread = true;
        wire.phase = Phase::Sending;
        if wire.is_dead() {
            context.scratch.out.clear();
            site.note_all(&mut context.scratch.records, context.now, Some(wire.ended_as));
            return Turn::Close;
        }
        match flush(self, wire, context) {
            Turn::Wait if wire.writer.is_none() => wire.end_gently(context, self.is_between_requests()),
            turn => turn,
        }
    }
}

/// Writes a response of the engine in HTTP/1. Returns whether another one may follow.
///
/// # Errors
/// The head cannot be sent: a fault of the engine, which is in the log.
fn write_own(
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut sender: Sender,
    response: Response,
) -> Result<bool, HeadError> {
    let date = *context.scratch.date();
    let out = &mut context.scratch.out;
    if let Err(error) = sender.send_head(&response.head, Some(response.length), &date, out) {
        let log = &context.group.site.log;
        log.error(format_args!("internal error, please report it: a response head of ours: {error}"));
        return Err(error);
    }
    match response.body {
        Body::Empty => {}
        Body::One(content) => emit(wire, context, &mut sender, content),
        Body::Many(parts) => parts.into_iter().for_each(|part| emit(wire, context, &mut sender, part)),
    }
    Ok(sender.finish(None, &mut context.scratch.out).reusable)
}

fn emit(wire: &mut Wire, context: &mut Context<'_>, sender: &mut Sender, content: Content) {
    let out = &mut context.scratch.out;
    if sender.send_data(content.len(), out).allowed == 0 {
        return;
    }
    match content.bytes() {
        Some(bytes) if content.len() <= MAX_COPIED => out.extend_from_slice(bytes),
        _ => {
            let writer = wire.writer.get_or_insert_with(spare_writer);
            writer.push(std::mem::take(out).into(), 0);
            writer.push(content, 0);
        }
    }
}
