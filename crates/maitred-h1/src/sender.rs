//! The sending half: one message, framed so that the connection stays in step. A request's head is in
//! [`request`](crate::request).
//!
//! ```text
//! Waiting --send_head--> Fixed | Chunked | UntilClose | Suppressed --finish--> Done
//!    |  ^--send_continue, send_interim
//!    `--send_switching--> Switched          finish without a head: Done, not reusable
//! ```
//!
//! Sections below: the head; bytes.

use maitred_http::body::content_length;
use maitred_http::fields::{is_token, is_value};
use maitred_http::{FieldSet, ResponseHead, Status, Version};

use crate::error::HeadError;
use crate::hop_by_hop::{TRAILER, hop_by_hop, is_forbidden_trailer, names_close};

const SERVER: &[u8] = b"Server: maitred\r\n";

/// The sending half of one exchange. Body bytes do not pass through it: it returns how many may be sent and writes the
/// framing around them. A copy has the same state: it serves to try whether a head can be sent.
#[derive(Clone, Debug)]
pub struct Sender {
    state: State,
    version: Version,
    to_head: bool,
    keep_alive: bool,
    continued: bool,
    trailers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Fixed {
        left: u64,
    },
    Chunked,
    UntilClose,
    /// `permitted`: the response is to HEAD, an application may well produce the body it would
    /// send to GET.
    Suppressed {
        permitted: bool,
    },
    Switched,
    Done {
        reusable: bool,
    },
}

/// The facts of a sent head, and its differences from the application's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadReport {
    /// The number of body bytes that will be sent; `None` when it shows at the end.
    pub length: Option<u64>,
    /// Hop-by-hop fields of the application that were not sent (RFC 9110 §7.6.1); worth a line in
    /// the error log. `Connection: close` is honoured and not reported.
    pub removed: Vec<&'static str>,
    /// The application's Content-Length where it contradicted the known length (which was sent).
    pub wrong_length: Option<u64>,
    /// The connection closes after this response.
    pub close: bool,
}

/// How to send a part of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPlan {
    /// How many of the bytes to send, from the first.
    pub allowed: u64,
    /// How many bytes are too many: the body is longer than declared, or not permitted at all. Zero
    /// when they are left out because the request was HEAD.
    pub surplus: u64,
    /// The bytes to send behind the allowed ones.
    pub suffix: &'static [u8],
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Another response can follow on the connection; if not, it must be closed.
    pub reusable: bool,
    /// How many bytes of the declared length were not sent.
    pub short_by: u64,
}

impl Sender {
    /// The sender for the answer to a request of `version`; `to_head`: its method is HEAD;
    /// `keep_alive`: the peer wants the connection kept (see
    /// [`HeadFacts::keep_alive`](crate::HeadFacts::keep_alive)) and so do we.
    pub fn new(version: Version, to_head: bool, keep_alive: bool) -> Self {
        Self { state: State::Waiting, version, to_head, keep_alive, continued: false, trailers: false }
    }

    /// The sender of a request whose head, with the framing of a body of this length, has been written.
    pub(crate) fn behind_request_head(length: Option<u64>, keep_alive: bool) -> Self {
        let state = length.map_or(State::Chunked, |left| State::Fixed { left });
        Self { state, ..Self::new(Version::Http11, false, keep_alive) }
    }

    /// Closes the connection after this response. The peer is told if the head is not sent yet.
    pub fn close_after(&mut self) {
        self.keep_alive = false;
    }

    /// Has the head keep its field `Trailer` (RFC 9110 §6.6.2): the named fields come with [`finish`](Self::finish).
    pub fn announce_trailers(&mut self) {
        self.trailers = true;
    }

    /// Whether trailers have a place: behind a chunked body.
    pub fn is_chunked(&self) -> bool {
        self.state == State::Chunked
    }

    /// Whether no body follows the head: the request was HEAD, or the status forbids one.
    pub fn is_suppressed(&self) -> bool {
        matches!(self.state, State::Suppressed { .. })
    }

    /// Whether the response ends with its head, because the request was HEAD: a given body is not sent, and no mistake.
    pub fn drops_body(&self) -> bool {
        matches!(self.state, State::Suppressed { permitted: true })
    }

    /// Whether all of a declared length has been given.
    pub fn is_complete(&self) -> bool {
        self.state == State::Fixed { left: 0 }
    }

    /// Whether a head may still be sent.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// Appends `100 Continue` and returns whether it did: once, before the head, in HTTP/1.1 only
    /// (RFC 9110 §10.1.1).
    pub fn send_continue(&mut self, out: &mut Vec<u8>) -> bool {
        let due = self.is_waiting() && self.version != Version::Http10 && !self.continued;
        if due {
            self.continued = true;
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        due
    }

    /// Appends an interim response such as 103 (RFC 9110 §15.2), before the head. Nothing is
    /// appended for HTTP/1.0, which knows none.
    ///
    /// # Errors
    /// As [`send_head`](Self::send_head); [`HeadError::NotInterim`] for a final status, for 101, and for 100, which
    /// [`send_continue`](Self::send_continue) sends.
    pub fn send_interim(&mut self, head: &ResponseHead, out: &mut Vec<u8>) -> Result<(), HeadError> {
        if !self.is_waiting() {
            return Err(HeadError::AlreadySent);
        }
        if !matches!(head.status.code(), 102..=199) {
            return Err(HeadError::NotInterim(head.status));
        }
        if self.version == Version::Http10 {
            return Ok(());
        }
        all_or_nothing(out, |out| {
            write_head(head, false, out)?;
            out.extend_from_slice(b"\r\n");
            Ok(())
        })
    }

    /// Appends `101 Switching Protocols` with `protocol` in `Upgrade` (RFC 9110 §7.8). The connection
    /// is no longer HTTP/1 behind it.
    ///
    /// # Errors
    /// As [`send_head`](Self::send_head).
    pub fn send_switching(
        &mut self,
        head: &ResponseHead,
        protocol: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<(), HeadError> {
        if !self.is_waiting() {
            return Err(HeadError::AlreadySent);
        }
        if head.status != Status::SWITCHING_PROTOCOLS {
            return Err(HeadError::InterimStatus(head.status));
        }
        all_or_nothing(out, |out| {
            write_head(head, false, out)?;
            out.extend_from_slice(b"Connection: upgrade\r\nUpgrade: ");
            out.extend_from_slice(protocol.as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
            Ok(())
        })?;
        self.state = State::Switched;
        Ok(())
    }

    /// Appends the status line and the fields. `length` is the body's length where it is known; for
    /// HEAD the length GET would have. Where it is `None`, the application's Content-Length counts,
    /// else the body is chunked (HTTP/1.1) or ends with the connection (1.0). `date` is the present
    /// IMF-fixdate. Date, Server and the framing are added where they are missing.
    ///
    /// # Errors
    /// The head cannot be sent as given; nothing was appended and another head may be sent.
    pub fn send_head(
        &mut self,
        head: &ResponseHead,
        length: Option<u64>,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Result<HeadReport, HeadError> {
        if !self.is_waiting() {
            return Err(HeadError::AlreadySent);
        }
        if head.status.code() < 200 {
            return Err(HeadError::InterimStatus(head.status));
        }
        all_or_nothing(out, |out| {
            let found = write_head(head, self.trailers, out)?;
            if !found.has_date {
                out.extend_from_slice(b"Date: ");
                out.extend_from_slice(date);
                out.extend_from_slice(b"\r\n");
            }
            if !found.has_server {
                out.extend_from_slice(SERVER);
            }
            self.state = self.write_framing(head.status, &found, length, out);
            self.keep_alive &= !found.close && self.state != State::UntilClose;
            self.write_connection(out);
            out.extend_from_slice(b"\r\n");
            Ok(self.report(found, length))
        })
    }

    fn write_framing(
        &self,
        status: Status,
        found: &DecidingFields,
        length: Option<u64>,
        out: &mut Vec<u8>,
    ) -> State {
        if status.forbids_body() {
            // RFC 9110 §8.6: never with 204; with 304 only the length of the 200 it stands for. RFC 9112 §6.3 gives 205
            // a body, so that its length is sent.
            match (status, found.length) {
                (Status::NOT_MODIFIED, Some(declared)) => write_length(declared, out),
                (Status::RESET_CONTENT, _) => write_length(0, out),
                _ => {}
            }
            return State::Suppressed { permitted: self.to_head };
        }
        if self.to_head {
            // An application that answers HEAD without a body says nothing about the length by it.
            if let Some(length) = found.length.or(length.filter(|length| *length > 0)) {
                write_length(length, out);
            }
            return State::Suppressed { permitted: true };
        }
        match length.or(found.length) {
            Some(left) => {
                write_length(left, out);
                State::Fixed { left }
            }
            None if self.version == Version::Http10 => State::UntilClose,
            None => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
                State::Chunked
            }
        }
    }

    fn write_connection(&self, out: &mut Vec<u8>) {
        match (self.keep_alive, self.version) {
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, _) => {}
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        }
    }

    fn report(&self, found: DecidingFields, length: Option<u64>) -> HeadReport {
        let sent = match self.state {
            State::Fixed { left } => Some(left),
            State::Suppressed { .. } => Some(0),
            _ => None,
        };
        let contradicts = length.is_some() && matches!(self.state, State::Fixed { .. });
        HeadReport {
            length: sent,
            removed: found.removed,
            wrong_length: found.length.filter(|declared| contradicts && Some(*declared) != length),
            close: !self.keep_alive,
        }
    }

    /// Returns how many of `length` body bytes may be sent, and appends the framing before them. Send `out`, then the
    /// allowed bytes, then the suffix.
    pub fn send_data(&mut self, length: u64, out: &mut Vec<u8>) -> DataPlan {
        let plan = |allowed, surplus, suffix| DataPlan { allowed, surplus, suffix };
        match self.state {
            State::Fixed { left } => {
                let allowed = length.min(left);
                self.state = State::Fixed { left: left - allowed };
                plan(allowed, length - allowed, b"")
            }
            // A chunk without bytes would end the body.
            State::Chunked if length == 0 => plan(0, 0, b""),
            State::Chunked => {
                hexadecimal(length, out);
                out.extend_from_slice(b"\r\n");
                plan(length, 0, b"\r\n")
            }
            State::UntilClose => plan(length, 0, b""),
            State::Suppressed { permitted: true } => plan(0, 0, b""),
            State::Suppressed { permitted: false }
            | State::Waiting
            | State::Switched
            | State::Done { .. } => plan(0, length, b""),
        }
    }

    /// Sends the last part of a body without trailers as [`send_data`](Self::send_data) does, and
    /// [finishes](Self::finish).
    pub fn send_last(&mut self, length: u64, out: &mut Vec<u8>) -> (DataPlan, Finish) {
        let chunked = self.state == State::Chunked && length > 0;
        let plan = self.send_data(length, out);
        if !chunked {
            return (plan, self.finish(None, out));
        }
        let reusable = self.keep_alive;
        self.state = State::Done { reusable };
        (DataPlan { suffix: b"\r\n0\r\n\r\n", ..plan }, Finish { reusable, short_by: 0 })
    }

    /// Ends the body: appends the last chunk with `trailers`, which only a chunked body can have;
    /// those that are invalid or forbidden (RFC 9110 §6.5.1) are left out. A second call changes nothing.
    pub fn finish(&mut self, trailers: Option<&FieldSet>, out: &mut Vec<u8>) -> Finish {
        let (reusable, short_by) = match self.state {
            State::Fixed { left } => (left == 0, left),
            State::Chunked => {
                write_last_chunk(trailers, out);
                (true, 0)
            }
            State::Suppressed { .. } => (true, 0),
            State::Waiting | State::UntilClose | State::Switched => (false, 0),
            State::Done { reusable } => (reusable, 0),
        };
        let reusable = reusable && self.keep_alive;
        self.state = State::Done { reusable };
        Finish { reusable, short_by }
    }
}

/// Runs `write` and removes the appended bytes when it fails.
pub(crate) fn all_or_nothing<T>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<T, HeadError>,
) -> Result<T, HeadError> {
    let start = out.len();
    let written = write(out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// The field `Content-Length`.
pub(crate) fn write_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    decimal(length, out);
    out.extend_from_slice(b"\r\n");
}

fn write_last_chunk(trailers: Option<&FieldSet>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flat_map(FieldSet::iter) {
        if is_token(name) && is_value(value) && !is_forbidden_trailer(name) {
            field(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

// ---- The head ----
//
// The application's own part of a response head: checked, and without fields that the engine decides.

/// The application's fields that matter for decisions of the engine.
#[derive(Default)]
pub(crate) struct DecidingFields {
    pub(crate) has_date: bool,
    pub(crate) has_server: bool,
    pub(crate) close: bool,
    pub(crate) length: Option<u64>,
    pub(crate) removed: Vec<&'static str>,
    /// `Trailer` is the application's own.
    trailers: bool,
}

/// Appends the status line and the fields that are the application's own; `Trailer` is one of them where it announces `trailers`.
///
/// # Errors
/// The head cannot be sent; the caller has to remove the appended bytes.
pub(crate) fn write_head(
    head: &ResponseHead,
    trailers: bool,
    out: &mut Vec<u8>,
) -> Result<DecidingFields, HeadError> {
    let reason = head.reason.as_deref().unwrap_or_else(|| head.status.reason().as_bytes());
    if head.reason.is_some() && !is_value(reason) {
        return Err(HeadError::InvalidReason);
    }
    status_line(head.status, reason, out);
    let mut found = DecidingFields { trailers, ..DecidingFields::default() };
    let checked = head.fields.is_checked();
    for (name, value) in head.fields.iter() {
        if !checked && !is_token(name) {
            return Err(HeadError::InvalidName(name.escape_ascii().to_string()));
        }
        if !checked && !is_value(value) {
            return Err(HeadError::InvalidValue(name.escape_ascii().to_string()));
        }
        if found.note(name, value)? {
            field(name, value, out);
        }
    }
    Ok(found)
}

impl DecidingFields {
    /// Looks at a field; whether it is sent as it is.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<bool, HeadError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // First letters and length tell nearly all fields apart from those that matter here.
        match (name.first().map(|byte| byte | 0x20), name.len()) {
            (Some(b'd'), 4) if is("date") => self.has_date = true,
            (Some(b's'), 6) if is("server") => self.has_server = true,
            (Some(b'c'), 14) if is("content-length") => {
                self.note_length(value)?;
                return Ok(false);
            }
            (Some(b'c'), 10) if is("connection") && value.eq_ignore_ascii_case(b"close") => {
                self.close = true;
                return Ok(false);
            }
            (Some(b'c' | b'k' | b'p' | b't' | b'u'), _) => {
                if let Some(hop) = hop_by_hop(name).filter(|hop| !(self.trailers && *hop == TRAILER)) {
                    self.close |= hop == "Connection" && names_close(value);
                    self.removed.push(hop);
                    return Ok(false);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let length = content_length(value.trim_ascii()).ok_or(HeadError::ContentLength)?;
        if self.length.replace(length).is_some_and(|before| before != length) {
            return Err(HeadError::ContentLength);
        }
        Ok(())
    }
}

// ---- Bytes ----
//
// Writing the parts of a response head straight into the buffer.

/// The status line. An empty reason phrase still has its space before it (RFC 9112 §4).
pub(crate) fn status_line(status: Status, reason: &[u8], out: &mut Vec<u8>) {
    let code = status.code();
    let digit = |divisor: u16| b'0' + (code / divisor % 10) as u8;
    let mut start = *b"HTTP/1.1 000 ";
    let [.., hundreds, tens, ones, _] = &mut start;
    (*hundreds, *tens, *ones) = (digit(100), digit(10), digit(1));
    out.extend_from_slice(&start);
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// One field line.
pub(crate) fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// `number` in decimal.
pub(crate) fn decimal(number: u64, out: &mut Vec<u8>) {
    digits::<10>(number, out);
}

/// `number` in hexadecimal, as chunk sizes are written.
pub(crate) fn hexadecimal(number: u64, out: &mut Vec<u8>) {
    digits::<16>(number, out);
}

fn digits<const BASE: u64>(mut number: u64, out: &mut Vec<u8>) {
    // 2^64 has 20 decimal digits.
    let mut buffer = [0u8; 20];
    let mut start = buffer.len();
    for place in buffer.iter_mut().rev() {
        let digit = (number % BASE) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        start -= 1;
        number /= BASE;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(buffer.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod write_tests {
    use super::*;

    #[test]
    fn numbers() {
        for number in [0, 1, 9, 10, 15, 16, 255, 1024, 65536, u64::from(u32::MAX), u64::MAX] {
            let (mut dec, mut hex) = (Vec::new(), Vec::new());
            decimal(number, &mut dec);
            hexadecimal(number, &mut hex);
            assert_eq!(dec, number.to_string().into_bytes());
            assert_eq!(hex, format!("{number:x}").into_bytes());
        }
    }

    #[test]
    fn status_lines() {
        let mut out = Vec::new();
        status_line(Status::NOT_FOUND, b"Not Found", &mut out);
        status_line(Status::OK, b"", &mut out);
        assert_eq!(out, b"HTTP/1.1 404 Not Found\r\nHTTP/1.1 200 \r\n");
    }
}
