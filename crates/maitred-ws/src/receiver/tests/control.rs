use super::*;

#[track_caller]
fn closes(payload: &[u8], expected: Seen) {
    assert_eq!(seen(plain, &frame(0x88, payload)), [expected]);
}

#[test]
fn control_frames_stand_inside_a_message() {
    let stream =
        [frame(0x01, b"Hel"), frame(0x89, b"one"), frame(0x8a, b""), frame(0x80, b"lo"), frame(0x89, b"two")];
    assert_eq!(
        seen(plain, &stream.concat()),
        [Seen::Ping(b"one".to_vec()), Seen::Pong(vec![]), text("Hello"), Seen::Ping(b"two".to_vec()),]
    );
}

#[test]
fn a_control_frame_has_up_to_125_bytes() {
    let payload: Vec<u8> = (0..125).collect();
    assert_eq!(seen(plain, &frame(0x89, &payload)), [Seen::Ping(payload)]);
    assert_eq!(
        seen(plain, &frame(0x89, &[0; 126])),
        [Seen::Failed(1002, "a control frame is longer than 125 bytes")]
    );
}

#[test]
fn a_close_has_a_code_and_a_reason_or_nothing() {
    closes(b"", Seen::Close(None));
    closes(b"\x03\xe8", Seen::Close(Some((1000, String::new()))));
    closes("\u{3}\u{0}".as_bytes(), Seen::Failed(1002, "a close frame has a code that nobody may send"));
    closes(b"\x03\xe9bye \xc3\xa9", Seen::Close(Some((1001, "bye é".to_owned()))));
    closes(b"\x03", Seen::Failed(1002, "a close frame has half a code"));
    closes(b"\x03\xe8\xc3", Seen::Failed(1007, "the reason in a close frame is not UTF-8"));
}

#[test]
fn reserved_codes_are_refused() {
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        closes(&code.to_be_bytes(), Seen::Failed(1002, "a close frame has a code that nobody may send"));
    }
    for code in [1000_u16, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999] {
        closes(&code.to_be_bytes(), Seen::Close(Some((code, String::new()))));
    }
}

#[test]
fn nothing_behind_a_close_is_looked_at() {
    let stream = [frame(0x88, b"\x03\xe8"), b"\xff\xff nonsense".to_vec(), frame(0x88, b"")].concat();
    assert_eq!(seen(plain, &stream), [Seen::Close(Some((1000, String::new())))]);
    let (mut receiver, mut message) = (plain(), Vec::new());
    let begun = [frame(0x01, b"a"), frame(0x88, b"")].concat();
    assert_eq!(receiver.poll(&begun, &mut message), Ok((begun.len(), Event::Close(None))));
    assert!(receiver.is_between());
    assert_eq!(receiver.poll(&frame(0x81, b"b"), &mut message), Ok((7, Event::NeedMore)));
    assert_eq!(message, b"a");
}
