//! How long a body is, independent of the protocol version.

/// The length of a message body as its framing declares it (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    Empty,
    /// Exactly this many bytes follow.
    Fixed(u64),
    /// The length is not known in advance: chunked in HTTP/1.1, frames in HTTP/2.
    Chunked,
    /// The body ends when the connection closes (HTTP/1.0 responses only).
    UntilClose,
}

impl BodyLength {
    /// The number of bytes, where it is known before the body is read.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Fixed(length) => Some(length),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// The number of bytes that a `Content-Length` says (RFC 9110 §8.6): digits and nothing else; `None` if it is not one, or beyond
/// 64 bits.
pub fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}
