//! A line, made of the [facts](super::facts) as the format says.

use std::io::Write as _;
use std::net::IpAddr;
use std::ops::Range;

use maitred_io::clock;
use maitred_stats::Spans;

use super::escape::push_escaped;
use super::facts::{self, Facts};
use super::format::{Escape, Field, Piece};
use super::number::{push_address, push_decimal, push_fraction, push_seconds};
use super::text::Text;
use super::{Lines, Names, strftime, timestamp, wall_micros};
use crate::ids::RequestId;
use crate::outcome::End;
use crate::shape::Shape;

const SECOND: u64 = 1_000_000_000;

/// The last line, and what lines have in common with those before them.
#[derive(Default)]
pub(crate) struct Line {
    text: Text,
    local: Local,
    /// The second of the last start in UTC, and its text.
    start: (u64, String),
    /// The last address, and how it is shown.
    address: (Option<IpAddr>, Text),
    places: Vec<Range<usize>>,
}

/// A second of local time.
#[derive(Default)]
struct Local {
    /// When it began, in monotonic nanoseconds.
    begin: u64,
    text: String,
}

impl Local {
    /// The second of a monotonic time.
    fn text(&mut self, monotonic: u64) -> &[u8] {
        if monotonic.wrapping_sub(self.begin) >= SECOND || self.text.is_empty() {
            let micros = wall_micros(monotonic);
            self.begin = monotonic.wrapping_sub(micros % 1_000_000 * 1_000);
            self.text = strftime("%d/%b/%Y:%H:%M:%S %z", micros / 1_000_000);
        }
        self.text.as_bytes()
    }
}

/// The facts of one line.
struct Sent<'a> {
    facts: Facts,
    spans: Spans,
    bytes: &'a [u8],
    places: &'a [Range<usize>],
}

impl<'a> Sent<'a> {
    fn text(&self, place: usize) -> &'a [u8] {
        self.places.get(place).and_then(|place| self.bytes.get(place.clone())).unwrap_or_default()
    }
}

impl Line {
    /// Appends the line of these facts, which were kept for the same format.
    pub(crate) fn make(&mut self, lines: &Lines, bytes: &[u8], out: &mut Vec<u8>) {
        let mut places = std::mem::take(&mut self.places);
        self.text.clear();
        if let Some(facts) = facts::read(bytes, &mut places) {
            let spans = if lines.format.has_spans { facts.times.spans() } else { Spans::default() };
            let sent = Sent { spans, facts, bytes, places: &places };
            for piece in &lines.format.pieces {
                self.push(piece, lines, &sent);
            }
            self.text.push(b"\n");
            out.extend_from_slice(self.text.as_bytes());
        }
        self.places = places;
    }

    #[inline]
    fn push(&mut self, piece: &Piece, lines: &Lines, sent: &Sent<'_>) {
        let (out, escape) = (&mut self.text, lines.format.escape);
        match piece {
            Piece::Text(text) => out.push_short(*text),
            Piece::Source(place) => push_text(out, sent.text(*place), escape),
            Piece::Whole(place) => push_escaped(out, sent.text(*place), escape),
            Piece::Plain(place) => out.push(sent.text(*place)),
            Piece::Id(place) => match sent.text(*place) {
                // Writing to memory does not fail.
                b"" => _ = write!(out, "{}", RequestId::Made(sent.facts.number)),
                id => out.push(id),
            },
            Piece::Route { method, path, engine } => {
                let [method, path, engine] = [*method, *path, *engine].map(|place| sent.text(place));
                // Both are text where they come from.
                let [method, engine] =
                    [method, engine].map(|text| std::str::from_utf8(text).unwrap_or_default());
                match sent.facts.pool {
                    Some(_) => push_shape(out, Shape { method, path }, escape),
                    None => push_text(out, engine.as_bytes(), escape),
                }
            }
            Piece::Field(field) => self.push_field(*field, lines, sent),
        }
    }

    fn push_field(&mut self, field: Field, lines: &Lines, sent: &Sent<'_>) {
        let (out, facts, escape) = (&mut self.text, &sent.facts, lines.format.escape);
        match field {
            Field::RemoteAddress => {
                let address = facts.peer.ip();
                let (known, text) = &mut self.address;
                if *known != Some(address) {
                    *known = Some(address);
                    text.clear();
                    push_address(text, lines.mask.map_or(address, |mask| mask.apply(address)));
                }
                out.push(text.as_bytes());
            }
            Field::RemotePort => push_decimal(out, facts.peer.port().into()),
            Field::LocalTime => {
                // Of a request that began before times were looked at it is the time of its line.
                let time =
                    if facts.times.written == 0 { clock::monotonic_coarse() } else { facts.times.written };
                out.push(self.local.text(time));
            }
            Field::Status => push_decimal(out, facts.status.into()),
            Field::BodyBytes => push_decimal(out, facts.body_bytes),
            Field::Pool => {
                let pool = facts.pool.map_or(usize::MAX, usize::from);
                push_text(out, name(lines, |names| &names.pools, pool), escape);
            }
            Field::Listener => {
                let listener = usize::try_from(facts.listener).unwrap_or(usize::MAX);
                push_text(out, name(lines, |names| &names.listeners, listener), escape);
            }
            Field::Ended => out.push(facts.end.name().as_bytes()),
            Field::EndedMark if facts.end == End::Complete => {}
            Field::EndedMark => {
                out.push(b" ");
                out.push(facts.end.name().as_bytes());
            }
            Field::Start => push_seconds(out, wall_micros(facts.times.arrived)),
            Field::StartIso => {
                let micros = wall_micros(facts.times.arrived);
                let second = micros / 1_000_000;
                let (known, text) = &mut self.start;
                if *known != second || text.is_empty() {
                    *known = second;
                    let whole = format!("{:.0}", timestamp(second * 1_000_000));
                    whole.trim_end_matches('Z').clone_into(text);
                }
                out.push(text.as_bytes());
                push_fraction(out, micros);
                out.push(b"Z");
            }
            Field::Span(span) => push_seconds(out, sent.spans.get(span) / 1_000),
            Field::Total => push_seconds(out, facts.times.total() / 1_000),
            Field::Outer => push_seconds(out, facts.outer / 1_000),
        }
    }
}

/// What there is none of is empty.
fn name(lines: &Lines, kind: impl FnOnce(&Names) -> &[String], index: usize) -> &[u8] {
    lines.names.get().and_then(|names| kind(names).get(index)).map_or(&[], |name| name.as_bytes())
}

/// What is empty is a hyphen, or in JSON an empty text.
#[inline]
fn push_text(out: &mut Text, value: &[u8], escape: Escape) {
    match value {
        b"" if escape == Escape::Text => out.push(b"-"),
        value => push_escaped(out, value, escape),
    }
}

/// What stands for the route of a request that a handler has run: printable and escaped for text already.
fn push_shape(out: &mut Text, shape: Shape<'_>, escape: Escape) {
    let begin = out.len();
    // Writing to memory does not fail.
    let _ = write!(out, "{shape}");
    if escape == Escape::Json {
        let text = out.split_off(begin);
        push_escaped(out, &text, escape);
    }
}
