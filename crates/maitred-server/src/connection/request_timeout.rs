//! A request that its handler has not begun to answer, where there is a time limit for that.
//!
//! ```text
//! handler's thread                           connection                        turns
//!   the first byte of the response ---------> not awaited any more
//!                                             504, last response <------------- TIMER, due
//!   everything it sends or reads from then on: as if the peer were gone
//! ```
//! Both happen under the slot's lock: whoever is first wins, also where a complete response waits to leave with others.
//!
//! Promises: the exchange of a request that was answered here is dead. Nothing of it reaches the connection, which
//! sends its 504 and closes whatever the handler does; the outcome is written down here and nowhere else. A request
//! that waits in a queue can be seen to be dead, and is not run.
//!
//! Leaves out: the handler's thread, which goes on until its application comes back; and a response that has begun,
//! which has no time limit as long as it makes progress.

use std::sync::Arc;
use std::time::Duration;

use maitred_http::{Method, RequestHead, Status};
use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use maitred_runtime::Request;
use maitred_stats::Times;

use super::filter::put_error;
use super::{Connection, Context, NEVER, Phase, Turn, nanos};
use crate::group::Group;
use crate::group::slots::Token;
use crate::record::{Kept, Record};
use crate::scratch::Incoming;
use maitred_log::End;

/// A handler has the request now.
const RUNNING: u32 = 1;
/// Its time was over before its response began.
const OUT: u32 = 2;
/// Above: the number of the group whose thread has it, which need not be the connection's.
const GROUP: u32 = 8;

/// A request whose response is awaited.
pub(super) struct Awaited {
    /// In monotonic nanoseconds.
    due: u64,
    times: Times,
    limit: Duration,
    pool: usize,
    /// The handler has the request itself, and it is not known when it gives it back: a copy, for the logs.
    head: RequestHead,
    number: u64,
    timed: Timed,
}

/// Whether the time of a request was over before its response began, and whether a thread is in its handler. Shared by
/// all who have to do with it.
#[derive(Clone, Default)]
pub(crate) struct Timed(Arc<State>);

#[derive(Default)]
struct State {
    flags: AtomicU32,
    /// When a thread entered the handler, in monotonic nanoseconds; 0 before.
    begun: AtomicU64,
}

impl Timed {
    /// Whether its time was over. Once it was, it stays so.
    pub(crate) fn is_out(&self) -> bool {
        self.0.flags.load(Ordering::Acquire) & OUT != 0
    }

    /// A thread of the group with this number enters the handler.
    pub(crate) fn enter(&self, group: usize, now: u64) {
        self.0.begun.store(now, Ordering::Relaxed);
        self.0.flags.fetch_or((group as u32) << GROUP | RUNNING, Ordering::AcqRel);
    }

    /// The thread is back; whether the time was over meanwhile.
    pub(crate) fn leave(&self) -> bool {
        self.0.flags.fetch_and(!RUNNING, Ordering::AcqRel) & OUT != 0
    }

    /// The time is over; if a thread is in the handler, the number of its group.
    fn end(&self) -> Option<usize> {
        let before = self.0.flags.fetch_or(OUT, Ordering::AcqRel);
        (before & RUNNING != 0).then_some((before >> GROUP) as usize)
    }

    /// When a thread entered the handler, if one has.
    fn begun(&self) -> Option<u64> {
        Some(self.0.begun.load(Ordering::Relaxed)).filter(|begun| *begun > 0)
    }
}

impl Connection {
    /// A handler gets this request, which is received as far as it is going to be now. None without a time limit.
    pub(super) fn await_response(
        &mut self,
        context: &Context<'_>,
        request: &Request,
        times: Times,
        pool: usize,
    ) -> Option<Timed> {
        let limit = context.group.scheduler.request_limit(pool)?;
        let timed = Timed::default();
        let due = context.now.saturating_add(nanos(limit));
        self.awaited = Some(Box::new(Awaited {
            due,
            times,
            limit,
            pool,
            head: request.head.clone(),
            number: request.number,
            timed: timed.clone(),
        }));
        Some(timed)
    }

    /// A byte of the response is on its way, or the response has ended: the time limit does not apply any more.
    pub(super) fn begin_response(&mut self) {
        self.awaited = None;
    }

    /// The handler has got a part of a body that it reads as it comes: its time begins again.
    pub(super) fn note_body_read(&mut self) {
        if let Some(awaited) = &mut self.awaited {
            // The timer finds out when it rings.
            awaited.due = clock::monotonic().saturating_add(nanos(awaited.limit));
        }
    }

    /// Whether the exchange was given up, though its handler does not know it yet.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Whether a request runs, or waits to be run, that has a time limit and no response yet.
    pub(super) fn awaits_response(&self) -> bool {
        self.awaited.is_some()
    }

    /// When the present request is due.
    pub(super) fn request_due(&self) -> u64 {
        self.awaited.as_ref().map_or(NEVER, |awaited| awaited.due)
    }

    /// Has the timer ring for whatever is due first.
    pub(super) fn arm(&self, group: &Group, token: Token) {
        group.set_deadline(token.slot, self.deadline.min(self.request_due()).min(self.resumes_at()));
    }

    /// Answers a request whose time is over; none if it is not, or begins again.
    pub(super) fn check_request(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if context.now < self.request_due() {
            return None;
        }
        if self.waits_for_body() {
            // For the peer, and body-timeout ends that.
            self.note_body_read();
            return None;
        }
        let awaited = self.awaited.take()?;
        context.group.site.counters.timeouts.add(1);
        if let Some(group) = awaited.timed.end().and_then(|number| context.group.groups.find(number)) {
            group.scheduler.lose_thread(awaited.pool, &group);
        }
        context.slot.peer_gone.store(true, Ordering::Release);
        self.abandoned = true;
        if let Some(observer) = self.observer.take() {
            observer.timed_out();
        }
        if let Some(incoming) = self.incoming.take() {
            incoming.keeping.tell();
            Incoming::give_back(incoming);
        }
        Some(self.answer_in_its_place(context, *awaited))
    }

    /// The engine's own answer, the last one of the connection.
    fn answer_in_its_place(&mut self, context: &mut Context<'_>, awaited: Awaited) -> Turn {
        let site = &context.group.site;
        let Awaited { times, head, number, limit, pool, timed, .. } = awaited;
        // What no thread has begun has only waited.
        let times = Times { begun: timed.begun().unwrap_or(context.now), done: context.now, ..times };
        let seconds = limit.as_secs_f64();
        let (method, path) = (&head.method, head.path().escape_ascii());
        site.log.error(format_args!("{}: {method} {path}: no response within {seconds} s; 504", self.peer));
        let status = Status::GATEWAY_TIMEOUT;
        let text = format!("{} {}: no response within {seconds} s\n", status.code(), status.reason());
        put_error(context, None, status, &text);
        let out = &mut context.scratch.out;
        let mut body_bytes = text.len();
        if head.method == Method::Head {
            out.truncate(out.len() - body_bytes);
            body_bytes = 0;
        }
        context.scratch.records.push(Record {
            request: Kept::Head(Box::new(head)),
            number,
            peer: self.peer,
            listener: self.listener,
            pool: u16::try_from(pool).ok(),
            status,
            body_bytes: body_bytes as u64,
            times,
            end: End::Complete,
            refused: false,
            trace: None,
        });
        self.served = self.served.saturating_add(1);
        self.last = true;
        self.unread = true;
        self.phase = Phase::Sending;
        if self.is_dead() {
            context.scratch.out.clear();
            site.note_all(&mut context.scratch.records, context.now, Some(End::PeerGone));
            return Turn::Close;
        }
        match self.flush(context) {
            Turn::Wait if self.writer.is_none() => self.end_gently(context),
            turn => turn,
        }
    }
}
