//! Views of a connection for the control interface: copies, made under the lock of the slot.

use maitred_exchange::Stream;
use maitred_http::{Peer, TlsSession};

use std::sync::Arc;

use super::Connection;
use super::carrier::Carrier;
use super::carrier::{Protocol, see_carrier};
use super::wire::Phase;
use crate::connection::Group;
use maitred_exchange::record::RequestSummary;
use maitred_exchange::stream::websocket::WebSocketSnapshot;
use maitred_exchange::writer::Delivery;

/// The state of a connection at one moment.
pub struct ConnectionSnapshot {
    /// The peer.
    pub peer: Peer,
    /// Number of the listener that accepted the connection.
    pub listener: u32,
    /// The present activity.
    pub state: State,
    /// The connection speaks HTTP/2.
    pub is_http2: bool,
    /// The TLS session; none with plain TCP, and before the end of the handshake.
    pub tls: Option<Arc<TlsSession>>,
    /// The requests that handlers have or are about to get, with their stream numbers; the number is 0 where a
    /// connection has one request at a time.
    pub requests: Vec<(u32, RequestSummary)>,
    /// The WebSockets among these requests, with their stream numbers.
    pub websockets: Vec<(u32, WebSocketSnapshot)>,
    /// The responses being sent, with their stream numbers.
    pub deliveries: Vec<(u32, Delivery)>,
}

impl ConnectionSnapshot {
    /// The request with this number.
    pub fn request(self, number: u32) -> Option<RequestSummary> {
        self.requests.into_iter().find(|(own, _)| *own == number).map(|(_, request)| request)
    }
}

/// Activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Between two requests.
    Idle,
    /// A request is arriving.
    Receiving,
    /// A request waits for a thread, or is in the application.
    Running,
    /// A complete response is being sent.
    Sending,
    /// The last response has left, and the peer has time to read it.
    Ending,
}

impl State {
    /// All states, in the order of a request.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Receiving, Self::Running, Self::Sending, Self::Ending];

    /// The name of the state, one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Receiving => "receiving",
            Self::Running => "running",
            Self::Sending => "sending",
            Self::Ending => "ending",
        }
    }
}

impl Connection {
    pub(crate) fn state(&self) -> State {
        match self.wire.phase {
            Phase::Receiving if self.is_running() => State::Running,
            Phase::Receiving if self.is_idle() => State::Idle,
            Phase::Receiving => State::Receiving,
            Phase::Running => State::Running,
            Phase::Sending => State::Sending,
            Phase::Lingering => State::Ending,
        }
    }

    /// Calls `look` with each request that a handler has, and whether the connection has TLS.
    pub(crate) fn each_request(&self, look: &mut impl FnMut(bool, &RequestSummary)) {
        let secure = self.wire.session().is_some();
        see_carrier!(self, |carrier, _wire| {
            carrier
                .streams()
                .filter(|stream| stream.running)
                .for_each(|stream| look(secure, &stream.summary));
        });
    }

    /// Copies the state of the connection.
    pub(crate) fn show(&self, group: &Group) -> ConnectionSnapshot {
        let (requests, websockets) = see_carrier!(self, |carrier, _wire| show_exchanges(carrier));
        let limit = self.wire.bandwidth(group);
        let mut deliveries: Vec<(u32, Delivery)> = Vec::new();
        if let (Protocol::H1(_), Some(writer)) = (&self.protocol, &self.wire.writer) {
            let running = requests.first().map(|(_, request)| (request.clone(), Some(request.pool)));
            let answers = running.or_else(|| writer.records.last().map(|record| record.asked()));
            deliveries.push((0, Delivery { limit, answers, ..writer.show() }));
        }
        if let Protocol::Framed(framed) = &self.protocol {
            deliveries.extend(framed.streams().filter_map(|stream| delivery_of(stream, limit)));
        }
        deliveries.retain(|(_, delivery)| delivery.remaining > 0);
        ConnectionSnapshot {
            peer: self.wire.peer,
            listener: self.wire.listener.into(),
            state: self.state(),
            is_http2: matches!(self.protocol, Protocol::Framed(_)),
            tls: self.wire.session(),
            requests,
            websockets,
            deliveries,
        }
    }
}

/// The requests that handlers have, and the WebSockets among them, with the numbers under which they are shown.
#[expect(clippy::type_complexity, reason = "two lists of the snapshot")]
fn show_exchanges(carrier: &impl Carrier) -> (Vec<(u32, RequestSummary)>, Vec<(u32, WebSocketSnapshot)>) {
    let number = |stream: &Stream| carrier.shown_number(stream.number);
    let running = carrier.streams().filter(|stream| stream.running);
    let requests = running.map(|stream| (number(stream), stream.summary.clone())).collect();
    let sockets = carrier.streams().filter_map(|stream| Some((stream, stream.socket.as_ref()?)));
    (requests, sockets.map(|(stream, socket)| (number(stream), socket.show())).collect())
}

/// The delivery of one stream of a connection whose rate limit is `limit`.
fn delivery_of(stream: &Stream, limit: Option<u64>) -> Option<(u32, Delivery)> {
    let queue = stream.queue.as_ref()?;
    let data = queue.data.as_ref()?;
    let answers = Some((stream.summary.clone(), Some(stream.summary.pool)));
    let own = queue.shaper.as_ref().and_then(|shaper| shaper.limit_of_response());
    let limit = limit.into_iter().chain(own).min();
    Some((stream.number, Delivery { limit, answers, ..data.show() }))
}
