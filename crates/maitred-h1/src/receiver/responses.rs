//! The messages of servers: response heads, and the rules of RFC 9112 §6.3 by which their bodies end.

use httparse::{EMPTY_HEADER, Error, Status as Parsed};
use maitred_http::{BodyLength, Method, ResponseHead, Status, Version};

use super::fields::{Connection, Framing, adopt_fields};
use super::messages::{After, Messages, Read};
use crate::error::Malformed;
use crate::limits::{Limits, RESPONSE_FIELD_SLOTS};
use crate::lines::line_end;

/// The message that a client receives: the response to one request, which is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses(pub(super) Asked);

/// The part of a request that decides how its response ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Any other request.
    #[default]
    Ordinary,
    /// Its method is HEAD.
    Head,
    /// Its method is CONNECT.
    Connect,
    /// It offers another protocol in `Upgrade`.
    Upgrade,
}

impl Asked {
    /// Of a request of this method that offers no other protocol.
    pub fn by(method: &Method) -> Self {
        match method {
            Method::Head => Self::Head,
            Method::Connect => Self::Connect,
            _ => Self::Ordinary,
        }
    }
}

/// Facts of a response head that exist only in HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The version of the server; a higher one than 1.1 is read as that.
    pub version: Version,
    /// The body that follows.
    pub body: BodyLength,
    /// Another head of this response follows (RFC 9110 §15.2).
    pub interim: bool,
    /// The response ends with this head. There is no [`End`](crate::Event::End) then.
    pub complete: bool,
    /// The bytes behind this head belong to another protocol, or to the peer of a tunnel.
    pub switched: bool,
    /// The server keeps the connection (RFC 9112 §9.3). Never set for a body until close.
    pub keep_alive: bool,
}

impl Messages for Responses {
    type Head = ResponseHead;
    type Facts = ResponseFacts;
    type Error = Malformed;

    const MANY: bool = false;
    const UNREADABLE: Malformed = Malformed::LineEnd;
    const TOO_LARGE: Malformed = Malformed::HeadTooLarge;
    const AFTER_MALFORMED: Malformed = Malformed::AfterMalformed;

    fn read(
        self,
        window: &[u8],
        head: &mut ResponseHead,
        limits: &Limits,
    ) -> Result<Option<Read<ResponseFacts>>, Malformed> {
        let Some(line) = line_end(window, 0)? else { return Ok(None) };
        let (start, rest) = window.split_at_checked(line).unwrap_or_default();
        let (version, status, reason) = status_line(start)?;
        let mut slots = [EMPTY_HEADER; RESPONSE_FIELD_SLOTS];
        let count = limits.max_fields.min(slots.len());
        let (length, fields) = match httparse::parse_headers(rest, slots.get_mut(..count).unwrap_or_default())
        {
            Ok(Parsed::Complete((length, fields))) => (line + length, fields),
            Ok(Parsed::Partial) => return Ok(None),
            Err(error) => return Err(malformed(error)),
        };
        head.status = status;
        head.reason = (reason != status.reason().as_bytes()).then(|| reason.into());
        head.fields.clear();
        let (mut framing, mut connection) = (Framing::default(), Connection::default());
        let bytes = window.get(..length).unwrap_or_default();
        adopt_fields(bytes, fields, &mut head.fields, limits, |field, _| match field.name.len() {
            10 if field.name.eq_ignore_ascii_case("connection") => connection.note(field.value),
            14 if field.name.eq_ignore_ascii_case("content-length") => framing.content_length(field.value),
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                framing.transfer_encoding(field.value);
            }
            _ => {}
        })?
        .ok_or(Malformed::HeadTooLarge)?;
        let after = self.after(status, version, &framing)?;
        let body = match after {
            After::Body(body) => body,
            After::Head | After::Foreign => BodyLength::Empty,
        };
        let facts = ResponseFacts {
            version,
            body,
            interim: matches!(after, After::Head),
            complete: matches!(after, After::Body(BodyLength::Empty | BodyLength::Fixed(0))),
            switched: matches!(after, After::Foreign),
            keep_alive: connection.persists(version)
                && matches!(after, After::Body(_))
                && body != BodyLength::UntilClose,
        };
        Ok(Some(Read { length, facts, after }))
    }

    fn may_skip_line(_skipped: u8, _limits: &Limits) -> Result<(), Malformed> {
        Err(Malformed::StatusLine)
    }

    fn check_start(window: &[u8]) -> Result<(), Malformed> {
        const START: &[u8] = b"HTTP/1.";
        match window.iter().zip(START).position(|(sent, right)| sent != right) {
            None => Ok(()),
            Some(place) if place < START.len() - "1.".len() => Err(Malformed::StatusLine),
            Some(_) => Err(Malformed::Version),
        }
    }

    fn max_line(limits: &Limits) -> usize {
        limits.max_head
    }

    fn endless_line(_line: &[u8], _limits: &Limits) -> Malformed {
        Malformed::HeadTooLarge
    }

    fn check_line(line: &[u8], _limits: &Limits) -> Result<(), Malformed> {
        status_line(line).map(|_| ())
    }
}

impl Responses {
    /// RFC 9112 §6.3, in its order.
    fn after(self, status: Status, version: Version, framing: &Framing<'_>) -> Result<After, Malformed> {
        match (status.code(), self.0) {
            (101, Asked::Upgrade) => Ok(After::Foreign),
            (101, _) => Err(Malformed::UnaskedSwitch),
            (..200, _) => Ok(After::Head),
            (200..300, Asked::Connect) => Ok(After::Foreign),
            (_, Asked::Head) | (204 | 304, _) => Ok(After::Body(BodyLength::Empty)),
            _ => framing.of_response(version).map(After::Body),
        }
    }
}

/// The parts of a status line with its line end (RFC 9112 §4). The space before an empty reason may be missing.
fn status_line(line: &[u8]) -> Result<(Version, Status, &[u8]), Malformed> {
    Responses::check_start(line)?;
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    let Some((b"HTTP/1.", [minor @ b'0'..=b'9', b' ', rest @ ..])) = line.split_at_checked("HTTP/1.".len())
    else {
        return Err(Malformed::Version);
    };
    let version = if *minor == b'0' { Version::Http10 } else { Version::Http11 };
    let (digits, reason) = match rest.split_at_checked(3) {
        Some((digits, [])) => (digits, &b""[..]),
        Some((digits, [b' ', reason @ ..])) => (digits, reason),
        _ => return Err(Malformed::StatusCode),
    };
    let code = digits.iter().try_fold(0u16, |code, digit| {
        digit.is_ascii_digit().then(|| code * 10 + u16::from(digit.wrapping_sub(b'0')))
    });
    let status = code.and_then(Status::from_code).ok_or(Malformed::StatusCode)?;
    if !maitred_http::fields::is_value(reason) {
        return Err(Malformed::Reason);
    }
    Ok((version, status, reason))
}

fn malformed(error: Error) -> Malformed {
    match error {
        Error::TooManyHeaders => Malformed::TooManyFields,
        Error::HeaderName => Malformed::FieldName,
        Error::HeaderValue => Malformed::FieldValue,
        Error::NewLine | Error::Token | Error::Status | Error::Version => Malformed::LineEnd,
    }
}
