//! Stories: the blocks of whole connections, as other encoders wrote them (nghttp2, and hpack of Python).
//!
//! The format of a story is described in `stories/make.py`, which also has the decoders of both read the output of our
//! encoder.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;

use maitred_h2::hpack::{Decoder, Encoder};

#[path = "stories/story.rs"]
mod story;

use story::{Block, Field, blocks};

/// Every story's name and its blocks.
fn stories() -> Vec<(String, Vec<Block>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let files = fs::read_dir(folder).expect("the stories").map(|entry| entry.expect("a file").path());
    let mut stories: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "story"))
        .map(|file| (file.display().to_string(), blocks(&fs::read_to_string(&file).expect("text"))))
        .collect();
    stories.sort();
    assert!(stories.len() >= 10 && stories.iter().all(|(_, blocks)| blocks.len() >= 20));
    stories
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let result = decoder.decode(block, |name, value, _| fields.push((name.to_vec(), value.to_vec())));
    assert_eq!(result, Ok(()));
    fields
}

#[test]
fn blocks_of_other_encoders_are_read() {
    for (name, blocks) in stories() {
        // A larger table than the usual one is announced where the story has one.
        let most = blocks.iter().filter_map(|block| block.size).max().map_or(4096, |size| size.max(4096));
        for encoder in ["hpack", "nghttp2"] {
            let mut decoder = Decoder::new(most as usize);
            for (number, block) in blocks.iter().enumerate() {
                let fields = decoded(&mut decoder, block.by(encoder));
                assert_eq!(fields, block.fields, "{name}: block {number} of {encoder}");
            }
        }
    }
}

/// Where this fails by intent, `make.py` writes the new blocks and checks them.
#[test]
fn our_blocks_are_those_that_other_decoders_have_read() {
    for (name, blocks) in stories() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        for (number, block) in blocks.iter().enumerate() {
            let out = block.encoded(&mut encoder);
            assert!(out == block.by("maitred"), "{name}: block {number} is another one");
            assert_eq!(decoded(&mut decoder, &out), block.fields, "{name}: block {number}");
        }
    }
}

/// nghttp2 leaves much the same fields out of its table.
#[test]
fn our_blocks_are_a_fifth_longer_than_those_of_nghttp2_at_most() {
    for (name, blocks) in stories().iter().filter(|(name, _)| name.contains("response")) {
        let length = |encoder| blocks.iter().map(|block| block.by(encoder).len()).sum::<usize>();
        let (ours, others) = (length("maitred"), length("nghttp2"));
        assert!(ours * 5 <= others * 6, "{name}: {ours} bytes, {others} by nghttp2");
    }
}
