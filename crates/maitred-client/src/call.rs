//! One call from its slot to its end, as a state machine that never waits. All drivers use it.
//!
//! ```text
//! Begun --> Waiting --> Reaching --> Exchanging --> Ended
//!    `--- an idle one --^-----------^   |     from everywhere: Failed
//!                       `--stale, once--'
//! ```
//!
//! A driver has one loop, which waits as it likes:
//!
//! ```text
//! let mut call = Call::begin(&client, &key, &request, &options, now)?;
//! call.give_body(bytes)?;                            // a body that is there; returns how many bytes were taken
//! loop {
//!     match call.step(Instant::now(), &waker)? {
//!         Step::Body => ..                           // call.give_body(part)?, then call.end_body()?
//!         Step::Head => ..                           // call.head(): go on for the body of the response
//!         Step::Data(length) => ..                   // call.data(), call.consume(length)
//!         Step::End => break,                        // call.trailers(), call.report()
//!         Step::Wait(until) => ..                    // until one of call.sockets() is ready, the waker is woken, or `until`
//!     }
//! }
//! ```
//!
//! - **Waiting.** A call waits for its [sockets](Call::sockets), or, while there are none, for the waker of its last step. A step
//!   too many does no harm. A driver with an epoll arms each socket for one event at each `Wait`: behind `End` the socket lies
//!   in the pool, and another call may have it. A descriptor that was closed may come again with the same number.
//! - **Body.** [`Step::Body`] comes when all that was given is sent, also behind [`Step::Head`] if the server reads on. The next byte to give is [`Call::body_at`]: 0 for a second
//!   time if the connection was stale and `Options::body_again` allows that. A body of known length ends by itself. While its
//!   next part is not there, wait for the sockets as well and step: a response may come before the body has ended.
//! - **The end.** With the last byte of the response the connection is in the pool again. A call that has failed, or is dropped, has
//!   given everything back; each further step fails with the same error.
//!
//! Leaves out: redirects, decoding.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{FieldSet, ResponseHead};
use maitred_io::outgoing::Wanted;

use crate::account::Account;
use crate::client::{Client, Parts, Times};
use crate::connection::Connection;
use crate::error::{Error, Phase};
use crate::exchange::{Circumstances, Event, Exchange, NotReusable, Reuse};
use crate::failure::CallError;
use crate::key::Key;
use crate::pool::{Slot, Waiting};
use crate::proxy::adapted;
use crate::reach::{Progress, Reaching};
use crate::report::{End, Report};
use crate::stream::{Received, StreamFault};

/// The circumstances of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The time limits.
    pub times: Times,
    /// Whether the request may be sent twice; `None`: by its method (RFC 9110 §9.2.2).
    pub repeatable: Option<bool>,
    /// The caller can give the body again from its beginning.
    pub body_again: bool,
    /// Interim responses are [steps](Step::Interim).
    pub interim: bool,
    /// The number that the caller has given itself, for the list of those that hold connections. With an observer the number
    /// of the observer counts.
    pub caller: u64,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A part of the request's body can be given.
    Body,
    /// An interim head has come, and the caller wants them.
    Interim,
    /// The final head has come.
    Head,
    /// So many bytes of the body are there.
    Data(usize),
    /// The response is complete.
    End,
    /// Nothing to do before this time, unless a socket is ready or the waker was woken.
    Wait(Option<Instant>),
}

/// A call.
#[derive(Debug)]
pub struct Call {
    parts: Arc<Parts>,
    stage: Stage,
    slot: Option<Slot<Connection>>,
    exchange: Exchange,
    facts: Option<ResponseFacts>,
    options: Options,
    body_at: u64,
    /// Bytes of the body of the response that stand in the connection.
    data: usize,
    trailers: Option<Box<FieldSet>>,
    reuse: Reuse,
    /// The socket may have bytes.
    look: bool,
    /// The caller has paused since the last step.
    paused: bool,
    account: Account,
}

#[derive(Debug)]
enum Stage {
    Begun,
    Waiting(Waiting<Connection>),
    Reaching(Box<Reaching>),
    Exchanging,
    Ended,
    Failed(Error),
}

impl Call {
    /// Begins a call. Nothing is done before the first step.
    ///
    /// # Errors
    /// The request cannot be sent as given.
    pub fn begin(
        client: &Client,
        key: &Arc<Key>,
        request: &OutgoingRequest<'_>,
        options: &Options,
        now: Instant,
    ) -> Result<Self, CallError> {
        let parts = client.parts();
        let mut account = Account::begin(parts.settings.observer.as_ref(), key, now);
        let timeouts = options.times.exchange;
        let circumstances = Circumstances { reused: false, repeatable: options.repeatable, timeouts };
        let begun = adapted(key, request, |request| Exchange::begin(request, circumstances, now));
        let begun = begun.map_err(CallError::from);
        let exchange = begun.inspect_err(|error| account.end(error.end()))?;
        Ok(Self {
            parts,
            stage: Stage::Begun,
            slot: None,
            exchange,
            facts: None,
            options: *options,
            body_at: 0,
            data: 0,
            trailers: None,
            reuse: Reuse::No(NotReusable::Unread),
            look: false,
            paused: false,
            account,
        })
    }

    /// Goes on as far as that needs no waiting. `now` is the present time; `waker` is woken if the call waits for something that is
    /// no socket.
    ///
    /// # Errors
    /// The call has failed.
    pub fn step(&mut self, now: Instant, waker: &Waker) -> Result<Step, CallError> {
        self.account.note(now);
        if !self.parts.is_present() {
            self.fail(&CallError::Forked);
            return Err(CallError::Forked);
        }
        let step = self.advance(now, waker).inspect_err(|error| self.fail(error));
        self.paused = !matches!(step, Ok(Step::Wait(_)));
        step
    }

    fn advance(&mut self, now: Instant, waker: &Waker) -> Result<Step, CallError> {
        loop {
            let wait = match &self.stage {
                Stage::Begun => self.check_out(now, waker),
                Stage::Waiting(_) => self.take(now, waker)?,
                Stage::Reaching(_) => self.reach(now, waker)?,
                Stage::Exchanging => match self.exchange(now) {
                    Err(_) if self.exchange.may_retry(self.options.body_again) => self.begin_again(now),
                    step => return Ok(step?),
                },
                Stage::Ended => return Ok(Step::End),
                Stage::Failed(error) => return Err(error.clone().into()),
            };
            if let Some(until) = wait {
                return Ok(Step::Wait(until));
            }
        }
    }

    // ---- The slot ----

    fn check_out(&mut self, now: Instant, waker: &Waker) -> Option<Option<Instant>> {
        let caller = self.account.number().unwrap_or(self.options.caller);
        let pool = &self.parts.pool;
        let found = pool
            .check_out(self.account.key(), caller, now)
            .or_else(|_| pool.check_out_or_wait(self.account.key(), caller, now, waker.clone()));
        match found {
            Ok(slot) => {
                self.use_slot(slot, now);
                None
            }
            Err(waiting) => {
                self.stage = Stage::Waiting(waiting);
                self.account.enter(Phase::Slot);
                Some(self.earliest(self.slot_deadline()))
            }
        }
    }

    /// The slot if it is there, or else the time until which it is waited for.
    fn take(&mut self, now: Instant, waker: &Waker) -> Result<Option<Option<Instant>>, CallError> {
        let Stage::Waiting(waiting) = &self.stage else { return Ok(None) };
        if let Some(slot) = waiting.take_or_wake(waker) {
            self.account.report.slot = Some(self.account.since_begun(now));
            self.use_slot(slot, now);
            return Ok(None);
        }
        self.in_total_time(now)?;
        let until = self.slot_deadline();
        if until.is_some_and(|until| until <= now) {
            return Err(CallError::Held(self.parts.named_holders(self.account.key(), now)));
        }
        Ok(Some(self.earliest(until)))
    }

    fn use_slot(&mut self, mut slot: Slot<Connection>, now: Instant) {
        let is_quiet = slot.connection().is_some_and(Connection::is_quiet);
        self.slot = Some(slot);
        if is_quiet {
            self.account.report.reused = true;
            self.exchange.reuses();
            self.begin_exchange(now);
        } else {
            self.begin_reaching(now);
        }
    }

    fn slot_deadline(&self) -> Option<Instant> {
        self.account.deadline(self.options.times.slot)
    }

    // ---- The connection ----

    fn begin_reaching(&mut self, now: Instant) {
        // A stale connection ends before the new one begins: a server may serve one at a time.
        self.slot.iter_mut().for_each(Slot::clear);
        let reaching = Reaching::begin(Arc::clone(self.account.key()), &self.options.times, now);
        self.stage = Stage::Reaching(Box::new(reaching));
    }

    /// The time until which the connection is waited for, unless it is there.
    fn reach(&mut self, now: Instant, waker: &Waker) -> Result<Option<Option<Instant>>, CallError> {
        let total = self.total_deadline();
        let Stage::Reaching(reaching) = &mut self.stage else { return Ok(None) };
        let found = reaching.poll(&self.parts, total, now, waker);
        reaching.note(&mut self.account.report);
        self.account.enter(reaching.phase());
        let connection = match found? {
            Progress::Wait(until) => return Ok(Some(until)),
            Progress::Done(connection) => connection,
        };
        if let Some(slot) = &mut self.slot {
            slot.put(connection, now);
        }
        self.begin_exchange(now);
        Ok(None)
    }

    /// The connection was stale: the same request goes out on a new one.
    fn begin_again(&mut self, now: Instant) -> Option<Option<Instant>> {
        self.account.retry();
        self.exchange.begin_again(now);
        self.body_at = 0;
        self.begin_reaching(now);
        None
    }

    fn begin_exchange(&mut self, now: Instant) {
        self.exchange.resume(now);
        self.account.enter(Phase::Write);
        (self.look, self.paused) = (false, false);
        self.stage = Stage::Exchanging;
    }

    // ---- The exchange ----

    fn exchange(&mut self, now: Instant) -> Result<Step, Error> {
        if self.data > 0 {
            self.in_total_time(now)?;
            return Ok(Step::Data(self.data));
        }
        if self.paused {
            self.exchange.resume(now);
        }
        // A look in front of each part of the body but the first: a response may stop it.
        let mut looked = self.exchange.accepted() == 0;
        loop {
            let is_full = self.transmit(now);
            if self.look {
                self.read(now)?;
            }
            if let Some(step) = self.receive(now)? {
                if matches!(step, Step::Data(_)) {
                    // A server that always has bytes lets no call come to the look below.
                    self.in_total_time(now)?;
                }
                return Ok(step);
            }
            self.exchange.handle_deadline(now)?;
            if self.look {
                continue;
            }
            let is_sent = self.exchange.to_transmit().is_empty();
            if is_sent && self.account.report.first_byte.is_none() {
                self.account.enter(Phase::FirstByte);
            }
            if is_sent && self.exchange.room() > 0 {
                if looked {
                    return Ok(Step::Body);
                }
                (looked, self.look) = (true, true);
            } else if is_sent || is_full {
                self.look = true;
                return Ok(Step::Wait(self.exchange.deadline()));
            }
        }
    }

    /// Writes once: between two writes the response and the time limits have their turn. Whether the socket takes no more.
    fn transmit(&mut self, now: Instant) -> bool {
        let bytes = self.exchange.to_transmit();
        let Some(connection) = self.slot.as_mut().and_then(Slot::connection) else { return true };
        if bytes.is_empty() {
            return false;
        }
        let failed = match connection.send(bytes) {
            Ok(sent) => {
                let is_full = sent.taken < bytes.len();
                self.account.sent(sent.taken, now);
                self.exchange.transmitted(sent.taken, now);
                if sent.moved {
                    self.exchange.resume(now);
                }
                return is_full;
            }
            Err(StreamFault::Socket(error)) => error.kind() != ErrorKind::BrokenPipe,
            Err(StreamFault::Tls(_)) => true,
        };
        self.exchange.write_failed(failed);
        false
    }

    /// The next event in the bytes that are there.
    fn receive(&mut self, now: Instant) -> Result<Option<Step>, Error> {
        loop {
            let Some(connection) = self.slot.as_mut().and_then(Slot::connection) else { return Ok(None) };
            let step = self.exchange.poll_event(connection.received(), &self.parts.limits, now)?;
            let data = if let Event::Data(bytes) = step.event { bytes.len() } else { 0 };
            let consumed = step.consumed - data;
            let found = match step.event {
                Event::NeedMore => None,
                Event::Interim if self.options.interim => Some(Step::Interim),
                Event::Interim => {
                    connection.consume(consumed);
                    continue;
                }
                Event::Trailers(fields) => {
                    self.trailers = Some(fields);
                    connection.consume(consumed);
                    continue;
                }
                Event::Head(facts) => {
                    self.facts = Some(facts);
                    Some(Step::Head)
                }
                Event::Data(_) => Some(Step::Data(data)),
                Event::End => Some(Step::End),
            };
            connection.consume(consumed);
            self.data = data;
            if found == Some(Step::Head) {
                self.account.report.status = Some(self.exchange.head().status.code());
            }
            if self.exchange.is_done() {
                self.end(now);
            }
            return Ok(found);
        }
    }

    fn read(&mut self, now: Instant) -> Result<(), Error> {
        let Some(connection) = self.slot.as_mut().and_then(Slot::connection) else {
            return self.exchange.read_failed();
        };
        let received = connection.receive();
        self.look = received.as_ref().is_ok_and(|(_, more)| *more);
        match received {
            Ok((Received::Nothing, _)) => Ok(()),
            Ok((Received::End { clean }, _)) => self.exchange.end_of_stream(clean),
            Ok((Received::Bytes(bytes), _)) => {
                self.account.received(bytes, now);
                Ok(())
            }
            Err(StreamFault::Socket(_)) => self.exchange.read_failed(),
            Err(StreamFault::Tls(fault)) => {
                self.exchange.read_failed().map_err(|_| Error::Tls(Box::new(fault)))
            }
        }
    }

    // ---- The caller's part ----

    /// Gives bytes of the request's body, and returns how many were taken: 0 while there is no room, or none is wanted any more.
    ///
    /// # Errors
    /// The body is longer than declared. The call has failed.
    pub fn give_body(&mut self, bytes: &[u8]) -> Result<usize, CallError> {
        let taken = self.exchange.send_body(bytes);
        let given = taken.and_then(|taken| {
            self.body_at += taken as u64;
            if self.exchange.body_left() == Some(0) {
                self.exchange.end_body(None)?;
            }
            Ok(taken)
        });
        given.map_err(CallError::from).inspect_err(|error| self.fail(error))
    }

    /// Ends the request's body.
    ///
    /// # Errors
    /// The body is shorter than declared. The call has failed.
    pub fn end_body(&mut self) -> Result<(), CallError> {
        let ended = self.exchange.end_body(None);
        ended.map_err(CallError::from).inspect_err(|error| self.fail(error))
    }

    /// The place in the request's body of the next byte to give.
    pub fn body_at(&self) -> u64 {
        self.body_at
    }

    /// How many bytes of the request's body are still to be given, if its length is known.
    pub fn body_left(&self) -> Option<u64> {
        self.exchange.body_left()
    }

    /// The sockets that the call waits for. While there are none it waits for the waker.
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Wanted)> {
        let reaching = match &self.stage {
            Stage::Reaching(reaching) => Some(reaching.sockets()),
            _ => None,
        };
        let is_exchanging = matches!(self.stage, Stage::Exchanging);
        let slot = self.slot.as_ref().filter(|_| is_exchanging);
        let sends = !self.exchange.to_transmit().is_empty();
        let own = slot.and_then(Slot::look).map(|connection| connection.waits(sends));
        reaching.into_iter().flatten().chain(own)
    }

    /// The head of the response, behind [`Step::Head`] or [`Step::Interim`].
    pub fn head(&self) -> &ResponseHead {
        self.exchange.head()
    }

    /// Takes the head of the response out of the call, behind [`Step::Head`] or [`Step::Interim`].
    pub fn take_head(&mut self) -> ResponseHead {
        self.exchange.take_head()
    }

    /// The facts of the head that only HTTP/1 has, behind [`Step::Head`].
    pub fn facts(&self) -> Option<ResponseFacts> {
        self.facts
    }

    /// The bytes of the body that are there, as `Content-Encoding` has it.
    pub fn data(&self) -> &[u8] {
        let connection = self.slot.as_ref().and_then(Slot::look);
        connection.and_then(|connection| connection.received().get(..self.data)).unwrap_or_default()
    }

    /// The caller has used so many bytes of [`data`](Self::data). If they are the last ones of the response, the connection goes back to
    /// the pool.
    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.data);
        if let Some(connection) = self.slot.as_mut().and_then(Slot::connection) {
            connection.consume(bytes);
        }
        self.data -= bytes;
        if self.data == 0 && bytes > 0 {
            let settled = self.receive(self.account.last()).map_err(CallError::from);
            let _ = settled.inspect_err(|error| self.fail(error));
        }
    }

    /// The trailers, behind [`Step::End`].
    pub fn trailers(&self) -> Option<&FieldSet> {
        self.trailers.as_deref()
    }

    /// Whether the connection is used again, and the reason if not, behind [`Step::End`].
    pub fn reuse(&self) -> Reuse {
        self.reuse
    }

    /// The account so far; it is whole behind [`Step::End`] or an error.
    pub fn report(&self) -> &Report {
        &self.account.report
    }

    /// Whether the call has ended, well or not.
    pub fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Failed(_))
    }

    /// Fails the call for a reason that lies with its driver.
    pub fn fail(&mut self, error: &CallError) {
        if self.is_ended() {
            return;
        }
        self.stage = Stage::Failed(error.again());
        self.data = 0;
        self.reuse = Reuse::No(NotReusable::Failed);
        drop(self.slot.take());
        self.account.end(error.end());
    }

    /// Gives everything up at this time; a drop does the same without a time.
    pub fn abandon(&mut self, now: Instant) {
        if !self.is_ended() {
            self.account.note(now);
            self.stage = Stage::Failed(Error::Broken);
            self.data = 0;
            drop(self.slot.take());
            self.account.end(End::Dropped);
        }
    }

    // ---- Ends ----

    fn end(&mut self, now: Instant) {
        let Some(mut slot) = self.slot.take() else { return };
        let surplus = slot.connection().is_none_or(|connection| !connection.received().is_empty());
        self.reuse = self.exchange.reuse(surplus);
        if let Reuse::Yes(kept) = self.reuse {
            slot.connection().into_iter().for_each(Connection::rest);
            slot.give_back(kept, now);
        }
        self.stage = Stage::Ended;
        self.account.end(End::Complete);
    }

    fn total_deadline(&self) -> Option<Instant> {
        self.account.deadline(self.options.times.exchange.total)
    }

    fn earliest(&self, until: Option<Instant>) -> Option<Instant> {
        [until, self.total_deadline()].into_iter().flatten().min()
    }

    fn in_total_time(&self, now: Instant) -> Result<(), Error> {
        match self.total_deadline() {
            Some(until) if until <= now => Err(Error::Timeout(Phase::Total)),
            _ => Ok(()),
        }
    }
}
