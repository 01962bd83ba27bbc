//! WebSocket work of turns, and calls of the handler's side on the connection.

use maitred_http::Peer;
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Closed, Messages, SendError};

use super::{RESTART, SILENT, Socket, put_ping};
use crate::connection::drain::Endless;
use crate::connection::link::Link;
use crate::connection::sending::arm;
use crate::connection::stream::Stream;
use crate::connection::wire::Wire;
use crate::connection::{Context, Group, Key, NEVER};
use crate::site::Site;

/// Bytes queued for a peer of HTTP/1.1 beyond which only the last ping is answered, later.
pub(in crate::connection) const CLOGGED: u64 = 64 * 1024;

impl Stream {
    /// Time of the next check of the WebSocket, in monotonic nanoseconds.
    pub(in crate::connection) fn socket_due(&self, site: &Site) -> u64 {
        self.socket.as_ref().map_or(NEVER, |socket| socket.due(site))
    }

    /// Whether a closed WebSocket's peer may still send frames: at least its part of the closing handshake.
    pub(in crate::connection) fn awaits_last_frames(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.by_peer)
    }

    /// Whether the WebSocket is open.
    pub(in crate::connection) fn has_open_socket(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.closed.is_none())
    }

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
pub(in crate::connection) fn lose(stream: &mut Stream) {
    if let Some(socket) = &mut stream.socket {
        socket.vanish();
    }
    stream.tell();
}

/// Checks the WebSockets whose peers have been silent for long.
pub(in crate::connection) fn check_websockets(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
) {
    let (site, now) = (&context.group.site, context.now);
    let mut late = Vec::new();
    for stream in link.streams().filter(|stream| stream.socket_due(site) <= now) {
        late.push(stream.number);
    }
    for number in late {
        let key = context.key(number);
        let peer = wire.peer;
        let Some(stream) = link.stream_of(key) else { continue };
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
        let _ = link.send_socket_frames(wire, context.group, key);
    }
}

/// Closes every WebSocket when the server stops, so that the peers connect again elsewhere.
pub(in crate::connection) fn close_websockets(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
) {
    let open: Vec<u32> =
        link.streams().filter(|stream| stream.has_open_socket()).map(|stream| stream.number).collect();
    for number in open {
        let key = context.key(number);
        if let Some(stream) = link.stream_of(key) {
            if let Some(socket) = &mut stream.socket {
                socket.end(RESTART, "the server restarts");
            }
            stream.tell();
        }
        // The next read finds out whether the peer is gone.
        let _ = link.send_socket_frames(wire, context.group, key);
    }
}

/// Begins a WebSocket that the handler has accepted; a turn takes the bytes received meanwhile.
pub(in crate::connection) fn begin_websocket(
    link: &mut impl Link,
    wire: &mut Wire,
    group: &Group,
    key: Key,
    socket: Box<Socket>,
) {
    let drains = group.is_draining();
    let Some(stream) = link.stream_of(key) else { return };
    stream.socket = Some(socket);
    // Bytes that came early are with the stream.
    let is_early = stream.queue.is_some();
    if let Some(queue) = &mut stream.queue {
        queue.both_ways = true;
    }
    // A WebSocket has no end of its own.
    stream.endless = Some(Endless::Events);
    if drains && let Some(socket) = &mut stream.socket {
        socket.end(RESTART, "the server restarts");
    }
    let _ = link.send_socket_frames(wire, group, key);
    arm(link, wire, group, key.token);
    wire.listen_again(group, key.token);
    if is_early || wire.unread || !wire.input.is_empty() {
        group.resume(key.token);
    }
}

/// Moves whole messages to the handler, with the end of the WebSocket if it has ended.
pub(in crate::connection) fn take_messages(
    link: &mut impl Link,
    wire: &mut Wire,
    group: &Group,
    key: Key,
    into: &mut Messages,
) -> Option<Closed> {
    let (is_dead, peer) = (wire.is_dead(), wire.peer);
    let Some(socket) = link.stream_of(key).and_then(|stream| stream.socket.as_mut()) else {
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
        link.credit(key.stream, u64::MAX);
        group.resume(key.token);
    }
    closed
}

/// Counts a message of `bytes` bytes that the handler sends.
///
/// # Errors
/// The WebSocket is closed.
pub(in crate::connection) fn count_message(
    link: &mut impl Link,
    key: Key,
    bytes: u64,
) -> Result<(), SendError> {
    let socket = link.stream_of(key).and_then(|stream| stream.socket.as_mut());
    socket.filter(|socket| socket.closed.is_none()).ok_or(SendError::Closed)?.sent.add(bytes);
    Ok(())
}

/// The end of the exchange of a WebSocket for its record, its close code, and whether the peer needs a close
/// frame.
pub(in crate::connection) fn end_of_websocket(
    link: &mut impl Link,
    wire: &mut Wire,
    key: Key,
) -> (End, Option<u16>, bool) {
    let is_dead = wire.is_dead();
    let Some(socket) = link.stream_of(key).and_then(|stream| stream.socket.as_mut()) else {
        return (End::PeerGone, None, false);
    };
    if is_dead {
        socket.vanish();
    }
    (socket.outcome(), socket.closed.as_ref().map(|closed| closed.code), socket.closed.is_none())
}

/// Takes bytes of the peer for a WebSocket, and tells the handler.
pub(in crate::connection) fn take_for_socket(
    wire: &Wire,
    context: &Context<'_>,
    stream: &mut Stream,
    data: &[u8],
) {
    let is_clogged = is_clogged_for(wire, stream);
    let Some(socket) = &mut stream.socket else { return };
    let waiting = socket.inbox.len();
    take(socket, data, (context.now, is_clogged), &context.group.site, wire.peer);
    stream.received += data.len() as u64;
    if socket.inbox.len() > waiting || socket.closed.is_some() {
        stream.tell();
    }
}

/// Whether earlier frames have to leave before a ping is answered.
fn is_clogged_for(wire: &Wire, stream: &Stream) -> bool {
    match &stream.queue {
        Some(queue) => queue.is_clogged(),
        None => wire.writer.as_ref().is_some_and(|writer| writer.held() > CLOGGED),
    }
}
