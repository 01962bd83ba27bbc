//! Receiving: frame by frame, data as it comes, and header blocks, which are gathered from HEADERS and CONTINUATION and decoded in
//! the order of their arrival, also those of streams that are refused (RFC 9113 §4.3).

use maitred_http::RequestHead;

use super::send::LEAVING_PING;
use super::{Connection, Leaving, Next, Step};
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Event;
use crate::frame::{self, Data, Header, Headers};
use crate::head::{Reader, Trailers};
use crate::hpack::HpackError;
use crate::priority::Priority;
use crate::streams::{Known, Over};

/// The cost of a frame of data beside its content and its padding, for the budget: its work in bytes.
const FRAME_COST: u32 = 32;

/// Bytes of a block beyond those of the largest head: of one that is a little too large, so that it is answered.
const SLACK: usize = 16 * 1024;

/// How many times as large as the largest head a list of fields may be, so that it is answered.
///
/// Reason: a byte of a block can be a field of 4 KiB (CVE-2016-6581). Source: h2 takes four times the limit.
const MOST_LISTS: usize = 4;

/// Memory for a block, and for a cookie, that is kept for the next one, in bytes.
///
/// Reason: each connection keeps it, also an idle one.
const KEPT: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    stream: u32,
    left: u32,
    padding: u32,
    ends: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    pub(super) stream: u32,
    is_new: bool,
    ends: bool,
    /// The stream depends on itself (RFC 7540 §5.3.1).
    on_itself: bool,
    continuations: u32,
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

    // ---- Header blocks ----

    fn headers<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let frame = Headers::read(header, payload)?;
        let stream = header.stream;
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("HEADERS on a stream that no client opens"));
        }
        let is_new = self.streams.use_up(stream);
        if !is_new {
            let ignored = self.is_ignored(stream);
            match self.streams.known(stream) {
                Known::Over(Over::Ended) => {
                    return Err(ConnectionError::new(
                        ErrorCode::StreamClosed,
                        "HEADERS on a stream that has ended",
                    ));
                }
                Known::Over(Over::Unknown) if !ignored => {
                    return Err(ConnectionError::protocol("HEADERS on a stream below the last one"));
                }
                _ => {}
            }
        }
        let on_itself = frame.dependency.is_some_and(|dependency| dependency.stream == stream);
        let gathering = Gathering { stream, is_new, ends: frame.ends, on_itself, continuations: 0 };
        if frame.whole {
            return self.block(gathering, frame.fragment, head, control);
        }
        self.block.clear();
        self.gather(gathering, frame.fragment)?;
        Ok(None)
    }

    fn continuation<'a>(
        &mut self,
        mut gathering: Gathering,
        whole: bool,
        fragment: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        gathering.continuations += 1;
        if gathering.continuations > self.settings.budgets.continuations {
            return Err(ConnectionError::calm("too many frames of one header block (budget continuations)"));
        }
        if !whole {
            self.gather(gathering, fragment)?;
            return Ok(None);
        }
        self.gathering = None;
        self.extend_block(fragment)?;
        let mut block = std::mem::take(&mut self.block);
        let event = self.block(gathering, &block, head, control);
        if block.capacity() <= KEPT {
            block.clear();
            self.block = block;
        }
        event
    }

    fn gather(&mut self, gathering: Gathering, fragment: &[u8]) -> Result<(), ConnectionError> {
        if fragment.is_empty() {
            self.buckets.empty.take(1, self.now)?;
        }
        self.gathering = Some(gathering);
        self.extend_block(fragment)
    }

    fn extend_block(&mut self, fragment: &[u8]) -> Result<(), ConnectionError> {
        let most = self.settings.max_head.saturating_add(SLACK);
        if self.block.len() + fragment.len() > most {
            return Err(ConnectionError::calm("header block far too large"));
        }
        self.block.extend_from_slice(fragment);
        Ok(())
    }

    fn block<'a>(
        &mut self,
        gathering: Gathering,
        block: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        self.counted.heads_received.0 += block.len() as u64;
        if !gathering.is_new {
            return self.trailers(gathering, block, control);
        }
        let stream = gathering.stream;
        if self.is_ignored(stream) {
            self.pass_over(block)?;
            self.buckets.refused.take(1, self.now)?;
            return Ok(None);
        }
        if self.streams.open_count() >= self.settings.max_streams as usize {
            self.pass_over(block)?;
            self.reset(stream, ErrorCode::RefusedStream, control);
            self.counted.refused += 1;
            self.buckets.refused.take(1, self.now)?;
            return Ok(None);
        }
        let mut reader = Reader::new(head, &mut self.cookie, &self.settings);
        let decoded = self.decoder.decode(block, |name, value, _| reader.field(name, value));
        let (size, plain) = (reader.size(), reader.plain());
        let finished = reader.finish(gathering.ends);
        if self.cookie.capacity() > KEPT {
            self.cookie = Vec::new();
        }
        self.decoded(decoded, size, plain)?;
        match finished {
            Ok((mut facts, left)) if !gathering.on_itself => {
                facts.priority = self.announced_priority(stream).or(facts.priority);
                self.open(stream, gathering.ends, left);
                Ok(Some(Event::Head { stream, facts }))
            }
            _ => self.refuse(stream, ErrorCode::ProtocolError, control),
        }
    }

    fn trailers<'a>(
        &mut self,
        gathering: Gathering,
        block: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let well_formed = self.pass_over(block)?;
        let stream = gathering.stream;
        match self.streams.known(stream) {
            Known::Open(open) if open.received => self.refuse(stream, ErrorCode::StreamClosed, control),
            Known::Open(open) => {
                let is_all = open.left.is_none_or(|left| left == 0);
                if !gathering.ends || !is_all || !well_formed || gathering.on_itself {
                    return self.refuse(stream, ErrorCode::ProtocolError, control);
                }
                self.streams.received(stream);
                Ok(Some(Event::End { stream }))
            }
            Known::Over(Over::ByPeer) => self.refuse(stream, ErrorCode::StreamClosed, control),
            _ => {
                self.buckets.late.take(1, self.now)?;
                Ok(None)
            }
        }
    }

    /// Decodes a block of which nothing is kept; whether it could be trailers.
    fn pass_over(&mut self, block: &[u8]) -> Result<bool, ConnectionError> {
        let mut trailers = Trailers::default();
        let decoded = self.decoder.decode(block, |name, value, _| trailers.field(name, value));
        self.decoded(decoded, trailers.size(), trailers.plain())?;
        Ok(!trailers.are_malformed())
    }

    /// Checks a decoded list of `size`, with `plain` bytes of names and values.
    fn decoded(
        &mut self,
        decoded: Result<(), HpackError>,
        size: usize,
        plain: usize,
    ) -> Result<(), ConnectionError> {
        self.counted.heads_received.1 += plain as u64;
        decoded.map_err(|error| match error {
            HpackError::Repeated => ConnectionError::calm(error.reason()),
            _ => ConnectionError::new(ErrorCode::CompressionError, error.reason()),
        })?;
        if size > self.settings.max_head.saturating_mul(MOST_LISTS) {
            return Err(ConnectionError::calm("a list of fields far too large"));
        }
        Ok(())
    }

    pub(super) fn is_ignored(&self, stream: u32) -> bool {
        matches!(self.leaving, Leaving::Last(last) if stream > last)
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
    fn announced_priority(&mut self, stream: u32) -> Option<Priority> {
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
