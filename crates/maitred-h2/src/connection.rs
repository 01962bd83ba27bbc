//! The connection: what comes next, and what is known of streams by their numbers.

use maitred_http::{FieldSet, RequestHead, ResponseHead};

use crate::counted::Counted;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Event;
use crate::settings::Settings;
use crate::upgrade::Upgrade;

/// One connection, of which this is the server.
///
/// Everything that `put_*` appends is sent in the order of the calls: heads are compressed with a state that both sides share.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    counted: Counted,
}

impl Connection {
    /// A connection that begins, with the client's preface to come.
    pub fn new(settings: Settings) -> Self {
        Self { settings, counted: Counted::default() }
    }

    /// A connection that a request of HTTP/1.1 has asked for, which is its stream 1 and complete. The client's preface is still to come.
    pub fn upgraded(settings: Settings, upgrade: &Upgrade) -> Self {
        let _ = upgrade;
        Self::new(settings)
    }

    /// Appends what this side sends first: SETTINGS, and the connection's window.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// The first event of `data`, and how many of its bytes are used up. `head` is written to only when the event is [`Event::Head`], and
    /// else what stands in it is unspecified; its memory is used again. `now` is in monotonic nanoseconds. `control` gets what has to be
    /// answered at once: acknowledgements, resets of streams for errors of the peer, credit for data that nobody gets.
    ///
    /// # Errors
    /// The connection ends; every later call says the same. Control bytes are still to be sent, then
    /// [`put_goaway`](Self::put_goaway).
    pub fn poll<'a>(
        &mut self,
        data: &'a [u8],
        now: u64,
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), ConnectionError> {
        let _ = (data, now, head, control);
        Ok((0, Event::NeedMore))
    }

    /// Appends the head of a response, or an interim one, on an open stream; `ends` where nothing follows. Fields that belong to a
    /// connection (RFC 9113 §8.2.2) and those that cannot be sent are left out, names get lower case.
    pub fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>) {
        let _ = (stream, head, ends, out);
    }

    /// Appends trailers, which end the stream.
    pub fn put_trailers(&mut self, stream: u32, fields: &FieldSet, out: &mut Vec<u8>) {
        let _ = (stream, fields, out);
    }

    /// Appends what stands before `length` bytes of a body; at most [`max_data`](Self::max_data), and within the windows.
    pub fn put_data(&mut self, stream: u32, length: usize, ends: bool, out: &mut Vec<u8>) {
        let _ = (stream, length, ends, out);
    }

    /// Appends that nothing more of this stream is sent or wanted. Nothing is appended for one that is over.
    pub fn put_reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        let _ = (stream, code, out);
    }

    /// Gives the peer credit, on a stream, or with 0 on the connection. It is gathered: appended when it is a quarter of the window.
    pub fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        let _ = (stream, bytes, out);
    }

    /// Appends why the connection ends.
    pub fn put_goaway(&mut self, error: &ConnectionError, out: &mut Vec<u8>) {
        let _ = (error, out);
    }

    /// Appends that no further streams are taken soon (RFC 9113 §6.8): a GOAWAY for none of them yet, and a PING. When the peer has
    /// acknowledged that, the control bytes get the GOAWAY with the last stream, and later ones are ignored.
    pub fn put_drain(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// The most bytes of a body in one frame.
    pub fn max_data(&self) -> usize {
        16_384
    }

    /// The bytes that a new stream may send before it is given more, 0 to 2^31 − 1.
    pub fn initial_window(&self) -> u32 {
        65_535
    }

    /// Whether a head has begun whose end has not come: nothing else may come before it.
    pub fn is_in_head(&self) -> bool {
        false
    }

    /// The open streams.
    pub fn streams(&self) -> usize {
        let _ = self.settings;
        0
    }

    /// What was counted since the last call.
    pub fn counted(&mut self) -> Counted {
        std::mem::take(&mut self.counted)
    }
}
