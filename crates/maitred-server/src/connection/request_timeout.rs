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

use std::time::Duration;

use maitred_files::Body;
use maitred_filters::Passed;
use maitred_h1::Sender;
use maitred_http::{Method, Peer, RequestHead, Status};
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::Request;
use maitred_stats::Times;

use super::own_response::{Asked, OwnResponse};
use super::stream::{Kept, Record, Stream};
use super::{Connection, Context, Key, NEVER, Phase, Turn, nanos};

/// A request whose response has not begun, with the facts for a 504.
pub(super) struct Awaited {
    /// Deadline, in monotonic nanoseconds.
    due: u64,
    times: Times,
    peer: Peer,
    limit: Duration,
    pool: usize,
    /// A copy of the head for the logs: the handler has the request for an unknown time.
    head: RequestHead,
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
        let limit = context.group.scheduler.request_limit(pool)?;
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
        Asked { passed: self.passed.as_deref(), head: &self.head, number: self.number, secure: self.secure }
    }
}

/// Status of the response that the engine sends in place of the handler.
const LATE: Status = Status::GATEWAY_TIMEOUT;

fn late_response(context: &Context<'_>, awaited: &Awaited) -> OwnResponse {
    let seconds = awaited.limit.as_secs_f64();
    let text = format!("{} {}: no response within {seconds} s\n", LATE.code(), LATE.reason());
    OwnResponse::text(LATE, text).finished(&context.group.site, &awaited.asked())
}

impl Stream {
    /// Deadline of the response, in monotonic nanoseconds.
    pub(super) fn response_due(&self) -> u64 {
        self.awaited.as_ref().map_or(NEVER, |awaited| awaited.due)
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

impl Connection {
    /// Ends the time limit when the first byte of the response is on its way.
    pub(super) fn begin_response(&mut self, key: Key) {
        if let Some(stream) = self.stream_of(key) {
            stream.awaited = None;
        }
    }

    /// Restarts the time limit when the handler has read a part of a live body.
    pub(super) fn note_body_read(&mut self, key: Key) {
        if let Some(stream) = self.stream_of(key) {
            stream.put_off();
        }
    }

    /// Whether a request that runs or waits to be run has a time limit and no response yet.
    pub(super) fn awaits_response(&self) -> bool {
        self.streams().any(|stream| stream.awaited.is_some())
    }

    /// Answers the requests whose time limit has passed; none if the turn goes on.
    pub(super) fn check_request(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if context.now < self.request_due() {
            return None;
        }
        let now = context.now;
        let mut late = Vec::new();
        for stream in self.each_stream().filter(|stream| stream.response_due() <= now) {
            if stream.waits_for_body() {
                // The handler waits for the peer, and body-timeout ends that wait.
                stream.put_off();
            } else {
                late.push(stream.number);
            }
        }
        for number in late {
            let key = context.key(number);
            let Some(mut stream) = self.take_stream(key) else { continue };
            let Some(awaited) = stream.give_up(context) else { continue };
            if self.protocol.is_framed() {
                self.answer_stream_in_its_place(context, stream, *awaited);
                continue;
            }
            let (begun, waited) = (stream.flags().begun(), stream.flags().awaited());
            Stream::give_back(stream);
            return Some(self.answer_in_its_place(context, *awaited, (begun, waited)));
        }
        None
    }

    /// Sends the response of the engine on one stream; other streams go on. The stream stays until the handler lets
    /// go of it.
    fn answer_stream_in_its_place(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        awaited: Awaited,
    ) {
        let response = late_response(context, &awaited);
        let is_head = awaited.head.method == Method::Head;
        let heads = response.heads(context, is_head);
        let (begun, waited) = (stream.flags().begun(), stream.flags().awaited());
        let record = self.timed_out(context, awaited, response.body_bytes(is_head), (begun, waited));
        let body = if is_head { Body::Empty } else { response.body };
        stream.dead = true;
        stream.answer_in_its_place(heads, body, record);
        self.wire.served = self.wire.served.saturating_add(1);
        self.put(stream);
    }

    /// Logs that a request has had no response in time, and returns its record.
    fn timed_out(
        &self,
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
            listener: self.wire.listener.into(),
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

    /// Sends the response of the engine as the last one of the connection.
    fn answer_in_its_place(
        &mut self,
        context: &mut Context<'_>,
        awaited: Awaited,
        ran: (Option<u64>, u64),
    ) -> Turn {
        let site = &context.group.site;
        let response = late_response(context, &awaited);
        let (version, is_head) = (awaited.head.version, awaited.head.method == Method::Head);
        let record = self.timed_out(context, awaited, response.body_bytes(is_head), ran);
        if self.write_own(context, Sender::new(version, is_head, false), response).is_err() {
            return Turn::Close;
        }
        context.scratch.records.push(record);
        self.wire.served = self.wire.served.saturating_add(1);
        self.wire.last = true;
        self.wire.unread = true;
        self.wire.phase = Phase::Sending;
        if self.wire.is_dead() {
            context.scratch.out.clear();
            site.note_all(&mut context.scratch.records, context.now, Some(self.wire.ended_as));
            return Turn::Close;
        }
        match self.flush(context) {
            Turn::Wait if self.wire.writer.is_none() => self.wire.end_gently(context, self.protocol.is_between_requests()),
            turn => turn,
        }
    }
}
