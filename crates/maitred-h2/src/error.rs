//! Errors of streams and of connections.

use std::fmt;

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError = 0x0,
    /// The peer breaks the protocol.
    ProtocolError = 0x1,
    /// The fault is on this side.
    InternalError = 0x2,
    /// The peer sends more than a window lets it, or gives more than a window can hold.
    FlowControlError = 0x3,
    /// The peer does not acknowledge settings.
    SettingsTimeout = 0x4,
    /// A frame on a stream that the peer has ended.
    StreamClosed = 0x5,
    /// A frame of a length that its type cannot have.
    FrameSizeError = 0x6,
    /// The stream was not processed: its request can be sent again.
    RefusedStream = 0x7,
    /// The stream is not needed any more.
    Cancel = 0x8,
    /// A header block cannot be decoded.
    CompressionError = 0x9,
    /// The connection of a CONNECT has failed.
    ConnectError = 0xa,
    /// The peer does too much of something.
    EnhanceYourCalm = 0xb,
    /// The transport is not secure enough.
    InadequateSecurity = 0xc,
    /// The request has to come by HTTP/1.1.
    Http11Required = 0xd,
}

/// The connection ends: the peer is told by [`put_goaway`](crate::Connection::put_goaway), then it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code for the peer.
    pub code: ErrorCode,
    /// The reason, for the error log and the peer. It names the budget if one was passed, and contains nothing the peer
    /// sent.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(crate) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::ProtocolError, reason)
    }

    pub(crate) const fn size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FrameSizeError, reason)
    }

    pub(crate) const fn calm(reason: &'static str) -> Self {
        Self::new(ErrorCode::EnhanceYourCalm, reason)
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.reason)
    }
}

impl std::error::Error for ConnectionError {}
