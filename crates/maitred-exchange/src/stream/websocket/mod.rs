//! WebSocket (RFC 6455): the state of a request after its handler has accepted one. Messages go in both directions
//! until one side closes.
//!
//! ```text
//! handler's thread                          connection                      turns
//!   accept ------------- slot's lock -----> the socket begins
//!   take_messages <------------------------ inbox <------------------------ READ: frames to messages
//!   send_message -------------------------> writer                          PING: answered at once
//!                                           pings of ours <---------------- TIMER: the peer is silent
//!   close, or told of the end ------------> the last frame <--------------- CLOSE, a fault, the drain
//! ```
//! Over HTTP/1.1 the WebSocket takes the whole connection; over HTTP/2 (RFC 8441) one stream.
//!
//! Promises: control frames are answered whatever the handler does; of pongs that the peer does not take the last one
//! is kept. Messages that the handler has not taken hold at most [`INBOX`] bytes and one message; then nothing more
//! is read, and TCP slows the peer down. Bytes read by then stay encoded: a few bytes can inflate to many. Beyond
//! [`INBOX`] bytes each, messages of all sockets count in the budget of bodies in memory (`room.rs`). After the first
//! close, of either side, nothing is read and nothing of the handler is sent.
//!
//! Leaves out: the format of frames (maitred-ws), and the opening handshake (`handshake.rs`).

mod handshake;
mod room;
mod turns;

use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Closed, MessageKind, Messages};
use maitred_spool::Kept;
use maitred_ws::{Control, Deflate, Event, Kind, Limits, Receiver, put_close, put_ping, put_pong};

use crate::site::{Share, Site};
use crate::{NEVER, nanos};
pub use handshake::{Agreed, Objection, Offer, VERSION, asked};

/// Most bytes of messages that wait for the handler. Beyond it nothing more is read.
pub const INBOX: usize = 64 * 1024;

/// Most fragments of a message (RFC 6455 §5.4), since each costs work, however short. Beyond: close with 1009.
const MAX_FRAGMENTS: u32 = 131_072;

/// Largest ratio of a message to its compressed form; text is seldom above 20. Beyond: close with 1009.
const MAX_RATIO: u32 = 200;

/// Bytes of a message that may exceed the ratio: tests and empty images consist of one repeated byte.
pub const SHORT: u64 = 4 * 1024 * 1024;

/// Most bytes of pongs made at once. Of further pings the last is answered (RFC 6455 §5.5.3).
const MAX_PONGS: usize = 16 * 1024;

/// Pings and pongs that a peer may send at once, and the time in nanoseconds after which one more is allowed: as with
/// PING of HTTP/2. Each takes the engine's time from others, and none reaches the application, which would slow the
/// peer down. Beyond: close with 1008.
pub const MAX_SIGNS: u64 = 1_000;
const SIGN_NANOS: u64 = 5_000_000;

/// Close code: the peer floods (RFC 6455 §7.4.1).
const POLICY: u16 = 1008;

/// Close code: the server stops, and another one will be there.
const RESTART: u16 = 1012;

/// Close code: the server has no room for a message.
const TRY_AGAIN: u16 = 1013;

/// Close code: the peer has been silent for too long.
const SILENT: u16 = 1011;

/// State of a WebSocket; see the module text.
pub struct Socket {
    receiver: Receiver,
    /// Received bytes that are not decoded, for want of room.
    input: Vec<u8>,
    /// Whole messages that wait for the handler.
    pub inbox: Messages,
    /// Bytes of the messages of the last handout, until the handler takes the next ones.
    given: usize,
    /// The handler has asked for messages, found none, and waits.
    awaited: bool,
    /// Reading has stopped until the handler asks for messages.
    stopped: bool,
    /// No byte follows `input`.
    ended: bool,
    /// Share of the messages beyond [`INBOX`] in the budget of bodies.
    pub kept: Kept,
    /// The way of the end; nothing is read or sent after the end.
    pub closed: Option<Closed>,
    /// The peer has begun the close: no byte of it is on its way.
    by_peer: bool,
    /// The end had no closing handshake, or the peer broke the rules.
    unclean: bool,
    /// The peer has sent too many pings or pongs. The engine does not wait for its close frame, behind which all
    /// frames before it would have to be read.
    pub flooded: bool,
    /// Frames of the engine that have to be sent.
    replies: Vec<u8>,
    /// Content of the last ping without a pong; earlier pongs wait for the peer.
    ping: Option<Control>,
    /// Time of the last bytes from the peer, in monotonic nanoseconds.
    heard: u64,
    /// Time at which the peer may send [`MAX_SIGNS`] pings and pongs again, in monotonic nanoseconds.
    calm: u64,
    /// Time of the engine's unanswered ping, in monotonic nanoseconds; 0 if there is none.
    asked: u64,
    /// Time of the opening, in monotonic nanoseconds.
    began: u64,
    received: Counted,
    sent: Counted,
    /// Messages are compressed.
    compressed: bool,
    /// Share of the compression contexts in their budget, until the end; none where each message is compressed by
    /// itself.
    _share: Option<Share>,
}

/// Messages of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of the messages, uncompressed.
    pub bytes: u64,
}

/// The state of a WebSocket at one moment, for the control.
#[derive(Clone, Debug)]
pub struct WebSocketSnapshot {
    /// Time of the opening, in monotonic nanoseconds.
    pub since: u64,
    /// Time of the last bytes from the peer, in monotonic nanoseconds.
    pub heard: u64,
    /// Messages from the peer.
    pub received: Counted,
    /// Messages to the peer.
    pub sent: Counted,
    /// Bytes that wait for the application.
    pub waiting: usize,
    /// Messages are compressed.
    pub compressed: bool,
}

impl Socket {
    /// Returns a WebSocket that opens now.
    pub fn new(site: &Site, deflate: Option<&Deflate>, share: Option<Share>) -> Box<Self> {
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

    /// Decodes bytes of the peer as far as there is room, and keeps the rest; `clogged` says that earlier pongs wait
    /// for the peer. Returns the reason if these bytes close the WebSocket.
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

    /// Decodes while there is room. Returns the number of consumed bytes, and the reason of a close.
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

    /// Notes a ping or pong. Returns false when there are too many.
    fn bears_sign(&mut self) -> bool {
        self.calm = self.calm.max(self.heard) + SIGN_NANOS;
        self.calm - self.heard <= MAX_SIGNS * SIGN_NANOS
    }

    /// Returns the frames to send after earlier ones have left.
    pub fn take_replies(&mut self) -> Vec<u8> {
        if let Some(ping) = self.ping.take() {
            put_pong(ping.as_bytes(), &mut self.replies);
        }
        std::mem::take(&mut self.replies)
    }

    /// Closes from this side with a close frame.
    fn end(&mut self, code: u16, reason: &str) {
        if self.closed.is_none() {
            put_close(Some(code), reason, &mut self.replies);
            self.closed = Some(Closed { code, reason: reason.to_owned() });
            self.forget_input();
        }
    }

    /// Drops the input; nothing more is taken or answered.
    fn forget_input(&mut self) {
        (self.input, self.ping) = (Vec::new(), None);
    }

    /// Notes a peer that is gone without a close frame. Messages received before are kept.
    fn vanish(&mut self) {
        self.ended = true;
        if self.closed.is_none() && self.input.is_empty() {
            self.closed = Some(Closed::abnormal());
            self.unclean = true;
        }
    }

    /// Time at which the peer must have sent something or gets a ping, in monotonic nanoseconds.
    fn due(&self, site: &Site) -> u64 {
        // While reading has stopped, the peer cannot be heard.
        let is_heard = self.closed.is_none() && !self.stopped;
        let Some(settings) = site.websockets.as_ref().filter(|_| is_heard) else { return NEVER };
        let after = |time: std::time::Duration, since: u64| match nanos(time) {
            0 => NEVER,
            time => since.saturating_add(time),
        };
        if self.asked == 0 { after(settings.ping, self.heard) } else { after(settings.timeout, self.asked) }
    }

    /// Bytes in memory.
    pub fn held(&self) -> u64 {
        let received = self.input.len() + self.inbox.held() + self.given;
        (received + self.receiver.held() + self.replies.len()) as u64
    }

    /// The end of the exchange for its record.
    fn outcome(&self) -> End {
        match &self.closed {
            Some(closed) if closed.code == RESTART => End::Drain,
            _ if self.unclean => End::PeerGone,
            _ => End::Complete,
        }
    }

    /// Returns a view for the control.
    pub fn show(&self) -> WebSocketSnapshot {
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
