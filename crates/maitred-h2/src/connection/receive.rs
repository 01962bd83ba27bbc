//! Receiving: frame by frame, and data as it comes.

use maitred_http::RequestHead;

use super::send::LEAVING_PING;
use super::{Connection, Leaving, Next, Step};
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Event;
use crate::frame::{self, Data, Header};
use crate::priority::Priority;
use crate::streams::{Known, Over};

/// The cost of a frame of data beside its content and its padding, for the budget: its work in bytes.
const FRAME_COST: u32 = 32;

#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    stream: u32,
    left: u32,
    padding: u32,
    ends: bool,
}

impl Connection {
    pub(super) fn frame<'a>(
        &mut self,
        data: &'a [u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Step<'a>, ConnectionError> {
        let Some(header) = Header::read(data) else { return Ok(Step::More) };
        self.check_header(header)?;
        let rest = data.get(Header::LENGTH..).unwrap_or_default();
        if header.kind == frame::DATA {
            return self.data_begins(header, rest, control);
        }
        if !is_known(header.kind) {
            self.counted.note_received(header.kind);
            self.buckets.unknown.take(1, self.now)?;
            self.next = Next::Skip(header.length);
            return Ok(Step::Used(Header::LENGTH));
        }
        let Some(payload) = rest.get(..header.length as usize) else { return Ok(Step::More) };
        self.counted.note_received(header.kind);
        let event = match header.kind {
            frame::HEADERS => self.headers(header, payload, head, control),
            frame::CONTINUATION => match self.gathering {
                Some(gathering) => {
                    self.continuation(gathering, header.has(frame::END_HEADERS), payload, head, control)
                }
                None => Err(ConnectionError::protocol("CONTINUATION without a block to continue")),
            },
            frame::PRIORITY => self.dependency(header, payload, control),
            frame::RST_STREAM => self.reset_received(header),
            frame::SETTINGS => self.settings_received(header, payload, control),
            frame::PUSH_PROMISE => Err(ConnectionError::protocol("PUSH_PROMISE of a client")),
            frame::PING => self.ping(header, payload, control),
            frame::GOAWAY => self.goaway(header),
            frame::WINDOW_UPDATE => self.credit(header, payload, control),
            _ => self.priority_update(header, payload),
        }?;
        let used = Header::LENGTH + payload.len();
        Ok(event.map_or(Step::Used(used), |event| Step::Event(used, event)))
    }

    fn check_header(&mut self, header: Header) -> Result<(), ConnectionError> {
        if header.length > self.settings.max_frame {
            return Err(ConnectionError::size("a frame above SETTINGS_MAX_FRAME_SIZE"));
        }
        if let Next::FirstSettings = self.next {
            if header.kind != frame::SETTINGS || header.has(frame::ACK) {
                return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
            }
            self.next = Next::Frame;
        }
        match self.gathering {
            Some(gathering) if header.kind != frame::CONTINUATION || header.stream != gathering.stream => {
                Err(ConnectionError::protocol("a frame within a header block"))
            }
            _ => Ok(()),
        }
    }

    // ---- Data ----

    fn data_begins<'a>(
        &mut self,
        header: Header,
        rest: &'a [u8],
        control: &mut Vec<u8>,
    ) -> Result<Step<'a>, ConnectionError> {
        let Some(data) = Data::read(header, rest)? else { return Ok(Step::More) };
        self.counted.note_received(frame::DATA);
        let stream = header.stream;
        let over = match self.streams.known(stream) {
            Known::Idle => return Err(ConnectionError::protocol("DATA on an idle stream")),
            Known::Over(Over::Ended) => {
                return Err(ConnectionError::new(ErrorCode::StreamClosed, "DATA on a stream that has ended"));
            }
            Known::Over(over) => Some(over),
            Known::Open(_) => None,
        };
        // All of the payload counts, also of a stream that is over (RFC 9113 §6.9).
        if !self.window.take(header.length) {
            let reason = "more data than the connection's window";
            return Err(ConnectionError::new(ErrorCode::FlowControlError, reason));
        }
        let used = Header::LENGTH + data.before as usize;
        let fault = match over {
            None => self.check_data(stream, header.length, data),
            Some(Over::ByPeer) => Some(ErrorCode::StreamClosed),
            Some(_) => {
                self.buckets.late.take(1, self.now)?;
                self.drop_data(header.length, data, control);
                return Ok(Step::Used(used));
            }
        };
        if let Some(code) = fault {
            self.drop_data(header.length, data, control);
            let event = self.refuse(stream, code, control)?;
            return Ok(event.map_or(Step::Used(used), |event| Step::Event(used, event)));
        }
        self.check_overhead(data)?;
        if data.before > 0 {
            let around = data.before + data.padding;
            self.give_back(around, control);
            self.put_credit(stream, around, control);
        }
        let Data { content: left, padding, ends, .. } = data;
        if !ends {
            self.begin_probe(stream, control);
        }
        self.next = Next::Data(Incoming { stream, left, padding, ends });
        Ok(Step::Used(used))
    }

    /// Looks at a frame on a stream that is open; why the stream is reset, if it is.
    fn check_data(&mut self, stream: u32, length: u32, data: Data) -> Option<ErrorCode> {
        let open = self.streams.open(stream)?;
        if open.received {
            return Some(ErrorCode::StreamClosed);
        }
        if !open.window.take(length) {
            return Some(ErrorCode::FlowControlError);
        }
        let Some(left) = &mut open.left else { return None };
        // RFC 9113 §8.1.1.
        match left.checked_sub(u64::from(data.content)) {
            Some(rest) if rest == 0 || !data.ends => *left = rest,
            _ => return Some(ErrorCode::ProtocolError),
        }
        None
    }

    fn check_overhead(&mut self, data: Data) -> Result<(), ConnectionError> {
        if data.ends {
            return Ok(());
        }
        if data.content == 0 {
            self.buckets.empty.take(1, self.now)?;
        }
        let overhead = (FRAME_COST + data.before + data.padding).saturating_sub(data.content);
        if overhead > 0 {
            self.buckets.overhead.take(overhead, self.now)?;
        }
        Ok(())
    }

    fn drop_data(&mut self, length: u32, data: Data, control: &mut Vec<u8>) {
        self.give_back(length, control);
        self.next = Next::Skip(data.content + data.padding);
    }

    pub(super) fn data<'a>(&mut self, incoming: Incoming, data: &'a [u8], control: &mut Vec<u8>) -> Step<'a> {
        let Incoming { stream, left, padding, ends } = incoming;
        if self.streams.open(stream).is_none() {
            // The caller has reset it meanwhile.
            self.give_back(left, control);
            self.next = Next::Skip(left + padding);
            return Step::Used(0);
        }
        if left > 0 {
            let Some(bytes) = data.get(..data.len().min(left as usize)).filter(|bytes| !bytes.is_empty())
            else {
                return Step::More;
            };
            // At most the bytes that are left.
            self.next = Next::Data(Incoming { left: left - bytes.len() as u32, ..incoming });
            return Step::Event(bytes.len(), Event::Data { stream, bytes });
        }
        let skipped = data.len().min(padding as usize);
        let padding = padding - skipped as u32;
        if padding > 0 {
            self.next = Next::Data(Incoming { padding, ..incoming });
            return if skipped > 0 { Step::Used(skipped) } else { Step::More };
        }
        self.next = Next::Frame;
        if !ends {
            return Step::Used(skipped);
        }
        self.streams.received(stream);
        Step::Event(skipped, Event::End { stream })
    }

    // ---- Frames of streams ----

    fn dependency<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let dependency = frame::read_priority(header, payload)?;
        self.buckets.priorities.take(1, self.now)?;
        let (code, reason) = match dependency {
            None => (ErrorCode::FrameSizeError, "PRIORITY without 5 bytes"),
            Some(dependency) if dependency.stream == header.stream => {
                (ErrorCode::ProtocolError, "a stream that depends on itself")
            }
            Some(_) => return Ok(None),
        };
        match self.streams.known(header.stream) {
            Known::Open(_) => self.refuse(header.stream, code, control),
            // A stream that is not there cannot be reset.
            Known::Idle | Known::Over(_) => Err(ConnectionError::new(code, reason)),
        }
    }

    fn reset_received<'a>(&mut self, header: Header) -> Result<Option<Event<'a>>, ConnectionError> {
        frame::read_reset(header)?;
        let stream = header.stream;
        match self.streams.known(stream) {
            Known::Idle => Err(ConnectionError::protocol("RST_STREAM on an idle stream")),
            Known::Open(_) => {
                self.streams.end(stream, Over::ByPeer);
                self.counted.resets_received += 1;
                self.buckets.resets.take(1, self.now)?;
                Ok(Some(Event::Reset { stream }))
            }
            // Our end was under way; once for each stream.
            Known::Over(Over::Ended) => {
                self.streams.remember(stream, Over::ByPeer);
                Ok(None)
            }
            Known::Over(_) => {
                self.buckets.late.take(1, self.now)?;
                Ok(None)
            }
        }
    }

    fn credit<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let bytes = frame::read_window_update(payload)?;
        self.buckets.updated(self.now)?;
        let nothing = ConnectionError::protocol("WINDOW_UPDATE of nothing");
        let stream = header.stream;
        if stream == 0 {
            return if bytes > 0 { Ok(Some(Event::Credit { stream, bytes })) } else { Err(nothing) };
        }
        match self.streams.known(stream) {
            Known::Idle => Err(ConnectionError::protocol("WINDOW_UPDATE on an idle stream")),
            Known::Open(_) if bytes == 0 => self.refuse(stream, ErrorCode::ProtocolError, control),
            Known::Open(open) if !open.sent => Ok(Some(Event::Credit { stream, bytes })),
            _ if bytes == 0 => Err(nothing),
            Known::Open(_) | Known::Over(_) => Ok(None),
        }
    }

    // ---- Frames of the connection ----

    fn settings_received<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let settings = frame::read_settings(header, payload)?;
        self.buckets.settings.take(1, self.now)?;
        let Some(settings) = settings else {
            self.acknowledge();
            return Ok(None);
        };
        let before = self.peer.window;
        let encoder = &mut self.encoder;
        self.peer.take(settings, |size| encoder.set_max_table(size))?;
        frame::put_settings(None, control);
        self.counted.note_sent(frame::SETTINGS);
        let change = i64::from(self.peer.window) - i64::from(before);
        Ok((change != 0).then_some(Event::Window { change }))
    }

    fn acknowledge(&mut self) {
        if !std::mem::replace(&mut self.acknowledged, true) {
            let less = -self.unknown_window();
            self.streams.each_open().for_each(|stream| stream.window.change(less));
        }
    }

    fn ping<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let (bytes, is_back) = frame::read_ping(header, payload)?;
        if is_back && let Some(narrow) = self.end_probe(bytes) {
            return Ok(narrow.map(|(stream, bytes)| Event::Narrow { stream, bytes }));
        }
        self.buckets.pings.take(1, self.now)?;
        if !is_back {
            frame::put_ping(bytes, true, control);
            self.counted.note_sent(frame::PING);
        } else if bytes == LEAVING_PING && self.leaving == Leaving::Told {
            self.put_last(control);
        }
        Ok(None)
    }

    fn goaway<'a>(&mut self, header: Header) -> Result<Option<Event<'a>>, ConnectionError> {
        frame::read_goaway(header)?;
        self.buckets.pings.take(1, self.now)?;
        Ok(Some(Event::Leaving))
    }

    fn priority_update<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let (stream, value) = frame::read_priority_update(header, payload)?;
        self.buckets.priorities.take(1, self.now)?;
        let priority = Priority::default().updated(value);
        match self.streams.known(stream) {
            Known::Open(_) => return Ok(Some(Event::Priority { stream, priority })),
            Known::Over(_) => return Ok(None),
            Known::Idle => {}
        }
        if let Some((_, kept)) = self.priorities.iter_mut().find(|(number, _)| *number == stream) {
            *kept = priority;
            return Ok(None);
        }
        // RFC 9218 §7.1.
        if self.priorities.len() + self.streams.open_count() >= self.settings.max_streams as usize {
            return Err(ConnectionError::protocol("priorities for more streams than there may be"));
        }
        self.priorities.push((stream, priority));
        Ok(None)
    }

    /// The priority that was announced for a stream that is opened now. Those of lower numbers are for streams that never come.
    pub(super) fn announced_priority(&mut self, stream: u32) -> Option<Priority> {
        if self.priorities.is_empty() {
            return None;
        }
        let found =
            self.priorities.iter().find(|(number, _)| *number == stream).map(|(_, priority)| *priority);
        self.priorities.retain(|(number, _)| *number > stream);
        found
    }
}

fn is_known(kind: u8) -> bool {
    kind <= frame::CONTINUATION || kind == frame::PRIORITY_UPDATE
}
