//! A line, made of an [`Outcome`] as the format says.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;

use maitred_http::trace::Hex;
use maitred_io::clock;
use maitred_stats::Spans;

use crate::escape::push_escaped;
use crate::format::{Escape, Field, Piece};
use crate::lines::{Lines, Names};
use crate::mask::Mask;
use crate::number::{push_address, push_decimal, push_fraction, push_seconds};
use crate::outcome::{End, Outcome};
use crate::request_id::{RequestId, trace_of};
use crate::short;
use crate::upstream_queue::upstream_queue;
use crate::wall_time::{strftime, timestamp, wall_micros};
use maitred_match::Shape;

const SECOND: u64 = 1_000_000_000;

/// Bytes of a time of day, at the end of a local time without its zone.
const CLOCK: usize = "14:03:11".len();

type Shown = (Option<IpAddr>, Option<Mask>);

/// Makes lines. It keeps the texts that the next line may share with this one: second, address.
#[derive(Default)]
pub(crate) struct Line {
    text: Vec<u8>,
    local: Local,
    /// The second of the last start in UTC, and its text.
    start: (u64, String),
    /// The last address, and how it is shown.
    address: (Option<Shown>, Vec<u8>),
}

#[derive(Default)]
struct Local {
    /// When it began, in monotonic nanoseconds.
    begin: u64,
    text: String,
}

impl Local {
    fn text(&mut self, monotonic: u64) -> &[u8] {
        if monotonic.wrapping_sub(self.begin) >= SECOND || self.text.is_empty() {
            let micros = wall_micros(monotonic);
            self.begin = monotonic.wrapping_sub(micros % 1_000_000 * 1_000);
            self.text = strftime("%d/%b/%Y:%H:%M:%S %z", micros / 1_000_000);
        }
        self.text.as_bytes()
    }
}

impl Line {
    pub(crate) fn make(&mut self, lines: &Lines, outcome: &Outcome<'_>) -> &[u8] {
        self.text.clear();
        if lines.format.is_short && short::is_left_out(outcome) {
            return &[];
        }
        let spans = if lines.format.has_spans { outcome.times.spans() } else { Spans::default() };
        for piece in &lines.format.pieces {
            self.push(piece, lines, outcome, &spans);
        }
        self.text.push(b'\n');
        &self.text
    }

    #[inline]
    fn push(&mut self, piece: &Piece, lines: &Lines, outcome: &Outcome<'_>, spans: &Spans) {
        let (out, escape) = (&mut self.text, lines.format.escape);
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Source(source) => push_text(out, source.text(outcome), escape),
            Piece::Whole(source) => push_escaped(out, source.text(outcome), escape),
            Piece::Plain(source) => out.extend_from_slice(source.text(outcome)),
            Piece::Id => match outcome.id {
                RequestId::Given(id) => out.extend_from_slice(id),
                // Writing to memory does not fail.
                made @ RequestId::Made(_) => _ = write!(out, "{made}"),
            },
            Piece::Route => match (outcome.pool, outcome.route) {
                (Some(_), None) => {
                    let shape = Shape {
                        method: outcome.head.method.as_str(),
                        path: outcome.head.path(),
                        host: outcome.head.host,
                    };
                    push_shape(out, shape, lines, escape);
                }
                (_, route) => push_text(out, route.unwrap_or_default().as_bytes(), escape),
            },
            Piece::Field(field) => self.push_field(*field, lines, outcome, spans),
        }
    }

    fn push_field(&mut self, field: Field, lines: &Lines, outcome: &Outcome<'_>, spans: &Spans) {
        let (out, escape) = (&mut self.text, lines.format.escape);
        match field {
            Field::RemoteAddress => {
                let address = outcome.peer.ip();
                let (known, text) = &mut self.address;
                if *known != Some((address, lines.mask)) {
                    *known = Some((address, lines.mask));
                    text.clear();
                    match address {
                        Some(address) => {
                            push_address(text, lines.mask.map_or(address, |mask| mask.apply(address)));
                        }
                        None => text.extend_from_slice(b"unix:"),
                    }
                }
                out.extend_from_slice(text);
            }
            Field::RemotePort => match outcome.peer.port() {
                Some(port) => push_decimal(out, port.into()),
                None => out.push(b'-'),
            },
            Field::LocalTime => {
                // Of a request that began before times were looked at it is the time of its line.
                let time = if outcome.times.written == 0 {
                    clock::monotonic_coarse()
                } else {
                    outcome.times.written
                };
                out.extend_from_slice(self.local.text(time));
            }
            Field::Status => push_decimal(out, outcome.status.code().into()),
            Field::BodyBytes => push_decimal(out, outcome.body_bytes),
            Field::TraceId => match (&outcome.head.trace, trace_of(&outcome.head.fields)) {
                (Some(place), _) => Hex(&place.trace).push(out),
                (None, given) => push_text(out, given.unwrap_or_default(), escape),
            },
            Field::SpanId => match &outcome.head.trace {
                Some(place) => Hex(&place.span).push(out),
                None => push_text(out, b"", escape),
            },
            Field::Pool => {
                let pool = outcome.pool.map_or(usize::MAX, usize::from);
                push_text(out, name(lines, |names| &names.pools, pool), escape);
            }
            Field::Listener => {
                let listener = usize::try_from(outcome.listener).unwrap_or(usize::MAX);
                push_text(out, name(lines, |names| &names.listeners, listener), escape);
            }
            // Of the only process it is 1.
            Field::Worker => push_decimal(out, lines.worker.load(Relaxed).max(1).into()),
            Field::Ended => out.extend_from_slice(outcome.end.name().as_bytes()),
            Field::EndedMark if outcome.end == End::Complete => {}
            Field::EndedMark => {
                out.push(b' ');
                out.extend_from_slice(outcome.end.name().as_bytes());
            }
            Field::Start => push_seconds(out, wall_micros(outcome.times.arrived)),
            Field::StartIso => {
                let micros = wall_micros(outcome.times.arrived);
                let second = micros / 1_000_000;
                let (known, text) = &mut self.start;
                if *known != second || text.is_empty() {
                    *known = second;
                    let whole = format!("{:.0}", timestamp(second * 1_000_000));
                    whole.trim_end_matches('Z').clone_into(text);
                }
                out.extend_from_slice(text.as_bytes());
                push_fraction(out, micros);
                out.push(b'Z');
            }
            Field::Span(span) => push_seconds(out, spans.get(span) / 1_000),
            Field::Total => push_seconds(out, outcome.times.total() / 1_000),
            Field::Outer => {
                let outer = upstream_queue(&outcome.head.fields, outcome.times.arrived).unwrap_or(0);
                push_seconds(out, outer / 1_000);
            }
            Field::Database => {
                push_seconds(out, outcome.database.map_or(0, |database| database.nanos) / 1_000)
            }
            Field::Statements => {
                push_decimal(out, outcome.database.map_or(0, |database| database.statements))
            }
            Field::Outgoing => push_seconds(out, outcome.outgoing.map_or(0, |calls| calls.nanos) / 1_000),
            Field::Calls => push_decimal(out, outcome.outgoing.map_or(0, |calls| calls.calls)),
            Field::FailedCalls => push_decimal(out, outcome.outgoing.map_or(0, |calls| calls.failed)),
            Field::SlowestCall => {
                push_seconds(out, outcome.outgoing.map_or(0, |calls| calls.slowest_nanos) / 1_000);
            }
            Field::Short { colored } => {
                let time = self.local.text(clock::monotonic_coarse());
                let time = time.split(|byte| *byte == b' ').next().unwrap_or_default();
                let clock = time.get(time.len().saturating_sub(CLOCK)..).unwrap_or_default();
                short::push(out, outcome, spans, clock, colored);
            }
            Field::TlsHandshake => push_seconds(out, outcome.times.handshake / 1_000),
        }
    }
}

/// What there is none of is empty.
fn name(lines: &Lines, kind: impl FnOnce(&Names) -> &[String], index: usize) -> &[u8] {
    lines.names.get().and_then(|names| kind(names).get(index)).map_or(&[], |name| name.as_bytes())
}

/// What is empty is a hyphen, or in JSON an empty text.
#[inline]
fn push_text(out: &mut Vec<u8>, value: &[u8], escape: Escape) {
    match value {
        b"" if escape == Escape::Text => out.push(b'-'),
        value => push_escaped(out, value, escape),
    }
}

/// The shape, with the name of its host before its path unless that is the default one.
fn push_shape(out: &mut Vec<u8>, shape: Shape<'_>, lines: &Lines, escape: Escape) {
    let begin = out.len();
    let host = if shape.host == 0 { &[][..] } else { name(lines, |names| &names.hosts, shape.host.into()) };
    // Writing to memory does not fail.
    let _ = match host {
        [] => write!(out, "{shape}"),
        host => {
            let text = shape.to_string();
            let (method, path) = text.split_once(' ').unwrap_or_default();
            write!(out, "{method} {}{path}", host.escape_ascii())
        }
    };
    if escape == Escape::Json {
        let text = out.split_off(begin);
        push_escaped(out, &text, escape);
    }
}
