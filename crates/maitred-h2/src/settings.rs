//! What this side announces, and what it knows of the peer's settings.

use maitred_http::limits::{MAX_FIELDS, MAX_HEAD, MAX_TARGET};

use crate::budgets::Budgets;

/// Limits for one connection. What reaches a limit is accepted, one more is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Open streams. Past it: the stream is refused, and the peer may send its request again.
    ///
    /// Source: RFC 9113 §6.5.2 recommends no less than 100; nginx and Jetty take 128.
    pub max_streams: u32,
    /// Bytes of a request body that the peer may send before it is given more; 0 to 2^31 − 1. Past it: the stream is reset.
    ///
    /// Reason: what a handler that does not read keeps in memory. Source: at 256 KiB and 50 ms to the peer and back a stream has 5 MB/s;
    /// Jetty takes 512 KiB, h2o and nginx begin with 64 KiB.
    pub stream_window: u32,
    /// The same of all streams together; 65,535 to 2^31 − 1, less counts as 65,535 (RFC 9113 §6.9.2). Past it: the connection ends.
    ///
    /// Source: hyper, Go and Jetty take 1 MiB.
    pub connection_window: u32,
    /// Bytes of a frame's payload; 16,384 to 2^24 − 1 (RFC 9113 §6.5.2). Past it: the connection ends.
    pub max_frame: u32,
    /// Bytes of a head, each field with 32 bytes more (RFC 9113 §6.5.2). Past it: 431; past four times as much: the connection ends.
    pub max_head: usize,
    /// Fields in a head; pieces of a cookie do not count. Past it: 431.
    pub max_fields: usize,
    /// Bytes of a path with its query. Past it: 414.
    pub max_target: usize,
    /// Whether the extended CONNECT is offered (RFC 8441), which carries WebSocket.
    pub connect: bool,
    /// What a peer may do in vain.
    pub budgets: Budgets,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_streams: 128,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
            max_frame: 16_384,
            max_head: MAX_HEAD,
            max_fields: MAX_FIELDS,
            max_target: MAX_TARGET,
            connect: false,
            budgets: Budgets::default(),
        }
    }
}
