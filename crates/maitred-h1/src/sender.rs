//! The sending half: one response, framed so that the connection stays in step.
//!
//! ```text
//! Waiting --send_head--> Fixed | Chunked | UntilClose | Suppressed --finish--> Done
//!    |  ^--send_continue, send_interim
//!    `--send_switching--> Switched          finish without a head: Done, not reusable
//! ```

use maitred_http::fields::{is_token, is_value};
use maitred_http::{FieldSet, ResponseHead, Status, Version};

use crate::error::HeadError;
use crate::hop::is_forbidden_trailer;
use crate::response::{Found, write_head};
use crate::write;

const SERVER: &[u8] = b"Server: maitred\r\n";

/// The sending half of one exchange. Body bytes do not pass through it: it says how many may be
/// sent and writes what stands around them. A copy stands where the original stood: it serves to try whether a head can be
/// sent.
#[derive(Clone, Debug)]
pub struct Sender {
    state: State,
    version: Version,
    to_head: bool,
    keep_alive: bool,
    continued: bool,
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

/// What was sent as a head, and what of the application's head was not sent as it was given.
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
    /// What to send behind the allowed bytes.
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
        Self { state: State::Waiting, version, to_head, keep_alive, continued: false }
    }

    /// Closes the connection after this response. The peer is told if the head is not sent yet.
    pub fn close_after(&mut self) {
        self.keep_alive = false;
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
            write_head(head, out)?;
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
            write_head(head, out)?;
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
            let found = write_head(head, out)?;
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

    fn write_framing(&self, status: Status, found: &Found, length: Option<u64>, out: &mut Vec<u8>) -> State {
        if status.forbids_body() {
            // RFC 9110 §8.6: never with 204; with 304 only the length of the 200 it stands for. RFC 9112 §6.3 gives 205 a body, so
            // that its length is said.
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

    fn report(&self, found: Found, length: Option<u64>) -> HeadReport {
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

    /// Says how many of `length` body bytes may be sent and appends what stands before them. Send
    /// `out`, then the allowed bytes, then the suffix.
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
                write::hexadecimal(length, out);
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

    /// As [`send_data`](Self::send_data) for the last part of a body without trailers, and [`finish`](Self::finish).
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

/// Runs `write` and takes back what it appended when it fails.
fn all_or_nothing<T>(
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

fn write_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    write::decimal(length, out);
    out.extend_from_slice(b"\r\n");
}

fn write_last_chunk(trailers: Option<&FieldSet>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flat_map(FieldSet::iter) {
        if is_token(name) && is_value(value) && !is_forbidden_trailer(name) {
            write::field(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a whole response of the engine's own that ends the connection: `text` as plain text.
/// Its head cannot fail: the status and its reason phrase are ours.
pub fn error_response(status: Status, text: &str, date: &[u8; 29], out: &mut Vec<u8>) {
    write::status_line(status, status.reason().as_bytes(), out);
    write::field(b"Date", date, out);
    out.extend_from_slice(SERVER);
    write::field(b"Content-Type", b"text/plain; charset=utf-8", out);
    write_length(text.len() as u64, out);
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    out.extend_from_slice(text.as_bytes());
}
