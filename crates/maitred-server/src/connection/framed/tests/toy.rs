//! The toy protocol of the test kit as a codec.

use std::collections::BTreeMap;

use maitred_h1::{HeadFacts, Receiver};
use maitred_http::{FieldSet, RequestHead, ResponseHead};
use maitred_testkit::{CONNECTION_WINDOW, Frame, MAX_FRAME, STREAM_WINDOW, frame_header};

use super::super::{Codec, Event, Fault, Why};
use crate::site::Site;

/// The most streams at once.
pub(super) const MAX_STREAMS: usize = 100;

/// The windows of what the peer sends are counted here.
pub(super) struct Toy {
    inward: u64,
    streams: BTreeMap<u32, u64>,
}

impl Default for Toy {
    fn default() -> Self {
        Self { inward: CONNECTION_WINDOW, streams: BTreeMap::new() }
    }
}

fn fault(reason: &'static str) -> Fault {
    Fault { reason, is_flood: false }
}

impl Codec for Toy {
    fn begin(&mut self, _control: &mut Vec<u8>) {}

    fn poll<'a>(
        &mut self,
        data: &'a [u8],
        place: &mut RequestHead,
        _now: u64,
        _control: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), Fault> {
        let Some((frame, length)) = Frame::first(data).map_err(fault)? else {
            return Ok((0, Event::NeedMore));
        };
        let event = match frame {
            Frame::Head(stream, text) => {
                self.streams.insert(stream, STREAM_WINDOW);
                let facts = head(&text, place).map_err(fault)?;
                Event::Head {
                    stream,
                    facts,
                    tunnel: false,
                    websocket: false,
                    priority: None,
                    objection: None,
                }
            }
            Frame::Tunnel(stream) => {
                self.streams.insert(stream, STREAM_WINDOW);
                let facts = head("POST /tunnel", place).map_err(fault)?;
                Event::Head { stream, facts, tunnel: true, websocket: false, priority: None, objection: None }
            }
            Frame::Data(stream, bytes) => {
                let count = bytes.len() as u64;
                let inward = self.inward.checked_sub(count);
                self.inward = inward.ok_or(fault("more than the connection's window"))?;
                if let Some(window) = self.streams.get_mut(&stream) {
                    *window = window.checked_sub(count).ok_or(fault("more than the stream's window"))?;
                }
                Event::Data { stream, bytes: &data[length - bytes.len()..length] }
            }
            Frame::End(stream) => Event::End { stream },
            Frame::Reset(stream) => Event::Reset { stream },
            Frame::Credit(stream, bytes) => Event::Credit { stream, bytes },
        };
        Ok((length, event))
    }

    fn is_between_heads(&self) -> bool {
        true
    }

    fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>) {
        let text = head.status.code().to_string();
        out.extend_from_slice(&Frame::Head(stream, text).bytes());
        if ends {
            self.put_end(stream, out);
        }
    }

    fn put_data(&mut self, stream: u32, length: usize, _ends: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&frame_header(b'D', stream, length));
    }

    fn put_end(&mut self, stream: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&Frame::End(stream).bytes());
    }

    fn put_trailers(&mut self, stream: u32, fields: &FieldSet, out: &mut Vec<u8>) {
        let lines = fields.iter().map(|(name, value)| [name, value].map(String::from_utf8_lossy).join(": "));
        let text = lines.collect::<Vec<_>>().join("\n");
        out.extend_from_slice(&Frame::Head(stream, text).bytes());
        self.put_end(stream, out);
    }

    fn put_reset(&mut self, stream: u32, _why: Why, out: &mut Vec<u8>) {
        out.extend_from_slice(&Frame::Reset(stream).bytes());
    }

    fn window_of(&mut self, _stream: u32) -> u32 {
        // What is not wanted is reset at once.
        0
    }

    fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        match self.streams.get_mut(&stream) {
            _ if stream == 0 => self.inward += u64::from(bytes),
            Some(window) => *window += u64::from(bytes),
            None => {}
        }
        out.extend_from_slice(&Frame::Credit(stream, bytes).bytes());
    }

    fn widen(&mut self, _stream: u32, _bytes: u32, _out: &mut Vec<u8>) {}

    fn put_drain(&mut self, _out: &mut Vec<u8>) {}

    fn put_last(&mut self, _out: &mut Vec<u8>) {}

    fn ends_with_data(&self) -> bool {
        false
    }

    fn max_data(&self) -> usize {
        MAX_FRAME
    }

    fn windows(&self) -> (u32, u32) {
        (STREAM_WINDOW as u32, CONNECTION_WINDOW as u32)
    }

    fn overflow(&mut self) -> Fault {
        fault("a window that is too large")
    }

    fn calm(&mut self, reason: &'static str) -> Fault {
        fault(reason)
    }

    fn gathered(&self) -> usize {
        0
    }

    fn count(&mut self, _site: &Site, _waits: [u64; 2]) {}

    fn max_streams(&self) -> usize {
        MAX_STREAMS
    }
}

/// A head as that of HTTP/1: a GET has no body, anything else has one.
fn head(text: &str, head: &mut RequestHead) -> Result<HeadFacts, &'static str> {
    let (line, fields) = text.split_once('\n').unwrap_or((text, ""));
    let body = if line.starts_with("GET ") { "" } else { "transfer-encoding: chunked\r\n" };
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    let wire = format!("{line} HTTP/1.1\r\nhost: toy\r\n{fields}{body}\r\n");
    let step = Receiver::new()
        .poll_event(wire.as_bytes(), head, &maitred_h1::Limits::default())
        .map_err(|error| error.reason)?;
    match step.event {
        maitred_h1::Event::Head(facts) => Ok(facts),
        _ => Err("no head"),
    }
}
