//! Calls of handlers on their connection, from any thread, under the lock of the slot. What is the same for both protocols is called by
//! `with_carrier!` where it is wanted; here are the calls that differ, and those for bodies and messages.

use std::io;
use std::sync::Arc;

use maitred_exchange::{Socket, Stream};
use maitred_limits::Rule;
use maitred_log::End;
use maitred_runtime::{Closed, Flow, Messages, Observe, SendError};
use maitred_turns::Signals;

use super::carrier::{Carrier, ResponsePart, with_carrier};
use super::sending::{arm, fail_sending};
use super::streaming_body::LiveReader;
use super::{Connection, Group, Key, Protocol};
use maitred_exchange::spill::MAX_FILE;

impl Group {
    /// Calls `act` with the connection of `key` if the connection exists and a handler still has that exchange.
    pub(crate) fn with_stream<T>(&self, key: Key, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.with_connection(key.token, |connection| {
            connection.stream_of(key)?;
            Some(act(connection))
        })?
    }
}

impl Connection {
    /// The exchange that `key` names, if a handler still answers it.
    pub(crate) fn stream_of(&mut self, key: Key) -> Option<&mut Stream> {
        with_carrier!(self, |carrier, _wire| carrier.stream_of(key))
    }

    /// The handler of a stream that is dead has let go of it. Returns how its response ended, if it was cancelled.
    pub(super) fn forget(&mut self, group: &Group, key: Key) -> Option<End> {
        match &mut self.protocol {
            Protocol::H1(_) => None,
            Protocol::Framed(framed) => framed.forget(&mut self.wire, group, key),
        }
    }

    /// No further request is wanted on this connection: a peer of HTTP/2 is told so.
    pub(super) fn leave(&mut self) {
        if let Protocol::Framed(framed) = &mut self.protocol {
            framed.leave();
        }
    }

    /// Since when the peer has taken nothing of what waits of an exchange; none while nothing waits for the peer.
    pub(super) fn peer_idle_since(&mut self, key: Key, now: u64) -> Option<u64> {
        let still = self.wire.look_at_reader(now);
        match &self.protocol {
            Protocol::H1(_) => still,
            Protocol::Framed(framed) => framed.peer_idle_since(key, still),
        }
    }

    /// Whether much more of the response waits in files than a peer is behind that pauses.
    pub(super) fn is_far_ahead(&mut self, key: Key) -> bool {
        let filed = with_carrier!(self, |carrier, wire| carrier
            .writer_of(wire, key)
            .map(|writer| writer.marks().file));
        filed.is_some_and(|filed| filed >= MAX_FILE)
    }

    /// Whether a part of the response is being written to a file, which makes room.
    pub(super) fn has_lent(&mut self, key: Key) -> bool {
        let lent =
            with_carrier!(self, |carrier, wire| carrier.writer_of(wire, key).map(|writer| writer.has_lent()));
        lent.unwrap_or_default()
    }

    /// Ends the response of an exchange whose peer takes nothing, because requests wait for the thread of its handler.
    pub(super) fn give_up_peer(&mut self, group: &Group, key: Key) {
        let wire = &mut self.wire;
        group.site.guard.applied.note(Rule::HeldThread, wire.peer, &group.site.log);
        match &mut self.protocol {
            Protocol::H1(h1) => {
                wire.transport.reset_when_closed();
                wire.ended_as = End::TooSlow;
                // The connection closes when the handler has let go of it.
                let _ = fail_sending(h1, wire, group);
            }
            Protocol::Framed(framed) => framed.reset_stream(wire, group, key, End::TooSlow),
        }
    }

    /// Reads bytes of a live body for its handler, with `space` for bytes that are not decoded.
    pub(super) fn read_live(
        &mut self,
        reader: &LiveReader,
        (space, buffer): (&mut [u8], &mut [u8]),
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        match &mut self.protocol {
            Protocol::H1(h1) => h1.read_live(&mut self.wire, reader, (space, buffer), observer),
            Protocol::Framed(framed) => framed.read_live(&mut self.wire, reader, buffer, observer),
        }
    }

    // ---- WebSocket ----

    /// Begins a WebSocket that the handler has accepted; a turn takes the bytes received meanwhile.
    pub(super) fn begin_websocket(&mut self, group: &Group, key: Key, socket: Box<Socket>) {
        with_carrier!(self, |carrier, wire| {
            let Some(stream) = carrier.stream_of(key) else { return };
            let is_early = stream.begin_socket(socket, group.is_draining());
            let _ = carrier.send_socket_frames(wire, group, key);
            arm(carrier, wire, group, key.token);
            wire.listen_again(group, key.token);
            if is_early || wire.unread || !wire.input.is_empty() {
                group.resume(key.token);
            }
        });
    }

    /// Moves whole messages to the handler, with the end of the WebSocket if it has ended.
    pub(super) fn take_messages(&mut self, group: &Group, key: Key, into: &mut Messages) -> Option<Closed> {
        with_carrier!(self, |carrier, wire| {
            let Some(stream) = carrier.stream_of(key) else { return Some(Closed::abnormal()) };
            let (closed, goes_on) = stream.take_messages(&group.site, wire.peer, wire.is_dead(), into);
            if goes_on {
                carrier.credit(key.stream, u64::MAX);
                group.resume(key.token);
            }
            closed
        })
    }

    /// Sends a frame of the handler; `bytes` counts them for the application.
    ///
    /// # Errors
    /// The WebSocket is closed, or its peer is gone.
    pub(super) fn send_frame(
        &mut self,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
        bytes: u64,
    ) -> Result<Flow, SendError> {
        with_carrier!(self, |carrier, wire| {
            carrier.stream_of(key).ok_or(SendError::Closed)?.count_message(bytes)?;
            carrier.send_part(wire, group, key, part)
        })
    }

    pub(super) fn end_of_websocket(&mut self, key: Key) -> (End, Option<u16>, bool) {
        with_carrier!(self, |carrier, wire| match carrier.stream_of(key) {
            Some(stream) => stream.end_of_socket(wire.is_dead()),
            None => (End::PeerGone, None, false),
        })
    }

    // ---- For an operator ----

    /// Ends an exchange: a stream with frames is reset; with the number 0 the next turn closes the connection.
    pub(crate) fn end_by_operator(&mut self, group: &Group, key: Key) {
        match &mut self.protocol {
            Protocol::Framed(framed) if key.stream != 0 => {
                framed.reset_stream(&mut self.wire, group, key, End::Operator);
            }
            _ => {
                self.wire.ended_as = End::Operator;
                group.scheduler.make_ready(key.token.to_u64(), Signals::CLOSED);
            }
        }
    }
}
