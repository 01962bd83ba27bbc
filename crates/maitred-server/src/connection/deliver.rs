//! Delivery of handlers' responses, from any thread, under the lock of the slot. Bytes that the socket does not take
//! stay with the writer, and turns send them on.

use std::io::IoSlice;

use maitred_io::clock;
use maitred_io::poller::Interest;
use maitred_io::transport::Moved;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Last, SendError};
use maitred_turns::Signals;

use super::spilling::has_made_room;
use super::stream::Record;
use super::writer::{Sent, last_bytes};
use super::{Connection, Group, Key, Phase, Reach, idle_time};
use crate::connection;
use crate::group::slots::Token;

/// Content up to this size is copied behind its head: a call with several buffers costs more than the copy, at 10 KiB
/// by some per cent of the whole request.
const MAX_COPIED: usize = 16 * 1024;

/// Appends small content to `before`. Returns whether the content was small.
fn copy_small(before: &mut Vec<u8>, content: &Last<'_>, behind: &[u8]) -> bool {
    let small = last_bytes(content).filter(|bytes| bytes.len() <= MAX_COPIED);
    if let Some(bytes) = small {
        before.extend_from_slice(bytes);
        before.extend_from_slice(behind);
    }
    small.is_some()
}

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
        if self.is_dead() {
            self.lose();
            return Err(SendError::Closed);
        }
        self.begin_response(key);
        if self.shaper.is_some() {
            self.queue(before, content, behind);
            return self.send_kept(group, token);
        }
        if self.writer.is_none() && copy_small(before, &content, behind) {
            return self.send_or_keep(group, token, before);
        }
        match last_bytes(&content) {
            Some(bytes) if self.writer.is_none() => {
                let parts = [IoSlice::new(before), IoSlice::new(bytes), IoSlice::new(behind)];
                let done = match self.transport.send_all(&parts, false) {
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
                let writer = self.writer.get_or_insert_with(connection::spare_writer);
                writer.push(std::mem::take(before).into(), left(0).min(before_length as u64));
                writer.push(content.keep(), left(before_length).min(length as u64));
                writer.push(Content::Static(behind), left(before_length + length));
                if done == 0 {
                    self.put_off(group, token);
                    return Ok(self.flow(group));
                }
            }
            _ => self.queue(before, content, behind),
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
        if self.is_dead() {
            return Err(SendError::Closed);
        }
        if self.writer.is_some() || interim.is_empty() {
            return Ok(());
        }
        self.writer_push(interim);
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
        if self.is_dead() {
            self.lose();
            return Err(SendError::Closed);
        }
        self.begin_response(key);
        self.queue(before, content, behind);
        Ok(Flow::Ready)
    }

    /// Queues the whole part at the writer.
    fn queue(&mut self, before: &mut Vec<u8>, content: Last<'_>, behind: &'static [u8]) {
        if copy_small(before, &content, behind) {
            return self.writer_push(before);
        }
        self.writer_push(before);
        let writer = self.writer.get_or_insert_with(connection::spare_writer);
        writer.push(content.keep(), 0);
        writer.push(Content::Static(behind), 0);
    }

    /// Releases the writer after the last byte has left.
    pub(super) fn drop_writer(&mut self, group: &Group) {
        if let Some(mut writer) = self.writer.take() {
            if !writer.records.is_empty() {
                let now = group.site.later(writer.records[0].times.done);
                group.site.note_all(&mut writer.records, now, None);
            }
            connection::recycle_writer(writer);
        }
    }

    /// Drops the queued bytes of a peer that is gone.
    pub(crate) fn lose_writer(&mut self, group: &Group) {
        if let Some(mut writer) = self.writer.take() {
            self.reach = Reach::Lost;
            group.site.note_all(&mut writer.records, clock::monotonic(), Some(self.ended_as));
        }
    }

    /// Keeps the record of a response whose last byte has not left yet.
    pub(crate) fn keep_record(&mut self, record: &mut Option<Record>) {
        if let Some(writer) = &mut self.writer {
            writer.records.extend(record.take());
        }
    }

    fn flow(&self, group: &Group) -> Flow {
        if self.is_writer_full(group) { Flow::Full } else { Flow::Ready }
    }

    fn writer_push(&mut self, bytes: &mut Vec<u8>) {
        self.writer.get_or_insert_with(connection::spare_writer).push_all(bytes);
    }

    fn send_or_keep(&mut self, group: &Group, token: Token, bytes: &mut Vec<u8>) -> Result<Flow, SendError> {
        if bytes.is_empty() {
            return Ok(Flow::Ready);
        }
        match self.transport.send(bytes, false) {
            Moved::Bytes(count) if count == bytes.len() => {
                bytes.clear();
                Ok(Flow::Ready)
            }
            Moved::Bytes(count) => {
                bytes.drain(..count);
                self.writer_push(bytes);
                self.send_kept(group, token)
            }
            Moved::Blocked => {
                self.writer_push(bytes);
                self.put_off(group, token);
                Ok(self.flow(group))
            }
            Moved::End | Moved::Failed(_) => self.fail_sending(group),
        }
    }

    pub(super) fn send_kept(&mut self, group: &Group, token: Token) -> Result<Flow, SendError> {
        let Some(writer) = &self.writer else { return Ok(Flow::Ready) };
        if writer.is_blocked() {
            // With small blocks and a slow reader each block would cause an attempt; an attempt with a part of a file
            // reads that part first.
            self.note_waiting(group, token);
            return Ok(self.flow(group));
        }
        let before = writer.marks();
        let sent = self.send_writer(group);
        let now = self.writer.as_ref().map_or(before, |writer| writer.marks());
        if has_made_room(&group.site, before, now) {
            self.tell();
        }
        match sent {
            Sent::All => {
                self.drop_writer(group);
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
                self.note_broken(group, &error);
                self.fail_sending(group)
            }
        }
    }

    /// Logs a failed send. After a file that became shorter, the open files of the routes are forgotten.
    pub(super) fn note_broken(&self, group: &Group, error: &std::io::Error) {
        group.site.log.info(format_args!("{}: sending: {error}", self.peer));
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            group.site.hosts.all().iter().for_each(|host| host.routes().forget_open_files());
        }
    }

    /// Restarts the send timeout at the last byte that has left.
    fn put_off(&mut self, group: &Group, token: Token) {
        self.note_waiting(group, token);
        self.await_reader(group, token, None);
    }

    fn fail_sending(&mut self, group: &Group) -> Result<Flow, SendError> {
        self.lose();
        self.lose_writer(group);
        self.tell_gone();
        Err(SendError::Closed)
    }

    /// Notes that queued bytes are lost.
    pub(super) fn lose(&mut self) {
        self.reach = Reach::Lost;
    }

    /// Whether sending is impossible.
    pub(crate) fn is_dead(&self) -> bool {
        self.reach != Reach::Open
    }

    /// The end of a response whose queued bytes are lost; none if no bytes are lost.
    pub(crate) fn lost_as(&self) -> Option<End> {
        (self.reach == Reach::Lost).then_some(self.ended_as)
    }

    /// Ends an exchange for an operator: the next turn closes a connection of HTTP/1, and a stream with frames is
    /// reset.
    pub(crate) fn end_by_operator(&mut self, group: &Group, key: Key) {
        if key.stream != 0 {
            return self.reset_stream(group, key, End::Operator);
        }
        self.ended_as = End::Operator;
        group.scheduler.make_ready(key.token.to_u64(), Signals::CLOSED);
    }

    /// Ends the exchange of a handler that finished its response at `now`. `reusable` says whether another request
    /// may follow.
    pub(crate) fn end_exchange(&mut self, group: &Group, Key { token, .. }: Key, reusable: bool, now: u64) {
        self.served = self.served.saturating_add(1);
        self.last |= !reusable;
        self.end_stream();
        self.phase = Phase::Sending;
        if self.is_dead() || (self.last && self.writer.is_none()) {
            group.resume(token);
            return;
        }
        if self.writer.is_none() {
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
        if self.phase != Phase::Sending || self.writer.is_none() {
            return;
        }
        let sent = self.send_kept(group, token);
        if sent.is_err() || (self.last && self.writer.is_none()) {
            group.resume(token);
        } else if self.writer.is_none() {
            self.listen_on(group, token, now);
        }
    }

    /// Waits for the next request after everything has left.
    fn listen_on(&mut self, group: &Group, token: Token, now: u64) {
        self.phase = Phase::Receiving;
        if self.watched == Interest::Write {
            self.listen_again(group, token);
            // The new edge reports unread bytes. If the descriptor could not be armed, no edge comes.
            self.unread = self.watched == Interest::Write;
        }
        self.deadline = now + idle_time(group);
        self.arm(group, token);
        if self.unread || !self.input.is_empty() || self.stream.is_some() {
            group.resume(token);
        }
    }
}
