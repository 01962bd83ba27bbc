//! A client of HTTP/2 at the other end of the pipe.

use std::io::{Read, Write};

use maitred_h2::hpack::{Decoder, Encoder};
use maitred_turns::Signals;

use super::{Driven, Puppet, open_speaking};
use crate::connection::Protocol;
use crate::connection::framed::Framed;
use crate::group::Job;
use crate::settings::Settings;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RESET: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

// Codes of errors (RFC 9113 §7).
pub(super) const NO_ERROR: u32 = 0;
pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const INTERNAL_ERROR: u32 = 2;
pub(super) const FLOW_CONTROL_ERROR: u32 = 3;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// What the server may send at first, on a stream and on the connection (RFC 9113 §6.9.2).
pub(super) const WINDOW: usize = 65_535;

/// The most bytes of data in a frame.
pub(super) const FRAME: usize = 16_384;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
    /// The status in a block, or its fields where there is none, one a line.
    pub(super) head: String,
}

impl Got {
    pub(super) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }

    pub(super) fn status(&self) -> &str {
        assert_eq!(self.kind, HEADERS, "{self:?}");
        &self.head
    }
}

/// What a frame says about a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A status, or the fields behind a body.
    Head(u32, String),
    Data(u32, Vec<u8>),
    /// In whichever frame it was.
    End(u32),
    /// With the code of an error.
    Reset(u32, u32),
}

pub(super) fn head(stream: u32, status: &str) -> Part {
    Part::Head(stream, status.into())
}

pub(super) fn ok(stream: u32) -> Part {
    head(stream, "200")
}

pub(super) fn data(stream: u32, text: &str) -> Part {
    Part::Data(stream, text.into())
}

/// What these frames say about streams.
pub(super) fn parts(frames: Vec<Got>) -> Vec<Part> {
    let mut parts = Vec::new();
    for frame in frames {
        let ends = matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM > 0;
        match frame.kind {
            HEADERS => parts.push(Part::Head(frame.stream, frame.head)),
            DATA if !frame.payload.is_empty() => parts.push(Part::Data(frame.stream, frame.payload)),
            RESET => parts.push(Part::Reset(frame.stream, frame.number(0))),
            _ => {}
        }
        parts.extend(ends.then_some(Part::End(frame.stream)));
    }
    parts
}

/// The body of a stream.
pub(super) fn body(parts: &[Part], of: u32) -> Vec<u8> {
    let of = |part: &Part| match part {
        Part::Data(stream, bytes) if *stream == of => Some(bytes.clone()),
        _ => None,
    };
    parts.iter().filter_map(of).flatten().collect()
}

/// How many bytes of it these frames have.
pub(super) fn data_of(frames: &[Got], stream: u32) -> usize {
    let of_it = frames.iter().filter(|frame| frame.kind == DATA && frame.stream == stream);
    of_it.map(|frame| frame.payload.len()).sum()
}

/// Credit that these frames give: on which stream, and how much.
pub(super) fn credit(frames: &[Got]) -> Vec<(u32, u32)> {
    let given = frames.iter().filter(|frame| frame.kind == WINDOW_UPDATE);
    given.map(|frame| (frame.stream, frame.number(0))).collect()
}

/// A frame as bytes.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// See the module text.
pub(super) struct Client {
    pub(super) driven: Driven,
    encoder: Encoder,
    decoder: Decoder,
    pub(super) received: Vec<u8>,
}

pub(super) fn open(change: impl FnOnce(&mut Settings)) -> Client {
    open_with(1 << 20, change)
}

/// The same over a pipe that takes so many bytes.
pub(super) fn open_with(capacity: usize, change: impl FnOnce(&mut Settings)) -> Client {
    let framed = |site: &_| Protocol::Framed(Framed::new(site));
    let mut client = Client::of(open_speaking(capacity, change, framed));
    client.begin(&[]);
    client
}

impl Client {
    pub(super) fn of(driven: Driven) -> Self {
        Self { driven, encoder: Encoder::new(), decoder: Decoder::new(4096), received: Vec::new() }
    }

    /// Sends what comes first, with these settings, and takes what the server says first.
    pub(super) fn begin(&mut self, settings: &[u8]) {
        self.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert!(self.asks(SETTINGS, 0, 0, settings).is_empty());
        let kinds: Vec<_> = self.frames().iter().map(|frame| (frame.kind, frame.flags)).collect();
        assert_eq!(kinds, [(SETTINGS, 0), (WINDOW_UPDATE, 0), (SETTINGS, ACK)]);
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.driven.client.write_all(bytes).expect("the pipe has room");
    }

    pub(super) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&frame(kind, flags, stream, payload));
    }

    pub(super) fn asks(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<Job> {
        self.send(kind, flags, stream, payload);
        self.driven.turn(Signals::READ)
    }

    pub(super) fn block(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        let own = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)];
        for (name, value) in own.iter().chain(fields) {
            self.encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        block
    }

    pub(super) fn get(&mut self, stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<Job> {
        let block = self.block("GET", path, fields);
        self.asks(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// Asks for these in one turn.
    pub(super) fn gets(&mut self, asked: &[(u32, &str)], fields: &[(&str, &str)]) -> Vec<Job> {
        for (stream, path) in asked {
            let block = self.block("GET", path, fields);
            self.send(HEADERS, END_HEADERS | END_STREAM, *stream, &block);
        }
        self.driven.turn(Signals::READ)
    }

    /// The same; the handlers run, and do what the test says.
    pub(super) fn begins<const N: usize>(&mut self, asked: [(u32, &str); N]) -> [Puppet; N] {
        self.begins_with(asked, &[])
    }

    pub(super) fn begins_with<const N: usize>(
        &mut self,
        asked: [(u32, &str); N],
        fields: &[(&str, &str)],
    ) -> [Puppet; N] {
        let mut puppets = asked.map(|(_, path)| {
            let query = path.find('?').unwrap_or(path.len());
            self.driven.puppet(&path[..query])
        });
        let jobs = self.gets(&asked, fields);
        assert_eq!(jobs.len(), N);
        for (job, puppet) in jobs.into_iter().zip(&mut puppets) {
            self.driven.runs(job, puppet);
        }
        puppets
    }

    pub(super) fn post(&mut self, stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<Job> {
        let block = self.block("POST", path, fields);
        self.asks(HEADERS, END_HEADERS, stream, &block)
    }

    /// A body, or the next part of it.
    pub(super) fn sends(&mut self, stream: u32, bytes: &[u8]) -> Vec<Job> {
        self.asks(DATA, 0, stream, bytes)
    }

    /// The last part of it.
    pub(super) fn ends(&mut self, stream: u32, bytes: &[u8]) -> Vec<Job> {
        self.asks(DATA, END_STREAM, stream, bytes)
    }

    pub(super) fn resets(&mut self, stream: u32) -> Vec<Job> {
        self.asks(RESET, 0, stream, &CANCEL.to_be_bytes())
    }

    /// Gives credit.
    pub(super) fn gives(&mut self, stream: u32, bytes: u32) -> Vec<Job> {
        self.asks(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// All frames that have come.
    pub(super) fn frames(&mut self) -> Vec<Got> {
        let mut part = [0; 65_536];
        while let Ok(count) = self.driven.client.read(&mut part) {
            if count == 0 {
                break;
            }
            self.received.extend_from_slice(&part[..count]);
        }
        let mut frames = Vec::new();
        while self.received.len() >= 9 {
            let length =
                u32::from_be_bytes([0, self.received[0], self.received[1], self.received[2]]) as usize;
            if self.received.len() < 9 + length {
                break;
            }
            let rest = self.received.split_off(9 + length);
            let frame = std::mem::replace(&mut self.received, rest);
            let stream = u32::from_be_bytes(frame[5..9].try_into().expect("four bytes"));
            let (kind, flags, payload) = (frame[3], frame[4], frame[9..].to_vec());
            let head = if kind == HEADERS { self.head(&payload) } else { String::new() };
            frames.push(Got { kind, flags, stream, payload, head });
        }
        frames
    }

    /// All that they say about streams.
    pub(super) fn answers(&mut self) -> Vec<Part> {
        parts(self.frames())
    }

    fn head(&mut self, block: &[u8]) -> String {
        let (mut status, mut fields) = (None, Vec::new());
        let read = self.decoder.decode(block, |name, value, _| {
            let [name, value] = [name, value].map(String::from_utf8_lossy);
            match &*name {
                ":status" => status = Some(value.into_owned()),
                _ => fields.push(format!("{name}: {value}")),
            }
        });
        read.expect("a block");
        status.unwrap_or_else(|| fields.join("\n"))
    }

    /// Whether the server has ended its side; what has come before is read.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.frames();
        self.driven.client.is_at_end()
    }
}
