//! The spans and the log record of an exchange that has ended.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;

use maitred_http::trace::Arrival;
use maitred_http::{TracePlace, Version};
use maitred_log::{End, Outcome, wall_nanos};
use maitred_runtime::CallSpan;
use maitred_stats::Span as Phase;
use maitred_trace::context::Flags;
use maitred_trace::logs::{Record, Severity};
use maitred_trace::span::{ClientCall, Event, Kind, Link, Parent, ServerRequest, Status};
use maitred_trace::{Attribute, Context, Format, Limits, Span, SpanId, TraceId, Value};

use super::ids::span_id;
use super::rules::{TracePhases, TraceRules};

/// Values of a query that are secrets by themselves: of signed URLs.
const SECRETS: [&[u8]; 4] = [b"AWSAccessKeyId", b"Signature", b"sig", b"X-Goog-Signature"];

/// Texts that a span is made of; a thread keeps their memory.
#[derive(Default)]
struct Texts {
    name: String,
    client: String,
    peer: String,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
}

/// An exchange and its place.
pub(super) struct Traced<'a> {
    pub(super) place: &'a TracePlace,
    pub(super) outcome: &'a Outcome<'a>,
    /// The pattern that has led the request to its destination; empty if there is none.
    pub(super) route: &'a str,
    pub(super) rules: &'a TraceRules,
    pub(super) limits: &'a Limits,
}

impl Traced<'_> {
    /// Gives `item` the span of the request, and the spans below it.
    pub(super) fn spans(
        &self,
        format: Format,
        phases: TracePhases,
        calls: &[(CallSpan, String)],
        mut item: impl FnMut(&[u8]),
    ) {
        let Some((trace, id)) = ids(&self.place.trace, &self.place.span) else { return };
        let flags = Flags::of(self.place.flags);
        let events = match phases {
            TracePhases::Events => self.phases().map(|(name, start, _)| event(name, start)).collect(),
            TracePhases::Spans => Vec::new(),
        };
        let mut out = Vec::with_capacity(1024);
        self.with_request(|name, request, attributes| {
            let context = self.place.link.and_then(|(trace, span)| {
                let (trace, span) = ids(&trace, &span)?;
                Some(Context { trace, span, flags: Flags::default() })
            });
            let link = context.map(|context| Link { context, state: "", attributes: &[] });
            let state = self.outcome.head.fields.first("tracestate").unwrap_or_default();
            let (start, end) = self.ends();
            let parent = SpanId::new(self.place.parent).map(|id| Parent { id, remote: true });
            let span = Span {
                trace,
                id,
                parent,
                flags,
                state: std::str::from_utf8(state).unwrap_or_default(),
                name,
                kind: Kind::Server,
                start,
                end,
                attributes,
                events: &events,
                links: link.as_slice(),
                status: request.span_status(),
            };
            span.encode(format, self.limits, &mut out);
        });
        item(&out);
        if phases == TracePhases::Spans {
            for (name, start, end) in self.phases() {
                if let Some(own) = SpanId::new(span_id()) {
                    out.clear();
                    let of_phase = Span { id: own, name, start, end, ..below(trace, id, flags) };
                    of_phase.encode(format, self.limits, &mut out);
                    item(&out);
                }
            }
        }
        call_spans(self.place, (format, self.limits), calls, item);
    }

    /// Gives `item` the record of the request in a log.
    pub(super) fn record(&self, format: Format, item: impl FnOnce(&[u8])) {
        let mut out = Vec::with_capacity(1024);
        self.with_request(|name, request, attributes| {
            let severity = match request.span_status() {
                Status::Error(_) => Severity::Error,
                Status::Unset => Severity::Info,
            };
            let context = ids(&self.place.trace, &self.place.span).map(|(trace, span)| Context {
                trace,
                span,
                flags: Flags::of(self.place.flags),
            });
            let seconds = self.outcome.times.total() as f64 / 1e9;
            let mut attributes = attributes.to_vec();
            attributes.push(("http.server.request.duration", Value::Float(seconds)));
            let body = format!("{name} {}", self.outcome.status.code());
            let (_, time) = self.ends();
            let event = "http.server.request";
            Record { time, severity, event, body: Value::Text(&body), attributes: &attributes, context }
                .encode(format, self.limits, &mut out);
        });
        item(&out);
    }

    /// Calls `use_it` with the name, the facts and the attributes of the request.
    fn with_request(&self, use_it: impl FnOnce(&str, &ServerRequest<'_>, &[Attribute<'_>])) {
        let Self { outcome, .. } = self;
        let head = outcome.head;
        let (server, port) = split_authority(head.authority());
        let Arrival { secure, peer: connected } = head.arrival;
        let usual = if secure { 443 } else { 80 };
        TEXTS.with_borrow_mut(|texts| {
            let masked = |address: IpAddr| self.rules.mask.map_or(address, |mask| mask.apply(address));
            texts.write(outcome.peer.ip().map(masked), connected.map(masked));
            let Texts { name, client, peer } = texts;
            let query = visible(head.query().filter(|_| self.rules.query).unwrap_or_default());
            let request = ServerRequest {
                method: head.method.as_str().as_bytes(),
                route: self.route,
                path: head.path(),
                query: &query,
                scheme: if secure { "https" } else { "http" },
                status: outcome.status.code(),
                aborted: (outcome.end != End::Complete).then(|| outcome.end.name()),
                server,
                server_port: (!server.is_empty()).then(|| port.unwrap_or(usual)),
                client,
                peer,
                version: version(head.version),
                user_agent: head.fields.first("user-agent").unwrap_or_default(),
                request_body: None,
                response_body: Some(outcome.body_bytes),
            };
            request.name(name);
            let mut attributes = Vec::with_capacity(24);
            request.attributes(&mut attributes);
            if let Some(database) = outcome.database {
                let statements = i64::try_from(database.statements).unwrap_or(i64::MAX);
                attributes.push(("maitred.db.statements", Value::Integer(statements)));
                attributes.push(("maitred.db.seconds", Value::Float(database.nanos as f64 / 1e9)));
            }
            use_it(name, &request, &attributes);
        });
    }

    /// Beginning and end, in nanoseconds since 1970.
    fn ends(&self) -> (u64, u64) {
        let times = &self.outcome.times;
        let start = if times.arrived == 0 { times.written } else { times.arrived };
        let start = wall_nanos(start);
        (start, start + times.total())
    }

    /// The parts that took time: name, beginning and end.
    fn phases(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let times = self.outcome.times;
        let spans = times.spans();
        let (start, _) = self.ends();
        let at = move |station: u64| start + station.saturating_sub(times.arrived);
        let queued = times.complete.max(times.arrived);
        let begun = times.begun.max(queued);
        let running = times.gated.max(begun);
        let done = times.done.max(running);
        Phase::ALL.into_iter().filter(move |phase| spans.get(*phase) > 0).map(move |phase| {
            let (from, to) = match phase {
                Phase::Accept => (times.arrived, queued),
                Phase::Queue => (queued, begun),
                Phase::Gate => (begun, running),
                Phase::Filter => (times.filtering, times.filtered),
                Phase::Run => (running, done),
                // The moments are not known, but their sum.
                Phase::Receive => (running, running + times.awaited),
                Phase::Write => (done, times.written),
            };
            (phase.name(), at(from), at(to))
        })
    }
}

impl Texts {
    fn write(&mut self, client: Option<IpAddr>, peer: Option<IpAddr>) {
        self.name.clear();
        for (text, address) in [(&mut self.client, client), (&mut self.peer, peer)] {
            text.clear();
            if let Some(address) = address {
                // Writing to memory does not fail.
                let _ = write!(text, "{address}");
            }
        }
    }
}

/// Gives `item` the spans of these calls of the request at `place`, with the names of their servers.
pub(super) fn call_spans(
    place: &TracePlace,
    (format, limits): (Format, &Limits),
    calls: &[(CallSpan, String)],
    mut item: impl FnMut(&[u8]),
) {
    let Some((trace, above)) = ids(&place.trace, &place.span) else { return };
    let mut out = Vec::with_capacity(512);
    for (call, server) in calls {
        let Some(id) = SpanId::new(call.facts.span) else { continue };
        let (scheme, host, port) = server_of(server);
        let url = match port {
            Some(port) if host.contains(':') => format!("{scheme}://[{host}]:{port}"),
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => String::new(),
        };
        let url = if url.is_empty() { Vec::new() } else { [url.as_bytes(), &call.facts.path].concat() };
        let client = ClientCall {
            method: call.facts.method.as_str().as_bytes(),
            url: &url,
            server: host,
            port: port.unwrap_or_default(),
            status: call.status.unwrap_or_default(),
            failed: Some(call.failure).filter(|failure| !failure.is_empty()),
            version: call.status.map_or("", |_| "1.1"),
            resent: call.retried.into(),
        };
        let mut attributes = Vec::with_capacity(10);
        client.attributes(&mut attributes);
        let (name, start, status) = (client.name(), wall_nanos(call.begun), client.span_status());
        let (end, kind, attributes) = (start + call.nanos, Kind::Client, &*attributes);
        out.clear();
        Span {
            id,
            name,
            kind,
            start,
            end,
            attributes,
            status,
            ..below(trace, above, Flags::of(place.flags))
        }
        .encode(format, limits, &mut out);
        item(&out);
    }
}

/// A span below that of a request, still without an id, a name and times of its own.
fn below(trace: TraceId, id: SpanId, flags: Flags) -> Span<'static> {
    Span {
        trace,
        id,
        parent: Some(Parent { id, remote: false }),
        flags,
        state: "",
        name: "",
        kind: Kind::Internal,
        start: 0,
        end: 0,
        attributes: &[],
        events: &[],
        links: &[],
        status: Status::Unset,
    }
}

fn event(name: &'static str, time: u64) -> Event<'static> {
    Event { time, name, attributes: &[] }
}

fn ids(trace: &[u8; 16], span: &[u8; 8]) -> Option<(TraceId, SpanId)> {
    Some((TraceId::new(*trace)?, SpanId::new(*span)?))
}

const fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
        Version::Http3 => "3",
    }
}

/// Host and port of `host[:port]`, without the brackets of an address.
fn split_authority(authority: &[u8]) -> (&[u8], Option<u16>) {
    let colon = authority.iter().rposition(|byte| *byte == b':');
    let (host, port) = match colon {
        Some(at) if !authority.ends_with(b"]") => (&authority[..at], &authority[at + 1..]),
        _ => (authority, &b""[..]),
    };
    let host = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    (host, std::str::from_utf8(port).ok().and_then(|port| port.parse().ok()))
}

/// Scheme, address and port of a server by its name in figures, `https://host:port`: of a socket its path without a port, and of those
/// that are counted together nothing.
#[must_use]
pub fn server_of(name: &str) -> (&str, &str, Option<u16>) {
    let Some((scheme, authority)) = name.split_once("://") else { return ("", "", None) };
    let host_and_port = authority.rsplit_once(':').filter(|_| !authority.starts_with('/'));
    match host_and_port.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (scheme, host.trim_matches(['[', ']']), Some(port)),
        None => (scheme.trim_end_matches("+unix"), authority, None),
    }
}

/// The query without the signatures of signed URLs.
fn visible(query: &[u8]) -> Cow<'_, [u8]> {
    let name = |part: &[u8]| part.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    let is_secret = |part: &[u8]| SECRETS.contains(&&*name(part));
    if query.is_empty() || !query.split(|byte| *byte == b'&').any(is_secret) {
        return query.into();
    }
    let shown = query.split(|byte| *byte == b'&').map(|part| match is_secret(part) {
        true => [&*name(part), b"=REDACTED"].concat(),
        false => part.to_vec(),
    });
    shown.collect::<Vec<_>>().join(&b'&').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_of_an_authority() {
        for (authority, host, port) in [
            ("shop.example", "shop.example", None),
            ("shop.example:8443", "shop.example", Some(8443)),
            ("[::1]", "::1", None),
            ("[::1]:81", "::1", Some(81)),
            ("a:", "a", None),
            ("", "", None),
        ] {
            assert_eq!(split_authority(authority.as_bytes()), (host.as_bytes(), port), "{authority}");
        }
        assert_eq!(server_of("https://[::1]:443"), ("https", "::1", Some(443)));
        assert_eq!(server_of("https://::1:443"), ("https", "::1", Some(443)));
        assert_eq!(server_of("http+unix:///run/a:1"), ("http", "/run/a:1", None));
        assert_eq!(server_of("other"), ("", "", None));
    }

    #[test]
    fn signatures_are_not_shown() {
        let shown = |query: &str| String::from_utf8(visible(query.as_bytes()).into_owned()).expect("text");
        assert_eq!(shown("a=1&sig=x%20y&b"), "a=1&sig=REDACTED&b");
        assert_eq!(shown("signed=1&b=sig"), "signed=1&b=sig");
    }
}
