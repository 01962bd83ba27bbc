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

    /// Each part: what goes before the range's bytes, and the range.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], ByteRange)> + '_ {
        self.parts.iter().map(|(head, range)| (self.heads.get(head.clone()).unwrap_or_default(), *range))
    }

    /// What goes behind the last range's bytes.
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
