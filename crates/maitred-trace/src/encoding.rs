//! The parts that all messages of OTLP have: items, the request around them, attributes and their limits.

use std::fmt;

use crate::context::{Flags, SpanId, TraceId};
use crate::json::Json;
use crate::protobuf::Protobuf;
use crate::writer::{Field, Message, Writer};

/// The encoding of a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `http/protobuf`.
    #[default]
    Protobuf,
    /// `http/json`: ids as digits, numbers of 64 bits as strings.
    Json,
}

/// The kind of items that an exporter sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log records.
    Logs,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes of a peer, written as text; those that are no UTF-8 become U+FFFD.
    Wire(&'a [u8]),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A number, written as text: the `error.type` of a status.
    Code(u16),
}

/// A name with its value.
pub type Attribute<'a> = (&'a str, Value<'a>);

/// How much of a span or record is written. The rest is counted in it, where OTLP has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Attributes of one span, event, link or record.
    pub attributes: usize,
    /// Characters of a text.
    pub text: usize,
    /// Events of a span.
    pub events: usize,
    /// Links of a span.
    pub links: usize,
}

impl Default for Limits {
    /// Those of the specification; it has none for texts, which come from peers here.
    fn default() -> Self {
        Self { attributes: 128, text: 4096, events: 128, links: 128 }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Signal {
    /// Its name in options and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// The names of the request's levels in JSON; their numbers are the same for all signals.
    const fn levels(self) -> [Field; 3] {
        match self {
            Self::Traces => [Field(1, "resourceSpans"), Field(2, "scopeSpans"), Field(2, "spans")],
            Self::Metrics => [Field(1, "resourceMetrics"), Field(2, "scopeMetrics"), Field(2, "metrics")],
            Self::Logs => [Field(1, "resourceLogs"), Field(2, "scopeLogs"), Field(2, "logRecords")],
        }
    }
}

impl Format {
    /// The value of `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// Appends one item to `out`.
pub(crate) fn item(message: &impl Message, format: Format, out: &mut Vec<u8>) {
    match format {
        Format::Protobuf => Protobuf(out).item(|writer| message.write(writer)),
        Format::Json => Json(out).item(|writer| message.write(writer)),
    }
}

/// The whole request around the items of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Envelope<'a> {
    pub(crate) signal: Signal,
    pub(crate) resource: &'a [(String, String)],
    pub(crate) pid: Option<u32>,
    pub(crate) items: &'a [u8],
}

impl Envelope<'_> {
    /// The request as it is posted.
    pub(crate) fn encode(&self, format: Format) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.items.len() + 1024);
        match format {
            Format::Protobuf => self.write(&mut Protobuf(&mut out)),
            Format::Json => Json(&mut out).item(|writer| self.write(writer)),
        }
        out
    }
}

impl Message for Envelope<'_> {
    fn write<W: Writer>(&self, writer: &mut W) {
        let [outer, inner, items] = self.signal.levels();
        writer.messages(outer, std::iter::once(()), |writer, ()| {
            writer.message(Field(1, "resource"), |writer| {
                let texts = self.resource.iter().map(|(key, value)| (key.as_str(), Value::Text(value)));
                let pid = self.pid.map(|pid| ("process.pid", Value::Integer(pid.into())));
                writer.messages(Field(1, "attributes"), texts.chain(pid), |writer, fact| {
                    attribute(writer, fact, usize::MAX);
                });
            });
            writer.messages(inner, std::iter::once(()), |writer, ()| {
                writer.message(Field(1, "scope"), |writer| {
                    writer.text(Field(1, "name"), b"maitred");
                });
                writer.written(items, self.items);
            });
        });
    }
}

/// Writes attributes as `field`, and those beyond the limit as a number in the field behind it.
pub(crate) fn attributes(
    writer: &mut impl Writer,
    field: u32,
    attributes: &[Attribute<'_>],
    limits: &Limits,
    dropped: bool,
) {
    if attributes.is_empty() {
        return;
    }
    let kept = attributes.iter().take(limits.attributes);
    writer.messages(Field(field, "attributes"), kept, |writer, item| attribute(writer, *item, limits.text));
    let rest = attributes.len().saturating_sub(limits.attributes);
    if dropped && rest > 0 {
        writer.small(Field(field + 1, "droppedAttributesCount"), rest as u32);
    }
}

fn attribute(writer: &mut impl Writer, (key, of): Attribute<'_>, longest: usize) {
    writer.text(Field(1, "key"), key.as_bytes());
    writer.message(Field(2, "value"), |writer| value(writer, of, longest));
}

/// Writes the content of an `AnyValue`.
pub(crate) fn value(writer: &mut impl Writer, value: Value<'_>, longest: usize) {
    const TEXT: Field = Field(1, "stringValue");
    match value {
        Value::Text(text) => writer.text(TEXT, cut(text.as_bytes(), longest)),
        Value::Wire(bytes) => writer.text(TEXT, cut(bytes, longest)),
        Value::Bool(value) => writer.bool(Field(2, "boolValue"), value),
        Value::Integer(value) => writer.integer(Field(3, "intValue"), value),
        Value::Float(value) => writer.double(Field(4, "doubleValue"), value),
        Value::Code(code) => writer.text(TEXT, code.to_string().as_bytes()),
    }
}

/// Writes a trace id, a span id and, in JSON, their names.
pub(crate) fn ids(writer: &mut impl Writer, numbers: [u32; 2], trace: &TraceId, span: &SpanId) {
    writer.id(Field(numbers[0], "traceId"), trace.bytes());
    writer.id(Field(numbers[1], "spanId"), span.bytes());
}

/// Writes the flags of a span or link, with the bits that tell whether its context came from another process.
pub(crate) fn flags(writer: &mut impl Writer, number: u32, flags: Flags, remote: Option<bool>) {
    const KNOWN: u32 = 1 << 8;
    const REMOTE: u32 = 1 << 9;
    let origin = remote.map_or(0, |remote| KNOWN | if remote { REMOTE } else { 0 });
    let bits = u32::from(flags.bits()) | origin;
    if bits != 0 {
        writer.fixed32(Field(number, "flags"), bits);
    }
}

/// The first characters of a text.
fn cut(text: &[u8], longest: usize) -> &[u8] {
    if text.len() <= longest {
        return text;
    }
    let (mut left, mut end) = (longest, 0);
    for chunk in text.utf8_chunks() {
        match chunk.valid().char_indices().nth(left) {
            Some((at, _)) => return text.get(..end + at).unwrap_or_default(),
            None => left -= chunk.valid().chars().count(),
        }
        end += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            if left == 0 {
                break;
            }
            (left, end) = (left - 1, end + chunk.invalid().len());
        }
    }
    text.get(..end).unwrap_or_default()
}
