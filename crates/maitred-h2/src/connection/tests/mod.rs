//! Tests that read as scripts of the wire: frames in, words out. All input is fed at once and byte by byte, with one
//! outcome.

mod budgets;
mod control;
mod cuts;
mod data;
mod framing;
mod heads;
mod leaving;
mod sending;
mod states;
mod wide;

use maitred_http::RequestHead;

use super::Connection;
use crate::error::ErrorCode;
use crate::event::Event;
use crate::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Header, PADDED, PING, PRIORITY,
    PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::preface::PREFACE;
use crate::settings::Settings;

/// A second of the clock.
const SECOND: u64 = 1_000_000_000;

/// A server as its peer sees it.
#[derive(Clone)]
struct Server {
    connection: Connection,
    head: RequestHead,
    now: u64,
}

impl Server {
    /// A server with other settings, before any input.
    fn fresh(settings: Settings) -> Self {
        Self { connection: Connection::new(settings), head: RequestHead::default(), now: SECOND }
    }

    /// A server that has got a preface and empty settings.
    fn with(settings: Settings) -> Self {
        let mut server = Self::fresh(settings);
        assert_eq!(server.gets(&[PREFACE, &settings_frame(&[])]), ["< settings ack"]);
        server
    }

    fn new() -> Self {
        Self::with(Settings::default())
    }

    /// The server's reaction to frames: events, `<` frames that it sends at once, `!` the error that ends the
    /// connection.
    fn gets(&mut self, frames: &[&[u8]]) -> Vec<String> {
        let bytes = frames.concat();
        let mut other = self.clone();
        let seen = self.feed(&bytes, usize::MAX);
        assert_eq!(other.feed(&bytes, 1), seen, "byte by byte");
        seen
    }

    fn feed(&mut self, bytes: &[u8], piece: usize) -> Vec<String> {
        let mut log = Log::default();
        let (mut at, mut end) = (0, 0usize);
        loop {
            end = bytes.len().min(end.saturating_add(piece));
            loop {
                let mut control = Vec::new();
                let polled = self.connection.poll(&bytes[at..end], self.now, &mut self.head, &mut control);
                log.control(&control);
                match polled {
                    Ok((used, event)) => {
                        assert!(used <= end - at);
                        at += used;
                        log.event(&event, &self.head);
                        if event == Event::NeedMore {
                            break;
                        }
                    }
                    Err(error) => {
                        log.lines.push(format!("! {:?}", error.code));
                        let again =
                            self.connection.poll(&bytes[at..], self.now, &mut self.head, &mut control);
                        assert_eq!(again, Err(error), "it stays so");
                        return log.lines;
                    }
                }
            }
            if end == bytes.len() {
                return log.lines;
            }
        }
    }

    /// The frames that one of the sending calls has appended.
    fn sends(&mut self, put: impl FnOnce(&mut Connection, &mut Vec<u8>)) -> Vec<String> {
        let mut out = Vec::new();
        put(&mut self.connection, &mut out);
        let mut log = Log::default();
        log.control(&out);
        log.lines
    }
}

/// Events and frames in words.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
}

impl Log {
    fn event(&mut self, event: &Event<'_>, head: &RequestHead) {
        let line = match event {
            Event::NeedMore => return,
            Event::Head { stream, facts } => {
                let target = String::from_utf8_lossy(head.target());
                let ends = if facts.ends { " ends" } else { "" };
                let objection = facts.objection.map(|(status, _)| format!(" {status}")).unwrap_or_default();
                format!("head {stream} {} {target}{ends}{objection}", head.method)
            }
            Event::Data { stream, bytes } => {
                assert!(!bytes.is_empty());
                let text = bytes.escape_ascii().to_string();
                let start = format!("data {stream} ");
                match self.lines.last_mut().filter(|line| line.starts_with(&start)) {
                    Some(line) => return line.push_str(&text),
                    None => start + &text,
                }
            }
            Event::End { stream } => format!("end {stream}"),
            Event::Reset { stream } => format!("reset {stream}"),
            Event::Credit { stream, bytes } => format!("credit {stream} {bytes}"),
            Event::Narrow { stream, bytes } => format!("narrow {stream} {bytes}"),
            Event::Window { change } => format!("window {change}"),
            Event::Priority { stream, priority } => {
                format!("priority {stream} u={} i={}", priority.urgency, priority.incremental)
            }
            Event::Leaving => "leaving".to_owned(),
        };
        self.lines.push(line);
    }

    fn control(&mut self, mut bytes: &[u8]) {
        while let Some(header) = Header::read(bytes) {
            let (payload, rest) = bytes[9..].split_at(header.length as usize);
            bytes = rest;
            let word = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("4 bytes"));
            let stream = header.stream;
            self.lines.push(match header.kind {
                RST_STREAM => format!("< reset {stream} {}", code(word(0))),
                SETTINGS if header.has(ACK) => "< settings ack".to_owned(),
                SETTINGS => format!("< settings {payload:?}"),
                PING if header.has(ACK) => format!("< ping ack {}", String::from_utf8_lossy(payload)),
                PING => "< ping".to_owned(),
                GOAWAY => format!("< goaway {} {}", word(0), code(word(4))),
                WINDOW_UPDATE => format!("< credit {stream} {}", word(0)),
                HEADERS => format!("< head {stream} {:02x}", header.flags),
                CONTINUATION => format!("< more {stream} {:02x}", header.flags),
                kind => format!("< frame {kind} {stream}"),
            });
        }
        assert!(bytes.is_empty(), "whole frames");
    }
}

fn code(number: u32) -> String {
    use ErrorCode::*;
    let known = [
        NoError,
        ProtocolError,
        InternalError,
        FlowControlError,
        StreamClosed,
        FrameSizeError,
        RefusedStream,
        Cancel,
        CompressionError,
        EnhanceYourCalm,
    ];
    let found = known.into_iter().find(|known| *known as u32 == number);
    format!("{:?}", found.expect("a code that is sent"))
}

// ---- Frames of a client ----

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header { length: payload.len() as u32, kind, flags, stream }.put(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Fields as literals that no table gets.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            number(text.len(), &mut out);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// A length of 7 bits and more (RFC 7541 §5.1).
fn number(mut value: usize, out: &mut Vec<u8>) {
    if value < 127 {
        return out.push(value as u8);
    }
    out.push(127);
    value -= 127;
    while value > 127 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.example")];
const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "a.example")];

fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &block(fields))
}

/// A request without a body.
fn get(stream: u32) -> Vec<u8> {
    headers(stream, END_STREAM, &GET)
}

/// The head of one with a body.
fn post(stream: u32) -> Vec<u8> {
    headers(stream, 0, &POST)
}

/// The head of one whose body has a length.
fn post_of(stream: u32, length: &str) -> Vec<u8> {
    headers(stream, 0, &[&POST[..], &[("content-length", length)]].concat())
}

fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

fn last_data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, bytes)
}

fn padded(stream: u32, flags: u8, bytes: &[u8], padding: u8) -> Vec<u8> {
    let payload = [&[padding], bytes, &vec![0; usize::from(padding)]].concat();
    frame(DATA, flags | PADDED, stream, &payload)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

fn credit(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn settings_frame(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::put_settings(Some(settings), &mut out);
    out
}

fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, b"")
}

fn depends(stream: u32, on: u32) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[16]].concat())
}

fn priority_update(stream: u32, value: &str) -> Vec<u8> {
    frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes()[..], value.as_bytes()].concat())
}
