use super::*;

fn with_takeover() -> Receiver {
    Receiver::new(WIDE, Some(&deflate(true)))
}

fn without_takeover() -> Receiver {
    Receiver::new(WIDE, Some(&deflate(false)))
}

const HELLO: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
const BROKEN: Seen = Seen::Failed(1007, "a compressed message cannot be inflated");

#[test]
fn the_examples_of_the_rfc() {
    // RFC 7692 §7.2.3.1: whole, and in fragments.
    assert_eq!(seen(with_takeover, &frame(0xc1, HELLO)), [text("Hello")]);
    let fragments = [frame(0x41, b"\xf2\x48\xcd"), frame(0x80, b"\xc9\xc9\x07\x00")].concat();
    assert_eq!(seen(with_takeover, &fragments), [text("Hello")]);
    // §7.2.3.2.
    let again = frame(0xc1, b"\xf2\x00\x11\x00\x00");
    assert_eq!(seen(with_takeover, &[frame(0xc1, HELLO), again].concat()), [text("Hello"), text("Hello")]);
    // §7.2.3.3 to §7.2.3.5.
    for payload in [
        &b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"[..],
        b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
        b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
    ] {
        assert_eq!(seen(with_takeover, &frame(0xc1, payload)), [text("Hello")]);
        assert_eq!(seen(without_takeover, &frame(0xc1, payload)), [text("Hello")]);
    }
    // §7.2.3.6.
    assert_eq!(seen(with_takeover, &frame(0xc1, b"\x00")), [text("")]);
}

#[test]
fn without_takeover_the_window_is_empty_at_first() {
    let again = frame(0xc1, b"\xf2\x00\x11\x00\x00");
    assert_eq!(seen(without_takeover, &[frame(0xc1, HELLO), again].concat()), [text("Hello"), BROKEN]);
}

#[test]
fn messages_may_be_compressed_or_not() {
    let stream = [
        frame(0x81, b"plain"),
        frame(0xc1, HELLO),
        frame(0x82, b"\xf2\x48"),
        frame(0xc2, b""),
        frame(0x01, b"a"),
        frame(0x80, b"b"),
        frame(0xc1, b"\xf2\x00\x11\x00\x00"),
    ];
    assert_eq!(
        seen(with_takeover, &stream.concat()),
        [
            text("plain"),
            text("Hello"),
            Seen::Binary(b"\xf2\x48".to_vec()),
            Seen::Binary(vec![]),
            text("ab"),
            text("Hello"),
        ]
    );
}

#[test]
fn control_frames_stand_inside_a_compressed_message() {
    let stream = [frame(0x41, &HELLO[..3]), frame(0x89, HELLO), frame(0x00, b""), frame(0x80, &HELLO[3..])];
    assert_eq!(seen(with_takeover, &stream.concat()), [Seen::Ping(HELLO.to_vec()), text("Hello")]);
}

#[test]
fn compressed_text_is_checked_when_it_is_inflated() {
    let failed = [Seen::Failed(1007, "a text message is not UTF-8")];
    let stored = |text: &[u8]| {
        let length = text.len() as u8;
        [&[0, length, 0, !length, 0xff], text, b"\x00"].concat()
    };
    assert_eq!(seen(with_takeover, &frame(0xc1, &stored(b"\xc3\xa9"))), [text("é")]);
    assert_eq!(seen(with_takeover, &frame(0xc1, &stored(b"\xc3"))), failed);
    assert_eq!(seen(with_takeover, &frame(0xc2, &stored(b"\xc3"))), [Seen::Binary(b"\xc3".to_vec())]);
    // It fails before its frame is complete.
    let frame = frame(0xc1, &stored(b"\xffabc"));
    let mut receiver = with_takeover();
    assert_eq!(seen_in_pieces(&mut receiver, [&frame[..frame.len() - 3]]), failed);
}

#[test]
fn bytes_that_cannot_be_inflated_are_refused() {
    assert_eq!(seen(with_takeover, &frame(0xc1, b"\x06")), [BROKEN]);
    assert_eq!(seen(with_takeover, &frame(0xc1, &HELLO[..4])), [BROKEN], "it ends inside a block");
    assert_eq!(seen(with_takeover, &frame(0xc2, &[HELLO, b"garbage"].concat())), [BROKEN]);
}

#[test]
fn a_context_is_made_when_it_is_needed() {
    let (mut receiver, mut message) = (with_takeover(), Vec::new());
    receiver.poll(&frame(0x81, b"plain"), &mut message).expect("a message");
    assert_eq!(receiver.held(), 0);
    receiver.poll(&frame(0xc1, HELLO), &mut message).expect("a message");
    assert!(receiver.held() > 32 * 1024);
    receiver.poll(&frame(0x88, b""), &mut message).expect("a close");
    assert_eq!(receiver.held(), 0, "nothing is received any more");

    let mut receiver = without_takeover();
    let compressed = frame(0xc1, HELLO);
    receiver.poll(&compressed[..8], &mut message).expect("a part");
    assert!(receiver.held() > 0);
    receiver.poll(&compressed[8..], &mut message).expect("a message");
    assert_eq!(receiver.held(), 0);
}

#[test]
fn a_bit_for_compression_needs_the_extension() {
    assert_eq!(
        seen(plain, &frame(0xc1, HELLO)),
        [Seen::Failed(1002, "a frame has a reserved bit that no extension uses")]
    );
}
