//! The events of a connection for its caller.

use maitred_http::Status;
use maitred_http::fields::Span;

use crate::priority::Priority;

/// An event of the peer. Streams are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// All complete frames are used up.
    NeedMore,
    /// A request begins; its head stands in the one given to [`poll`](crate::Connection::poll).
    Head {
        /// Higher than any before.
        stream: u32,
        /// Facts that are not part of the head.
        facts: HeadFacts,
    },
    /// A part of its body, as it has come; never empty. The caller gives the connection credit for it, and the stream.
    Data {
        /// The number of its stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The request is complete. Trailers are checked and dropped. Does not follow a head that [ends](HeadFacts::ends).
    End {
        /// The number of its stream.
        stream: u32,
    },
    /// The stream is over: the peer has reset it, or it has been reset for an error of the peer, which the control bytes tell it.
    Reset {
        /// The number of the stream.
        stream: u32,
    },
    /// So many bytes more may be sent on an open stream, or with 0 on the connection (RFC 9113 §6.9). The caller owns
    /// the window, and checks that it does not pass 2^31 − 1.
    Credit {
        /// The number of the stream, or 0.
        stream: u32,
        /// 1 to 2^31 − 1.
        bytes: u32,
    },
    /// The outward windows of all streams change by so many bytes (RFC 9113 §6.9.2), and may become negative by it. Whether one of them
    /// passes 2^31 − 1 is the caller's to check.
    Window {
        /// −(2^31 − 1) to 2^31 − 1, not 0.
        change: i64,
    },
    /// The window of an open stream is too small for the distance to the peer: the peer fills it, and the caller takes
    /// all bytes. So many bytes more would double it, or make it as large as it may be. The caller may give
    /// them by [`widen`](crate::Connection::widen).
    Narrow {
        /// The number of the stream.
        stream: u32,
        /// 1 to 2^31 − 1.
        bytes: u32,
    },
    /// The peer has changed the priority of an open stream (RFC 9218 §7.1).
    Priority {
        /// The number of the stream.
        stream: u32,
        /// The new one.
        priority: Priority,
    },
    /// The peer opens no further streams (RFC 9113 §6.8). Its requests under way are answered.
    Leaving,
}

/// Facts of a header block that are not part of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// No body follows, the request is complete. There is no [`End`](Event::End) then.
    pub ends: bool,
    /// The peer waits for a 100 before it sends the body (RFC 9110 §10.1.1). Never set where the request is complete.
    pub expect_continue: bool,
    /// The path is `*`, which only OPTIONS has (RFC 9113 §8.3.1).
    pub asterisk: bool,
    /// The `:protocol` of an extended CONNECT (RFC 8441 §4), in the fields of the head.
    pub protocol: Option<Span>,
    /// The urgency of the response: by a PRIORITY_UPDATE that has come before, else by the `Priority` field. None if
    /// the peer sends neither. That differs from the default said by name: peers that speak of priorities want them
    /// obeyed.
    pub priority: Option<Priority>,
    /// The request is not to be handled but answered with this status, and the reason: 400 for a request that is
    /// well-formed in HTTP/2 but can be read in two ways, 414 target too long, 417 unknown expectation, 431 head too
    /// large, 501 method too long. The head is not complete then.
    pub objection: Option<(Status, &'static str)>,
}
