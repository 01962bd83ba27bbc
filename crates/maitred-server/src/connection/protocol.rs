//! The protocol of a connection. `receive.rs` and `framed/` have the differences; code for every exchange uses
//! `streams()` and `stream_of()`, whatever the protocol is.

use maitred_h1::Receiver;

use super::framed::Framed;

/// The protocol of a connection; see the module text.
pub(crate) enum Protocol {
    /// One exchange at a time, in the order of the requests.
    H1(Receiver),
    /// HTTP/2: any number of exchanges at once, interleaved in frames.
    Framed(Box<Framed>),
}

impl Protocol {
    /// HTTP/1 before the first request.
    pub(crate) fn h1() -> Self {
        Self::H1(Receiver::new())
    }

    /// The state of the frames; none with HTTP/1.
    pub(super) fn framed(&mut self) -> Option<&mut Framed> {
        match self {
            Self::H1(_) => None,
            Self::Framed(framed) => Some(framed),
        }
    }

    pub(super) fn is_framed(&self) -> bool {
        matches!(self, Self::Framed(_))
    }

    /// Whether no incomplete request has been received.
    pub(super) fn is_between_requests(&self) -> bool {
        match self {
            Self::H1(receiver) => receiver.is_between_requests(),
            Self::Framed(framed) => framed.streams.is_empty(),
        }
    }
}
