//! Finding the end of a head or trailer section, every byte looked at once however it arrives.

use memchr::memchr;

use crate::error::Malformed;

/// The position behind the first line end at or after `from`; `None` when it is not there yet.
///
/// # Errors
/// The line ends in a bare LF. RFC 9112 §2.2 lets a recipient accept that; a proxy in front of us
/// may not, and then the two disagree about where a field ends.
pub(crate) fn line_end(bytes: &[u8], from: usize) -> Result<Option<usize>, Malformed> {
    let Some(found) = memchr(b'\n', bytes.get(from..).unwrap_or_default()) else {
        return Ok(None);
    };
    let at = from + found;
    match at.checked_sub(1).and_then(|before| bytes.get(before)) {
        Some(b'\r') => Ok(Some(at + 1)),
        _ => Err(Malformed::BareLf),
    }
}

/// The position behind the blank line that ends a section, with `from` the position up to which
/// `bytes` were searched before.
///
/// # Errors
/// As [`line_end`].
pub(crate) fn section_end(bytes: &[u8], mut from: usize) -> Result<Option<usize>, Malformed> {
    while let Some(end) = line_end(bytes, from)? {
        if bytes.get(..end).is_some_and(|section| section.ends_with(b"\r\n\r\n")) {
            return Ok(Some(end));
        }
        from = end;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_blank_line_from_any_position_before_it() {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest\r\n\r\n";
        for from in 0..27 {
            assert_eq!(section_end(bytes, from), Ok(Some(27)), "from {from}");
        }
        assert_eq!(section_end(&bytes[..26], 0), Ok(None));
    }

    #[test]
    fn refuses_a_bare_line_feed() {
        assert_eq!(section_end(b"a: b\nc: d\r\n\r\n", 0), Err(Malformed::BareLf));
        assert_eq!(section_end(b"\n", 0), Err(Malformed::BareLf));
        assert_eq!(section_end(b"a: b\r\n\n", 0), Err(Malformed::BareLf));
    }
}
