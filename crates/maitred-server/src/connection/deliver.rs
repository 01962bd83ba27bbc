//! Delivery of handlers' responses, from any thread, under the lock of the slot. Bytes that the socket does not take
//! stay with the writer, and turns send them on.

use std::io::IoSlice;

use maitred_io::poller::Interest;
use maitred_io::transport::Moved;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Last, SendError};
use maitred_turns::Signals;

use super::spilling::has_made_room;
use super::writer::{Sent, last_bytes};
use super::{Connection, Group, Key, Phase, idle_time};
use super::wire::copy_small;
use crate::connection;
use crate::group::slots::Token;

impl Connection {
    /// Sends a part of a handler's response: `head` and the bytes before the content, the content, the bytes behind
    /// it. One write where the socket takes everything; the rest stays with the writer.
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn deliver(
        &mut self,
        group: &Group,
        key: Key,
        before: &mut Vec<u8>,
        content: Last<'_>,
        behind: &'static [u8],
    ) -> Result<Flow, SendError> {
        let token = key.token;
        if self.wire.is_dead() {
            self.wire.lose();
            return Err(SendError::Closed);
        }
        self.begin_response(key);
        if self.wire.shaper.is_some() {
            self.wire.queue(before, content, behind);
            return self.send_kept(group, token);
        }
        if self.wire.writer.is_none() && copy_small(before, &content, behind) {
            return self.send_or_keep(group, token, before);
        }
        match last_bytes(&content) {
            Some(bytes) if self.wire.writer.is_none() => {
                let parts = [IoSlice::new(before), IoSlice::new(bytes), IoSlice::new(behind)];
                let done = match self.wire.transport.send_all(&parts, false) {
                    Moved::Bytes(count) => count,
                    Moved::Blocked => 0,
                    Moved::End | Moved::Failed(_) => return self.fail_sending(group),
                };
                let (before_length, length) = (before.len(), bytes.len());
                if done == before_length + length + behind.len() {
                    before.clear();
                    return Ok(Flow::Ready);
                }
                let left = |earlier: usize| done.saturating_sub(earlier) as u64;
                let writer = self.wire.writer.get_or_insert_with(connection::spare_writer);
                writer.push(std::mem::take(before).into(), left(0).min(before_length as u64));
                writer.push(content.keep(), left(before_length).min(length as u64));
                writer.push(Content::Static(behind), left(before_length + length));
                if done == 0 {
                    self.put_off(group, token);
                    return Ok(self.flow(group));
                }
            }
            _ => self.wire.queue(before, content, behind),
        }
        self.send_kept(group, token)
    }

    /// Sends an interim response, or drops it if an earlier one still waits. The time limit of the request goes on.
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn deliver_interim(
        &mut self,
        group: &Group,
        Key { token, .. }: Key,
        interim: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        if self.wire.is_dead() {
            return Err(SendError::Closed);
        }
        if self.wire.writer.is_some() || interim.is_empty() {
            return Ok(());
        }
        self.wire.writer_push(interim);
        self.send_kept(group, token).map(drop)
    }

    /// Keeps the last part of a response for [`send_what_waits`](Self::send_what_waits).
    ///
    /// # Errors
    /// The peer is gone.
    pub(crate) fn keep_last(
        &mut self,
        key: Key,
        before: &mut Vec<u8>,
        content: Last<'_>,
        behind: &'static [u8],
    ) -> Result<Flow, SendError> {
        if self.wire.is_dead() {
            self.wire.lose();
            return Err(SendError::Closed);
        }
        self.begin_response(key);
        self.wire.queue(before, content, behind);
        Ok(Flow::Ready)
    }

    fn flow(&self, group: &Group) -> Flow {
        if self.is_writer_full(group) { Flow::Full } else { Flow::Ready }
    }

    fn send_or_keep(&mut self, group: &Group, token: Token, bytes: &mut Vec<u8>) -> Result<Flow, SendError> {
        if bytes.is_empty() {
            return Ok(Flow::Ready);
        }
        match self.wire.transport.send(bytes, false) {
            Moved::Bytes(count) if count == bytes.len() => {
                bytes.clear();
                Ok(Flow::Ready)
            }
            Moved::Bytes(count) => {
                bytes.drain(..count);
                self.wire.writer_push(bytes);
                self.send_kept(group, token)
            }
            Moved::Blocked => {
                self.wire.writer_push(bytes);
                self.put_off(group, token);
                Ok(self.flow(group))
            }
            Moved::End | Moved::Failed(_) => self.fail_sending(group),
        }
    }

    pub(super) fn send_kept(&mut self, group: &Group, token: Token) -> Result<Flow, SendError> {
        let Some(writer) = &self.wire.writer else { return Ok(Flow::Ready) };
        if writer.is_blocked() {
            // With small blocks and a slow reader each block would cause an attempt; an attempt with a part of a file
            // reads that part first.
            self.note_waiting(group, token);
            return Ok(self.flow(group));
        }
        let before = writer.marks();
        let sent = self.wire.send_writer(group);
        let now = self.wire.writer.as_ref().map_or(before, |writer| writer.marks());
        if has_made_room(&group.site, before, now) {
            self.tell();
        }
        match sent {
            Sent::All => {
                self.wire.drop_writer(group);
                self.go_on_with_body(group, token);
                Ok(Flow::Ready)
            }
            Sent::Held => {
                self.hold(group, token);
                Ok(self.flow(group))
            }
            Sent::Blocked => {
                self.put_off(group, token);
                Ok(self.flow(group))
            }
            Sent::Budget => {
                self.put_off(group, token);
                group.resume(token);
                Ok(self.flow(group))
            }
            Sent::Broken(error) => {
                self.wire.note_broken(group, &error);
                self.fail_sending(group)
            }
        }
    }

    /// Restarts the send timeout at the last byte that has left.
    fn put_off(&mut self, group: &Group, token: Token) {
        self.note_waiting(group, token);
        self.await_reader(group, token, None);
    }

    fn fail_sending(&mut self, group: &Group) -> Result<Flow, SendError> {
        self.wire.lose();
        self.wire.lose_writer(group);
        self.tell_gone();
        Err(SendError::Closed)
    }

    /// Ends an exchange for an operator: the next turn closes a connection of HTTP/1, and a stream with frames is
    /// reset.
    pub(crate) fn end_by_operator(&mut self, group: &Group, key: Key) {
        if key.stream != 0 {
            return self.reset_stream(group, key, End::Operator);
        }
        self.wire.ended_as = End::Operator;
        group.scheduler.make_ready(key.token.to_u64(), Signals::CLOSED);
    }

    /// Ends the exchange of a handler that finished its response at `now`. `reusable` says whether another request
    /// may follow.
    pub(crate) fn end_exchange(&mut self, group: &Group, Key { token, .. }: Key, reusable: bool, now: u64) {
        self.wire.served = self.wire.served.saturating_add(1);
        self.wire.last |= !reusable;
        self.end_stream();
        self.wire.phase = Phase::Sending;
        if self.wire.is_dead() || (self.wire.last && self.wire.writer.is_none()) {
            group.resume(token);
            return;
        }
        if self.wire.writer.is_none() {
            self.listen_on(group, token, now);
        }
        self.relieve_later(group, token);
        // Otherwise the next edge, the deadline, or `send_last` goes on.
    }

    /// Sends the response that [`keep_last`](Self::keep_last) has kept, if no turn has done so meanwhile.
    pub(crate) fn send_what_waits(&mut self, group: &Group, token: Token, now: u64) {
        if self.protocol.is_framed() {
            if self.fill_to_the_end(group, token).is_err() {
                group.resume(token);
            }
            return;
        }
        if self.wire.phase != Phase::Sending || self.wire.writer.is_none() {
            return;
        }
        let sent = self.send_kept(group, token);
        if sent.is_err() || (self.wire.last && self.wire.writer.is_none()) {
            group.resume(token);
        } else if self.wire.writer.is_none() {
            self.listen_on(group, token, now);
        }
    }

    /// Waits for the next request after everything has left.
    fn listen_on(&mut self, group: &Group, token: Token, now: u64) {
        self.wire.phase = Phase::Receiving;
        if self.wire.watched == Interest::Write {
            self.wire.listen_again(group, token);
            // The new edge reports unread bytes. If the descriptor could not be armed, no edge comes.
            self.wire.unread = self.wire.watched == Interest::Write;
        }
        self.wire.deadline = now + idle_time(group);
        self.arm(group, token);
        if self.wire.unread || !self.wire.input.is_empty() || self.stream.is_some() {
            group.resume(token);
        }
    }
}
