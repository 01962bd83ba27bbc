//! Sending: heads, headers of data frames, resets, credit and the end.

use maitred_http::fields::{is_token, is_value};
use maitred_http::{FieldSet, ResponseHead};

use super::{Connection, Leaving, Probe};
use crate::counted::Counted;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, Data, MAX_31};
use crate::priority::Priority;
use crate::settings::FIRST_WINDOW;
use crate::streams::Known;

/// The bytes of the PING whose acknowledgement says that the peer knows that we leave.
pub(super) const LEAVING_PING: [u8; 8] = *b"leaving\0";

const WINDOW_PING: [u8; 8] = *b"window\0\0";

/// The time between two of them, in nanoseconds: a way that is much shorter needs no wider window. Source: gRPC and hyper measure it with
/// each round trip.
const PROBE_EVERY: u64 = 50_000_000;

/// Bytes of a body that have to be taken before: half of the window that a stream has at first.
const PROBED_FROM: u64 = 128 * 1024;

/// The most bytes of a frame, also where the peer takes longer ones: a more urgent stream has to wait for the end of a
/// frame.
const MAX_SENT: u32 = 16_384;

impl Connection {
    /// Appends the first frames of this side: SETTINGS, and the connection's window.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.settings.put(out);
        self.counted.note_sent(frame::SETTINGS);
        let more = self.settings.connection_window - FIRST_WINDOW;
        if more > 0 {
            frame::put_window_update(0, more, out);
            self.counted.note_sent(frame::WINDOW_UPDATE);
        }
    }

    /// Appends the head of a response, or an interim one, on an open stream; `ends` where nothing follows. Fields that belong to a
    /// connection (RFC 9113 §8.2.2) and those that cannot be sent are left out, names get lower case. Nothing is appended for a stream
    /// that is over.
    pub fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>) {
        self.put_block(stream, Some(head.status.code()), &head.fields, ends, out);
    }

    /// Appends trailers, which end the stream. Which fields may be some (RFC 9110 §6.5.1) is the caller's to know.
    pub fn put_trailers(&mut self, stream: u32, fields: &FieldSet, out: &mut Vec<u8>) {
        self.put_block(stream, None, fields, true, out);
    }

    fn put_block(
        &mut self,
        stream: u32,
        status: Option<u16>,
        fields: &FieldSet,
        ends: bool,
        out: &mut Vec<u8>,
    ) {
        if self.streams.open(stream).is_none_or(|stream| stream.sent) {
            return;
        }
        let (encoder, max) = (&mut self.encoder, self.peer.max_frame.min(MAX_SENT) as usize);
        let mut plain = 0;
        let (length, further) = frame::put_headers(stream, ends, max, out, |out| {
            encoder.begin(out);
            if let Some(status) = status {
                encoder.status(status, out);
                plain += b":status".len() + 3;
            }
            let checked = fields.is_checked();
            for (name, value) in fields.iter() {
                let can_be_sent = checked || is_token(name) && is_value(value);
                if !can_be_sent || is_of_a_connection(name) {
                    continue;
                }
                encoder.field(name, value, out);
                plain += name.len() + value.len();
            }
        });
        self.counted.note_sent(frame::HEADERS);
        (0..further).for_each(|_| self.counted.note_sent(frame::CONTINUATION));
        self.counted.heads_sent.0 += length as u64;
        self.counted.heads_sent.1 += plain as u64;
        if ends {
            self.streams.sent(stream);
        }
    }

    /// Appends the frame header before `length` bytes of a body; at most [`max_data`](Self::max_data), and within the
    /// windows.
    pub fn put_data(&mut self, stream: u32, length: usize, ends: bool, out: &mut Vec<u8>) {
        Data::put(stream, length as u32, ends, out);
        self.counted.note_sent(frame::DATA);
        self.buckets.data_sent();
        if ends {
            self.streams.sent(stream);
        }
    }

    /// Appends a reset of this stream: nothing more of it is sent or wanted. Nothing is appended for a closed stream. A
    /// reset that the peer has caused counts in the budgets: a refused stream, and any error.
    pub fn put_reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        if self.streams.open(stream).is_none() {
            return;
        }
        self.reset(stream, code, out);
        let counted = match code {
            ErrorCode::RefusedStream => {
                self.counted.refused += 1;
                self.buckets.refused.take(1, self.now)
            }
            ErrorCode::NoError | ErrorCode::Cancel | ErrorCode::InternalError | ErrorCode::ConnectError => {
                Ok(())
            }
            _ => self.buckets.errors.take(1, self.now),
        };
        self.passed = self.passed.or(counted.err());
    }

    /// Gives the peer credit, on a stream, or with 0 on the connection: for data that was taken, and for no other. It is gathered, and
    /// appended when it is a quarter of the window. Nothing is appended for a stream whose request is complete.
    pub fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        if stream == 0 {
            return self.give_back(bytes, out);
        }
        let Some(open) = self.streams.open(stream).filter(|stream| !stream.received) else { return };
        if let Some(bytes) = open.window.give(bytes) {
            frame::put_window_update(stream, bytes, out);
            self.counted.note_sent(frame::WINDOW_UPDATE);
        }
    }

    /// Sends a PING; an [event](crate::Event::Narrow) follows if the window of this stream is too small. Not for a body that is short, or
    /// fits it.
    pub(super) fn begin_probe(&mut self, number: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.open(number) else { return };
        let given = stream.window.given();
        let fits = stream.left.is_some_and(|left| left <= stream.window.left().into());
        let is_long = given >= PROBED_FROM && !fits;
        if self.probe.stream == 0 && is_long && self.now.saturating_sub(self.probe.since) >= PROBE_EVERY {
            self.probe = Probe { stream: number, since: self.now, given };
            frame::put_ping(WINDOW_PING, false, out);
            self.counted.note_sent(frame::PING);
        }
    }

    /// The PING has come back that measures the way to the peer, if these are its bytes: which stream's window is too small, and by how
    /// many bytes.
    pub(super) fn end_probe(&mut self, bytes: [u8; 8]) -> Option<Option<(u32, u32)>> {
        let Probe { stream: number, since, given } = self.probe;
        if bytes != WINDOW_PING || number == 0 {
            return None;
        }
        self.probe.stream = 0;
        let (time, most) = (self.now.saturating_sub(since), self.settings.max_stream_window);
        let stream = self.streams.open(number).filter(|stream| !stream.received);
        let lack = stream.map_or(0, |stream| {
            let bytes = stream.window.given().saturating_sub(given);
            stream.window.lacks(bytes, time, most)
        });
        Some((lack > 0).then_some((number, lack)))
    }

    /// Gives the peer a wider window for an open stream, by so many bytes.
    pub fn widen(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        let Some(open) = self.streams.open(stream).filter(|stream| !stream.received) else { return };
        open.window.widen(bytes);
        frame::put_window_update(stream, bytes, out);
        self.counted.note_sent(frame::WINDOW_UPDATE);
    }

    /// The bytes of a body that the peer may still send on a stream (RFC 9113 §6.9); 0 where it is over.
    pub fn window_of(&mut self, stream: u32) -> u32 {
        self.streams.open(stream).filter(|stream| !stream.received).map_or(0, |stream| stream.window.left())
    }

    /// Appends why the connection ends.
    pub fn put_goaway(&mut self, error: &ConnectionError, out: &mut Vec<u8>) {
        frame::put_goaway(self.last, error.code, error.reason, out);
        self.counted.note_sent(frame::GOAWAY);
    }

    /// Appends that no further streams are taken soon (RFC 9113 §6.8): a GOAWAY for none of them yet, and a PING. When the peer has
    /// acknowledged that, the control bytes get the GOAWAY with the last stream, and later ones are ignored. A second call does not wait
    /// for that, and a third one does nothing.
    pub fn put_drain(&mut self, out: &mut Vec<u8>) {
        match self.leaving {
            Leaving::No => {
                frame::put_goaway(MAX_31, ErrorCode::NoError, "", out);
                frame::put_ping(LEAVING_PING, false, out);
                self.counted.note_sent(frame::GOAWAY);
                self.counted.note_sent(frame::PING);
                self.leaving = Leaving::Told;
            }
            Leaving::Told => self.put_last(out),
            Leaving::Last(_) => {}
        }
    }

    pub(super) fn put_last(&mut self, out: &mut Vec<u8>) {
        frame::put_goaway(self.last, ErrorCode::NoError, "", out);
        self.counted.note_sent(frame::GOAWAY);
        self.leaving = Leaving::Last(self.last);
    }

    /// The most bytes of a body in one frame.
    pub fn max_data(&self) -> usize {
        self.peer.max_frame.min(MAX_SENT) as usize
    }

    /// The bytes that a new stream may send before it is given more, 0 to 2^31 − 1.
    pub fn initial_window(&self) -> u32 {
        self.peer.window
    }

    /// The open streams: those of which either side has not sent its end.
    pub fn open_streams(&self) -> usize {
        self.streams.open_count()
    }

    /// Whether a stream is open.
    pub fn is_open(&mut self, stream: u32) -> bool {
        matches!(self.streams.known(stream), Known::Open(_))
    }

    /// Whether the peer has begun a header block and not completed it: nothing else can come before the rest.
    pub fn is_within_block(&self) -> bool {
        self.gathering.is_some()
    }

    /// The bytes of memory of a header block that is not complete.
    pub fn gathered(&self) -> usize {
        if self.gathering.is_some() { self.block.capacity() } else { 0 }
    }

    /// The bytes of memory that the connection owns beside itself, used or not.
    pub fn memory(&self) -> usize {
        let kept = self.block.capacity() + self.cookie.capacity();
        let priorities = self.priorities.capacity() * size_of::<(u32, Priority)>();
        kept + priorities + self.streams.memory() + self.decoder.memory() + self.encoder.memory()
    }

    /// Returns the counters since the last call.
    pub fn counted(&mut self) -> Counted {
        std::mem::take(&mut self.counted)
    }
}

/// Whether a field says something about a connection of HTTP/1 (RFC 9113 §8.2.2, RFC 9110 §7.6.1), so that no application sends it.
/// `Trailer` does not: it names the fields behind the body.
fn is_of_a_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 9] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-authentication-info",
        b"te",
        b"transfer-encoding",
        b"upgrade",
    ];
    // The first letter tells nearly all fields apart from these.
    matches!(name.first().map(|byte| byte | 0x20), Some(b'c' | b'k' | b'p' | b't' | b'u'))
        && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}
