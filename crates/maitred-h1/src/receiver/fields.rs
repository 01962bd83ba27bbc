//! The fields of a head, and the framing that they declare: the same for requests and responses.

use httparse::Header;
use maitred_http::body::content_length;
use maitred_http::fields::Span;
use maitred_http::{BodyLength, FieldSet, Version};

use crate::error::Malformed;
use crate::limits::Limits;

/// Copies `bytes`, a complete head, into `fields`, and makes fields of the `headers` that stand in it. `note` sees each. The
/// place of the head in `fields`; `None` if it has no room there.
///
/// # Errors
/// A line end is a bare LF, which httparse takes, or a field is too large.
pub(super) fn adopt_fields<'a>(
    bytes: &[u8],
    headers: &[Header<'a>],
    fields: &mut FieldSet,
    limits: &Limits,
    mut note: impl FnMut(&Header<'a>, Span),
) -> Result<Option<Span>, Malformed> {
    let Some(adopted) = fields.adopt(bytes) else { return Ok(None) };
    let place = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    for field in headers {
        let at = place(field.name.as_bytes());
        check_line_end(bytes, at)?;
        if field.name.len() + field.value.len() > limits.max_field_line {
            return Err(Malformed::FieldTooLarge);
        }
        let value = adopted.part(place(field.value), field.value.len());
        fields.push_spans(adopted.part(at, field.name.len()), value);
        note(field, value);
    }
    // The line before the blank one, and the blank one.
    check_line_end(bytes, bytes.len().saturating_sub(2))?;
    check_line_end(bytes, bytes.len())?;
    Ok(Some(adopted))
}

fn check_line_end(bytes: &[u8], end: usize) -> Result<(), Malformed> {
    match end.checked_sub(2).and_then(|start| bytes.get(start..end)) {
        Some(b"\r\n") => Ok(()),
        _ => Err(Malformed::BareLf),
    }
}

/// The options of `Connection` that matter here (RFC 9110 §7.6.1).
#[derive(Clone, Copy, Default)]
pub(super) struct Connection {
    close: bool,
    keep_alive: bool,
    pub(super) upgrade: bool,
}

impl Connection {
    pub(super) fn note(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// Whether the peer wants to use the connection again (RFC 9112 §9.3).
    pub(super) fn persists(self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// The framing fields of a head, gathered while its fields are walked.
#[derive(Default)]
pub(super) struct Framing<'a> {
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    repeated: bool,
}

impl<'a> Framing<'a> {
    pub(super) fn content_length(&mut self, value: &'a [u8]) {
        self.repeated |= self.content_length.replace(value).is_some();
    }

    pub(super) fn transfer_encoding(&mut self, value: &'a [u8]) {
        self.repeated |= self.transfer_encoding.replace(value).is_some();
    }

    /// The length of a request's body.
    ///
    /// # Errors
    /// Everything that has been used to smuggle requests, or an unknown coding.
    pub(super) fn of_request(&self, version: Version) -> Result<BodyLength, Malformed> {
        self.length(version, BodyLength::Empty)
    }

    /// The length of the body of a response that can have one.
    ///
    /// # Errors
    /// As of a request: a client that guesses reads the next response at the wrong place.
    pub(super) fn of_response(&self, version: Version) -> Result<BodyLength, Malformed> {
        self.length(version, BodyLength::UntilClose)
    }

    fn length(&self, version: Version, without: BodyLength) -> Result<BodyLength, Malformed> {
        match (self.content_length, self.transfer_encoding) {
            (None, None) => Ok(without),
            (Some(_), Some(_)) => Err(Malformed::TwoLengths),
            _ if self.repeated => Err(Malformed::RepeatedLength),
            (Some(value), None) => parse_content_length(value).map(BodyLength::Fixed),
            (None, Some(_)) if version == Version::Http10 => Err(Malformed::EncodingInHttp10),
            (None, Some(value)) => check_codings(value).map(|()| BodyLength::Chunked),
        }
    }
}

/// A number of bytes in decimal digits and nothing else (RFC 9110 §8.6). A list of equal numbers
/// may be accepted by the RFC; no client sends one, and a sign or white space is how filters are
/// passed by.
fn parse_content_length(value: &[u8]) -> Result<u64, Malformed> {
    content_length(value).ok_or(Malformed::ContentLength)
}

/// Only `chunked`, once and alone, is understood (RFC 9112 §6.1, §7).
fn check_codings(value: &[u8]) -> Result<(), Malformed> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let codings: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if codings.iter().any(|coding| coding.is_empty()) {
        return Err(Malformed::EmptyCoding);
    }
    if codings.iter().any(|coding| !is_chunked(coding)) {
        if codings.iter().rev().skip(1).any(is_chunked) {
            return Err(Malformed::ChunkedNotLast);
        }
        return Err(Malformed::UnknownCoding);
    }
    Err(Malformed::ChunkedTwice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RequestError;

    fn length(version: Version, lengths: &[&str], codings: &[&str]) -> Result<BodyLength, u16> {
        let mut framing = Framing::default();
        lengths.iter().for_each(|value| framing.content_length(value.as_bytes()));
        codings.iter().for_each(|value| framing.transfer_encoding(value.as_bytes()));
        framing.of_request(version).map_err(|error| RequestError::from(error).status.code())
    }

    #[test]
    fn content_length_is_one_number_of_digits() {
        let cases: &[(&[&str], Result<BodyLength, u16>)] = &[
            (&[], Ok(BodyLength::Empty)),
            (&["0"], Ok(BodyLength::Fixed(0))),
            (&["0005"], Ok(BodyLength::Fixed(5))),
            (&["18446744073709551615"], Ok(BodyLength::Fixed(u64::MAX))),
            (&["18446744073709551616"], Err(400)),
            (&["99999999999999999999999"], Err(400)),
            (&[""], Err(400)),
            (&["+5"], Err(400)),
            (&["-5"], Err(400)),
            (&["5 "], Err(400)),
            (&["0x5"], Err(400)),
            (&["5,5"], Err(400)),
            (&["5, 6"], Err(400)),
            (&["5", "5"], Err(400)),
            (&["5", "6"], Err(400)),
        ];
        for (values, expected) in cases {
            assert_eq!(length(Version::Http11, values, &[]), *expected, "{values:?}");
        }
    }

    #[test]
    fn transfer_encoding_is_chunked_once_and_alone() {
        let cases: &[(&[&str], Result<BodyLength, u16>)] = &[
            (&["chunked"], Ok(BodyLength::Chunked)),
            (&["Chunked"], Ok(BodyLength::Chunked)),
            (&["chunked", "chunked"], Err(400)),
            (&["chunked, chunked"], Err(400)),
            (&["chunked, gzip"], Err(400)),
            (&["gzip, chunked"], Err(501)),
            (&["gzip"], Err(501)),
            (&["identity"], Err(501)),
            (&["xchunked"], Err(501)),
            (&["chunked;q=1"], Err(501)),
            (&["\u{b}chunked"], Err(501)),
            (&[""], Err(400)),
            (&["chunked,"], Err(400)),
            (&[",chunked"], Err(400)),
        ];
        for (values, expected) in cases {
            assert_eq!(length(Version::Http11, &[], values), *expected, "{values:?}");
        }
        assert_eq!(length(Version::Http10, &[], &["chunked"]), Err(400));
        assert_eq!(length(Version::Http11, &["5"], &["chunked"]), Err(400));
        assert_eq!(length(Version::Http11, &["0"], &["identity"]), Err(400));
    }
}
