//! An exchange whose response is complete: kept until its last byte has left, then written down.
//!
//! An exchange is written down once, by [`Site::note`], by whichever thread gave the kernel the
//! last byte of its response, or saw that nobody is there to take it. Until then its record is with the turn that
//! answered it, or with the connection's writer.

use std::net::SocketAddr;

use maitred_http::{RequestHead, Status};
use maitred_runtime::Request;
use maitred_stats::Times;

use crate::connection::scratch;
use crate::connection::snapshot::RequestSummary;
use crate::connection::stream::Stream;
use crate::site::Site;
use maitred_dispatch::Trace;
use maitred_log::RequestId;
use maitred_log::{End, Outcome};

/// See the module text.
pub(crate) struct Record {
    pub(crate) request: Kept,
    /// The number of the request.
    pub(crate) number: u64,
    pub(crate) peer: SocketAddr,
    /// Which listener accepted its connection.
    pub(crate) listener: u32,
    /// The pool whose threads run it; none for what the engine answers.
    pub(crate) pool: Option<u16>,
    pub(crate) status: Status,
    pub(crate) body_bytes: u64,
    pub(crate) times: Times,
    pub(crate) end: End,
    /// It was refused before it reached a route, and counts as that.
    pub(crate) refused: bool,
    /// How it got its thread, if that is traced.
    pub(crate) trace: Option<Box<Trace>>,
}

/// What was asked for, and whose memory it is.
pub(crate) enum Kept {
    /// Of a request that the engine has answered.
    Stream(Box<Stream>),
    /// Of a request that a handler has answered.
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
}

impl Record {
    /// The path of what the engine has answered and not refused.
    pub(crate) fn engine_path(&self) -> Option<&[u8]> {
        (self.pool.is_none() && !self.refused).then(|| self.request.head().path())
    }

    /// What becomes known of it.
    pub(crate) fn outcome<'a>(&'a self, engine_route: Option<&'a str>) -> Outcome<'a> {
        let head = self.request.head();
        Outcome {
            head,
            id: RequestId::of(&head.fields, self.number),
            peer: self.peer,
            listener: self.listener,
            pool: self.pool,
            engine_route,
            status: self.status,
            body_bytes: self.body_bytes,
            times: self.times,
            end: self.end,
        }
    }

    /// What was asked for, for whoever looks at its delivery, and the number of the pool.
    pub(crate) fn asked(&self) -> (RequestSummary, Option<usize>) {
        let pool = self.pool.map(usize::from);
        (RequestSummary::of(self.request.head(), self.times.arrived, pool.unwrap_or_default()), pool)
    }

    /// Keeps its memory for the next request.
    pub(crate) fn recycle(self) {
        match self.request {
            Kept::Stream(stream) => Stream::give_back(stream),
            Kept::Request(request) => scratch::recycle(request),
            Kept::Head(_) => {}
        }
    }
}

impl Site {
    /// Writes down an exchange whose last byte left at `written`, or nobody was there to take it.
    pub(crate) fn note(&self, mut record: Record, written: u64) {
        record.times.written = written;
        let wanted = self.figures.is_on() || self.log.writes_access();
        let path = record.engine_path().filter(|_| wanted);
        let engine_route = path.and_then(|path| self.figures.route_of_engine(path, &self.routes));
        let outcome = record.outcome(engine_route.map(|route| &*route.name));
        self.figures.record(&outcome, engine_route, self.times());
        if !record.refused {
            self.counters.count(&outcome);
        }
        self.log.access(&outcome);
        if let Some(trace) = &record.trace {
            self.log.trace(&outcome, trace);
            self.traced.add(&outcome, trace);
        }
        self.filters.trace(&outcome);
        record.recycle();
    }

    /// The same for several; none has reached its end if `end` says so.
    pub(crate) fn note_all(&self, records: &mut Vec<Record>, written: u64, end: Option<End>) {
        for mut record in records.drain(..) {
            record.end = end.unwrap_or(record.end);
            self.note(record, written);
        }
    }
}
