//! A line, made of the [facts](super::facts) as the format says.

use std::io::Write as _;
use std::ops::Range;

use maitred_io::clock;
use maitred_stats::Spans;

use super::escape::{push_json, push_printable};
use super::facts::{self, Facts};
use super::format::{Escape, Field, Piece};
use super::number::{push_address, push_decimal, push_fraction, push_seconds};
use super::{Lines, Names, strftime, timestamp, wall_micros};
use crate::ids::RequestId;
use crate::outcome::End;
use crate::shape::Shape;

/// What lines have in common with those before them.
#[derive(Default)]
pub(crate) struct Line {
    /// Local time, and the second it is of.
    local: (u64, String),
    /// The second of the last start in UTC, and its text.
    start: (u64, String),
    places: Vec<Range<usize>>,
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
        if let Some(facts) = facts::read(bytes, &mut places) {
            let none = Names::default();
            let names = lines.names.get().unwrap_or(&none);
            let sent = Sent { spans: facts.times.spans(), facts, bytes, places: &places };
            for piece in &lines.format.pieces {
                self.push(out, piece, lines, &sent, names);
            }
            out.push(b'\n');
        }
        self.places = places;
    }

    fn push(&mut self, out: &mut Vec<u8>, piece: &Piece, lines: &Lines, sent: &Sent<'_>, names: &Names) {
        let escape = lines.format.escape;
        match piece {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Source(place) => push_text(out, sent.text(*place), escape),
            Piece::Whole(place) => push_value(out, sent.text(*place), escape),
            Piece::Id(place) => match sent.text(*place) {
                // Writing to memory does not fail.
                b"" => _ = write!(out, "{}", RequestId::Made(sent.facts.number)),
                id => out.extend_from_slice(id),
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
            Piece::Field(field) => self.push_field(out, *field, lines, sent, names),
        }
    }

    fn push_field(&mut self, out: &mut Vec<u8>, field: Field, lines: &Lines, sent: &Sent<'_>, names: &Names) {
        let (facts, escape) = (&sent.facts, lines.format.escape);
        match field {
            Field::RemoteAddress => {
                let address = facts.peer.ip();
                push_address(out, lines.mask.map_or(address, |mask| mask.apply(address)));
            }
            Field::RemotePort => push_decimal(out, facts.peer.port().into()),
            Field::LocalTime => {
                // Of a request that began before times were looked at it is the time of its line.
                let second = match facts.times.written {
                    0 => clock::unix_seconds(),
                    written => wall_micros(written) / 1_000_000,
                };
                out.extend_from_slice(once_a_second(&mut self.local, second, || {
                    strftime("%d/%b/%Y:%H:%M:%S %z", second)
                }));
            }
            Field::Status => push_decimal(out, facts.status.into()),
            Field::BodyBytes => push_decimal(out, facts.body_bytes),
            Field::Pool => {
                let pool = facts.pool.map_or(usize::MAX, usize::from);
                push_text(out, name(&names.pools, pool), escape);
            }
            Field::Listener => {
                let listener = usize::try_from(facts.listener).unwrap_or(usize::MAX);
                push_text(out, name(&names.listeners, listener), escape);
            }
            Field::Ended => out.extend_from_slice(facts.end.name().as_bytes()),
            Field::EndedMark if facts.end == End::Complete => {}
            Field::EndedMark => {
                out.push(b' ');
                out.extend_from_slice(facts.end.name().as_bytes());
            }
            Field::Start => push_seconds(out, wall_micros(facts.times.arrived)),
            Field::StartIso => {
                let micros = wall_micros(facts.times.arrived);
                let second = micros / 1_000_000;
                out.extend_from_slice(once_a_second(&mut self.start, second, || {
                    format!("{:.0}", timestamp(second * 1_000_000)).trim_end_matches('Z').to_owned()
                }));
                push_fraction(out, micros);
                out.push(b'Z');
            }
            Field::Span(span) => push_seconds(out, sent.spans.get(span) / 1_000),
            Field::Total => push_seconds(out, sent.spans.total() / 1_000),
            Field::Outer => push_seconds(out, facts.outer / 1_000),
        }
    }
}

/// What `text` has made of this second.
fn once_a_second(known: &mut (u64, String), second: u64, text: impl FnOnce() -> String) -> &[u8] {
    if known.0 != second || known.1.is_empty() {
        *known = (second, text());
    }
    known.1.as_bytes()
}

/// What there is none of is empty.
fn name(names: &[String], index: usize) -> &[u8] {
    names.get(index).map_or(&[], |name| name.as_bytes())
}

/// What is empty is a hyphen, or in JSON an empty text.
fn push_text(out: &mut Vec<u8>, value: &[u8], escape: Escape) {
    match value {
        b"" if escape == Escape::Text => out.push(b'-'),
        value => push_value(out, value, escape),
    }
}

fn push_value(out: &mut Vec<u8>, value: &[u8], escape: Escape) {
    match escape {
        Escape::Text => push_printable(out, value),
        Escape::Json => push_json(out, value),
    }
}

/// What stands for the route of a request that a handler has run: printable and escaped for text already.
fn push_shape(out: &mut Vec<u8>, shape: Shape<'_>, escape: Escape) {
    let begin = out.len();
    // Writing to memory does not fail.
    let _ = write!(out, "{shape}");
    if escape == Escape::Json && out[begin..].iter().any(|byte| matches!(byte, b'"' | b'\\')) {
        let text = out.split_off(begin);
        push_json(out, &text);
    }
}
