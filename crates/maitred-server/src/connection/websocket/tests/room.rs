//! Memory of a WebSocket whose handler takes no messages, and of one whose peer takes none.

use std::io::Write;
use std::time::Duration;

use flate2::{Compress, Compression, FlushCompress};
use maitred_exchange::Socket;
use maitred_runtime::{Content, Incoming, Last, MessageKind};
use maitred_turns::Signals;

use super::{ASK, CLOSE, Chat, PING, TEXT, closed, frame, open, snapshot, text};
use crate::connection::Connection;
use crate::connection::carrier::Carrier;
use crate::connection::carrier::with_carrier;
use crate::group::slots::Token;
use maitred_exchange::stream::websocket::{INBOX, MAX_SIGNS, SHORT};

/// The first frame of an incomplete text message.
const BEGUN: u8 = 0x01;
const END: u8 = 0x80;
/// Text in compressed form.
const COMPRESSED: u8 = 0xc1;

/// A message of `length` letters, compressed by itself (RFC 7692 §7.2.1).
pub(in crate::connection) fn compressed(letter: u8, length: usize) -> Vec<u8> {
    let mut packed = Vec::with_capacity(length / 100 + 100);
    Compress::new(Compression::best(), false)
        .compress_vec(&vec![letter; length], &mut packed, FlushCompress::Sync)
        .expect("room for all");
    packed.truncate(packed.len() - 4);
    frame(COMPRESSED, &packed)
}

fn ask_compressed() -> Vec<u8> {
    let ask = String::from_utf8(ASK.to_vec()).expect("text");
    let offer = "Host: t\r\nSec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover";
    ask.replace("Host: t", offer).into_bytes()
}

fn look<R>(chat: &Chat, at: impl FnOnce(&Socket) -> R) -> R {
    let token = Token { slot: 0, generation: 0 };
    let show = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| carrier
            .streams()
            .find_map(|stream| stream.socket.as_deref())
            .map(at))
    };
    chat.driven.group.with_connection(token, show).flatten().expect("a WebSocket")
}

#[test]
fn messages_that_are_not_taken_stay_as_they_came() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts_as(&ask_compressed());
    let length = SHORT as usize;
    let all: Vec<u8> = (b'a'..=b'h').flat_map(|letter| compressed(letter, length)).collect();
    assert!(all.len() < 64 * 1024, "one read: {}", all.len());
    chat.sends(&all);
    assert_eq!(look(&chat, |socket| socket.inbox.held()), length, "one of eight");
    for letter in 'a'..='h' {
        let got = text(&mut socket).expect("the next one");
        assert!(got.len() == length && got.starts_with(letter) && got.ends_with(letter), "{letter}");
        chat.driven.turn(Signals::NONE);
    }
    assert_eq!(text(&mut socket), None);
    assert_eq!(chat.driven.group.site.body_budget.figures().held, 0);
}

#[test]
fn what_has_come_is_not_lost_when_its_peer_is_gone() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts_as(&ask_compressed());
    let all: Vec<u8> = (b'a'..=b'c').flat_map(|letter| compressed(letter, 100_000)).collect();
    chat.driven.client.write_all(&all).expect("room");
    chat.driven.client.shutdown_write();
    chat.driven.turn(Signals::READ.with(Signals::READ_CLOSED));
    for letter in 'a'..='c' {
        assert!(text(&mut socket).expect("the next one").starts_with(letter));
        chat.driven.turn(Signals::NONE);
    }
    assert_eq!(closed(&mut socket).code, 1006);
}

/// A little more than half a budget of 1 MiB.
const HALF: u64 = 600_000;

#[test]
fn beyond_half_the_budget_only_a_handler_that_waits_gets_more() {
    const PART: usize = 100_000;
    let mut chat = open(|settings| settings.body_budget = 1 << 20);
    let mut socket = chat.accepts();
    let mut others = chat.driven.group.site.body_budget.keep();
    others.change(HALF);
    chat.sends(&frame(BEGUN, &[b'x'; PART]));
    chat.sends(&[frame(END, &[b'x'; PART]), frame(TEXT, b"second")].concat());
    assert_eq!(
        look(&chat, |socket| (socket.inbox.held(), socket.kept.held())),
        (PART, (PART - INBOX) as u64)
    );
    for _ in 0..2 {
        assert_eq!(text(&mut socket), None, "the handler waits");
        chat.driven.turn(Signals::NONE);
        if snapshot(&chat).expect("a WebSocket").waiting > 0 {
            break;
        }
    }
    assert_eq!(text(&mut socket).map(|text| text.len()), Some(2 * PART));
    chat.driven.turn(Signals::NONE);
    assert_eq!(
        text(&mut socket)
            .or_else(|| {
                chat.driven.turn(Signals::NONE);
                text(&mut socket)
            })
            .as_deref(),
        Some("second")
    );
    assert_eq!(text(&mut socket), None);
    assert_eq!(chat.driven.group.site.body_budget.figures().held, HALF, "all is given back");
}

#[test]
fn beyond_half_the_budget_little_is_inflated_for_a_handler_that_does_not_wait() {
    let mut chat = open(|settings| settings.body_budget = 1 << 20);
    let mut socket = chat.accepts_as(&ask_compressed());
    let mut others = chat.driven.group.site.body_budget.keep();
    others.change(HALF);
    let length = SHORT as usize;
    chat.sends(&[frame(PING, b"here"), compressed(b'a', length)].concat());
    assert_eq!(chat.receives(), b"\x8a\x04here");
    let held = look(&chat, |socket| socket.inbox.held());
    assert!((INBOX..3 * INBOX).contains(&held), "{held}");
    assert_eq!(text(&mut socket), None, "the handler waits");
    chat.driven.turn(Signals::NONE);
    assert_eq!(text(&mut socket).map(|text| text.len()), Some(length));
}

#[test]
fn a_long_message_without_memory_is_refused_and_short_ones_go_on() {
    let mut chat = open(|settings| {
        settings.body_budget = 1 << 20;
        settings.websockets.as_mut().expect("on").max_message = 1 << 20;
    });
    let mut socket = chat.accepts();
    let mut others = chat.driven.group.site.body_budget.keep();
    // Twice four of the longest messages.
    others.change(8 << 20);
    assert_eq!(text(&mut socket), None);
    chat.sends(&frame(TEXT, b"short"));
    assert_eq!(text(&mut socket).as_deref(), Some("short"));
    assert_eq!(text(&mut socket), None);
    chat.sends(&frame(BEGUN, &[b'x'; 300_000]));
    assert_eq!(chat.receives()[2..4], 1013_u16.to_be_bytes());
    assert_eq!(closed(&mut socket).code, 1013);
}

#[test]
fn a_peer_whose_messages_are_not_taken_is_not_silent() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    chat.sends(&frame(TEXT, &[b'x'; INBOX + 1]));
    chat.driven.passes(Duration::from_secs(100));
    assert!(chat.receives().is_empty());
    assert_eq!(text(&mut socket).map(|text| text.len()), Some(INBOX + 1));
    chat.driven.passes(Duration::from_secs(21));
    assert_eq!(chat.receives(), b"\x89\0", "it may be asked again");
}

#[test]
fn of_pings_behind_what_the_peer_does_not_read_the_last_is_answered() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    let length = 2 << 20;
    socket.send(MessageKind::Binary, Last::Given(Content::Bytes(vec![0; length]))).expect("kept");
    for number in 0..1000_u32 {
        chat.sends(&frame(PING, &number.to_be_bytes()));
    }
    let mut got = Vec::new();
    while got.len() < length + 10 {
        let part = chat.receives();
        got.extend_from_slice(&part);
        chat.driven.turn(Signals::WRITE);
        if part.is_empty() {
            break;
        }
    }
    let behind = &got[length + 10..];
    assert_eq!(behind, [&[0x8a, 4][..], &999_u32.to_be_bytes()].concat());
}

#[test]
fn more_pings_and_pongs_than_a_peer_needs_end_it() {
    for (opcode, more) in [(PING, 0), (0x8a, 0), (PING, 200)] {
        let mut chat = open(|_| {});
        let mut socket = chat.accepts();
        let most = MAX_SIGNS as usize + more;
        chat.sends(&frame(opcode, b"").repeat(most));
        if more > 0 {
            assert_eq!(closed(&mut socket).code, 1008);
        } else {
            assert!(snapshot(&chat).is_some_and(|socket| socket.received.messages == 0), "it is open");
            chat.sends(&frame(TEXT, b"still"));
            assert_eq!(text(&mut socket).as_deref(), Some("still"));
        }
    }
}

#[test]
fn nothing_follows_the_last_frame() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    let length = 2 << 20;
    socket.send(MessageKind::Binary, Last::Given(Content::Bytes(vec![0; length]))).expect("kept");
    chat.sends(&frame(PING, b"late"));
    socket.close(1000, "");
    let mut got = Vec::new();
    loop {
        let part = chat.receives();
        if part.is_empty() {
            break;
        }
        got.extend_from_slice(&part);
        chat.driven.turn(Signals::WRITE);
    }
    assert_eq!(got[length + 10..], [CLOSE, 2, 3, 0xe8]);
}

#[test]
fn the_next_message_is_what_it_was() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    chat.sends(&[frame(TEXT, &[b'x'; INBOX + 1]), frame(0x82, b"bytes")].concat());
    assert_eq!(text(&mut socket).map(|text| text.len()), Some(INBOX + 1));
    chat.driven.turn(Signals::NONE);
    assert_eq!(socket.next_message(), Incoming::Message(MessageKind::Binary, b"bytes"));
}
