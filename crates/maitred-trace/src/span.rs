//! Spans as plain data; names, attributes and status of requests and calls by the stable conventions for HTTP.
//!
//! Promises: the names of spans and the values of `http.request.method` are few, whatever clients send. A server's span is an
//! error for a status from 500 on and for a request that ended before its response; a call's from 400 on.
//!
//! Leaves out: when a span begins and ends.

use crate::context::{Flags, SpanId, TraceId};
use crate::encoding::{Attribute, Format, Limits, Value, attributes, flags, ids, item};
use crate::writer::{Field, Message, Writer};

/// A part of a trace, with a beginning and an end. Times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The trace.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// The span above.
    pub parent: Option<Parent>,
    /// Of the trace.
    pub flags: Flags,
    /// The trace state, as it was passed on.
    pub state: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The side of a call that it stands for.
    pub kind: Kind,
    /// The beginning.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// Facts.
    pub attributes: &'a [Attribute<'a>],
    /// Moments.
    pub events: &'a [Event<'a>],
    /// Spans of other traces.
    pub links: &'a [Link<'a>],
    /// Whether it has failed.
    pub status: Status<'a>,
}

/// The span above another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its id.
    pub id: SpanId,
    /// It is of another process.
    pub remote: bool,
}

/// The side of a call that a span stands for, with the numbers of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step inside.
    Internal = 1,
    /// A request that was served.
    Server = 2,
    /// A call to another server.
    Client = 3,
}

/// Something at one moment of a span.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The moment.
    pub time: u64,
    /// Its name.
    pub name: &'a str,
    /// Facts.
    pub attributes: &'a [Attribute<'a>],
}

/// Another span that has to do with one, and is not above it.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Its context.
    pub context: crate::Context,
    /// The trace state that came with it.
    pub state: &'a str,
    /// Facts.
    pub attributes: &'a [Attribute<'a>],
}

/// Whether a span has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status<'a> {
    /// There is nothing to say.
    #[default]
    Unset,
    /// It has failed; the text may be empty.
    Error(&'a str),
}

impl Span<'_> {
    /// Appends the span to `out`, as an item for an exporter of this format.
    pub fn encode(&self, format: Format, limits: &Limits, out: &mut Vec<u8>) {
        item(&Limited(self, limits), format, out);
    }
}

struct Limited<'a>(&'a Span<'a>, &'a Limits);

impl Message for Limited<'_> {
    fn write<W: Writer>(&self, writer: &mut W) {
        let Self(span, limits) = *self;
        ids(writer, [1, 2], &span.trace, &span.id);
        if !span.state.is_empty() {
            writer.text(Field(3, "traceState"), span.state.as_bytes());
        }
        if let Some(parent) = span.parent {
            writer.id(Field(4, "parentSpanId"), parent.id.bytes());
        }
        writer.text(Field(5, "name"), span.name.as_bytes());
        writer.small(Field(6, "kind"), span.kind as u32);
        writer.fixed64(Field(7, "startTimeUnixNano"), span.start);
        // Clocks that were set back give no negative length.
        writer.fixed64(Field(8, "endTimeUnixNano"), span.end.max(span.start));
        attributes(writer, 9, span.attributes, limits, true);
        let events = span.events.iter().take(limits.events);
        if events.len() > 0 {
            writer.messages(Field(11, "events"), events, |writer, event| {
                writer.fixed64(Field(1, "timeUnixNano"), event.time);
                writer.text(Field(2, "name"), event.name.as_bytes());
                attributes(writer, 3, event.attributes, limits, true);
            });
        }
        dropped(writer, Field(12, "droppedEventsCount"), span.events.len(), limits.events);
        let links = span.links.iter().take(limits.links);
        if links.len() > 0 {
            writer.messages(Field(13, "links"), links, |writer, link| {
                ids(writer, [1, 2], &link.context.trace, &link.context.span);
                if !link.state.is_empty() {
                    writer.text(Field(3, "traceState"), link.state.as_bytes());
                }
                attributes(writer, 4, link.attributes, limits, true);
                flags(writer, 6, link.context.flags, Some(true));
            });
        }
        dropped(writer, Field(14, "droppedLinksCount"), span.links.len(), limits.links);
        if let Status::Error(message) = span.status {
            writer.message(Field(15, "status"), |writer| {
                if !message.is_empty() {
                    writer.text(Field(2, "message"), message.as_bytes());
                }
                writer.small(Field(3, "code"), 2);
            });
        }
        flags(writer, 16, span.flags, span.parent.map(|parent| parent.remote));
    }
}

fn dropped(writer: &mut impl Writer, field: Field, there: usize, limit: usize) {
    if there > limit {
        writer.small(field, (there - limit) as u32);
    }
}

/// A request that was served, for its span. An unknown value is empty, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerRequest<'a> {
    /// The method, as the client has sent it.
    pub method: &'a [u8],
    /// The pattern that has matched, never the path itself.
    pub route: &'a str,
    /// The path.
    pub path: &'a [u8],
    /// Behind the `?`, as far as it may be shown.
    pub query: &'a [u8],
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Of the response.
    pub status: u16,
    /// The cause of an end before the response was complete: `peer-gone`.
    pub aborted: Option<&'a str>,
    /// The host that was asked for.
    pub server: &'a [u8],
    /// The port of that.
    pub server_port: Option<u16>,
    /// The client, behind trusted proxies.
    pub client: &'a str,
    /// The other end of the connection.
    pub peer: &'a str,
    /// `1.1`, `2`.
    pub version: &'a str,
    /// Of `User-Agent`.
    pub user_agent: &'a [u8],
    /// Bytes of the request's body.
    pub request_body: Option<u64>,
    /// Bytes of the response's body.
    pub response_body: Option<u64>,
}

impl<'a> ServerRequest<'a> {
    /// Writes the name of the span: `GET /users/{name}`, or the method alone.
    pub fn name(&self, out: &mut String) {
        out.push_str(known_method(self.method).unwrap_or("HTTP"));
        if !self.route.is_empty() {
            out.push(' ');
            out.push_str(self.route);
        }
    }

    /// The status of the span. A fault of the client (400 to 499) is none of the server.
    #[must_use]
    pub fn span_status(&self) -> Status<'a> {
        match self.aborted {
            Some(cause) => Status::Error(cause),
            None if self.status >= 500 => Status::Error(""),
            None => Status::Unset,
        }
    }

    /// Appends the attributes of the span.
    pub fn attributes(&self, out: &mut Vec<Attribute<'a>>) {
        method(self.method, out);
        let texts = [
            ("url.scheme", self.scheme.as_bytes()),
            ("http.route", self.route.as_bytes()),
            ("network.protocol.version", self.version.as_bytes()),
            ("url.path", self.path),
            ("url.query", self.query),
            ("server.address", self.server),
            ("user_agent.original", self.user_agent),
            ("client.address", self.client.as_bytes()),
            ("network.peer.address", self.peer.as_bytes()),
        ];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        out.extend(texts.map(|(key, text)| (key, Value::Wire(text))));
        for (key, number) in [
            ("http.response.status_code", Some(self.status.into()).filter(|status| *status > 0)),
            ("server.port", self.server_port.map(u64::from)),
            ("http.request.body.size", self.request_body),
            ("http.response.body.size", self.response_body),
        ] {
            out.extend(number.map(|number| (key, Value::Integer(number.min(i64::MAX as u64) as i64))));
        }
        out.extend(error_type(self.aborted, self.status, 500));
    }
}

/// A call to another server, for its span.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCall<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The URL, without a name and password.
    pub url: &'a [u8],
    /// The host, or the path of a socket.
    pub server: &'a str,
    /// The port; 0 without one.
    pub port: u16,
    /// Of the response; 0 without one.
    pub status: u16,
    /// The cause of a failure: `refused`.
    pub failed: Option<&'a str>,
    /// `1.1`, `2`.
    pub version: &'a str,
    /// How often the request was sent again.
    pub resent: u32,
}

impl<'a> ClientCall<'a> {
    /// The name of the span, which is the method alone: a URL has too many values.
    #[must_use]
    pub fn name(&self) -> &'static str {
        known_method(self.method).unwrap_or("HTTP")
    }

    /// The status of the span.
    #[must_use]
    pub fn span_status(&self) -> Status<'a> {
        match self.failed {
            Some(cause) => Status::Error(cause),
            None if self.status >= 400 => Status::Error(""),
            None => Status::Unset,
        }
    }

    /// Appends the attributes of the span.
    pub fn attributes(&self, out: &mut Vec<Attribute<'a>>) {
        method(self.method, out);
        if !self.server.is_empty() {
            out.push(("server.address", Value::Text(self.server)));
        }
        if self.port != 0 {
            out.push(("server.port", Value::Integer(self.port.into())));
        }
        if !self.url.is_empty() {
            out.push(("url.full", Value::Wire(self.url)));
        }
        if !self.version.is_empty() {
            out.push(("network.protocol.version", Value::Text(self.version)));
        }
        if self.status != 0 {
            out.push(("http.response.status_code", Value::Integer(self.status.into())));
        }
        out.extend(error_type(self.failed, self.status, 400));
        if self.resent > 0 {
            out.push(("http.request.resend_count", Value::Integer(self.resent.into())));
        }
    }
}

/// The method, if it is one of those of the conventions: others come from clients without end.
#[must_use]
pub fn known_method(method: &[u8]) -> Option<&'static str> {
    const KNOWN: [&str; 10] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];
    KNOWN.into_iter().find(|known| known.as_bytes() == method)
}

fn method<'a>(method: &'a [u8], out: &mut Vec<Attribute<'a>>) {
    let known = known_method(method);
    out.push(("http.request.method", Value::Text(known.unwrap_or("_OTHER"))));
    if known.is_none() {
        out.push(("http.request.method_original", Value::Wire(method)));
    }
}

fn error_type<'a>(cause: Option<&'a str>, status: u16, from: u16) -> Option<Attribute<'a>> {
    let value = cause.map(Value::Text).or((status >= from).then_some(Value::Code(status)))?;
    Some(("error.type", value))
}
