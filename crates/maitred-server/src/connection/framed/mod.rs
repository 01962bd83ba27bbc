//! A connection of HTTP/2: its exchanges are interleaved in frames, any number of them at once, each with its own windows, deadlines,
//! queue and record.
//!
//! ```text
//!  frames in --> maitred-h2 --> events --> pipeline.rs, by stream
//!  a handler's head, data, end --> the stream's queue --.
//!                                                        >-- fill --> maitred-h2 --> frames out --> writer --> transport
//!  credit of the peer ---------------------------------'
//! ```
//! Promises: what the peer sends is received whatever handlers do; reading stops only while much waits for the peer, or for a moment
//! after many resets. A stream whose reader
//! stalls holds only its own queue, and one whose handler does not read holds only its own window: a byte of a body is
//! credited to the connection when it is in the stream's memory, and to the stream when it is taken. A stream that
//! is reset counts until its handler has let go of it.
//!
//! Leaves out: the format of frames and the rules for frames of the peer (maitred-h2).

mod due;
mod http2;
mod receive;
mod send;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod unwanted;

use maitred_exchange::{Awaited, Heads, OwnLimits, Received, Response, Site, Stream, Writer};
use maitred_files::Body;
use maitred_h1::HeadFacts;
use maitred_h2::{ConnectionError, ErrorCode};
use maitred_http::{Method, RequestHead};
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{Flow, SendError};

use super::carrier::{Carrier, Ended, Ending, ResponsePart};
use super::held::STREAM;
use super::responder::{Encoder, ValueSender};
use super::wire::{Phase, Wire};
use super::{Context, Group, Key, NEVER, Turn};
use crate::group::slots::Token;
pub(super) use http2::{go_over, goes_over};
use maitred_exchange::site::Open;
use maitred_exchange::stream::queue::OwnAnswer;
use table::Table;
use unwanted::Unwanted;

/// What the peer takes of all streams together before it gives more (RFC 9113 §6.9.2); no setting changes it.
const FIRST_WINDOW: i64 = 65_535;

/// The most bytes that a window may have (RFC 9113 §6.9.1).
const MAX_WINDOW: i64 = (1 << 31) - 1;

/// The peer has made a window larger.
const OVERFLOW: ConnectionError =
    ConnectionError { code: ErrorCode::FlowControlError, reason: "a window of more than 2^31 - 1 bytes" };

/// See the module text.
pub(crate) struct Framed {
    http2: maitred_h2::Connection,
    /// By their numbers.
    pub(super) streams: Table,
    /// A request has come.
    is_asked: bool,
    /// Those whose answer is complete, and whose request is not.
    unwanted: Unwanted,
    /// Which stream has sent a frame last: the next one is another's turn.
    sent: u32,
    /// How many frames have been sent since all streams were last looked at in turn.
    turns: u8,
    /// The peer has said how urgent something is.
    prioritised: bool,
    /// Bytes of bodies that the peer takes now, of all streams together.
    outward: i64,
    /// Frames that are not of a queue: acknowledgements, credit and resets.
    control: Vec<u8>,
    /// The frames that are being made.
    frames: Vec<u8>,
    /// When the first byte came of a frame or head that is not complete, in monotonic nanoseconds; 0 if there is none.
    partial: u64,
    /// The peer sends nothing any more.
    ended: bool,
    /// The peer makes no further requests, or none is wanted.
    leaving: bool,
    /// It was told that no further request is wanted.
    draining: bool,
    /// How many streams the peer has reset since reading began.
    resets: u32,
    /// Until when nothing more is read, in monotonic nanoseconds; 0 while it is.
    pause: u64,
    /// Responses that have had to wait for the window of their stream, and of the connection, and are not counted yet.
    waits: [u64; 2],
    /// Why it ends.
    broken: Option<ConnectionError>,
    /// Counts it among those that are open.
    _open: Open,
}

impl Framed {
    /// A connection that begins.
    pub(crate) fn new(site: &Site) -> Box<Self> {
        Self::of(maitred_h2::Connection::new(http2::settings(site)), site)
    }

    fn of(mut http2: maitred_h2::Connection, site: &Site) -> Box<Self> {
        let mut control = Vec::new();
        http2.begin(&mut control);
        Box::new(Self {
            http2,
            streams: Table::default(),
            is_asked: false,
            unwanted: Unwanted::default(),
            sent: 0,
            turns: 0,
            prioritised: false,
            outward: FIRST_WINDOW,
            control,
            frames: Vec::new(),
            partial: 0,
            ended: false,
            leaving: false,
            draining: false,
            resets: 0,
            pause: 0,
            waits: [0; 2],
            broken: None,
            _open: site.http2_counters.note_connection(),
        })
    }

    /// Whether no exchange is under way, and nothing has come that is to be read still.
    pub(super) fn is_between(&self) -> bool {
        self.streams.is_empty() && self.partial == 0 && self.pause == 0
    }

    /// Adds to the figures what has been counted.
    fn count(&mut self, site: &Site) {
        site.http2_counters.note(&self.http2.counted());
        site.http2_counters.note_waits(std::mem::take(&mut self.waits));
    }

    /// The peer is told that nothing more of a stream is wanted.
    pub(super) fn reset(&mut self, number: u32, why: ErrorCode) {
        self.http2.put_reset(number, why, &mut self.control);
    }

    /// The window of a stream becomes wider, while half of the memory for bodies is free: what it lets come may have to be kept. Not of
    /// a WebSocket, whose messages count by themselves.
    fn widen(&mut self, number: u32, bytes: u32, site: &Site) {
        let budget = &site.body_budget;
        let figures = budget.figures();
        let has_room = figures.held + u64::from(bytes) <= figures.most / 2 && !site.guard.budget.is_over();
        let stream = self.streams.get_mut(number).filter(|stream| !stream.websocket && has_room);
        if let Some(queue) = stream.and_then(|stream| stream.queue.as_mut())
            && let Some(share) = budget.hold(bytes.into())
        {
            queue.wide.push(share);
            self.http2.widen(number, bytes, &mut self.control);
        }
    }

    /// The peer takes more, of a stream or with 0 of the connection.
    ///
    /// # Errors
    /// It takes more than there may be.
    fn take_credit(&mut self, number: u32, bytes: u32, now: u64) -> Result<Granted, ConnectionError> {
        if number == 0 {
            self.outward += i64::from(bytes);
            return if self.outward > MAX_WINDOW { Err(OVERFLOW) } else { Ok(Granted::Yes) };
        }
        let Some(queue) = self.streams.get_mut(number).and_then(|stream| stream.queue.as_mut()) else {
            return Ok(Granted::Yes);
        };
        queue.outward += i64::from(bytes);
        queue.moved = now;
        Ok(if queue.outward > MAX_WINDOW { Granted::TooMuch } else { Granted::Yes })
    }

    /// The windows of all streams change (RFC 9113 §6.9.2); they may become negative.
    ///
    /// # Errors
    /// One becomes larger than there may be.
    fn change_windows(&mut self, change: i64) -> Result<(), ConnectionError> {
        for queue in self.streams.values_mut().filter_map(|stream| stream.queue.as_mut()) {
            queue.outward += change;
            if queue.outward > MAX_WINDOW {
                return Err(OVERFLOW);
            }
        }
        Ok(())
    }
}

/// What has become of a peer's credit.
enum Granted {
    Yes,
    /// The stream's window would be larger than it may be.
    TooMuch,
}

impl Framed {
    /// Whether only handlers whose streams were reset remain.
    pub(in crate::connection) fn is_deserted(&self) -> bool {
        self.streams().all(|stream| stream.dead && stream.queue.is_none())
    }
}

/// The head of a response of the engine, of which frames are made later.
fn heads_of(response: &Response, context: &mut Context<'_>, is_head: bool) -> Heads {
    ValueSender::new(is_head).only(&response.head, Some(response.length), context.scratch.date())
}

impl Carrier for Framed {
    const KEEPS_INTERPRETER: bool = true;

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values()
    }

    fn each_stream(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.values_mut()
    }

    fn stream_of(&mut self, key: Key) -> Option<&mut Stream> {
        self.streams.get_mut(key.stream).filter(|stream| stream.is_answered_by(key.stream))
    }

    fn put(&mut self, stream: Box<Stream>) {
        self.streams.insert(stream);
    }

    fn take_stream(&mut self, key: Key) -> Option<Box<Stream>> {
        self.stream_of(key)?;
        self.streams.remove(key.stream)
    }

    fn shown_number(&self, stream: u32) -> u32 {
        stream
    }

    fn writers<'a>(&'a mut self, wire: &'a mut Wire) -> impl Iterator<Item = &'a mut Writer> {
        let queues = self.streams.values_mut().filter_map(|stream| stream.queue.as_mut()?.data.as_mut());
        wire.writer.iter_mut().chain(queues).map(|writer| &mut **writer)
    }

    fn writer_of<'a>(&'a mut self, _: &'a mut Wire, key: Key) -> Option<&'a mut Writer> {
        self.streams.get_mut(key.stream)?.queue.as_mut()?.data.as_deref_mut()
    }

    fn is_idle(&self, wire: &Wire) -> bool {
        let is_between = self.is_between() && wire.writer.is_none();
        wire.phase == Phase::Receiving && is_between && wire.input.is_empty()
    }

    fn gathered(&self) -> u64 {
        self.http2.gathered() as u64
    }

    fn memory_of_one(&self) -> u64 {
        STREAM
    }

    fn send_own(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        response: Response,
    ) -> Received {
        let is_head = stream.request.head.method == Method::Head;
        let heads = heads_of(&response, context, is_head);
        let ends = (wire.client_of(&stream).peer, wire.listener.into());
        let own = OwnAnswer::of(&response, is_head, ends, context.now);
        // The stream stays until its last byte has left. Its request need not be complete.
        stream.answer_itself(heads, if is_head { Body::Empty } else { response.body }, own);
        self.put(stream);
        Received::Answered
    }

    fn send_part(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
    ) -> Result<Flow, SendError> {
        self.deliver_part(wire, group, key, part)
    }

    fn send_last(
        &mut self,
        wire: &mut Wire,
        group: &Group,
        key: Key,
        part: ResponsePart<'_>,
        ending: Ending<'_>,
    ) -> Ended {
        let sent = self.deliver_last(wire, group, key, part, ending);
        Ended { sent, lost: wire.lost_as(), at: clock::monotonic() }
    }

    fn answer_late(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        awaited: Awaited,
    ) -> Option<Turn> {
        self.answer_stream_in_its_place(wire, context, stream, awaited);
        None
    }

    fn begin_run(&mut self, _: &mut Wire, _: &Context<'_>, _: &Stream, head: &RequestHead) -> Encoder {
        Encoder::Values(Box::new(ValueSender::new(head.method == Method::Head)))
    }

    fn drop_rest(&mut self, _: &mut Wire, _: &Context<'_>, _: HeadFacts) {
        // The rest of an answered stream is dropped as it comes.
    }

    fn credit(&mut self, number: u32, bytes: u64) {
        if let Some(queue) = self.streams.get_mut(number).and_then(|stream| stream.queue.as_mut()) {
            let bytes = bytes.min(queue.untaken);
            queue.untaken -= bytes;
            // A window is smaller than 4 GiB.
            if bytes > 0 && !queue.received {
                self.http2.put_credit(number, bytes as u32, &mut self.control);
            }
        }
    }

    fn limit_response(&mut self, _: &mut Wire, key: Key, own: OwnLimits) {
        let stream = self.streams.get_mut(key.stream);
        if let Some(queue) = stream.and_then(|stream| stream.queue.as_mut()) {
            own.set(&mut queue.shaper, &mut queue.send_timeout);
        }
    }

    fn send_socket_frames(&mut self, wire: &mut Wire, group: &Group, key: Key) -> Result<(), SendError> {
        if let Some(stream) = self.stream_of(key) {
            stream.enqueue_replies();
        }
        self.fill(wire, group, key.token)
    }

    fn end_responses(
        &mut self,
        wire: &mut Wire,
        context: &mut Context<'_>,
        numbers: &[u32],
        end: End,
    ) -> Option<Turn> {
        for number in numbers {
            self.reset_stream(wire, context.group, context.key(*number), end);
        }
        None
    }

    fn is_full(&self, wire: &Wire, group: &Group, key: Key) -> bool {
        match self.queue_of(key) {
            Some(queue) => queue.held() > group.site.spilling.memory(),
            None => self.is_writer_full(wire, group),
        }
    }

    fn is_writer_full(&self, wire: &Wire, group: &Group) -> bool {
        wire.is_full(group, || false)
    }

    fn resumes_at(&self) -> u64 {
        let pause = if self.pause > 0 { self.pause } else { NEVER };
        let queues = self.streams.values().filter_map(|stream| stream.queue.as_ref());
        queues.filter_map(|queue| queue.shaper.as_ref()).map(|shaper| shaper.resume()).fold(pause, u64::min)
    }

    fn longest_send_timeout(&self, site: &Site) -> u32 {
        let queues = self.streams.values().filter_map(|stream| stream.queue.as_ref());
        queues.filter(|queue| queue.has_more()).map(|queue| queue.own_send_timeout(site)).max().unwrap_or(0)
    }

    fn go_on_with_body(&mut self, _: &mut Wire, _: &Group, _: Token) {
        // Bodies of other exchanges come whatever waits to be sent.
    }

    fn drop_answered(&mut self, wire: &Wire, group: &Group) {
        self.drop_all_answered(wire, group);
    }
}
