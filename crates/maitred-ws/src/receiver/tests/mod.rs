//! The receiver as a script of the wire.

mod compressed;
mod control;
mod cuts;
mod limits;
mod messages;

use super::*;
use crate::deflate::{DeflateSettings, negotiate};

const WIDE: Limits = Limits { message: 1 << 20, fragments: 100, ratio: 1000, ratio_from: 0 };
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// An event of a receiver, with the message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
    Failed(u16, &'static str),
}

/// A frame of a client: its first byte and its payload, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
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
    frame.extend_from_slice(&KEY);
    frame.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

fn deflate(takeover: bool) -> Deflate {
    let settings = DeflateSettings { max_window_bits: 15, takeover };
    negotiate([&b"permessage-deflate"[..]].into_iter(), &settings).expect("agreed")
}

fn plain() -> Receiver {
    Receiver::new(WIDE, None)
}

/// The receiver's events for bytes that come in these pieces.
fn seen_in_pieces<'a>(receiver: &mut Receiver, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let (mut seen, mut message) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let event = match receiver.poll(rest, &mut message) {
                Ok((used, event)) => {
                    rest = &rest[used..];
                    event
                }
                Err(failure) => {
                    assert_eq!(receiver.poll(b"more", &mut message), Err(failure), "it is for ever");
                    seen.push(Seen::Failed(failure.code, failure.reason));
                    return seen;
                }
            };
            seen.push(match event {
                Event::NeedMore => {
                    assert!(rest.is_empty(), "all is used up when it needs more");
                    break;
                }
                Event::Message { kind, length } => {
                    assert_eq!(length, message.len() as u64);
                    let bytes = std::mem::take(&mut message);
                    match kind {
                        Kind::Text => Seen::Text(String::from_utf8(bytes).expect("it was checked")),
                        Kind::Binary => Seen::Binary(bytes),
                    }
                }
                Event::Ping(payload) => Seen::Ping(payload.as_bytes().to_vec()),
                Event::Pong(payload) => Seen::Pong(payload.as_bytes().to_vec()),
                Event::Close(close) => {
                    Seen::Close(close.map(|(code, reason)| (code, reason.as_str().to_owned())))
                }
            });
        }
    }
    seen
}

/// The receiver's events for `stream`, at once and byte by byte.
#[track_caller]
fn seen(make: impl Fn() -> Receiver, stream: &[u8]) -> Vec<Seen> {
    let whole = seen_in_pieces(&mut make(), [stream]);
    assert_eq!(seen_in_pieces(&mut make(), stream.chunks(1)), whole, "byte by byte");
    whole
}

fn text(text: &str) -> Seen {
    Seen::Text(text.to_owned())
}
