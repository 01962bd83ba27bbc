//! Frames that cannot be (RFC 9113 §3.4, §4, §6).

use super::*;
use crate::frame::{HAS_PRIORITY, PUSH_PROMISE};

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    let fresh = || Server::fresh(Settings::default());
    assert_eq!(
        fresh().gets(&[PREFACE, &settings_frame(&[]), &get(1)]),
        ["< settings ack", "head 1 GET / ends"]
    );
    assert_eq!(fresh().gets(&[&PREFACE[..23]]), [""; 0]);
    for first in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSN",
        &[PREFACE, &get(1)[..]].concat(),
        &[PREFACE, &frame(PING, 0, 0, &[0; 8])[..]].concat(),
        &[PREFACE, &settings_ack()[..]].concat(),
        &[PREFACE, &frame(99, 0, 0, b"")[..]].concat(),
    ] {
        assert_eq!(fresh().gets(&[first]), ["! ProtocolError"], "{first:?}");
    }
}

#[test]
fn frames_that_break_the_connection() {
    let priority = [0, 0, 0, 0, 16];
    for (name, bytes, error) in [
        ("a frame that is too large", frame(DATA, 0, 1, &[0; 16_385]), "FrameSizeError"),
        ("a head that is too large", frame(HEADERS, END_HEADERS, 1, &[0; 16_385]), "FrameSizeError"),
        ("an unknown frame that is too large", frame(99, 0, 1, &[0; 16_385]), "FrameSizeError"),
        ("data on stream 0", data(0, b"x"), "ProtocolError"),
        ("a head on stream 0", get(0), "ProtocolError"),
        ("a head on an even stream", get(2), "ProtocolError"),
        ("more padding than head", frame(HEADERS, PADDED | END_HEADERS, 1, &[2, 0]), "ProtocolError"),
        ("a head without its padding", frame(HEADERS, PADDED | END_HEADERS, 1, b""), "FrameSizeError"),
        (
            "a head without its priority",
            frame(HEADERS, HAS_PRIORITY | END_HEADERS, 1, &[0; 4]),
            "FrameSizeError",
        ),
        ("a priority on stream 0", frame(PRIORITY, 0, 0, &priority), "ProtocolError"),
        ("a priority of 4 bytes on an idle stream", frame(PRIORITY, 0, 1, &[0; 4]), "FrameSizeError"),
        ("an idle stream that depends on itself", depends(1, 1), "ProtocolError"),
        ("a reset on stream 0", reset(0), "ProtocolError"),
        ("a reset on an idle stream", reset(1), "ProtocolError"),
        ("a reset of 3 bytes", frame(RST_STREAM, 0, 1, &[0; 3]), "FrameSizeError"),
        ("settings on a stream", frame(SETTINGS, 0, 1, b""), "ProtocolError"),
        ("an acknowledgement with settings", frame(SETTINGS, ACK, 0, &[0; 6]), "FrameSizeError"),
        ("settings of 5 bytes", frame(SETTINGS, 0, 0, &[0; 5]), "FrameSizeError"),
        ("push that is half", settings_frame(&[(2, 2)]), "ProtocolError"),
        ("a window of 2^31", settings_frame(&[(4, 1 << 31)]), "FlowControlError"),
        ("frames that are too small", settings_frame(&[(5, 16_383)]), "ProtocolError"),
        ("frames that are too large", settings_frame(&[(5, 1 << 24)]), "ProtocolError"),
        ("a promise", frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), "ProtocolError"),
        ("a ping on a stream", frame(PING, 0, 1, &[0; 8]), "ProtocolError"),
        ("a ping of 6 bytes", frame(PING, 0, 0, &[0; 6]), "FrameSizeError"),
        ("an acknowledgement of 9 bytes", frame(PING, ACK, 0, &[0; 9]), "FrameSizeError"),
        ("leaving on a stream", frame(GOAWAY, 0, 1, &[0; 8]), "ProtocolError"),
        ("leaving in 7 bytes", frame(GOAWAY, 0, 0, &[0; 7]), "FrameSizeError"),
        ("credit on an idle stream", credit(1, 100), "ProtocolError"),
        ("credit of nothing", credit(0, 0), "ProtocolError"),
        ("credit of 3 bytes", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1]), "FrameSizeError"),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, b""), "ProtocolError"),
        ("a priority update on a stream", frame(PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1]), "ProtocolError"),
        ("a priority update of 3 bytes", frame(PRIORITY_UPDATE, 0, 0, &[0; 3]), "FrameSizeError"),
        ("a priority update for stream 0", priority_update(0, "u=1"), "ProtocolError"),
        ("a priority update for an even stream", priority_update(2, "u=1"), "ProtocolError"),
    ] {
        assert_eq!(Server::new().gets(&[&bytes]), [format!("! {error}")], "{name}");
    }
}

#[test]
fn frames_that_are_no_fault() {
    for (name, bytes) in [
        ("a frame of an unknown type", frame(99, 0xff, 77, b"whatever")),
        ("one that is empty", frame(0xff, 0, 0, b"")),
        ("unknown settings", settings_ack()),
        ("an acknowledgement of a ping that was not sent", frame(PING, ACK, 0, b"whatever")),
        ("a priority of an idle stream", depends(5, 3)),
        ("the reserved bit", {
            let mut ping = frame(PING, ACK, 0, b"whatever");
            ping[5] |= 0x80;
            ping
        }),
    ] {
        let mut server = Server::new();
        assert_eq!(server.gets(&[&bytes, &get(1)]), ["head 1 GET / ends"], "{name}");
    }
    assert_eq!(Server::new().gets(&[&settings_frame(&[(0xff, 7), (3, 0), (6, 1)])]), ["< settings ack"]);
    // Flags that a type does not have, and a frame of the largest size.
    assert_eq!(Server::new().gets(&[&frame(PING, 0x16, 0, b"whatever")]), ["< ping ack whatever"]);
    let full = "x".repeat(16_384);
    assert_eq!(Server::new().gets(&[&post(1), &data(1, full.as_bytes())])[1], format!("data 1 {full}"));
}

#[test]
fn between_the_frames_of_a_block_nothing_else_comes() {
    let first = frame(HEADERS, END_STREAM, 1, &block(&GET));
    let whole = |fragment: &[u8]| frame(CONTINUATION, END_HEADERS, 1, fragment);
    let field = block(&[("x", "y")]);
    let more = frame(CONTINUATION, 0, 1, &field);
    let mut server = Server::new();
    assert_eq!(
        server.gets(&[&first, &more, &whole(&field), &get(3)]),
        ["head 1 GET / ends", "head 3 GET / ends"]
    );
    for (name, other) in [
        ("data", data(1, b"x")),
        ("a head", get(3)),
        ("a priority", depends(1, 0)),
        ("a frame of an unknown type", frame(99, 0, 0, b"")),
        ("a ping", frame(PING, 0, 0, &[0; 8])),
        ("a continuation of another stream", frame(CONTINUATION, END_HEADERS, 3, b"")),
        ("a continuation on stream 0", frame(CONTINUATION, END_HEADERS, 0, b"")),
    ] {
        assert_eq!(Server::new().gets(&[&first, &more, &other]), ["! ProtocolError"], "{name}");
    }
    let mut server = Server::new();
    server.gets(&[&first, &more]);
    assert!(server.connection.is_within_block());
    server.gets(&[&whole(b"")]);
    assert!(!server.connection.is_within_block());
    let mut server = Server::new();
    let twice = server.gets(&[&first, &whole(b""), &whole(b"")]);
    assert_eq!(twice, ["head 1 GET / ends", "! ProtocolError"]);
    // A field may be cut anywhere.
    let long = block(&GET);
    for cut in 0..long.len() {
        let first = frame(HEADERS, END_STREAM, 1, &long[..cut]);
        assert_eq!(Server::new().gets(&[&first, &whole(&long[cut..])]), ["head 1 GET / ends"], "{cut}");
    }
}

#[test]
fn a_block_that_cannot_be_decoded_breaks_the_connection() {
    for (name, bad) in [
        ("an index of 0", &[0x80][..]),
        ("an index in no table", &[0xff, 0x00]),
        ("a field that is cut", &[0x00, 0x05, b'x']),
        ("a table that is too large", &[0x3f, 0xe2, 0x1f]),
        ("a change of the table's size at the end", &[0x82, 0x20]),
    ] {
        let bytes = frame(HEADERS, END_HEADERS | END_STREAM, 1, bad);
        assert_eq!(Server::new().gets(&[&bytes]), ["! CompressionError"], "{name}");
    }
}
