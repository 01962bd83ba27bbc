//! The toy protocol of the test kit as a codec.

use maitred_h1::{HeadFacts, Receiver};
use maitred_http::{RequestHead, ResponseHead};
use maitred_testkit::{CONNECTION_WINDOW, Frame, MAX_FRAME, STREAM_WINDOW, frame_header};

use super::super::{Codec, Event};

/// The most streams at once.
pub(super) const MAX_STREAMS: usize = 100;

pub(super) struct Toy;

impl Codec for Toy {
    fn poll<'a>(&mut self, data: &'a [u8]) -> Result<(usize, Event<'a>), &'static str> {
        let Some((frame, length)) = Frame::first(data)? else { return Ok((0, Event::NeedMore)) };
        let event = match frame {
            Frame::Head(stream, text) => {
                let (head, facts) = head(&text)?;
                Event::Head { stream, head, facts, tunnel: false }
            }
            Frame::Tunnel(stream) => {
                let (head, facts) = head("POST /tunnel")?;
                Event::Head { stream, head, facts, tunnel: true }
            }
            Frame::Data(stream, bytes) => Event::Data { stream, bytes: &data[length - bytes.len()..length] },
            Frame::End(stream) => Event::End { stream },
            Frame::Reset(stream) => Event::Reset { stream },
            Frame::Credit(stream, bytes) => Event::Credit { stream, bytes },
        };
        Ok((length, event))
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

    fn put_reset(&mut self, stream: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&Frame::Reset(stream).bytes());
    }

    fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&Frame::Credit(stream, bytes).bytes());
    }

    fn ends_with_data(&self) -> bool {
        false
    }

    fn max_data(&self) -> usize {
        MAX_FRAME
    }

    fn windows(&self) -> (u64, u64) {
        (STREAM_WINDOW, CONNECTION_WINDOW)
    }

    fn max_streams(&self) -> usize {
        MAX_STREAMS
    }
}

/// A head as that of HTTP/1: a GET has no body, anything else has one.
fn head(text: &str) -> Result<(Box<RequestHead>, HeadFacts), &'static str> {
    let (line, fields) = text.split_once('\n').unwrap_or((text, ""));
    let body = if line.starts_with("GET ") { "" } else { "transfer-encoding: chunked\r\n" };
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    let wire = format!("{line} HTTP/1.1\r\nhost: toy\r\n{fields}{body}\r\n");
    let mut head = Box::<RequestHead>::default();
    let step = Receiver::new()
        .poll_event(wire.as_bytes(), &mut head, &maitred_h1::Limits::default())
        .map_err(|error| error.reason)?;
    match step.event {
        maitred_h1::Event::Head(facts) => Ok((head, facts)),
        _ => Err("no head"),
    }
}
