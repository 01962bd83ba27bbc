//! Data and windows (RFC 9113 §5.2, §6.1, §6.9).

use super::*;

fn windows(stream: u32, connection: u32) -> Server {
    Server::with(Settings { stream_window: stream, connection_window: connection, ..Settings::default() })
}

/// A server with windows that the peer has acknowledged.
fn known(stream: u32, connection: u32) -> Server {
    let mut server = windows(stream, connection);
    assert_eq!(server.gets(&[&settings_ack()]), [""; 0]);
    server
}

#[test]
fn padding_is_taken_off() {
    let mut server = Server::new();
    let seen = server.gets(&[&post(1), &padded(1, 0, b"some", 7), &padded(1, END_STREAM, b"thing", 255)]);
    assert_eq!(seen, ["head 1 POST /", "data 1 something", "end 1"]);
    assert_eq!(Server::new().gets(&[&post(1), &padded(1, END_STREAM, b"", 3)]), ["head 1 POST /", "end 1"]);
}

#[test]
fn data_comes_before_its_frame_is_complete() {
    let mut server = Server::new();
    let frame = padded(1, END_STREAM, b"something", 3);
    assert_eq!(server.gets(&[&post(1), &frame[..14]]), ["head 1 POST /", "data 1 some"]);
    assert_eq!(server.gets(&[&frame[14..20]]), ["data 1 thing"]);
    assert_eq!(server.gets(&[&frame[20..]]), ["end 1"]);
}

#[test]
fn a_stream_gets_no_more_than_its_window() {
    let mut server = known(10, 65_535);
    assert_eq!(server.gets(&[&post(1), &data(1, b"0123456789")]), ["head 1 POST /", "data 1 0123456789"]);
    assert_eq!(server.gets(&[&data(1, b""), &data(1, b"x")]), ["< reset 1 FlowControlError", "reset 1"]);
    // Padding counts, and so does its length; both are given back at once.
    let seen = server.gets(&[&post(3), &padded(3, 0, b"1", 8), &data(3, b"23456789"), &padded(3, 0, b"", 1)]);
    let expected =
        ["head 3 POST /", "< credit 3 9", "data 3 123456789", "< reset 3 FlowControlError", "reset 3"];
    assert_eq!(seen, expected);
}

#[test]
fn a_connection_gets_no_more_than_its_window() {
    let mut server = known(60_000, 65_535);
    let full = [b'x'; 16_384];
    let four = [&full[..], &full, &full, &full[..16_383]];
    for (stream, bytes) in [1, 3, 5, 7].into_iter().zip(four) {
        assert_eq!(server.gets(&[&post(stream), &data(stream, bytes)]).len(), 2);
    }
    assert_eq!(server.clone().gets(&[&data(1, b""), &data(1, b"x")]), ["! FlowControlError"]);
    // The caller has taken 20,000 bytes.
    assert_eq!(server.sends(|connection, out| connection.put_credit(0, 10_000, out)), [""; 0]);
    assert_eq!(server.sends(|connection, out| connection.put_credit(0, 10_000, out)), ["< credit 0 20000"]);
    assert_eq!(server.gets(&[&data(3, &full)]).len(), 1);
    assert_eq!(server.gets(&[&data(5, &full)]), ["! FlowControlError"]);
}

#[test]
fn before_the_peer_knows_the_settings_it_has_the_first_window() {
    let mut server = windows(10, 65_535);
    let seen = server.gets(&[&post(1), &data(1, &[b'x'; 100])]);
    assert_eq!(seen.len(), 2);
    // It knows now: of the stream that is open it has 90 bytes less than nothing.
    assert_eq!(server.gets(&[&settings_ack(), &post(3), &data(3, &[b'x'; 10])]).len(), 2);
    assert_eq!(server.clone().gets(&[&data(3, b"x")]), ["< reset 3 FlowControlError", "reset 3"]);
    assert_eq!(server.sends(|connection, out| connection.put_credit(1, 100, out)), ["< credit 1 100"]);
    assert_eq!(server.gets(&[&data(1, &[b'x'; 10]), &settings_ack()]).len(), 1);
    assert_eq!(server.gets(&[&data(1, b"x")]), ["< reset 1 FlowControlError", "reset 1"]);
}

#[test]
fn credit_of_a_stream_is_gathered_up_to_a_quarter() {
    let mut server = known(400, 65_535);
    server.gets(&[&post(1), &data(1, &[b'x'; 400])]);
    assert_eq!(server.sends(|connection, out| connection.put_credit(1, 99, out)), [""; 0]);
    assert_eq!(server.sends(|connection, out| connection.put_credit(1, 1, out)), ["< credit 1 100"]);
    server.gets(&[&last_data(1, &[b'x'; 100])]);
    // Nothing more comes on it.
    assert_eq!(server.sends(|connection, out| connection.put_credit(1, 400, out)), [""; 0]);
    assert_eq!(server.sends(|connection, out| connection.put_credit(3, 400, out)), [""; 0]);
}

#[test]
fn dropped_data_is_given_back() {
    let quarter = "< credit 0 16384";
    let full = [b'x'; 16_384];
    // A stream that was reset, one that was refused, one with a fault, and padding.
    let mut server = known(60_000, 65_535);
    server.gets(&[&post(1)]);
    server.sends(|connection, out| connection.put_reset(1, ErrorCode::Cancel, out));
    assert_eq!(server.gets(&[&data(1, &full)]), [quarter]);
    let seen = server.gets(&[&get(3), &data(3, &full)]);
    assert_eq!(seen, ["head 3 GET / ends", quarter, "< reset 3 StreamClosed", "reset 3"]);
    let seen = server.gets(&[&post_of(5, "1"), &data(5, &full)]);
    assert_eq!(seen, ["head 5 POST /", quarter, "< reset 5 ProtocolError", "reset 5"]);
    server.gets(&[&post(7)]);
    let mut credit = Vec::new();
    for _ in 0..64 {
        let seen = server.gets(&[&padded(7, 0, b"0123456789abcdef", 255)]);
        credit.extend(seen.into_iter().filter(|line| line.starts_with('<')));
    }
    assert_eq!(credit, ["< credit 7 15104", quarter]);
}

#[test]
fn a_stream_that_is_reset_within_a_frame_gives_its_rest_back() {
    let mut server = known(60_000, 65_535);
    let frame = padded(1, END_STREAM, &[b'x'; 16_384 - 1 - 4], 4);
    assert_eq!(server.gets(&[&post(1), &frame[..9 + 1]]), ["head 1 POST /"]);
    server.sends(|connection, out| connection.put_reset(1, ErrorCode::Cancel, out));
    assert_eq!(server.gets(&[&frame[10..], &get(3)]), ["< credit 0 16384", "head 3 GET / ends"]);
}

#[test]
fn credit_for_us_is_told() {
    let mut server = Server::new();
    let seen = server.gets(&[&post(1), &credit(1, 5), &credit(0, (1 << 31) - 1), &credit(1, 1)]);
    assert_eq!(seen, ["head 1 POST /", "credit 1 5", "credit 0 2147483647", "credit 1 1"]);
}
