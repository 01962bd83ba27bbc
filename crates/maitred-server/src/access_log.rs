//! The access log's line: the combined format, with the time taken in seconds behind it.
//!
//! `peer - - [time] "request line" status bytes "referer" "user agent" seconds`
//!
//! What a client sent is made printable, so that a line is always one line and a terminal is not
//! told what to do.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maitred_io::clock;

use crate::outcome::{End, Outcome};

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    second: u64,
    time: String,
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::new(Line::default());
}

/// Calls `write` with the line of `outcome`.
pub(crate) fn with_line(outcome: &Outcome<'_>, write: impl FnOnce(&[u8])) {
    LINE.with_borrow_mut(|line| {
        line.set_time(clock::unix_seconds());
        line.compose(outcome);
        write(&line.bytes);
    });
}

impl Line {
    /// Local time, formatted once a second.
    fn set_time(&mut self, second: u64) {
        if self.second == second && !self.time.is_empty() {
            return;
        }
        self.second = second;
        let time = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
        let zoned = time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system());
        self.time = zoned.strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
    }

    fn compose(&mut self, outcome: &Outcome<'_>) {
        let out = &mut self.bytes;
        let head = outcome.head;
        out.clear();
        // Writing to memory does not fail.
        let _ = write!(out, "{} - - [{}] \"", outcome.peer.ip(), self.time);
        push_printable(out, head.method.as_str().as_bytes());
        out.push(b' ');
        push_printable(out, head.target());
        let _ =
            write!(out, " {}\" {} {} \"", head.version.as_str(), outcome.status.code(), outcome.body_bytes);
        push_printable(out, head.fields.first("referer").unwrap_or(b"-"));
        out.extend_from_slice(b"\" \"");
        push_printable(out, head.fields.first("user-agent").unwrap_or(b"-"));
        let micros = outcome.times.spans().total() / 1_000;
        let _ = write!(out, "\" {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        out.extend_from_slice(match outcome.end {
            End::Complete => b"\n",
            End::PeerGone => b" peer-gone\n",
            End::Cut => b" cut\n",
        });
    }
}

fn push_printable(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

/// Appends `2026-11-20T12:00:00.123456Z`.
pub(crate) fn write_iso_time(out: &mut String, unix_micros: u64) {
    let time = i64::try_from(unix_micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let time = time.unwrap_or(Timestamp::UNIX_EPOCH);
    let _ = write!(out, "{time:.6}");
}

#[cfg(test)]
mod tests {
    use crate::ids::RequestId;
    use maitred_http::{RequestHead, Status};
    use maitred_stats::Times;

    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_the_client_sent() {
        let mut head = RequestHead::default();
        head.fields.push("User-Agent", b"a\"b\x1b[31m\xff");
        let outcome = Outcome {
            head: &head,
            id: RequestId::Made(1),
            peer: "192.0.2.1:99".parse().unwrap(),
            listener: 0,
            pool: None,
            status: Status::OK,
            body_bytes: 6,
            times: Times { arrived: 1_000_000, written: 2_500_000, ..Times::default() },
            end: End::Complete,
        };
        with_line(&outcome, |line| {
            let line = std::str::from_utf8(line).unwrap();
            assert!(line.starts_with("192.0.2.1 - - ["), "{line}");
            assert!(line.ends_with("\" 200 6 \"-\" \"a\\\"b\\x1b[31m\\xff\" 0.001500\n"), "{line}");
        });
    }

    #[test]
    fn the_error_log_s_time_is_utc_with_microseconds() {
        let mut out = String::new();
        write_iso_time(&mut out, 1_000_000_000_000_001);
        assert_eq!(out, "2001-09-09T01:46:40.000001Z");
    }
}
