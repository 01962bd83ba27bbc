//! A connection of HTTP/2. Input: records of a kind, flags, a stream, a length and so many bytes.
//!
//! A kind below 128 is a frame of a client, any other one an action of the server meanwhile. However the bytes are cut,
//! events and answers are the same; events are only of streams that are open; a peer sends no more than it was given; a
//! head has no byte that a parser of HTTP/1 could read as a line end; memory has a bound.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use maitred_h2::{Connection, ConnectionError, ErrorCode, Event, HeadFacts, Settings};
use maitred_http::{BodyLength, RequestHead, ResponseHead, Status, Version};

/// The server's limits: small numbers, which an input reaches.
fn settings() -> Settings {
    Settings {
        max_streams: 4,
        stream_window: 1000,
        max_head: 2048,
        max_fields: 16,
        connect: true,
        ..Settings::default()
    }
}

/// The first bytes of every client: the preface, its settings, and that it knows ours.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

/// The most memory of a connection with these settings: two tables of 4096 bytes in buffers that double, a block, and streams.
const MOST_MEMORY: usize = 128 * 1024;

fuzz_target!(|input: &[u8]| {
    let whole = run_in(input, usize::MAX);
    for piece in [1, 2 + input.len() / 5, 11] {
        assert_eq!(run_in(input, piece), whole, "pieces of {piece}");
    }
});

struct Run {
    connection: Connection,
    head: RequestHead,
    now: u64,
    model: Model,
    /// Events and answers; neighbouring data is one.
    seen: Vec<String>,
    failed: bool,
}

/// The state that a caller keeps.
#[derive(Default)]
struct Model {
    newest: u32,
    open: BTreeMap<u32, Open>,
}

/// A stream whose request is not over.
struct Open {
    complete: bool,
    /// Bytes of the body so far, and those that the peer may send and was given by us.
    received: u64,
    granted: u64,
    declared: Option<u64>,
}

fn run_in(input: &[u8], piece: usize) -> Vec<String> {
    let mut run = Run {
        connection: Connection::new(settings()),
        head: RequestHead::default(),
        now: 0,
        model: Model::default(),
        seen: Vec::new(),
        failed: false,
    };
    let mut first = Vec::new();
    run.connection.begin(&mut first);
    run.note_answers(&first);
    let mut bytes = BEGIN.to_vec();
    let mut rest = input;
    while let [kind, flags, stream, length, behind @ ..] = rest {
        let (payload, behind) = behind.split_at((*length as usize).min(behind.len()));
        rest = behind;
        if *kind < 128 {
            bytes.extend_from_slice(&[0, 0, payload.len() as u8, *kind, *flags, 0, 0, 0, *stream]);
        }
        if *kind < 128 || *kind == 255 {
            bytes.extend_from_slice(payload);
            continue;
        }
        run.feed(&mut bytes, piece);
        if !run.failed {
            run.act(*kind, *flags, u32::from(*stream), *length);
        }
    }
    run.feed(&mut bytes, piece);
    if !run.failed {
        assert!(run.connection.memory() < MOST_MEMORY);
        assert!(run.connection.open_streams() <= 4);
    }
    run.seen.push(format!("{:?}", run.connection.counted()));
    run.seen
}

impl Run {
    /// Feeds bytes in pieces, and leaves those that are not used up.
    fn feed(&mut self, bytes: &mut Vec<u8>, piece: usize) {
        let (mut at, mut end) = (0, 0usize);
        while !self.failed {
            end = bytes.len().min(end.saturating_add(piece));
            loop {
                let mut control = Vec::new();
                let polled = self.connection.poll(&bytes[at..end], self.now, &mut self.head, &mut control);
                self.note_answers(&control);
                match polled {
                    Ok((used, event)) => {
                        at += used;
                        assert!(at <= end);
                        if event == Event::NeedMore {
                            break;
                        }
                        self.model.note(&event, &self.head);
                        self.note(&event);
                        if let Event::Narrow { stream, bytes } = event {
                            let mut out = Vec::new();
                            self.connection.widen(stream, bytes, &mut out);
                            self.note_answers(&out);
                        }
                    }
                    Err(error) => return self.fail(error),
                }
            }
            if end == bytes.len() {
                break;
            }
        }
        bytes.drain(..at);
    }

    fn fail(&mut self, error: ConnectionError) {
        self.failed = true;
        let mut out = Vec::new();
        self.connection.put_goaway(&error, &mut out);
        self.note_answers(&out);
        self.seen.push(format!("{error:?}"));
    }

    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Data { stream, bytes } => {
                let start = format!("data {stream} ");
                match self.seen.last_mut().filter(|line| line.starts_with(&start)) {
                    Some(line) => line.push_str(&bytes.escape_ascii().to_string()),
                    None => self.seen.push(format!("{start}{}", bytes.escape_ascii())),
                }
            }
            Event::Head { .. } => self.seen.push(format!("{event:?} {:?}", self.head)),
            _ => self.seen.push(format!("{event:?}")),
        }
    }

    /// The frames of the server, of which there are only whole ones.
    fn note_answers(&mut self, mut bytes: &[u8]) {
        while let [l0, l1, l2, kind, flags, _, _, _, stream, rest @ ..] = bytes {
            let length = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
            let (payload, behind) = rest.split_at(length);
            bytes = behind;
            if *kind == 8 {
                let credit = u64::from(u32::from_be_bytes(payload.try_into().expect("4 bytes")));
                assert!(credit > 0);
                if let Some(open) = self.model.open.get_mut(&u32::from(*stream)) {
                    open.granted += credit;
                }
            }
            self.seen.push(format!("{kind} {flags} {stream} {}", payload.escape_ascii()));
        }
        assert!(bytes.is_empty());
    }

    /// The actions of a server by itself.
    fn act(&mut self, kind: u8, flags: u8, stream: u32, length: u8) {
        let (mut out, connection) = (Vec::new(), &mut self.connection);
        let ends = flags & 1 != 0;
        match kind {
            128 => {
                let head = ResponseHead::new(Status::OK).with("X-Length", length.to_string()).with("te", "x");
                connection.put_head(stream, &head, ends, &mut out);
            }
            129 => {
                connection.put_trailers(
                    stream,
                    &ResponseHead::new(Status::OK).with("X", "y").fields,
                    &mut out,
                );
            }
            130 => {
                let code = [ErrorCode::NoError, ErrorCode::RefusedStream, ErrorCode::FlowControlError];
                connection.put_reset(stream, code[usize::from(flags) % 3], &mut out);
                self.model.open.remove(&stream);
            }
            131 => connection.put_credit(stream, u32::from(length), &mut out),
            132 => connection.put_drain(&mut out),
            133 => self.now += u64::from(length) * 100_000_000,
            // Behind the head of data there is the data, which is none of this crate's.
            134 if connection.is_open(stream) => {
                connection.put_data(stream, usize::from(length), ends, &mut Vec::new());
            }
            _ => {}
        }
        self.note_answers(&out);
        // Ours may be the second of both ends.
        self.model.open.retain(|stream, open| !open.complete || self.connection.is_open(*stream));
    }
}

impl Model {
    fn note(&mut self, event: &Event<'_>, head: &RequestHead) {
        match *event {
            Event::Head { stream, facts } => {
                assert!(stream % 2 == 1 && stream > self.newest);
                check(head, facts);
                let declared = head.body.known().filter(|_| !facts.ends);
                let granted = u64::from(settings().stream_window);
                self.newest = stream;
                self.open.insert(stream, Open { complete: facts.ends, received: 0, granted, declared });
            }
            Event::Data { stream, bytes } => {
                let open = self.open.get_mut(&stream).expect("an open stream");
                assert!(!open.complete && !bytes.is_empty());
                open.received += bytes.len() as u64;
                assert!(open.received <= open.granted);
                assert!(open.declared.is_none_or(|declared| open.received <= declared));
            }
            Event::End { stream } => {
                let open = self.open.get_mut(&stream).expect("an open stream");
                assert!(!open.complete);
                assert!(open.declared.is_none_or(|declared| open.received == declared));
                open.complete = true;
            }
            Event::Reset { stream } => assert!(self.open.remove(&stream).is_some()),
            Event::Credit { stream, bytes } => {
                assert!(bytes > 0 && bytes < 1 << 31);
                assert!(stream == 0 || self.open.contains_key(&stream));
            }
            Event::Priority { stream, priority } => {
                assert!(self.open.contains_key(&stream) && priority.urgency < 8);
            }
            Event::Narrow { stream, bytes } => {
                assert!(self.open.get(&stream).is_some_and(|open| !open.complete));
                assert!(bytes > 0 && bytes <= settings().max_stream_window);
            }
            Event::Window { change } => assert!(change != 0 && change.abs() < 1 << 31),
            Event::Leaving | Event::NeedMore => {}
        }
    }
}

fn check(head: &RequestHead, facts: HeadFacts) {
    assert_eq!(head.version, Version::Http2);
    assert!(!facts.ends || matches!(head.body, BodyLength::Empty | BodyLength::Fixed(0)));
    assert!(head.target().iter().all(u8::is_ascii_graphic));
    assert!(head.fields.len() <= 16 + 2);
    for (name, value) in head.fields.iter() {
        let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        assert!(!name.is_empty() && name.iter().all(|byte| is_token(byte) && !byte.is_ascii_uppercase()));
        assert!(value.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t'));
        assert!(!matches!(name, b"connection" | b"transfer-encoding" | b"upgrade"));
    }
    if facts.objection.is_some() {
        return;
    }
    let hosts: Vec<_> = head.fields.all("host").collect();
    assert_eq!(hosts, [head.authority()]);
    assert!(head.fields.all("content-length").count() <= 1 && head.fields.all("cookie").count() <= 1);
    assert!(matches!(head.path_and_query().first(), Some(b'/' | b'*')) || head.method.as_str() == "CONNECT");
    assert!(facts.protocol.is_none_or(|span| !head.fields.bytes(span).is_empty()));
}
