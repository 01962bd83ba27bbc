//! The receiving half: bytes in, events out.
//!
//! ```text
//!   ,----------------- a head without body ----------------.
//!   v                                                       |
//! Head --Content-Length--> Fixed --all data--> End --.      |
//!   |  `--chunked--> Chunked --last chunk--> Trailers |     |
//!   |                                          |      |     |
//!   ^------------------------------------------+------+-----'
//!
//! any --Malformed, RequestError--> Failed (for ever)
//! ```
//!
//! A receiver of [`Responses`] reads one: interim heads lead back to `Head`, the end to `Done`. A body without length is
//! `UntilClose`, and the caller tells the [end of the stream](Receiver::end_of_stream).
//!
//! Leaves out: reading heads ([`requests`], [`responses`]).

mod fields;
mod messages;
mod requests;
mod responses;

use maitred_http::{BodyLength, FieldSet, RequestHead, ResponseHead};

use crate::chunked::{Chunked, Progress};
use crate::error::{Malformed, RequestError};
use crate::limits::Limits;
use crate::lines::{line_end, section_end};
use crate::trailers;

use messages::{After, Read};

pub(crate) use requests::authority_of;

pub(crate) use messages::Messages;
pub(crate) use requests::Requests;
pub use requests::{HeadFacts, TargetForm, note_request_line};
pub use responses::{Asked, ResponseFacts, Responses};

/// The receiving half of a connection: a server's, or a client's for one response. It owns no buffer: the caller drops
/// consumed bytes, keeps the rest and offers it again with more behind it.
#[derive(Debug, Default)]
pub struct Receiver<M = Requests> {
    state: State,
    messages: M,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head(Scan),
    Fixed { left: u64 },
    Chunked(Chunked),
    Trailers { scanned: usize },
    UntilClose,
    End,
    Done,
    Failed,
}

/// How far an incomplete head was looked through, so that no byte is searched twice.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    position: usize,
    empty_lines: u8,
    line_checked: bool,
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Scan::default())
    }
}

/// The result of one look at the input.
#[derive(Debug)]
pub struct Step<'a, F = HeadFacts> {
    /// Bytes at the start of the input that are used up, with any event; data included.
    pub consumed: usize,
    /// The event.
    pub event: Event<'a, F>,
}

/// An event. A request is one `Head`; then, unless the head is [`complete`](HeadFacts::complete), any number of `Data`,
/// at most one `Trailers`, and `End`. A response may have interim heads before that.
#[derive(Debug)]
pub enum Event<'a, F = HeadFacts> {
    /// More bytes have to arrive behind those that are left.
    NeedMore,
    /// A head is complete and stands in the head that was offered.
    Head(F),
    /// Body bytes, decoded, never empty.
    Data(&'a [u8]),
    /// The trailer section of a chunked body, without fields that are forbidden there. Absent when
    /// the section is empty.
    Trailers(Box<FieldSet>),
    /// The body is complete. The next call looks for the next request.
    End,
}

impl Receiver {
    /// A receiver that waits for the first request.
    pub const fn new() -> Self {
        Self {
            state: State::Head(Scan { position: 0, empty_lines: 0, line_checked: false }),
            messages: Requests,
        }
    }

    /// Whether the receiver stands between two requests: nothing of the next one was seen, the end
    /// of the one before was reported.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Head(Scan { position: 0, .. }))
    }

    /// How many bytes are left of a body of known length that is being received.
    pub fn fixed_left(&self) -> Option<u64> {
        match self.state {
            State::Fixed { left } => Some(left),
            _ => None,
        }
    }

    /// The caller has received so many bytes of that body elsewhere, at most as many as are [left](Self::fixed_left). Nothing that
    /// was offered here and not consumed may be waiting.
    pub fn skip_fixed(&mut self, bytes: u64) {
        if let State::Fixed { left } = self.state {
            let left = left.saturating_sub(bytes);
            self.state = if left == 0 { State::End } else { State::Fixed { left } };
        }
    }

    /// Looks at `input` and returns at most one event. `head` is written to only when the event is
    /// [`Event::Head`] or an error; its memory is used again. Call again with the rest of the input until
    /// [`Event::NeedMore`]. The events do not depend on how the bytes are cut.
    ///
    /// # Errors
    /// The request is refused; every later call is too. 400: malformed, or readable in two ways;
    /// 414: target too long; 417: an expectation other than `100-continue`; 431: head or trailers too
    /// large; 501: unknown transfer coding, or method too long; 505: another protocol version.
    pub fn poll_event<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut RequestHead,
        limits: &Limits,
    ) -> Result<Step<'a>, RequestError> {
        self.poll(input, head, limits)
    }
}

impl Receiver<Responses> {
    /// A receiver of the response to one request.
    pub const fn of_response(asked: Asked) -> Self {
        let scan = Scan { position: 0, empty_lines: 0, line_checked: false };
        Self { state: State::Head(scan), messages: Responses(asked) }
    }

    /// Looks at `input` and returns at most one event, as [`poll_event`](Receiver::poll_event) does. Behind the response
    /// nothing is consumed.
    ///
    /// # Errors
    /// The bytes are no response, and every later call says so.
    pub fn poll_response<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut ResponseHead,
        limits: &Limits,
    ) -> Result<Step<'a, ResponseFacts>, Malformed> {
        self.poll(input, head, limits)
    }

    /// The peer sends no more, and all that it has sent was looked at. A body until close is complete.
    ///
    /// # Errors
    /// The response is not complete.
    pub fn end_of_stream(&mut self) -> Result<(), Malformed> {
        let cut = match self.state {
            State::UntilClose | State::End | State::Done => {
                self.state = State::Done;
                return Ok(());
            }
            State::Head(Scan { position: 0, .. }) => Malformed::NoResponse,
            State::Head(_) => Malformed::CutInHead,
            State::Fixed { .. } => Malformed::ShortBody,
            State::Chunked(_) | State::Trailers { .. } => Malformed::CutInChunks,
            State::Failed => Malformed::AfterMalformed,
        };
        self.state = State::Failed;
        Err(cut)
    }
}

impl<M: Messages> Receiver<M> {
    fn poll<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut M::Head,
        limits: &Limits,
    ) -> Result<Step<'a, M::Facts>, M::Error> {
        let polled = match self.state {
            State::Head(scan) => {
                let polled = self.poll_head(scan, input, head, limits);
                if polled.is_err() {
                    M::note_refused(input, head);
                }
                polled
            }
            State::Fixed { left } => Ok(self.poll_fixed(left, input)),
            State::Chunked(chunked) => self.poll_chunked(chunked, input, limits).map_err(M::Error::from),
            State::Trailers { scanned } => self.poll_trailers(scanned, input, limits).map_err(M::Error::from),
            State::UntilClose => Ok(data(input, 0, input.len())),
            State::End => {
                self.state = Self::BEHIND;
                Ok(Step { consumed: 0, event: Event::End })
            }
            State::Done => Ok(Step { consumed: 0, event: Event::NeedMore }),
            State::Failed => Err(M::AFTER_MALFORMED),
        };
        if polled.is_err() {
            self.state = State::Failed;
        }
        polled
    }

    /// The state behind a message.
    const BEHIND: State = match M::MANY {
        true => State::Head(Scan { position: 0, empty_lines: 0, line_checked: false }),
        false => State::Done,
    };

    fn poll_head<'a>(
        &mut self,
        mut scan: Scan,
        input: &[u8],
        head: &mut M::Head,
        limits: &Limits,
    ) -> Result<Step<'a, M::Facts>, M::Error> {
        let skipped = scan.skip_empty_lines::<M>(input, limits)?;
        let rest = input.get(skipped..).unwrap_or_default();
        let window = rest.get(..limits.max_head).unwrap_or(rest);
        // Nearly every head arrives in one piece. The careful way below reports errors, so that the answer is the same
        // however the bytes are cut.
        if scan.position == 0
            && window.first().is_some_and(u8::is_ascii_graphic)
            && let Ok(Some(read)) = self.messages.read(window, head, limits)
        {
            return Ok(self.head_done(skipped, read));
        }
        let Some(end) = scan.find_end::<M>(window, limits)? else {
            self.state = State::Head(scan);
            return Ok(Step { consumed: skipped, event: Event::NeedMore });
        };
        match self.messages.read(window.get(..end).unwrap_or_default(), head, limits)? {
            Some(read) => Ok(self.head_done(skipped, read)),
            None => Err(M::UNREADABLE),
        }
    }

    fn head_done<'a>(&mut self, skipped: usize, read: Read<M::Facts>) -> Step<'a, M::Facts> {
        self.state = match read.after {
            After::Body(BodyLength::Fixed(left)) if left > 0 => State::Fixed { left },
            After::Body(BodyLength::Chunked) => State::Chunked(Chunked::default()),
            After::Body(BodyLength::UntilClose) => State::UntilClose,
            After::Body(BodyLength::Fixed(_) | BodyLength::Empty) => Self::BEHIND,
            After::Head => State::default(),
            After::Foreign => State::Done,
        };
        Step { consumed: skipped + read.length, event: Event::Head(read.facts) }
    }

    fn poll_fixed<'a>(&mut self, left: u64, input: &'a [u8]) -> Step<'a, M::Facts> {
        let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let left = left - length as u64;
        self.state = if left == 0 { State::End } else { State::Fixed { left } };
        data(input, 0, length)
    }

    fn poll_chunked<'a>(
        &mut self,
        mut chunked: Chunked,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<Step<'a, M::Facts>, Malformed> {
        let (consumed, progress) = chunked.advance(input, limits)?;
        self.state = State::Chunked(chunked);
        match progress {
            Progress::NeedMore => Ok(Step { consumed, event: Event::NeedMore }),
            Progress::Data(length) => Ok(data(input, consumed, length)),
            Progress::Last => {
                let step = self.poll_trailers(0, input.get(consumed..).unwrap_or_default(), limits)?;
                Ok(Step { consumed: consumed + step.consumed, event: step.event })
            }
        }
    }

    fn poll_trailers<'a>(
        &mut self,
        scanned: usize,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<Step<'a, M::Facts>, Malformed> {
        if input.starts_with(b"\r\n") {
            self.state = Self::BEHIND;
            return Ok(Step { consumed: 2, event: Event::End });
        }
        let window = input.get(..limits.max_trailers).unwrap_or(input);
        if let Some(end) = section_end(window, scanned)? {
            let trailers = trailers::read(window.get(..end).unwrap_or_default(), limits)?;
            self.state = State::End;
            return Ok(Step { consumed: end, event: Event::Trailers(Box::new(trailers)) });
        }
        if window.len() >= limits.max_trailers {
            return Err(Malformed::TrailersTooLarge);
        }
        self.state = State::Trailers { scanned: window.len() };
        Ok(Step { consumed: 0, event: Event::NeedMore })
    }
}

/// `length` bytes of data behind `start` bytes of framing.
fn data<F>(input: &[u8], start: usize, length: usize) -> Step<'_, F> {
    match input.get(start..start + length) {
        Some(bytes) if !bytes.is_empty() => Step { consumed: start + length, event: Event::Data(bytes) },
        _ => Step { consumed: start, event: Event::NeedMore },
    }
}

impl Scan {
    /// RFC 9112 §2.2: empty lines before a request line are skipped, for old clients that send one
    /// behind a body. Returns how many bytes they have.
    fn skip_empty_lines<M: Messages>(&mut self, input: &[u8], limits: &Limits) -> Result<usize, M::Error> {
        let mut skipped = 0;
        while self.position == 0 && input.get(skipped..).is_some_and(|rest| rest.starts_with(b"\r\n")) {
            skipped += 2;
            self.empty_lines = self.empty_lines.saturating_add(1);
            M::may_skip_line(self.empty_lines, limits)?;
        }
        Ok(skipped)
    }

    /// Looks through the bytes of `window` that are new and returns where the head ends. The start line
    /// is judged as soon as it is there, the fields when all of them are.
    fn find_end<M: Messages>(&mut self, window: &[u8], limits: &Limits) -> Result<Option<usize>, M::Error> {
        M::check_start(window)?;
        if matches!(window, [] | [b'\r']) {
            return Ok(None);
        }
        if !self.line_checked {
            let line = window.get(..M::max_line(limits)).unwrap_or(window);
            let Some(end) = line_end(line, self.position)? else {
                if line.len() >= M::max_line(limits) {
                    return Err(M::endless_line(line, limits));
                }
                if window.len() >= limits.max_head {
                    return Err(M::TOO_LARGE);
                }
                self.position = window.len();
                return Ok(None);
            };
            M::check_line(window.get(..end).unwrap_or_default(), limits)?;
            self.line_checked = true;
            self.position = end;
        }
        let end = section_end(window, self.position)?;
        self.position = window.len();
        if end.is_none() && window.len() >= limits.max_head {
            return Err(M::TOO_LARGE);
        }
        Ok(end)
    }
}
