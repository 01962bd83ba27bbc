//! The seam to a protocol with frames: bytes to events, values to frames. Without I/O, without a clock.

use maitred_h1::HeadFacts;
use maitred_http::{FieldSet, RequestHead, ResponseHead, Status};

use crate::site::Site;

/// A protocol whose frames carry many streams on one connection.
///
/// Heads are made into frames in the order in which they are sent, and those received are read in the order of their arrival:
/// a compression with a state (HPACK, RFC 7541) needs both. What the peer may send is counted here; what it takes is counted by the
/// connection, which is told of its credit.
pub(crate) trait Codec: Send {
    /// Appends what a server says first.
    fn begin(&mut self, control: &mut Vec<u8>);

    /// The first event of `data`, and how many of its bytes are used up. `head` is filled where a request begins. `control` gets what has
    /// to be answered at once. `now` is in monotonic nanoseconds.
    ///
    /// # Errors
    /// What was received is not of this protocol, or too much of it: the connection ends.
    fn poll<'a>(
        &mut self,
        data: &'a [u8],
        head: &mut RequestHead,
        now: u64,
        control: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), Fault>;

    /// Whether nothing has come of a head that is not complete: nothing else may come before its rest.
    fn is_between_heads(&self) -> bool;

    /// Appends the head of a response; `ends` where nothing follows it.
    fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>);

    /// Appends the fields behind a body; they end the stream.
    fn put_trailers(&mut self, stream: u32, fields: &FieldSet, out: &mut Vec<u8>);

    /// Whether a frame of data can say that it is the last one; otherwise [`put_end`](Self::put_end) follows it.
    fn ends_with_data(&self) -> bool;

    /// Appends what stands before `length` bytes of a body.
    fn put_data(&mut self, stream: u32, length: usize, ends: bool, out: &mut Vec<u8>);

    /// Appends the end of a stream whose last byte has been sent before.
    fn put_end(&mut self, stream: u32, out: &mut Vec<u8>);

    /// Appends that nothing more of this stream is sent or wanted.
    fn put_reset(&mut self, stream: u32, why: Why, out: &mut Vec<u8>);

    /// Appends that the peer may send so many bytes more, on a stream, or with 0 on the connection; at once or with later ones.
    fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>);

    /// Appends that the window of a stream is wider by so many bytes.
    fn widen(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>);

    /// Appends that no further request is wanted; those that are on their way are served.
    fn put_drain(&mut self, out: &mut Vec<u8>);

    /// Appends that the connection ends, because of the fault that there has been, or in peace.
    fn put_last(&mut self, out: &mut Vec<u8>);

    /// The most bytes of a body in one frame.
    fn max_data(&self) -> usize;

    /// The bytes that a new stream, and a new connection, may send before the peer gives more.
    fn windows(&self) -> (u32, u32);

    /// The bytes of a body that the peer may still send on a stream; 0 where it is over.
    fn window_of(&mut self, stream: u32) -> u32;

    /// The fault of a peer that makes a window larger than it may be.
    fn overflow(&mut self) -> Fault;

    /// The fault of a peer of which too much has to be kept.
    fn calm(&mut self, reason: &'static str) -> Fault;

    /// Bytes of memory of a head that is not complete.
    fn gathered(&self) -> usize;

    /// The most streams at once.
    fn max_streams(&self) -> usize;

    /// Adds to the figures what has been counted since the last call, and how many responses have had to wait for the window of their
    /// stream, and of their connection.
    fn count(&mut self, site: &Site, waits: [u64; 2]);
}

/// The most bytes that a window may have (RFC 9113 §6.9.1).
pub(crate) const MAX_WINDOW: i64 = (1 << 31) - 1;

/// Why a connection ends, for people. The codec knows what the peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) reason: &'static str,
    /// The peer sends too much of something: reading on would go on with the work that it makes.
    pub(crate) is_flood: bool,
}

/// Why a stream is reset by this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was not begun: there are too many.
    Refused,
    /// The response is complete, and the rest of the request is not wanted.
    Answered,
    /// The response cannot be completed.
    Cut,
    /// The server, or an operator, ends it.
    Ended,
    /// The peer gives a window more than it may have.
    Overflow,
}

/// How urgent a response is (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    /// From 0, which comes first, to 7.
    pub(crate) urgency: u8,
    /// A part of it is of use.
    pub(crate) incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

/// What a peer has sent.
pub(crate) enum Event<'a> {
    /// More bytes are needed.
    NeedMore,
    /// A request begins; the head is filled.
    Head {
        stream: u32,
        facts: HeadFacts,
        tunnel: bool,
        /// It asks for a WebSocket by an extended CONNECT (RFC 8441 §4).
        websocket: bool,
        /// If the peer says so.
        priority: Option<Priority>,
        /// It cannot be served, and is answered so.
        objection: Option<(Status, &'static str)>,
    },
    /// A part of its body.
    Data { stream: u32, bytes: &'a [u8] },
    /// It is complete.
    End { stream: u32 },
    /// Nothing more of it is sent or wanted: by the peer, or for what it has done.
    Reset { stream: u32 },
    /// So many bytes more may be sent on a stream, or with 0 on the connection.
    Credit { stream: u32, bytes: u32 },
    /// The windows of all streams change by so many bytes.
    Window { change: i64 },
    /// The window of a stream is too small for the way to the peer: so many bytes more would help.
    Narrow { stream: u32, bytes: u32 },
    /// The peer asks for its response so.
    Priority { stream: u32, priority: Priority },
    /// The peer will make no further requests.
    Leaving,
}
