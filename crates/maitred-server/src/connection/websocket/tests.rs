//! A WebSocket over HTTP/1.1 in memory: a pipe, and a test that takes every turn, sets the time, and is the handler.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maitred_exchange::stream::websocket::{INBOX, WebSocketSnapshot};
use maitred_http::{FieldSet, ResponseHead, Status};
use maitred_runtime::{
    Closed, Exchange, Flow, Handler, Incoming, InvocationType, Last, MessageKind, Observe, SendError,
    WebSocket,
};
use maitred_turns::Signals;

use crate::connection::carrier::Carrier;
use crate::connection::carrier::with_carrier;
use crate::connection::framed::tests::{Driven, open_for};
use crate::connection::{Connection, Protocol};
use crate::group::slots::Token;
use crate::settings::Settings;

pub(in crate::connection) mod room;

const ASK: &[u8] =
    b"GET /chat HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// Keeps its exchange; the test answers.
#[derive(Default)]
pub(in crate::connection) struct Keeper(Mutex<Option<Exchange>>);

impl Keeper {
    pub(in crate::connection) fn exchange(&self) -> Exchange {
        self.0.lock().expect("no panic").take().expect("the handler was called")
    }
}

impl Handler for Keeper {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn takes_websockets(&self) -> bool {
        true
    }

    fn handle(&self, exchange: Exchange) {
        *self.0.lock().expect("no panic") = Some(exchange);
    }
}

struct Chat {
    driven: Driven,
    keeper: Arc<Keeper>,
}

fn open(change: impl FnOnce(&mut Settings)) -> Chat {
    let keeper = Arc::new(Keeper::default());
    let handler = Arc::clone(&keeper) as Arc<dyn Handler>;
    Chat { driven: open_for(handler, 1 << 20, change, |_| Protocol::h1()), keeper }
}

impl Chat {
    fn sends(&mut self, bytes: &[u8]) {
        self.driven.client.write_all(bytes).expect("the pipe has room");
        let jobs = self.driven.turn(Signals::READ);
        self.driven.run_here(jobs);
    }

    fn receives(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        let count = self.driven.client.read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    fn exchange(&self) -> Exchange {
        self.keeper.exchange()
    }

    /// Opens a WebSocket.
    fn accepts(&mut self) -> WebSocket {
        self.accepts_as(ASK)
    }

    fn accepts_as(&mut self, ask: &[u8]) -> WebSocket {
        self.sends(ask);
        let accepted = self.exchange().accept(&ResponseHead::new(Status::OK));
        let socket = accepted.map_err(|(_, error)| error).expect("accepted");
        let answer = String::from_utf8(self.receives()).expect("text");
        assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
        assert!(
            answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "RFC 6455 §1.3: {answer}"
        );
        let jobs = self.driven.turn(Signals::READ);
        assert!(jobs.is_empty());
        socket
    }
}

/// A frame of a client, whose mask changes nothing.
pub(in crate::connection) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length @ ..65536 => {
            frame.push(0xfe);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(0xff);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes(), reason.as_bytes()].concat())
}

pub(in crate::connection) fn text(socket: &mut WebSocket) -> Option<String> {
    match socket.next_message() {
        Incoming::Message(MessageKind::Text, text) => Some(String::from_utf8_lossy(text).into_owned()),
        Incoming::Nothing => None,
        other => panic!("{other:?}"),
    }
}

fn closed(socket: &mut WebSocket) -> Closed {
    match socket.next_message() {
        Incoming::Closed(closed) => closed.clone(),
        other => panic!("{other:?}"),
    }
}

fn send(socket: &mut WebSocket, text: &str) -> Result<Flow, SendError> {
    socket.send(MessageKind::Text, Last::Given(text.to_owned().into()))
}

/// The view of the control.
fn snapshot(chat: &Chat) -> Option<WebSocketSnapshot> {
    let token = Token { slot: 0, generation: 0 };
    let show = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| Some(carrier.streams().next()?.socket.as_ref()?.show()))
    };
    chat.driven.group.with_connection(token, show).flatten()
}

#[test]
fn messages_go_in_both_directions_and_the_end_is_answered() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    chat.sends(&[frame(TEXT, b"one"), frame(TEXT, b"two")].concat());
    assert_eq!(text(&mut socket).as_deref(), Some("one"));
    assert_eq!(text(&mut socket).as_deref(), Some("two"));
    assert_eq!(text(&mut socket), None);
    send(&mut socket, "answer").expect("sent");
    assert_eq!(chat.receives(), b"\x81\x06answer");
    chat.sends(&close(1001, "bye"));
    assert_eq!(chat.receives(), b"\x88\x05\x03\xe9bye");
    assert_eq!(closed(&mut socket), Closed { code: 1001, reason: "bye".into() });
    assert_eq!(send(&mut socket, "late"), Err(SendError::Closed));
    socket.close(1000, "");
    chat.driven.turn(Signals::READ);
    assert!(chat.receives().is_empty() && chat.driven.client.is_at_end());
}

#[test]
fn pings_are_answered_while_the_handler_does_nothing() {
    let mut chat = open(|_| {});
    let socket = chat.accepts();
    chat.sends(&[frame(PING, b"a"), frame(PING, b"b"), frame(PONG, b"c")].concat());
    assert_eq!(chat.receives(), b"\x8a\x01a\x8a\x01b");
    drop(socket);
    assert_eq!(chat.receives(), b"\x88\x02\x03\xf3", "dropped open: 1011");
}

#[test]
fn a_silent_peer_is_asked_and_then_given_up() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    chat.driven.passes(Duration::from_secs(19));
    assert!(chat.receives().is_empty());
    chat.driven.passes(Duration::from_secs(2));
    assert_eq!(chat.receives(), b"\x89\0", "a ping");
    chat.sends(&frame(PONG, b""));
    chat.driven.passes(Duration::from_secs(21));
    assert_eq!(chat.receives(), b"\x89\0", "the next one counts from the answer");
    chat.driven.passes(Duration::from_secs(21));
    assert_eq!(chat.receives()[..4], *b"\x88\x22\x03\xf3");
    assert_eq!(closed(&mut socket).code, 1011);
}

#[test]
fn what_breaks_the_rules_is_closed_and_the_handler_hears_why() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    chat.sends(&[frame(TEXT, b"good"), frame(0x83, b""), frame(TEXT, b"unseen")].concat());
    assert_eq!(chat.receives()[2..4], 1002_u16.to_be_bytes());
    assert_eq!(text(&mut socket).as_deref(), Some("good"));
    assert_eq!(closed(&mut socket).code, 1002);
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_head() {
    let mut chat = open(|settings| settings.websockets.as_mut().expect("on").max_message = 10);
    let mut socket = chat.accepts();
    chat.sends(&frame(TEXT, &[b'x'; 200])[..8]);
    assert_eq!(chat.receives()[2..4], 1009_u16.to_be_bytes());
    assert_eq!(closed(&mut socket).code, 1009);
}

#[test]
fn a_handler_that_takes_nothing_slows_its_peer_down() {
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    let message = frame(TEXT, &[b'x'; 40_000]);
    for _ in 0..10 {
        chat.sends(&message);
    }
    let waiting = snapshot(&chat).expect("a WebSocket").waiting;
    // The bytes of one receive, and the message within.
    assert!((INBOX..INBOX + 3 * 40_000).contains(&waiting), "{waiting}");
    let mut taken = 0;
    while taken < 10 {
        match text(&mut socket) {
            Some(text) => {
                assert_eq!(text.len(), 40_000);
                taken += 1;
            }
            None => assert!(chat.driven.turn(Signals::NONE).is_empty()),
        }
    }
    assert_eq!(text(&mut socket), None);
}

#[test]
fn a_peer_that_is_gone_without_a_word_is_noticed() {
    #[derive(Default)]
    struct Told(std::sync::atomic::AtomicUsize);
    impl Observe for Told {
        fn changed(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let mut chat = open(|_| {});
    let mut socket = chat.accepts();
    let told = Arc::new(Told::default());
    socket.observe(Arc::clone(&told) as Arc<dyn Observe>);
    chat.driven.client.write_all(&frame(TEXT, b"last")).expect("room");
    chat.driven.client.shutdown_write();
    chat.driven.turn(Signals::READ.with(Signals::READ_CLOSED));
    assert!(told.0.load(std::sync::atomic::Ordering::SeqCst) > 0);
    assert_eq!(text(&mut socket).as_deref(), Some("last"), "what came before is not lost");
    assert_eq!(closed(&mut socket), Closed::abnormal());
}

#[test]
fn what_comes_before_it_is_accepted_waits() {
    let mut chat = open(|_| {});
    chat.sends(&[ASK, &frame(TEXT, b"early")].concat());
    let accepted = chat.exchange().accept(&ResponseHead::new(Status::OK));
    let mut socket = accepted.map_err(|(_, error)| error).expect("accepted");
    chat.driven.turn(Signals::NONE);
    assert_eq!(text(&mut socket).as_deref(), Some("early"));
}

#[test]
fn one_that_is_refused_is_an_answer_and_the_last_one() {
    let mut chat = open(|_| {});
    chat.sends(&[ASK, b"GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n"].concat());
    chat.exchange().respond(ResponseHead::new(Status::FORBIDDEN), "no").expect("sent");
    let jobs = chat.driven.turn(Signals::READ);
    assert!(jobs.is_empty(), "nothing behind it is a request");
    let answer = String::from_utf8(chat.receives()).expect("text");
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("\r\nConnection: close\r\n"), "{answer}");
}

#[test]
fn requests_that_ask_wrongly_are_told_what_is_wrong() {
    let ask = |from: &str, to: &str| {
        let mut chat = open(|_| {});
        let asked = String::from_utf8(ASK.to_vec()).expect("text").replace(from, to);
        chat.sends(asked.as_bytes());
        assert!(chat.keeper.0.lock().expect("no panic").is_none(), "no handler has it: {to}");
        String::from_utf8(chat.receives()).expect("text")
    };
    let version = ask("Version: 13", "Version: 8");
    assert!(
        version.starts_with("HTTP/1.1 426 ") && version.contains("\r\nSec-WebSocket-Version: 13\r\n"),
        "{version}"
    );
    for (from, to) in [
        ("Key: dGhlIHNhbXBsZSBub25jZQ==", "Key: c2hvcnQ="),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
        ("GET /chat", "POST /chat"),
        ("Host: t", "Host: t\r\nSec-WebSocket-Protocol: a b"),
        ("Host: t", "Host: t\r\nContent-Length: 3"),
    ] {
        let answer = ask(from, to);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{to}: {answer}");
    }
}

#[test]
fn fields_of_the_protocol_are_not_the_handlers_to_set() {
    let mut chat = open(|_| {});
    chat.sends(ASK);
    let head = |name: &str, value: &str| ResponseHead::new(Status::OK).with(name, value);
    let (exchange, error) = chat.exchange().accept(&head("Upgrade", "other")).err().expect("refused");
    assert!(matches!(error, SendError::InvalidField(_)));
    let socket = exchange.accept(&head("Sec-WebSocket-Protocol", "chat"));
    assert!(socket.is_ok(), "another answer may be given");
    let answer = String::from_utf8(chat.receives()).expect("text");
    assert!(answer.contains("\r\nSec-WebSocket-Protocol: chat\r\n"), "{answer}");
}

#[test]
fn compression_has_contexts_as_long_as_there_is_room() {
    let asked = |contexts: u64| {
        let mut chat = open(|settings| settings.websockets.as_mut().expect("on").contexts = contexts);
        let ask = String::from_utf8(ASK.to_vec()).expect("text");
        let ask = ask.replace(
            "Host: t",
            "Host: t\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        );
        chat.sends(ask.as_bytes());
        let mut socket = chat
            .exchange()
            .accept(&ResponseHead::new(Status::OK))
            .map_err(|(_, error)| error)
            .expect("accepted");
        let answer = String::from_utf8(chat.receives()).expect("text");
        let message =
            "Die Wörter sind dieselben, immer wieder: a message that is long enough to be compressed";
        let lengths: Vec<usize> = (0..2)
            .map(|_| {
                send(&mut socket, message).expect("sent");
                chat.receives().len()
            })
            .collect();
        let shown = snapshot(&chat).expect("a WebSocket");
        assert!(shown.compressed, "with a context or without");
        (answer.contains("server_no_context_takeover"), lengths[1] < lengths[0])
    };
    assert_eq!(asked(1 << 20), (false, true));
    assert_eq!(asked(0), (true, false));
}

#[test]
fn without_websockets_a_request_for_one_is_a_request() {
    let mut chat = open(|settings| settings.websockets = None);
    chat.sends(ASK);
    let exchange = chat.exchange();
    assert!(!exchange.request().websocket);
    exchange
        .respond(ResponseHead { fields: FieldSet::new(), ..ResponseHead::new(Status::OK) }, "plain")
        .expect("sent");
    assert!(chat.receives().starts_with(b"HTTP/1.1 200 "));
}
