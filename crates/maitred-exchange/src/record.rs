//! The record of an exchange: [`Site::note`] writes each exchange down once, on the thread that gave the kernel the last
//! byte of the response or found the peer gone. Until then the record belongs to the turn that answered, or to the
//! connection's writer.

use std::sync::Arc;

use maitred_dispatch::Trace;
use maitred_http::{Method, Peer, RequestHead, Status, TracePlace};
use maitred_log::{Database, End, Outcome, Outgoing, RequestId};
use maitred_runtime::{CallSpan, DatabaseCounts, OutgoingCounts, Request};
use maitred_stats::Times;
use maitred_trace::Signal;

use crate::memory::recycle_request;
use crate::site::{EngineRoute, Site, part_of_number};

/// An exchange whose response is complete: kept until its last byte has left, then written down.
pub struct Record {
    /// The request.
    pub request: Kept,
    /// The number of the request.
    pub number: u64,
    /// The client.
    pub peer: Peer,
    /// Number of the listener that accepted the connection.
    pub listener: u32,
    /// Number of the pool whose threads ran the request; none for an answer of the engine.
    pub pool: Option<u16>,
    /// Status of the response.
    pub status: Status,
    /// Bytes of the body that were sent.
    pub body_bytes: u64,
    /// Times of the stations.
    pub times: Times,
    /// How the response ended.
    pub end: End,
    /// The request was refused before it reached a route, and is counted as refused.
    pub refused: bool,
    /// The wait for a thread, where waits are traced.
    pub trace: Option<Box<Trace>>,
    /// Number of the route, if already known.
    pub route: Option<u32>,
}

/// The memory that holds the request of a record.
pub enum Kept {
    /// Memory of the request.
    Request(Box<Request>),
    /// A copy: the handler still has the request.
    Head(Box<RequestHead>),
}

impl Kept {
    fn head(&self) -> &RequestHead {
        match self {
            Self::Request(request) => &request.head,
            Self::Head(head) => head,
        }
    }

    /// The route name given by the handler; empty if none was given.
    pub fn told_route(&self) -> &str {
        if let Self::Request(request) = self { &request.route } else { "" }
    }

    /// Database statements that the handler has counted, if any.
    fn database(&self) -> Option<DatabaseCounts> {
        let Self::Request(request) = self else { return None };
        request.database.as_deref().map(maitred_runtime::Database::counts).filter(|counts| !counts.is_empty())
    }

    /// Calls to other servers, if any have ended.
    fn outgoing(&self) -> Option<OutgoingCounts> {
        let Self::Request(request) = self else { return None };
        request.outgoing.as_deref().map(maitred_runtime::Outgoing::counts).filter(|counts| !counts.is_empty())
    }
}

/// The calls of a request to other servers, with the names of their server and part.
struct NamedCalls {
    counts: OutgoingCounts,
    server: String,
    part: &'static str,
}

impl Record {
    /// Path and host number of a request that the engine has answered and not refused.
    pub fn engine_path(&self) -> Option<(&[u8], u16)> {
        let head = self.request.head();
        (self.pool.is_none() && !self.refused).then(|| (head.path(), head.host))
    }

    /// Bytes of memory of the head.
    pub fn held_by_head(&self) -> u64 {
        self.request.head().fields.memory() as u64
    }

    /// Returns the facts of the exchange for logs and statistics.
    fn outcome<'a>(&'a self, route: Option<&'a str>, calls: Option<&'a NamedCalls>) -> Outcome<'a> {
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
            outgoing: calls.map(|NamedCalls { counts, server, part }| Outgoing {
                calls: counts.calls,
                failed: counts.failed,
                nanos: counts.nanos,
                slowest: server,
                slowest_nanos: counts.slowest.nanos,
                slowest_part: part,
            }),
        }
    }

    /// Returns the summary of the request, for the view of its delivery, and the number of the pool.
    pub fn asked(&self) -> (RequestSummary, Option<usize>) {
        let pool = self.pool.map(usize::from);
        (RequestSummary::of(self.request.head(), self.times.arrived, pool.unwrap_or_default()), pool)
    }

    /// Keeps the memory of the request for the next one.
    pub fn recycle(self) {
        match self.request {
            Kept::Request(request) => recycle_request(request),
            Kept::Head(_) => {}
        }
    }
}

impl Site {
    /// Writes down an exchange whose last byte left, or whose peer was found gone, at `written`: in the figures, the counters, the
    /// access log, the spans and the filters that trace, in this order. Nothing of it changes the response.
    pub fn note(&self, mut record: Record, written: u64) {
        record.times.written = written;
        let wanted = self.figures.is_on() || self.log.writes_access() || self.tracing.is_some();
        let asked = record.engine_path().filter(|_| wanted);
        let engine_route =
            asked.and_then(|(path, host)| self.figures.route_of_engine(path, host, &self.hosts));
        let told = match record.pool.filter(|_| self.log.writes_access()) {
            Some(_) => self.figures.told_name(record.request.head(), record.request.told_route()),
            None => None,
        };
        let calls = self.calls_of(&record, written);
        let outcome =
            record.outcome(told.as_deref().or(engine_route.map(|route| &*route.name)), calls.as_ref());
        self.figures.record(&outcome, (engine_route, record.route), self.times());
        if let Some(counts) = record.request.database() {
            self.figures.record_database(&outcome, counts);
        }
        if let Some(calls) = &calls {
            self.figures.record_outgoing(&outcome, calls.counts);
        }
        if !record.refused {
            self.counters.count(&outcome);
        }
        if self.recent.wants(&outcome, written) {
            self.recent.add(&outcome, self.route_of(&outcome), (self.own_name)());
        }
        self.log.access(&outcome);
        self.note_span(&record, &outcome, engine_route, written);
        if let Some(trace) = &record.trace {
            self.log.trace(&outcome, trace);
            self.traced.add(&outcome, trace);
        }
        self.filters.trace(&outcome);
        record.recycle();
    }

    /// Gives the request and its calls to the metrics and the spans of OpenTelemetry, if they are wanted.
    fn note_span(
        &self,
        record: &Record,
        outcome: &Outcome<'_>,
        engine_route: Option<&EngineRoute>,
        written: u64,
    ) {
        let Some(tracing) = &self.tracing else { return };
        let pattern = engine_route.or_else(|| self.mount_of(outcome));
        if tracing.waiting(Signal::Metrics).is_some() {
            let told = (!outcome.told_route.is_empty()).then(|| {
                let number = || self.figures.naming.number(outcome.head, outcome.told_route, outcome.status);
                record.route.unwrap_or_else(number)
            });
            self.figures.http.record(
                &self.figures.recorder,
                outcome,
                told.or(pattern.map(|route| route.number)),
            );
        }
        let route = match (outcome.told_route, pattern) {
            ("", Some(EngineRoute { name, .. })) => {
                name.strip_prefix(self.hosts.of(outcome.head.host).name()).unwrap_or(name)
            }
            (told, _) => told,
        };
        tracing.note(outcome, route, || {
            let spans = match &record.request {
                Kept::Request(request) => {
                    request.outgoing.as_deref().map(maitred_runtime::Outgoing::take_spans)
                }
                // The handler still has the request.
                Kept::Head(_) => Some(self.figures.calls.spans(record.number, written)),
            };
            self.named(spans.unwrap_or_default())
        });
    }

    /// Sends the spans of calls that end after the response to their request as they end, from now on.
    pub fn trace_late_calls(self: &Arc<Self>) {
        let site = Arc::downgrade(self);
        self.figures.calls.give_late(move |place, call| {
            if let Some(site) = site.upgrade() {
                site.note_calls(place, vec![call]);
            }
        });
    }

    fn note_calls(&self, place: &TracePlace, calls: Vec<CallSpan>) {
        if let Some(tracing) = &self.tracing {
            tracing.note_calls(place, &self.named(calls));
        }
    }

    /// Writes no second record of a request that the engine has answered by a 504, but the spans of its calls, which no other part knew
    /// before the handler came back.
    pub fn note_late(&self, record: Record) {
        if let Kept::Request(request) = &record.request
            && let (Some(place), Some(outgoing)) = (&request.head.trace, &request.outgoing)
        {
            self.note_calls(place, outgoing.take_spans());
        }
        record.recycle();
    }

    fn named(&self, calls: Vec<CallSpan>) -> Vec<(CallSpan, String)> {
        let names: Vec<_> = calls.iter().map(|call| self.figures.calls.name(call.server)).collect();
        calls.into_iter().zip(names).collect()
    }

    /// The calls of a request to other servers: those that have ended, or, of a request that its handler still has, those that run.
    fn calls_of(&self, record: &Record, now: u64) -> Option<NamedCalls> {
        let counts = match &record.request {
            Kept::Request(_) => record.request.outgoing(),
            Kept::Head(_) => self.figures.calls.present(record.number, now),
        }?;
        Some(NamedCalls {
            counts,
            server: self.figures.calls.name(counts.slowest.server),
            part: part_of_number(counts.slowest.part).name(),
        })
    }

    /// The pattern of the mount that has led an exchange to its application; none at the root.
    fn mount_of(&self, outcome: &Outcome<'_>) -> Option<&EngineRoute> {
        let head = outcome.head;
        outcome.pool.and_then(|_| self.figures.route_of_engine(head.path(), head.host, &self.hosts))
    }

    /// The name of the route in statistics, if the exchange has one.
    fn route_of(&self, outcome: &Outcome<'_>) -> Option<String> {
        match outcome.pool {
            Some(_) => Some(self.figures.name_of_exchange(outcome)),
            None => outcome.route.map(str::to_owned),
        }
    }

    /// Writes down several exchanges; `end`, where given, replaces the end of each.
    pub fn note_all(&self, records: &mut Vec<Record>, written: u64, end: Option<End>) {
        for mut record in records.drain(..) {
            record.end = end.unwrap_or(record.end);
            self.note(record, written);
        }
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
    pub held: u64,
    /// Bytes of memory of the head, until the exchange is over.
    pub head: u64,
    /// The number of the request; 0 where it is not known.
    pub number: u64,
    /// The place in a trace, where the server traces.
    pub trace: Option<TracePlace>,
    /// The client uses TLS, as far as the server sends traces, metrics or logs.
    pub secure: bool,
}

impl Default for RequestSummary {
    fn default() -> Self {
        Self {
            method: Method::Get,
            host: 0,
            path: Vec::new(),
            since: 0,
            pool: 0,
            held: 0,
            head: 0,
            number: 0,
            trace: None,
            secure: false,
        }
    }
}

impl RequestSummary {
    /// Returns the summary of a request.
    pub fn of(head: &RequestHead, since: u64, pool: usize) -> Self {
        let mut summary = Self::default();
        summary.set(head, since, pool);
        summary
    }

    /// Replaces the summary by that of another request.
    pub fn set(&mut self, head: &RequestHead, since: u64, pool: usize) {
        let path = head.path();
        self.method.clone_from(&head.method);
        (self.host, self.trace, self.secure) = (head.host, head.trace, head.arrival.secure);
        self.path.clear();
        self.path.extend_from_slice(&path[..path.len().min(MAX_PATH)]);
        (self.since, self.pool, self.held, self.head, self.number) = (since, pool, 0, 0, 0);
    }

    /// The path as printable ASCII.
    pub fn path(&self) -> String {
        let more = if self.path.len() == MAX_PATH { "..." } else { "" };
        format!("{}{more}", self.path.escape_ascii())
    }
}
