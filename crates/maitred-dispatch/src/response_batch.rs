//! Complete responses that wait a moment, to leave together.
//!
//! A response that is sent at once wakes its peer in the middle of a batch of requests, and the sending of one
//! finds nothing of the other in the caches: together they cost a tenth to a third less. What waits is seen by
//! every thread, and somebody is always there to send it: the end of a turn of an event loop, or its driver; the
//! runner of the interpreter gate before it waits for anything, or its watcher.

use std::cell::Cell;
use std::sync::Arc;

use maitred_io::clock;

use super::ready::Ready;
use super::{Scheduler, Serve};
use crate::signals::Signals;

/// Complete responses that wait.
const MAX_UNSENT: usize = 16;

/// How long the first of them may wait, in nanoseconds, if handlers come back at all.
const MAX_AGE: u64 = 250_000;

maitred_io::sync::thread_local! {
    /// What this thread's handlers answer completely may wait.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static DEFERS: Cell<bool> = Cell::new(false);
}

/// Says whether what handlers answer completely on this thread may wait.
pub(super) fn set_defers(defers: bool) {
    DEFERS.with(|cell| cell.set(defers));
}

/// Since when something waits, as the thread that made it wait has seen it.
#[derive(Default)]
pub(super) struct Age(Option<u64>);

impl<J: Send> Scheduler<J> {
    /// Whether a complete response of this thread waits.
    pub fn defers(&self) -> bool {
        DEFERS.with(Cell::get)
    }

    /// Sends the complete response of a connection later, with others.
    pub fn send_later(&self, token: u64) {
        self.unsent.push(token, Signals::RESUME);
        if self.looped.is_some() {
            self.driver.rouse();
        }
    }

    /// Sends what waits.
    pub(super) fn send_unsent<S: Serve<Job = J>>(&self, server: &Arc<S>, now: u64) {
        let mut some = [(0, Signals::RESUME); MAX_UNSENT];
        loop {
            let count = self.unsent.pop_some(&mut some);
            if count == 0 {
                break;
            }
            let mut leaving = Leaving { list: &self.unsent, rest: &some[..count] };
            while let Some(((token, _), rest)) = leaving.rest.split_first() {
                leaving.rest = rest;
                server.send(*token, now);
            }
        }
    }

    /// Sends what has had to wait for a handler that stands still; others do not for a while.
    pub(super) fn send_promptly<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if !self.unsent.is_empty() {
            let now = clock::monotonic();
            self.pool.gate.be_prompt(now);
            self.send_unsent(server, now);
        }
    }

    /// Sends what waits if it is much or old.
    pub(super) fn send_unsent_in_time<S: Serve<Job = J>>(&self, server: &Arc<S>, now: u64, age: &mut Age) {
        let waiting = self.unsent.len();
        if waiting == 0 {
            age.0 = None;
            return;
        }
        let since = *age.0.get_or_insert(now);
        if waiting >= MAX_UNSENT || now.saturating_sub(since) >= MAX_AGE {
            age.0 = None;
            self.send_unsent(server, now);
        }
    }
}

/// What is being sent; what a panic leaves of it waits again.
struct Leaving<'a> {
    list: &'a Ready,
    rest: &'a [(u64, Signals)],
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.list.extend(self.rest.iter().copied());
    }
}
