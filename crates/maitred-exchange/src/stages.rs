//! The stages of a response: all changes of its head on the way to the peer, in one order.
//!
//! ```text
//! stage          engine    handler  WebSocket
//! page           errors                         the error page of the host, in the place of the engine's text
//! file                     if on                the file that an application names, in the place of its body
//! timings                  yes                  entries of Server-Timing, to the statistics
//! filters        yes       yes      yes         fields that filters set and remove
//! own limits               yes                  rate and send timeout that an application asks for, to the connection
//! server timing            if on                the times of the request, for the client
//! request id     errors    if on                the number of the request, for the client
//! coding, ranges           yes                  the wish to compress the body, or to cut it
//! ```
//! Then the head has its length settled and is encoded: by [`send_own`](super::link::Link::send_own) for the engine, by the
//! encoder of a responder for a handler. A stage that has nothing to do copies nothing.
//!
//! Section below: [`respond`] and [`refuse`], by which all responses of the engine leave.
//!
//! Leaves out: bodies, connections and locks.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use maitred_compress as compress;
use maitred_compress::Opinion;
use maitred_files::{Body, Submitted, partial};
use maitred_filters::Passed;
use maitred_http::coding::Coding;
use maitred_http::trace::Hex;
use maitred_http::{Peer, RequestHead, ResponseHead, Status};
use maitred_io::clock;
use maitred_io::sync::atomic::Ordering;
use maitred_log::{RequestId, upstream_queue};
use maitred_runtime::{Database, DatabaseCounts, Outgoing, OutgoingCounts, Request, SendError};
use maitred_stats::{Span, Spans, Times};

use crate::flags::Flags;
use crate::link::{Link, Received};
use crate::own_limits;
use crate::own_limits::OwnLimits;
use crate::response::Response;
use crate::site::{Counted, Site};
use crate::stream::Stream;
use crate::stream::awaited::Awaited;

/// The request of a response, as far as the response depends on it.
pub struct Asked<'a> {
    /// Head of the request.
    pub head: &'a RequestHead,
    /// The number of the request.
    pub number: u64,
    /// The filters that the request has passed.
    pub passed: Option<&'a Passed>,
    /// The maker of the response.
    pub maker: Maker<'a>,
}

/// The maker of a response.
pub enum Maker<'a> {
    /// The engine; `secure` says whether the client used TLS.
    Engine {
        /// The client has used TLS.
        secure: bool,
    },
    /// A handler.
    Handler(Handling<'a>),
    /// A handler that accepts a WebSocket.
    WebSocket,
}

/// The run of a request by a handler.
pub struct Handling<'a> {
    /// The request.
    pub request: &'a Request,
    /// The client.
    pub peer: Peer,
    /// Number of the pool.
    pub pool: u16,
    /// Times of the request so far.
    pub times: &'a Times,
    /// Flags of the exchange.
    pub flags: &'a Flags,
    /// The application has announced fields behind the body.
    pub announced: bool,
}

/// A response on its way through the stages.
pub struct Draft<'a> {
    /// Head of the response.
    pub head: Cow<'a, ResponseHead>,
    /// Bytes of the body, if known.
    pub length: Option<u64>,
    /// The body that takes the place of the given one.
    pub body: Option<Body>,
    /// Limits that an application asks for.
    pub limits: Option<OwnLimits>,
    /// Warnings for the error log, about values of those limits.
    pub warnings: Vec<String>,
    /// The head waits for the body, which may change its form.
    pub wish: Option<Wish>,
}

/// The form that a body may get before it is sent.
pub enum Wish {
    /// To be compressed.
    Compress(Coding),
    /// The ranges that the client asks for.
    Ranges,
}

impl<'a> Draft<'a> {
    /// Leads a response with this head through all stages.
    ///
    /// # Errors
    /// The application names a file that it may not send.
    pub fn pass(
        site: &Site,
        asked: &Asked<'_>,
        head: &'a ResponseHead,
        length: Option<u64>,
    ) -> Result<Self, SendError> {
        let head = Cow::Borrowed(head);
        let mut draft = Self { head, length, body: None, limits: None, warnings: Vec::new(), wish: None };
        draft.take_page(site, asked);
        draft.take_file(site, asked)?;
        draft.note_timings(site, asked);
        draft.pass_filters(site, asked);
        draft.take_limits(site, asked);
        draft.tell_times(site, asked);
        draft.tell_id(site, asked);
        draft.choose_form(site, asked);
        Ok(draft)
    }

    fn replace(&mut self, head: ResponseHead, length: u64, body: Body) {
        (self.head, self.length, self.body) = (Cow::Owned(head), Some(length), Some(body));
    }

    fn take_page(&mut self, site: &Site, asked: &Asked<'_>) {
        if matches!(asked.maker, Maker::Engine { .. })
            && self.head.status.code() >= 400
            && let Some((head, content)) = site.hosts.of(asked.head.host).pages().replace(&self.head)
        {
            self.replace(head, content.len(), Body::One(content));
        }
    }

    fn take_file(&mut self, site: &Site, asked: &Asked<'_>) -> Result<(), SendError> {
        let Maker::Handler(Handling { request, peer, .. }) = &asked.maker else { return Ok(()) };
        let on = On(*peer, request);
        let found = site.submissions.find(asked.head, &self.head).map_err(|text| {
            site.log.error(format_args!("{on}: the application's response cannot be sent: {text}"));
            SendError::InvalidField(text)
        })?;
        if let Some(Submitted { head, length, parts, note }) = found {
            if let Some(note) = note {
                site.log.error(format_args!("{on}: {note}"));
            }
            self.replace(head, length, Body::Many(parts));
        }
        Ok(())
    }

    fn note_timings(&self, site: &Site, asked: &Asked<'_>) {
        if let Maker::Handler(Handling { request, pool, .. }) = &asked.maker {
            let counted = Counted {
                database: counts(request).is_some_and(|counts| !counts.is_empty()),
                outgoing: request.outgoing.as_deref().is_some_and(|calls| !calls.counts().is_empty()),
            };
            let route = (asked.head, &*request.route);
            site.figures.record_timings((*pool, counted), route, self.head.status, &self.head.fields);
        }
    }

    fn pass_filters(&mut self, site: &Site, asked: &Asked<'_>) {
        let changed = match (asked.passed, &asked.maker) {
            (Some(passed), _) => passed.response_head(asked.head, &self.head),
            // Limits on peers refuse before filters are met. Only rules for host and scheme count then.
            (None, Maker::Engine { secure }) if self.head.status.code() >= 400 => {
                site.filters.change_refused(&self.head, asked.head.host, *secure)
            }
            (None, _) => None,
        };
        if let Some(head) = changed {
            self.head = Cow::Owned(head);
        }
    }

    fn take_limits(&mut self, site: &Site, asked: &Asked<'_>) {
        if matches!(asked.maker, Maker::Handler(_))
            && let Some(found) = own_limits::take(&self.head, site.submissions.is_on())
        {
            self.head = Cow::Owned(found.head);
            (self.limits, self.warnings) = (Some(found.limits), found.warnings);
        }
    }

    fn tell_times(&mut self, site: &Site, asked: &Asked<'_>) {
        let Maker::Handler(Handling { request, times, flags, .. }) = &asked.maker else { return };
        if !site.measures.server_timing.load(Ordering::Relaxed) {
            return;
        }
        let times = Times { done: clock::monotonic(), awaited: flags.awaited(), ..**times };
        let outer = upstream_queue(&asked.head.fields, times.arrived);
        let mut value = server_timing(outer, &times.spans());
        if let Some(counts) = counts(request) {
            push_database(&mut value, counts);
        }
        if let Some(calls) = request.outgoing.as_deref().map(Outgoing::counts) {
            push_calls(&mut value, calls, |server| site.figures.calls.name(server));
        }
        self.head.to_mut().fields.push("Server-Timing", value);
    }

    fn tell_id(&mut self, site: &Site, asked: &Asked<'_>) {
        let tells = match asked.maker {
            Maker::Engine { .. } => self.head.status.code() >= 400,
            Maker::Handler(_) => true,
            Maker::WebSocket => false,
        };
        if tells
            && site.measures.response_ids.load(Ordering::Relaxed)
            && !self.head.fields.contains("x-request-id")
        {
            let id = RequestId::of(&asked.head.fields, asked.number).to_string();
            self.head.to_mut().fields.push("X-Request-ID", id);
        }
    }

    fn choose_form(&mut self, site: &Site, asked: &Asked<'_>) {
        let Maker::Handler(Handling { request, announced, .. }) = &asked.maker else { return };
        if self.body.is_some() {
            // A file is sent as it is.
            return;
        }
        let compression = site.compression.as_ref();
        match compression.map_or(Opinion::None, |own| own.consider(asked.head, &self.head, self.length)) {
            Opinion::Coded { plain, coding } => {
                (self.head, self.wish) = (Cow::Owned(plain), Some(Wish::Compress(coding)));
            }
            Opinion::Unmade(head) => (self.head, self.length) = (Cow::Owned(head), None),
            Opinion::Plain(head) => self.head = Cow::Owned(head),
            Opinion::None => {}
        }
        // Fields behind the body describe the whole body.
        let whole = *announced && request.takes_trailers();
        if self.wish.is_none() && !whole && partial::is_wanted(asked.head, &self.head) {
            self.wish = Some(Wish::Ranges);
        }
        if self.wish.is_some() {
            let declared = || compress::decimal(self.head.fields.first("content-length")?);
            self.length = self.length.or_else(declared);
        }
    }
}

// ---- Responses of the engine ----

impl Response {
    /// The response behind all stages.
    fn finished(mut self, site: &Site, asked: &Asked<'_>) -> Self {
        // No stage refuses a response of the engine.
        if let Ok(draft) = Draft::pass(site, asked, &self.head, Some(self.length)) {
            let Draft { head, length, body, .. } = draft;
            let changed = if let Cow::Owned(head) = head { Some(head) } else { None };
            if let Some(body) = body {
                (self.length, self.body) = (length.unwrap_or_default(), body);
            }
            self.head = changed.map_or(self.head, Arc::new);
        }
        self
    }
}

/// The option with the limit of the head, for the log.
fn option_of(reason: &str) -> &'static str {
    match reason {
        "field too large" => " (--max-field)",
        "request head too large" => " (--max-head)",
        _ => "",
    }
}

/// Leads a response of the engine through all stages, and has the connection send it to a request that no handler has.
pub fn respond<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, response: Response) -> Received {
    let secure = link.client_of(&stream).secure;
    let (head, number) = (&stream.request.head, stream.request.number);
    let asked = Asked { head, number, passed: stream.passed.as_deref(), maker: Maker::Engine { secure } };
    let response = response.finished(link.site(), &asked);
    link.send_own(stream, response)
}

/// Refuses a request that is malformed or not allowed: the response is the last one of the connection.
pub fn refuse<'a>(
    link: &mut impl Link<'a>,
    stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    link.site().log.info(format_args!(
        "{}: {} {}: {reason}{}",
        link.client_of(&stream).peer,
        status.code(),
        status.reason(),
        option_of(reason)
    ));
    refuse_noted(link, stream, status, reason)
}

/// Refuses a request; the line of the rule is in the log already.
pub fn refuse_noted<'a>(
    link: &mut impl Link<'a>,
    mut stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    // A head that could not be read has no other facts.
    stream.request.head.tls = link.session();
    link.site().counters.refused.add(1);
    respond(link, stream, Response::refusal(status, reason))
}

/// The response of the engine in the place of a handler that is late.
pub fn late_response(site: &Site, awaited: &Awaited) -> Response {
    let Awaited { head, number, secure, passed, .. } = awaited;
    let maker = Maker::Engine { secure: *secure };
    let asked = Asked { head, number: *number, passed: passed.as_deref(), maker };
    awaited.plain_response().finished(site, &asked)
}

// ---- Parts of stages ----

fn counts(request: &Request) -> Option<DatabaseCounts> {
    request.database.as_deref().map(Database::counts)
}

/// The spans up to the head of a response, in milliseconds (Server Timing §2): what follows is not known yet.
/// `outer` is the time before all of them, if it is known.
fn server_timing(outer: Option<u64>, spans: &Spans) -> String {
    let mut text = String::with_capacity(96);
    let known = Span::ALL.into_iter().filter(|span| *span != Span::Write);
    let parts = known.map(|span| (span.name(), spans.get(span)));
    for (name, nanos) in outer.map(|outer| ("outer", outer)).into_iter().chain(parts) {
        let micros = nanos / 1000;
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a String does not fail.
        let _ = write!(text, "{separator}{};dur={}.{:03}", name, micros / 1000, micros % 1000);
    }
    text
}

/// Appends the time in databases up to the head and the number of statements; nothing without statements.
fn push_database(text: &mut String, counts: DatabaseCounts) {
    if counts.is_empty() {
        return;
    }
    let DatabaseCounts { statements, nanos, .. } = counts;
    let (micros, plural) = (nanos / 1000, if statements == 1 { "" } else { "s" });
    // Writing to a String does not fail.
    let _ = write!(
        text,
        ", db;dur={}.{:03};desc=\"{statements} statement{plural}\"",
        micros / 1000,
        micros % 1000
    );
}

/// Appends the time of calls to other servers up to the head, with the server of the slowest one; nothing without calls.
fn push_calls(text: &mut String, counts: OutgoingCounts, name: impl FnOnce(u16) -> String) {
    if counts.is_empty() {
        return;
    }
    let OutgoingCounts { calls, nanos, slowest, .. } = counts;
    let (micros, plural) = (nanos / 1000, if calls == 1 { "" } else { "s" });
    // The path of a Unix socket may have any sign.
    let is_plain = |sign: char| sign.is_ascii_graphic() && !matches!(sign, '"' | '\\');
    let name = name(slowest.server).replace(|sign| !is_plain(sign), "_");
    // Writing to a String does not fail.
    let _ = write!(
        text,
        ", outgoing;dur={}.{:03};desc=\"{calls} call{plural}, slowest {name}\"",
        micros / 1000,
        micros % 1000
    );
}

/// The request of an entry of the error log.
pub struct On<'a>(pub Peer, pub &'a Request);

impl fmt::Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(peer, request) = self;
        let Request { head, number, .. } = *request;
        let id = RequestId::of(&head.fields, *number);
        write!(f, "{peer}: {} {} [{id}", head.method, head.target().escape_ascii())?;
        if let Some(place) = &head.trace {
            write!(f, " trace_id={} span_id={}", Hex(&place.trace), Hex(&place.span))?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use maitred_runtime::Slowest;

    use super::*;

    #[test]
    fn calls_are_told_with_the_server_of_the_slowest_one() {
        let told = |calls, name: &str| {
            let slowest = Slowest { nanos: 790_000_000, server: 7, part: 4 };
            let counts = OutgoingCounts { calls, failed: 0, nanos: 812_345_678, slowest };
            let mut text = "run;dur=1.000".to_owned();
            push_calls(&mut text, counts, |server| format!("{name}{server}"));
            text
        };
        assert_eq!(told(0, "x"), "run;dur=1.000");
        assert_eq!(
            told(3, "https://api.example:44"),
            "run;dur=1.000, outgoing;dur=812.345;desc=\"3 calls, slowest https://api.example:447\""
        );
        let odd = told(1, "http+unix:///run/a\"b\\c d\n");
        assert!(odd.ends_with("desc=\"1 call, slowest http+unix:///run/a_b_c_d_7\""), "{odd}");
        let read: Vec<_> = maitred_stats::server_timing::parse(odd.as_bytes()).collect();
        assert_eq!((read.len(), read[1].name, read[1].nanos), (2, "outgoing", 812_345_000));
    }
}
