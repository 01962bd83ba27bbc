//! One exchange: a request from its first byte until its response has been handed over.
//!
//! ```text
//! receiving --the request goes to a handler--> running --the handler has ended its response--> over
//!     `-----------------the engine has answered it, or its peer is gone-----------------------> over
//! ```
//! A connection of HTTP/1 has one stream at a time. Others name a stream by its [`Key`]: who comes too late, because the
//! exchange is over or was answered in its place, finds none.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use maitred_h1::HeadFacts;
use maitred_log::{End, next_number};
use maitred_runtime::{Observe, Request};
use maitred_stats::Times;

use super::NEVER;
use super::body::Keeping;
use super::framed::Queue;
use super::request_timeout::Awaited;
use super::snapshot::RequestSummary;
use crate::connection::scratch::{MAX_SPARE, clear};
use crate::group::flags::Flags;
use crate::site::Site;
use maitred_filters::Passed;
use maitred_limits::minimum::RateWatch;

/// See the module text.
#[derive(Default)]
pub(crate) struct Stream {
    /// Within its connection.
    pub(crate) number: u32,
    /// A handler has it, or is to get it.
    pub(crate) running: bool,
    /// The whole response is in the queue.
    pub(super) answered: bool,
    /// Its peer has reset it, or it was answered in its handler's place: nothing of its handler is sent any more.
    pub(super) dead: bool,
    /// How its response ends, if it was cancelled.
    pub(super) ended_as: Option<End>,
    /// Bytes go in both directions until either side ends: the request has no length, and its end is not waited for.
    pub(super) tunnel: bool,
    /// When something is due of it that its connection's deadline does not know, in monotonic nanoseconds.
    pub(super) due: u64,
    /// What waits to be sent, where exchanges are interleaved.
    pub(super) queue: Option<Box<Queue>>,
    pub(crate) request: Box<Request>,
    /// Where the body goes.
    pub(crate) keeping: Keeping,
    /// The filters that it has met.
    pub(crate) passed: Option<Box<Passed>>,
    /// The head is complete, and this is what it said.
    pub(crate) facts: Option<HeadFacts>,
    /// When its first byte was read, in monotonic nanoseconds.
    pub(crate) began: u64,
    /// Of the stations the first two.
    pub(crate) times: Times,
    /// Bytes received since then, and the time that the peer has left to send the body; none while it is not waited for.
    pub(crate) received: u64,
    pub(crate) patience: Option<RateWatch>,
    /// A copy of method and path for the control, while a handler has the request.
    pub(super) summary: RequestSummary,
    /// The time limit of its response; none without one, or when the response has begun.
    pub(super) awaited: Option<Box<Awaited>>,
    /// Who is told of changes while a handler answers.
    pub(crate) observer: Option<Arc<dyn Observe>>,
    /// What others ask about it without the lock.
    flags: Arc<Flags>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Stream>>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// An empty one, with used memory if this thread has some.
    pub(crate) fn take(number: u32, began: u64, arrived: u64) -> Box<Self> {
        let mut stream = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        (stream.number, stream.began, stream.due) = (number, began, NEVER);
        stream.times = Times { arrived, ..Times::default() };
        stream.request.number = next_number();
        stream
    }

    /// Whether its head waits in the filters.
    pub(crate) fn is_filtering(&self) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.is_checking())
    }

    /// The longest body it may have, in bytes.
    pub(crate) fn max_body(&self, site: &Site) -> u64 {
        self.passed.as_ref().and_then(|passed| passed.max_body()).unwrap_or(site.max_body)
    }

    /// Why it is refused when its body is longer.
    pub(crate) fn too_large(&self) -> &'static str {
        match self.passed.as_ref().filter(|passed| passed.max_body().is_some()) {
            None => "the request body is larger than the limit (--max-body)",
            Some(passed) => {
                passed.note_too_long();
                "the request body is larger than the limit (max-body of a filter)"
            }
        }
    }

    /// A handler gets it: what others will ask about it, all unset.
    pub(super) fn run(&mut self) -> Arc<Flags> {
        self.running = true;
        // Weak references are never made.
        if Arc::strong_count(&self.flags) == 1 {
            fence(Ordering::Acquire);
            self.flags.reset();
        } else {
            // Somebody still has those of the last exchange.
            self.flags = Arc::default();
        }
        Arc::clone(&self.flags)
    }

    pub(super) fn shared_flags(&self) -> Arc<Flags> {
        Arc::clone(&self.flags)
    }

    pub(crate) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Bytes that it holds in memory.
    pub(super) fn held(&self) -> u64 {
        let request = match &self.keeping {
            Keeping::Spool(spool) => spool.held(),
            // Its handler has the request.
            _ if self.running => self.summary.held,
            _ => self.request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64),
        };
        request + self.queue.as_ref().map_or(0, |queue| queue.held())
    }

    /// Tells the handler that something has changed.
    pub(super) fn tell(&self) {
        self.keeping.tell();
        if let Some(observer) = &self.observer {
            observer.changed();
        }
    }

    /// The handler has ended its response: it has nothing of a handler any more.
    pub(super) fn stop(&mut self) {
        (self.running, self.observer, self.awaited) = (false, None, None);
    }

    /// Keeps its memory for the next one.
    pub(crate) fn give_back(mut stream: Box<Self>) {
        if !clear(&mut stream.request) {
            return;
        }
        stream.stop();
        (stream.answered, stream.dead, stream.tunnel, stream.queue) = (false, false, false, None);
        stream.ended_as = None;
        stream.keeping = Keeping::Memory;
        stream.passed = None;
        stream.facts = None;
        (stream.received, stream.patience) = (0, None);
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(stream);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_an_exchange_that_somebody_still_asks_are_not_those_of_the_next() {
        let mut stream = Stream::default();
        let first = stream.run();
        first.set_gone();
        let second = stream.run();
        assert!(first.is_gone() && !second.is_gone());
        drop(first);
        second.set_left();
        drop(second);
        let third = stream.run();
        assert!(!third.has_left(), "used again, and empty");
    }
}
