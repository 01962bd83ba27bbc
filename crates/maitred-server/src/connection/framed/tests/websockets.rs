//! A WebSocket in a stream (RFC 8441): what is kept for a peer that takes nothing, and of one whose handler takes nothing.

use std::sync::Arc;

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Handler, WebSocket};
use maitred_turns::Signals;

use super::client::{ACK, Client, DATA, END_HEADERS, Got, HEADERS, SETTINGS};
use super::open_for;
use crate::connection::carrier::Carrier;
use crate::connection::carrier::with_carrier;
use crate::connection::framed::Framed;
use crate::connection::websocket::tests::room::compressed;
use crate::connection::websocket::tests::{Keeper, frame, text};
use crate::connection::{Connection, Protocol};
use crate::group::slots::Token;

const PING: u8 = 0x89;

fn accepted(settings: &[u8]) -> (Client, WebSocket) {
    let keeper = Arc::new(Keeper::default());
    let handler = Arc::clone(&keeper) as Arc<dyn Handler>;
    let framed = |site: &_| Protocol::Framed(Framed::new(site));
    let mut client = Client::of(open_for(handler, 1 << 20, |_| {}, framed));
    client.begin(settings);
    assert!(client.asks(SETTINGS, ACK, 0, &[]).is_empty());
    let offer = "permessage-deflate; client_no_context_takeover";
    let block = client.block(
        "CONNECT",
        "/chat",
        &[(":protocol", "websocket"), ("sec-websocket-version", "13"), ("sec-websocket-extensions", offer)],
    );
    let jobs = client.asks(HEADERS, END_HEADERS, 1, &block);
    client.driven.run_here(jobs);
    let head = ResponseHead::new(Status::OK);
    let socket = keeper.exchange().accept(&head).map_err(|(_, error)| error).expect("accepted");
    assert!(client.driven.turn(Signals::READ).is_empty());
    client.frames();
    (client, socket)
}

/// Bytes of its stream's queue.
fn waits_for_peer(client: &Client) -> u64 {
    let token = Token { slot: 0, generation: 0 };
    let held = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| {
            carrier.streams().filter_map(|stream| stream.queue.as_ref()).map(|queue| queue.held()).sum()
        })
    };
    client.driven.group.with_connection(token, held).expect("a connection")
}

fn bodies(frames: &[Got]) -> Vec<u8> {
    frames.iter().filter(|frame| frame.kind == DATA).flat_map(|frame| frame.payload.clone()).collect()
}

#[test]
fn of_pings_whose_answers_are_not_taken_the_last_is_answered() {
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    let (mut client, socket) = accepted(&[0, 4, 0, 0, 0, 0]);
    for number in 0..450_u32 {
        let pings = [frame(PING, &[b'x'; 125]), frame(PING, &number.to_be_bytes())].concat();
        assert!(client.sends(1, &pings).is_empty());
        assert!(bodies(&client.frames()).is_empty(), "there is no window");
    }
    assert!(waits_for_peer(&client) < 8 * 1024, "{}", waits_for_peer(&client));
    client.gives(1, 10_000);
    let pongs = bodies(&client.frames());
    assert!(pongs[127..].starts_with(&[0x8a, 4, 0, 0, 0, 0]), "those of the first read");
    assert!(pongs.ends_with(&[&[0x8a, 4][..], &449_u32.to_be_bytes()].concat()));
    client.sends(1, &frame(PING, b"now"));
    assert_eq!(bodies(&client.frames()), b"\x8a\x03now");
    drop(socket);
}

#[test]
fn nothing_follows_the_last_frame() {
    let (mut client, socket) = accepted(&[0, 4, 0, 0, 0, 0]);
    for _ in 0..100 {
        client.sends(1, &frame(PING, &[b'x'; 125]));
    }
    socket.close(1000, "");
    let waiting = waits_for_peer(&client) as u32;
    client.gives(1, waiting - 3);
    client.sends(1, &frame(PING, b"late"));
    client.gives(1, 10_000);
    let got = bodies(&client.frames());
    assert_eq!((got.len(), &got[got.len() - 4..]), (waiting as usize, &b"\x88\x02\x03\xe8"[..]));
}

#[test]
fn messages_that_are_not_taken_stay_as_they_came() {
    let (mut client, mut socket) = accepted(&[]);
    const LENGTH: usize = 1 << 20;
    let all: Vec<u8> = (b'a'..=b'h').flat_map(|letter| compressed(letter, LENGTH)).collect();
    for part in all.chunks(16_000) {
        assert!(client.sends(1, part).is_empty());
    }
    let token = Token { slot: 0, generation: 0 };
    let held = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| {
            carrier
                .streams()
                .filter_map(|stream| stream.socket.as_ref())
                .map(|socket| socket.held())
                .sum::<u64>()
        })
    };
    let held = client.driven.group.with_connection(token, held).expect("a connection");
    assert!((LENGTH as u64..LENGTH as u64 * 3 / 2).contains(&held), "one of eight: {held}");
    for letter in 'a'..='h' {
        let got = text(&mut socket).expect("the next one");
        assert!(got.len() == LENGTH && got.starts_with(letter), "{letter}");
        client.driven.turn(Signals::NONE);
    }
    assert_eq!(text(&mut socket), None);
}

#[test]
fn what_has_come_is_not_lost_when_the_peer_ends_the_stream() {
    let (mut client, mut socket) = accepted(&[]);
    let all: Vec<u8> = (b'a'..=b'c').flat_map(|letter| compressed(letter, 100_000)).collect();
    assert!(client.ends(1, &all).is_empty());
    for letter in 'a'..='c' {
        assert!(text(&mut socket).expect("the next one").starts_with(letter));
        client.driven.turn(Signals::NONE);
    }
    assert!(
        matches!(socket.next_message(), maitred_runtime::Incoming::Closed(closed) if closed.code == 1006)
    );
}
