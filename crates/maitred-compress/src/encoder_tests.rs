use std::io::{Read, Write};

use proptest::prelude::*;

use super::*;

fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Identity => out.extend_from_slice(bytes),
        Coding::Gzip => {
            let mut decoder = flate2::read::GzDecoder::new(bytes);
            decoder.read_to_end(&mut out).expect("gzip");
            assert!(decoder.into_inner().is_empty(), "nothing behind the end");
        }
        Coding::Zstd => {
            let mut context = zstd_safe::DCtx::create();
            // RFC 9659: no decoder has to take more.
            context.set_parameter(zstd_safe::DParameter::WindowLogMax(23)).expect("a window");
            let mut input = InBuffer::around(bytes);
            loop {
                out.reserve(1 << 17);
                let filled = out.len();
                let left =
                    context.decompress_stream(&mut OutBuffer::around_pos(&mut out, filled), &mut input);
                if left.expect("zstd") == 0 {
                    assert_eq!(input.pos(), bytes.len(), "nothing behind the end");
                    break;
                }
                assert!(input.pos() < bytes.len() || out.len() > filled, "the end is missing");
            }
        }
        Coding::Brotli => {
            let mut decoder = brotli::DecompressorWriter::new(&mut out, 4096);
            decoder.write_all(bytes).expect("brotli");
            decoder.close().expect("the end");
            drop(decoder);
        }
    }
    out
}

/// Decodes the bytes of a body that has not ended.
fn decoded_so_far(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Identity => out.extend_from_slice(bytes),
        Coding::Gzip => {
            let mut inflate = flate2::Decompress::new_gzip(15);
            loop {
                let done = usize::try_from(inflate.total_in()).expect("small");
                out.reserve(1 << 16);
                let before = out.len();
                inflate
                    .decompress_vec(&bytes[done..], &mut out, flate2::FlushDecompress::Sync)
                    .expect("gzip");
                if out.len() == before && inflate.total_in() == bytes.len() as u64 {
                    break;
                }
            }
        }
        Coding::Zstd => {
            let mut context = zstd_safe::DCtx::create();
            let mut input = InBuffer::around(bytes);
            loop {
                out.reserve(1 << 17);
                let (filled, taken) = (out.len(), input.pos());
                context
                    .decompress_stream(&mut OutBuffer::around_pos(&mut out, filled), &mut input)
                    .expect("zstd");
                if out.len() == filled && input.pos() == taken {
                    break;
                }
            }
        }
        Coding::Brotli => {
            let mut decoder = brotli::Decompressor::new(bytes, 4096);
            let mut part = [0; 4096];
            // Where the bytes end it says that the end is missing.
            while let Ok(count @ 1..) = decoder.read(&mut part) {
                out.extend_from_slice(&part[..count]);
            }
        }
    }
    out
}

fn whole(coding: Coding, level: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    super::whole(coding, level, body, &mut out).expect("compressed");
    out
}

#[test]
fn a_body_is_compressed_whatever_its_length() {
    for length in [0, 1, 100_000, 1024 * 1024 + 1] {
        // Random letters, so that the room for output is needed.
        let mut state = 1_u64;
        let body = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let body = &body.take(length).collect::<Vec<u8>>();
        for level in [1, 6] {
            let mut out = b"before".to_vec();
            super::whole(Coding::Gzip, level, body, &mut out).expect("compressed");
            assert_eq!(
                decoded(Coding::Gzip, out.strip_prefix(b"before").expect("appended")),
                *body,
                "{length}"
            );
        }
    }
}

fn codings() -> impl Strategy<Value = (Coding, u8)> {
    prop_oneof![
        (Just(Coding::Gzip), 1..=9_u8),
        (Just(Coding::Zstd), 1..=9_u8),
        (Just(Coding::Brotli), 1..=6_u8)
    ]
}

/// Text, noise and repetition, in blocks of which some are empty.
fn blocks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let block = prop_oneof![
        Just(Vec::new()),
        "[a-e ]{1,300}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 1..3000),
        (any::<u8>(), 1_usize..200_000).prop_map(|(byte, length)| vec![byte; length]),
    ];
    prop::collection::vec(block, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_block_can_be_decoded_at_once_and_all_of_them_are_the_body(
        (coding, level) in codings(),
        blocks in blocks(),
    ) {
        let mut encoder = Encoder::new(coding, level, None).expect("memory");
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        for block in &blocks {
            encoder.block(block, &mut out).expect("compressed");
            sent.extend_from_slice(block);
            prop_assert!(decoded_so_far(coding, &out) == sent, "{coding:?} {level}: {} bytes", sent.len());
        }
        encoder.last(b"the end", &mut out).expect("compressed");
        sent.extend_from_slice(b"the end");
        prop_assert!(decoded(coding, &out) == sent);
    }

    #[test]
    fn a_whole_body_comes_back((coding, level) in codings(), blocks in blocks()) {
        let body = blocks.concat();
        prop_assert!(decoded(coding, &whole(coding, level, &body)) == body);
    }
}

#[test]
fn a_compressor_is_used_again_also_after_a_response_that_was_cut() {
    let body = "a line of the body\n".repeat(500).into_bytes();
    for (coding, level) in [(Coding::Gzip, 6), (Coding::Zstd, 3), (Coding::Brotli, 4)] {
        let first = whole(coding, level, &body);
        let mut cut = Encoder::new(coding, level, None).expect("memory");
        cut.block(b"half of a response", &mut Vec::new()).expect("compressed");
        drop(cut);
        assert_eq!(whole(coding, level, &body), first, "{coding:?}: as if nothing had been before");
        let kept = SPARE.with_borrow(|spare| place(coding).map(|place| spare[place].is_some()));
        assert_eq!(kept, (coding != Coding::Brotli).then_some(true), "{coding:?}");
        // Another level is another compressor.
        assert_eq!(decoded(coding, &whole(coding, 1, &body)), body);
    }
}

#[test]
fn compressed_bodies_are_smaller() {
    let body = "{\"name\": \"value\", \"number\": 12345}\n".repeat(1000).into_bytes();
    for (coding, level) in [(Coding::Gzip, 6), (Coding::Zstd, 3), (Coding::Brotli, 4)] {
        let made = whole(coding, level, &body);
        assert!(made.len() * 20 < body.len(), "{coding:?}: {} of {}", made.len(), body.len());
    }
}

#[test]
fn an_unfinished_response_takes_no_more_than_is_said() {
    let body = "a line of the body, and then some more of it\n".repeat(50_000).into_bytes();
    let taken = |level| {
        let mut encoder = Encoder::new(Coding::Zstd, level, None).expect("memory");
        for block in body.chunks(100_000) {
            encoder.block(block, &mut Vec::new()).expect("compressed");
        }
        let Some(State::Zstd(context)) = &encoder.state else { panic!("of zstd") };
        context.sizeof() as u64
    };
    let all: Vec<(u8, u64)> = (1..=9).map(|level| (level, taken(level))).collect();
    assert!(all.iter().all(|(level, taken)| *taken <= memory(Coding::Zstd, *level)), "{all:?}");
}

#[test]
fn a_compressor_that_has_become_large_is_not_kept() {
    let body = vec![b'a'; 3 << 20];
    assert_eq!(decoded(Coding::Zstd, &whole(Coding::Zstd, 9, &body)).len(), body.len());
    let kept = SPARE.with_borrow(|spare| {
        spare[1].as_ref().map(|(state, _)| match state {
            State::Zstd(context) => context.sizeof(),
            _ => 0,
        })
    });
    assert!(kept.is_none_or(|bytes| bytes <= MAX_KEPT), "{kept:?}");
}
