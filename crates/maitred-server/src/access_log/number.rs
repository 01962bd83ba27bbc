//! Numbers, times and addresses, appended without the formatting machinery of the standard library: a line has a dozen of
//! them, and there is a line for each request.

use std::io::Write as _;
use std::net::IpAddr;

/// In decimal.
pub(super) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Microseconds as seconds with six places.
pub(super) fn push_seconds(out: &mut Vec<u8>, micros: u64) {
    push_decimal(out, micros / 1_000_000);
    push_fraction(out, micros);
}

/// The microseconds of a second, as its decimal places: `.000123`.
pub(super) fn push_fraction(out: &mut Vec<u8>, micros: u64) {
    let mut places = *b".000000";
    let mut left = micros % 1_000_000;
    for place in places[1..].iter_mut().rev() {
        *place += (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&places);
}

/// As the standard library writes it.
pub(super) fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(itoa::Buffer::new().format(octet).as_bytes());
            }
        }
        // Writing to memory does not fail.
        IpAddr::V6(address) => _ = write!(out, "{address}"),
    }
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
        fn it_is_what_the_standard_library_writes(number: u64, address: IpAddr) {
            prop_assert_eq!(text(|out| push_decimal(out, number)), number.to_string());
            let seconds = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
            prop_assert_eq!(text(|out| push_seconds(out, number)), seconds);
            prop_assert_eq!(text(|out| push_address(out, address)), address.to_string());
        }
    }
}
