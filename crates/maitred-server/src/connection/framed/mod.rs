//! A connection of HTTP/2: its exchanges are interleaved in frames, any number of them at once, each with its own windows, deadlines,
//! queue and record.
//!
//! ```text
//!  frames in --> maitred-h2 --> events --> the verbs of stream.rs, by stream
//!  a handler's head, data, end --> the stream's queue --.
//!                                                        >-- fill --> maitred-h2 --> frames out --> writer --> transport
//!  credit of the peer ---------------------------------'
//! ```
//! Promises: what the peer sends is received as long as the connection lives, whatever its handlers do. A stream whose reader
//! stalls holds only its own queue, and one whose handler does not read holds only its own window: a byte of a body is
//! credited to the connection when it is in the stream's memory, and to the stream when it is taken. A stream that
//! is reset counts until its handler has let go of it.
//!
//! Leaves out: the format of frames and the rules for frames of the peer (maitred-h2).

mod http2;
mod queue;
mod receive;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod unwanted;

use maitred_h2::{ConnectionError, ErrorCode};

use super::Connection;
use super::Key;
use super::protocol::Protocol;
use super::stream::Stream;
use crate::connection::writer::Writer;
use crate::site::{Open, Site};
pub(crate) use queue::Values;
pub(super) use queue::{Heads, OwnAnswer, Queue};
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
    wire: Vec<u8>,
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
            wire: Vec::new(),
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

    /// Bytes of memory of a head that is not complete.
    pub(super) fn gathered(&self) -> u64 {
        self.http2.gathered() as u64
    }

    /// The peer is told that nothing more of a stream is wanted.
    pub(super) fn reset(&mut self, number: u32, why: ErrorCode) {
        self.http2.put_reset(number, why, &mut self.control);
    }

    /// Somebody has taken so many bytes of a stream's body: its peer may send as many more.
    pub(super) fn credit(&mut self, number: u32, bytes: u64) {
        if let Some(queue) = self.streams.get_mut(number).and_then(|stream| stream.queue.as_mut()) {
            let bytes = bytes.min(queue.untaken);
            queue.untaken -= bytes;
            // A window is smaller than 4 GiB.
            if bytes > 0 && !queue.received {
                self.http2.put_credit(number, bytes as u32, &mut self.control);
            }
        }
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

    /// The longest time for which the peer may take nothing, of the responses that have something to send; in milliseconds, 0
    /// where there is none.
    pub(super) fn longest_send_timeout(&self, site: &Site) -> u32 {
        let queues = self.streams.values().filter_map(|stream| stream.queue.as_ref());
        queues.filter(|queue| queue.has_more()).map(|queue| queue.own_send_timeout(site)).max().unwrap_or(0)
    }

    /// When a limit lets more of a response leave, or reading goes on.
    pub(super) fn resumes_at(&self) -> u64 {
        let pause = if self.pause > 0 { self.pause } else { u64::MAX };
        let queues = self.streams.values().filter_map(|stream| stream.queue.as_ref());
        queues.filter_map(|queue| queue.shaper.as_ref()).map(|shaper| shaper.resume()).fold(pause, u64::min)
    }
}

/// What has become of a peer's credit.
enum Granted {
    Yes,
    /// The stream's window would be larger than it may be.
    TooMuch,
}

impl Connection {
    /// The exchange that `key` names, if a handler still answers it.
    pub(crate) fn stream_of(&mut self, key: Key) -> Option<&mut Stream> {
        let stream = match &mut self.protocol {
            Protocol::H1(_) => self.stream.as_deref_mut(),
            Protocol::Framed(framed) => framed.streams.get_mut(key.stream),
        };
        stream.filter(|stream| stream.running && !stream.dead && stream.number == key.stream)
    }

    /// Whether nobody waits for anything but handlers whose streams were reset.
    pub(super) fn is_deserted(&self) -> bool {
        self.protocol.is_framed() && self.streams().all(|stream| stream.dead && stream.queue.is_none())
    }

    /// Keeps an exchange that is not over.
    pub(super) fn put(&mut self, stream: Box<Stream>) {
        match self.protocol.framed() {
            None => self.stream = Some(stream),
            Some(framed) => {
                framed.streams.insert(stream);
            }
        }
    }

    /// Takes the exchange out that `key` names, which its handler still answers.
    pub(super) fn take_stream(&mut self, key: Key) -> Option<Box<Stream>> {
        self.stream_of(key)?;
        match self.protocol.framed() {
            None => self.stream.take(),
            Some(framed) => framed.streams.remove(key.stream),
        }
    }

    /// What waits to be sent, of all exchanges.
    pub(super) fn writers(&mut self) -> impl Iterator<Item = &mut Writer> {
        let streams = self.protocol.framed().map(|framed| framed.streams.values_mut()).into_iter().flatten();
        let queues = streams.filter_map(|stream| stream.queue.as_mut()?.data.as_mut());
        self.wire.writer.iter_mut().chain(queues).map(|writer| &mut **writer)
    }

    /// All exchanges, to look at.
    pub(super) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let streams = match &self.protocol {
            Protocol::H1(_) => None,
            Protocol::Framed(framed) => Some(framed.streams.values()),
        };
        self.stream.as_deref().into_iter().chain(streams.into_iter().flatten())
    }

    /// All exchanges.
    pub(super) fn each_stream(&mut self) -> impl Iterator<Item = &mut Stream> {
        let streams = self.protocol.framed().map(|framed| framed.streams.values_mut());
        self.stream.as_deref_mut().into_iter().chain(streams.into_iter().flatten())
    }
}
