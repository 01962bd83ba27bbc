//! HEADERS (RFC 9113 §6.2): a head, or trailers, or the beginning of one.

use super::{Dependency, END_HEADERS, END_STREAM, HAS_PRIORITY, HEADERS, Header, PADDED, put_split};
use crate::error::ConnectionError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers<'a> {
    pub(crate) ends: bool,
    pub(crate) whole: bool,
    pub(crate) dependency: Option<Dependency>,
    pub(crate) fragment: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Reads a complete payload.
    /// Errors: it is on no stream, or the parts around the fragment are longer than the frame.
    pub(crate) fn read(header: Header, payload: &'a [u8]) -> Result<Self, ConnectionError> {
        header.on_stream("HEADERS on stream 0")?;
        let mut rest = payload;
        let mut padding = 0;
        if header.has(PADDED) {
            let short = ConnectionError::size("HEADERS without the length of its padding");
            let (length, behind) = rest.split_first().ok_or(short)?;
            (padding, rest) = (usize::from(*length), behind);
        }
        let mut dependency = None;
        if header.has(HAS_PRIORITY) {
            let short = ConnectionError::size("HEADERS without its priority");
            let (bytes, behind) = rest.split_first_chunk::<5>().ok_or(short)?;
            (dependency, rest) = (Some(Dependency::read(*bytes)), behind);
        }
        let length = rest
            .len()
            .checked_sub(padding)
            .ok_or(ConnectionError::protocol("HEADERS with more padding than payload"))?;
        Ok(Self {
            ends: header.has(END_STREAM),
            whole: header.has(END_HEADERS),
            dependency,
            fragment: rest.get(..length).unwrap_or_default(),
        })
    }
}

/// Appends the block that `write` makes as HEADERS, and as CONTINUATIONs behind `max` bytes. Returns the block's length
/// and the number of CONTINUATIONs.
pub(crate) fn put_headers(
    stream: u32,
    ends: bool,
    max: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> (usize, usize) {
    let start = out.len();
    let flags = if ends { END_STREAM } else { 0 };
    let header = |length, flags| Header { length, kind: HEADERS, flags, stream };
    header(0, flags).put(out);
    let first = out.len();
    write(out);
    let length = out.len() - first;
    // The largest length of a frame has 24 bits.
    let whole = length <= max;
    let (length_here, flags) = if whole { (length, flags | END_HEADERS) } else { (max, flags) };
    if let Some(place) = out.get_mut(start..first) {
        place.copy_from_slice(&header(length_here as u32, flags).bytes());
    }
    let further = if whole { 0 } else { put_split(stream, first + max, max, out) };
    (length, further)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: u8, payload: &[u8]) -> Result<Headers<'_>, ConnectionError> {
        Headers::read(Header { length: payload.len() as u32, kind: HEADERS, flags, stream: 3 }, payload)
    }

    #[test]
    fn padding_and_priority_around_the_fragment_are_taken_off() {
        let plain = read(END_STREAM | END_HEADERS, b"block").expect("a frame");
        assert_eq!(
            (plain.ends, plain.whole, plain.dependency, plain.fragment),
            (true, true, None, &b"block"[..])
        );
        let full = read(PADDED | HAS_PRIORITY, b"\x02\x80\0\0\x03\x10block\0\0").expect("a frame");
        assert_eq!((full.ends, full.whole, full.fragment), (false, false, &b"block"[..]));
        assert_eq!(full.dependency.map(|dependency| dependency.stream), Some(3));
        assert_eq!(read(PADDED, b"\x02\0\0").expect("a frame").fragment, b"");
    }

    #[test]
    fn padding_and_priority_that_do_not_fit_are_refused() {
        use crate::error::ErrorCode::{FrameSizeError, ProtocolError};
        for (flags, payload, code) in [
            (PADDED, &b""[..], FrameSizeError),
            (HAS_PRIORITY, b"\0\0\0\0", FrameSizeError),
            (PADDED | HAS_PRIORITY, b"\0\0\0\0\0", FrameSizeError),
            (PADDED, b"\x05block"[..5].as_ref(), ProtocolError),
            (PADDED | HAS_PRIORITY, b"\x02\0\0\0\0\0x", ProtocolError),
        ] {
            assert_eq!(read(flags, payload).expect_err("refused").code, code, "{payload:?}");
        }
        let header = Header { length: 0, kind: HEADERS, flags: 0, stream: 0 };
        assert_eq!(Headers::read(header, b"").expect_err("refused").code, ProtocolError);
    }

    #[test]
    fn a_long_block_is_split() {
        for (length, frames) in [(0, 1), (1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (21, 3), (35, 4)] {
            let block: Vec<u8> = (0..length).collect();
            let mut out = b"before".to_vec();
            let put = put_headers(7, true, 10, &mut out, |out| out.extend_from_slice(&block));
            assert_eq!(put, (block.len(), frames - 1));
            let (mut rest, mut gathered, mut seen) = (&out[6..], Vec::new(), 0);
            while let Some(header) = Header::read(rest) {
                let kind = if seen == 0 { HEADERS } else { super::super::CONTINUATION };
                seen += 1;
                let ends = if seen == 1 { END_STREAM } else { 0 };
                let last = if seen == frames { END_HEADERS } else { 0 };
                assert_eq!((header.kind, header.flags, header.stream), (kind, ends | last, 7), "{length}");
                gathered.extend_from_slice(&rest[9..9 + header.length as usize]);
                rest = &rest[9 + header.length as usize..];
            }
            assert_eq!((gathered, seen, rest.len()), (block, frames, 0));
        }
    }
}
