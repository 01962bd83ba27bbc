//! The time limit for the first byte of a handler's response.
//!
//! ```text
//! handler's thread                           connection                        turns
//!   the first byte of the response ---------> not awaited any more
//!                                             504, last response <------------- TIMER, due
//!   everything it sends or reads from then on: as if the peer were gone
//! ```
//! The slot's lock decides which comes first. A complete response that waits to leave with others has begun.
//!
//! Promises: the exchange of a request that was answered here is dead. Nothing of it reaches the connection, which
//! sends its 504 and closes whatever the handler does; the outcome is written down here and nowhere else. A request
//! that waits in a queue can be seen to be dead, and is not run.
//!
//! Leaves out: the handler's thread, which goes on until its application comes back; and a response that has begun,
//! which has no time limit as long as it makes progress.

use crate::connection::record::Kept;
use crate::connection::record::Record;
use std::time::Duration;

use maitred_filters::Passed;
use maitred_http::{Peer, RequestHead, Status};
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::Request;
use maitred_stats::Times;

use super::link::Link;
use super::response::Response;
use super::stages::{Asked, Maker};
use super::stream::Stream;
use super::wire::Wire;
use super::{Context, NEVER, Turn, nanos};

/// A request whose response has not begun, with the facts for a 504.
pub(super) struct Awaited {
    /// Deadline, in monotonic nanoseconds.
    due: u64,
    times: Times,
    peer: Peer,
    limit: Duration,
    pool: usize,
    /// A copy of the head for the logs: the handler has the request for an unknown time.
    pub(super) head: RequestHead,
    number: u64,
    secure: bool,
    /// The filters that the request has passed; the 504 takes their fields.
    passed: Option<Box<Passed>>,
}

impl Awaited {
    /// Begins the wait for the response to a request that is received as far as it will be now. None without a time
    /// limit.
    pub(super) fn of(
        context: &Context<'_>,
        request: &Request,
        stream: &Stream,
        pool: usize,
    ) -> Option<Box<Self>> {
        let limit = context.group.scheduler.pool_at(pool).threads.request_limit()?;
        let due = context.now.saturating_add(nanos(limit));
        let (head, number) = (request.head.clone(), request.number);
        let (peer, secure) = (request.endpoint.peer, request.endpoint.secure);
        let passed = stream.passed.as_ref().map(|passed| Box::new(passed.for_answer()));
        Some(Box::new(Self { due, times: stream.times, peer, limit, pool, head, number, secure, passed }))
    }
}

impl Awaited {
    /// Bytes of memory of the kept head.
    pub(super) fn held(&self) -> u64 {
        self.head.fields.memory() as u64
    }

    fn asked(&self) -> Asked<'_> {
        let maker = Maker::Engine { secure: self.secure };
        Asked { head: &self.head, number: self.number, passed: self.passed.as_deref(), maker }
    }
}

/// Status of the response that the engine sends in place of the handler.
const LATE: Status = Status::GATEWAY_TIMEOUT;

pub(super) fn late_response(context: &Context<'_>, awaited: &Awaited) -> Response {
    let seconds = awaited.limit.as_secs_f64();
    let text = format!("{} {}: no response within {seconds} s\n", LATE.code(), LATE.reason());
    Response::text(LATE, text).finished(&context.group.site, &awaited.asked())
}

impl Stream {
    /// Deadline of the response, in monotonic nanoseconds.
    pub(super) fn response_due(&self) -> u64 {
        // A dead stream gets no response of the engine: its time would ring for ever.
        self.awaited.as_ref().filter(|_| !self.dead).map_or(NEVER, |awaited| awaited.due)
    }

    /// Restarts the time limit, since the handler has received something. A timer that is set stays, and its turn
    /// sets the new time.
    pub(super) fn put_off(&mut self) {
        if let Some(awaited) = &mut self.awaited {
            awaited.due = clock::monotonic().saturating_add(nanos(awaited.limit));
        }
    }

    /// Ends the wait for the response, and tells the handler's thread, observer and reader.
    fn give_up(&mut self, context: &Context<'_>) -> Option<Box<Awaited>> {
        let awaited = self.awaited.take()?;
        context.group.site.counters.timeouts.add(1);
        if let Some(group) = self.flags().end().and_then(|number| context.group.groups.find(number)) {
            group.scheduler.lose_thread(awaited.pool, &group);
        }
        if let Some(observer) = self.observer.take() {
            observer.timed_out();
        }
        self.keeping.tell();
        Some(awaited)
    }
}

/// Answers the requests whose time limit has passed; none if the turn goes on.
pub(super) fn check_request(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
) -> Option<Turn> {
    if context.now < link.request_due() {
        return None;
    }
    let now = context.now;
    let mut late = Vec::new();
    for stream in link.each_stream().filter(|stream| stream.response_due() <= now) {
        if stream.waits_for_body() {
            // The handler waits for the peer, and body-timeout ends that wait.
            stream.put_off();
        } else {
            late.push(stream.number);
        }
    }
    for number in late {
        let key = context.key(number);
        let Some(mut stream) = link.take_stream(key) else { continue };
        let Some(awaited) = stream.give_up(context) else { continue };
        if let Some(turn) = link.answer_late(wire, context, stream, *awaited) {
            return Some(turn);
        }
    }
    None
}

/// Logs that a request has had no response in time, and returns its record.
pub(super) fn timed_out(
    wire: &Wire,
    context: &Context<'_>,
    awaited: Awaited,
    body_bytes: u64,
    (begun, waited): (Option<u64>, u64),
) -> Record {
    let Awaited { times, peer, head, number, limit, pool, .. } = awaited;
    let seconds = limit.as_secs_f64();
    let (method, path) = (&head.method, head.path().escape_ascii());
    let log = &context.group.site.log;
    log.error(format_args!("{peer}: {method} {path}: no response within {seconds} s; 504"));
    Record {
        body_bytes,
        request: Kept::Head(Box::new(head)),
        number,
        peer,
        listener: wire.listener.into(),
        pool: u16::try_from(pool).ok(),
        status: LATE,
        // A request that no thread has begun has only waited.
        times: Times { begun: begun.unwrap_or(context.now), done: context.now, awaited: waited, ..times },
        end: End::Complete,
        refused: false,
        trace: None,
        route: None,
    }
}
