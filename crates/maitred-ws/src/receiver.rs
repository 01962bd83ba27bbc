//! Messages and control frames from the bytes of a client.
//!
//! ```text
//!           head complete                 payload complete, fin
//!   Head ------------------> Data ------------------------------------> Head: Message
//!    |  ^                      `--- payload complete, not fin ---------> Head
//!    |  '------ Ping, Pong ---.
//!    `-----------------> Control ---- Close ---> Closed
//! ```
//!
//! A message may be open over many frames, with control frames between them. Every error is for ever.

mod inflating;
#[cfg(test)]
mod tests;

use crate::control::{Control, Reason};
use crate::deflate::Deflate;
use crate::failure::Failure;
use crate::frame::{self, Context, Head, MAX_HEAD, Opcode};
use crate::sender::is_close_code;
use crate::utf8::Utf8;
use inflating::Inflating;

/// Limits for one message of a client. A message that passes one is a [`Failure`] with the code 1009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes in a message, inflated. A frame that would pass it is refused before its payload has come.
    pub message: u64,
    /// The most frames that a message may be cut into, at least 1; empty ones count.
    pub fragments: u32,
    /// How many times longer an inflated message may be than its compressed bytes so far, so that a little data does
    /// not become much work. It is checked for each 64 KiB. Deflate gets to about 1030 with a message of one byte
    /// repeated; text is seldom above 20.
    pub ratio: u32,
    /// Bytes that a message may have with any ratio, at least 64 KiB.
    pub ratio_from: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text: the bytes are UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// All bytes are used up, and nothing is complete.
    NeedMore,
    /// A message is complete.
    Message {
        /// The kind of the message.
        kind: Kind,
        /// The length in bytes: all bytes that were appended since the last message.
        length: u64,
    },
    /// The peer wants a pong with this payload (RFC 6455 §5.5.2).
    Ping(Control),
    /// An answer to a ping, or to nothing (RFC 6455 §5.5.3).
    Pong(Control),
    /// The peer sends nothing more (RFC 6455 §5.5.1): its code and reason, if it gives them. Bytes behind it are
    /// ignored.
    Close(Option<(u16, Reason)>),
}

/// Turns the bytes of a client into messages and control frames.
pub struct Receiver {
    limits: Limits,
    state: State,
    /// The bytes of a head that is not complete.
    begun: [u8; MAX_HEAD],
    begun_length: usize,
    /// The payload of a control frame so far.
    control: Control,
    /// A message that is not complete, while no data frame is read.
    open: Option<Open>,
    utf8: Utf8,
    /// If messages may be compressed.
    inflating: Option<Inflating>,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    /// In the payload of a frame of a message; the length in the head counts the bytes that have not come yet.
    Data(Head, Open),
    Control(Head),
    Closed,
    Failed(Failure),
}

/// A message that is begun.
#[derive(Clone, Copy)]
struct Open {
    kind: Kind,
    compressed: bool,
    fragments: u32,
    /// Bytes in all its frames so far, by their heads.
    announced: u64,
    /// Bytes that were appended.
    length: u64,
}

impl Receiver {
    /// A receiver for the bytes behind the handshake. `deflate`: the agreed parameters, if messages may be compressed.
    pub fn new(limits: Limits, deflate: Option<&Deflate>) -> Self {
        Self {
            limits,
            state: State::Head,
            begun: [0; MAX_HEAD],
            begun_length: 0,
            control: Control::EMPTY,
            open: None,
            utf8: Utf8::default(),
            inflating: deflate.map(Inflating::new),
        }
    }

    /// Reads `data` up to the end of a message or control frame, and returns how many bytes are used up: all of them with
    /// [`Event::NeedMore`]. Call it again with the rest after any other event, if there is one.
    ///
    /// The payload of data frames is appended to `message`, unmasked and inflated, as it comes. Earlier content of
    /// `message` stays and is not read.
    ///
    /// # Errors
    /// When the peer breaks a rule or passes a limit; every call after that returns the same. The part of the message
    /// that was appended then means nothing.
    pub fn poll(&mut self, data: &[u8], message: &mut Vec<u8>) -> Result<(usize, Event), Failure> {
        let mut rest = data;
        match self.next(&mut rest, message) {
            Ok(event) => Ok((data.len() - rest.len(), event)),
            Err(failure) => {
                self.fail(failure);
                Err(failure)
            }
        }
    }

    /// Bytes of memory that it holds beside its own size: the context for inflating, once there is one.
    pub fn held(&self) -> usize {
        self.inflating.as_ref().map_or(0, Inflating::held)
    }

    /// Whether nothing has come of a message or frame that is not complete.
    pub fn is_between(&self) -> bool {
        let no_frame = match self.state {
            State::Head => self.begun_length == 0,
            State::Data(..) | State::Control(_) => false,
            State::Closed | State::Failed(_) => true,
        };
        no_frame && self.open.is_none()
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Failed(failure);
        self.leave();
    }

    /// Ends receiving.
    fn leave(&mut self) {
        self.open = None;
        self.inflating = None;
    }

    fn next(&mut self, rest: &mut &[u8], message: &mut Vec<u8>) -> Result<Event, Failure> {
        loop {
            let event = match self.state {
                State::Head => match self.head(rest)? {
                    Some(head) => self.begin(head)?,
                    None => return Ok(Event::NeedMore),
                },
                State::Data(head, open) => self.data(head, open, rest, message)?,
                State::Control(head) => self.control(head, rest)?,
                State::Closed => {
                    *rest = &[];
                    return Ok(Event::NeedMore);
                }
                State::Failed(failure) => return Err(failure),
            };
            match event {
                Some(event) => return Ok(event),
                // Frames without payload need no further bytes.
                None if rest.is_empty() && self.waits() => return Ok(Event::NeedMore),
                None => {}
            }
        }
    }

    /// Whether it can do nothing without further bytes.
    fn waits(&self) -> bool {
        match self.state {
            State::Data(head, _) | State::Control(head) => head.length > 0,
            _ => true,
        }
    }

    /// The next head. `None` if it is not complete: its bytes so far are kept.
    fn head(&mut self, rest: &mut &[u8]) -> Result<Option<Head>, Failure> {
        let context = Context { deflate: self.inflating.is_some(), in_message: self.open.is_some() };
        if self.begun_length == 0
            && let Some((head, used)) = frame::head(rest, context)?
        {
            *rest = rest.get(used..).unwrap_or_default();
            return Ok(Some(head));
        }
        let before = self.begun_length;
        for (place, byte) in self.begun.iter_mut().skip(before).zip(rest.iter()) {
            *place = *byte;
            self.begun_length += 1;
        }
        let begun = self.begun.get(..self.begun_length).unwrap_or_default();
        if before == 0 {
            // It was looked at in its place.
            *rest = &[];
            return Ok(None);
        }
        let complete = frame::head(begun, context)?;
        let used = match complete {
            Some((_, length)) => length.saturating_sub(before),
            None => self.begun_length - before,
        };
        *rest = rest.get(used..).unwrap_or_default();
        if complete.is_some() {
            self.begun_length = 0;
        }
        Ok(complete.map(|(head, _)| head))
    }

    /// Begins a frame.
    fn begin(&mut self, head: Head) -> Result<Option<Event>, Failure> {
        if head.opcode.is_control() {
            self.control = Control::EMPTY;
            self.state = State::Control(head);
            return Ok(None);
        }
        let mut open = self.open.take().unwrap_or_else(|| {
            let kind = if head.opcode == Opcode::Text { Kind::Text } else { Kind::Binary };
            Open { kind, compressed: head.compressed, fragments: 0, announced: 0, length: 0 }
        });
        open.fragments = open.fragments.saturating_add(1);
        open.announced = open.announced.saturating_add(head.length);
        if open.fragments > self.limits.fragments {
            return Err(Failure::too_big("a message has more fragments than are allowed"));
        }
        let most = if open.compressed { most_compressed(self.limits.message) } else { self.limits.message };
        if open.announced > most {
            return Err(TOO_LONG);
        }
        self.state = State::Data(head, open);
        Ok(None)
    }

    /// Takes the bytes of a data frame's payload that are there.
    fn data(
        &mut self,
        mut head: Head,
        mut open: Open,
        rest: &mut &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        let payload = take(&mut head.length, rest);
        match &mut self.inflating {
            Some(inflating) if open.compressed => {
                let utf8 = (open.kind == Kind::Text).then_some(&mut self.utf8);
                inflating.add(payload, &mut head.mask, &self.limits, utf8, message)?;
                open.length = inflating.length();
            }
            _ => {
                let start = message.len();
                message.extend_from_slice(payload);
                let appended = message.get_mut(start..).unwrap_or_default();
                head.mask.apply(appended);
                open.length += appended.len() as u64;
                if open.kind == Kind::Text {
                    self.utf8.check(appended).map_err(|_| NOT_UTF8)?;
                }
            }
        }
        if head.length > 0 {
            self.state = State::Data(head, open);
            return Ok(None);
        }
        self.state = State::Head;
        if !head.fin {
            self.open = Some(open);
            return Ok(None);
        }
        self.complete(open).map(Some)
    }

    /// The last frame of a message is complete.
    fn complete(&mut self, open: Open) -> Result<Event, Failure> {
        if let Some(inflating) = self.inflating.as_mut().filter(|_| open.compressed) {
            inflating.finish()?;
        }
        if open.kind == Kind::Text && !self.utf8.is_complete() {
            return Err(NOT_UTF8);
        }
        Ok(Event::Message { kind: open.kind, length: open.length })
    }

    /// Takes the bytes of a control frame's payload that are there.
    fn control(&mut self, mut head: Head, rest: &mut &[u8]) -> Result<Option<Event>, Failure> {
        let payload = take(&mut head.length, rest);
        self.control.append(payload);
        if head.length > 0 {
            self.state = State::Control(head);
            return Ok(None);
        }
        self.state = State::Head;
        let mut unmasked = self.control;
        head.mask.apply(unmasked.as_mut_bytes());
        Ok(Some(match head.opcode {
            Opcode::Ping => Event::Ping(unmasked),
            Opcode::Pong => Event::Pong(unmasked),
            _ => {
                let close = close(unmasked.as_bytes())?;
                self.state = State::Closed;
                self.leave();
                Event::Close(close)
            }
        }))
    }
}

const NOT_UTF8: Failure = Failure::data("a text message is not UTF-8");
const TOO_LONG: Failure = Failure::too_big("a message is longer than is allowed");

/// The most bytes that a message of `most` bytes has when it is compressed: deflate makes data without a pattern
/// longer, in the worst case (blocks with fixed codes) by an eighth. A message that is announced to be longer is
/// refused.
fn most_compressed(most: u64) -> u64 {
    most.saturating_add(most / 4).saturating_add(64)
}

/// Takes the available part of a payload of which `length` bytes have not come.
fn take<'a>(length: &mut u64, rest: &mut &'a [u8]) -> &'a [u8] {
    let here = usize::try_from(*length).unwrap_or(usize::MAX).min(rest.len());
    let (payload, behind) = rest.split_at_checked(here).unwrap_or_default();
    *rest = behind;
    *length -= payload.len() as u64;
    payload
}

/// The payload of a close frame: nothing, or a code and a reason (RFC 6455 §5.5.1, §7.4).
fn close(payload: &[u8]) -> Result<Option<(u16, Reason)>, Failure> {
    match payload {
        [] => Ok(None),
        [_] => Err(Failure::protocol("a close frame has half a code")),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !is_close_code(code) {
                return Err(Failure::protocol("a close frame has a code that nobody may send"));
            }
            let reason =
                Reason::new(reason).ok_or(Failure::data("the reason in a close frame is not UTF-8"))?;
            Ok(Some((code, reason)))
        }
    }
}
