//! HTTP/2 against two other implementations: the same bytes of a client for our server, for the crate `h2` and for nghttp2.
//!
//! After every frame all have seen the same requests, bodies and ends, have reset the same streams and ended the connection for the same
//! reason. Where the RFCs leave a choice, or another implementation is known to be wrong, the difference is one of the list in
//! `allowed.rs`, and its consequences are drawn: nothing more is sent on a stream that only one side has, and an
//! implementation whose connection went another way is no longer looked at.
#![no_main]

mod allowed;
mod input;
mod nghttp2;
mod ours;
mod rust_h2;
mod seen;

use std::collections::BTreeSet;

use allowed::{Difference, Frame, Then, allowed};
use libfuzzer_sys::fuzz_target;
use seen::{Seen, Server};

const PREFACE: usize = 24;

fuzz_target!(|input: &[u8]| {
    let bytes = input::client(input);
    let mut ours = ours::Ours::new();
    let mut others: Vec<Box<dyn Server>> =
        vec![Box::new(rust_h2::RustH2::new()), Box::new(nghttp2::Nghttp2::new())];
    let mut apart = BTreeSet::new();
    let (mut reset, mut highest) = (BTreeSet::new(), 0);
    let mut block = None;
    let mut at = 0;
    while at < bytes.len() && !others.is_empty() {
        let length = if at == 0 { PREFACE } else { Frame::length(&bytes[at..]) };
        let piece = &bytes[at..bytes.len().min(at + length)];
        let frame = Frame::read(if at == 0 { &[] } else { piece });
        at += piece.len();
        if block.is_none() && apart.contains(&frame.stream) {
            continue;
        }
        let seen = see(&mut ours, piece);
        others.retain_mut(|other| {
            let theirs = see(&mut **other, piece);
            let difference = Difference {
                frame,
                block,
                ours: &seen,
                theirs: &theirs,
                who: other.name(),
                reset: &reset,
                highest,
            };
            match allowed(&difference) {
                Some(Then::Same) => seen.goaway.is_none(),
                Some(Then::Apart(stream)) => {
                    apart.insert(stream);
                    true
                }
                Some(Then::Leave) => false,
                None => panic!("no rule for {difference:#x?}\nbehind {}", bytes[..at].escape_ascii()),
            }
        });
        reset.extend(seen.resets.iter().map(|(stream, _)| *stream));
        if frame.kind == 3 {
            reset.insert(frame.stream);
        }
        if frame.kind == 1 {
            highest = frame.stream.max(highest);
        }
        block = frame.block_behind(block);
    }
});

fn see(server: &mut dyn Server, piece: &[u8]) -> Seen {
    let mut seen = Seen::default();
    server.feed(piece, &mut seen);
    seen.settle();
    seen
}
