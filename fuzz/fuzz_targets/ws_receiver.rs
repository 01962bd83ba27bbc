//! The bytes of a client over WebSocket. Input: a byte of choices, and the bytes.
//!
//! However the bytes are cut the events are the same, and memory has a bound. Without compression a reader of whole frames agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_ws::{
    Deflate, DeflateSettings, Event, Kind, Limits, Opcode, Receiver, is_close_code, negotiate, put_frame_head,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Message(Kind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
    Failed(u16),
}

fuzz_target!(|input: &[u8]| {
    let Some((choices, stream)) = input.split_first() else { return };
    let deflate = (choices & 1 != 0).then(|| agreed(choices & 2 != 0));
    let limits = Limits {
        message: if choices & 4 != 0 { 200 } else { 1 << 20 },
        fragments: 4,
        ratio: if choices & 8 != 0 { 20 } else { 2000 },
        ratio_from: 0,
    };
    let whole = seen(stream, usize::MAX, limits, deflate.as_ref());
    for piece in [1, 2 + stream.len() / 5, 11] {
        assert_eq!(seen(stream, piece, limits, deflate.as_ref()), whole, "pieces of {piece}");
    }
    if deflate.is_none() {
        check_by_frames(stream, limits, &whole);
    }
});

fn agreed(takeover: bool) -> Deflate {
    let settings = DeflateSettings { max_window_bits: 15, takeover };
    negotiate([&b"permessage-deflate"[..]].into_iter(), &settings).expect("what everybody offers")
}

fn seen(stream: &[u8], piece: usize, limits: Limits, deflate: Option<&Deflate>) -> Vec<Seen> {
    let (mut receiver, mut message, mut seen) = (Receiver::new(limits, deflate), Vec::new(), Vec::new());
    for piece in stream.chunks(piece.min(stream.len()).max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let polled = receiver.poll(rest, &mut message);
            assert!(message.len() as u64 <= limits.message + 1);
            assert!(receiver.held() <= deflate.map_or(0, Deflate::memory));
            let (used, event) = match polled {
                Ok(good) => good,
                Err(failure) => {
                    assert!(is_close_code(failure.code) && failure.reason.len() <= 123);
                    assert_eq!(receiver.poll(rest, &mut message), Err(failure));
                    seen.push(Seen::Failed(failure.code));
                    return seen;
                }
            };
            rest = &rest[used..];
            seen.push(match event {
                Event::NeedMore => {
                    assert!(rest.is_empty());
                    break;
                }
                Event::Message { kind, length } => {
                    assert_eq!(length, message.len() as u64);
                    Seen::Message(kind, std::mem::take(&mut message))
                }
                Event::Ping(payload) => Seen::Ping(payload.as_bytes().to_vec()),
                Event::Pong(payload) => Seen::Pong(payload.as_bytes().to_vec()),
                Event::Close(close) => {
                    Seen::Close(close.map(|(code, text)| (code, text.as_str().to_owned())))
                }
            });
        }
    }
    seen
}

/// RFC 6455 as it stands there, frame by frame. Of a last one that is not complete it says nothing.
fn check_by_frames(mut stream: &[u8], limits: Limits, seen: &[Seen]) {
    let mut seen = seen.iter();
    let mut open: Option<(Kind, Vec<u8>, u32)> = None;
    loop {
        let (frame, behind) = match Frame::read(stream, open.as_ref().map(|open| open.1.len()), limits) {
            Ok(Some(read)) => read,
            // Text may have failed in the present part of its payload.
            Ok(None) => return assert!(matches!(seen.next(), None | Some(Seen::Failed(_)))),
            Err(code) => return assert_eq!(seen.next(), Some(&Seen::Failed(code))),
        };
        stream = behind;
        match step(frame, &mut open, limits) {
            Ok(None) => {}
            Ok(Some(event)) => {
                let is_last = matches!(event, Seen::Close(_));
                assert_eq!(seen.next(), Some(&event));
                if is_last {
                    return assert_eq!(seen.next(), None);
                }
            }
            Err(code) => return assert_eq!(seen.next(), Some(&Seen::Failed(code))),
        }
    }
}

struct Frame {
    first: u8,
    payload: Vec<u8>,
}

impl Frame {
    /// The next frame and the bytes behind it, the code if its head is wrong, `None` if it is not complete.
    fn read(stream: &[u8], open: Option<usize>, limits: Limits) -> Result<Option<(Self, &[u8])>, u16> {
        let (Some(first), Some(second)) = (stream.first(), stream.get(1)) else { return Ok(None) };
        let (opcode, short) = (first & 15, second & 127);
        let is_control = opcode >= 8;
        let known = [0, 1, 2, 8, 9, 10].contains(&opcode);
        if !known || first & 0x70 != 0 || second & 128 == 0 || is_control && (first & 128 == 0 || short > 125)
        {
            return Err(1002);
        }
        let wide = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        // Order is not looked at here: a frame whose order is wrong may have a length that is wrong, and both have the code 1002.
        let Some(bytes) = stream.get(2..2 + wide) else { return Ok(None) };
        let length = match wide {
            0 => u64::from(short),
            _ => bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        let mut shortest = Vec::new();
        put_frame_head(Opcode::Binary, true, false, length, &mut shortest);
        if length >> 63 != 0 || shortest.len() != 2 + wide {
            return Err(1002);
        }
        let Some(mask) = stream.get(2 + wide..6 + wide) else { return Ok(None) };
        if !is_control && open.unwrap_or(0) as u64 + length > limits.message {
            // The order comes first.
            return Err(if (opcode == 0) == open.is_some() { 1009 } else { 1002 });
        }
        let rest = &stream[6 + wide..];
        let Some(payload) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
            return Ok(None);
        };
        let unmasked = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
        Ok(Some((Self { first: *first, payload: unmasked }, &rest[payload.len()..])))
    }
}

fn step(frame: Frame, open: &mut Option<(Kind, Vec<u8>, u32)>, limits: Limits) -> Result<Option<Seen>, u16> {
    let Frame { first, payload } = frame;
    match first & 15 {
        9 => return Ok(Some(Seen::Ping(payload))),
        10 => return Ok(Some(Seen::Pong(payload))),
        8 => {
            let Some((code, reason)) = payload.split_at_checked(2) else {
                return if payload.is_empty() { Ok(Some(Seen::Close(None))) } else { Err(1002) };
            };
            let code = u16::from(code[0]) << 8 | u16::from(code[1]);
            if !(1000..5000).contains(&code) || (1004..=1006).contains(&code) || (1015..3000).contains(&code)
            {
                return Err(1002);
            }
            let reason = String::from_utf8(reason.to_vec()).map_err(|_| 1007_u16)?;
            return Ok(Some(Seen::Close(Some((code, reason)))));
        }
        opcode if (opcode == 0) != open.is_some() => return Err(1002),
        _ => {}
    }
    let kind = if first & 15 == 1 { Kind::Text } else { Kind::Binary };
    let (kind, mut message, frames) = open.take().unwrap_or((kind, Vec::new(), 0));
    if frames == limits.fragments {
        return Err(1009);
    }
    message.extend_from_slice(&payload);
    let fin = first & 128 != 0;
    if kind == Kind::Text
        && let Err(error) = std::str::from_utf8(&message)
        && (fin || error.error_len().is_some())
    {
        return Err(1007);
    }
    if fin {
        return Ok(Some(Seen::Message(kind, message)));
    }
    *open = Some((kind, message, frames + 1));
    Ok(None)
}
