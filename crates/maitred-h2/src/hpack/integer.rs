//! Integers with a prefix (RFC 7541 §5.1): a few bits of the first byte, then seven bits a byte.

use super::HpackError;

/// Five bytes of seven bits hold every number of 32 bits.
const MAX_SHIFT: u32 = 28;

/// The number whose first byte is `first`, of which it has the low `prefix` bits (1 to 8); `rest` stands behind the number then.
/// Errors: `Truncated`; `Integer` for more than 32 bits or more than five bytes behind the prefix.
#[inline]
pub(super) fn read(first: u8, prefix: u32, rest: &mut &[u8]) -> Result<usize, HpackError> {
    let most = full(prefix);
    let low = first & most;
    if low < most { Ok(usize::from(low)) } else { read_long(most, rest) }
}

fn read_long(most: u8, rest: &mut &[u8]) -> Result<usize, HpackError> {
    let mut value = u64::from(most);
    let mut shift = 0;
    while shift <= MAX_SHIFT {
        let (byte, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = behind;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).map_err(|_| HpackError::Integer)?;
            return usize::try_from(value).map_err(|_| HpackError::Integer);
        }
        shift += 7;
    }
    Err(HpackError::Integer)
}

/// Appends `value` behind the bits of `pattern`, which has zeros in its low `prefix` bits (1 to 8).
#[inline]
pub(super) fn write(pattern: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = full(prefix);
    if value < usize::from(most) {
        out.push(pattern | value as u8);
    } else {
        write_long(pattern | most, value - usize::from(most), out);
    }
}

fn write_long(first: u8, mut value: usize, out: &mut Vec<u8>) {
    out.push(first);
    while value >= 0x80 {
        out.push(0x80 | value as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A byte whose low `bits` bits are set.
const fn full(bits: u32) -> u8 {
    ((1_u32 << bits) - 1) as u8
}
