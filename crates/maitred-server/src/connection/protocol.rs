//! Which protocol a connection speaks. `h1.rs` and `framed/` have what differs. What holds for every exchange goes over
//! `streams()` and `stream_of()`, whichever protocol it is.

use maitred_h1::Receiver;

use super::framed::Framed;

/// See the module text.
pub(crate) enum Protocol {
    /// One exchange at a time, in the order of the requests.
    H1(Receiver),
    /// HTTP/2: any number of exchanges at once, interleaved in frames.
    Framed(Box<Framed>),
}

impl Protocol {
    /// HTTP/1, before the first request.
    pub(crate) fn h1() -> Self {
        Self::H1(Receiver::new())
    }

    /// The frames, where there are any.
    pub(super) fn framed(&mut self) -> Option<&mut Framed> {
        match self {
            Self::H1(_) => None,
            Self::Framed(framed) => Some(framed),
        }
    }

    pub(super) fn is_framed(&self) -> bool {
        matches!(self, Self::Framed(_))
    }

    /// Whether nothing of a request has been received that is not complete.
    pub(super) fn is_between_requests(&self) -> bool {
        match self {
            Self::H1(receiver) => receiver.is_between_requests(),
            Self::Framed(framed) => framed.streams.is_empty(),
        }
    }
}
