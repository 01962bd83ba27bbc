//! Reads a story.

use maitred_h2::hpack::Encoder;

pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// One block.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block {
    /// The size of the reader's table from here on.
    pub(crate) size: Option<u32>,
    /// The names of encoders, and the block as they wrote it.
    pub(crate) written: Vec<(String, Vec<u8>)>,
    pub(crate) fields: Vec<Field>,
}

impl Block {
    /// The story that the encoder of this name wrote.
    #[allow(dead_code, reason = "only one of the two programs reads it")]
    pub(crate) fn by(&self, encoder: &str) -> &[u8] {
        let written = self.written.iter().find(|(name, _)| name == encoder);
        &written.expect("the encoder's block").1
    }

    /// The story that our encoder writes.
    pub(crate) fn encoded(&self, encoder: &mut Encoder) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(size) = self.size {
            encoder.set_max_table(size);
        }
        encoder.begin(&mut out);
        for (name, value) in &self.fields {
            encoder.field(name, value, &mut out);
        }
        out
    }
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
    text.split("\n\n").skip(1).map(block).collect()
}

fn block(text: &str) -> Block {
    let mut block = Block::default();
    for line in text.lines() {
        if let Some(field) = line.strip_prefix("  ") {
            // The name of a pseudo-field begins with a colon.
            let colon = 1 + field[1..].find(':').expect("a colon");
            let value = field[colon + 1..].strip_prefix(' ').unwrap_or_default();
            block.fields.push((field[..colon].into(), value.into()));
        } else if let Some(size) = line.strip_prefix("size ") {
            block.size = Some(size.parse().expect("a size"));
        } else {
            let (encoder, digits) = line.split_once(' ').expect("an encoder");
            block.written.push((encoder.to_owned(), hex(digits)));
        }
    }
    block
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}
