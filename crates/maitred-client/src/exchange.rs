//! One exchange on one connection: bytes in, bytes out, deadlines as values, time an argument.
//!
//! ```text
//! sending    Open --end_body--> Given --all transmitted--> Sent
//!             ^  \______________/                            (Waits: for a 100, at most Timeouts::expect)
//!           Waits      `--final response, broken pipe--> Stopped
//!
//! receiving  Head --interim--> Head --final--> Body --end--> Done
//! ```
//!
//! The caller moves bytes: it sends [`to_transmit`](Exchange::to_transmit) and says how many were taken, gives body
//! bytes while there is [room](Exchange::room), offers what it has received, and calls
//! [`handle_deadline`](Exchange::handle_deadline) when a deadline has passed. It stops receiving when it wants no more: that is all
//! of back-pressure. The last question is whether the connection can be [used again](Exchange::reuse).
//!
//! Leaves out: sockets, retries (the [rule](Exchange::may_retry) is here), decoding of bodies.

mod reuse;

use std::fmt;
use std::time::{Duration, Instant};

use maitred_h1::{
    Event as Received, Limits, Malformed, OutgoingRequest, Receiver, RequestReport, ResponseFacts, Responses,
    Sender,
};
use maitred_http::{FieldSet, Method, ResponseHead, Status};

use crate::error::{Error, Phase};
use crate::keep_alive::Kept;
use reuse::binds_connection;

pub use reuse::{NotReusable, Reuse};

/// The most interim responses of one exchange. Source: real ones have one or two; a server must not hold a call for ever.
pub const MAX_INTERIM: u8 = 10;

/// The most bytes that wait to be transmitted before the body is asked to wait: one write of a socket.
const ROOM: usize = 64 * 1024;

/// Time limits; `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the last byte of the request to the first one of the response.
    pub first_byte: Option<Duration>,
    /// Between two bytes that the server takes or sends.
    pub progress: Option<Duration>,
    /// Between two bytes that the server takes, if not `progress` is for those. httpx has one limit for each direction.
    pub write: Option<Duration>,
    /// The whole exchange.
    pub total: Option<Duration>,
    /// How long a body waits for a 100 before it is sent without one (RFC 9110 §10.1.1). Source: curl.
    pub expect: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: None, progress: None, write: None, total: None, expect: Duration::from_secs(1) }
    }
}

/// The circumstances of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// The connection has had an exchange before: it may be stale.
    pub reused: bool,
    /// Whether the request may be sent twice; `None`: by its method (RFC 9110 §9.2.2).
    pub repeatable: Option<bool>,
    /// The time limits.
    pub timeouts: Timeouts,
}

/// One exchange.
pub struct Exchange {
    sender: Sender,
    report: RequestReport,
    sending: Sending,
    out: Vec<u8>,
    /// How many bytes at the start of `out` are the head, while it is whole.
    head_length: usize,
    /// The head and its sender for a second time.
    again: Option<Box<[u8]>>,
    first_sender: Sender,
    /// How many bytes of `out` were transmitted.
    out_sent: usize,
    receiver: Receiver<Responses>,
    head: ResponseHead,
    facts: Option<ResponseFacts>,
    kept: Kept,
    done: bool,
    failed: bool,
    /// It has failed as a stale connection does: without a response.
    stale: bool,
    interim: u8,
    reused: bool,
    repeatable: bool,
    /// Bytes of the request that a socket has taken, and bytes of its body that came here.
    accepted: u64,
    body_given: u64,
    /// Bytes of a response have come.
    answered: bool,
    /// The response began before the request had ended.
    early: bool,
    /// The connection itself may be authenticated.
    bound: bool,
    /// A write has failed, and not because the peer had ended the connection in order.
    reset: bool,
    /// How many bytes of the last input were not consumed: a longer one has new bytes.
    offered: usize,
    /// The peer sends no more.
    ended: bool,
    timeouts: Timeouts,
    begun: Instant,
    last: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// For a 100; the deadline is there once the head is transmitted.
    Waits(Option<Instant>),
    Open,
    Given,
    Sent,
    Stopped(NotReusable),
}

impl Sending {
    fn first(report: &RequestReport) -> Self {
        match report.length {
            Some(0) => Self::Given,
            _ if report.expect_continue => Self::Waits(None),
            _ => Self::Open,
        }
    }
}

/// An event. A response is any number of `Interim`, one `Head`, any number of `Data`, at most one `Trailers`, and `End`.
#[derive(Debug)]
pub enum Event<'a> {
    /// More bytes have to arrive behind those that are left.
    NeedMore,
    /// An interim response is in [`Exchange::head`]; a 100 among them.
    Interim,
    /// The final head is in [`Exchange::head`].
    Head(ResponseFacts),
    /// Bytes of the body, still encoded as `Content-Encoding` says, never empty.
    Data(&'a [u8]),
    /// The trailers.
    Trailers(Box<FieldSet>),
    /// The response is complete; bytes behind it are not consumed. A head with [`ResponseFacts::complete`] has one behind it
    /// too, if the caller looks again.
    End,
}

/// The result of one look at the input.
#[derive(Debug)]
pub struct Step<'a> {
    /// Bytes at the start of the input that are used up, with any event; data included.
    pub consumed: usize,
    /// The event.
    pub event: Event<'a>,
}

impl Exchange {
    /// Begins an exchange: the head of `request` waits to be transmitted.
    ///
    /// # Errors
    /// The request cannot be sent as given. The connection is as good as before.
    pub fn begin(
        request: &OutgoingRequest<'_>,
        circumstances: Circumstances,
        now: Instant,
    ) -> Result<Self, Error> {
        let mut out = Vec::with_capacity(512);
        let (sender, report) = Sender::of_request(request, &mut out)?;
        Ok(Self {
            first_sender: sender.clone(),
            sender,
            sending: Sending::first(&report),
            report,
            head_length: out.len(),
            again: None,
            out,
            out_sent: 0,
            receiver: Receiver::of_response(report.asked),
            head: ResponseHead::new(Status::OK),
            facts: None,
            kept: Kept::default(),
            done: false,
            failed: false,
            stale: false,
            interim: 0,
            reused: circumstances.reused,
            repeatable: circumstances.repeatable.unwrap_or_else(|| is_idempotent(request.method)),
            accepted: 0,
            body_given: 0,
            answered: false,
            early: false,
            bound: ["authorization", "proxy-authorization"]
                .into_iter()
                .any(|name| request.fields.all(name).any(binds_connection)),
            reset: false,
            offered: 0,
            ended: false,
            timeouts: circumstances.timeouts,
            begun: now,
            last: now,
        })
    }

    /// The connection has had an exchange before: it may be stale. To be said before a byte is transmitted.
    pub(crate) fn reuses(&mut self) {
        self.reused = true;
        self.again = self.out.get(..self.head_length).map(Box::from);
    }

    /// Begins once more, on a new connection: [`may_retry`](Self::may_retry) has allowed it.
    pub(crate) fn begin_again(&mut self, now: Instant) {
        let Some(head) = self.again.take() else { return };
        (self.out, self.out_sent) = (head.into_vec(), 0);
        (self.sender, self.sending) = (self.first_sender.clone(), Sending::first(&self.report));
        self.receiver = Receiver::of_response(self.report.asked);
        (self.head, self.facts) = (ResponseHead::new(Status::OK), None);
        (self.done, self.failed, self.stale, self.reused) = (false, false, false, false);
        (self.answered, self.early, self.reset, self.ended) = (false, false, false, false);
        (self.interim, self.accepted, self.body_given, self.offered) = (0, 0, 0, 0);
        self.last = now;
    }

    // ---- Sending ----

    /// How many bytes of the body can be given now.
    pub fn room(&self) -> usize {
        match self.sending {
            Sending::Open => ROOM.saturating_sub(self.to_transmit().len()),
            Sending::Waits(_) | Sending::Given | Sending::Sent | Sending::Stopped(_) => 0,
        }
    }

    /// How many bytes of a body of known length are still to be given.
    pub fn body_left(&self) -> Option<u64> {
        self.report.length.map(|length| length.saturating_sub(self.body_given))
    }

    /// Takes bytes of the body, as many as there is [`room`](Self::room), and returns how many.
    ///
    /// # Errors
    /// The body is longer than declared.
    pub fn send_body(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        if taken.is_empty() {
            return Ok(0);
        }
        if self.out_sent > ROOM / 2 {
            self.out.drain(..self.out_sent);
            self.out_sent = 0;
        }
        let plan = self.sender.send_data(taken.len() as u64, &mut self.out);
        if plan.surplus > 0 {
            return self.fail(Error::BodyTooLong);
        }
        self.out.extend_from_slice(taken);
        self.out.extend_from_slice(plan.suffix);
        self.body_given += taken.len() as u64;
        Ok(taken.len())
    }

    /// Ends the body. `trailers` are sent behind a chunked one.
    ///
    /// # Errors
    /// The body is shorter than declared: the request is not complete, and cannot be.
    pub fn end_body(&mut self, trailers: Option<&FieldSet>) -> Result<(), Error> {
        if self.sending == Sending::Open {
            let finish = self.sender.finish(trailers, &mut self.out);
            if finish.short_by > 0 {
                return self.fail(Error::BodyTooShort(finish.short_by));
            }
            self.sending = Sending::Given;
            self.note_sent();
        }
        Ok(())
    }

    /// The bytes to send next.
    pub fn to_transmit(&self) -> &[u8] {
        match self.sending {
            Sending::Stopped(_) => &[],
            _ => self.out.get(self.out_sent..).unwrap_or_default(),
        }
    }

    /// The socket has taken so many of [`to_transmit`](Self::to_transmit).
    pub fn transmitted(&mut self, bytes: usize, now: Instant) {
        self.accepted += bytes as u64;
        self.out_sent += bytes;
        if bytes > 0 {
            self.last = now;
        }
        if self.out_sent >= self.out.len() {
            self.out.clear();
            self.out_sent = 0;
            self.note_sent();
            if self.sending == Sending::Waits(None) {
                self.sending = Sending::Waits(now.checked_add(self.timeouts.expect));
            }
        }
    }

    fn note_sent(&mut self) {
        if self.sending == Sending::Given && self.out.is_empty() {
            self.sending = Sending::Sent;
        }
    }

    /// The socket takes no more. A response may have arrived before: read it first. `reset`: the error is another one than
    /// EPIPE, and reading may find an end that the server has not sent.
    pub fn write_failed(&mut self, reset: bool) {
        self.reset |= reset;
        self.sending = Sending::Stopped(NotReusable::BrokenPipe);
    }

    /// How many bytes of the request a socket has taken.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    // ---- Receiving ----

    /// The head of the last interim or final response.
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Takes the head out of the exchange, which needs the final one no more.
    pub fn take_head(&mut self) -> ResponseHead {
        let status = self.head.status;
        std::mem::replace(&mut self.head, ResponseHead::new(status))
    }

    /// Looks at `input` and returns at most one event. Call again with the rest of the input until [`Event::NeedMore`] or
    /// [`Event::End`].
    ///
    /// # Errors
    /// The response is none, and the connection is lost.
    pub fn poll_event<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
        now: Instant,
    ) -> Result<Step<'a>, Error> {
        if self.failed {
            return Err(Error::Response(Malformed::AfterMalformed));
        }
        if self.done {
            return Ok(Step { consumed: 0, event: Event::End });
        }
        if !input.is_empty() && self.reused && self.accepted == 0 {
            return self.fail(Error::Unasked);
        }
        if input.len() > self.offered {
            (self.answered, self.last) = (true, now);
        }
        let step = match self.receiver.poll_response(input, &mut self.head, limits) {
            Ok(step) => step,
            Err(error) => return self.fail(error.into()),
        };
        self.offered = input.len().saturating_sub(step.consumed);
        let event = match step.event {
            Received::NeedMore => Event::NeedMore,
            Received::Head(facts) if facts.interim => {
                self.handle_interim()?;
                Event::Interim
            }
            Received::Head(facts) => {
                self.handle_head(facts)?;
                Event::Head(facts)
            }
            Received::Data(bytes) => Event::Data(bytes),
            Received::Trailers(fields) => Event::Trailers(fields),
            Received::End => {
                self.done = true;
                Event::End
            }
        };
        Ok(Step { consumed: step.consumed, event })
    }

    fn handle_interim(&mut self) -> Result<(), Error> {
        self.interim += 1;
        if self.interim > MAX_INTERIM {
            return self.fail(Error::TooManyInterim);
        }
        if self.head.status == Status::CONTINUE && matches!(self.sending, Sending::Waits(_)) {
            self.sending = Sending::Open;
        }
        Ok(())
    }

    fn handle_head(&mut self, facts: ResponseFacts) -> Result<(), Error> {
        let given_up = self.head.status == Status::REQUEST_TIMEOUT && !facts.keep_alive && self.reused;
        if given_up && self.interim == 0 && self.may_repeat(false) {
            // The server's timer for the idle connection and the request have crossed: no answer to this request.
            return self.fail(Error::IdleTimeout);
        }
        self.bound |= ["www-authenticate", "proxy-authenticate"]
            .into_iter()
            .any(|name| self.head.fields.all(name).any(binds_connection));
        (self.facts, self.kept) = (Some(facts), Kept::of(&self.head.fields));
        self.done = facts.complete || facts.switched;
        match self.sending {
            Sending::Sent | Sending::Stopped(_) => {}
            Sending::Waits(_) => self.sending = Sending::Stopped(NotReusable::NoContinue),
            Sending::Open | Sending::Given if self.done || self.head.status.code() >= 300 => {
                self.sending = Sending::Stopped(NotReusable::Early);
            }
            // A server may answer 200 while it reads: the rest of the request is sent, and the connection ends.
            Sending::Open | Sending::Given => self.early = true,
        }
        Ok(())
    }

    /// The server sends no more, and all it has sent was offered. `clean`: a FIN, or by TLS its own end before that. Behind
    /// that the response is complete.
    ///
    /// # Errors
    /// It is not complete.
    pub fn end_of_stream(&mut self, clean: bool) -> Result<(), Error> {
        self.ended = true;
        if self.done {
            return Ok(());
        }
        match self.receiver.end_of_stream() {
            Ok(()) if !clean => self.fail(Error::NotClosed),
            Ok(()) if self.reset => self.fail(Error::Broken),
            Ok(()) => {
                self.done = true;
                Ok(())
            }
            Err(Malformed::NoResponse) if self.answered => self.fail(Malformed::CutInHead.into()),
            Err(error) => self.fail(error.into()),
        }
    }

    /// The socket cannot be read (ECONNRESET and others).
    ///
    /// # Errors
    /// The response is not complete.
    pub fn read_failed(&mut self) -> Result<(), Error> {
        self.ended = true;
        if self.done { Ok(()) } else { self.fail(Error::Broken) }
    }

    // ---- Time ----

    /// The time until which something has to happen.
    pub fn deadline(&self) -> Option<Instant> {
        [self.total_deadline(), self.expect_deadline(), self.progress_deadline().map(|(at, _)| at)]
            .into_iter()
            .flatten()
            .min()
    }

    /// A deadline may have passed. A body that waits for a 100 goes without one.
    ///
    /// # Errors
    /// A time limit has passed, and the connection is lost.
    pub fn handle_deadline(&mut self, now: Instant) -> Result<(), Error> {
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_past(self.total_deadline()) {
            return self.fail(Error::Timeout(Phase::Total));
        }
        if is_past(self.expect_deadline()) {
            self.sending = Sending::Open;
            self.last = now;
        }
        match self.progress_deadline() {
            Some((at, phase)) if at <= now => self.fail(Error::Timeout(phase)),
            _ => Ok(()),
        }
    }

    /// The caller has paused and waits again: its pause does not count as the server's.
    pub fn resume(&mut self, now: Instant) {
        self.last = self.last.max(now);
    }

    fn total_deadline(&self) -> Option<Instant> {
        self.timeouts.total.and_then(|limit| self.begun.checked_add(limit))
    }

    fn expect_deadline(&self) -> Option<Instant> {
        match self.sending {
            Sending::Waits(until) => until,
            _ => None,
        }
    }

    fn progress_deadline(&self) -> Option<(Instant, Phase)> {
        let (limit, phase) = match self.sending {
            _ if self.done => return None,
            _ if !self.to_transmit().is_empty() => {
                (self.timeouts.write.or(self.timeouts.progress), Phase::Write)
            }
            Sending::Waits(_) => return None,
            // The caller makes the body, which may take its time.
            Sending::Open if self.facts.is_none() => return None,
            _ if !self.answered => (self.timeouts.first_byte.or(self.timeouts.progress), Phase::FirstByte),
            _ => (self.timeouts.progress, Phase::Read),
        };
        Some((self.last.checked_add(limit?)?, phase))
    }

    // ---- The end ----

    /// Whether the response is complete.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the connection can have another exchange; `surplus`: bytes have arrived that were not consumed.
    pub fn reuse(&self, surplus: bool) -> Reuse {
        let kept = self.kept;
        let reason = match (self.facts, self.sending) {
            _ if self.failed => NotReusable::Failed,
            (Some(facts), _) if facts.switched => NotReusable::Switched,
            (None, _) => NotReusable::Unread,
            _ if !self.done => NotReusable::Unread,
            (_, Sending::Stopped(reason)) => reason,
            _ if self.early || self.sending != Sending::Sent => NotReusable::Early,
            (Some(facts), _) if facts.body == maitred_http::BodyLength::UntilClose => NotReusable::UntilClose,
            _ if self.bound => NotReusable::Authenticated,
            _ if self.report.close => NotReusable::Asked,
            (Some(facts), _) if !facts.keep_alive => NotReusable::ServerCloses,
            _ if surplus => NotReusable::Surplus,
            _ if self.ended => NotReusable::Ended,
            _ if !kept.allows_another() => NotReusable::KeepAlive,
            _ => return Reuse::Yes(kept),
        };
        Reuse::No(reason)
    }

    /// Whether the failed request may be sent once more, on a new connection: this one was reused, nothing of a response
    /// came, and the request may be repeated or no byte of it was taken. `body_again`: the body can be given again from its
    /// beginning.
    pub fn may_retry(&self, body_again: bool) -> bool {
        self.stale && self.reused && self.may_repeat(body_again)
    }

    fn may_repeat(&self, body_again: bool) -> bool {
        (self.repeatable || self.accepted == 0) && (self.body_given == 0 || body_again)
    }

    fn fail<T>(&mut self, error: Error) -> Result<T, Error> {
        self.failed = true;
        self.stale = match error {
            Error::Response(Malformed::NoResponse) | Error::IdleTimeout | Error::Unasked => true,
            Error::Broken => !self.answered,
            _ => false,
        };
        Err(error)
    }
}

/// Without the bytes of the request and the head of the response, which may have credentials and cookies.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("sending", &self.sending)
            .field("to_transmit", &self.to_transmit().len())
            .field("accepted", &self.accepted)
            .field("answered", &self.answered)
            .field("status", &self.facts.map(|_| self.head.status))
            .field("done", &self.done)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

fn is_idempotent(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

#[cfg(test)]
mod tests;
