//! A WebSocket as a part of its exchange: work of turns, and calls of the handler's side.

use maitred_http::Peer;
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Closed, Messages, SendError};

use super::{RESTART, SILENT, Socket, put_ping};
use crate::NEVER;
use crate::response::Endless;
use crate::site::Site;
use crate::stream::Stream;

impl Stream {
    /// Time of the next check of the WebSocket, in monotonic nanoseconds.
    pub fn socket_due(&self, site: &Site) -> u64 {
        self.socket.as_ref().map_or(NEVER, |socket| socket.due(site))
    }

    /// Whether a closed WebSocket's peer may still send frames: at least its part of the closing handshake.
    pub fn awaits_last_frames(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.by_peer)
    }

    /// Whether the WebSocket is open.
    pub fn has_open_socket(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.closed.is_none())
    }

    /// Queues frames of the engine.
    pub fn enqueue_replies(&mut self) {
        let (Some(socket), Some(queue)) = (&mut self.socket, &mut self.queue) else { return };
        let mut replies =
            if queue.is_clogged() { std::mem::take(&mut socket.replies) } else { socket.take_replies() };
        if !replies.is_empty() {
            queue.push_replies(&mut replies);
        }
    }

    /// Notes that the peer has ended its side, or the stream.
    pub fn end_socket(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.vanish();
        }
        self.tell();
    }

    /// Whether the peer may send more frames.
    pub fn socket_takes_more(&mut self) -> bool {
        self.socket.as_mut().is_some_and(|socket| socket.takes_more())
    }

    /// Whether received bytes wait for decoding.
    pub fn socket_has_input(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.input.is_empty())
    }

    /// Sends a ping to a peer that has been silent for long, or closes after one without an answer.
    pub fn check_socket(&mut self, site: &Site, peer: Peer, now: u64) {
        let Some(socket) = &mut self.socket else { return };
        if socket.asked == 0 {
            put_ping(b"", &mut socket.replies);
            socket.asked = now;
            return;
        }
        socket.end(SILENT, "the peer was silent for too long");
        socket.unclean = true;
        site.websocket_counters.note_silent();
        site.log.info(format_args!(
            "{peer}: WebSocket: nothing has come, and no answer to a ping; closed with {SILENT}"
        ));
        self.tell();
    }

    /// Closes the WebSocket, because the server stops.
    pub fn restart_socket(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.end(RESTART, "the server restarts");
        }
        self.tell();
    }

    /// Begins a WebSocket that the handler has accepted. Returns whether bytes that came early are with the stream.
    pub fn begin_socket(&mut self, mut socket: Box<Socket>, drains: bool) -> bool {
        if drains {
            socket.end(RESTART, "the server restarts");
        }
        self.socket = Some(socket);
        // A WebSocket has no end of its own.
        self.endless = Some(Endless::Events);
        if let Some(queue) = &mut self.queue {
            queue.both_ways = true;
        }
        self.queue.is_some()
    }

    /// Moves whole messages to the handler, with the end of the WebSocket if it has ended, and whether reading had stopped and goes on.
    /// `is_dead`: the peer is gone.
    pub fn take_messages(
        &mut self,
        site: &Site,
        peer: Peer,
        is_dead: bool,
        into: &mut Messages,
    ) -> (Option<Closed>, bool) {
        let Some(socket) = &mut self.socket else { return (Some(Closed::abnormal()), false) };
        let mut goes_on = socket.hand_out(into);
        if is_dead && into.is_empty() {
            // No turn decodes the received bytes any more.
            socket.vanish();
            take(socket, &[], (clock::monotonic(), true), site, peer);
            goes_on = socket.hand_out(into);
        }
        (socket.closed.clone(), goes_on && socket.closed.is_none())
    }

    /// Counts a message of `bytes` bytes that the handler sends.
    ///
    /// # Errors
    /// The WebSocket is closed.
    pub fn count_message(&mut self, bytes: u64) -> Result<(), SendError> {
        let socket = self.socket.as_mut().filter(|socket| socket.closed.is_none());
        socket.ok_or(SendError::Closed)?.sent.add(bytes);
        Ok(())
    }

    /// The end of the exchange of a WebSocket for its record, its close code, and whether the peer needs a close frame.
    pub fn end_of_socket(&mut self, is_dead: bool) -> (End, Option<u16>, bool) {
        let Some(socket) = &mut self.socket else { return (End::PeerGone, None, false) };
        if is_dead {
            socket.vanish();
        }
        (socket.outcome(), socket.closed.as_ref().map(|closed| closed.code), socket.closed.is_none())
    }

    /// Takes bytes of the peer, and tells the handler. `is_clogged`: earlier frames have to leave before a ping is answered.
    pub fn take_for_socket(&mut self, site: &Site, peer: Peer, (now, is_clogged): (u64, bool), data: &[u8]) {
        let Some(socket) = &mut self.socket else { return };
        let waiting = socket.inbox.len();
        take(socket, data, (now, is_clogged), site, peer);
        self.received += data.len() as u64;
        if socket.inbox.len() > waiting || socket.closed.is_some() {
            self.tell();
        }
    }
}

/// Takes bytes of the peer.
fn take(socket: &mut Socket, data: &[u8], (now, is_clogged): (u64, bool), site: &Site, peer: Peer) {
    if let Some(reason) = socket.take(data, now, is_clogged, site) {
        let code = socket.closed.as_ref().map_or(Closed::ABNORMAL, |closed| closed.code);
        // The line is the same for all connections of an address, so that the log folds them.
        site.log.info(format_args!("{}: WebSocket: {reason}; closed with {code}", peer.without_port()));
    }
}
