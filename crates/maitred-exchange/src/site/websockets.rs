//! Settings of WebSocket, and counts.

use std::time::Duration;

use maitred_stats::exposition::{Metric, series};
use maitred_stats::{Arena, Counters};

use super::rows::{self, Row};

/// WebSockets that were accepted.
const ACCEPTED_TOTAL: &str = "maitred_websockets_accepted_total";
/// Requests for a WebSocket that were answered otherwise.
const REFUSED_TOTAL: &str = "maitred_websockets_refused_total";
/// WebSockets that have ended, by the code of the closing handshake.
const ENDED_TOTAL: &str = "maitred_websockets_ended_total";
/// WebSockets whose peers have not answered a ping.
const SILENT_TOTAL: &str = "maitred_websockets_silent_total";
/// Messages, by direction.
const MESSAGES_TOTAL: &str = "maitred_websocket_messages_total";
/// Bytes of messages, by direction, uncompressed.
const BYTES_TOTAL: &str = "maitred_websocket_message_bytes_total";

const DIRECTIONS: [&str; 2] = ["received", "sent"];
/// Codes with a count of their own (RFC 6455 §7.4.1); the last entry stands for all others.
const CODES: [(u16, &str); 13] = [
    (1000, "1000"),
    (1001, "1001"),
    (1002, "1002"),
    (1003, "1003"),
    (1005, "1005"),
    (1006, "1006"),
    (1007, "1007"),
    (1008, "1008"),
    (1009, "1009"),
    (1010, "1010"),
    (1011, "1011"),
    (1012, "1012"),
    (1013, "1013"),
];

/// Settings of WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketSettings {
    /// Most bytes of a message, uncompressed. Beyond: closed with 1009.
    pub max_message: u64,
    /// Silence of a peer after which it gets a ping; 0: no pings.
    pub ping: Duration,
    /// Silence of a peer after a ping beyond which the WebSocket is closed with 1011; 0: no limit.
    pub timeout: Duration,
    /// Messages are compressed for a peer that offers it (RFC 7692).
    pub deflate: bool,
    /// Most bytes of compression contexts, of all WebSockets of a worker; beyond it each message is compressed by
    /// itself.
    pub contexts: u64,
}

impl Default for WebSocketSettings {
    fn default() -> Self {
        Self {
            max_message: 16 * 1024 * 1024,
            ping: Duration::from_secs(20),
            timeout: Duration::from_secs(20),
            deflate: true,
            contexts: 64 * 1024 * 1024,
        }
    }
}

/// The counters.
pub struct WebSocketCounters {
    accepted: Counters<1>,
    refused: Counters<1>,
    silent: Counters<1>,
    ended: Counters<{ CODES.len() + 1 }>,
    messages: Counters<{ DIRECTIONS.len() }>,
    bytes: Counters<{ DIRECTIONS.len() }>,
}

impl WebSocketCounters {
    /// Counters in this memory.
    pub fn new(arena: &Arena) -> Self {
        let one = |name: &str| Counters::in_arena(arena, [series(name, &[])]);
        let directed = |name: &str| {
            Counters::in_arena(arena, DIRECTIONS.map(|direction| series(name, &[("direction", direction)])))
        };
        Self {
            accepted: one(ACCEPTED_TOTAL),
            refused: one(REFUSED_TOTAL),
            silent: one(SILENT_TOTAL),
            ended: Counters::in_arena(
                arena,
                std::array::from_fn(|at| series(ENDED_TOTAL, &[("code", code_name(at))])),
            ),
            messages: directed(MESSAGES_TOTAL),
            bytes: directed(BYTES_TOTAL),
        }
    }

    /// Counts an accepted WebSocket.
    pub fn note_accepted(&self) {
        self.accepted.add(0, 1);
    }

    /// Counts a request for a WebSocket that was answered otherwise.
    pub fn note_refused(&self) {
        self.refused.add(0, 1);
    }

    /// Counts a peer that has not answered a ping.
    pub fn note_silent(&self) {
        self.silent.add(0, 1);
    }

    /// Counts the end of a WebSocket with this code.
    pub fn note_ended(&self, code: u16) {
        let place = CODES.iter().position(|(known, _)| *known == code);
        self.ended.add(place.unwrap_or(CODES.len()), 1);
    }

    /// Counts a received message.
    pub fn note_received(&self, bytes: u64) {
        self.messages.add(0, 1);
        self.bytes.add(0, bytes);
    }

    /// Counts a sent message.
    pub fn note_sent(&self, bytes: u64) {
        self.messages.add(1, 1);
        self.bytes.add(1, bytes);
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let ones = [
            (ACCEPTED_TOTAL, Vec::new(), self.accepted.total(0)),
            (REFUSED_TOTAL, Vec::new(), self.refused.total(0)),
            (SILENT_TOTAL, Vec::new(), self.silent.total(0)),
        ];
        let ended =
            (0..=CODES.len()).map(|at| (ENDED_TOTAL, vec![("code", code_name(at))], self.ended.total(at)));
        let of = |at: usize| vec![("direction", DIRECTIONS[at])];
        let messages = (0..DIRECTIONS.len()).map(move |at| (MESSAGES_TOTAL, of(at), self.messages.total(at)));
        let bytes = (0..DIRECTIONS.len()).map(move |at| (BYTES_TOTAL, of(at), self.bytes.total(at)));
        ones.into_iter().chain(ended).chain(messages).chain(bytes)
    }

    /// Number of open WebSockets. One that ends meanwhile may be missing already.
    pub fn open(&self) -> u64 {
        let ended: u64 = (0..=CODES.len()).map(|at| self.ended.total(at)).sum();
        self.accepted.total(0).saturating_sub(ended)
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

fn code_name(at: usize) -> &'static str {
    CODES.get(at).map_or("other", |(_, name)| name)
}

fn help(name: &str) -> &'static str {
    match name {
        ACCEPTED_TOTAL => "WebSockets that were accepted.",
        REFUSED_TOTAL => "Requests for a WebSocket that were answered otherwise.",
        SILENT_TOTAL => "WebSockets that were closed because their peer did not answer a ping.",
        ENDED_TOTAL => {
            "WebSockets that have ended, by the code of the closing handshake; 1006 is without one."
        }
        MESSAGES_TOTAL => "Messages of WebSockets, by direction.",
        _ => "Bytes of messages of WebSockets, by direction, as the application has them.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maitred_stats::memory;

    #[test]
    fn what_is_counted_is_found_under_its_name() {
        let counters = WebSocketCounters::new(&Arena::new(memory::private(1 << 16)));
        assert!(counters.totals().is_empty(), "what has not happened is not shown");
        counters.note_accepted();
        assert_eq!(counters.open(), 1);
        counters.note_ended(1012);
        assert_eq!(counters.open(), 0);
        counters.note_ended(4711);
        counters.note_received(5);
        counters.note_sent(7);
        counters.note_sent(8);
        let expected = [
            (series(ACCEPTED_TOTAL, &[]), 1),
            (series(ENDED_TOTAL, &[("code", "1012")]), 1),
            (series(ENDED_TOTAL, &[("code", "other")]), 1),
            (series(MESSAGES_TOTAL, &[("direction", "received")]), 1),
            (series(MESSAGES_TOTAL, &[("direction", "sent")]), 2),
            (series(BYTES_TOTAL, &[("direction", "received")]), 5),
            (series(BYTES_TOTAL, &[("direction", "sent")]), 15),
        ];
        assert_eq!(counters.totals(), expected);
    }
}
