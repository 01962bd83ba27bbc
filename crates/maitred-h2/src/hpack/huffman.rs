//! The Huffman code of strings (RFC 7541 §5.2).
//!
//! Decoding looks twelve bits up at a time, which are two bytes of usual fields. Codes of more than eight bits are
//! found by comparing 32 bits with the first code of each length.

mod table;

use super::HpackError;
use table::{CODES, LENGTHS, LONG, LONGEST, ORDERED, SHORT, TWO, TWO_BITS, Two};

/// How many bytes [`encode`] appends.
pub fn encoded_len(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|byte| usize::from(length(*byte))).sum();
    bits.div_ceil(8)
}

/// Appends the code of `bytes`, padded with ones.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut window: u64 = 0;
    let mut waiting = 0;
    for byte in bytes {
        let length = u32::from(length(*byte));
        window = (window << length) | u64::from(code(*byte));
        waiting += length;
        // Fewer than 32 bits waited before, and no code has more than 30.
        if waiting >= 32 {
            waiting -= 32;
            out.extend_from_slice(&((window >> waiting) as u32).to_be_bytes());
        }
    }
    let padding = waiting.wrapping_neg() % 8;
    let last = (window << padding) | ((1 << padding) - 1);
    let mut left = waiting + padding;
    while left > 0 {
        left -= 8;
        out.push((last >> left) as u8);
    }
}

/// Appends the decoded text of `code`, at most 8/5 of its length. Behind a fault the end of `out` is unspecified.
///
/// # Errors
/// `Huffman`: more than 7 bits of padding, padding of other bits than ones, or EOS.
pub fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let start = out.len();
    // No code has fewer than five bits; two bytes are written at once.
    out.resize(start + code.len().saturating_mul(8) / 5 + 1, 0);
    let (_, room) = out.split_at_mut_checked(start).unwrap_or_default();
    let decoded = decode_into(code, room)?;
    out.truncate(start + decoded);
    Ok(())
}

/// Decodes into the start of `room`, which is large enough, and returns how many bytes there are.
fn decode_into(code: &[u8], room: &mut [u8]) -> Result<usize, HpackError> {
    // The next bits stand at the top.
    let mut window: u64 = 0;
    let mut bits: u32 = 0;
    let mut rest = code;
    let mut at = 0;
    while let Some((word, behind)) = rest.split_first_chunk() {
        rest = behind;
        window |= u64::from(u32::from_be_bytes(*word)) << (32 - bits);
        bits += 32;
        while bits >= LONGEST as u32 {
            let next = first_two(window).ok_or(HpackError::Huffman)?;
            if let Some(place) = room.get_mut(at..).and_then(|room| room.first_chunk_mut()) {
                *place = next.bytes;
            }
            at += usize::from(next.count);
            window <<= next.length;
            bits -= u32::from(next.length);
        }
    }
    for byte in rest {
        window |= u64::from(*byte) << (56 - bits);
        bits += 8;
    }
    // From here on ones stand behind the last bit.
    window |= u64::MAX >> bits;
    while let Some((symbol, length)) = first(window)
        && length <= bits
    {
        if let Some(place) = room.get_mut(at) {
            *place = symbol;
        }
        at += 1;
        window = (window << length) | ((1 << length) - 1);
        bits -= length;
    }
    // The rest has to be the start of EOS.
    if bits < 8 && window == u64::MAX { Ok(at) } else { Err(HpackError::Huffman) }
}

/// One byte or two whose codes are at the top of the window. `None` for EOS.
#[inline]
fn first_two(window: u64) -> Option<Two> {
    match TWO.get((window >> (64 - TWO_BITS)) as usize) {
        Some(two) if two.count > 0 => Some(*two),
        _ => {
            let (byte, length) = first_long(window)?;
            Some(Two { bytes: [byte, 0], length: length as u8, count: 1 })
        }
    }
}

/// The byte whose code is at the top of the window, and the bits of the code. `None` for EOS.
#[inline]
fn first(window: u64) -> Option<(u8, u32)> {
    let [top, ..] = window.to_be_bytes();
    match SHORT.get(usize::from(top)) {
        Some(0) | None => first_long(window),
        Some(short) => {
            let [symbol, length] = short.to_be_bytes();
            Some((symbol, u32::from(length)))
        }
    }
}

fn first_long(window: u64) -> Option<(u8, u32)> {
    let bits = (window >> 32) as u32;
    let (length, long) = (0..).zip(&LONG).skip(9).find(|(_, long)| bits < long.end)?;
    let offset = (bits >> (32 - length)) - long.first;
    let symbol = ORDERED.get(usize::from(long.place) + offset as usize)?;
    Some((*symbol, length))
}

#[inline]
fn length(byte: u8) -> u8 {
    LENGTHS.get(usize::from(byte)).copied().unwrap_or_default()
}

#[inline]
fn code(byte: u8) -> u32 {
    CODES.get(usize::from(byte)).copied().unwrap_or_default()
}
