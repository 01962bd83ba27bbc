//! Log records, such as the lines of an access log.

use crate::context::Context;
use crate::encoding::{Attribute, Format, Limits, Value, attributes, flags, ids, item, value};
use crate::writer::{Field, Message, Writer};

/// A line of a log. Times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The time of what it tells.
    pub time: u64,
    /// How bad that is.
    pub severity: Severity,
    /// The kind of record, if all of the kind have the same attributes: `http.server.request`.
    pub event: &'a str,
    /// The text.
    pub body: Value<'a>,
    /// Facts.
    pub attributes: &'a [Attribute<'a>],
    /// The span that it belongs to.
    pub context: Option<Context>,
}

/// How bad a record is, with the numbers of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For authors.
    Debug = 5,
    /// All is well.
    Info = 9,
    /// Something may be wrong.
    Warn = 13,
    /// Something has failed.
    Error = 17,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl Record<'_> {
    /// Appends the record to `out`, as an item for an exporter of this format.
    pub fn encode(&self, format: Format, limits: &Limits, out: &mut Vec<u8>) {
        item(&Limited(self, limits), format, out);
    }
}

struct Limited<'a>(&'a Record<'a>, &'a Limits);

impl Message for Limited<'_> {
    fn write<W: Writer>(&self, writer: &mut W) {
        let Self(record, limits) = *self;
        writer.fixed64(Field(1, "timeUnixNano"), record.time);
        writer.small(Field(2, "severityNumber"), record.severity as u32);
        writer.text(Field(3, "severityText"), record.severity.name().as_bytes());
        writer.message(Field(5, "body"), |writer| value(writer, record.body, limits.text));
        attributes(writer, 6, record.attributes, limits, true);
        if let Some(context) = record.context {
            flags(writer, 8, context.flags, None);
            ids(writer, [9, 10], &context.trace, &context.span);
        }
        writer.fixed64(Field(11, "observedTimeUnixNano"), record.time);
        if !record.event.is_empty() {
            writer.text(Field(12, "eventName"), record.event.as_bytes());
        }
    }
}
