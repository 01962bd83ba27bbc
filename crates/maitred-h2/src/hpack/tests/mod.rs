//! Tests of both ends, by the bytes between them.

mod appendix_c;
mod decoding;
mod encoding;
mod huffman;
mod names;
mod round;

use super::{Decoder, Encoder, HpackError};

type Field = (String, String);

/// The fields of one block.
fn fields_of(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, HpackError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = Vec::new();
    decoder.decode(block, |name, value, _| fields.push((text(name), text(value))))?;
    Ok(fields)
}

/// One block of these fields.
fn block_of(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    block
}

fn pairs(fields: &[(&str, &str)]) -> Vec<Field> {
    fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().map(|digit| (digit as char).to_digit(16).expect("hexadecimal") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
