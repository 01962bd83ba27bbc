//! The wire of a connection: transport, received bytes, queued bytes, limits and the timer, and the facts of the peer.
//!
//! Promises: a function here never waits, and knows no exchange. The deadlines of exchanges come as an argument of
//! [`arm`](Wire::arm). Other parts of the wire: its ends (`client.rs` of maitred-exchange), PROXY header, handshake, rate limits
//! (`shaped.rs`), and the end (`linger.rs`).

use std::io;
use std::sync::Arc;

use maitred_exchange::{Ends, Record, Stream, Writer, last_bytes, recycle_writer, spare_writer};
use maitred_http::{Peer, TlsSession};
use maitred_io::clock;
use maitred_io::poller::Interest;
use maitred_io::sync::atomic::Ordering;
use maitred_io::transport::{Moved, Transport};
use maitred_limits::Shaper;
use maitred_limits::minimum::RateWatch;
use maitred_log::End;
use maitred_runtime::{Content, Endpoint, Last, Local};

use super::{Context, Group, NEVER, Turn};
use crate::group::slots::Token;
use maitred_exchange::client::Client;

/// Calls of recv in one turn before other connections get theirs: 16 × 64 KiB take about 300 µs.
pub(super) const MAX_RECEIVES_A_TURN: usize = 16;

/// Bytes of a usual request without a body.
const AHEAD: usize = 4096;

/// Content up to this size is copied behind its head: a call with several buffers costs more than the copy, at 10 KiB
/// by some per cent of the whole request.
const MAX_COPIED: usize = 16 * 1024;

/// Largest error of a receipt time that was estimated instead of asked from the kernel, in nanoseconds: the precision
/// that the documents promise for short spans. Asking the kernel costs a fortieth of a small request.
const MAX_ERROR: u64 = 200_000;

/// Unit of [`emptied`](Wire), in nanoseconds: a small connection is worth more than a precision below four
/// microseconds.
const STEP: u64 = 4096;

/// See the module text.
pub(crate) struct Wire {
    pub(super) transport: Transport,
    pub(super) peer: Peer,
    /// Facts about both ends beside the address: PROXY header, TLS, socket.
    pub(super) ends: Option<Box<Ends>>,
    /// Number of the listener that accepted the connection, below 65,535.
    pub(super) listener: u16,
    pub(super) phase: Phase,
    /// Time at which the kernel had the last of the received bytes, in monotonic nanoseconds.
    pub(super) received: u64,
    /// Time from `received` to the last moment at which the socket was known to be empty, in [steps](STEP); the
    /// largest value if that is unknown.
    pub(super) emptied: u16,
    /// The kernel stamps received bytes. Without stamps `received` is the time of the read.
    has_receipts: bool,
    /// Bytes received and not consumed; no memory while there are none.
    pub(super) input: Vec<u8>,
    /// Number of exchanges that have begun.
    pub(super) begun: u32,
    /// Bytes queued for the peer; none when the queue is empty.
    pub(super) writer: Option<Box<Writer>>,
    /// Rate limit of the responses, where one applies.
    pub(super) shaper: Option<Box<Shaper>>,
    /// Send timeout of the response being sent, in milliseconds; 0 for the timeout of the site.
    pub(super) send_timeout: u32,
    pub(super) deadline: u64,
    /// Time for which the timer is set. It may be earlier than every deadline of the connection.
    pub(super) armed: u64,
    pub(super) watched: Interest,
    /// Requests answered.
    pub(super) served: u32,
    /// Readiness events that arrived while a request was running.
    pub(super) useless_wakes: u8,
    /// The socket has reported readable bytes, and no read has found it empty since.
    pub(super) unread: bool,
    /// The peer has ended its sending side.
    pub(super) read_closed: bool,
    /// The last measurement found that the peer reads fast.
    pub(super) swift: bool,
    /// Its handlers wait until the kernel has taken all that they send.
    pub(super) direct: bool,
    /// Close when everything has left.
    pub(super) last: bool,
    /// `lingers` counts the granted slices of lingering time; `lingering` says that bytes have arrived in the present
    /// one.
    pub(super) lingers: u8,
    pub(super) lingering: bool,
    /// State of the sending direction.
    pub(super) reach: Reach,
    /// End of the responses that are incomplete when sending becomes impossible; it names the cause.
    pub(super) ended_as: End,
    /// The guard counts this connection for its client.
    pub(super) counted: bool,
    /// The drain does not wait for this connection.
    pub(super) abandoned: bool,
    /// The peer goes over from HTTP/1 to HTTP/2; by `Upgrade: h2c` with the exchange under way.
    pub(super) goes_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Receiving,
    Running,
    Sending,
    Lingering,
}

/// State of the sending direction. It never improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    Open,
    /// Sending is impossible; the connection waits for its handler only.
    Dead,
    /// Sending is impossible, and queued bytes were dropped.
    Lost,
}

impl Wire {
    /// A wire whose peer has sent nothing yet; `direct`: its listener has no writer.
    pub(super) fn new(
        transport: Transport,
        (peer, ends): (Peer, Option<Box<Ends>>),
        listener: u32,
        deadline: u64,
        (has_receipts, direct, counted): (bool, bool, bool),
    ) -> Self {
        Self {
            transport,
            peer,
            ends,
            listener: u16::try_from(listener).unwrap_or(u16::MAX),
            phase: Phase::Receiving,
            received: 0,
            emptied: u16::MAX,
            has_receipts,
            input: Vec::new(),
            begun: 0,
            writer: None,
            shaper: None,
            send_timeout: 0,
            deadline,
            armed: deadline,
            watched: Interest::ReadWrite,
            served: 0,
            useless_wakes: 0,
            unread: false,
            read_closed: false,
            swift: false,
            direct,
            last: false,
            lingers: 0,
            lingering: false,
            reach: Reach::Open,
            ended_as: End::PeerGone,
            counted,
            abandoned: false,
            goes_over: false,
        }
    }

    /// Returns the client of a request, or the peer of the connection before the head is complete.
    pub(super) fn client_of(&self, stream: &Stream) -> Client {
        stream.client.unwrap_or_else(|| Client::at_the_end(self.peer, self.ends.as_deref()))
    }

    /// The TLS session of the connection.
    pub(super) fn session(&self) -> Option<Arc<TlsSession>> {
        self.ends.as_ref().and_then(|ends| ends.session.clone())
    }

    /// Both ends of an exchange as its handler sees them.
    pub(super) fn endpoint(&self, context: &Context<'_>, client: Client) -> Endpoint {
        let mut local = self.local(context.group);
        if let (Local::Ip(address), Some(port)) = (&mut local, client.port) {
            address.set_port(port);
        }
        let process = self.ends.as_ref().and_then(|ends| ends.process);
        Endpoint { peer: client.peer, local, secure: client.secure, process }
    }

    /// The server's address: told by a proxy, otherwise the listener's, unless the listener is bound to all
    /// addresses.
    pub(super) fn local(&self, group: &Group) -> Local {
        if let Some(address) = self.ends.as_ref().and_then(|ends| ends.local) {
            return Local::Ip(address);
        }
        match group.groups.listeners.get(self.listener as usize).map(|listening| listening.local()) {
            Some(Local::Ip(address)) if address.ip().is_unspecified() => {
                Local::Ip(self.transport.local_address().unwrap_or(address))
            }
            Some(local) => local,
            None => Endpoint::default().local,
        }
    }

    /// Sets the timer to the earliest deadline; `other` is that of the exchanges. Most deadlines are put off and never
    /// reached, so a timer that is set to an earlier time stays: the turn of the timer finds then that nothing is due
    /// and sets the timer anew.
    pub(super) fn arm(&mut self, group: &Group, token: Token, other: u64) {
        let due = self.deadline.min(other).min(self.resumes_at());
        if due < self.armed {
            self.armed = due;
            group.set_deadline(token.slot, due);
        }
    }

    /// Sets the deadline of a connection without exchanges.
    pub(super) fn set_deadline(&mut self, context: &Context<'_>, deadline: u64) {
        self.deadline = deadline;
        self.arm(context.group, context.token, NEVER);
    }

    /// Abandons the connection: the drain does not wait for its handler.
    pub(super) fn abandon(&mut self, group: &Group) {
        if !std::mem::replace(&mut self.abandoned, true) {
            group.groups.abandon();
        }
    }

    /// Whether the handler of a streamed response has to wait: the queue exceeds its limit; or the listener has no
    /// writer, so that the handler's thread itself writes; or all responses together exceed the budget and the handler
    /// belongs to an event loop, whose streams are not written to a disk.
    pub(super) fn is_full(&self, group: &Group, on_loop: impl FnOnce() -> bool) -> bool {
        let Some(writer) = &self.writer else { return false };
        let (held, spilling) = (writer.held(), &group.site.spilling);
        self.direct || held > spilling.memory() || (held > 0 && spilling.is_over() && on_loop())
    }

    /// Notes a read of `count` bytes into a buffer of `room` bytes. Returns whether the socket is empty now: only the
    /// end of the stream can follow a short read.
    pub(super) fn note_read(&mut self, count: usize, room: usize) -> bool {
        let empty = count < room && self.transport.empties_by_a_short_read();
        self.unread = !empty || self.read_closed;
        empty
    }

    pub(super) fn watch(&mut self, group: &Group, token: Token, interest: Interest) {
        if self.watched != interest {
            match self.transport.watch_for(&group.scheduler.poller, token.to_u64(), interest) {
                Ok(()) => self.watched = interest,
                Err(error) => group.site.log.error(format_args!("watching a connection: {error}")),
            }
        }
    }

    /// Arms the descriptor again if packets have disarmed it while a request ran. The kernel then reports unread
    /// bytes as a new edge.
    pub(super) fn listen_again(&mut self, group: &Group, token: Token) {
        if self.watched == Interest::Write {
            self.watch(group, token, Interest::ReadWrite);
        }
    }

    /// Packets that arrive while a request runs wake threads in vain: after the second wake the connection stops
    /// watching for reads. The end of the exchange arms the descriptor again.
    pub(super) fn note_wake_while_running(&mut self, context: &Context<'_>) {
        if !self.unread || self.watched == Interest::Write {
            return;
        }
        self.useless_wakes = self.useless_wakes.saturating_add(1);
        if self.useless_wakes >= 2 {
            self.watch(context.group, context.token, Interest::Write);
        }
    }

    /// Reads the first bytes of a new connection if they have arrived, and returns whether there were some. Used with
    /// several processes: the kill of a process loses the requests that it has accepted and not read, although any
    /// other process could have run them.
    pub(super) fn read_ahead(&mut self, group: &Group) -> bool {
        let is_new = self.phase == Phase::Receiving && self.begun == 0 && self.input.is_empty();
        if !is_new || !matches!(self.transport, Transport::Plain(_)) || self.awaits_proxy_header() {
            return false;
        }
        let mut buffer = [0; AHEAD];
        let now = clock::monotonic();
        let (moved, stamp) = if group.site.measures.receipt.load(Ordering::Relaxed) {
            self.transport.receive_with_receipt(&mut buffer)
        } else {
            (self.transport.receive(&mut buffer), None)
        };
        let Moved::Bytes(count) = moved else { return false };
        self.received = stamp.map_or(now, |stamp| stamp.saturating_sub(clock::real_ahead()).min(now));
        self.unread = count == buffer.len();
        self.input.extend_from_slice(&buffer[..count]);
        true
    }

    /// Receives bytes, and notes the time at which the kernel had them. Bytes that come soon after the socket was
    /// empty need no stamp of the kernel.
    pub(super) fn receive_some(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Moved {
        let wanted = context.group.site.measures.receipt.load(Ordering::Relaxed);
        if wanted != self.has_receipts {
            // No effect where the kernel has no such stamps.
            self.transport.set_receipts(wanted);
            self.has_receipts = wanted;
        }
        let empty = (self.emptied < u16::MAX).then(|| self.received + u64::from(self.emptied) * STEP);
        self.received = context.now;
        self.emptied = u16::MAX;
        if !wanted {
            return self.transport.receive(buffer);
        }
        if let Some(between) = empty.and_then(|empty| arrived_between(empty, context.now)) {
            self.received = between;
            return self.transport.receive(buffer);
        }
        let (moved, receipt) = self.transport.receive_with_receipt(buffer);
        if let Some(stamp) = receipt {
            self.received = context.scratch.monotonic_of(stamp, context.now);
        }
        moved
    }

    /// Notes that the socket was empty at `now`: later bytes have arrived after that.
    pub(super) fn note_empty(&mut self, now: u64) {
        self.emptied = u16::try_from(now.saturating_sub(self.received) / STEP).unwrap_or(u16::MAX);
    }

    /// Ends a connection that cannot receive any more. A peer that leaves is usual; a peer that breaks the rules of
    /// TLS is logged.
    pub(super) fn end_broken(&self, context: &Context<'_>, error: &io::Error) -> Turn {
        if error.kind() == io::ErrorKind::InvalidData {
            // The line is the same for all connections of an address, so that the log folds them.
            context.group.site.log.info(format_args!("{}: TLS: {error}; closed", self.peer.without_port()));
        }
        Turn::Close
    }

    /// Begins an exchange of HTTP/1 at its first byte.
    pub(super) fn begin_stream(&mut self, now: u64) -> Box<Stream> {
        let mut stream = Stream::blank();
        self.end_own_limits();
        self.note_begun(&mut stream, now);
        stream
    }

    /// Notes that the first byte of a request arrived at `now`.
    pub(super) fn note_begun(&mut self, stream: &mut Stream, now: u64) {
        self.begun = self.begun.wrapping_add(1);
        let shaking = self.ends.as_mut().and_then(|ends| ends.shaking.take());
        if let Some(shaking) = &shaking {
            // Bytes that came together with the end of the handshake could be read only after it.
            self.received = self.received.max(shaking.ended);
        }
        stream.begin(self.begun, now, self.received);
        if let Some(shaking) = shaking {
            shaking.count(&mut stream.times);
        }
    }

    /// Queues the whole part at the writer.
    pub(super) fn queue(&mut self, before: &mut Vec<u8>, content: Last<'_>, behind: &'static [u8]) {
        if copy_small(before, &content, behind) {
            return self.writer_push(before);
        }
        self.writer_push(before);
        let writer = self.writer.get_or_insert_with(spare_writer);
        writer.push(content.keep(), 0);
        writer.push(Content::Static(behind), 0);
    }

    pub(super) fn writer_push(&mut self, bytes: &mut Vec<u8>) {
        self.writer.get_or_insert_with(spare_writer).push_all(bytes);
    }

    /// Ends the queue after its last byte has left: writes down the records of its responses (log, statistics), and keeps
    /// the memory of the writer for other responses.
    pub(super) fn drop_writer(&mut self, group: &Group) {
        if let Some(mut writer) = self.writer.take() {
            if !writer.records.is_empty() {
                let now = group.site.later(writer.records[0].times.done);
                group.site.note_all(&mut writer.records, now, None);
            }
            recycle_writer(writer);
        }
    }

    /// Drops the queued bytes of a peer that is gone.
    pub(super) fn lose_writer(&mut self, group: &Group) {
        if let Some(mut writer) = self.writer.take() {
            self.reach = Reach::Lost;
            group.site.note_all(&mut writer.records, clock::monotonic(), Some(self.ended_as));
        }
    }

    /// Keeps the record of a response whose last byte has not left yet.
    pub(super) fn keep_record(&mut self, record: &mut Option<Record>) {
        if let Some(writer) = &mut self.writer {
            writer.records.extend(record.take());
        }
    }

    /// Logs a failed send. After a file that became shorter, the open files of the routes are forgotten.
    pub(super) fn note_broken(&self, group: &Group, error: &std::io::Error) {
        group.site.log.info(format_args!("{}: sending: {error}", self.peer));
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            group.site.hosts.all().iter().for_each(|host| host.routes().forget_open_files());
        }
    }

    /// Notes that queued bytes are lost.
    pub(super) fn lose(&mut self) {
        self.reach = Reach::Lost;
    }

    /// Whether sending is impossible.
    pub(super) fn is_dead(&self) -> bool {
        self.reach != Reach::Open
    }

    /// The end of a response whose queued bytes are lost; none if no bytes are lost.
    pub(super) fn lost_as(&self) -> Option<End> {
        (self.reach == Reach::Lost).then_some(self.ended_as)
    }

    /// Known time since which the peer has taken none of the queued bytes; none while the queue is empty.
    pub(super) fn stands_still_since(&self) -> Option<u64> {
        self.writer.as_ref()?.patience.as_ref().map(RateWatch::moved)
    }

    /// As [`stands_still_since`](Self::stands_still_since), after asking the system for the acknowledged bytes.
    pub(super) fn look_at_reader(&mut self, now: u64) -> Option<u64> {
        let writer = self.writer.as_mut()?;
        let position = writer.sent().wrapping_sub(self.transport.unacknowledged());
        writer.patience.as_mut()?.note(now, position);
        self.stands_still_since()
    }
}

/// Appends small content to `before`. Returns whether the content was small.
pub(super) fn copy_small(before: &mut Vec<u8>, content: &Last<'_>, behind: &[u8]) -> bool {
    let small = last_bytes(content).filter(|bytes| bytes.len() <= MAX_COPIED);
    if let Some(bytes) = small {
        before.extend_from_slice(bytes);
        before.extend_from_slice(behind);
    }
    small.is_some()
}

/// Estimates the arrival time of bytes that were missing at `empty` and present at `now`, in monotonic nanoseconds,
/// to within [`MAX_ERROR`]; none if the estimate would be worse.
fn arrived_between(empty: u64, now: u64) -> Option<u64> {
    let within = now.saturating_sub(empty);
    (within <= 2 * MAX_ERROR).then(|| now - within / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_soon_after_the_socket_was_empty_is_known_well_enough() {
        let empty = 1_000_000_000;
        for within in [0, 1, 60_000, 2 * MAX_ERROR] {
            let told = arrived_between(empty, empty + within).expect("known");
            for real in [empty, empty + within] {
                assert!(told.abs_diff(real) <= MAX_ERROR, "{within}");
            }
        }
        assert_eq!(arrived_between(empty, empty + 2 * MAX_ERROR + 1), None);
        // Another thread has looked at its clock a moment later.
        assert_eq!(arrived_between(empty, empty - 10), Some(empty - 10));
    }
}
