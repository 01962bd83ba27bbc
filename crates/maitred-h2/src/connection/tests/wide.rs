//! Windows that become wider where the way to the peer is long: a client and a server in virtual time.

use std::collections::VecDeque;

use super::*;

const MS: u64 = 1_000_000;
const MIB: u64 = 1024 * 1024;

/// A client that sends a body without end, as far as its windows go, by a line of so many bytes a millisecond.
struct Upload {
    server: Server,
    /// Bytes that may be sent, of the stream and of the connection.
    stream: i64,
    connection: i64,
    line: i64,
    /// The time that bytes need in one direction.
    way: u64,
    /// The frames on their way, each with the time of its arrival.
    there: VecDeque<(u64, Vec<u8>)>,
    back: VecDeque<(u64, Vec<u8>)>,
    pings: u32,
    /// Bytes that have arrived and were not read yet, and the most of them.
    waiting: u64,
    kept: u64,
}

impl Upload {
    fn new(way: u64, line: i64) -> Self {
        let mut server = Server::new();
        let settings = Settings::default();
        server.gets(&[&settings_ack(), &post(1)]);
        let (stream, connection) = (settings.stream_window.into(), settings.connection_window.into());
        let (there, back) = (VecDeque::new(), VecDeque::new());
        Self { server, stream, connection, line, way, there, back, pings: 0, waiting: 0, kept: 0 }
    }

    /// A millisecond: the server's reader takes at most `takes` bytes in it. Returns how many it has taken.
    fn millisecond(&mut self, takes: u64, widens: bool) -> u64 {
        self.server.now += MS;
        let now = self.server.now;
        while let Some(bytes) = arrived(&mut self.back, now) {
            self.answered(&bytes);
        }
        let mut room = self.stream.min(self.connection).min(self.line);
        while room > 0 {
            let part = room.min(16_384);
            (room, self.stream, self.connection) = (room - part, self.stream - part, self.connection - part);
            self.there.push_back((now + self.way, data(1, &vec![b'x'; part as usize])));
        }
        let (mut control, mut came) = (Vec::new(), 0);
        while let Some(bytes) = arrived(&mut self.there, now) {
            let mut at = 0;
            loop {
                let polled =
                    self.server.connection.poll(&bytes[at..], now, &mut self.server.head, &mut control);
                let (used, event) = polled.expect("it keeps to its windows");
                at += used;
                match event {
                    Event::NeedMore => break,
                    Event::Data { bytes, .. } => came += bytes.len() as u64,
                    Event::Narrow { stream, bytes } if widens => {
                        self.server.connection.widen(stream, bytes, &mut control);
                    }
                    _ => {}
                }
            }
        }
        self.server.connection.put_credit(0, came as u32, &mut control);
        self.waiting += came;
        self.kept = self.kept.max(self.waiting);
        let taken = self.waiting.min(takes);
        self.waiting -= taken;
        if taken > 0 {
            self.server.connection.put_credit(1, taken as u32, &mut control);
        }
        if !control.is_empty() {
            self.back.push_back((now + self.way, control));
        }
        taken
    }

    fn answered(&mut self, mut bytes: &[u8]) {
        while let Some(header) = Header::read(bytes) {
            let (payload, rest) = bytes[9..].split_at(header.length as usize);
            bytes = rest;
            if header.kind == PING {
                self.pings += 1;
                self.there.push_back((self.server.now + self.way, frame(PING, ACK, 0, payload)));
            } else if header.kind == WINDOW_UPDATE {
                let window = if header.stream == 0 { &mut self.connection } else { &mut self.stream };
                *window += i64::from(u32::from_be_bytes(payload.try_into().expect("4 bytes")));
            }
        }
    }

    /// The bytes of one second, after three seconds.
    fn rate(&mut self, takes: u64, widens: bool) -> u64 {
        (0..3000).for_each(|_| _ = self.millisecond(takes, widens));
        (0..1000).map(|_| self.millisecond(takes, widens)).sum()
    }
}

/// The frames that have arrived at `now`.
fn arrived(line: &mut VecDeque<(u64, Vec<u8>)>, now: u64) -> Option<Vec<u8>> {
    line.front().filter(|(at, _)| *at <= now)?;
    line.pop_front().map(|(_, bytes)| bytes)
}

#[test]
fn a_long_way_gets_a_wide_window() {
    let fixed = Upload::new(50 * MS, 1 << 20).rate(u64::MAX, false);
    assert_eq!(fixed / 100_000, 26, "256 KiB each 0.1 s");
    let mut upload = Upload::new(50 * MS, 1 << 20);
    let rate = upload.rate(u64::MAX, true);
    assert!(rate > 38 * MIB, "{rate}");
    assert!(upload.pings < 80, "{}", upload.pings);
}

#[test]
fn a_reader_that_takes_little_keeps_its_window() {
    let mut upload = Upload::new(50 * MS, 1 << 20);
    upload.rate(512, true);
    assert!(upload.kept <= 256 * 1024, "{}", upload.kept);
    let mut stalled = Upload::new(50 * MS, 1 << 20);
    stalled.rate(0, true);
    assert_eq!((stalled.kept, stalled.pings), (256 * 1024, 0));
}

#[test]
fn a_line_that_is_full_is_not_made_fuller() {
    // 10 MB/s and 20 ms there and back: the window of 256 KiB is enough.
    let mut upload = Upload::new(10 * MS, 10_000);
    let rate = upload.rate(u64::MAX, true);
    assert!(rate >= 9_900_000, "{rate}");
    let open = upload.server.connection.streams.open(1).expect("it is open");
    assert!(open.window.left() <= 512 * 1024, "{}", open.window.left());
}

#[test]
fn an_acknowledgement_without_a_ping_is_no_measure() {
    let mut server = Server::new();
    let mut back = frame(PING, ACK, 0, b"window\0\0");
    assert_eq!(server.gets(&[&settings_ack(), &post(1), &back]), ["head 1 POST /"]);
    server.gets(&[&data(1, &vec![b'x'; 16_384]).repeat(16)]);
    server.sends(|connection, out| connection.put_credit(1, 262_144, out));
    assert_eq!(server.gets(&[&data(1, &vec![b'x'; 16_384]).repeat(16)])[0], "< ping");
    server.sends(|connection, out| connection.put_credit(1, 262_144, out));
    assert_eq!(server.clone().gets(&[&back, &back]), ["narrow 1 262144"]);
    assert_eq!(server.clone().gets(&[&reset(1), &back]), ["reset 1"], "it is over");
    assert_eq!(
        server.clone().gets(&[&last_data(1, b"x"), &back]),
        ["data 1 x", "end 1"],
        "all of it is here"
    );
    assert_eq!(server.sends(|connection, out| connection.widen(1, 262_144, out)), ["< credit 1 262144"]);
    assert_eq!(server.sends(|connection, out| connection.widen(3, 1, out)), [""; 0]);
    back[9] = b'x';
    assert_eq!(server.gets(&[&back]), [""; 0]);
}
