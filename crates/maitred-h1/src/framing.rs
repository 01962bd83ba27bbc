//! How long the request's body is (RFC 9112 §6), refusing what could be read in two ways.

use maitred_http::{BodyLength, Status, Version};

use crate::error::RequestError;

/// What the framing fields of a head say, gathered while its fields are walked.
#[derive(Default)]
pub(crate) struct Framing<'a> {
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    repeated: bool,
}

impl<'a> Framing<'a> {
    pub(crate) fn content_length(&mut self, value: &'a [u8]) {
        self.repeated |= self.content_length.replace(value).is_some();
    }

    pub(crate) fn transfer_encoding(&mut self, value: &'a [u8]) {
        self.repeated |= self.transfer_encoding.replace(value).is_some();
    }

    /// The length of the body.
    ///
    /// # Errors
    /// 400 for everything that has been used to smuggle requests; 501 for an unknown coding.
    pub(crate) fn body_length(&self, version: Version) -> Result<BodyLength, RequestError> {
        match (self.content_length, self.transfer_encoding) {
            (None, None) => Ok(BodyLength::Empty),
            (Some(_), Some(_)) => {
                Err(RequestError::bad("both Content-Length and Transfer-Encoding (RFC 9112 section 6.3)"))
            }
            _ if self.repeated => Err(RequestError::bad("a framing field is there twice")),
            (Some(value), None) => parse_content_length(value).map(BodyLength::Fixed),
            (None, Some(_)) if version == Version::Http10 => {
                Err(RequestError::bad("Transfer-Encoding in HTTP/1.0 (RFC 9112 section 6.1)"))
            }
            (None, Some(value)) => check_codings(value).map(|()| BodyLength::Chunked),
        }
    }
}

/// A number of bytes in decimal digits and nothing else (RFC 9110 §8.6). A list of equal numbers
/// may be accepted by the RFC; no client sends one, and a sign or white space is how filters are
/// passed by.
fn parse_content_length(value: &[u8]) -> Result<u64, RequestError> {
    parse_decimal(value).ok_or(RequestError::bad("Content-Length is not one number below 2^64"))
}

/// A decimal number of digits alone; `None` when it is empty, has anything else, or overflows.
pub(crate) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Only `chunked`, once and alone, is understood (RFC 9112 §6.1, §7).
fn check_codings(value: &[u8]) -> Result<(), RequestError> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let codings: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if codings.iter().any(|coding| coding.is_empty()) {
        return Err(RequestError::bad("an empty transfer coding"));
    }
    if codings.iter().any(|coding| !is_chunked(coding)) {
        if codings.iter().rev().skip(1).any(is_chunked) {
            return Err(RequestError::bad("chunked is not the final transfer coding"));
        }
        return Err(RequestError::new(Status::NOT_IMPLEMENTED, "unknown transfer coding"));
    }
    Err(RequestError::bad("chunked is applied more than once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(version: Version, lengths: &[&str], codings: &[&str]) -> Result<BodyLength, u16> {
        let mut framing = Framing::default();
        lengths.iter().for_each(|value| framing.content_length(value.as_bytes()));
        codings.iter().for_each(|value| framing.transfer_encoding(value.as_bytes()));
        framing.body_length(version).map_err(|error| error.status.code())
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
