//! Formats of the access log: text with fields in it, as `$name` or `${name}`; `$$` is a dollar sign.
//!
//! Read once into pieces. A format that begins with a brace is JSON, and what a client sent is escaped for that.

use std::fmt;

use maitred_http::{TlsSession, Version};
use maitred_stats::Span;

use crate::outcome::Outcome;

const NAMED: &[(&str, &str)] = &[
    (
        "default",
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \
         \"$http_user_agent\" $total$ended_mark",
    ),
    ("common", "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent"),
    (
        "combined",
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \
         \"$http_user_agent\"",
    ),
    (
        "times",
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \
         \"$http_user_agent\" id=$request_id pool=$pool listener=$listener route=\"$route\" ended=$ended start=$start \
         accept=$accept queue=$queue gate=$gate filter=$filter run=$run receive=$receive write=$write total=$total",
    ),
    (
        "json",
        "{\"start\":$start,\"time\":\"$start_iso\",\"id\":\"$request_id\",\"trace_id\":\"$trace_id\",\"span_id\":\"$span_id\",\"remote\":\"$remote_addr\",\
         \"user\":\"$remote_user\",\"method\":\"$request_method\",\"target\":\"$request_uri\",\"protocol\":\"$server_protocol\",\
         \"host\":\"$host\",\"status\":$status,\"bytes\":$body_bytes_sent,\"referer\":\"$http_referer\",\
         \"agent\":\"$http_user_agent\",\"listener\":\"$listener\",\"pool\":\"$pool\",\"route\":\"$route\",\
         \"ended\":\"$ended\",\"accept\":$accept,\"queue\":$queue,\"gate\":$gate,\"filter\":$filter,\"run\":$run,\
         \"receive\":$receive,\"write\":$write,\"total\":$total,\"outer\":$outer,\"db\":$db,\"db_statements\":$db_statements,\
         \"outgoing\":$outgoing,\"outgoing_calls\":$outgoing_calls,\"outgoing_failed\":$outgoing_failed,\
         \"outgoing_slowest\":\"$outgoing_slowest\"}",
    ),
];

/// Lines for a person at a terminal: see `short.rs`.
const SHORT: &[(&str, &str)] = &[("short", "$short"), ("short-color", "$short_color")];

/// The whole line of a request.
const REQUEST: &str = "request";
const PROTOCOL: &str = "server_protocol";

/// The fields that have a name, as they are in a line. A method is a token (RFC 9110, section 9.1), so a method is written without escapes. The protocol is
/// written in another way in a line of text.
const FIELDS: &[(&str, Piece)] = &[
    ("remote_addr", Piece::Field(Field::RemoteAddress)),
    ("remote_user", Piece::Source(Source::User)),
    ("remote_port", Piece::Field(Field::RemotePort)),
    ("time_local", Piece::Field(Field::LocalTime)),
    (REQUEST, Piece::Whole(Source::Target)),
    ("request_method", Piece::Plain(Source::Method)),
    ("request_uri", Piece::Source(Source::Target)),
    ("path", Piece::Source(Source::Path)),
    ("args", Piece::Source(Source::Query)),
    (PROTOCOL, Piece::Plain(Source::Protocol)),
    ("host", Piece::Source(Source::Host)),
    ("status", Piece::Field(Field::Status)),
    ("body_bytes_sent", Piece::Field(Field::BodyBytes)),
    ("request_id", Piece::Id),
    ("trace_id", Piece::Field(Field::TraceId)),
    ("span_id", Piece::Field(Field::SpanId)),
    ("route", Piece::Route),
    ("pool", Piece::Field(Field::Pool)),
    ("listener", Piece::Field(Field::Listener)),
    ("worker", Piece::Field(Field::Worker)),
    ("ended", Piece::Field(Field::Ended)),
    ("ended_mark", Piece::Field(Field::EndedMark)),
    ("start", Piece::Field(Field::Start)),
    ("start_iso", Piece::Field(Field::StartIso)),
    ("accept", Piece::Field(Field::Span(Span::Accept))),
    ("queue", Piece::Field(Field::Span(Span::Queue))),
    ("gate", Piece::Field(Field::Span(Span::Gate))),
    ("filter", Piece::Field(Field::Span(Span::Filter))),
    ("run", Piece::Field(Field::Span(Span::Run))),
    ("receive", Piece::Field(Field::Span(Span::Receive))),
    ("write", Piece::Field(Field::Span(Span::Write))),
    ("total", Piece::Field(Field::Total)),
    ("outer", Piece::Field(Field::Outer)),
    ("db", Piece::Field(Field::Database)),
    ("db_statements", Piece::Field(Field::Statements)),
    ("outgoing", Piece::Field(Field::Outgoing)),
    ("outgoing_calls", Piece::Field(Field::Calls)),
    ("outgoing_failed", Piece::Field(Field::FailedCalls)),
    ("outgoing_slowest", Piece::Source(Source::SlowestServer)),
    ("outgoing_slowest_time", Piece::Field(Field::SlowestCall)),
    ("tls_protocol", Piece::Source(Source::TlsProtocol)),
    ("tls_cipher", Piece::Source(Source::TlsCipher)),
    ("tls_group", Piece::Source(Source::TlsGroup)),
    ("tls_resumed", Piece::Source(Source::TlsResumed)),
    ("tls_sni", Piece::Source(Source::TlsSni)),
    ("tls_client", Piece::Source(Source::TlsClient)),
    ("tls_handshake", Piece::Field(Field::TlsHandshake)),
    ("short", Piece::Field(Field::Short { colored: false })),
    ("short_color", Piece::Field(Field::Short { colored: true })),
];

/// What stands before the name of a request field, whose hyphens are underscores: `$http_user_agent`.
const HEADER: &str = "http_";

/// Something of a request and its answer that is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    RemoteAddress,
    RemotePort,
    LocalTime,
    Status,
    BodyBytes,
    TraceId,
    SpanId,
    Pool,
    Listener,
    Worker,
    Ended,
    EndedMark,
    Start,
    StartIso,
    Span(Span),
    Total,
    Outer,
    Database,
    Statements,
    Outgoing,
    Calls,
    FailedCalls,
    SlowestCall,
    TlsHandshake,
    /// The whole line, see `short.rs`.
    Short {
        colored: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Method,
    Target,
    Path,
    Query,
    /// `HTTP/2`, as applications are told it.
    Protocol,
    /// `HTTP/2.0`, as nginx and Apache write it in a line of text: programs that read their logs look for the dot.
    DottedProtocol,
    Host,
    User,
    /// The server of the slowest call.
    SlowestServer,
    TlsProtocol,
    TlsCipher,
    TlsGroup,
    /// `yes` or `no`.
    TlsResumed,
    TlsSni,
    /// The subject of the client's certificate.
    TlsClient,
    Header(Box<str>),
}

impl Source {
    #[inline]
    pub(crate) fn text<'a>(&self, outcome: &'a Outcome<'_>) -> &'a [u8] {
        let head = outcome.head;
        match self {
            Self::Method => head.method.as_str().as_bytes(),
            Self::Target => head.target(),
            Self::Path => head.path(),
            Self::Query => head.query().unwrap_or_default(),
            Self::Protocol => head.version.as_str().as_bytes(),
            Self::DottedProtocol => match head.version {
                Version::Http2 => b"HTTP/2.0",
                Version::Http3 => b"HTTP/3.0",
                version => version.as_str().as_bytes(),
            },
            Self::Host => head.authority(),
            Self::User => head.user(),
            Self::SlowestServer => outcome.outgoing.map_or(b"", |calls| calls.slowest.as_bytes()),
            Self::Header(name) => head.fields.first(name).unwrap_or_default(),
            _ => head.tls.as_deref().map_or(b"", |session| self.text_of(session)),
        }
    }

    fn text_of<'a>(&self, session: &'a TlsSession) -> &'a [u8] {
        let text = match self {
            Self::TlsProtocol => session.version,
            Self::TlsCipher => session.suite,
            Self::TlsGroup => session.group.unwrap_or_default(),
            Self::TlsResumed if session.resumed => "yes",
            Self::TlsResumed => "no",
            Self::TlsSni => session.sni.as_deref().unwrap_or_default(),
            Self::TlsClient => session.client.as_ref().map_or("", |client| &client.subject),
            _ => "",
        };
        text.as_bytes()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A part of the format's own text.
    Text(Box<str>),
    Field(Field),
    /// What a client sent; a hyphen if it is empty.
    Source(Source),
    /// The same, or nothing.
    Whole(Source),
    /// The same of what needs no care in any line.
    Plain(Source),
    /// The id of the request, or what is made for one without.
    Id,
    Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    Text,
    Json,
}

/// A format of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    text: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) escape: Escape,
    pub(crate) has_spans: bool,
    pub(crate) is_short: bool,
}

/// Why a text is no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFormat {
    /// There is nothing in it.
    Empty,
    /// It is neither a name nor has it a field.
    NoField(String),
    /// There is no field of this name.
    UnknownField(String),
    /// A dollar sign without a name behind it, at this byte.
    NoName(usize),
    /// It would be more than one line.
    ControlCharacter,
}

impl Default for Format {
    fn default() -> Self {
        Self { text: "default".to_owned(), ..Self::compile(NAMED[0].1).unwrap_or_else(|_| Self::empty()) }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Format {
    /// The names of formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().chain(SHORT).map(|(name, _)| *name)
    }

    /// The names of fields, without the dollar sign; `http_` and the name of a request field is one too.
    pub fn fields() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name).chain(["http_referer", "http_user_agent"])
    }

    /// The name of a format, or text with fields in it.
    pub fn parse(text: &str) -> Result<Self, BadFormat> {
        if let Some((_, named)) = NAMED.iter().chain(SHORT).find(|(name, _)| *name == text) {
            return Self::compile(named).map(|format| Self { text: text.to_owned(), ..format });
        }
        let format = Self::compile(text)?;
        match format.pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
            true => Err(BadFormat::NoField(text.to_owned())),
            false => Ok(format),
        }
    }

    fn empty() -> Self {
        Self {
            text: String::new(),
            pieces: Vec::new(),
            escape: Escape::Text,
            has_spans: false,
            is_short: false,
        }
    }

    fn compile(text: &str) -> Result<Self, BadFormat> {
        if text.is_empty() {
            return Err(BadFormat::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(BadFormat::ControlCharacter);
        }
        let escape = if text.starts_with('{') { Escape::Json } else { Escape::Text };
        let mut format = Self { text: text.to_owned(), escape, ..Self::empty() };
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            format.push_text(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            if let Some(after) = after.strip_prefix('$') {
                format.push_text("$");
                rest = after;
                continue;
            }
            let (name, after) = name_of(after).ok_or(BadFormat::NoName(text.len() - rest.len() + dollar))?;
            format.push_field(name)?;
            rest = after;
        }
        format.push_text(rest);
        Ok(format)
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.pieces.push(Piece::Text(text.into()));
        }
    }

    fn push_field(&mut self, name: &str) -> Result<(), BadFormat> {
        let known = FIELDS.iter().find(|(known, _)| *known == name);
        let piece = match (known, name.strip_prefix(HEADER)) {
            (Some((REQUEST, target)), _) => {
                self.push_field("request_method")?;
                self.push_text(" ");
                self.pieces.push(target.clone());
                self.push_text(" ");
                return self.push_field(PROTOCOL);
            }
            (Some((PROTOCOL, _)), _) if self.escape == Escape::Text => Piece::Plain(Source::DottedProtocol),
            (Some((_, piece)), _) => piece.clone(),
            (None, Some(header)) if !header.is_empty() => {
                Piece::Source(Source::Header(header.replace('_', "-").into()))
            }
            _ => return Err(BadFormat::UnknownField(name.to_owned())),
        };
        self.has_spans |= matches!(piece, Piece::Field(Field::Span(_) | Field::Short { .. }));
        self.is_short |= matches!(piece, Piece::Field(Field::Short { .. }));
        self.pieces.push(piece);
        Ok(())
    }
}

/// The name at the beginning of what stands behind a dollar sign, and the rest.
fn name_of(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let is_end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let end = text.find(is_end).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_a_name_are_valid() {
        for name in Format::names() {
            let format = Format::parse(name).expect(name);
            assert_eq!(format.to_string(), name);
            assert_eq!(format.escape == Escape::Json, name == "json");
        }
        assert_eq!(Format::default(), Format::parse("default").unwrap());
    }

    #[test]
    fn fields_stand_in_text() {
        let format = Format::parse("a${status}b$$c $http_x_y-").unwrap();
        let text = |text: &str| Piece::Text(text.into());
        assert_eq!(
            format.pieces,
            [
                text("a"),
                Piece::Field(Field::Status),
                text("b"),
                text("$"),
                text("c "),
                Piece::Source(Source::Header("x-y".into())),
                text("-")
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(Format::parse(""), Err(BadFormat::Empty));
        assert_eq!(Format::parse("combind"), Err(BadFormat::NoField("combind".to_owned())));
        assert_eq!(Format::parse("$status $statsu"), Err(BadFormat::UnknownField("statsu".to_owned())));
        assert_eq!(Format::parse("$http_"), Err(BadFormat::UnknownField("http_".to_owned())));
        assert_eq!(Format::parse("$status $"), Err(BadFormat::NoName(8)));
        assert_eq!(Format::parse("a $$ ${x"), Err(BadFormat::NoName(5)));
        assert_eq!(Format::parse("$status\n"), Err(BadFormat::ControlCharacter));
    }
}
