//! The differences between the messages that a receiver reads: requests or responses.

use std::fmt::Debug;

use maitred_http::BodyLength;

use crate::error::Malformed;
use crate::limits::Limits;

/// A kind of message: [`Requests`](super::Requests) or [`Responses`](super::Responses).
pub trait Messages: Copy + Debug {
    /// The head that is filled.
    type Head;
    /// Facts of a head that exist only in HTTP/1.
    type Facts;
    /// The reason why a message is not accepted.
    type Error: From<Malformed>;

    /// Whether another message can follow.
    const MANY: bool;
    /// The lines of a head end, and it is none.
    const UNREADABLE: Self::Error;
    /// A head is longer than the limit.
    const TOO_LARGE: Self::Error;
    /// A message before this one was not accepted.
    const AFTER_MALFORMED: Self::Error;

    /// Reads the head at the start of `window` into `head`, or returns `None` when it is not complete. The memory of
    /// `head` is used again: one copy takes all the bytes.
    ///
    /// # Errors
    /// As documented at [`Receiver::poll_event`](crate::Receiver::poll_event). The content of `head` is unspecified then.
    fn read(
        self,
        window: &[u8],
        head: &mut Self::Head,
        limits: &Limits,
    ) -> Result<Option<Read<Self::Facts>>, Self::Error>;

    /// Whether another empty line may stand before a message.
    ///
    /// # Errors
    /// There are too many, `skipped` with this one.
    fn may_skip_line(skipped: u8, limits: &Limits) -> Result<(), Self::Error>;

    /// Judges the first bytes, however few have arrived.
    ///
    /// # Errors
    /// No message begins like that.
    fn check_start(window: &[u8]) -> Result<(), Self::Error>;

    /// The length of the longest start line within the limits.
    fn max_line(limits: &Limits) -> usize;

    /// The fault of a start line that is longer and has not ended yet.
    fn endless_line(line: &[u8], limits: &Limits) -> Self::Error;

    /// Judges a start line that has arrived completely, before the fields have.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn check_line(line: &[u8], limits: &Limits) -> Result<(), Self::Error>;

    /// Keeps the readable part of a refused message for the logs.
    fn note_refused(_input: &[u8], _head: &mut Self::Head) {}
}

/// A head that was read.
#[derive(Debug)]
pub struct Read<F> {
    /// Its bytes.
    pub length: usize,
    /// Its facts.
    pub facts: F,
    /// The part of the stream behind it.
    pub after: After,
}

/// The part of the stream behind a head.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// The body of the message, then the next message.
    Body(BodyLength),
    /// Another head of the same message.
    Head,
    /// Bytes of another protocol.
    Foreign,
}
