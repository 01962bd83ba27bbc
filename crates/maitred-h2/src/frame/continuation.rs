//! CONTINUATION (RFC 9113 §6.10): more of a header block. Its payload is nothing but the fragment.

use super::{CONTINUATION, END_HEADERS, Header};

/// Puts the headers of CONTINUATIONs into a block of which a part is at the end of `out`, from `from` on and without any; each has at
/// most `max` bytes. Returns how many they are.
pub(crate) fn put_split(stream: u32, from: usize, max: usize, out: &mut Vec<u8>) -> usize {
    // Blocks of this length are rare, so that the copy does not matter.
    let rest = out.split_off(from);
    let pieces = rest.len().div_ceil(max);
    for (number, piece) in rest.chunks(max).enumerate() {
        let flags = if number + 1 == pieces { END_HEADERS } else { 0 };
        Header { length: piece.len() as u32, kind: CONTINUATION, flags, stream }.put(out);
        out.extend_from_slice(piece);
    }
    pieces
}
