//! Our encoder's output for a story: `deflate < STORY` writes one line for each block (`tests/stories/make.py`).

#![expect(clippy::expect_used, reason = "a tool fails by a panic")]

use std::io::{self, Read, Write};

use maitred_h2::hpack::Encoder;

#[path = "../tests/stories/story.rs"]
mod story;

fn main() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let mut encoder = Encoder::new();
    for block in story::blocks(&text) {
        let digits: String = block.encoded(&mut encoder).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(io::stdout(), "{digits}")?;
    }
    Ok(())
}
