//! A call that pushes its response to a receiver: the part of the engine's driver that knows no poller.
//!
//! ```text
//! Receiver <-- head, data, trailers, end -- Pushed <-- go_on -- a driver, at each event
//!     `------- CallHandle: resume, give_body, end_body, cancel --^      (any thread; a driver's waker brings the next go_on)
//! ```
//! Promises: the receiver is called by the driver's thread only, one call at a time, without a lock that it could want, and `end` comes
//! exactly once, as the last. No byte of a response is read while the receiver has paused, and no byte of a streamed body is
//! asked for before there is a connection. At most 64 KiB wait on either side.
//!
//! Leaves out: sockets and timers, which the driver watches; all that [`call`](crate::call) decides.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{FieldSet, ResponseHead};
use maitred_io::outgoing::Wanted;

use crate::call::{Call, Options, Step};
use crate::client::Client;
use crate::failure::CallError;
use crate::key::Key;
use crate::report::Report;

/// So many bytes of both bodies move in one go; behind them others have their turn.
const MOST_AT_ONCE: usize = 256 * 1024;

/// The most bytes of a streamed body that wait for the call.
const ROOM: usize = 64 * 1024;

/// The receiver of a response. It must not wait, and is called without a lock.
pub trait Receiver: Send {
    /// First of all, and behind each [`CallHandle::resume`]: whether the call goes on, or stays paused.
    fn resumed(&mut self, _call: &CallHandle) -> Flow {
        Flow::Continue
    }

    /// An interim response, if `Options::interim` wants them; a 100 among them.
    fn interim(&mut self, _head: ResponseHead) {}

    /// The final head.
    fn head(&mut self, call: &CallHandle, head: ResponseHead, facts: ResponseFacts) -> Flow;

    /// A part of the body, as `Content-Encoding` has it, never empty.
    fn data(&mut self, call: &CallHandle, bytes: &[u8]) -> Flow;

    /// All that was given of a [given](RequestBody::Given) body is on its way: the next part can come, now or later.
    fn room(&mut self, _call: &CallHandle) {}

    /// The trailers, behind the last part of the body.
    fn trailers(&mut self, _trailers: &FieldSet) {}

    /// The end, with the account of the call. Nothing comes behind it. The connection is in the pool again, or closed.
    fn end(self: Box<Self>, result: Result<(), CallError>, report: &Report);
}

/// The wish of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next part.
    Continue,
    /// Nothing before [`CallHandle::resume`], not even the end: nothing is read, and nothing is sent.
    Pause,
    /// Nothing more: the call is cancelled.
    Cancel,
}

/// The body of a request.
pub enum RequestBody {
    /// All of it, also for a second time where a connection was stale.
    Whole(Arc<Vec<u8>>),
    /// It comes by [`CallHandle::give_body`]. Its length stands in the request, or it is chunked.
    Given,
}

/// A call that has not begun, with the receiver that has been told nothing.
pub struct NotBegun {
    /// The reason.
    pub error: CallError,
    /// The receiver.
    pub receiver: Box<dyn Receiver>,
}

impl NotBegun {
    /// Gives the receiver its end.
    pub fn tell(self) {
        self.receiver.end(Err(self.error), &Report::default());
    }
}

impl From<NotBegun> for CallError {
    fn from(not: NotBegun) -> Self {
        not.error
    }
}

impl fmt::Debug for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// The next thing for a driver to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for one of the [sockets](Pushed::sockets), for the waker, or until this time.
    Wait(Option<Instant>),
    /// Go on when others have had their turn.
    Later,
    /// Nothing: the receiver has its end.
    Ended,
}

/// A call with its receiver.
pub struct Pushed {
    call: Call,
    /// None behind the end.
    receiver: Option<Box<dyn Receiver>>,
    handle: CallHandle,
    body: RequestBody,
    /// The part of a given body that the call has not taken.
    held: Vec<u8>,
    /// The receiver knows that there is room.
    has_told_room: bool,
    is_paused: bool,
    /// The end of the call's whole time.
    until: Option<Instant>,
}

/// A running call, for any thread. The calls of this are for naught once the call has ended. None of them waits, and each may be made under
/// a lock.
#[derive(Clone)]
pub struct CallHandle(Arc<Shared>);

struct Shared {
    orders: Mutex<Orders>,
    waker: Waker,
}

/// Orders of other threads, for the next turn.
#[derive(Default)]
struct Orders {
    body: Vec<u8>,
    body_ended: bool,
    resumed: bool,
    cancelled: bool,
    /// The driver goes on just now, and looks at the orders once more before it waits.
    in_turn: bool,
    /// There is an order since the turn has looked.
    is_new: bool,
    ended: bool,
}

impl CallHandle {
    /// Has the receiver [asked](Receiver::resumed) whether it goes on.
    pub fn resume(&self) {
        self.order(|orders| orders.resumed = true);
    }

    /// Gives bytes of the body, and returns how many were taken. If fewer than all, [`Receiver::room`] says when more can be given.
    pub fn give_body(&self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        self.order(|orders| {
            let room = ROOM.saturating_sub(orders.body.len());
            let part = bytes.get(..room).unwrap_or(bytes);
            orders.body.extend_from_slice(part);
            taken = part.len();
        });
        taken
    }

    /// The body has ended.
    pub fn end_body(&self) {
        self.order(|orders| orders.body_ended = true);
    }

    /// The call is not wanted any more. Its receiver gets [`CallError::Cancelled`], unless the end has come before.
    pub fn cancel(&self) {
        self.order(|orders| orders.cancelled = true);
    }

    /// Whether the receiver has its end.
    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.lock();
        if orders.ended {
            return;
        }
        change(&mut orders);
        orders.is_new = true;
        let is_seen = orders.in_turn;
        drop(orders);
        if !is_seen {
            self.0.waker.wake_by_ref();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_turn(&self) {
        self.lock().in_turn = true;
    }

    /// Whether no order has come since the last look: then the turn has ended, and the next order wakes.
    fn end_turn(&self) -> bool {
        let mut orders = self.lock();
        orders.in_turn = std::mem::take(&mut orders.is_new);
        !orders.in_turn
    }
}

impl Pushed {
    /// Begins a call. `waker` brings the driver, from any thread; it must not go on within the wake-up.
    ///
    /// # Errors
    /// The request cannot be sent as given.
    #[expect(clippy::too_many_arguments, reason = "a call, its receiver, and its driver")]
    pub fn begin(
        client: &Client,
        key: &Arc<Key>,
        request: &OutgoingRequest<'_>,
        body: RequestBody,
        options: &Options,
        receiver: Box<dyn Receiver>,
        waker: Waker,
        now: Instant,
    ) -> Result<Self, NotBegun> {
        let whole = match &body {
            RequestBody::Whole(bytes) => Some(bytes.len() as u64),
            RequestBody::Given => None,
        };
        let request = OutgoingRequest {
            method: request.method,
            target: request.target,
            authority: request.authority,
            fields: request.fields,
            length: whole.or(request.length),
            upgrade: request.upgrade,
        };
        let options = Options { body_again: whole.is_some(), ..*options };
        let begun = Call::begin(client, key, &request, &options, now).and_then(|mut call| {
            if let RequestBody::Whole(bytes) = &body
                && !bytes.is_empty()
            {
                // Given before the first step: head and body leave in one write.
                call.give_body(bytes)?;
            }
            Ok(call)
        });
        let call = match begun {
            Ok(call) => call,
            Err(error) => return Err(NotBegun { error, receiver }),
        };
        let until = options.times.exchange.total.and_then(|total| now.checked_add(total));
        let orders = Mutex::new(Orders { resumed: true, ..Orders::default() });
        let handle = CallHandle(Arc::new(Shared { orders, waker }));
        let (held, receiver) = (Vec::new(), Some(receiver));
        Ok(Self { call, receiver, handle, body, held, has_told_room: false, is_paused: false, until })
    }

    /// For other threads.
    pub fn handle(&self) -> CallHandle {
        self.handle.clone()
    }

    /// The sockets that the call waits for. A driver arms each for one event at each [`Next::Wait`].
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Wanted)> {
        let waits = !self.is_paused;
        self.call.sockets().filter(move |_| waits)
    }

    /// Goes on as far as that needs no waiting.
    pub fn go_on(&mut self, now: Instant) -> Next {
        self.handle.begin_turn();
        let mut moved = 0;
        loop {
            let next = self.advance(now, &mut moved);
            if !matches!(next, Next::Wait(_)) || self.handle.end_turn() {
                return next;
            }
        }
    }

    /// Ends the call: its driver ends.
    pub fn stop(&mut self, now: Instant) {
        self.call.abandon(now);
        self.end(Err(CallError::NotServed));
    }

    /// Takes the call back before its first turn: its driver has ended. None if the receiver has its end.
    pub fn withdraw(mut self, now: Instant) -> Option<NotBegun> {
        self.call.abandon(now);
        let receiver = self.receiver.take()?;
        Some(NotBegun { error: CallError::NotServed, receiver })
    }

    /// Ends the call: its driver cannot watch a socket.
    pub fn fail(&mut self, error: CallError) -> Next {
        self.call.fail(&error);
        self.end(Err(error))
    }

    fn advance(&mut self, now: Instant, moved: &mut usize) -> Next {
        let mut orders = self.handle.lock();
        let (resumed, cancelled) = (std::mem::take(&mut orders.resumed), orders.cancelled);
        drop(orders);
        if cancelled {
            return self.give_up(now);
        }
        let mut flow = match &mut self.receiver {
            Some(receiver) if resumed => receiver.resumed(&self.handle),
            _ if self.is_paused => Flow::Pause,
            _ => Flow::Continue,
        };
        loop {
            self.is_paused = flow == Flow::Pause;
            if flow == Flow::Cancel {
                return self.give_up(now);
            }
            if self.is_paused && self.until.is_none_or(|until| until > now) {
                return Next::Wait(self.until);
            }
            if *moved >= MOST_AT_ONCE {
                return Next::Later;
            }
            let step = self.call.step(now, &self.handle.0.waker);
            let Some(receiver) = &mut self.receiver else { return Next::Ended };
            flow = match step {
                Ok(Step::Wait(until)) => return Next::Wait(until),
                Ok(Step::Body) => match self.give() {
                    Ok(Some(given)) => {
                        *moved += given;
                        Flow::Continue
                    }
                    Ok(None) => return Next::Wait(self.until),
                    Err(error) => return self.end(Err(error)),
                },
                Ok(Step::Interim) => {
                    receiver.interim(self.call.take_head());
                    Flow::Continue
                }
                Ok(Step::Head) => match self.call.facts() {
                    Some(facts) => receiver.head(&self.handle, self.call.take_head(), facts),
                    None => Flow::Continue,
                },
                Ok(Step::Data(length)) => {
                    let flow = receiver.data(&self.handle, self.call.data());
                    self.call.consume(length);
                    *moved += length;
                    flow
                }
                Ok(Step::End) => return self.end(Ok(())),
                Err(error) => return self.end(Err(error)),
            };
        }
    }

    /// Gives a part of the body, or its end, and returns how many bytes went; none if there was neither.
    fn give(&mut self) -> Result<Option<usize>, CallError> {
        if let RequestBody::Whole(bytes) = &self.body {
            let at = usize::try_from(self.call.body_at()).unwrap_or(usize::MAX);
            let rest = bytes.get(at..).unwrap_or_default();
            return if rest.is_empty() {
                self.call.end_body().map(|()| 0)
            } else {
                self.call.give_body(rest)
            }
            .map(Some);
        }
        loop {
            let mut has_ended = false;
            if self.held.is_empty() {
                let mut orders = self.handle.lock();
                std::mem::swap(&mut self.held, &mut orders.body);
                has_ended = orders.body_ended;
            }
            if !self.held.is_empty() {
                let taken = self.call.give_body(&self.held)?;
                self.held.drain(..taken);
                self.has_told_room = false;
                return Ok(Some(taken));
            }
            if has_ended {
                self.call.end_body()?;
                return Ok(Some(0));
            }
            if std::mem::replace(&mut self.has_told_room, true) {
                return Ok(None);
            }
            if let Some(receiver) = &mut self.receiver {
                receiver.room(&self.handle);
            }
        }
    }

    fn give_up(&mut self, now: Instant) -> Next {
        self.call.abandon(now);
        self.end(Err(CallError::Cancelled))
    }

    fn end(&mut self, result: Result<(), CallError>) -> Next {
        if let Some(mut receiver) = self.receiver.take() {
            self.handle.lock().ended = true;
            if let (Ok(()), Some(trailers)) = (&result, self.call.trailers()) {
                receiver.trailers(trailers);
            }
            receiver.end(result, self.call.report());
        }
        Next::Ended
    }
}

/// A receiver that has panicked gets no end.
impl Drop for Pushed {
    fn drop(&mut self) {
        self.handle.lock().ended = true;
    }
}

/// Without the bytes of the body.
impl fmt::Debug for Pushed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushed")
            .field("call", &self.call)
            .field("held", &self.held.len())
            .field("is_paused", &self.is_paused)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a running call")
    }
}
