//! Tests of frames on stream 0 (SETTINGS, PING, PRIORITY_UPDATE) and of the connection preface.

use super::*;
use crate::priority::Priority;
use crate::upgrade::upgrade;
use maitred_http::{ResponseHead, Status};

#[test]
fn settings_and_credit_are_sent_first() {
    let first = |settings| {
        let mut out = Vec::new();
        Connection::new(settings).begin(&mut out);
        out
    };
    let settings =
        Settings { max_streams: 100, stream_window: 0x0102_0304, max_head: 0x800, ..Settings::default() };
    let expected = [
        &[0, 0, 24, SETTINGS, 0, 0, 0, 0, 0][..],
        &[0, 3, 0, 0, 0, 100, 0, 4, 1, 2, 3, 4, 0, 6, 0, 0, 8, 0, 0, 9, 0, 0, 0, 1],
        &[0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 0, 0, 0xff, 0, 1],
    ];
    assert_eq!(first(settings), expected.concat());
    let settings = Settings { connection_window: 0, max_frame: 32_768, connect: true, ..settings };
    let expected = [0, 3, 0, 0, 0, 100, 0, 4, 1, 2, 3, 4, 0, 5, 0, 0, 128, 0];
    let rest = [0, 6, 0, 0, 8, 0, 0, 8, 0, 0, 0, 1, 0, 9, 0, 0, 0, 1];
    assert_eq!(first(settings)[9..], [&expected[..], &rest[..]].concat());
}

#[test]
fn settings_are_acknowledged_and_change_windows() {
    let mut server = Server::new();
    assert_eq!((server.connection.initial_window(), server.connection.max_data()), (65_535, 16_384));
    let seen = server.gets(&[&settings_frame(&[(4, 70_000)]), &settings_frame(&[(4, 1), (4, 60_000)])]);
    assert_eq!(seen, ["< settings ack", "window 4465", "< settings ack", "window -10000"]);
    assert_eq!(server.connection.initial_window(), 60_000);
    assert_eq!(server.gets(&[&settings_frame(&[(4, 60_000), (5, 20_000)])]), ["< settings ack"]);
    // More than the usual does not pay.
    assert_eq!(server.connection.max_data(), 16_384);
}

#[test]
fn the_peers_table_is_obeyed() {
    let mut server = Server::new();
    let head = ResponseHead::new(Status::OK).with("x", "y");
    server.gets(&[&get(1), &get(3), &settings_frame(&[(1, 0), (1, 4096)]), &get(5)]);
    let mut block = |stream| {
        let mut out = Vec::new();
        server.connection.put_head(stream, &head, true, &mut out);
        out[9..].to_vec()
    };
    let first = block(1);
    assert_eq!(first[..2], [0x20, 0x3f], "it is emptied, and as large as before");
    assert_eq!(block(3).len(), 2, "the field is in the table");
    assert_eq!(block(5).len(), 2);
}

#[test]
fn a_second_word_on_priorities_is_a_fault() {
    let first = settings_frame(&[(9, 1)]);
    let mut server = Server::fresh(Settings::default());
    let seen = server.gets(&[PREFACE, &first, &first, &settings_frame(&[(9, 0)])]);
    assert_eq!(seen, ["< settings ack", "< settings ack", "! ProtocolError"]);
}

#[test]
fn a_ping_comes_back() {
    assert_eq!(Server::new().gets(&[&frame(PING, 0, 0, b"abcdefgh")]), ["< ping ack abcdefgh"]);
    assert_eq!(Server::new().gets(&[&frame(PING, ACK, 0, b"abcdefgh")]), [""; 0]);
}

#[test]
fn priorities_of_streams_that_are_open_or_to_come() {
    let mut server = Server::new();
    let priority_of = |server: &mut Server, frames: &[&[u8]]| {
        let (mut control, bytes) = (Vec::new(), frames.concat());
        match server.connection.poll(&bytes, SECOND, &mut server.head, &mut control) {
            Ok((_, Event::Head { facts, .. })) => facts.priority,
            other => panic!("{other:?}"),
        }
    };
    let with = |stream, value| headers(stream, 0, &[&POST[..], &[("priority", value)]].concat());
    assert_eq!(priority_of(&mut server, &[&post(1)]), None);
    assert_eq!(
        priority_of(&mut server, &[&with(3, "u=5, i")]),
        Some(Priority { urgency: 5, incremental: true })
    );
    let before =
        [priority_update(5, "u=1"), priority_update(5, "u=2"), priority_update(7, "i"), with(5, "u=6")];
    let before: Vec<&[u8]> = before.iter().map(|frame| &frame[..]).collect();
    assert_eq!(priority_of(&mut server, &before), Some(Priority { urgency: 2, incremental: false }));
    assert_eq!(server.gets(&[&priority_update(5, "u=0, i")]), ["priority 5 u=0 i=true"]);
    assert_eq!(server.gets(&[&priority_update(5, "%")]), ["priority 5 u=3 i=false"]);
    // 7 never comes, and 5 is over.
    assert_eq!(priority_of(&mut server, &[&post(9)]), None);
    assert!(server.connection.priorities.is_empty());
    assert_eq!(
        server.gets(&[&reset(5), &priority_update(5, "u=0"), &priority_update(7, "u=0")]),
        ["reset 5"]
    );
}

#[test]
fn priorities_are_kept_for_as_many_streams_as_there_may_be() {
    let mut server = Server::with(Settings { max_streams: 3, ..Settings::default() });
    let seen = server.gets(&[
        &post(1),
        &priority_update(3, "i"),
        &priority_update(5, "i"),
        &priority_update(3, "i"),
    ]);
    assert_eq!(seen, ["head 1 POST /"]);
    assert_eq!(server.gets(&[&priority_update(7, "i")]), ["! ProtocolError"]);
}

#[test]
fn a_connection_that_was_upgraded_has_a_stream() {
    let upgrade = upgrade(b"AAQAAAAF").expect("settings");
    let mut server = Server::fresh(Settings::default());
    server.connection = Connection::upgraded(Settings::default(), &upgrade);
    assert_eq!((server.connection.initial_window(), server.connection.open_streams()), (5, 1));
    let seen = server.gets(&[PREFACE, &settings_frame(&[]), &credit(1, 7), &get(3)]);
    assert_eq!(seen, ["< settings ack", "credit 1 7", "head 3 GET / ends"]);
    assert_eq!(server.clone().gets(&[&data(1, b"x")]), ["< reset 1 StreamClosed", "reset 1"]);
    let head = ResponseHead::new(Status::OK);
    let sent = server.sends(|connection, out| connection.put_head(1, &head, true, out));
    assert_eq!(sent, ["< head 1 05"]);
    assert_eq!(server.connection.open_streams(), 1);
}

#[test]
fn frames_and_errors_are_counted() {
    let mut server = Server::new();
    server.connection.counted();
    server.gets(&[
        &post(1),
        &data(1, b"x"),
        &reset(1),
        &get(3),
        &get(3),
        &frame(99, 0, 0, b""),
        &priority_update(5, "i"),
    ]);
    let counted = server.connection.counted();
    assert_eq!(counted.received, [1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(counted.sent, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((counted.resets_received, counted.resets_sent), (1, 1));
    let plain: usize = GET.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert_eq!(counted.heads_received.1, 3 * plain as u64 + 1);
    assert_eq!(counted.heads_received.0, block(&GET).len() as u64 * 2 + block(&POST).len() as u64);
    assert_eq!(server.connection.counted(), crate::Counted::default());
}
