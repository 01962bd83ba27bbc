//! The state of a connection: the frames that may come next, and the state of sending.
//!
//! ```text
//!  Preface --> FirstSettings --> Frame <--> Data, Skip        any --> Failed
//! ```
//!
//! Between two frames of one header block nothing else may come: the block is kept beside that.

mod receive;
mod send;

use maitred_http::RequestHead;

use crate::budgets::Buckets;
use crate::counted::Counted;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Event;
use crate::frame;
use crate::hpack::{Decoder, Encoder};
use crate::preface::{PREFACE, Preface, preface};
use crate::priority::Priority;
use crate::settings::{FIRST_WINDOW, PeerSettings, Settings};
use crate::streams::{Over, Stream, Streams};
use crate::upgrade::Upgrade;
use crate::window::Window;
use receive::{Gathering, Incoming};

/// The size of the HPACK table that this server announces, and that a peer starts with (RFC 9113 §6.5.2).
const TABLE: usize = crate::hpack::DEFAULT_TABLE;

/// One connection, of which this is the server.
///
/// Everything that `put_*` appends is sent in the order of the calls: heads are compressed with a state that both sides share.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Connection {
    settings: Settings,
    peer: PeerSettings,
    acknowledged: bool,
    next: Next,
    /// A header block that is not complete.
    gathering: Option<Gathering>,
    block: Vec<u8>,
    /// Memory for the pieces of a cookie.
    cookie: Vec<u8>,
    streams: Streams,
    window: Window,
    decoder: Decoder,
    encoder: Encoder,
    /// Priorities of streams to come.
    priorities: Vec<(u32, Priority)>,
    buckets: Buckets,
    now: u64,
    /// A budget that the caller's calls have passed, to be reported by the next poll.
    passed: Option<ConnectionError>,
    /// The last stream that was given to the caller.
    last: u32,
    leaving: Leaving,
    counted: Counted,
    probe: Probe,
}

/// How much of a stream's body is taken while a PING goes to the peer and back.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    stream: u32,
    /// When the last PING was sent, and how many bytes the stream had been granted by then.
    since: u64,
    given: u64,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Preface,
    FirstSettings,
    Frame,
    Data(Incoming),
    /// So many bytes of a frame that is ignored.
    Skip(u32),
    Failed(ConnectionError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// The peer is told, and may have opened streams before it knew.
    Told,
    /// Streams above this one are ignored.
    Last(u32),
}

enum Step<'a> {
    More,
    Used(usize),
    /// So many bytes are used up, and they make this event.
    Event(usize, Event<'a>),
}

impl Connection {
    /// A connection that begins, with the client's preface to come. Settings out of their range are brought into it.
    pub fn new(settings: Settings) -> Self {
        let settings = settings.bounded();
        Self {
            peer: PeerSettings::default(),
            acknowledged: false,
            next: Next::Preface,
            gathering: None,
            block: Vec::new(),
            cookie: Vec::new(),
            streams: Streams::default(),
            window: Window::new(settings.connection_window),
            decoder: Decoder::new(TABLE),
            encoder: Encoder::new(),
            priorities: Vec::new(),
            buckets: Buckets::new(&settings.budgets),
            now: 0,
            passed: None,
            last: 0,
            leaving: Leaving::No,
            counted: Counted::default(),
            probe: Probe::default(),
            settings,
        }
    }

    /// A connection that a request of HTTP/1.1 has asked for, which is its stream 1 and complete (RFC 7540 §3.2). The
    /// client's preface is still to come, behind our `101 Switching Protocols` and the bytes that
    /// [`begin`](Self::begin) appends.
    pub fn upgraded(settings: Settings, upgrade: &Upgrade) -> Self {
        let mut connection = Self::new(settings);
        let encoder = &mut connection.encoder;
        // They were read before, so that there is no error.
        let _ = connection.peer.take(upgrade.settings(), |size| encoder.set_max_table(size));
        connection.streams.use_up(1);
        connection.open(1, true, None);
        connection
    }

    /// Returns the first event of `data`, and how many of its bytes are used up; call again with the rest until
    /// [`Event::NeedMore`]. With [`Event::Head`] the head is in `head`, in its memory; with any other outcome the
    /// content of `head` is unspecified. `now` is in monotonic nanoseconds. `control` gets frames that have to be sent
    /// at once: acknowledgements, resets of streams for errors of the peer, credit for data that is dropped. They go
    /// before anything that is put later.
    ///
    /// # Errors
    /// The connection ends; every later call says the same. Control bytes are still to be sent, then
    /// [`put_goaway`](Self::put_goaway).
    pub fn poll<'a>(
        &mut self,
        data: &'a [u8],
        now: u64,
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), ConnectionError> {
        self.now = now;
        let mut used = 0;
        loop {
            let rest = data.get(used..).unwrap_or_default();
            match self.step(rest, head, control) {
                Ok(Step::Used(bytes)) => used += bytes,
                Ok(Step::Event(bytes, event)) => return Ok((used + bytes, event)),
                Ok(Step::More) => return Ok((used, Event::NeedMore)),
                Err(error) => {
                    self.next = Next::Failed(error);
                    return Err(error);
                }
            }
        }
    }

    fn step<'a>(
        &mut self,
        data: &'a [u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Step<'a>, ConnectionError> {
        if let Some(error) = self.passed.take() {
            return Err(error);
        }
        match self.next {
            Next::Frame | Next::FirstSettings => self.frame(data, head, control),
            Next::Data(incoming) => Ok(self.data(incoming, data, control)),
            Next::Skip(left) => Ok(self.skip(left, data)),
            Next::Preface => match preface(data) {
                Preface::Yes => {
                    self.next = Next::FirstSettings;
                    Ok(Step::Used(PREFACE.len()))
                }
                Preface::Perhaps => Ok(Step::More),
                Preface::No => Err(ConnectionError::protocol("the client's preface is missing")),
            },
            Next::Failed(error) => Err(error),
        }
    }

    fn skip<'a>(&mut self, left: u32, data: &[u8]) -> Step<'a> {
        let length = (left as usize).min(data.len());
        // As the smaller of both it fits.
        let left = left - length as u32;
        self.next = if left == 0 { Next::Frame } else { Next::Skip(left) };
        if left == 0 || length > 0 { Step::Used(length) } else { Step::More }
    }

    fn open(&mut self, number: u32, received: bool, left: Option<u64>) {
        let mut window = Window::new(self.settings.stream_window);
        if !self.acknowledged {
            window.change(self.unknown_window());
        }
        self.streams.begin(Stream { number, received, sent: false, window, left });
        self.buckets.stream_opened();
        self.last = number;
    }

    /// The bytes that a stream may send beyond our window before the peer knows our settings.
    fn unknown_window(&self) -> i64 {
        i64::from(FIRST_WINDOW.saturating_sub(self.settings.stream_window))
    }

    /// Resets a stream for an error of the peer. There is an event if it was open.
    fn refuse<'a>(
        &mut self,
        number: u32,
        code: ErrorCode,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let was_open = self.reset(number, code, control);
        self.buckets.errors.take(1, self.now)?;
        Ok(was_open.then_some(Event::Reset { stream: number }))
    }

    /// Resets a stream; whether it was open.
    fn reset(&mut self, number: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        frame::put_reset(number, code, out);
        self.counted.note_sent(frame::RST_STREAM);
        self.counted.resets_sent += 1;
        self.streams.end(number, Over::ByUs)
    }

    fn give_back(&mut self, bytes: u32, control: &mut Vec<u8>) {
        if let Some(bytes) = self.window.give(bytes) {
            frame::put_window_update(0, bytes, control);
            self.counted.note_sent(frame::WINDOW_UPDATE);
        }
    }
}

#[cfg(test)]
mod tests;
