use super::*;

#[test]
fn the_examples_of_the_rfc() {
    // RFC 6455 §5.7; those of a server are not masked there, and are masked here.
    assert_eq!(seen(plain, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), [text("Hello")]);
    assert_eq!(seen(plain, &[frame(0x01, b"Hel"), frame(0x80, b"lo")].concat()), [text("Hello")]);
    assert_eq!(seen(plain, &frame(0x89, b"Hello")), [Seen::Ping(b"Hello".to_vec())]);
    assert_eq!(seen(plain, b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), [Seen::Pong(b"Hello".to_vec())]);
    for length in [256, 65536] {
        let payload: Vec<u8> = (0..length).map(|number| number as u8).collect();
        assert_eq!(seen(plain, &frame(0x82, &payload)), [Seen::Binary(payload)]);
    }
    assert_eq!(seen(plain, b"\x81\x05Hello"), [Seen::Failed(1002, "a frame of a client is not masked")]);
}

#[test]
fn messages_stand_behind_each_other() {
    let stream =
        [frame(0x81, b"a"), frame(0x82, b""), frame(0x81, "é".as_bytes()), frame(0x81, b"")].concat();
    assert_eq!(seen(plain, &stream), [text("a"), Seen::Binary(vec![]), text("é"), text("")]);
}

#[test]
fn the_callers_earlier_content_stays() {
    let mut message = b"before ".to_vec();
    let frame = frame(0x81, b"Hello");
    let polled = plain().poll(&frame, &mut message);
    assert_eq!(polled, Ok((frame.len(), Event::Message { kind: Kind::Text, length: 5 })));
    assert_eq!(message, b"before Hello");
}

#[test]
fn a_payload_is_there_before_its_frame_is_complete() {
    let (mut receiver, mut message) = (plain(), Vec::new());
    let frame = frame(0x82, b"Hello");
    assert_eq!(receiver.poll(&frame[..8], &mut message), Ok((8, Event::NeedMore)));
    assert_eq!(message, b"He");
    assert!(!receiver.is_between());
}

#[test]
fn it_is_between_messages() {
    let (mut receiver, mut message) = (plain(), Vec::new());
    assert!(receiver.is_between());
    let stream = [frame(0x01, b"a"), frame(0x89, b""), frame(0x80, b"b")].concat();
    let mut rest = &stream[..];
    while !rest.is_empty() {
        let (used, event) = receiver.poll(&rest[..1], &mut message).expect("good frames");
        rest = &rest[used..];
        assert_eq!(receiver.is_between(), matches!(event, Event::Message { .. }));
    }
    assert!(receiver.is_between());
}

#[test]
fn text_is_utf8_over_fragments() {
    // Autobahn 6.2: cut inside a character.
    let stream = [frame(0x01, b"\xce"), frame(0x00, b""), frame(0x80, b"\xba")].concat();
    assert_eq!(seen(plain, &stream), [text("κ")]);
    let failed = [Seen::Failed(1007, "a text message is not UTF-8")];
    assert_eq!(seen(plain, &frame(0x81, b"\xce")), failed, "it ends inside a character");
    assert_eq!(seen(plain, &[frame(0x01, b"\xce"), frame(0x80, b"")].concat()), failed);
    assert_eq!(seen(plain, &[frame(0x01, b"\xce"), frame(0x80, b"a")].concat()), failed);
    // A message that failed to be complete leaves nothing for the next one.
    let stream = [frame(0x82, b"\xff\xce"), frame(0x81, b"a")].concat();
    assert_eq!(seen(plain, &stream), [Seen::Binary(b"\xff\xce".to_vec()), text("a")]);
}

#[test]
fn text_fails_inside_a_character_of_a_frame_that_is_not_complete() {
    // Autobahn 6.4.
    let text = ["κόσμε".as_bytes(), b"\xf4\x90\x80\x80edited"].concat();
    let frame = frame(0x81, &text);
    let end = frame.len() - text.len() + "κόσμε".len() + 1;
    let (mut receiver, mut message) = (plain(), Vec::new());
    assert_eq!(receiver.poll(&frame[..end], &mut message), Ok((end, Event::NeedMore)));
    let failure = receiver.poll(&frame[end..=end], &mut message).expect_err("not UTF-8");
    assert_eq!(failure, Failure { code: 1007, reason: "a text message is not UTF-8" });
}

#[test]
fn order_is_checked_over_frames() {
    assert_eq!(
        seen(plain, &[frame(0x01, b"a"), frame(0x81, b"b")].concat()),
        [Seen::Failed(1002, "a message begins inside another one")]
    );
    assert_eq!(
        seen(plain, &[frame(0x81, b"a"), frame(0x80, b"b")].concat()),
        [text("a"), Seen::Failed(1002, "a frame continues a message, but none is begun")]
    );
}

#[test]
fn a_small_frame_takes_no_memory() {
    let (mut receiver, mut message) = (plain(), Vec::with_capacity(16));
    let (frame, capacity) = (frame(0x81, b"Hello"), message.capacity());
    for _ in 0..100 {
        message.clear();
        assert!(receiver.poll(&frame, &mut message).is_ok());
    }
    assert_eq!((message.capacity(), receiver.held()), (capacity, 0));
}

#[test]
fn any_thread_may_have_it() {
    fn moves<T: Send>(_: &T) {}
    moves(&plain());
    moves(&crate::Compressor::new(&deflate(true)));
}
