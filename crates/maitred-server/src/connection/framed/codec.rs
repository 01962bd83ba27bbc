//! The seam to a protocol with frames: bytes to events, values to frames. Without I/O, without a clock.

use maitred_h1::HeadFacts;
use maitred_http::{RequestHead, ResponseHead};

/// A protocol whose frames carry many streams on one connection.
///
/// Heads are made into frames in the order in which they are sent, and those received are read in the order of their arrival:
/// a compression with a state (HPACK, RFC 7541) needs both.
pub(crate) trait Codec: Send {
    /// The first event of `data`, and how many of its bytes are used up.
    ///
    /// # Errors
    /// What was received is not of this protocol: the connection ends.
    fn poll<'a>(&mut self, data: &'a [u8]) -> Result<(usize, Event<'a>), &'static str>;

    /// Appends the head of a response; `ends` where nothing follows it.
    fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>);

    /// Whether a frame of data can say that it is the last one; otherwise [`put_end`](Self::put_end) follows it.
    fn ends_with_data(&self) -> bool;

    /// Appends what stands before `length` bytes of a body.
    fn put_data(&mut self, stream: u32, length: usize, ends: bool, out: &mut Vec<u8>);

    /// Appends the end of a stream whose last byte has been sent before.
    fn put_end(&mut self, stream: u32, out: &mut Vec<u8>);

    /// Appends that nothing more of this stream is sent or wanted.
    fn put_reset(&mut self, stream: u32, out: &mut Vec<u8>);

    /// Appends that the peer may send so many bytes more, on a stream, or with 0 on the connection.
    fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>);

    /// The most bytes of a body in one frame.
    fn max_data(&self) -> usize;

    /// The bytes that each side may send before it is given more, of a stream and of a connection.
    fn windows(&self) -> (u64, u64);

    /// The most streams at once.
    fn max_streams(&self) -> usize;
}

/// What a peer has sent.
#[cfg_attr(not(test), expect(dead_code, reason = "HTTP/2 comes next; until then tests are its only users"))]
pub(crate) enum Event<'a> {
    /// More bytes are needed.
    NeedMore,
    /// A request begins.
    Head { stream: u32, head: Box<RequestHead>, facts: HeadFacts, tunnel: bool },
    /// A part of its body.
    Data { stream: u32, bytes: &'a [u8] },
    /// It is complete.
    End { stream: u32 },
    /// The peer wants nothing more of it.
    Reset { stream: u32 },
    /// So many bytes more may be sent on a stream, or with 0 on the connection.
    Credit { stream: u32, bytes: u32 },
}
