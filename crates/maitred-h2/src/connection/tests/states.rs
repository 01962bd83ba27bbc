//! Tests of the states of a stream (RFC 9113 §5.1), and of errors that end one stream only.

use super::*;
use crate::frame::HAS_PRIORITY;
use maitred_http::{ResponseHead, Status};

fn answered(server: &mut Server, stream: u32) {
    let head = ResponseHead::new(Status::OK);
    server.sends(|connection, out| connection.put_head(stream, &head, true, out));
}

#[test]
fn a_request_with_a_body_and_trailers() {
    let mut server = Server::new();
    let trailers = headers(1, END_STREAM, &[("x-sum", "1"), ("te", "trailers")]);
    let seen = server.gets(&[&post(1), &data(1, b"some"), &data(1, b"thing"), &trailers, &get(3)]);
    assert_eq!(seen, ["head 1 POST /", "data 1 something", "end 1", "head 3 GET / ends"]);
    assert_eq!(server.connection.open_streams(), 2);
    let seen = Server::new().gets(&[&post(1), &data(1, b"x"), &last_data(1, b"y")]);
    assert_eq!(seen, ["head 1 POST /", "data 1 xy", "end 1"]);
    assert_eq!(Server::new().gets(&[&post(1), &last_data(1, b"")]), ["head 1 POST /", "end 1"]);
}

#[test]
fn nothing_comes_on_an_idle_stream() {
    for (name, bytes) in [
        ("data", last_data(1, b"x")),
        ("data of a stream that the server would open", data(2, b"x")),
        ("credit of a stream that the server would open", credit(2, 1)),
    ] {
        assert_eq!(Server::new().gets(&[&bytes]), ["! ProtocolError"], "{name}");
    }
}

#[test]
fn nothing_more_comes_behind_the_end() {
    for (name, bytes) in [("data", data(1, b"x")), ("its end", last_data(1, b"")), ("a head", get(1))] {
        let seen = Server::new().gets(&[&get(1), &bytes, &get(3)]);
        let expected = ["head 1 GET / ends", "< reset 1 StreamClosed", "reset 1", "head 3 GET / ends"];
        assert_eq!(seen, expected, "{name}");
    }
    // These may come, as the peer need not know how far we are.
    let seen = Server::new().gets(&[&get(1), &credit(1, 5), &depends(1, 3), &reset(1)]);
    assert_eq!(seen, ["head 1 GET / ends", "credit 1 5", "reset 1"]);
}

#[test]
fn nothing_comes_on_a_stream_that_has_ended() {
    for (name, bytes) in
        [("data", data(1, b"x")), ("a head", get(1)), ("trailers", headers(1, END_STREAM, &[]))]
    {
        let mut server = Server::new();
        server.gets(&[&get(1)]);
        answered(&mut server, 1);
        assert_eq!(server.connection.open_streams(), 0);
        assert_eq!(server.gets(&[&bytes]), ["! StreamClosed"], "{name}");
    }
    let mut server = Server::new();
    server.gets(&[&get(1)]);
    answered(&mut server, 1);
    // Frames that were under way when our end was.
    assert_eq!(server.gets(&[&credit(1, 5), &depends(1, 0), &reset(1), &get(3)]), ["head 3 GET / ends"]);
    assert_eq!(server.gets(&[&credit(1, 0)]), ["! ProtocolError"]);
}

#[test]
fn nothing_comes_on_a_stream_that_the_peer_has_reset() {
    for (name, bytes) in [("data", data(1, b"x")), ("a head", headers(1, END_STREAM, &POST))] {
        let seen = Server::new().gets(&[&post(1), &reset(1), &bytes, &get(3)]);
        let expected = ["head 1 POST /", "reset 1", "< reset 1 StreamClosed", "head 3 GET / ends"];
        assert_eq!(seen, expected, "{name}");
    }
}

#[test]
fn late_frames_of_a_stream_that_was_reset_are_dropped() {
    let mut server = Server::new();
    server.gets(&[&post(1), &data(1, b"some")]);
    let sent = server.sends(|connection, out| connection.put_reset(1, ErrorCode::NoError, out));
    assert_eq!(sent, ["< reset 1 NoError"]);
    assert_eq!(server.sends(|connection, out| connection.put_reset(1, ErrorCode::Cancel, out)), [""; 0]);
    let trailers = headers(1, END_STREAM, &[("x", "y")]);
    let seen = server.gets(&[&data(1, b"thing"), &credit(1, 7), &trailers, &reset(1), &get(3)]);
    assert_eq!(seen, ["head 3 GET / ends"]);
}

#[test]
fn numbers_rise() {
    assert_eq!(Server::new().gets(&[&get(5), &get(3)]), ["head 5 GET / ends", "! ProtocolError"]);
    // A stream that was left out is closed (RFC 9113 §5.1.1); data on it is dropped as on one that is forgotten.
    assert_eq!(
        Server::new().gets(&[&get(5), &data(3, b"x"), &get(7)]),
        ["head 5 GET / ends", "head 7 GET / ends"]
    );
}

#[test]
fn faults_that_only_a_stream_dies_of() {
    for (name, bytes, error) in [
        ("a head that is no trailers", headers(1, 0, &POST), "ProtocolError"),
        ("trailers without the end", headers(1, 0, &[("x", "y")]), "ProtocolError"),
        ("trailers with a pseudo-field", headers(1, END_STREAM, &[(":path", "/")]), "ProtocolError"),
        ("trailers in capitals", headers(1, END_STREAM, &[("X", "y")]), "ProtocolError"),
        ("trailers of a connection", headers(1, END_STREAM, &[("connection", "close")]), "ProtocolError"),
        ("trailers with a line break", headers(1, END_STREAM, &[("x", "y\r\nz")]), "ProtocolError"),
        ("credit of nothing", credit(1, 0), "ProtocolError"),
        ("a stream that depends on itself", depends(1, 1), "ProtocolError"),
        ("a priority of 4 bytes", frame(PRIORITY, 0, 1, &[0; 4]), "FrameSizeError"),
    ] {
        let seen = Server::new().gets(&[&post(1), &bytes, &get(3)]);
        let refused = format!("< reset 1 {error}");
        assert_eq!(seen, ["head 1 POST /", &refused, "reset 1", "head 3 GET / ends"], "{name}");
    }
    // More padding than payload is a fault of the connection (RFC 9113 §6.1).
    let bad = frame(DATA, PADDED, 1, &[5, 0, 0, 0, 0]);
    assert_eq!(Server::new().gets(&[&post(1), &bad]), ["head 1 POST /", "! ProtocolError"]);
    let bad = frame(DATA, PADDED, 1, &[]);
    assert_eq!(Server::new().gets(&[&post(1), &bad]), ["head 1 POST /", "! FrameSizeError"]);
}

#[test]
fn a_request_that_depends_on_itself_is_refused() {
    let on = |other: u32| {
        let payload = [&other.to_be_bytes()[..], &[16], &block(&GET)].concat();
        frame(HEADERS, HAS_PRIORITY | END_HEADERS | END_STREAM, 1, &payload)
    };
    assert_eq!(Server::new().gets(&[&on(1)]), ["< reset 1 ProtocolError"]);
    assert_eq!(Server::new().gets(&[&on(3)]), ["head 1 GET / ends"]);
}

#[test]
fn a_body_has_the_length_that_its_head_declares() {
    for (declared, body, whole) in
        [("4", "some", true), ("4", "so", false), ("4", "something", false), ("0", "", true)]
    {
        let seen = Server::new().gets(&[&post_of(1, declared), &last_data(1, body.as_bytes()), &get(3)]);
        let mut expected = vec!["head 1 POST /".to_owned()];
        match whole {
            true if body.is_empty() => expected.push("end 1".to_owned()),
            true => expected.extend([format!("data 1 {body}"), "end 1".to_owned()]),
            false => expected.extend(["< reset 1 ProtocolError", "reset 1"].map(str::to_owned)),
        }
        expected.push("head 3 GET / ends".to_owned());
        assert_eq!(seen, expected, "{declared} {body}");
    }
    let several = Server::new().gets(&[&post_of(1, "4"), &data(1, b"so"), &data(1, b"me!"), &get(3)]);
    let expected = ["head 1 POST /", "data 1 so", "< reset 1 ProtocolError", "reset 1", "head 3 GET / ends"];
    assert_eq!(several, expected);
    let trailers = headers(1, END_STREAM, &[("x", "y")]);
    let short = Server::new().gets(&[&post_of(1, "4"), &data(1, b"so"), &trailers]);
    assert_eq!(short, ["head 1 POST /", "data 1 so", "< reset 1 ProtocolError", "reset 1"]);
}

#[test]
fn streams_beyond_the_limit_are_refused_and_decoded() {
    let settings = Settings { max_streams: 2, ..Settings::default() };
    let mut server = Server::with(settings);
    // The refused one puts a field into the table that the next one refers to.
    let indexed = [&block(&GET)[..], b"\x40\x01x\x01y"].concat();
    let refers = [&block(&GET)[..], b"\xbe"].concat();
    let third = frame(HEADERS, END_HEADERS | END_STREAM, 5, &indexed);
    let fourth = frame(HEADERS, END_HEADERS | END_STREAM, 7, &refers);
    let seen = server.gets(&[&get(1), &get(3), &third, &data(5, b"x")]);
    assert_eq!(seen, ["head 1 GET / ends", "head 3 GET / ends", "< reset 5 RefusedStream"]);
    answered(&mut server, 1);
    assert_eq!(server.gets(&[&fourth]), ["head 7 GET / ends"]);
    assert_eq!(server.head.fields.first("x"), Some(&b"y"[..]));
    assert_eq!(server.connection.counted().refused, 1);
}
