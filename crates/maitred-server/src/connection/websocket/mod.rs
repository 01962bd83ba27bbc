//! A WebSocket (RFC 6455): what a request becomes when its handler accepts it. Messages go in both directions until one side
//! closes it.
//!
//! ```text
//! handler's thread                          connection                      turns
//!   accept ------------- slot's lock -----> the socket begins
//!   take_messages <------------------------ inbox <------------------------ READ: frames to messages
//!   send_message -------------------------> writer                          PING: answered at once
//!                                           pings of ours <---------------- TIMER: the peer is silent
//!   close, or told of the end ------------> the last frame <--------------- CLOSE, a fault, the drain
//! ```
//! Over HTTP/1.1 the connection is nothing else any more; over HTTP/2 (RFC 8441) it is one stream of it.
//!
//! Promises: control frames are answered whatever the handler does; of pongs that the peer does not take the last one is kept. What has
//! come and was not taken holds at most [`INBOX`] bytes and one message; then nothing more is read, and the peer is slowed down. What has
//! been read by then stays as it came: a few bytes can become many. Beyond [`INBOX`] bytes each, messages of all sockets count in the
//! budget of bodies in memory (`room.rs`). After the first close, of either side, nothing is read and nothing of the handler is sent.
//!
//! Leaves out: what frames look like (maitred-ws), and what a request has to say (`handshake.rs`).

mod handshake;
mod room;
#[cfg(test)]
pub(super) mod tests;
mod turns;

use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Closed, MessageKind, Messages};
use maitred_spool::Kept;
use maitred_ws::{Control, Deflate, Event, Kind, Limits, Receiver, put_close, put_ping, put_pong};

use super::stream::Stream;
use super::{Connection, NEVER, nanos};
use crate::site::{Share, Site};
pub(crate) use handshake::Offer;

/// Bytes of messages that wait for the handler. Beyond it nothing more is read.
const INBOX: usize = 64 * 1024;

/// Parts of a message (RFC 6455 §5.4). Past it: 1009. Each costs work, however short it is.
const MAX_FRAGMENTS: u32 = 131_072;

/// How many times as long a message may become by inflating; text is seldom above 20. Past it: 1009.
const MAX_RATIO: u32 = 200;

/// Bytes that a message may have whatever it was before: tests and empty images are made of one byte repeated.
const SHORT: u64 = 4 * 1024 * 1024;

/// Bytes of answers to pings that are made at once. Of further ones the last is answered (RFC 6455 §5.5.3).
const MAX_PONGS: usize = 16 * 1024;

/// Pings and pongs that a peer may send at once, and the time in nanoseconds after which it may send one more: as with PING of HTTP/2. Past it: 1008.
/// Each takes the engine's time from others, and none is read by the application, which would slow the peer down.
const MAX_SIGNS: u64 = 1_000;
const SIGN_NANOS: u64 = 5_000_000;

/// The peer does what a server does not have to bear (RFC 6455 §7.4.1).
const POLICY: u16 = 1008;

/// The server stops, and another one will be there.
const RESTART: u16 = 1012;

/// The server has no room for a message.
const TRY_AGAIN: u16 = 1013;

/// The server gives up: the peer has been silent for too long.
const SILENT: u16 = 1011;

/// See the module text.
pub(crate) struct Socket {
    receiver: Receiver,
    /// What has come and is not decoded: there was no room for what it makes.
    input: Vec<u8>,
    inbox: Messages,
    /// Bytes of messages that the handler has taken together, until it takes the next ones.
    given: usize,
    /// The handler waits: it has asked for messages, and there was none.
    awaited: bool,
    /// Nothing more is read until the handler asks for messages.
    stopped: bool,
    /// Nothing comes behind the input.
    ended: bool,
    /// Beyond what each may hold: what messages have of the memory of all.
    kept: Kept,
    /// How it has ended; nothing is read or sent any more.
    closed: Option<Closed>,
    /// The peer has begun the end: nothing of it is on its way.
    by_peer: bool,
    /// The end was without a closing handshake, or broke the rules.
    unclean: bool,
    /// The peer has sent too many pings or pongs. Its last frame is not waited for: all before it would have to be read.
    flooded: bool,
    /// Frames that have to be sent.
    replies: Vec<u8>,
    /// What the last ping had that is not answered yet: earlier answers wait for the peer.
    ping: Option<Control>,
    /// When the peer was heard last, in monotonic nanoseconds.
    heard: u64,
    /// When it may send [`MAX_SIGNS`] pings and pongs again, likewise.
    calm: u64,
    /// When it was asked for a sign of life; 0 if it is not.
    asked: u64,
    /// Since when it is open, in monotonic nanoseconds.
    began: u64,
    received: Counted,
    sent: Counted,
    /// Messages are compressed.
    compressed: bool,
    /// What contexts of the compression hold of the memory of all, until it ends; none where each message is compressed by itself.
    _share: Option<Share>,
}

/// Messages of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub messages: u64,
    /// Bytes of them, as the application has them.
    pub bytes: u64,
}

/// A WebSocket in one moment, for the control.
#[derive(Clone, Debug)]
pub struct WebSocketSnapshot {
    /// Since when it is open, in monotonic nanoseconds.
    pub since: u64,
    /// When the peer was heard last, likewise.
    pub heard: u64,
    /// What has come.
    pub received: Counted,
    /// What was sent.
    pub sent: Counted,
    /// Bytes that wait for the application.
    pub waiting: usize,
    /// Messages are compressed.
    pub compressed: bool,
}

impl Socket {
    /// One that begins now.
    pub(crate) fn new(site: &Site, deflate: Option<&Deflate>, share: Option<Share>) -> Box<Self> {
        let message = site.websockets.as_ref().map_or(0, |settings| settings.max_message);
        let limits = Limits { message, fragments: MAX_FRAGMENTS, ratio: MAX_RATIO, ratio_from: SHORT };
        let now = clock::monotonic();
        Box::new(Self {
            receiver: Receiver::new(limits, deflate),
            input: Vec::new(),
            inbox: Messages::default(),
            given: 0,
            awaited: false,
            stopped: false,
            ended: false,
            kept: site.body_budget.keep(),
            closed: None,
            by_peer: false,
            unclean: false,
            flooded: false,
            replies: Vec::new(),
            ping: None,
            heard: now,
            calm: now,
            asked: 0,
            began: now,
            received: Counted::default(),
            sent: Counted::default(),
            compressed: deflate.is_some(),
            _share: share,
        })
    }

    /// Takes bytes of the peer as far as there is room, and keeps the rest; `clogged`: earlier answers wait for the peer. The reason, if it
    /// is closed for what the peer has sent.
    fn take(&mut self, data: &[u8], now: u64, clogged: bool, site: &Site) -> Option<&'static str> {
        (self.heard, self.asked) = (now, 0);
        let fault = if self.input.is_empty() {
            let (used, fault) = self.decode(data, clogged, site);
            self.input.extend_from_slice(data.get(used..).unwrap_or_default());
            fault
        } else {
            let mut input = std::mem::take(&mut self.input);
            input.extend_from_slice(data);
            let (used, fault) = self.decode(&input, clogged, site);
            if used < input.len() {
                input.drain(..used);
                self.input = input;
            }
            fault
        };
        if self.closed.is_some() {
            self.forget_input();
        } else if self.ended {
            self.vanish();
        }
        fault
    }

    /// Decodes while there is room; returns how much it has used up.
    fn decode(&mut self, data: &[u8], clogged: bool, site: &Site) -> (usize, Option<&'static str>) {
        let counters = &site.websocket_counters;
        let (all, mut data) = (data.len(), data);
        while !data.is_empty() && self.takes_more() {
            if self.has_no_room(site) {
                let reason = "there is no memory for its message";
                self.end(TRY_AGAIN, reason);
                self.unclean = true;
                return (all, Some(reason));
            }
            let (used, event) = match self.receiver.poll(self.step_of(data), self.inbox.incoming()) {
                Ok(polled) => polled,
                Err(fault) => {
                    self.end(fault.code, fault.reason);
                    self.unclean = true;
                    return (all, Some(fault.reason));
                }
            };
            data = data.get(used..).unwrap_or_default();
            self.count();
            if matches!(event, Event::Ping(_) | Event::Pong(_)) && !self.bears_sign() {
                let reason = "too many pings or pongs";
                self.end(POLICY, reason);
                (self.flooded, self.unclean) = (true, true);
                return (all, Some(reason));
            }
            match event {
                Event::NeedMore => {}
                Event::Message { kind, length } => {
                    self.inbox.complete(match kind {
                        Kind::Text => MessageKind::Text,
                        Kind::Binary => MessageKind::Binary,
                    });
                    self.received.add(length);
                    counters.note_received(length);
                }
                Event::Ping(ping) if clogged || self.replies.len() >= MAX_PONGS => self.ping = Some(ping),
                Event::Ping(ping) => put_pong(ping.as_bytes(), &mut self.replies),
                Event::Pong(_) => {}
                Event::Close(close) => {
                    let (code, reason) =
                        close.as_ref().map_or((None, ""), |(code, reason)| (Some(*code), reason.as_str()));
                    put_close(code, reason, &mut self.replies);
                    self.by_peer = true;
                    self.closed = Some(Closed { code: code.unwrap_or(NO_CODE), reason: reason.to_owned() });
                }
            }
        }
        (all - data.len(), None)
    }

    /// Notes a ping or pong; whether there are not too many.
    fn bears_sign(&mut self) -> bool {
        self.calm = self.calm.max(self.heard) + SIGN_NANOS;
        self.calm - self.heard <= MAX_SIGNS * SIGN_NANOS
    }

    /// Frames that have to be sent now that earlier ones have left.
    fn take_replies(&mut self) -> Vec<u8> {
        if let Some(ping) = self.ping.take() {
            put_pong(ping.as_bytes(), &mut self.replies);
        }
        std::mem::take(&mut self.replies)
    }

    /// Ends it from this side: the peer is told.
    fn end(&mut self, code: u16, reason: &str) {
        if self.closed.is_none() {
            put_close(Some(code), reason, &mut self.replies);
            self.closed = Some(Closed { code, reason: reason.to_owned() });
            self.forget_input();
        }
    }

    /// Nothing more is taken or answered.
    fn forget_input(&mut self) {
        (self.input, self.ping) = (Vec::new(), None);
    }

    /// The peer is gone without a word. What has come before is not lost.
    fn vanish(&mut self) {
        self.ended = true;
        if self.closed.is_none() && self.input.is_empty() {
            self.closed = Some(Closed::abnormal());
            self.unclean = true;
        }
    }

    /// When the peer has to be heard, or asked for a sign of life.
    fn due(&self, site: &Site) -> u64 {
        // While nothing is read, what the peer says is not heard.
        let is_heard = self.closed.is_none() && !self.stopped;
        let Some(settings) = site.websockets.as_ref().filter(|_| is_heard) else { return NEVER };
        let after = |time: std::time::Duration, since: u64| match nanos(time) {
            0 => NEVER,
            time => since.saturating_add(time),
        };
        if self.asked == 0 { after(settings.ping, self.heard) } else { after(settings.timeout, self.asked) }
    }

    /// Bytes in memory.
    pub(super) fn held(&self) -> u64 {
        let received = self.input.len() + self.inbox.held() + self.given;
        (received + self.receiver.held() + self.replies.len()) as u64
    }

    /// How its exchange is written down.
    fn outcome(&self) -> End {
        match &self.closed {
            Some(closed) if closed.code == RESTART => End::Drain,
            _ if self.unclean => End::PeerGone,
            _ => End::Complete,
        }
    }

    /// For whoever looks at it.
    pub(super) fn show(&self) -> WebSocketSnapshot {
        WebSocketSnapshot {
            since: self.began,
            heard: self.heard,
            received: self.received,
            sent: self.sent,
            waiting: self.inbox.waiting(),
            compressed: self.compressed,
        }
    }
}

/// The peer has given no code (RFC 6455 §7.4.1); never sent.
const NO_CODE: u16 = 1005;

impl Counted {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

impl Stream {
    /// When its WebSocket has to be looked at.
    pub(super) fn socket_due(&self, site: &Site) -> u64 {
        self.socket.as_ref().map_or(NEVER, |socket| socket.due(site))
    }

    /// Whether it was a WebSocket whose peer may still send something: at least its part of the closing handshake.
    pub(super) fn awaits_last_frames(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| !socket.by_peer)
    }

    /// Whether its WebSocket is open.
    pub(super) fn has_open_socket(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.closed.is_none())
    }
}

impl Connection {
    /// Whether one of its exchanges is a WebSocket.
    pub(super) fn has_socket(&self) -> bool {
        self.streams().any(|stream| stream.socket.is_some())
    }
}
