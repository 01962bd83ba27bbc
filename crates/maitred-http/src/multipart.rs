//! The framing of several ranges in one response: `multipart/byteranges` (RFC 9110 §14.6, RFC 2046
//! §5.1.1).
//!
//! Makes everything of the body but the ranges' own bytes, and says its exact length.

use std::ops::Range;

use crate::range::ByteRange;

/// The heads of the parts and the final delimiter, in one buffer.
///
/// The body is, for each of [`iter`](Self::iter), the head and then the bytes of the range; at the
/// end [`closing`](Self::closing). Its length is [`content_length`](Self::content_length), its type
/// [`content_type`](Self::content_type).
#[derive(Clone, Debug)]
pub struct Parts {
    heads: Vec<u8>,
    parts: Vec<(Range<usize>, ByteRange)>,
    boundary: String,
    closing: String,
}

impl Parts {
    /// The parts of a representation of `total` bytes. `content_type` is its own media type, `None`
    /// where it has none. `boundary` must be drawn at random for each response by the caller: 128
    /// bits make it as good as certain that the content does not hold it.
    pub fn new(content_type: Option<&str>, total: u64, ranges: &[ByteRange], boundary: u128) -> Self {
        // Lower-case hexadecimal digits need no quotes in a parameter and are allowed in a boundary.
        let boundary = format!("{boundary:032x}");
        let mut heads = String::new();
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let start = heads.len();
            // The line end before a delimiter belongs to the delimiter; the first has nothing before it.
            heads.push_str(if start == 0 { "--" } else { "\r\n--" });
            heads.push_str(&boundary);
            if let Some(content_type) = content_type {
                heads.push_str("\r\nContent-Type: ");
                heads.push_str(content_type);
            }
            heads.push_str("\r\nContent-Range: ");
            heads.push_str(&content_range(*range, total));
            heads.push_str("\r\n\r\n");
            parts.push((start..heads.len(), *range));
        }
        let closing = format!("\r\n--{boundary}--\r\n");
        Self { heads: heads.into_bytes(), parts, boundary, closing }
    }

    /// The value of the response's `Content-Type`.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// The number of bytes of the whole body. Saturates, which no representation below 2⁶³ bytes
    /// reaches with ranges that do not overlap.
    pub fn content_length(&self) -> u64 {
        let framing = (self.heads.len() + self.closing.len()) as u64;
        self.parts.iter().fold(framing, |length, (_, range)| length.saturating_add(range.len()))
    }

    /// Each part: the bytes before the range's bytes, and the range.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], ByteRange)> + '_ {
        self.parts.iter().map(|(head, range)| (self.heads.get(head.clone()).unwrap_or_default(), *range))
    }

    /// The bytes behind the last range.
    pub fn closing(&self) -> &[u8] {
        self.closing.as_bytes()
    }
}

/// The value of `Content-Range` for a range that is sent (RFC 9110 §14.4).
pub fn content_range(range: ByteRange, total: u64) -> String {
    format!("bytes {}-{}/{total}", range.first, range.last)
}

/// The value of `Content-Range` for a 416 response.
pub fn unsatisfied_range(total: u64) -> String {
    format!("bytes */{total}")
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    const RANGES: [ByteRange; 2] = [ByteRange { first: 0, last: 1 }, ByteRange { first: 7, last: 9 }];

    fn body(parts: &Parts, content: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for (head, range) in parts.iter() {
            body.extend_from_slice(head);
            body.extend(content.iter().skip(range.first as usize).take(range.len() as usize));
        }
        body.extend_from_slice(parts.closing());
        body
    }

    #[test]
    fn two_ranges_make_a_body_of_two_parts() {
        let parts = Parts::new(Some("text/plain"), 10, &RANGES, 0xab);
        let expected = "--000000000000000000000000000000ab\r\n\
            Content-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
            --000000000000000000000000000000ab\r\n\
            Content-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789\r\n\
            --000000000000000000000000000000ab--\r\n";
        assert_eq!(String::from_utf8_lossy(&body(&parts, b"0123456789")), expected);
        assert_eq!(parts.content_length(), expected.len() as u64);
        assert_eq!(parts.content_type(), "multipart/byteranges; boundary=000000000000000000000000000000ab");
    }

    #[test]
    fn a_representation_without_a_type_has_none_in_its_parts() {
        let parts = Parts::new(None, 10, &RANGES, u128::MAX);
        let body = body(&parts, b"0123456789");
        assert_eq!(parts.content_length(), body.len() as u64);
        assert!(!String::from_utf8_lossy(&body).contains("Content-Type"));
    }

    #[test]
    fn the_length_is_right_past_four_gibibytes() {
        let far = 5 << 30;
        let ranges = [ByteRange { first: 0, last: far - 1 }, ByteRange { first: far + 1, last: 2 * far - 1 }];
        let parts = Parts::new(Some("a/b"), 2 * far, &ranges, 1);
        let framing: usize = parts.iter().map(|(head, _)| head.len()).sum::<usize>() + parts.closing().len();
        assert_eq!(parts.content_length(), 2 * far - 1 + framing as u64);
    }

    #[test]
    fn content_range_says_first_last_and_total() {
        assert_eq!(content_range(RANGES[1], 10), "bytes 7-9/10");
        assert_eq!(unsatisfied_range(0), "bytes */0");
    }
}
