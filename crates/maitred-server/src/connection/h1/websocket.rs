//! WebSocket over HTTP/1.1: it has the whole connection.

use maitred_io::transport::Moved;
use maitred_runtime::{Last, SendError};

use super::H1;
use crate::connection::carrier::Carrier;
use crate::connection::sending::{arm, peer_gone};
use crate::connection::websocket::{CLOGGED, take_for_socket};
use crate::connection::wire::{MAX_RECEIVES_A_TURN, Wire};
use crate::connection::{Context, Group, Key, Turn};

impl H1 {
    /// Receives bytes for the WebSocket of an HTTP/1.1 connection.
    pub(super) fn receive_websocket(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Turn {
        let Some(mut stream) = self.stream.take_if(|stream| stream.socket.is_some()) else {
            return Turn::Wait;
        };
        let early = std::mem::take(&mut wire.input);
        if !early.is_empty() || stream.socket_has_input() {
            take_for_socket(wire, context, &mut stream, &early);
        }
        let mut rest = MAX_RECEIVES_A_TURN;
        let mut broken = false;
        while stream.socket_takes_more() && wire.unread && rest > 0 {
            rest -= 1;
            let mut buffer = context.scratch.take_receive();
            match wire.receive_some(context, &mut buffer) {
                Moved::Bytes(count) => {
                    wire.note_read(count, buffer.len());
                    take_for_socket(wire, context, &mut stream, &buffer[..count]);
                }
                Moved::Blocked => wire.unread = false,
                Moved::End => {
                    wire.unread = false;
                    stream.end_socket();
                }
                Moved::Failed(error) => {
                    // The log has the error; the connection is closed below.
                    let _ = wire.end_broken(context, &error);
                    stream.end_socket();
                    broken = true;
                }
            }
            context.scratch.return_receive(buffer);
        }
        let goes_on = stream.socket_takes_more() && wire.unread;
        let flooded = stream.socket.as_ref().is_some_and(|socket| socket.flooded);
        self.put(stream);
        // The new bytes may have changed the time of the next ping.
        arm(self, wire, context.group, context.token);
        // A peer that floods gets the reason, if it reads.
        if broken || self.send_replies(wire, context.group, context.key(wire.begun)).is_err() || flooded {
            return peer_gone(self, wire, context);
        }
        if goes_on { Turn::Later } else { Turn::Wait }
    }

    /// Receives the bytes that came before the loss of the connection.
    pub(in crate::connection) fn receive_last_of_websocket(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) {
        if !wire.is_dead() && self.has_socket() {
            wire.unread = true;
            self.receive_websocket(wire, context);
        }
    }

    /// Sends frames of the engine.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn send_replies(&mut self, wire: &mut Wire, group: &Group, key: Key) -> Result<(), SendError> {
        let is_clogged = wire.writer.as_ref().is_some_and(|writer| writer.held() > CLOGGED);
        let Some(socket) = self.stream_of(key).and_then(|stream| stream.socket.as_mut()) else {
            return Ok(());
        };
        if is_clogged && socket.closed.is_none() {
            return Ok(());
        }
        let mut replies = socket.take_replies();
        if replies.is_empty() {
            return Ok(());
        }
        let sent = self.deliver(wire, group, key, (&mut replies, Last::NOTHING, b""));
        self.end_writing(wire, key);
        sent.map(drop)
    }

    /// Ends our sending side after the last frame over HTTP/1.1, so that the peer closes the connection.
    fn end_writing(&mut self, wire: &mut Wire, key: Key) {
        let is_closed =
            self.stream_of(key).is_some_and(|stream| stream.socket.is_some() && !stream.has_open_socket());
        if is_closed && wire.writer.is_none() {
            wire.transport.shutdown_write();
        }
    }
}
