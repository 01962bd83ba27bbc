//! The access log's line, as a [`Format`] says.
//!
//! What a client sent is made printable, so that a line is always one line and a terminal is not
//! told what to do.

mod escape;
mod format;
mod mask;
mod number;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maitred_io::clock;
use maitred_io::line_writer::Notice;
use maitred_stats::Spans;

use crate::outcome::{End, Outcome, RouteName};
use crate::outer::outer_queue;
use escape::{push_json, push_printable};
pub use format::{BadFormat, Format};
use format::{Escape, Field, Piece};
pub use mask::Mask;
use number::{push_address, push_decimal, push_fraction, push_seconds};

/// What the indexes of an outcome mean, for the log.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) pools: Vec<String>,
    pub(crate) listeners: Vec<String>,
}

/// How the lines of a log are made.
pub(crate) struct Lines {
    pub(crate) format: Format,
    pub(crate) mask: Option<Mask>,
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    second: u64,
    time: String,
    /// The second of the last start in UTC, and its text.
    start: (u64, String),
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::new(Line::default());
}

impl Lines {
    /// Calls `write` with the line of `outcome`.
    pub(crate) fn with_line(&self, outcome: &Outcome<'_>, names: &Names, write: impl FnOnce(&[u8])) {
        LINE.with_borrow_mut(|line| {
            if self.format.has_local_time {
                line.set_time(clock::unix_seconds());
            }
            line.compose(self, outcome, names);
            write(&line.bytes);
        });
    }

    /// What the writer says about missing lines, in the form of the others.
    pub(crate) fn notice(&self) -> Option<fn(Notice) -> String> {
        (self.format.escape == Escape::Json).then_some(|notice| match notice {
            Notice::Missing(lines) => {
                format!("{{\"notice\":\"lines are missing here\",\"missing\":{lines}}}")
            }
            Notice::NotRotated(error) => {
                format!("{{\"notice\":\"this log could not be rotated\",\"errno\":{error}}}")
            }
        })
    }
}

impl Line {
    /// Local time, formatted once a second.
    fn set_time(&mut self, second: u64) {
        if self.second == second && !self.time.is_empty() {
            return;
        }
        self.second = second;
        self.time = strftime("%d/%b/%Y:%H:%M:%S %z", second);
    }

    fn compose(&mut self, lines: &Lines, outcome: &Outcome<'_>, names: &Names) {
        let spans = outcome.times.spans();
        self.bytes.clear();
        for piece in &lines.format.pieces {
            match piece {
                Piece::Text(text) => self.bytes.extend_from_slice(text),
                Piece::Header(name) => {
                    let value = outcome.head.fields.first(name);
                    push_text(&mut self.bytes, value, lines.format.escape);
                }
                Piece::Field(field) => self.push(*field, lines, outcome, &spans, names),
            }
        }
        self.bytes.push(b'\n');
    }

    fn push(&mut self, field: Field, lines: &Lines, outcome: &Outcome<'_>, spans: &Spans, names: &Names) {
        let (out, head, escape) = (&mut self.bytes, outcome.head, lines.format.escape);
        match field {
            Field::RemoteAddress => {
                let address = outcome.peer.ip();
                push_address(out, lines.mask.map_or(address, |mask| mask.apply(address)));
            }
            Field::RemoteUser => push_text(out, Some(head.user()), escape),
            Field::RemotePort => push_decimal(out, outcome.peer.port().into()),
            Field::LocalTime => out.extend_from_slice(self.time.as_bytes()),
            Field::Request => {
                push_text(out, Some(head.method.as_str().as_bytes()), escape);
                out.push(b' ');
                push_value(out, head.target(), escape);
                out.push(b' ');
                out.extend_from_slice(head.version.as_str().as_bytes());
            }
            Field::Method => push_text(out, Some(head.method.as_str().as_bytes()), escape),
            Field::Target => push_text(out, Some(head.target()), escape),
            Field::Path => push_text(out, Some(head.path()), escape),
            Field::Query => push_text(out, head.query(), escape),
            Field::Protocol => out.extend_from_slice(head.version.as_str().as_bytes()),
            Field::Host => push_text(out, Some(head.authority()), escape),
            Field::Status => push_decimal(out, outcome.status.code().into()),
            Field::BodyBytes => push_decimal(out, outcome.body_bytes),
            // Writing to memory does not fail.
            Field::RequestId => _ = write!(out, "{}", outcome.id),
            Field::Route => push_route(out, outcome, escape),
            Field::Pool => {
                let pool = outcome.pool.and_then(|pool| name(&names.pools, pool.into()));
                push_text(out, pool, escape);
            }
            Field::Listener => {
                let index = usize::try_from(outcome.listener).unwrap_or(usize::MAX);
                push_text(out, name(&names.listeners, index), escape);
            }
            Field::Ended => out.extend_from_slice(outcome.end.name().as_bytes()),
            Field::EndedMark if outcome.end == End::Complete => {}
            Field::EndedMark => {
                out.push(b' ');
                out.extend_from_slice(outcome.end.name().as_bytes());
            }
            Field::Start => push_seconds(out, wall_micros(outcome.times.arrived)),
            Field::StartIso => {
                let micros = wall_micros(outcome.times.arrived);
                let (second, text) = &mut self.start;
                if *second != micros / 1_000_000 || text.is_empty() {
                    *second = micros / 1_000_000;
                    *text = format!("{:.0}", timestamp(micros - micros % 1_000_000))
                        .trim_end_matches('Z')
                        .to_owned();
                }
                out.extend_from_slice(text.as_bytes());
                push_fraction(out, micros);
                out.push(b'Z');
            }
            Field::Span(span) => push_seconds(out, spans.get(span) / 1_000),
            Field::Total => push_seconds(out, spans.total() / 1_000),
            Field::Outer => {
                let outer = outer_queue(&head.fields, outcome.times.arrived);
                push_seconds(out, outer.unwrap_or(0) / 1_000);
            }
        }
    }
}

fn name(names: &[String], index: usize) -> Option<&[u8]> {
    names.get(index).map(String::as_bytes)
}

/// What is not there, or is empty, is a hyphen, or in JSON an empty text.
fn push_text(out: &mut Vec<u8>, value: Option<&[u8]>, escape: Escape) {
    match value.filter(|value| !value.is_empty()) {
        Some(value) => push_value(out, value, escape),
        None if escape == Escape::Json => {}
        None => out.push(b'-'),
    }
}

fn push_value(out: &mut Vec<u8>, value: &[u8], escape: Escape) {
    match escape {
        Escape::Text => push_printable(out, value),
        Escape::Json => push_json(out, value),
    }
}

fn push_route(out: &mut Vec<u8>, outcome: &Outcome<'_>, escape: Escape) {
    match outcome.route() {
        None => push_text(out, None, escape),
        Some(RouteName::Engine(route)) => push_text(out, Some(route.as_bytes()), escape),
        // Printable and escaped for text already.
        Some(RouteName::Shape(route)) => {
            let begin = out.len();
            // Writing to memory does not fail.
            let _ = write!(out, "{route}");
            if escape == Escape::Json && out[begin..].iter().any(|byte| matches!(byte, b'"' | b'\\')) {
                let text = out.split_off(begin);
                push_json(out, &text);
            }
        }
    }
}

/// Nanoseconds from the monotonic clock to the real one, and the second in which that was found out.
static OFFSET: AtomicI64 = AtomicI64::new(0);
static OFFSET_OF: AtomicU64 = AtomicU64::new(0);

/// A monotonic time in microseconds since 1970. All lines of a second use the same distance between the clocks: their
/// order is that of the monotonic clock.
fn wall_micros(monotonic: u64) -> u64 {
    let second = clock::unix_seconds();
    let is_old = OFFSET_OF.load(Ordering::Relaxed) != second;
    // Who finds none at all does not wait for the one who is about to store it.
    if (is_old && OFFSET_OF.swap(second, Ordering::AcqRel) != second) || OFFSET.load(Ordering::Acquire) == 0 {
        let now = i64::try_from(clock::monotonic()).unwrap_or(0);
        let real = i64::try_from(clock::unix_micros()).unwrap_or(0).saturating_mul(1_000);
        OFFSET.store(real - now, Ordering::Release);
    }
    let offset = OFFSET.load(Ordering::Acquire);
    u64::try_from(i64::try_from(monotonic).unwrap_or(0).saturating_add(offset)).unwrap_or(0) / 1_000
}

/// strftime(3) of seconds since 1970 in local time; a pattern it does not know is itself.
#[must_use]
pub fn strftime(pattern: &str, unix_seconds: u64) -> String {
    let time = timestamp(unix_seconds.saturating_mul(1_000_000)).to_zoned(TimeZone::system());
    jiff::fmt::strtime::format(pattern, &time).unwrap_or_else(|_| pattern.to_owned())
}

fn timestamp(unix_micros: u64) -> Timestamp {
    let time = i64::try_from(unix_micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Appends `2026-11-20T12:00:00.123456Z`.
pub(crate) fn write_iso_time(out: &mut String, unix_micros: u64) {
    let _ = write!(out, "{:.6}", timestamp(unix_micros));
}

#[cfg(test)]
mod tests {
    use maitred_http::{RequestHead, Status};
    use maitred_stats::Times;

    use super::*;
    use crate::ids::RequestId;

    fn line(format: &str, mask: Option<Mask>, peer: &str, agent: &[u8]) -> String {
        let mut head = RequestHead::default();
        head.fields.push("User-Agent", agent);
        let outcome = Outcome {
            head: &head,
            peer: peer.parse().unwrap(),
            id: RequestId::Made(1),
            listener: 0,
            pool: Some(0),
            engine_route: None,
            status: Status::OK,
            body_bytes: 6,
            times: Times { arrived: 1_000_000, done: 2_500_000, ..Times::default() },
            end: End::Complete,
        };
        let mut out = String::new();
        let lines = Lines { format: Format::parse(format).unwrap(), mask };
        lines.with_line(&outcome, &Names::default(), |line| {
            out = std::str::from_utf8(line).unwrap().to_owned();
        });
        out
    }

    #[test]
    fn a_line_is_one_line_whatever_the_client_sent() {
        let line = line("default", None, "192.0.2.1:99", b"a\"b\x1b[31m\xff");
        assert!(line.starts_with("192.0.2.1 - - ["), "{line}");
        assert!(line.ends_with("\" 200 6 \"-\" \"a\\\"b\\x1b[31m\\xff\" 0.001500\n"), "{line}");
    }

    #[test]
    fn common_and_combined_are_what_the_tools_read() {
        let time = |line: &str| line.split_once(']').unwrap().1.to_owned();
        assert_eq!(time(&line("common", None, "[::1]:1", b"x")), " \"GET  HTTP/1.1\" 200 6\n");
        let combined = line("combined", None, "[::1]:1", b"x");
        assert!(combined.ends_with(" 200 6 \"-\" \"x\"\n"), "{combined}");
    }

    #[test]
    fn json_is_json_whatever_the_client_sent() {
        let line = line("json", None, "192.0.2.1:99", b"q\"\\\n\x7f\xff \xe2\x82\xac \xf0\x9f\x98\x80");
        assert!(line.contains(r#""agent":"q\"\\\u000a\u007f\ufffd \u20ac \ud83d\ude00""#), "{line}");
        assert!(line.contains("\"status\":200,"), "{line}");
        assert!(line.is_ascii() && line.lines().count() == 1);
    }

    #[test]
    fn the_route_is_what_requests_have_in_common() {
        let mut head = RequestHead::default();
        head.path_and_query = head.fields.adopt(b"/user/17/a\"b?q=1").unwrap();
        let outcome = |(pool, engine_route)| Outcome {
            head: &head,
            id: RequestId::Made(1),
            peer: "192.0.2.1:99".parse().unwrap(),
            listener: 0,
            pool,
            engine_route,
            status: Status::OK,
            body_bytes: 0,
            times: Times::default(),
            end: End::Complete,
        };
        let handler = (Some(0), None);
        for (format, by, line) in [
            ("$route", handler, "GET /user/*/a\\\"b\n"),
            ("{\"route\":\"$route\"}", handler, "{\"route\":\"GET /user/*/a\\\\\\\"b\"}\n"),
            ("$route", (None, Some("/static/*")), "/static/*\n"),
            ("$route", (None, None), "-\n"),
        ] {
            let lines = Lines { format: Format::parse(format).unwrap(), mask: None };
            lines.with_line(&outcome(by), &Names::default(), |found| {
                assert_eq!(std::str::from_utf8(found).unwrap(), line);
            });
        }
    }

    #[test]
    fn addresses_are_masked() {
        let mask = Some(Mask::default());
        assert_eq!(line("$remote_addr", mask, "192.0.2.77:99", b""), "192.0.2.0\n");
        assert_eq!(line("$remote_addr", mask, "[2001:db8:1:2:3::4]:99", b""), "2001:db8:1::\n");
        assert_eq!(line("$remote_addr", mask, "[::ffff:192.0.2.77]:99", b""), "192.0.2.0\n");
    }

    #[test]
    fn the_times_tell_when_it_began() {
        let line = line("$start $start_iso $run $total", None, "192.0.2.1:99", b"");
        let parts: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(parts[0].split_once('.').unwrap().1.len(), 6);
        assert!(parts[0].parse::<f64>().unwrap() > 0.0);
        assert!(parts[1].ends_with('Z'));
        assert_eq!(parts[2..], ["0.001500", "0.001500"]);
    }

    #[test]
    fn the_error_log_s_time_is_utc_with_microseconds() {
        let mut out = String::new();
        write_iso_time(&mut out, 1_000_000_000_000_001);
        assert_eq!(out, "2001-09-09T01:46:40.000001Z");
    }
}
