//! One exchange: a request from its first byte until its response has been handed over, and the record of it.
//!
//! ```text
//! receiving --the request goes to a handler--> running --the handler has ended its response--> over
//!     `-----------------the engine has answered it, or its peer is gone-----------------------> over
//! ```
//! A connection of HTTP/1 has one stream at a time. Handlers name a stream by its [`Key`]: after the exchange is
//! over, or after the engine has answered in the handler's place, the key finds no stream.
//!
//! Sections below: the parts of a request; admission; its record.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use maitred_dispatch::Trace;
use maitred_filters::Passed;
use maitred_h1::{HeadFacts, Sender};
use maitred_http::{BodyLength, Method, Peer, RequestHead, ResponseHead, Status};
use maitred_limits::Rule;
use maitred_limits::minimum::RateWatch;
use maitred_log::{Database, End, Outcome, RequestId, next_number};
use maitred_runtime::{DatabaseCounts, Observe, Request};
use maitred_stats::Times;

use super::body::{Keeping, keep};
use super::client::Client;
use super::drain::Endless;
use super::filter::Filtered;
use super::framed::{Queue, Values};
use super::own_response::OwnResponse;
use super::request_timeout::Awaited;
use super::websocket::{Offer, Socket};
use super::{Connection, Context, MAX_SPARE, NEVER, Phase, Turn, clear_request};
use crate::connection;
use crate::destination::Destination;
use crate::group::slots::Flags;
use crate::group::thread_registry::own_name;
use crate::site::Site;

/// One exchange.
#[derive(Default)]
pub(crate) struct Stream {
    /// Number of the stream within its connection.
    pub(crate) number: u32,
    /// A handler has the request or is about to get it.
    pub(crate) running: bool,
    /// The whole response is in the queue.
    pub(super) answered: bool,
    /// The peer has reset the stream, or the engine has answered in the handler's place: bytes of the handler are
    /// dropped.
    pub(super) dead: bool,
    /// How its response ends, if it was cancelled.
    pub(super) ended_as: Option<End>,
    /// Set where the response needs no end of its own.
    pub(super) endless: Option<Endless>,
    /// The exchange asks for a WebSocket or has become one.
    pub(super) websocket: bool,
    /// Earliest deadline that the connection's own deadline does not cover, in monotonic nanoseconds.
    pub(super) due: u64,
    /// The WebSocket offer of the request, until a handler has it.
    pub(super) offer: Option<Box<Offer>>,
    /// The WebSocket that the exchange has become.
    pub(super) socket: Option<Box<Socket>>,
    /// Bytes queued for the peer, where exchanges are interleaved.
    pub(super) queue: Option<Box<Queue>>,
    pub(crate) request: Box<Request>,
    /// The destination of the body.
    pub(crate) keeping: Keeping,
    /// The client that sent the request; none until the head has arrived.
    pub(super) client: Option<Client>,
    /// The filters that the request has passed.
    pub(crate) passed: Option<Box<Passed>>,
    /// The destination of the request, found from its head.
    pub(super) destination: Destination,
    /// Facts of the head; none until the head is complete.
    pub(crate) facts: Option<HeadFacts>,
    /// Time at which the first byte was read, in monotonic nanoseconds.
    pub(crate) began: u64,
    /// Times of the exchange; only the first two are set here.
    pub(crate) times: Times,
    /// Bytes received since the head, and the time that the peer has left to send the body; none while the body is
    /// not awaited.
    pub(crate) received: u64,
    pub(crate) patience: Option<RateWatch>,
    /// A copy of method and path for the control, while a handler has the request.
    pub(super) summary: RequestSummary,
    /// The time limit of its response; none without one, or when the response has begun.
    pub(super) awaited: Option<Box<Awaited>>,
    /// Observer of changes while a handler answers.
    pub(crate) observer: Option<Arc<dyn Observe>>,
    /// Flags that other threads read without the lock.
    flags: Arc<Flags>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Stream>>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Returns an empty stream, with reused memory if this thread has some.
    pub(super) fn blank() -> Box<Self> {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Begins the stream at its first byte.
    pub(super) fn begin(&mut self, number: u32, began: u64, arrived: u64) {
        (self.number, self.began, self.due) = (number, began, NEVER);
        self.times = Times { arrived, ..Times::default() };
        self.request.number = next_number();
    }

    /// Whether the head waits in the filters.
    pub(crate) fn is_filtering(&self) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.is_checking())
    }

    /// Limit of the request body, in bytes.
    pub(crate) fn max_body(&self, site: &Site) -> u64 {
        self.passed.as_ref().and_then(|passed| passed.max_body()).unwrap_or(site.max_body)
    }

    /// Reason given when the body exceeds that limit.
    pub(crate) fn too_large(&self) -> &'static str {
        match self.passed.as_ref().filter(|passed| passed.max_body().is_some()) {
            None => "the request body is larger than the limit (--max-body)",
            Some(passed) => {
                passed.note_too_long();
                "the request body is larger than the limit (max-body of a host or a filter)"
            }
        }
    }

    /// Marks the stream as running and returns its flags, all unset.
    pub(super) fn run(&mut self) -> Arc<Flags> {
        self.running = true;
        // No code makes weak references.
        if Arc::strong_count(&self.flags) == 1 {
            fence(Ordering::Acquire);
            self.flags.reset();
        } else {
            // A handle of the last exchange still refers to those flags.
            self.flags = Arc::default();
        }
        Arc::clone(&self.flags)
    }

    /// Keeps a summary of a complete request that goes to a handler.
    pub(super) fn summarise(&mut self, request: &Request, since: u64, pool: usize) {
        self.summary.set(&request.head, since, pool);
        self.summary.held = request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64);
        self.summary.head = request.head.fields.memory() as u64;
    }

    /// Number of the pool whose handler has the request.
    pub(super) fn pool(&self) -> usize {
        self.summary.pool
    }

    pub(super) fn shared_flags(&self) -> Arc<Flags> {
        Arc::clone(&self.flags)
    }

    pub(crate) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Bytes that the stream holds in memory, beside its head.
    pub(super) fn held(&self) -> u64 {
        let request = match &self.keeping {
            Keeping::Spool(spool) => spool.held(),
            // The handler has the request.
            _ if self.running => self.summary.held,
            _ => self.request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64),
        };
        let socket = self.socket.as_ref().map_or(0, |socket| socket.held());
        request + socket + self.queue.as_ref().map_or(0, |queue| queue.held())
    }

    /// Whether the stream waits only for the rest of its request.
    pub(super) fn waits_for_peer(&self) -> bool {
        let complete = self.queue.as_ref().is_some_and(|queue| queue.received);
        !(self.running || self.answered || complete || self.is_filtering())
    }

    /// Bytes of memory of the head, here or with the handler, and of its copy for a 504.
    pub(super) fn held_by_head(&self) -> u64 {
        let awaited = self.awaited.as_ref().map_or(0, |awaited| awaited.held());
        self.request.head.fields.memory() as u64 + self.summary.head + awaited
    }

    /// Tells the handler that the state of the exchange has changed.
    pub(super) fn tell(&mut self) {
        self.keeping.tell();
        if let Some(observer) = &self.observer {
            observer.changed();
        }
    }

    /// Detaches the stream from its handler, which has ended the response.
    pub(super) fn stop(&mut self) {
        (self.running, self.endless, self.observer, self.awaited) = (false, None, None, None);
        (self.offer, self.socket) = (None, None);
    }

    /// Keeps the memory of `stream` for the next exchange.
    pub(crate) fn give_back(mut stream: Box<Self>) {
        if !clear_request(&mut stream.request) {
            return;
        }
        stream.stop();
        if let Some(queue) = stream.queue.take() {
            Queue::give_back(queue);
        }
        (stream.answered, stream.dead, stream.websocket) = (false, false, false);
        stream.ended_as = None;
        stream.keeping = Keeping::Memory;
        (stream.client, stream.passed) = (None, None);
        (stream.facts, stream.destination) = (None, Destination::Nothing);
        (stream.received, stream.patience) = (0, None);
        stream.summary.head = 0;
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(stream);
            }
        });
    }
}

/// Most bytes of a path that a summary keeps.
const MAX_PATH: usize = 256;

/// A copy of a request's method and path for the control: the handler owns the request.
#[derive(Clone, Debug)]
pub struct RequestSummary {
    /// The method.
    pub method: Method,
    /// Number of the virtual host.
    pub host: u16,
    /// As sent, without the query; cut at a length.
    pub path: Vec<u8>,
    /// Time at which the request was complete, in monotonic nanoseconds.
    pub since: u64,
    /// Number of the pool.
    pub pool: usize,
    /// Bytes of the body in memory.
    pub(super) held: u64,
    /// Bytes of memory of the head, until the exchange is over.
    head: u64,
}

impl Default for RequestSummary {
    fn default() -> Self {
        Self { method: Method::Get, host: 0, path: Vec::new(), since: 0, pool: 0, held: 0, head: 0 }
    }
}

impl RequestSummary {
    /// Returns the summary of a request.
    pub(crate) fn of(head: &RequestHead, since: u64, pool: usize) -> Self {
        let mut summary = Self::default();
        summary.set(head, since, pool);
        summary
    }

    /// Replaces the summary by that of another request.
    fn set(&mut self, head: &RequestHead, since: u64, pool: usize) {
        let path = head.path();
        self.method.clone_from(&head.method);
        self.host = head.host;
        self.path.clear();
        self.path.extend_from_slice(&path[..path.len().min(MAX_PATH)]);
        (self.since, self.pool, self.held, self.head) = (since, pool, 0, 0);
    }

    /// The path as printable ASCII.
    pub fn path(&self) -> String {
        let more = if self.path.len() == MAX_PATH { "..." } else { "" };
        format!("{}{more}", self.path.escape_ascii())
    }
}

// ---- The parts of a request ----
//
// Each part of a request as it arrives, whatever protocol carries it: admission, filters, keeping the body, and the
// answer of the engine or the handover to a handler.

/// State of an exchange after a received part.
pub(super) enum Received {
    /// The exchange can receive more.
    Goes(Box<Stream>),
    /// The exchange waits for the check of a password or for the disk; its further parts wait, too.
    Waits(Box<Stream>),
    /// The engine has answered the request.
    Answered,
    /// A handler has the request.
    HandedOver,
    /// The whole of an unwanted body has arrived; the response was given before.
    Dropped,
    /// The response is the last one of the connection.
    Ended(Turn),
}

impl Received {
    /// Returns the turn that follows if nothing else was received.
    pub(super) fn turn(self) -> Turn {
        match self {
            Self::Ended(turn) => turn,
            _ => Turn::Wait,
        }
    }
}

impl Connection {
    /// Finds the virtual host and the destination of the request. The engine's own paths exist on all hosts.
    ///
    /// # Errors
    /// The reason why this connection cannot serve the request (RFC 9110 section 15.5.20): no such host exists, or
    /// that host asks clients for certificates by other rules than those of this connection.
    fn find_host(&self, context: &Context<'_>, stream: &mut Stream) -> Result<(), &'static str> {
        let site = &context.group.site;
        let head = &mut stream.request.head;
        let found = site.hosts.find(head.authority());
        head.host = found.unwrap_or_default();
        stream.destination = Destination::find(site, head, stream.facts);
        let rules = self.wire.ends.as_ref().and_then(|ends| ends.rules.as_ref());
        if matches!(stream.destination, Destination::Server) || stream.destination.is_engine() {
            Ok(())
        } else if found.is_none() {
            Err("this server has no such host")
        } else if rules.is_some_and(|rules| !rules.are_those_of(head.host)) {
            Err(
                "this host has other rules for certificates of clients than the one that this connection was made for",
            )
        } else {
            Ok(())
        }
    }

    /// Handles a complete request head.
    pub(super) fn head_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        facts: HeadFacts,
    ) -> Received {
        stream.facts = Some(facts);
        stream.times.complete = self.wire.received;
        self.wire.identify(context, &mut stream);
        if let Err(reason) = self.find_host(context, &mut stream) {
            return self.refuse(context, stream, Status::MISDIRECTED_REQUEST, reason);
        }
        stream = match self.offer_websocket(context, stream) {
            Ok(stream) => stream,
            Err(answered) => return answered,
        };
        if let Err(refusal) = self.admit(context, &stream) {
            return self.answer_not_now(context, stream, refusal);
        }
        if let Some(answer) = self.redirect(context, &stream) {
            return self.answer_filtered(context, stream, answer);
        }
        self.pass_filters(context, stream)
    }

    /// Leads the request through the filters, or on from the filter where it has waited, and then to its destination.
    pub(super) fn pass_filters(&mut self, context: &mut Context<'_>, mut stream: Box<Stream>) -> Received {
        if context.group.site.filters.is_on() || stream.passed.is_some() {
            stream = match self.filter(context, stream) {
                Filtered::Pass(stream) => stream,
                Filtered::Wait(stream) => return Received::Waits(stream),
                Filtered::Answered(received) => return received,
            };
        }
        if let Some(ambiguity) = self.ambiguous_pool(context, &stream) {
            return self.refuse(context, stream, Status::BAD_REQUEST, ambiguity.reason());
        }
        if stream.offer.is_some() {
            return self.answer(context, stream);
        }
        if let Some((status, reason)) = objection(context, &stream) {
            return self.refuse(context, stream, status, reason);
        }
        let facts = stream.facts.unwrap_or_default();
        if facts.expect_continue && !stream.destination.is_application() {
            // The engine answers without the body, so it does not ask for it. If the body comes anyway, it is dropped.
            stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
            return self.answer(context, stream);
        }
        if facts.complete {
            return self.request_received(context, stream);
        }
        if self.is_read_live(context, &stream, facts) {
            return self.answer_live(context, stream, facts);
        }
        self.prepare_body(context, &mut stream, facts);
        Received::Goes(stream)
    }

    /// Handles a part of the request body.
    pub(super) fn data_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        bytes: &[u8],
    ) -> Received {
        if !keep(context, &mut stream, bytes) {
            if stream.keeping.is_dropped() {
                return self.end_dropped(stream);
            }
            let reason = stream.too_large();
            return self.refuse(context, stream, Status::CONTENT_TOO_LARGE, reason);
        }
        if stream.keeping.is_spool() { self.advance_spool(context, stream) } else { Received::Goes(stream) }
    }

    /// Handles the end of a request.
    pub(super) fn request_received(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
    ) -> Received {
        stream.times.complete = self.wire.received;
        match &mut stream.keeping {
            Keeping::Spool(spool) => {
                spool.complete();
                self.advance_spool(context, stream)
            }
            Keeping::Dropped(_) => {
                Stream::give_back(stream);
                Received::Dropped
            }
            Keeping::Shared(_) => {
                if let Keeping::Shared(mut share) = std::mem::take(&mut stream.keeping) {
                    share.end();
                    stream.request.body.hold(Box::new(share));
                }
                self.answer(context, stream)
            }
            _ => self.answer(context, stream),
        }
    }

    /// Prepares for the body that follows an accepted head.
    fn prepare_body(&mut self, context: &mut Context<'_>, stream: &mut Stream, facts: HeadFacts) {
        /// Memory set aside before the first byte of a body has come. It is not touched before.
        const MAX_RESERVED: u64 = 256 * 1024;
        if let BodyLength::Fixed(length) = stream.request.head.body {
            stream.request.body.reserve(length.min(MAX_RESERVED) as usize);
        }
        if facts.expect_continue && self.protocol.is_framed() {
            stream.enqueue(Values::interim(ResponseHead::new(Status::CONTINUE)));
        } else if facts.expect_continue {
            let version = stream.request.head.version;
            Sender::new(version, false, true).send_continue(&mut context.scratch.out);
        }
    }

    /// Ends a connection whose unread body is malformed or longer than the limit for dropping: no request can follow.
    pub(super) fn end_dropped(&mut self, stream: Box<Stream>) -> Received {
        Stream::give_back(stream);
        self.wire.last = true;
        self.wire.unread = true;
        self.wire.phase = Phase::Sending;
        Received::Ended(Turn::Wait)
    }
}

/// Returns the refusal of a request whose body must not be asked for.
fn objection(context: &Context<'_>, stream: &Stream) -> Option<(Status, &'static str)> {
    let head = &stream.request.head;
    match head.body {
        BodyLength::Fixed(length) if length > stream.max_body(&context.group.site) => {
            Some((Status::CONTENT_TOO_LARGE, stream.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

// ---- Admission ----
//
// Refusals of requests: the client makes too many, or connections hold more memory than allowed.

/// Reason of a refusal, and the seconds until another request may be admitted.
pub(super) struct NotNow {
    status: Status,
    text: &'static str,
    seconds: u64,
}

impl Connection {
    /// Admits the request or refuses it. Costs two loads where no limit is set.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn admit(&self, context: &Context<'_>, stream: &Stream) -> Result<(), NotNow> {
        let site = &context.group.site;
        let peer = self.wire.client_of(stream).peer;
        if site.guard.budget.is_over() && !stream.destination.is_engine() {
            site.guard.applied.note(Rule::BufferBudget, peer, &site.log);
            let text = "503 Service Unavailable: the server is short of memory\n";
            return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
        }
        if !self.protocol.is_framed() && self.lacks_room(context, stream) {
            let text = "503 Service Unavailable: the server is short of memory\n";
            return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
        }
        site.guard.request(peer, context.now, &site.log).map_err(|seconds| {
            let text = "429 Too Many Requests: this client makes more requests than it may (--client-rate)\n";
            NotNow { status: Status::TOO_MANY_REQUESTS, text, seconds }
        })
    }

    /// Answers with 429 or 503. The connection stays after a 429, unless the unwanted body of the request is still to
    /// come.
    pub(super) fn answer_not_now(
        &mut self,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        refusal: NotNow,
    ) -> Received {
        let NotNow { status, text, seconds } = refusal;
        let is_complete = stream.facts.is_some_and(|facts| facts.complete);
        let response = OwnResponse::text(status, text)
            .with("Retry-After", seconds.to_string())
            .keep_alive(is_complete && status == Status::TOO_MANY_REQUESTS);
        self.respond(context, stream, response)
    }
}

// ---- Its record ----
//
// [`Site::note`] writes each exchange down once, on the thread that gave the kernel the last byte of the response or
// found the peer gone. Until then the record belongs to the turn that answered, or to the connection's writer.

/// An exchange whose response is complete: kept until its last byte has left, then written down.
pub(crate) struct Record {
    pub(crate) request: Kept,
    /// The number of the request.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    /// Number of the listener that accepted the connection.
    pub(crate) listener: u32,
    /// Number of the pool whose threads ran the request; none for an answer of the engine.
    pub(crate) pool: Option<u16>,
    pub(crate) status: Status,
    pub(crate) body_bytes: u64,
    pub(crate) times: Times,
    pub(crate) end: End,
    /// The request was refused before it reached a route, and is counted as refused.
    pub(crate) refused: bool,
    /// The wait for a thread, where waits are traced.
    pub(crate) trace: Option<Box<Trace>>,
    /// Number of the route, if already known.
    pub(crate) route: Option<u32>,
}

/// The memory that holds the request of a record.
pub(crate) enum Kept {
    /// Memory of the stream; the engine has answered the request.
    Stream(Box<Stream>),
    /// Memory of the request; a handler has answered it.
    Request(Box<Request>),
    /// A copy: the handler still has the request.
    Head(Box<RequestHead>),
}

impl Kept {
    fn head(&self) -> &RequestHead {
        match self {
            Self::Stream(stream) => &stream.request.head,
            Self::Request(request) => &request.head,
            Self::Head(head) => head,
        }
    }

    /// The route name given by the handler; empty if none was given.
    pub(super) fn told_route(&self) -> &str {
        if let Self::Request(request) = self { &request.route } else { "" }
    }

    /// Database statements that the handler has counted, if any.
    fn database(&self) -> Option<DatabaseCounts> {
        let Self::Request(request) = self else { return None };
        request.database.as_deref().map(maitred_runtime::Database::counts).filter(|counts| !counts.is_empty())
    }
}

impl Record {
    /// Path and host number of a request that the engine has answered and not refused.
    pub(crate) fn engine_path(&self) -> Option<(&[u8], u16)> {
        let head = self.request.head();
        (self.pool.is_none() && !self.refused).then(|| (head.path(), head.host))
    }

    /// Bytes of memory of the head.
    pub(super) fn held_by_head(&self) -> u64 {
        self.request.head().fields.memory() as u64
    }

    /// Returns the facts of the exchange for logs and statistics.
    pub(crate) fn outcome<'a>(&'a self, route: Option<&'a str>) -> Outcome<'a> {
        let head = self.request.head();
        Outcome {
            head,
            id: RequestId::of(&head.fields, self.number),
            peer: self.peer,
            listener: self.listener,
            pool: self.pool,
            route,
            told_route: self.request.told_route(),
            status: self.status,
            body_bytes: self.body_bytes,
            times: self.times,
            end: self.end,
            database: self
                .request
                .database()
                .map(|counts| Database { statements: counts.statements, nanos: counts.nanos }),
        }
    }

    /// Returns the summary of the request, for the view of its delivery, and the number of the pool.
    pub(crate) fn asked(&self) -> (RequestSummary, Option<usize>) {
        let pool = self.pool.map(usize::from);
        (RequestSummary::of(self.request.head(), self.times.arrived, pool.unwrap_or_default()), pool)
    }

    /// Keeps the memory of the request for the next one.
    pub(crate) fn recycle(self) {
        match self.request {
            Kept::Stream(stream) => Stream::give_back(stream),
            Kept::Request(request) => connection::recycle_request(request),
            Kept::Head(_) => {}
        }
    }
}

impl Site {
    /// Writes down an exchange whose last byte left, or whose peer was found gone, at `written`.
    pub(crate) fn note(&self, mut record: Record, written: u64) {
        record.times.written = written;
        let wanted = self.figures.is_on() || self.log.writes_access();
        let asked = record.engine_path().filter(|_| wanted);
        let engine_route =
            asked.and_then(|(path, host)| self.figures.route_of_engine(path, host, &self.hosts));
        let told = match record.pool.filter(|_| self.log.writes_access()) {
            Some(_) => self.figures.told_name(record.request.head(), record.request.told_route()),
            None => None,
        };
        let outcome = record.outcome(told.as_deref().or(engine_route.map(|route| &*route.name)));
        self.figures.record(&outcome, (engine_route, record.route), self.times());
        if let Some(counts) = record.request.database() {
            self.figures.record_database(&outcome, counts);
        }
        if !record.refused {
            self.counters.count(&outcome);
        }
        if self.recent.wants(&outcome, written) {
            self.recent.add(&outcome, self.route_of(&outcome), own_name());
        }
        self.log.access(&outcome);
        if let Some(trace) = &record.trace {
            self.log.trace(&outcome, trace);
            self.traced.add(&outcome, trace);
        }
        self.filters.trace(&outcome);
        record.recycle();
    }

    /// The name of the route in statistics, if the exchange has one.
    fn route_of(&self, outcome: &Outcome<'_>) -> Option<String> {
        match outcome.pool {
            Some(_) => Some(self.figures.name_of_exchange(outcome)),
            None => outcome.route.map(str::to_owned),
        }
    }

    /// Writes down several exchanges; `end`, where given, replaces the end of each.
    pub(crate) fn note_all(&self, records: &mut Vec<Record>, written: u64, end: Option<End>) {
        for mut record in records.drain(..) {
            record.end = end.unwrap_or(record.end);
            self.note(record, written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_with_a_second_handle_are_not_reused_for_the_next_exchange() {
        let mut stream = Stream::default();
        let first = stream.run();
        first.set_gone();
        let second = stream.run();
        assert!(first.is_gone() && !second.is_gone());
        drop(first);
        second.set_gone();
        drop(second);
        let third = stream.run();
        assert!(!third.is_gone(), "used again, and empty");
    }
}
