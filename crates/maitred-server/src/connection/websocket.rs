//! WebSockets of a connection: the timer, the drain, the queue of frames (`websocket/` of maitred-exchange has the state of one).

use maitred_exchange::Stream;

use super::Context;
use super::carrier::Carrier;
use super::wire::Wire;

/// Bytes queued for a peer of HTTP/1.1 beyond which only the last ping is answered, later.
pub(super) const CLOGGED: u64 = 64 * 1024;

/// Checks the WebSockets whose peers have been silent for long.
pub(super) fn check_websockets(carrier: &mut impl Carrier, wire: &mut Wire, context: &mut Context<'_>) {
    let (site, now) = (&context.group.site, context.now);
    let is_late = |stream: &&Stream| stream.socket_due(site) <= now;
    let late: Vec<u32> = carrier.streams().filter(is_late).map(|stream| stream.number).collect();
    for number in late {
        let key = context.key(number);
        let Some(stream) = carrier.stream_of(key) else { continue };
        stream.check_socket(site, wire.peer, now);
        // The next read finds out whether the peer is gone.
        let _ = carrier.send_socket_frames(wire, context.group, key);
    }
}

/// Closes every WebSocket when the server stops, so that the peers connect again elsewhere.
pub(super) fn close_websockets(carrier: &mut impl Carrier, wire: &mut Wire, context: &mut Context<'_>) {
    let open: Vec<u32> =
        carrier.streams().filter(|stream| stream.has_open_socket()).map(|stream| stream.number).collect();
    for number in open {
        let key = context.key(number);
        if let Some(stream) = carrier.stream_of(key) {
            stream.restart_socket();
        }
        // The next read finds out whether the peer is gone.
        let _ = carrier.send_socket_frames(wire, context.group, key);
    }
}

/// Takes bytes of the peer for a WebSocket, and tells the handler.
pub(super) fn take_for_socket(wire: &Wire, context: &Context<'_>, stream: &mut Stream, data: &[u8]) {
    let is_clogged = match &stream.queue {
        Some(queue) => queue.is_clogged(),
        None => wire.writer.as_ref().is_some_and(|writer| writer.held() > CLOGGED),
    };
    stream.take_for_socket(&context.group.site, wire.peer, (context.now, is_clogged), data);
}

#[cfg(test)]
pub(super) mod tests;
