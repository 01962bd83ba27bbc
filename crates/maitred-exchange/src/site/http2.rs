//! Settings of HTTP/2, and counts of its connections.

use std::sync::Arc;

use maitred_h2::{Counted, ErrorCode, FRAME_TYPES};
use maitred_stats::exposition::{Metric, series};
use maitred_stats::{Arena, Counters};

use super::rows::{self, Row};

/// Connections with HTTP/2.
const CONNECTIONS_TOTAL: &str = "maitred_http2_connections_total";
/// Frames, by direction and type.
const FRAMES_TOTAL: &str = "maitred_http2_frames_total";
/// Streams that were reset, by side.
const RESETS_TOTAL: &str = "maitred_http2_resets_total";
/// Bytes of heads, by direction, before and after compression.
const HEADS_TOTAL: &str = "maitred_http2_head_bytes_total";
/// Waits of responses for the window of the peer.
const WAITS_TOTAL: &str = "maitred_http2_window_waits_total";
/// Connections that ended with an error, by name of the error.
const ERRORS_TOTAL: &str = "maitred_http2_errors_total";

const DIRECTIONS: [&str; 2] = ["received", "sent"];
/// Reset by the peer, by this side, or refused because there were too many.
const RESETS: [&str; 3] = ["peer", "server", "refused"];
/// Encoded bytes, and bytes of names and values.
const FORMS: [&str; 2] = ["wire", "plain"];
/// The window of the stream, and that of the connection.
const WINDOWS: [&str; 2] = ["stream", "connection"];
/// Error codes (RFC 9113 §7); the last entry stands for all others.
const ERRORS: [(ErrorCode, &str); 6] = [
    (ErrorCode::ProtocolError, "protocol-error"),
    (ErrorCode::FlowControlError, "flow-control-error"),
    (ErrorCode::FrameSizeError, "frame-size-error"),
    (ErrorCode::CompressionError, "compression-error"),
    (ErrorCode::EnhanceYourCalm, "enhance-your-calm"),
    (ErrorCode::StreamClosed, "stream-closed"),
];

/// Settings of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Settings {
    /// Most streams of one connection at a time. A reset stream counts until its handler is done.
    pub streams: u32,
    /// Only HTTP/2 is spoken: other connections are closed.
    pub only: bool,
    /// A client of HTTP/1.1 without TLS may upgrade (RFC 7540 §3.2).
    pub upgrade: bool,
}

impl Default for Http2Settings {
    fn default() -> Self {
        Self { streams: 128, only: false, upgrade: false }
    }
}

/// The counters.
pub struct Http2Counters {
    connections: Counters<1>,
    frames: Counters<{ DIRECTIONS.len() * FRAME_TYPES.len() }>,
    resets: Counters<{ RESETS.len() }>,
    heads: Counters<{ DIRECTIONS.len() * FORMS.len() }>,
    waits: Counters<{ WINDOWS.len() }>,
    errors: Counters<{ ERRORS.len() + 1 }>,
    open: Open,
}

/// Held by each open connection; the number of holders is the number of connections.
pub type Open = Arc<()>;

impl Http2Counters {
    /// Counters in this memory.
    pub fn new(arena: &Arena) -> Self {
        let named = |name: &str, labels: &[(&str, &str)]| series(name, labels);
        Self {
            connections: Counters::in_arena(arena, [named(CONNECTIONS_TOTAL, &[])]),
            frames: Counters::in_arena(arena, std::array::from_fn(|at| named(FRAMES_TOTAL, &of_frame(at)))),
            resets: Counters::in_arena(arena, RESETS.map(|by| named(RESETS_TOTAL, &[("by", by)]))),
            heads: Counters::in_arena(arena, std::array::from_fn(|at| named(HEADS_TOTAL, &of_head(at)))),
            waits: Counters::in_arena(arena, WINDOWS.map(|of| named(WAITS_TOTAL, &[("window", of)]))),
            errors: Counters::in_arena(
                arena,
                std::array::from_fn(|at| named(ERRORS_TOTAL, &[("error", error_name(at))])),
            ),
            open: Open::default(),
        }
    }

    /// Counts a connection, and its end when the returned value is dropped.
    pub fn note_connection(&self) -> Open {
        self.connections.add(0, 1);
        Arc::clone(&self.open)
    }

    /// Number of open connections with HTTP/2.
    pub fn open(&self) -> u64 {
        Arc::strong_count(&self.open) as u64 - 1
    }

    /// Counts a connection that ends with this error.
    pub fn note_error(&self, code: ErrorCode) {
        let place = ERRORS.iter().position(|(known, _)| *known == code);
        self.errors.add(place.unwrap_or(ERRORS.len()), 1);
    }

    /// Counts waits of responses for the window of their stream and of their connection.
    pub fn note_waits(&self, waits: [u64; 2]) {
        for (at, count) in waits.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.waits.add(at, count);
        }
    }

    /// Adds the counts of a connection.
    pub fn note(&self, counted: &Counted) {
        let frames = counted.received.iter().chain(&counted.sent);
        for (at, count) in frames.enumerate().filter(|(_, count)| **count > 0) {
            self.frames.add(at, *count);
        }
        let resets = [counted.resets_received, counted.resets_sent, counted.refused];
        for (at, count) in resets.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.resets.add(at, count);
        }
        let (received, sent) = (counted.heads_received, counted.heads_sent);
        let heads = [received.0, received.1, sent.0, sent.1];
        for (at, count) in heads.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.heads.add(at, count);
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let connections = [(CONNECTIONS_TOTAL, Vec::new(), self.connections.total(0))];
        let frames = (0..DIRECTIONS.len() * FRAME_TYPES.len())
            .map(|at| (FRAMES_TOTAL, of_frame(at).to_vec(), self.frames.total(at)));
        let resets =
            (0..RESETS.len()).map(|at| (RESETS_TOTAL, vec![("by", RESETS[at])], self.resets.total(at)));
        let heads = (0..DIRECTIONS.len() * FORMS.len())
            .map(|at| (HEADS_TOTAL, of_head(at).to_vec(), self.heads.total(at)));
        let waits =
            (0..WINDOWS.len()).map(|at| (WAITS_TOTAL, vec![("window", WINDOWS[at])], self.waits.total(at)));
        let errors = (0..=ERRORS.len())
            .map(|at| (ERRORS_TOTAL, vec![("error", error_name(at))], self.errors.total(at)));
        connections.into_iter().chain(frames).chain(resets).chain(heads).chain(waits).chain(errors)
    }

    /// Counts above zero, by series, for the control.
    pub fn totals(&self) -> Vec<(String, u64)> {
        rows::totals(self.rows())
    }

    /// Calls `show` with all counts as figures.
    pub fn with_metrics(&self, show: impl FnOnce(&[Metric<'_>])) {
        rows::with_metrics(self.rows(), help, show);
    }
}

fn of_frame(at: usize) -> [(&'static str, &'static str); 2] {
    let (direction, kind) = (at / FRAME_TYPES.len(), at % FRAME_TYPES.len());
    [("direction", DIRECTIONS[direction]), ("type", FRAME_TYPES[kind])]
}

fn of_head(at: usize) -> [(&'static str, &'static str); 2] {
    [("direction", DIRECTIONS[at / FORMS.len()]), ("form", FORMS[at % FORMS.len()])]
}

fn error_name(at: usize) -> &'static str {
    ERRORS.get(at).map_or("other", |(_, name)| name)
}

fn help(name: &str) -> &'static str {
    match name {
        CONNECTIONS_TOTAL => "Connections that have spoken HTTP/2.",
        FRAMES_TOTAL => "Frames of HTTP/2.",
        RESETS_TOTAL => "Streams of HTTP/2 that were reset, by whom, or refused because there were too many.",
        HEADS_TOTAL => "Bytes of heads in HTTP/2, on the wire and as names and values.",
        WAITS_TOTAL => "Responses that have waited for a window of HTTP/2, by whose window it was.",
        _ => "Connections of HTTP/2 that ended with an error, by its name.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maitred_stats::memory;

    #[test]
    fn what_is_counted_is_found_under_its_name() {
        let counters = Http2Counters::new(&Arena::new(memory::private(1 << 16)));
        assert!(counters.totals().is_empty(), "what has not happened is not shown");
        let mut counted = Counted::default();
        counted.received[1] = 3;
        counted.sent[0] = 2;
        counted.refused = 1;
        counted.heads_sent = (10, 40);
        counters.note(&counted);
        counters.note_waits([0, 5]);
        counters.note_error(ErrorCode::EnhanceYourCalm);
        counters.note_error(ErrorCode::InternalError);
        let open = counters.note_connection();
        assert_eq!(counters.open(), 1);
        drop(open);
        assert_eq!(counters.open(), 0);
        let expected = [
            (series(CONNECTIONS_TOTAL, &[]), 1),
            (series(FRAMES_TOTAL, &[("direction", "received"), ("type", "headers")]), 3),
            (series(FRAMES_TOTAL, &[("direction", "sent"), ("type", "data")]), 2),
            (series(RESETS_TOTAL, &[("by", "refused")]), 1),
            (series(HEADS_TOTAL, &[("direction", "sent"), ("form", "wire")]), 10),
            (series(HEADS_TOTAL, &[("direction", "sent"), ("form", "plain")]), 40),
            (series(WAITS_TOTAL, &[("window", "connection")]), 5),
            (series(ERRORS_TOTAL, &[("error", "enhance-your-calm")]), 1),
            (series(ERRORS_TOTAL, &[("error", "other")]), 1),
        ];
        assert_eq!(counters.totals(), expected);
    }
}
