//! However the bytes are cut the events are the same.

use proptest::prelude::*;

use super::*;
use crate::deflate::Compressor;

/// A part of the bytes of a client.
#[derive(Clone, Debug)]
enum Sent {
    Message {
        kind: Kind,
        payload: Vec<u8>,
        compressed: bool,
        cuts: Vec<usize>,
    },
    Control(u8, Vec<u8>),
    /// Anything.
    Bytes(Vec<u8>),
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "\\PC{0,40}".prop_map(String::into_bytes),
        2 => proptest::collection::vec(any::<u8>(), 0..300),
        1 => (0usize..300_000, any::<u8>()).prop_map(|(length, byte)| vec![byte & 0x7f; length]),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let kind = prop_oneof![Just(Kind::Text), Just(Kind::Binary)];
    prop_oneof![
        8 => (kind, payload(), any::<bool>(), proptest::collection::vec(0usize..400, 0..3))
            .prop_map(|(kind, payload, compressed, cuts)| Sent::Message { kind, payload, compressed, cuts }),
        2 => (prop::sample::select(vec![0x89, 0x8a]), proptest::collection::vec(any::<u8>(), 0..126))
            .prop_map(|(first, payload)| Sent::Control(first, payload)),
        1 => proptest::collection::vec(any::<u8>(), 0..20).prop_map(Sent::Bytes),
    ]
}

/// The bytes, the events that have to be seen up to the first piece of anything, and whether these are all.
fn stream(all: &[Sent], takeover: bool) -> (Vec<u8>, Vec<Seen>, bool) {
    let mut compressor = Compressor::new(&deflate(takeover));
    let (mut stream, mut expected, mut certain) = (Vec::new(), Vec::new(), true);
    for sent in all {
        match sent {
            Sent::Bytes(bytes) => {
                stream.extend_from_slice(bytes);
                certain = false;
            }
            Sent::Control(first, payload) => {
                stream.extend(frame(*first, payload));
                let seen = if *first == 0x89 { Seen::Ping } else { Seen::Pong };
                expected.extend(certain.then(|| seen(payload.clone())));
            }
            Sent::Message { kind, payload, compressed, cuts } => {
                let mut bytes = Vec::new();
                if *compressed {
                    compressor.compress(payload, &mut bytes);
                } else {
                    bytes.clone_from(payload);
                }
                stream.extend(fragments(*kind, *compressed, &bytes, cuts));
                if certain {
                    let seen = match (kind, String::from_utf8(payload.clone())) {
                        (Kind::Binary, _) => Seen::Binary(payload.clone()),
                        (Kind::Text, Ok(text)) => Seen::Text(text),
                        (Kind::Text, Err(_)) => {
                            certain = false;
                            Seen::Failed(1007, "a text message is not UTF-8")
                        }
                    };
                    expected.push(seen);
                }
            }
        }
    }
    (stream, expected, certain)
}

fn fragments(kind: Kind, compressed: bool, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| *cut.min(&bytes.len())).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let (mut stream, mut start) = (Vec::new(), 0);
    for (number, end) in ends.iter().enumerate() {
        let opcode = match (number, kind) {
            (0, Kind::Text) => 1,
            (0, Kind::Binary) => 2,
            _ => 0,
        };
        let first =
            opcode | u8::from(number == 0 && compressed) << 6 | u8::from(number + 1 == ends.len()) << 7;
        stream.extend(frame(first, &bytes[start..*end]));
        start = *end;
    }
    stream
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn in_any_pieces_the_events_are_the_same(
        all in proptest::collection::vec(sent(), 0..6),
        takeover: bool,
        piece in 1usize..600,
        message in prop_oneof![Just(1_u64 << 20), 0u64..400],
        ratio in prop_oneof![Just(2000_u32), 1u32..400],
    ) {
        let (stream, expected, certain) = stream(&all, takeover);
        let limits = Limits { message, fragments: 3, ratio, ratio_from: 0 };
        let make = || Receiver::new(limits, Some(&deflate(takeover)));
        let whole = seen(make, &stream);
        prop_assert_eq!(&seen_in_pieces(&mut make(), stream.chunks(piece)), &whole);
        if message == 1 << 20 && ratio == 2000 {
            prop_assert_eq!(&whole[..expected.len().min(whole.len())], &expected[..]);
            prop_assert!(!certain || whole.len() == expected.len());
        }
    }

    #[test]
    fn compressed_bytes_that_are_changed_fail_at_the_same_place(
        payload in payload(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        text: bool,
        piece in 1usize..50,
        ratio in 1u32..1000,
    ) {
        let mut bytes = Vec::new();
        Compressor::new(&deflate(true)).compress(&payload, &mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let stream = [frame(if text { 0xc1 } else { 0xc2 }, &bytes), frame(0xc2, &bytes)].concat();
        let make = || Receiver::new(Limits { ratio, ..WIDE }, Some(&deflate(true)));
        let whole = seen(make, &stream);
        prop_assert_eq!(seen_in_pieces(&mut make(), stream.chunks(piece)), whole);
    }
}
