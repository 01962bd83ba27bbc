//! Byte ranges of a representation (RFC 9110 §14).
//!
//! The whole arithmetic is in 64 bits and saturates. Whether a `Range` field counts at all is the
//! matter of [`conditional`](crate::conditional).

use crate::limits::MAX_RANGES;

/// A part of a representation, both ends included, as `Content-Range` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first byte, from 0.
    pub first: u64,
    /// The position of the last byte, not below `first` and below the length of the representation.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes: at least 1 in every range that [`parse`] returns.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

/// The meaning of a `Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The field does not count: send the whole representation with 200.
    Ignored,
    /// Send these with 206: one as it is, more as `multipart/byteranges`. Never empty; no two of them
    /// overlap or touch.
    Satisfiable(Vec<ByteRange>),
    /// None of the ranges lies in the representation: 416 with `Content-Range: bytes */total`.
    Unsatisfiable,
}

/// The ranges that `field`, the value of a `Range` field, selects of a representation of `total`
/// bytes (RFC 9110 §14.1.2 and §14.2).
///
/// - A unit other than `bytes` (compared without case), a syntax error anywhere, a range whose end
///   lies before its start, or more than [`MAX_RANGES`] ranges make the field [`Ranges::Ignored`].
/// - White space (space, tab) and empty members are allowed around the commas, not inside a range
///   nor around the `=`, except directly behind it.
/// - An end past the representation is its last byte; a range that starts past it is left out; a
///   suffix longer than the representation is all of it; numbers past 64 bits count as 2⁶⁴ − 1.
/// - Ranges that overlap or touch (a gap of 0 bytes) become one, at the place of the one that was
///   asked for first; others stay in the order in which they were asked for (§15.3.7.2). Larger gaps
///   are left alone: the client gets exactly the bytes it named. No byte is sent twice.
/// - Of an empty representation no range can be written as `Content-Range`, so a suffix range, which
///   is satisfiable by definition, is ignored; the others are unsatisfiable.
pub fn parse(field: &[u8], total: u64) -> Ranges {
    let Some(set) = range_set(field) else { return Ranges::Ignored };
    let mut ranges = Vec::new();
    let mut named = 0;
    for member in set.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty()) {
        named += 1;
        let Some(spec) = Spec::parse(member) else { return Ranges::Ignored };
        if named > MAX_RANGES || (total == 0 && matches!(spec, Spec::Suffix(1..))) {
            return Ranges::Ignored;
        }
        ranges.extend(spec.within(total));
    }
    match (named, ranges.is_empty()) {
        (0, _) => Ranges::Ignored,
        (_, true) => Ranges::Unsatisfiable,
        (_, false) => Ranges::Satisfiable(coalesce(ranges)),
    }
}

/// The text behind `bytes=`.
fn range_set(field: &[u8]) -> Option<&[u8]> {
    let mut parts = trim(field).splitn(2, |byte| *byte == b'=');
    let unit = parts.next()?;
    unit.eq_ignore_ascii_case(b"bytes").then_some(())?;
    parts.next()
}

/// One member of a range set.
enum Spec {
    /// `first-last`, or `first-` with the last possible position.
    Int(u64, u64),
    /// `-length`
    Suffix(u64),
}

impl Spec {
    fn parse(member: &[u8]) -> Option<Self> {
        let hyphen = member.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (member.get(..hyphen)?, member.get(hyphen + 1..)?);
        match (first.is_empty(), last.is_empty()) {
            (true, _) => Some(Self::Suffix(number(last)?)),
            (false, true) => Some(Self::Int(number(first)?, u64::MAX)),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Int(first, last))
            }
        }
    }

    /// The bytes it names of a representation of this length; `None` where there are none.
    fn within(self, total: u64) -> Option<ByteRange> {
        let end = total.checked_sub(1)?;
        match self {
            Self::Int(first, last) => (first <= end).then(|| ByteRange { first, last: last.min(end) }),
            Self::Suffix(0) => None,
            Self::Suffix(length) => Some(ByteRange { first: total.saturating_sub(length), last: end }),
        }
    }
}

/// A number of digits alone (RFC 9110 §14.1.1); past 64 bits the largest one.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = bytes.iter().take_while(|byte| blank(byte)).count();
    let bytes = bytes.get(start..).unwrap_or_default();
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| blank(byte)).count();
    bytes.get(..end).unwrap_or_default()
}

/// Joins ranges that overlap or touch. A joined range stands where its earliest member stood.
fn coalesce(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut placed: Vec<(usize, ByteRange)> = ranges.into_iter().enumerate().collect();
    placed.sort_by_key(|(_, range)| range.first);
    let mut joined: Vec<(usize, ByteRange)> = Vec::with_capacity(placed.len());
    for (place, range) in placed {
        match joined.last_mut() {
            Some((kept_place, kept)) if range.first <= kept.last.saturating_add(1) => {
                kept.last = kept.last.max(range.last);
                *kept_place = place.min(*kept_place);
            }
            _ => joined.push((place, range)),
        }
    }
    joined.sort_by_key(|(place, _)| *place);
    joined.into_iter().map(|(_, range)| range).collect()
}
