//! A request whose response has not begun, under a time limit, with the facts for the response of the engine in its place.

use std::time::Duration;

use maitred_filters::Passed;
use maitred_http::{Peer, RequestHead, Status};
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::Request;
use maitred_stats::Times;

use crate::record::{Kept, Record};
use crate::response::Response;
use crate::site::Site;
use crate::stream::Stream;
use crate::{NEVER, nanos};

/// Status of the response that the engine sends in place of the handler.
const LATE: Status = Status::GATEWAY_TIMEOUT;

/// A request whose response has not begun, with the facts for a 504.
pub struct Awaited {
    /// Deadline, in monotonic nanoseconds.
    due: u64,
    times: Times,
    peer: Peer,
    limit: Duration,
    /// Number of the pool whose threads run the request.
    pub pool: usize,
    /// A copy of the head for the logs: the handler has the request for an unknown time.
    pub head: RequestHead,
    pub(crate) number: u64,
    pub(crate) secure: bool,
    /// The filters that the request has passed; the 504 takes their fields.
    pub(crate) passed: Option<Box<Passed>>,
}

impl Awaited {
    /// Begins the wait for the response to a request that is received as far as it will be now.
    pub fn begin(limit: Duration, now: u64, request: &Request, stream: &Stream, pool: usize) -> Box<Self> {
        let due = now.saturating_add(nanos(limit));
        let (head, number) = (request.head.clone(), request.number);
        let (peer, secure) = (request.endpoint.peer, request.endpoint.secure);
        let passed = stream.passed.as_ref().map(|passed| Box::new(passed.for_answer()));
        Box::new(Self { due, times: stream.times, peer, limit, pool, head, number, secure, passed })
    }

    /// Bytes of memory of the kept head.
    pub fn held(&self) -> u64 {
        self.head.fields.memory() as u64
    }

    /// The response of the engine in the place of the handler, before the stages.
    pub(crate) fn plain_response(&self) -> Response {
        let seconds = self.limit.as_secs_f64();
        let text = format!("{} {}: no response within {seconds} s\n", LATE.code(), LATE.reason());
        Response::text(LATE, text)
    }

    /// Logs that the request has had no response in time, and returns its record; `begun` and `waited` say when a thread has begun with
    /// it, and for how long it has waited for the body.
    pub fn into_record(
        self,
        site: &Site,
        now: u64,
        listener: u32,
        body_bytes: u64,
        (begun, waited): (Option<u64>, u64),
    ) -> Record {
        let Self { times, peer, head, number, limit, pool, .. } = self;
        let seconds = limit.as_secs_f64();
        let (method, path) = (&head.method, head.path().escape_ascii());
        site.log.error(format_args!("{peer}: {method} {path}: no response within {seconds} s; 504"));
        Record {
            body_bytes,
            request: Kept::Head(Box::new(head)),
            number,
            peer,
            listener,
            pool: u16::try_from(pool).ok(),
            status: LATE,
            // A request that no thread has begun has only waited.
            times: Times { begun: begun.unwrap_or(now), done: now, awaited: waited, ..times },
            end: End::Complete,
            refused: false,
            trace: None,
            route: None,
        }
    }
}

impl Stream {
    /// Deadline of the response, in monotonic nanoseconds.
    pub fn response_due(&self) -> u64 {
        // A dead stream gets no response of the engine: its time would ring for ever.
        self.awaited.as_ref().filter(|_| !self.dead).map_or(NEVER, |awaited| awaited.due)
    }

    /// Restarts the time limit, since the handler has received something. A timer that is set stays, and its turn
    /// sets the new time.
    pub fn put_off(&mut self) {
        if let Some(awaited) = &mut self.awaited {
            awaited.due = clock::monotonic().saturating_add(nanos(awaited.limit));
        }
    }
}
