//! WebSocket work of turns, and calls of the handler's side on the connection.

use maitred_http::Peer;
use maitred_io::clock;
use maitred_io::transport::Moved;
use maitred_log::End;
use maitred_runtime::{Closed, Content, Flow, Last, Messages, SendError};

use super::{RESTART, SILENT, Socket, put_ping};
use crate::connection::drain::Endless;
use crate::connection::framed::{Heads, Values};
use crate::connection::receive::MAX_RECEIVES_A_TURN;
use crate::connection::stream::Stream;
use crate::connection::{Connection, Context, Group, Key, Turn};
use crate::site::Site;

/// Bytes queued for a peer of HTTP/1.1 beyond which only the last ping is answered, later.
const CLOGGED: u64 = 64 * 1024;

impl Connection {
    /// Receives bytes for the WebSocket of an HTTP/1.1 connection.
    pub(in crate::connection) fn receive_websocket(&mut self, context: &mut Context<'_>) -> Turn {
        let Some(mut stream) = self.stream.take_if(|stream| stream.socket.is_some()) else {
            return Turn::Wait;
        };
        let early = std::mem::take(&mut self.wire.input);
        if !early.is_empty() || stream.socket_has_input() {
            self.take_for_socket(context, &mut stream, &early);
        }
        let mut rest = MAX_RECEIVES_A_TURN;
        let mut broken = false;
        while stream.socket_takes_more() && self.wire.unread && rest > 0 {
            rest -= 1;
            let mut buffer = context.scratch.take_receive();
            match self.wire.receive_some(context, &mut buffer) {
                Moved::Bytes(count) => {
                    self.wire.note_read(count, buffer.len());
                    self.take_for_socket(context, &mut stream, &buffer[..count]);
                }
                Moved::Blocked => self.wire.unread = false,
                Moved::End => {
                    self.wire.unread = false;
                    lose(&mut stream);
                }
                Moved::Failed(error) => {
                    // The log has the error; the connection is closed below.
                    let _ = self.wire.end_broken(context, &error);
                    lose(&mut stream);
                    broken = true;
                }
            }
            context.scratch.return_receive(buffer);
        }
        let goes_on = stream.socket_takes_more() && self.wire.unread;
        let flooded = stream.socket.as_ref().is_some_and(|socket| socket.flooded);
        self.put(stream);
        // The new bytes may have changed the time of the next ping.
        self.arm(context.group, context.token);
        // A peer that floods gets the reason, if it reads.
        if broken || self.send_replies(context.group, context.key(self.wire.begun)).is_err() || flooded {
            return self.peer_gone(context);
        }
        if goes_on { Turn::Later } else { Turn::Wait }
    }

    /// Receives the bytes that came before the loss of the connection.
    pub(in crate::connection) fn receive_last_of_websocket(&mut self, context: &mut Context<'_>) {
        if !self.wire.is_dead() && !self.protocol.is_framed() && self.has_socket() {
            self.wire.unread = true;
            self.receive_websocket(context);
        }
    }

    /// Takes bytes of the peer for a WebSocket, and tells the handler.
    pub(in crate::connection) fn take_for_socket(
        &self,
        context: &Context<'_>,
        stream: &mut Stream,
        data: &[u8],
    ) {
        let is_clogged = self.is_clogged_for(stream);
        let Some(socket) = &mut stream.socket else { return };
        let waiting = socket.inbox.len();
        take(socket, data, (context.now, is_clogged), &context.group.site, self.wire.peer);
        stream.received += data.len() as u64;
        if socket.inbox.len() > waiting || socket.closed.is_some() {
            stream.tell();
        }
    }

    /// Whether earlier frames have to leave before a ping is answered.
    fn is_clogged_for(&self, stream: &Stream) -> bool {
        match &stream.queue {
            Some(queue) => queue.is_clogged(),
            None => self.wire.writer.as_ref().is_some_and(|writer| writer.held() > CLOGGED),
        }
    }

    /// Sends frames of the engine.
    ///
    /// # Errors
    /// The peer is gone.
    fn send_replies(&mut self, group: &Group, key: Key) -> Result<(), SendError> {
        let is_clogged = self.wire.writer.as_ref().is_some_and(|writer| writer.held() > CLOGGED);
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
        let sent = self.deliver(group, key, &mut replies, Last::NOTHING, b"");
        self.end_writing(key);
        sent.map(drop)
    }

    /// Ends our sending side after the last frame over HTTP/1.1, so that the peer closes the connection.
    fn end_writing(&mut self, key: Key) {
        let is_closed =
            self.stream_of(key).is_some_and(|stream| stream.socket.is_some() && !stream.has_open_socket());
        if is_closed && self.wire.writer.is_none() && !self.protocol.is_framed() {
            self.wire.transport.shutdown_write();
        }
    }

    /// Checks the WebSockets whose peers have been silent for long.
    pub(in crate::connection) fn check_websockets(&mut self, context: &mut Context<'_>) {
        let (site, now) = (&context.group.site, context.now);
        let mut late = Vec::new();
        for stream in self.streams().filter(|stream| stream.socket_due(site) <= now) {
            late.push(stream.number);
        }
        for number in late {
            let key = context.key(number);
            let peer = self.wire.peer;
            let Some(stream) = self.stream_of(key) else { continue };
            let Some(socket) = &mut stream.socket else { continue };
            if socket.asked == 0 {
                put_ping(b"", &mut socket.replies);
                socket.asked = now;
            } else {
                socket.end(SILENT, "the peer was silent for too long");
                socket.unclean = true;
                site.websocket_counters.note_silent();
                site.log.info(format_args!(
                    "{peer}: WebSocket: nothing has come, and no answer to a ping; closed with {SILENT}"
                ));
                stream.tell();
            }
            // The next read finds out whether the peer is gone.
            let _ = self.send_socket_frames(context.group, key);
        }
    }

    /// Sends frames of the engine over either protocol.
    fn send_socket_frames(&mut self, group: &Group, key: Key) -> Result<(), SendError> {
        if !self.protocol.is_framed() {
            return self.send_replies(group, key);
        }
        if let Some(stream) = self.stream_of(key) {
            stream.enqueue_replies();
        }
        self.fill(group, key.token)
    }

    /// Closes every WebSocket when the server stops, so that the peers connect again elsewhere.
    pub(in crate::connection) fn close_websockets(&mut self, context: &mut Context<'_>) {
        let open: Vec<u32> =
            self.streams().filter(|stream| stream.has_open_socket()).map(|stream| stream.number).collect();
        for number in open {
            let key = context.key(number);
            if let Some(stream) = self.stream_of(key) {
                if let Some(socket) = &mut stream.socket {
                    socket.end(RESTART, "the server restarts");
                }
                stream.tell();
            }
            // The next read finds out whether the peer is gone.
            let _ = self.send_socket_frames(context.group, key);
        }
    }

    // ---- For the handler's side ----

    /// Begins a WebSocket that the handler has accepted; a turn takes the bytes received meanwhile.
    pub(in crate::connection) fn begin_websocket(&mut self, group: &Group, key: Key, socket: Box<Socket>) {
        let drains = group.is_draining();
        let Some(stream) = self.stream_of(key) else { return };
        stream.socket = Some(socket);
        if let Some(queue) = &mut stream.queue {
            queue.both_ways = true;
        }
        // A WebSocket has no end of its own.
        stream.endless = Some(Endless::Events);
        if drains && let Some(socket) = &mut stream.socket {
            socket.end(RESTART, "the server restarts");
        }
        let _ = self.send_socket_frames(group, key);
        self.arm(group, key.token);
        self.wire.listen_again(group, key.token);
        if self.protocol.is_framed() || self.wire.unread || !self.wire.input.is_empty() {
            group.resume(key.token);
        }
    }

    /// Moves whole messages to the handler, with the end of the WebSocket if it has ended.
    pub(in crate::connection) fn take_messages(
        &mut self,
        group: &Group,
        key: Key,
        into: &mut Messages,
    ) -> Option<Closed> {
        let (is_dead, peer) = (self.wire.is_dead(), self.wire.peer);
        let Some(socket) = self.stream_of(key).and_then(|stream| stream.socket.as_mut()) else {
            return Some(Closed::abnormal());
        };
        let mut goes_on = socket.hand_out(into);
        if is_dead && into.is_empty() {
            // No turn decodes the received bytes any more.
            socket.vanish();
            take(socket, &[], (clock::monotonic(), true), &group.site, peer);
            goes_on = socket.hand_out(into);
        }
        let closed = socket.closed.clone();
        if goes_on && closed.is_none() {
            if let Some(framed) = self.protocol.framed() {
                framed.credit(key.stream, u64::MAX);
            }
            group.resume(key.token);
        }
        closed
    }

    /// Sends a frame of the handler: the bytes before the content, and the content; `bytes` counts them for the
    /// application.
    ///
    /// # Errors
    /// The WebSocket is closed, or its peer is gone.
    pub(in crate::connection) fn deliver_frame(
        &mut self,
        group: &Group,
        key: Key,
        (before, heads): (&mut Vec<u8>, Option<Heads>),
        content: Last<'_>,
        bytes: u64,
    ) -> Result<Flow, SendError> {
        let stream = self.stream_of(key).ok_or(SendError::Closed)?;
        let socket =
            stream.socket.as_mut().filter(|socket| socket.closed.is_none()).ok_or(SendError::Closed)?;
        socket.sent.add(bytes);
        let Some(heads) = heads else { return self.deliver(group, key, before, content, b"") };
        /// Content up to this size is copied behind its head.
        const MAX_COPIED: u64 = 16 * 1024;
        let values = |heads, content| Values { heads, content, trailers: None, ended: false };
        let mut head = std::mem::take(before);
        if content.len() <= MAX_COPIED {
            head.extend_from_slice(crate::connection::writer::last_bytes(&content).unwrap_or_default());
            return self.deliver_values(group, key, values(heads, Content::Bytes(head)));
        }
        stream.enqueue(values(heads, Content::Bytes(head)));
        self.deliver_values(group, key, values(Heads::new(), content.keep()))
    }

    /// The end of the exchange of a WebSocket for its record, its close code, and whether the peer needs a close
    /// frame.
    pub(in crate::connection) fn end_of_websocket(&mut self, key: Key) -> (End, Option<u16>, bool) {
        let is_dead = self.wire.is_dead();
        let Some(socket) = self.stream_of(key).and_then(|stream| stream.socket.as_mut()) else {
            return (End::PeerGone, None, false);
        };
        if is_dead {
            socket.vanish();
        }
        (socket.outcome(), socket.closed.as_ref().map(|closed| closed.code), socket.closed.is_none())
    }
}

impl Stream {
    /// Queues frames of the engine.
    pub(in crate::connection) fn enqueue_replies(&mut self) {
        let (Some(socket), Some(queue)) = (&mut self.socket, &mut self.queue) else { return };
        let mut replies =
            if queue.is_clogged() { std::mem::take(&mut socket.replies) } else { socket.take_replies() };
        if !replies.is_empty() {
            queue.push_replies(&mut replies);
        }
    }

    /// Notes that the peer has ended its side, or the stream.
    pub(in crate::connection) fn end_socket(&mut self) {
        lose(self);
    }

    /// Whether the peer may send more frames.
    pub(in crate::connection) fn socket_takes_more(&mut self) -> bool {
        self.socket.as_mut().is_some_and(|socket| socket.takes_more())
    }

    /// Whether received bytes wait for decoding.
    pub(in crate::connection) fn socket_has_input(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.input.is_empty())
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

/// Ends the input of a stream.
fn lose(stream: &mut Stream) {
    if let Some(socket) = &mut stream.socket {
        socket.vanish();
    }
    stream.tell();
}
