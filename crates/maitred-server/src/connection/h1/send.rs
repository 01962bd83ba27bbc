//! Sending over HTTP/1: responses of handlers, from any thread, under the lock of the slot, and those of the engine. Bytes
//! that the socket does not take stay with the writer, and turns send them on.

use std::io::IoSlice;

use maitred_exchange::{Awaited, Kept, Received, Record, Response, Stream, last_bytes, spare_writer};
use maitred_files::Body;
use maitred_h1::{HeadError, Sender};
use maitred_http::Method;
use maitred_io::clock;
use maitred_io::poller::Interest;
use maitred_io::transport::Moved;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Last, SendError};
use maitred_stats::Times;

use super::H1;
use crate::connection::carrier::{Carrier, Ended, Ending, ResponsePart};
use crate::connection::held::idle_time;
use crate::connection::sending::{arm, fail_sending, flow, flush, put_off, send_kept};
use crate::connection::spilling::{note_sender, relieve_later};
use crate::connection::wire::{Phase, Wire, copy_small};
use crate::connection::{Context, Group, Key, Turn};
use crate::group::slots::Token;
use maitred_exchange::stages::late_response;

/// Content up to this size is copied behind its head and leaves in the same write; above it the copy costs more than a
/// second segment.
const MAX_COPIED: u64 = 16 * 1024;

impl H1 {
    /// Sends a part of a handler's response: `head` and the bytes before the content, the content, the bytes behind
    /// it. One write where the socket takes everything; the rest stays with the writer.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn deliver(
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
    pub(super) fn deliver_interim(
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

    /// Sends the last part of a response, or keeps it for [`send_what_waits`](Self::send_what_waits), and ends the exchange.
    pub(super) fn deliver_last(
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
        // Otherwise the next edge, the deadline, or `send_last` goes on.
    }

    /// Sends the response that [`deliver_last`](Self::deliver_last) has kept, if no turn has done so meanwhile.
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

/// Sends a response of the engine to a request that no handler has.
pub(super) fn own(
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    response: Response,
) -> Received {
    let (version, is_head) = (stream.request.head.version, stream.request.head.method == Method::Head);
    let (status, refused) = (response.head.status, response.refused);
    let body_bytes = response.body_bytes(is_head);
    let wishes = stream.facts.is_some_and(|facts| facts.keep_alive);
    let keep_alive = response.keep_alive && wishes && !context.group.is_draining();
    let sender = Sender::new(version, is_head, keep_alive);
    let Ok(reusable) = write_own(wire, context, sender, response) else {
        return Received::Ended(Turn::Close);
    };
    let mut times = Times { begun: context.now, ..stream.times };
    if refused {
        // For a request refused before its last byte, the peer's time ends with the last byte read.
        times.complete = times.complete.max(wire.received);
    }
    context.scratch.records.push(Record {
        number: stream.request.number,
        peer: wire.client_of(&stream).peer,
        listener: wire.listener.into(),
        pool: None,
        status,
        body_bytes,
        times,
        end: End::Complete,
        refused,
        trace: None,
        route: None,
        request: Kept::Request(stream.into_request()),
    });
    if reusable {
        return Received::Answered;
    }
    wire.last = true;
    wire.unread |= refused;
    wire.phase = Phase::Sending;
    Received::Ended(Turn::Wait)
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
