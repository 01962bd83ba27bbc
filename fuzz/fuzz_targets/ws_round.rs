//! Messages that are compressed, framed and received. Input: a byte of choices, and records of a kind, a length and so many bytes.
//!
//! The receiver reads the messages of the sender, masked, with every window, with take-over and without, in fragments,
//! with control frames between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_ws::{
    Compressor, Deflate, DeflateSettings, Event, Kind, Limits, Opcode, Receiver, is_close_code, negotiate,
    put_close, put_frame_head, put_ping, put_pong,
};

const LIMITS: Limits = Limits { message: 1 << 24, fragments: 8, ratio: 2000, ratio_from: 0 };

fuzz_target!(|input: &[u8]| {
    let Some((choices, mut rest)) = input.split_first() else { return };
    let settings = DeflateSettings { max_window_bits: 9 + choices % 7, takeover: choices & 64 != 0 };
    let offer = &b"permessage-deflate; client_max_window_bits"[..];
    let deflate = negotiate([offer].into_iter(), &settings).expect("a good offer");
    let mut both = Both::new(&deflate);
    while let [kind, length, behind @ ..] = rest {
        let (payload, behind) = behind.split_at((*length as usize).min(behind.len()));
        rest = behind;
        match kind & 7 {
            0 => both.control(put_ping, payload, |payload| matches!(payload, Event::Ping(_))),
            1 => both.control(put_pong, payload, |payload| matches!(payload, Event::Pong(_))),
            2 => return both.close(payload),
            other => {
                // Also messages that are longer than an input.
                let times = if kind & 8 != 0 { 600 } else { 1 };
                both.message(&payload.repeat(times), other & 1 != 0, 1 + usize::from(kind >> 4));
            }
        }
    }
});

struct Both {
    compressor: Compressor,
    receiver: Receiver,
    message: Vec<u8>,
    most: usize,
}

impl Both {
    fn new(deflate: &Deflate) -> Self {
        Self {
            compressor: Compressor::new(deflate),
            receiver: Receiver::new(LIMITS, Some(deflate)),
            message: Vec::new(),
            most: deflate.memory(),
        }
    }

    fn receive(&mut self, stream: &[u8]) -> Event {
        let (used, event) = self.receiver.poll(stream, &mut self.message).expect("good frames");
        assert_eq!(used, stream.len());
        event
    }

    fn control(&mut self, put: fn(&[u8], &mut Vec<u8>), payload: &[u8], is_it: fn(&Event) -> bool) {
        let mut out = Vec::new();
        put(payload, &mut out);
        let event = self.receive(&masked(&out));
        assert!(is_it(&event));
        if let Event::Ping(read) | Event::Pong(read) = event {
            assert_eq!(read.as_bytes(), &payload[..payload.len().min(125)]);
        }
    }

    fn close(&mut self, payload: &[u8]) {
        let text = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
        let code = payload.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
        let mut out = Vec::new();
        put_close(code, &text, &mut out);
        let Event::Close(read) = self.receive(&masked(&out)) else { panic!("a close frame is none") };
        let good = code.filter(|code| is_close_code(*code));
        assert_eq!(read.map(|(code, _)| code), good);
        if let Some((_, reason)) = read {
            assert!(text.starts_with(reason.as_str()) && reason.as_str().len() + 3 >= text.len().min(123));
        }
        assert!(self.receiver.is_between());
    }

    fn message(&mut self, payload: &[u8], compressed: bool, fragment: usize) {
        let kind = if std::str::from_utf8(payload).is_ok() { Kind::Text } else { Kind::Binary };
        let mut bytes = Vec::new();
        if compressed {
            self.compressor.compress(payload, &mut bytes);
        } else {
            bytes.extend_from_slice(payload);
        }
        let opcode = if kind == Kind::Text { Opcode::Text } else { Opcode::Binary };
        let mut stream = Vec::new();
        let parts: Vec<&[u8]> = bytes.chunks((bytes.len() / fragment).max(1 + bytes.len() / 7)).collect();
        let parts = if parts.is_empty() { vec![&[][..]] } else { parts };
        for (number, part) in parts.iter().enumerate() {
            let (is_first, fin) = (number == 0, number + 1 == parts.len());
            let opcode = if is_first { opcode } else { Opcode::Continuation };
            let mut frame = Vec::new();
            put_frame_head(opcode, fin, compressed && is_first, part.len() as u64, &mut frame);
            frame.extend_from_slice(part);
            stream.extend(masked(&frame));
        }
        assert_eq!(self.receive(&stream), Event::Message { kind, length: payload.len() as u64 });
        assert!(self.message == payload, "what is read is not what was sent");
        assert!(self.receiver.held() <= self.most);
        self.message.clear();
    }
}

/// The frame of a server as one of a client.
fn masked(frame: &[u8]) -> Vec<u8> {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    let head = match frame[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    let mut masked = vec![frame[0], frame[1] | 128];
    masked.extend_from_slice(&frame[2..head]);
    masked.extend_from_slice(&key);
    masked.extend(frame[head..].iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    masked
}
