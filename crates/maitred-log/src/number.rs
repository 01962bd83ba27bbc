//! Numbers, times and addresses, appended without the formatting machinery of the standard library: a line has a dozen of
//! them, and there is a line for each request.

use std::io::Write as _;
use std::net::IpAddr;

#[inline]
pub(crate) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[inline]
pub(crate) fn push_seconds(out: &mut Vec<u8>, micros: u64) {
    if micros < 1_000_000 {
        let [point, places @ ..] = fraction(micros);
        let [a, b, c, d, e, f] = places;
        return out.extend_from_slice(&[b'0', point, a, b, c, d, e, f]);
    }
    push_decimal(out, micros / 1_000_000);
    push_fraction(out, micros);
}

pub(crate) fn push_fraction(out: &mut Vec<u8>, micros: u64) {
    out.extend_from_slice(&fraction(micros % 1_000_000));
}

/// Of less than a second.
#[inline]
fn fraction(micros: u64) -> [u8; 7] {
    let micros = micros as u32;
    let digit = |unit: u32| b'0' + (micros / unit % 10) as u8;
    [b'.', digit(100_000), digit(10_000), digit(1_000), digit(100), digit(10), digit(1)]
}

/// As the standard library writes it.
pub(crate) fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    // Writing to memory does not fail.
    let _ = write!(out, "{address}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_what_the_standard_library_writes(number: u64, shift in 0..64_u32, address: IpAddr) {
            let number = number >> shift;
            prop_assert_eq!(text(|out| push_decimal(out, number)), number.to_string());
            let seconds = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
            prop_assert_eq!(text(|out| push_seconds(out, number)), seconds);
            prop_assert_eq!(text(|out| push_address(out, address)), address.to_string());
        }
    }
}
