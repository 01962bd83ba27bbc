//! How a connection ends (RFC 9113 §6.8).

use super::*;
use crate::error::ConnectionError;

#[test]
fn an_error_names_the_last_stream() {
    let mut server = Server::new();
    server.gets(&[&get(1), &get(7)]);
    let error = ConnectionError::new(ErrorCode::EnhanceYourCalm, "too much");
    let mut out = Vec::new();
    server.connection.put_goaway(&error, &mut out);
    assert_eq!(out, frame(GOAWAY, 0, 0, b"\0\0\0\x07\0\0\0\x0btoo much"));
}

#[test]
fn a_drain_waits_until_the_peer_knows() {
    let mut server = Server::new();
    server.gets(&[&get(1)]);
    assert_eq!(server.sends(Connection::put_drain), ["< goaway 2147483647 NoError", "< ping"]);
    let ping = frame(PING, ACK, 0, &super::super::send::LEAVING_PING);
    // Streams that the peer has opened before it knew are taken, and later streams are ignored, but decoded.
    let adds = [&block(&GET)[..], b"\x40\x01x\x01y"].concat();
    let ignored = frame(HEADERS, END_HEADERS, 5, &adds);
    let seen =
        server.gets(&[&get(3), &ping, &ignored, &data(5, b"x"), &headers(5, END_STREAM, &[]), &reset(5)]);
    assert_eq!(seen, ["head 3 GET / ends", "< goaway 3 NoError"]);
    let refers = frame(HEADERS, END_HEADERS | END_STREAM, 7, b"\xbe");
    assert_eq!(server.gets(&[&refers, &ping, &credit(3, 1)]), ["credit 3 1"], "no compression error");
    // The last one stays the last one.
    let error = ConnectionError::protocol("");
    let sent = server.sends(|connection, out| connection.put_goaway(&error, out));
    assert_eq!(sent, ["< goaway 3 ProtocolError"]);
    assert_eq!(server.sends(Connection::put_drain), [""; 0]);
}

#[test]
fn a_second_drain_does_not_wait() {
    let mut server = Server::new();
    server.sends(Connection::put_drain);
    assert_eq!(server.sends(Connection::put_drain), ["< goaway 0 NoError"]);
    assert_eq!(server.gets(&[&get(1)]), [""; 0]);
    // Data of streams that are ignored is given back.
    let full = [b'x'; 16_384];
    let mut seen = Vec::new();
    for _ in 0..256 {
        seen.extend(server.gets(&[&data(1, &full)]));
    }
    assert_eq!(seen, ["< credit 0 4194304"]);
}

#[test]
fn a_ping_of_other_bytes_is_no_acknowledgement() {
    let mut server = Server::new();
    server.sends(Connection::put_drain);
    assert_eq!(server.gets(&[&frame(PING, ACK, 0, b"whatever"), &get(1)]), ["head 1 GET / ends"]);
}

#[test]
fn a_peer_that_leaves_is_still_answered() {
    let leaves = frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0for reasons");
    let seen = Server::new().gets(&[&post(1), &leaves, &last_data(1, b"x"), &get(3)]);
    assert_eq!(seen, ["head 1 POST /", "leaving", "data 1 x", "end 1", "head 3 GET / ends"]);
}
