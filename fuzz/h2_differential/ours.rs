//! The server of this project.

use std::collections::BTreeMap;

use maitred_h2::{Budgets, Connection, ErrorCode, Event, Settings};
use maitred_http::{RequestHead, ResponseHead, Status};

use crate::seen::{CONNECTION_WINDOW, Head, MAX_HEAD, MAX_STREAMS, STREAM_WINDOW, Seen, Server, is_answered};

pub struct Ours {
    connection: Connection,
    head: RequestHead,
    /// Bytes that were not used up.
    rest: Vec<u8>,
    over: bool,
    /// Bytes that may be sent on the connection (0) and on the streams that were opened; none are.
    windows: BTreeMap<u32, i64>,
}

/// The most that a window can hold (RFC 9113 §6.9.1), which is the caller's to check.
const MOST: i64 = (1 << 31) - 1;
const FLOW_CONTROL_ERROR: u32 = 3;

impl Ours {
    pub fn new() -> Self {
        let settings = Settings {
            max_streams: MAX_STREAMS,
            stream_window: STREAM_WINDOW,
            connection_window: CONNECTION_WINDOW,
            max_head: MAX_HEAD as usize,
            connect: true,
            budgets: Budgets::default(),
            ..Settings::default()
        };
        let mut connection = Connection::new(settings);
        connection.begin(&mut Vec::new());
        Self {
            connection,
            head: RequestHead::default(),
            rest: Vec::new(),
            over: false,
            windows: BTreeMap::from([(0, 65_535)]),
        }
    }

    fn answer(connection: &mut Connection, stream: u32, out: &mut Vec<u8>) {
        if is_answered(stream) {
            connection.put_head(stream, &ResponseHead::new(Status::OK), true, out);
        }
    }
}

impl Server for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn feed(&mut self, bytes: &[u8], seen: &mut Seen) {
        self.rest.extend_from_slice(bytes);
        let (mut at, mut out) = (0, Vec::new());
        while !self.over {
            match self.connection.poll(&self.rest[at..], 0, &mut self.head, &mut out) {
                Ok((used, event)) => {
                    at += used;
                    match event {
                        Event::NeedMore => break,
                        Event::Head { stream, facts } => {
                            let protocol = facts.protocol.map(|span| self.head.fields.bytes(span).to_vec());
                            let fields =
                                self.head.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                            let is_tunnel = self.head.method.as_str() == "CONNECT" && protocol.is_none();
                            let path = if is_tunnel { &[][..] } else { self.head.path_and_query() };
                            let head = Head {
                                stream,
                                method: self.head.method.as_str().into(),
                                path: path.to_vec(),
                                authority: self.head.authority().to_vec(),
                                protocol: protocol.unwrap_or_default(),
                                fields: fields.collect(),
                                objection: facts.objection.map(|(status, _)| status.code()),
                                ..Head::default()
                            };
                            seen.heads.push(head.normal());
                            self.windows.insert(stream, i64::from(self.connection.initial_window()));
                            if facts.ends {
                                seen.ends.push(stream);
                                Self::answer(&mut self.connection, stream, &mut out);
                            }
                        }
                        Event::Data { stream, bytes } => {
                            seen.data.entry(stream).or_default().extend_from_slice(bytes);
                        }
                        Event::End { stream } => {
                            seen.ends.push(stream);
                            Self::answer(&mut self.connection, stream, &mut out);
                        }
                        Event::Credit { stream, bytes } => {
                            let window = self.windows.entry(stream).or_default();
                            *window += i64::from(bytes);
                            if *window > MOST && stream > 0 {
                                self.connection.put_reset(stream, ErrorCode::FlowControlError, &mut out);
                            } else if *window > MOST {
                                (self.over, seen.goaway) = (true, Some(FLOW_CONTROL_ERROR));
                            }
                        }
                        Event::Window { change } => {
                            let windows = self.windows.iter_mut().filter(|(stream, _)| **stream > 0);
                            for (stream, window) in windows {
                                if !self.connection.is_open(*stream) {
                                    continue;
                                }
                                *window += change;
                                if *window > MOST {
                                    (self.over, seen.goaway) = (true, Some(FLOW_CONTROL_ERROR));
                                }
                            }
                        }
                        Event::Reset { .. } | Event::Priority { .. } | Event::Leaving => {}
                    }
                }
                Err(error) => {
                    self.connection.put_goaway(&error, &mut out);
                    self.over = true;
                }
            }
        }
        self.rest.drain(..at);
        seen.note_written(&mut out);
    }
}
