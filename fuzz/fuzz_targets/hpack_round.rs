//! Blocks that our encoder writes. Input: lines; an empty line ends a block, `#n` makes n the peer's table size,
//! `:n` is a status, any other line is a field `name: value`.
//!
//! Our decoder reads the same fields; both tables have the same size, never above the peer's limit; secrets are never
//! indexed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_h2::hpack::{Decoder, Encoder};

/// The largest table size that the peer announces.
const MOST: u32 = 10_000;

type Field = (Vec<u8>, Vec<u8>);

fuzz_target!(|input: &[u8]| {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(MOST as usize));
    let mut size = 4096;
    for block in blocks(input) {
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        let (sizes, fields): (Vec<_>, Vec<_>) = block.into_iter().partition(|line| line.starts_with(b"#"));
        for line in sizes {
            size = number(&line[1..]) % (MOST + 1);
            encoder.set_max_table(size);
        }
        encoder.begin(&mut out);
        for line in fields {
            sent.push(put(line, &mut encoder, &mut out));
        }
        let mut read = Vec::new();
        let result = decoder.decode(&out, |name, value, never| {
            let is_secret = [&b"set-cookie"[..], b"authorization", b"cookie"].contains(&name);
            assert!(never || !is_secret || value.is_empty());
            read.push((name.to_vec(), value.to_vec()));
        });
        assert_eq!((result, read), (Ok(()), sent));
        assert_eq!(encoder.table_size(), decoder.table_size());
        assert!(encoder.table_size() <= (size as usize).min(4096));
    }
});

fn blocks(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
    lines.split(|line| line.is_empty()).map(|block| block.to_vec()).collect()
}

fn number(digits: &[u8]) -> u32 {
    digits
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0, |number: u32, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
}

/// Puts the field of this line and returns the one that has to be read.
fn put(line: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) -> Field {
    if let Some(digits) = line.strip_prefix(b":") {
        let code = number(digits) % 1000;
        encoder.status(code as u16, out);
        return (b":status".to_vec(), format!("{code:03}").into_bytes());
    }
    let (name, value) = match line.iter().position(|byte| *byte == b':') {
        Some(colon) => (&line[..colon], line[colon + 1..].trim_ascii()),
        None => (line, &b""[..]),
    };
    encoder.field(name, value, out);
    (name.to_ascii_lowercase(), value.to_vec())
}
