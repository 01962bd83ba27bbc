//! A WebSocket (RFC 6455) as a handler has it: messages in both directions, after a request that asked for one.
//!
//! ```text
//! Exchange --accept--> WebSocket --next, send--> close       dropped open: closed with 1011
//!     `--respond--> an ordinary answer: the WebSocket is refused
//! ```
//! Frames, pings and the closing handshake are the server's: it answers them without the handler. Steps can be taken on
//! any thread. Nothing here waits; a caller that has to wait [observes](WebSocket::observe).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::content::Last;
use crate::exchange::{Flow, Observe, Respond, SendError};
use crate::request::Request;

/// The kind of a message (RFC 6455 §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Text, which is UTF-8.
    Text,
    /// Bytes of any kind.
    Binary,
}

/// How a WebSocket has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The code of the closing handshake (RFC 6455 §7.4.1): the peer's, or ours where the server has begun it. 1005: the peer gave
    /// none. 1006: there was no handshake.
    pub code: u16,
    /// The reason that the closing side has given; empty if none.
    pub reason: String,
}

/// Whether an endpoint may send this code (RFC 6455 §7.4): 1000 to 1003, 1007 to 1014, 3000 to 4999.
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

impl Closed {
    /// The peer is gone without a word.
    pub const ABNORMAL: u16 = 1006;

    /// There was no closing handshake.
    pub fn abnormal() -> Self {
        Self { code: Self::ABNORMAL, reason: String::new() }
    }
}

/// Messages that have come, in their order, in one piece of memory.
#[derive(Default)]
pub struct Messages {
    /// The complete messages, and behind them the beginning of the next one.
    bytes: Vec<u8>,
    /// Where each that is whole ends.
    ends: VecDeque<(MessageKind, usize)>,
    /// How many of `bytes` have been handed out.
    read: usize,
}

/// An empty one keeps so much memory at most.
const MAX_KEPT: usize = 64 * 1024;

impl Messages {
    /// The next message, and how many bytes follow it.
    pub fn next_message(&mut self) -> Option<(MessageKind, &[u8])> {
        let (kind, end) = self.ends.pop_front()?;
        let begin = std::mem::replace(&mut self.read, end);
        self.bytes.get(begin..end).map(|message| (kind, message))
    }

    /// Whether no whole message is there.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many whole messages there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes that it holds and has not handed out.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Bytes of the whole messages that were not handed out.
    pub fn waiting(&self) -> usize {
        self.ends.back().map_or(0, |(_, end)| end - self.read)
    }

    /// For the server: returns the buffer to which the parts of a message are appended.
    pub fn incoming(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// For the server: completes a message of all bytes that were appended since the last one.
    pub fn complete(&mut self, kind: MessageKind) {
        self.ends.push_back((kind, self.bytes.len()));
    }

    /// For the server: moves the whole messages to `other`, which is empty. The beginning of the next one stays.
    pub fn move_to(&mut self, other: &mut Self) {
        let whole = self.ends.back().map_or(self.read, |(_, end)| *end);
        let rest = self.bytes.get(whole..).unwrap_or_default();
        other.bytes.clear();
        other.bytes.extend_from_slice(rest);
        self.bytes.truncate(whole);
        other.ends.clear();
        other.read = 0;
        std::mem::swap(self, other);
    }

    /// Gives memory back that is not in use. For an idle WebSocket nothing is kept.
    pub fn shrink(&mut self) {
        if self.ends.is_empty() && self.read == self.bytes.len() {
            self.read = 0;
            self.bytes.clear();
            if self.bytes.capacity() > MAX_KEPT {
                self.bytes = Vec::new();
            }
        }
    }

    /// The same, and keeps nothing.
    pub fn release(&mut self) {
        self.shrink();
        if self.bytes.is_empty() {
            *self = Self::default();
        }
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("whole", &self.len()).field("held", &self.held()).finish()
    }
}

/// A WebSocket that is open, or has been closed by its peer.
pub struct WebSocket {
    // Both are Some until the end.
    responder: Option<Box<dyn Respond>>,
    request: Option<Box<Request>>,
    messages: Messages,
    closed: Option<Closed>,
}

/// The next event of the peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A message.
    Message(MessageKind, &'a [u8]),
    /// The WebSocket is closed, and every message has been handed out. Returned again and again.
    Closed(&'a Closed),
    /// Nothing yet: an [observer](WebSocket::observe) is told when it may be worth a look.
    Nothing,
}

impl WebSocket {
    pub(crate) fn new(responder: Box<dyn Respond>, request: Box<Request>) -> Self {
        Self {
            responder: Some(responder),
            request: Some(request),
            messages: Messages::default(),
            closed: None,
        }
    }

    /// The request that has asked for it.
    pub fn request(&self) -> &Request {
        self.request.as_ref().expect("present until closed")
    }

    /// The next message of the peer, or that none will come.
    pub fn next_message(&mut self) -> Incoming<'_> {
        if self.messages.is_empty() && self.closed.is_none() {
            self.messages.shrink();
            let responder = self.responder.as_mut().expect("present until closed");
            self.closed = responder.take_messages(&mut self.messages);
        }
        if !self.messages.is_empty() {
            return match self.messages.next_message() {
                Some((kind, message)) => Incoming::Message(kind, message),
                None => Incoming::Nothing,
            };
        }
        self.messages.release();
        self.closed.as_ref().map_or(Incoming::Nothing, Incoming::Closed)
    }

    /// Sends a message. It leaves at once if the socket takes it; else it is queued and delivered by the engine. Never waits. Text
    /// has to be UTF-8.
    ///
    /// # Errors
    /// The WebSocket is closed, or its peer is gone.
    pub fn send(&mut self, kind: MessageKind, message: Last<'_>) -> Result<Flow, SendError> {
        let request = self.request.as_ref().expect("present until closed");
        self.responder.as_mut().expect("present until closed").send_message(request, kind, message)
    }

    /// Has `observer` told of changes: a message, the end, room for more; see [`Respond::observe`].
    pub fn observe(&mut self, observer: Arc<dyn Observe>) {
        self.responder.as_mut().expect("present until closed").observe(observer);
    }

    /// Whether to wait for room before more is sent.
    pub fn is_full(&self) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.is_full())
    }

    /// Whether nothing can be sent any more, because the peer is gone.
    pub fn is_gone(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.is_closed())
    }

    /// Closes it, with a code that an endpoint may send (1000 to 1003, 1007 to 1014, 3000 to 4999) and a reason of at most 123
    /// bytes, which is cut there. If the peer has closed it nothing is sent. Messages that have not been taken are dropped.
    pub fn close(mut self, code: u16, reason: &str) {
        self.end(code, reason);
    }

    fn end(&mut self, code: u16, reason: &str) {
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            responder.close_websocket(request, code, reason);
        }
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        /// The server has met a condition that keeps it from going on (RFC 6455 §7.4.1).
        const INTERNAL_ERROR: u16 = 1011;
        self.end(INTERNAL_ERROR, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(messages: &mut Messages) -> Vec<(MessageKind, Vec<u8>)> {
        std::iter::from_fn(|| messages.next_message().map(|(kind, bytes)| (kind, bytes.to_vec()))).collect()
    }

    #[test]
    fn whole_messages_move_and_the_begun_one_stays() {
        let (mut from, mut to) = (Messages::default(), Messages::default());
        from.incoming().extend_from_slice(b"one");
        from.complete(MessageKind::Text);
        from.complete(MessageKind::Binary);
        from.incoming().extend_from_slice(b"tw");
        from.move_to(&mut to);
        assert_eq!(all(&mut to), [(MessageKind::Text, b"one".to_vec()), (MessageKind::Binary, vec![])]);
        assert_eq!((from.held(), from.waiting(), from.len()), (2, 0, 0));
        from.incoming().push(b'o');
        from.complete(MessageKind::Binary);
        to.shrink();
        from.move_to(&mut to);
        assert_eq!(all(&mut to), [(MessageKind::Binary, b"two".to_vec())]);
        from.move_to(&mut to);
        assert!(to.is_empty() && from.is_empty() && from.held() == 0);
    }

    #[test]
    fn messages_that_were_handed_out_are_not_held() {
        let mut messages = Messages::default();
        messages.incoming().extend_from_slice(&[7; 100_000]);
        messages.complete(MessageKind::Binary);
        messages.incoming().extend_from_slice(b"x");
        messages.complete(MessageKind::Binary);
        assert_eq!(messages.held(), 100_001);
        assert_eq!(messages.next_message().map(|(_, bytes)| bytes.len()), Some(100_000));
        assert_eq!(messages.held(), 1);
        assert!(messages.next_message().is_some() && messages.next_message().is_none());
        messages.shrink();
        assert_eq!((messages.held(), messages.bytes.capacity()), (0, 0));
    }
}
