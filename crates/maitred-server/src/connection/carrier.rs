//! The two protocols as carriers of exchanges: the difference between them.
//!
//! ```text
//! turn, calls of handlers                       carrier
//!   send_own, begin_run, drop_rest      ------->   H1: bytes of one exchange after the other
//!   send_part, send_last, end_responses ------->   Framed: frames of many exchanges at once
//!   streams, put, take_stream           ------->
//! ```
//! Code that differs by protocol is a method of `H1` or `Framed`, and belongs here if shared code calls it. Code that is the same for
//! both is a function of a `carrier` and the [`Wire`] below it: time limits, slow readers, WebSockets. What a handler calls from its
//! thread is a method of `Connection` (`calls.rs`). Exchanges know neither: they know the turn (`mod.rs`).

use std::sync::Arc;

use maitred_exchange::{Awaited, OwnLimits, Received, Record, Response, Site, Stream, Writer};
use maitred_h1::HeadFacts;
use maitred_http::{FieldSet, RequestHead};
use maitred_log::End;
use maitred_runtime::{Flow, Last, SendError};

use super::framed::Framed;
use super::h1::H1;
use super::responder::Encoder;
use super::wire::Wire;
use super::{Context, Group, Key, NEVER, Turn};
use crate::group::slots::Token;

/// The protocol of a connection.
pub(crate) enum Protocol {
    /// One exchange at a time, in the order of the requests.
    H1(H1),
    /// HTTP/2: any number of exchanges at once, interleaved in frames.
    Framed(Box<Framed>),
}

impl Protocol {
    /// HTTP/1 before the first request.
    pub(crate) fn h1() -> Self {
        Self::H1(H1::default())
    }
}

/// Calls a function with the protocol of a connection as its carrier, and with the wire.
macro_rules! with_carrier {
    ($connection:expr, |$carrier:ident, $wire:ident| $call:expr) => {{
        let $crate::connection::Connection { protocol, wire: $wire, .. } = $connection;
        match protocol {
            $crate::connection::Protocol::H1($carrier) => $call,
            $crate::connection::Protocol::Framed(framed) => {
                let $carrier = &mut **framed;
                $call
            }
        }
    }};
}

/// As [`with_carrier`], to look only.
macro_rules! see_carrier {
    ($connection:expr, |$carrier:ident, $wire:ident| $call:expr) => {{
        let $crate::connection::Connection { protocol, wire: $wire, .. } = $connection;
        match protocol {
            $crate::connection::Protocol::H1($carrier) => $call,
            $crate::connection::Protocol::Framed(framed) => {
                let $carrier = &**framed;
                $call
            }
        }
    }};
}

/// Calls a function with the carrier of the exchange of a key, and with the wire, under the lock of the slot; none if no handler has that
/// exchange any more.
macro_rules! with_exchange {
    ($group:expr, $key:expr, |$carrier:ident, $wire:ident| $call:expr) => {
        $group.with_stream($key, |connection| {
            $crate::connection::carrier::with_carrier!(connection, |$carrier, $wire| $call)
        })
    };
}

pub(crate) use {see_carrier, with_carrier, with_exchange};

/// A part of a handler's response, encoded.
pub(crate) struct ResponsePart<'a> {
    /// Has the heads of which frames are made.
    pub(super) encoder: &'a mut Encoder,
    /// Over HTTP/1, head and framing before the content; of a WebSocket, the head of a frame.
    pub(super) before: &'a mut Vec<u8>,
    pub(super) content: Last<'a>,
    /// Over HTTP/1, framing behind the content.
    pub(super) behind: &'static [u8],
    /// An interim response, which HTTP/1 drops if an earlier one still waits.
    pub(super) interim: bool,
}

impl ResponsePart<'_> {
    /// Whether nothing is sent.
    pub(super) fn is_empty(&self) -> bool {
        !self.encoder.is_framed() && self.before.is_empty() && self.content.is_empty()
    }
}

/// Facts of a response that ends with its last part.
pub(crate) struct Ending<'a> {
    /// Fields behind the body, where the connection has frames.
    pub(super) trailers: Option<Box<FieldSet>>,
    /// The response is whole, and over HTTP/1 another request may follow.
    pub(super) reusable: bool,
    /// The part leaves later, with the responses of others.
    pub(super) defers: bool,
    /// Taken by the connection if the part has not left.
    pub(super) record: &'a mut Option<Record>,
    /// The application's label for the response.
    pub(super) label: Option<&'a Arc<str>>,
}

/// An exchange that has ended on its connection.
pub(crate) struct Ended {
    /// Whether the peer was still there.
    pub(super) sent: Result<(), SendError>,
    /// How the connection was lost, if it was.
    pub(super) lost: Option<End>,
    /// Time of the end, in monotonic nanoseconds.
    pub(super) at: u64,
}

/// See the module text.
pub(crate) trait Carrier: Sized {
    /// Whether a turn keeps the interpreter while it waits for the disk: a handler of the same connection could take the interpreter
    /// and wait for the lock of the slot, which the turn holds.
    const KEEPS_INTERPRETER: bool;

    // ---- The exchanges ----

    /// All exchanges, to look at.
    fn streams(&self) -> impl Iterator<Item = &Stream>;

    /// All exchanges.
    fn each_stream(&mut self) -> impl Iterator<Item = &mut Stream>;

    /// The exchange that `key` names, if a handler still answers it.
    fn stream_of(&mut self, key: Key) -> Option<&mut Stream>;

    /// Keeps an exchange that is not over.
    fn put(&mut self, stream: Box<Stream>);

    /// Takes out the exchange that `key` names, if a handler still answers it.
    fn take_stream(&mut self, key: Key) -> Option<Box<Stream>>;

    /// The number under which an exchange is shown; 0 where the connection has one exchange at a time.
    fn shown_number(&self, stream: u32) -> u32;

    /// The queues of response bytes, of all exchanges.
    fn writers<'a>(&'a mut self, wire: &'a mut Wire) -> impl Iterator<Item = &'a mut Writer>;

    /// The queue with the response bytes of an exchange.
    fn writer_of<'a>(&'a mut self, wire: &'a mut Wire, key: Key) -> Option<&'a mut Writer>;

    /// Whether no part of a request has arrived and nothing waits to be sent.
    fn is_idle(&self, wire: &Wire) -> bool;

    /// Bytes of memory of a head of which some frames are missing.
    fn gathered(&self) -> u64;

    /// Memory of an exchange beside its head, in bytes, where a peer may begin many.
    fn memory_of_one(&self) -> u64;

    // ---- Verbs of an exchange ----

    /// Sends a response of the engine to a request that no handler has.
    fn send_own(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        response: Response,
    ) -> Received;

    /// Sends a part of the response of a handler.
    ///
    /// # Errors
    /// The peer is gone.
    fn send_part(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
    ) -> Result<Flow, SendError>;

    /// Sends the last part of the response of a handler, and ends the exchange.
    fn send_last(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
        ending: Ending<'_>,
    ) -> Ended;

    /// Sends the response of the engine in the place of a handler that is late. Returns the turn that follows if the
    /// connection ends with it.
    fn answer_late(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        awaited: Awaited,
    ) -> Option<Turn>;

    /// Makes the encoder for the response of a handler that gets the request of `stream` now.
    fn begin_run(
        &mut self,
        wire: &mut Wire,
        context: &Context<'_>,
        stream: &Stream,
        head: &RequestHead,
    ) -> Encoder;

    /// Has the rest of a body dropped as it comes, because its request has been answered.
    fn drop_rest(&mut self, wire: &mut Wire, context: &Context<'_>, facts: HeadFacts);

    /// Gives the peer credit for so many bytes of a body that the exchange has taken, at most for all that it has not been given for.
    fn credit(&mut self, number: u32, bytes: u64);

    /// Sets the limits that the application asks for its response, beside all other limits.
    fn limit_response(&mut self, wire: &mut Wire, key: Key, own: OwnLimits);

    /// Sends frames of the engine on a WebSocket.
    ///
    /// # Errors
    /// The peer is gone.
    fn send_socket_frames(&mut self, wire: &mut Wire, group: &Group, key: Key) -> Result<(), SendError>;

    /// Ends the responses of these exchanges, which are all of the connection in HTTP/1, because of what `end` says.
    fn end_responses(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        numbers: &[u32],
        end: End,
    ) -> Option<Turn>;

    /// Whether a handler of this exchange has to wait until its peer has taken bytes.
    fn is_full(&self, wire: &Wire, group: &Group, key: Key) -> bool;

    /// Whether the bytes that are queued for the socket are so many that handlers wait; [`is_full`](Self::is_full) asks for one exchange.
    fn is_writer_full(&self, wire: &Wire, group: &Group) -> bool;

    // ---- For the wire ----

    /// Time at which a limit lets more of some response leave, or reading goes on, in monotonic nanoseconds.
    fn resumes_at(&self) -> u64;

    /// The longest send timeout of the responses that have something to send, in milliseconds; 0 for none.
    fn longest_send_timeout(&self, site: &Site) -> u32;

    /// Restarts the time of the peer for its body, which did not run while response bytes waited.
    fn go_on_with_body(&mut self, wire: &mut Wire, group: &Group, token: Token);

    /// Writes down the answered exchanges, because the peer is gone.
    fn drop_answered(&mut self, wire: &Wire, group: &Group);

    // ---- Provided ----

    /// Tells the handlers that the state of the connection has changed.
    fn tell(&mut self) {
        self.each_stream().for_each(|stream| stream.tell());
    }

    /// Tells the handlers that sending is impossible from now on.
    fn tell_gone(&mut self) {
        for stream in self.each_stream() {
            stream.flags().set_gone();
            stream.tell();
        }
    }

    /// Whether a handler has one of the exchanges.
    fn is_running(&self) -> bool {
        self.streams().any(|stream| stream.running)
    }

    /// Earliest deadline of the exchanges: of a response that has to begin, of a body, of a reader.
    fn request_due(&self) -> u64 {
        self.streams().map(|stream| stream.response_due().min(stream.due)).min().unwrap_or(NEVER)
    }

    /// Earliest deadline of the WebSockets.
    fn sockets_due(&self, site: &Site) -> u64 {
        self.streams().map(|stream| stream.socket_due(site)).min().unwrap_or(NEVER)
    }

    /// Ends the time limit when the first byte of the response is on its way.
    fn begin_response(&mut self, key: Key) {
        if let Some(stream) = self.stream_of(key) {
            stream.awaited = None;
        }
    }

    /// Restarts the time limit when the handler has read a part of a live body.
    fn note_body_read(&mut self, key: Key) {
        if let Some(stream) = self.stream_of(key) {
            stream.put_off();
        }
    }

    /// Whether a request that runs or waits to be run has a time limit and no response yet.
    fn awaits_response(&self) -> bool {
        self.streams().any(|stream| stream.awaited.is_some())
    }

    /// Notes that the response begins and that the body is not asked for any more. Returns whether a connection of HTTP/1
    /// must end after the response.
    fn begin_answer(&mut self, key: Key) -> bool {
        self.stream_of(key).and_then(Stream::live).is_some_and(|live| {
            let last = live.is_last();
            live.interim = None;
            live.answering = true;
            last
        })
    }

    /// Whether an exchange of the connection is a WebSocket.
    fn has_socket(&self) -> bool {
        self.streams().any(|stream| stream.socket.is_some())
    }
}
