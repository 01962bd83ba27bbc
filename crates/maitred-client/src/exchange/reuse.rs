//! Whether a connection can be used again, and the reason if not.

use crate::keep_alive::Kept;

/// Whether the connection can have another exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It can, within these limits of the server.
    Yes(Kept),
    /// It cannot.
    No(NotReusable),
}

/// The reason why a connection cannot be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotReusable {
    /// The exchange has failed.
    Failed,
    /// The response was not read to its end.
    Unread,
    /// The request asked the server to close.
    Asked,
    /// The server closes: `Connection: close`, or HTTP/1.0 without `keep-alive`.
    ServerCloses,
    /// The body of the response ends with the connection.
    UntilClose,
    /// The server has closed already.
    Ended,
    /// The server's `Keep-Alive` allows no further request.
    KeepAlive,
    /// A final response came instead of a 100, and the body was not sent (CVE-2024-24791).
    NoContinue,
    /// The response began before the request had been sent.
    Early,
    /// The server took no more of the request.
    BrokenPipe,
    /// Bytes stand behind the response that belong to none.
    Surplus,
    /// The connection speaks another protocol now.
    Switched,
    /// The request or the response names NTLM or Negotiate, which authenticate the connection instead of a request.
    Authenticated,
}

/// Whether credentials or challenges have a scheme that authenticates the connection (RFC 4559 §6, and NTLM).
pub(super) fn binds_connection(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| {
        let part = part.trim_ascii_start();
        let scheme = part.split(|byte| *byte == b' ').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
    })
}
