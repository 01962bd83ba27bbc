//! Sent frames, as a peer decodes them.

use super::*;
use crate::hpack::Decoder;
use maitred_http::{FieldSet, ResponseHead, Status};

/// The fields of a block in words.
fn fields(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let decoded = decoder.decode(block, |name, value, _| fields.push(text(name) + ": " + &text(value)));
    decoded.expect("a block");
    fields
}

#[test]
fn a_response_with_trailers() {
    let mut server = Server::new();
    server.gets(&[&get(1)]);
    let head = ResponseHead::new(Status::OK)
        .with("Content-Type", "text/plain")
        .with("Connection", "close")
        .with("keep-alive", "timeout=5")
        .with("Transfer-Encoding", "chunked")
        .with("Upgrade", "h2c")
        .with("TE", "trailers")
        .with("Bad Name", "x")
        .with("x-bad", "a\r\nb")
        .with("Set-Cookie", "a=b");
    let mut trailers = FieldSet::new();
    trailers.push("X-Sum", "7");
    let mut out = Vec::new();
    server.connection.put_head(1, &ResponseHead::new(Status::EARLY_HINTS), false, &mut out);
    server.connection.put_head(1, &head, false, &mut out);
    server.connection.put_data(1, 4, false, &mut out);
    out.extend_from_slice(b"some");
    server.connection.put_trailers(1, &trailers, &mut out);
    assert_eq!(server.connection.open_streams(), 0);

    let (mut decoder, mut rest, mut seen) = (Decoder::new(4096), &out[..], Vec::new());
    while let Some(header) = Header::read(rest) {
        let (payload, behind) = rest[9..].split_at(header.length as usize);
        rest = behind;
        match header.kind {
            DATA => seen.push(String::from_utf8_lossy(payload).into_owned()),
            _ => seen.extend(fields(&mut decoder, payload)),
        }
        seen.push(format!("{} {:02x} {}", header.kind, header.flags, header.stream));
    }
    let expected = [
        ":status: 103",
        "1 04 1",
        ":status: 200",
        "content-type: text/plain",
        "set-cookie: a=b",
        "1 04 1",
        "some",
        "0 00 1",
        "x-sum: 7",
        "1 05 1",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_end_may_be_in_the_head_or_in_data() {
    let mut server = Server::new();
    server.gets(&[&get(1), &get(3)]);
    let head = ResponseHead::new(Status::NO_CONTENT);
    assert_eq!(server.sends(|connection, out| connection.put_head(1, &head, true, out)), ["< head 1 05"]);
    assert_eq!(server.sends(|connection, out| connection.put_head(3, &head, false, out)), ["< head 3 04"]);
    let mut out = Vec::new();
    server.connection.put_data(3, 0x01_0203, true, &mut out);
    assert_eq!(out, [1, 2, 3, 0, 1, 0, 0, 0, 3]);
    assert_eq!(server.connection.open_streams(), 0);
}

#[test]
fn a_head_for_a_stream_that_is_over_leaves_the_table_alone() {
    let mut server = Server::new();
    server.gets(&[&get(1), &get(3), &reset(1)]);
    let head = ResponseHead::new(Status::OK).with("x", "y");
    assert_eq!(server.sends(|connection, out| connection.put_head(1, &head, true, out)), [""; 0]);
    let mut out = Vec::new();
    server.connection.put_head(3, &head, true, &mut out);
    let mut decoder = Decoder::new(4096);
    assert_eq!(fields(&mut decoder, &out[9..]), [":status: 200", "x: y"]);
    assert_eq!(server.sends(|connection, out| connection.put_head(3, &head, true, out)), [""; 0]);
    assert!(!server.connection.is_open(3));
}

#[test]
fn a_response_before_its_request_is_complete() {
    let mut server = Server::new();
    server.gets(&[&post(1), &data(1, b"x")]);
    let head = ResponseHead::new(Status::FORBIDDEN);
    server.sends(|connection, out| connection.put_head(1, &head, true, out));
    assert!(server.connection.is_open(1));
    // Credit for it is of no use any more.
    assert_eq!(server.clone().gets(&[&credit(1, 5), &last_data(1, b"y")]), ["data 1 y", "end 1"]);
    let sent = server.sends(|connection, out| connection.put_reset(1, ErrorCode::NoError, out));
    assert_eq!(sent, ["< reset 1 NoError"]);
    assert_eq!(server.gets(&[&last_data(1, b"y"), &get(3)]), ["head 3 GET / ends"]);
}

#[test]
fn a_head_that_is_longer_than_a_frame_is_continued() {
    let mut server = Server::new();
    server.gets(&[&get(1), &settings_frame(&[(5, 1 << 20)])]);
    // Letters that Huffman does not shorten.
    let head = ResponseHead::new(Status::OK).with("x", "\\".repeat(40_000));
    let sent = server.sends(|connection, out| connection.put_head(1, &head, true, out));
    assert_eq!(sent, ["< head 1 01", "< more 1 00", "< more 1 04"]);
    assert_eq!(server.connection.counted().sent[usize::from(CONTINUATION)], 2);
}
