//! The Huffman code alone.

use proptest::prelude::*;

use crate::hpack::HpackError;
use crate::hpack::huffman::{decode, encode, encoded_len};

fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(bytes, &mut out);
    out
}

fn decoded(code: &[u8]) -> Result<Vec<u8>, HpackError> {
    let mut out = Vec::new();
    decode(code, &mut out).map(|()| out)
}

#[test]
fn every_byte_goes_round_beside_every_other() {
    for first in 0..=255 {
        for second in 0..=255 {
            let bytes = [first, second];
            assert_eq!(decoded(&encoded(&bytes)).as_deref(), Ok(&bytes[..]));
        }
    }
}

/// RFC 7541 appendix B, some lines of it.
#[test]
fn codes_are_those_of_the_table() {
    for (byte, code) in [
        (b'0', &[0x07][..]),
        (b'a', &[0x1f]),
        (b'~', &[0xff, 0xef]),
        (0, &[0xff, 0xc7]),
        (b'\n', &[0xff, 0xff, 0xff, 0xf3]),
        (220, &[0xff, 0xff, 0xff, 0xdf]),
        (255, &[0xff, 0xff, 0xfb, 0xbf]),
    ] {
        assert_eq!(encoded(&[byte]), code, "{byte}");
    }
}

#[test]
fn padding_is_the_start_of_eos_and_less_than_a_byte() {
    // 'a' is 00011, with three bits of padding behind it.
    assert_eq!(decoded(&[0b0001_1111]).as_deref(), Ok(&b"a"[..]));
    assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
    for code in [
        &[0b0001_1110][..],
        &[0b0001_1000],
        // A whole byte of padding.
        &[0b0001_1111, 0xff],
        &[0xff],
        // '&' has eight bits, so that there is no padding.
        &[0xf8, 0xff],
        // The start of a code of ten bits: other bits than ones.
        &[0xfe],
        &[0xff, 0xff],
        &[0xff, 0xff, 0xff],
    ] {
        assert_eq!(decoded(code), Err(HpackError::Huffman), "{code:x?}");
    }
    assert_eq!(decoded(&[0xf8]).as_deref(), Ok(&b"&"[..]));
}

#[test]
fn eos_is_refused_wherever_it_stands() {
    for code in [
        &[0xff, 0xff, 0xff, 0xfc][..],
        &[0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0xff],
        // Behind 'a', with 'a' behind it.
        &[0x1f, 0xff, 0xff, 0xff, 0xe3, 0xff, 0xff],
    ] {
        assert_eq!(decoded(code), Err(HpackError::Huffman), "{code:x?}");
    }
}

#[test]
fn decoding_appends() {
    let mut out = b"name".to_vec();
    decode(&encoded(b"value"), &mut out).expect("a code");
    assert_eq!(out, b"namevalue");
}

/// The code as RFC 7541 explains it: bit by bit.
fn bit_by_bit(code: &[u8]) -> Option<Vec<u8>> {
    let mut symbols = std::collections::HashMap::new();
    for byte in 0..=255_u8 {
        let whole = encoded(&[byte; 8]);
        let length = encoded_len(&[byte; 8]);
        let number = whole[..4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        symbols.insert((length, number >> (32 - length)), byte);
    }
    let mut bytes = Vec::new();
    let (mut length, mut number) = (0, 0_u32);
    for bit in code.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
        (length, number) = (length + 1, number << 1 | u32::from(bit));
        if let Some(byte) = symbols.get(&(length, number)) {
            bytes.push(*byte);
            (length, number) = (0, 0);
        }
        if length == 30 {
            return None;
        }
    }
    (length < 8 && number == (1 << length) - 1).then_some(bytes)
}

proptest! {
    #[test]
    fn any_bytes_go_round(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let code = encoded(&bytes);
        prop_assert_eq!(code.len(), encoded_len(&bytes));
        prop_assert_eq!(decoded(&code), Ok(bytes));
    }

    #[test]
    fn any_code_is_read_as_bit_by_bit(mut code in prop::collection::vec(any::<u8>(), 0..12), ones in 0_usize..5) {
        // Ones are the rarest and the most telling.
        code.extend([0xff].repeat(ones));
        prop_assert_eq!(decoded(&code).ok(), bit_by_bit(&code));
        code.rotate_right(ones);
        prop_assert_eq!(decoded(&code).ok(), bit_by_bit(&code));
    }
}
