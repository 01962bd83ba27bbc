//! The entries that the encoder puts into its table, and its output.

use super::{block_of, fields_of, pairs};
use crate::hpack::{Decoder, Encoder, static_table};

const SERVER: (&str, &str) = ("server", "maitred");

/// The length of one block of these fields.
fn length_of(encoder: &mut Encoder, fields: &[(&str, &str)]) -> usize {
    block_of(encoder, fields).len()
}

#[test]
fn usual_fields_are_a_byte_each_from_the_second_time_on() {
    let fields = [
        ("Server", "maitred"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Date", "Tue, 24 Nov 2026 10:00:00 GMT"),
        ("Cache-Control", "public, max-age=3600"),
        ("X-Frame-Options", "DENY"),
    ];
    let mut encoder = Encoder::new();
    assert!(length_of(&mut encoder, &fields) > 50);
    assert_eq!(block_of(&mut encoder, &fields), [0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
}

#[test]
fn names_become_lower_case_and_are_found_in_any_case() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let block = block_of(&mut encoder, &[("X-Powered-By", "A"), ("CONTENT-LENGTH", "1")]);
    let expected = pairs(&[("x-powered-by", "A"), ("content-length", "1")]);
    assert_eq!(fields_of(&mut decoder, &block), Ok(expected));
    assert_eq!(block_of(&mut encoder, &[("x-POWERED-by", "A")]), [0xbe]);
    // The value's case counts.
    assert_ne!(block_of(&mut encoder, &[("x-powered-by", "a")]), [0xbe]);
}

#[test]
fn every_status_has_its_digits() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    for code in (100..600).chain([999]) {
        let mut block = Vec::new();
        encoder.status(code, &mut block);
        let expected = code.to_string();
        assert_eq!(fields_of(&mut decoder, &block), Ok(pairs(&[(":status", &expected)])));
        let is_static = [200, 204, 206, 304, 400, 404, 500].contains(&code);
        assert_eq!(block.len() == 1, is_static, "{code}");
    }
}

#[test]
fn an_unusual_status_is_a_byte_the_second_time() {
    let mut encoder = Encoder::new();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    encoder.status(302, &mut first);
    encoder.status(302, &mut second);
    assert_eq!((first, second), (vec![0x48, 0x82, 0x64, 0x02], vec![0xbe]));
}

#[test]
fn entries_of_the_static_table_are_found_by_name_and_value() {
    let mut encoder = Encoder::new();
    for (index, (name, value)) in (1_u8..).zip(static_table::TABLE) {
        assert_eq!(block_of(&mut encoder, &[(name, value)]), [0x80 | index], "{name}: {value}");
    }
    assert_eq!(encoder.table_size(), 0);
}

#[test]
fn values_that_differ_with_each_response_are_not_inserted() {
    let mut encoder = Encoder::new();
    for name in ["Content-Length", "ETag", "Last-Modified", "Location", "Content-Range", "Age"] {
        let block = block_of(&mut encoder, &[(name, "12")]);
        assert!(block[0] < 0x10, "{name}: {block:x?}");
        assert_eq!(block_of(&mut encoder, &[(name, "12")]), block);
    }
    assert_eq!(encoder.table_size(), 0);
}

#[test]
fn secrets_are_never_indexed() {
    let mut encoder = Encoder::new();
    for name in ["Set-Cookie", "authorization", "Proxy-Authorization", "X-CSRF-Token", "x-api-key", "Cookie"]
    {
        let mut never = false;
        let block = block_of(&mut encoder, &[(name, "secret=1")]);
        Decoder::new(4096).decode(&block, |_, _, is_never| never = is_never).expect("a block");
        assert!(never, "{name}: {block:x?}");
    }
    assert_eq!(encoder.table_size(), 0);
}

#[test]
fn a_name_with_another_value_each_time_has_one_entry() {
    let mut encoder = Encoder::new();
    block_of(&mut encoder, &[SERVER]);
    let server = encoder.table_size();
    for number in 0..1000 {
        block_of(&mut encoder, &[("x-request-id", &format!("{number:032x}"))]);
    }
    assert_eq!(encoder.table_size() - server, "x-request-id".len() + 32 + 32);
    assert_eq!(block_of(&mut encoder, &[SERVER]), [0xbf]);
}

#[test]
fn a_value_that_comes_twice_is_inserted_again() {
    let mut encoder = Encoder::new();
    for value in ["one", "two", "three"] {
        block_of(&mut encoder, &[("date", value)]);
    }
    assert!(length_of(&mut encoder, &[("date", "three")]) > 1);
    assert_eq!(block_of(&mut encoder, &[("date", "three")]), [0xbe]);
    // Its entry was of use, so the next one is expected to be. That one is not, so no further one is inserted.
    for value in ["four", "five", "six"] {
        assert!(length_of(&mut encoder, &[("date", value)]) > 1);
    }
    assert_eq!(block_of(&mut encoder, &[("date", "four")]), [0xbe]);
}

#[test]
fn fields_larger_than_half_the_table_are_not_inserted() {
    let mut encoder = Encoder::new();
    let fits = "v".repeat(2048 - 32 - 1);
    block_of(&mut encoder, &[("a", &fits)]);
    assert_eq!(encoder.table_size(), 2048);
    let mut encoder = Encoder::new();
    block_of(&mut encoder, &[("a", &format!("{fits}v"))]);
    assert_eq!(encoder.table_size(), 0);
}

#[test]
fn the_huffman_code_is_used_only_where_it_is_shorter() {
    let mut encoder = Encoder::new();
    // Age is not inserted. "1" has five bits, which is a byte as well.
    assert_eq!(block_of(&mut encoder, &[("age", "1")]), b"\x0f\x06\x011");
    assert_eq!(block_of(&mut encoder, &[("age", "0120")]), b"\x0f\x06\x83\x00\x44\x0f");
    assert_eq!(block_of(&mut encoder, &[("age", "\u{1}\u{2}")]), b"\x0f\x06\x02\x01\x02");
}

#[test]
fn a_smaller_table_is_announced_and_a_larger_one_is_not_taken() {
    let mut encoder = Encoder::new();
    block_of(&mut encoder, &[SERVER]);
    encoder.set_max_table(100_000);
    assert_eq!(block_of(&mut encoder, &[SERVER]), [0xbe]);
    encoder.set_max_table(4096);
    assert_eq!(block_of(&mut encoder, &[SERVER]), [0xbe]);
    encoder.set_max_table(100);
    assert_eq!(block_of(&mut encoder, &[SERVER]), [0x3f, 0x45, 0xbe]);
    encoder.set_max_table(0);
    let block = block_of(&mut encoder, &[SERVER]);
    assert_eq!((block[0], encoder.table_size()), (0x20, 0));
    assert_eq!(block_of(&mut encoder, &[SERVER]), block[1..]);
}

/// RFC 7541 §4.2: the smallest size, then the last one.
#[test]
fn changes_between_two_blocks_are_announced_by_two_sizes_at_most() {
    let mut encoder = Encoder::new();
    block_of(&mut encoder, &[SERVER]);
    for size in [2000, 10, 20, 500] {
        encoder.set_max_table(size);
    }
    let block = block_of(&mut encoder, &[]);
    assert_eq!(block, [0x2a, 0x3f, 0xd5, 0x03]);
    assert_eq!(encoder.table_size(), 0);
    // Nothing is due then.
    assert_eq!(block_of(&mut encoder, &[]), []);
    // To nothing and back: the entries are lost all the same.
    block_of(&mut encoder, &[SERVER]);
    encoder.set_max_table(0);
    encoder.set_max_table(500);
    let block = block_of(&mut encoder, &[SERVER]);
    assert_eq!(block[..4], [0x20, 0x3f, 0xd5, 0x03]);
    assert!(block.len() > 5);
}

/// An entry's number has 16 bits.
#[test]
fn numbers_of_entries_begin_again() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    for number in 0..70_000_u32 {
        // The second one of each value is a hit, so that each value is inserted.
        for _ in 0..2 {
            let value = number.to_string();
            let block = block_of(&mut encoder, &[("x-number", &value), SERVER]);
            assert_eq!(fields_of(&mut decoder, &block), Ok(pairs(&[("x-number", &value), SERVER])));
        }
    }
    assert_eq!(encoder.table_size(), decoder.table_size());
}
