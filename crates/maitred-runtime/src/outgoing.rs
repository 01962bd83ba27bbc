//! A request's calls to other servers: counted by the client on any threads, read by the server.
//!
//! Leaves out: the calls themselves (maitred-client), and the names of servers, which are numbers here.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use maitred_http::{Method, TracePlace};

/// Calls of a request whose spans are kept; further ones are only counted.
const MAX_SPANS: usize = 128;

/// The calls of one request; they stay as they are from the end of its response on.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// The number of the request.
    request: u64,
    /// The id that the request has brought.
    given: Option<Box<[u8]>>,
    /// The place of the request in a trace, if the server traces.
    trace: Option<TracePlace>,
    spans: Mutex<Vec<CallSpan>>,
    calls: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
    /// Microseconds above, then the number of the server, then that of the part.
    slowest: AtomicU64,
    ended: AtomicBool,
}

/// A call that begins, for its span.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The request that the call belongs to.
    pub outgoing: Arc<Outgoing>,
    /// The call itself, if the server traces.
    pub call: Option<Box<CallFacts>>,
}

/// A call in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// The id of the span, which the other server gets as its parent.
    pub span: [u8; 8],
    /// The method.
    pub method: Method,
    /// The path, without the query, which may have secrets.
    pub path: Box<[u8]>,
}

/// A call that has ended, for its span.
#[derive(Clone, Debug)]
pub struct CallSpan {
    /// The call.
    pub facts: Box<CallFacts>,
    /// The number of the server.
    pub server: u16,
    /// The beginning, in monotonic nanoseconds.
    pub begun: u64,
    /// The length, in nanoseconds.
    pub nanos: u64,
    /// The status of the response.
    pub status: Option<u16>,
    /// The failure, as the client log names it; empty without one.
    pub failure: &'static str,
    /// The request was sent twice.
    pub retried: bool,
}

/// The calls at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingCounts {
    /// Calls that have ended.
    pub calls: u64,
    /// Calls without a response: failed, timed out or given up.
    pub failed: u64,
    /// The time of all calls, in nanoseconds; calls at the same time count one by one.
    pub nanos: u64,
    /// The slowest call.
    pub slowest: Slowest,
}

/// The slowest call of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slowest {
    /// The time, in nanoseconds, to the microsecond.
    pub nanos: u64,
    /// The number of the server.
    pub server: u16,
    /// The number of the part that took most of the time.
    pub part: u8,
}

/// Bits of a word for the server and the part.
const BELOW: u32 = 24;

/// The longest time that fits: 12 days.
const MOST: u64 = u64::MAX >> BELOW;

impl Slowest {
    fn pack(self) -> u64 {
        (self.nanos / 1000).min(MOST) << BELOW | u64::from(self.server) << 8 | u64::from(self.part)
    }

    fn unpack(word: u64) -> Self {
        Self { nanos: (word >> BELOW) * 1000, server: (word >> 8) as u16, part: word as u8 }
    }
}

impl Outgoing {
    /// No calls of the request with this number.
    #[must_use]
    pub fn of(request: u64) -> Self {
        Self { request, ..Self::default() }
    }

    /// The same of a request that has brought this id.
    #[must_use]
    pub fn with_id(mut self, given: Option<&[u8]>) -> Self {
        self.given = given.map(Box::from);
        self
    }

    /// The id that the request has brought.
    #[must_use]
    pub fn given(&self) -> Option<&[u8]> {
        self.given.as_deref()
    }

    /// The same of a request at this place of a trace.
    #[must_use]
    pub fn traced(mut self, trace: Option<TracePlace>) -> Self {
        self.trace = trace;
        self
    }

    /// The place of the request in a trace.
    #[must_use]
    pub fn trace(&self) -> Option<&TracePlace> {
        self.trace.as_ref()
    }

    /// Keeps the span of a call, or gives that of a call back that has ended after the response.
    pub fn add_span(&self, span: CallSpan) -> Option<CallSpan> {
        if self.ended.load(Relaxed) {
            return Some(span);
        }
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < MAX_SPANS {
            spans.push(span);
        }
        None
    }

    /// Takes the kept spans.
    #[must_use]
    pub fn take_spans(&self) -> Vec<CallSpan> {
        std::mem::take(&mut *self.spans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of the request.
    #[must_use]
    pub fn request(&self) -> u64 {
        self.request
    }

    /// Adds a call.
    pub fn add(&self, call: Slowest, failed: bool) {
        if self.ended.load(Relaxed) {
            return;
        }
        self.nanos.fetch_add(call.nanos, Relaxed);
        self.slowest.fetch_max(call.pack(), Relaxed);
        if failed {
            self.failed.fetch_add(1, Relaxed);
        }
        self.calls.fetch_add(1, Release);
    }

    /// The response is complete.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    /// The calls so far.
    #[must_use]
    pub fn counts(&self) -> OutgoingCounts {
        OutgoingCounts {
            calls: self.calls.load(Acquire),
            failed: self.failed.load(Relaxed),
            nanos: self.nanos.load(Relaxed),
            slowest: Slowest::unpack(self.slowest.load(Relaxed)),
        }
    }
}

impl OutgoingCounts {
    /// Whether no call has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }
}

/// A language's way to find the request that the calling code works for.
static RUNNING: OnceLock<fn() -> Option<Begun>> = OnceLock::new();

/// Says how the request is found that the calling code works for; the first one of a process counts.
pub fn set_running(find: fn() -> Option<Begun>) {
    RUNNING.get_or_init(|| find);
}

/// The request that the calling code works for; none outside of requests, or before a language has said how it is found.
#[must_use]
pub fn running() -> Option<Begun> {
    RUNNING.get().and_then(|find| find())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_call_is_known_and_calls_behind_the_end_are_not_counted() {
        let outgoing = Outgoing::of(7);
        assert!(outgoing.counts().is_empty());
        let call = |millis: u64, server, part| Slowest { nanos: millis * 1_000_000, server, part };
        outgoing.add(call(5, 3, 1), false);
        outgoing.add(call(790, 256, 4), true);
        outgoing.add(call(17, 9, 5), false);
        outgoing.end();
        outgoing.add(call(9000, 1, 1), true);
        let expected = OutgoingCounts { calls: 3, failed: 1, nanos: 812_000_000, slowest: call(790, 256, 4) };
        assert_eq!((outgoing.counts(), outgoing.request()), (expected, 7));
    }

    #[test]
    fn a_call_of_years_is_the_slowest_still() {
        let outgoing = Outgoing::default();
        outgoing.add(Slowest { nanos: u64::MAX, server: u16::MAX, part: u8::MAX }, false);
        outgoing.add(Slowest { nanos: 1, server: 1, part: 1 }, false);
        let slowest = outgoing.counts().slowest;
        assert_eq!((slowest.server, slowest.part), (u16::MAX, u8::MAX));
        assert!(slowest.nanos > 10 * 24 * 3600 * 1_000_000_000);
    }
}
