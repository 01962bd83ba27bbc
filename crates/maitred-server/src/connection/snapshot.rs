//! What a connection shows of itself to whoever asks from outside: copies, made under the slot's lock.

use maitred_http::{Peer, TlsSession};

use std::sync::Arc;

use super::protocol::Protocol;
use super::stream::{RequestSummary, Stream};
use super::websocket::WebSocketSnapshot;
use super::{Connection, Phase};
use crate::connection::Group;
use crate::connection::writer::Marks;

/// A connection in one moment.
pub struct ConnectionSnapshot {
    /// Who is at the other end.
    pub peer: Peer,
    /// Which listener accepted it.
    pub listener: u32,
    /// What it is doing.
    pub state: State,
    /// It speaks HTTP/2.
    pub is_http2: bool,
    /// Its TLS session; none by plain TCP, and before the handshake is over.
    pub tls: Option<Arc<TlsSession>>,
    /// The requests that handlers have, or are to get, with their numbers: 0 where there is one at a time.
    pub requests: Vec<(u32, RequestSummary)>,
    /// The WebSockets among these, likewise.
    pub websockets: Vec<(u32, WebSocketSnapshot)>,
    /// What leaves, with the numbers of the exchanges.
    pub deliveries: Vec<(u32, Delivery)>,
}

impl ConnectionSnapshot {
    /// The request with this number.
    pub fn request(self, number: u32) -> Option<RequestSummary> {
        self.requests.into_iter().find(|(own, _)| *own == number).map(|(_, request)| request)
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Between two requests.
    Idle,
    /// A request is on its way.
    Receiving,
    /// A request waits for a thread, or is in the application.
    Running,
    /// A complete response leaves.
    Sending,
    /// The last response has left, and the peer is given time to read it.
    Ending,
}

impl State {
    /// All of them, in the order of a request.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Receiving, Self::Running, Self::Sending, Self::Ending];

    /// In a word.
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

/// What its writer has.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// In nanoseconds of the coarse monotonic clock.
    pub since: u64,
    /// Bytes that have left since then.
    pub sent: u64,
    /// Bytes that have not.
    pub remaining: u64,
    /// Bytes a second with which it may leave at most.
    pub limit: Option<u64>,
    /// How many of the latter are in memory, and were so before they went to a file.
    pub marks: Marks,
    /// The thread that gave it the last of them, as the system numbers it; 0 for the engine's own answers.
    pub thread: i32,
    /// What the application calls it.
    pub label: Option<Arc<str>>,
    /// What it answers; of several requests the last one. The number of its pool, none for the engine's own answers.
    pub answers: Option<(RequestSummary, Option<usize>)>,
}

impl Connection {
    pub(crate) fn state(&self) -> State {
        match self.phase {
            Phase::Receiving if self.is_running() => State::Running,
            Phase::Receiving if self.is_idle() => State::Idle,
            Phase::Receiving => State::Receiving,
            Phase::Running => State::Running,
            Phase::Sending => State::Sending,
            Phase::Lingering => State::Ending,
        }
    }

    /// A copy of all that can be shown.
    pub(crate) fn show(&self, group: &Group) -> ConnectionSnapshot {
        let running = self.streams().filter(|stream| stream.running);
        let requests: Vec<_> =
            running.map(|stream| (self.shown_number(stream), stream.summary.clone())).collect();
        let sockets = self.streams().filter_map(|stream| Some((stream, stream.socket.as_ref()?)));
        let websockets = sockets.map(|(stream, socket)| (self.shown_number(stream), socket.show())).collect();
        let limit = self.bandwidth(group);
        let mut deliveries: Vec<(u32, Delivery)> = Vec::new();
        if let (Protocol::H1(_), Some(writer)) = (&self.protocol, &self.writer) {
            let running = requests.first().map(|(_, request)| (request.clone(), Some(request.pool)));
            let answers = running.or_else(|| writer.records.last().map(|record| record.asked()));
            deliveries.push((0, Delivery { limit, answers, ..writer.show() }));
        }
        for stream in self.streams() {
            if let Some(data) = stream.queue.as_ref().and_then(|queue| queue.data.as_ref()) {
                let answers = Some((stream.summary.clone(), Some(stream.summary.pool)));
                let queue = stream.queue.as_ref().and_then(|queue| queue.shaper.as_ref());
                let own = queue.and_then(|shaper| shaper.limit_of_response());
                let limit = limit.into_iter().chain(own).min();
                deliveries.push((stream.number, Delivery { limit, answers, ..data.show() }));
            }
        }
        deliveries.retain(|(_, delivery)| delivery.remaining > 0);
        ConnectionSnapshot {
            peer: self.peer,
            listener: self.listener.into(),
            state: self.state(),
            is_http2: self.protocol.is_framed(),
            tls: self.session(),
            requests,
            websockets,
            deliveries,
        }
    }

    /// By which number an exchange is shown: 0 where there is one at a time.
    pub(super) fn shown_number(&self, stream: &Stream) -> u32 {
        if self.protocol.is_framed() { stream.number } else { 0 }
    }
}
