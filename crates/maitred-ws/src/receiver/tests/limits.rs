use super::*;
use crate::deflate::Compressor;

const LONG: Seen = Seen::Failed(1009, "a message is longer than is allowed");

fn small() -> Receiver {
    Receiver::new(Limits { message: 10, fragments: 3, ratio: 1000, ratio_from: 0 }, None)
}

#[test]
fn a_message_has_a_length_at_most() {
    assert_eq!(seen(small, &frame(0x82, &[0; 10])), [Seen::Binary(vec![0; 10])]);
    assert_eq!(seen(small, &frame(0x82, &[0; 11])), [LONG]);
    let stream = [frame(0x02, &[0; 6]), frame(0x80, &[0; 4]), frame(0x02, &[0; 6]), frame(0x80, &[0; 5])];
    assert_eq!(seen(small, &stream.concat()), [Seen::Binary(vec![0; 10]), LONG]);
}

#[test]
fn a_long_frame_is_refused_before_its_payload() {
    let head = b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask";
    for deflate in [None, Some(&deflate(true))] {
        let mut receiver = Receiver::new(WIDE, deflate);
        assert_eq!(seen_in_pieces(&mut receiver, [&head[..]]), [LONG]);
    }
    let compressed = b"\xc2\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask";
    let mut receiver = Receiver::new(WIDE, Some(&deflate(true)));
    assert_eq!(seen_in_pieces(&mut receiver, [&compressed[..]]), [LONG]);
}

#[test]
fn a_message_has_so_many_fragments_at_most() {
    let good = [frame(0x01, b"a"), frame(0x00, b""), frame(0x89, b""), frame(0x80, b"b")].concat();
    assert_eq!(seen(small, &[&good[..], &good].concat()).len(), 4);
    let bad = [frame(0x01, b""), frame(0x00, b""), frame(0x00, b""), frame(0x80, b"")].concat();
    assert_eq!(seen(small, &bad), [Seen::Failed(1009, "a message has more fragments than are allowed")]);
}

fn compressed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new(&deflate(true)).compress(message, &mut out);
    out
}

/// A message of one byte repeated, compressed.
fn bomb(length: usize) -> Vec<u8> {
    compressed(&vec![b'x'; length])
}

/// Bytes without a pattern.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn an_inflated_message_has_the_same_limit() {
    let make = || Receiver::new(Limits { message: 1000, ..WIDE }, Some(&deflate(true)));
    assert_eq!(seen(make, &frame(0xc1, &bomb(1000))), [text(&"x".repeat(1000))]);
    assert_eq!(seen(make, &frame(0xc1, &bomb(1001))), [LONG]);
    let mut message = Vec::new();
    assert!(make().poll(&frame(0xc2, &bomb(1 << 24)), &mut message).is_err());
    assert!(message.len() <= 1001, "no more is inflated: {}", message.len());
}

const GROWS: Seen = Seen::Failed(1009, "a compressed message becomes longer than is allowed");

#[test]
fn a_short_message_may_grow_by_any_ratio() {
    let of = |ratio_from| {
        let limits = Limits { message: 1 << 24, ratio: 10, ratio_from, ..WIDE };
        let make = move || Receiver::new(limits, Some(&deflate(true)));
        matches!(seen(make, &frame(0xc2, &bomb(1 << 20)))[..], [Seen::Binary(_)])
    };
    assert!(of(1 << 20) && !of((1 << 20) - (1 << 16)));
}

#[test]
fn a_message_grows_by_a_ratio_at_most() {
    let of = |ratio, length| {
        let make = move || Receiver::new(Limits { message: 1 << 24, ratio, ..WIDE }, Some(&deflate(true)));
        seen(make, &frame(0xc2, &bomb(length)))
    };
    assert_eq!(of(10, 1 << 20), [GROWS]);
    assert_eq!(of(2000, 1 << 20), [Seen::Binary(vec![b'x'; 1 << 20])]);
    assert_eq!(of(1, 65536), [Seen::Binary(vec![b'x'; 65536])], "a short one may have any");
    assert_eq!(of(1, 65537), [GROWS]);
    let make = || Receiver::new(Limits { message: 1 << 24, ratio: 10, ..WIDE }, Some(&deflate(true)));
    let mut message = Vec::new();
    assert!(make().poll(&frame(0xc2, &bomb(1 << 24)), &mut message).is_err());
    assert!(message.len() <= 65537, "it is found early: {}", message.len());
}

#[test]
fn earlier_messages_do_not_count_for_the_ratio() {
    let make = || Receiver::new(Limits { ratio: 10, ..WIDE }, Some(&deflate(false)));
    let long = noise(60_000);
    let stream = [frame(0xc2, &compressed(&long)), frame(0xc2, &bomb(100_000))].concat();
    assert_eq!(seen(make, &stream), [Seen::Binary(long), GROWS]);
}

#[test]
fn the_ratio_is_of_the_bytes_that_are_needed() {
    // Ratios at which one byte more or less decides; the 64 KiB end among bytes that are not part of a repetition.
    let message = compressed(&[&[b'x'; 65_530][..], &noise(40)].concat());
    for read in message.len() - 60..message.len() {
        let limits = Limits { ratio: (65537 / read) as u32, ..WIDE };
        // It compares the events of the whole input with those byte by byte.
        seen(|| Receiver::new(limits, Some(&deflate(true))), &frame(0xc2, &message));
    }
}
