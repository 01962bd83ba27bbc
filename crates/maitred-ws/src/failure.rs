//! Errors of the peer.

use std::fmt;

/// The peer broke a rule or passed a limit: the connection fails (RFC 6455 §7.1.7). The peer is told by a close frame, then the
/// connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code to close with (RFC 6455 §7.4.1): [`PROTOCOL`](Self::PROTOCOL), [`DATA`](Self::DATA) or [`TOO_BIG`](Self::TOO_BIG).
    pub code: u16,
    /// The reason, for the error log and the peer; shorter than 124 bytes, and contains nothing the peer sent.
    pub reason: &'static str,
}

impl Failure {
    /// A frame that the protocol does not allow.
    pub const PROTOCOL: u16 = 1002;
    /// Data that does not fit its type: text that is not UTF-8, or compressed data that cannot be inflated.
    pub const DATA: u16 = 1007;
    /// A message beyond one of the [`Limits`](crate::Limits).
    pub const TOO_BIG: u16 = 1009;

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self { code: Self::PROTOCOL, reason }
    }

    pub(crate) const fn data(reason: &'static str) -> Self {
        Self { code: Self::DATA, reason }
    }

    pub(crate) const fn too_big(reason: &'static str) -> Self {
        Self { code: Self::TOO_BIG, reason }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Failure {}
