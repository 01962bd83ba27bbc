//! Text in pieces. Input: a byte for the length of the pieces, and the text.
//!
//! It is refused in the piece that has the byte with which no continuation makes it UTF-8, and complete if the standard library
//! says so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_ws::Utf8;

fuzz_target!(|input: &[u8]| {
    let Some((piece, text)) = input.split_first() else { return };
    let bad = first_bad(text);
    for piece in [1, 1 + usize::from(*piece), usize::MAX] {
        let piece = piece.min(text.len()).max(1);
        let mut utf8 = Utf8::default();
        let refused = text.chunks(piece).position(|piece| utf8.check(piece).is_err());
        assert_eq!(refused, bad.map(|at| at / piece), "pieces of {piece}");
        if bad.is_none() {
            assert_eq!(utf8.is_complete(), std::str::from_utf8(text).is_ok());
        }
    }
});

/// The first byte with which it cannot be UTF-8 (RFC 3629 §4).
fn first_bad(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let (second, length) = match text[at] {
            0..=0x7f => (0..=0, 1),
            0xc2..=0xdf => (0x80..=0xbf, 2),
            0xe0 => (0xa0..=0xbf, 3),
            0xe1..=0xec | 0xee..=0xef => (0x80..=0xbf, 3),
            0xed => (0x80..=0x9f, 3),
            0xf0 => (0x90..=0xbf, 4),
            0xf1..=0xf3 => (0x80..=0xbf, 4),
            0xf4 => (0x80..=0x8f, 4),
            _ => return Some(at),
        };
        for number in 1..length {
            let range = if number == 1 { second.clone() } else { 0x80..=0xbf };
            match text.get(at + number) {
                None => return None,
                Some(byte) if !range.contains(byte) => return Some(at + number),
                Some(_) => {}
            }
        }
        at += length;
    }
    None
}
