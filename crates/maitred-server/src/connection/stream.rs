//! One exchange: a request from its first byte until its response has been handed over.
//!
//! ```text
//! receiving --the request goes to a handler--> running --the handler has ended its response--> over
//!     `-----------------the engine has answered it, or its peer is gone-----------------------> over
//! ```
//! A connection of HTTP/1 has one stream at a time. Handlers name a stream by its [`Key`]: after the exchange is
//! over, or after the engine has answered in the handler's place, the key finds no stream.

use crate::connection::memory::MAX_SPARE;
use crate::connection::memory::clear_request;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use maitred_filters::Passed;
use maitred_h1::HeadFacts;
use maitred_http::{Method, RequestHead};
use maitred_limits::minimum::RateWatch;
use maitred_log::{End, next_number};
use maitred_runtime::{Observe, Request};
use maitred_stats::Times;

use super::Key;
use super::NEVER;
use super::body::Keeping;
use super::client::Client;
use super::drain::Endless;
use super::framed::Queue;
use super::request_timeout::Awaited;
use super::websocket::{Offer, Socket};
use crate::destination::Destination;
use crate::group::slots::Flags;
use crate::site::Site;

/// One exchange.
#[derive(Default)]
pub(crate) struct Stream {
    /// Number of the stream within its connection.
    pub(crate) number: u32,
    /// A handler has the request or is about to get it.
    pub(crate) running: bool,
    /// The whole response is in the queue.
    pub(super) answered: bool,
    /// The peer has reset the stream, or the engine has answered in the handler's place: bytes of the handler are
    /// dropped, and its reader finds no stream. With the loss of the whole connection a stream is not dead: its reader still
    /// gets the bytes that have come.
    pub(super) dead: bool,
    /// How its response ends, if it was cancelled.
    pub(super) ended_as: Option<End>,
    /// Set where the response needs no end of its own.
    pub(super) endless: Option<Endless>,
    /// The exchange asks for a WebSocket or has become one.
    pub(super) websocket: bool,
    /// Earliest deadline that the connection's own deadline does not cover, in monotonic nanoseconds.
    pub(super) due: u64,
    /// The WebSocket offer of the request, until a handler has it.
    pub(super) offer: Option<Box<Offer>>,
    /// The WebSocket that the exchange has become.
    pub(super) socket: Option<Box<Socket>>,
    /// Framing state and queued bytes, where exchanges are interleaved.
    pub(super) queue: Option<Box<Queue>>,
    pub(crate) request: Box<Request>,
    /// The destination of the body.
    pub(crate) keeping: Keeping,
    /// The client that sent the request; none until the head has arrived.
    pub(super) client: Option<Client>,
    /// The filters that the request has passed.
    pub(crate) passed: Option<Box<Passed>>,
    /// The destination of the request, found from its head.
    pub(super) destination: Destination,
    /// Facts of the head; none until the head is complete.
    pub(crate) facts: Option<HeadFacts>,
    /// Time at which the first byte was read, in monotonic nanoseconds.
    pub(crate) began: u64,
    /// Times of the exchange; only the first two are set here.
    pub(crate) times: Times,
    /// Bytes received since the head, and the time that the peer has left to send the body; none while the body is
    /// not awaited.
    pub(crate) received: u64,
    pub(crate) patience: Option<RateWatch>,
    /// A copy of method and path for the control, while a handler has the request.
    pub(super) summary: RequestSummary,
    /// The time limit of its response; none without one, or when the response has begun.
    pub(super) awaited: Option<Box<Awaited>>,
    /// Observer of changes while a handler answers.
    pub(crate) observer: Option<Arc<dyn Observe>>,
    /// Flags that other threads read without the lock.
    flags: Arc<Flags>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Stream>>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Returns an empty stream, with reused memory if this thread has some.
    pub(super) fn blank() -> Box<Self> {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Begins the stream at its first byte.
    pub(super) fn begin(&mut self, number: u32, began: u64, arrived: u64) {
        (self.number, self.began, self.due) = (number, began, NEVER);
        self.times = Times { arrived, ..Times::default() };
        self.request.number = next_number();
    }

    /// Whether the handler that `key` names still answers this exchange.
    pub(super) fn is_answered_by(&self, key: Key) -> bool {
        self.running && !self.dead && self.number == key.stream
    }

    /// Whether the head waits in the filters.
    pub(crate) fn is_filtering(&self) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.is_checking())
    }

    /// Limit of the request body, in bytes.
    pub(crate) fn max_body(&self, site: &Site) -> u64 {
        self.passed.as_ref().and_then(|passed| passed.max_body()).unwrap_or(site.max_body)
    }

    /// Reason given when the body exceeds that limit.
    pub(crate) fn too_large(&self) -> &'static str {
        match self.passed.as_ref().filter(|passed| passed.max_body().is_some()) {
            None => "the request body is larger than the limit (--max-body)",
            Some(passed) => {
                passed.note_too_long();
                "the request body is larger than the limit (max-body of a host or a filter)"
            }
        }
    }

    /// Marks the stream as running and returns its flags, all unset.
    pub(super) fn run(&mut self) -> Arc<Flags> {
        self.running = true;
        // No code makes weak references.
        if Arc::strong_count(&self.flags) == 1 {
            fence(Ordering::Acquire);
            self.flags.reset();
        } else {
            // A handle of the last exchange still refers to those flags.
            self.flags = Arc::default();
        }
        Arc::clone(&self.flags)
    }

    /// Keeps a summary of a complete request that goes to a handler.
    pub(super) fn summarise(&mut self, request: &Request, since: u64, pool: usize) {
        self.summary.set(&request.head, since, pool);
        self.summary.held = request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64);
        self.summary.head = request.head.fields.memory() as u64;
    }

    /// Number of the pool whose handler has the request.
    pub(super) fn pool(&self) -> usize {
        self.summary.pool
    }

    pub(super) fn shared_flags(&self) -> Arc<Flags> {
        Arc::clone(&self.flags)
    }

    pub(crate) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Bytes that the stream holds in memory, beside its head.
    pub(super) fn held(&self) -> u64 {
        let request = match &self.keeping {
            Keeping::Spool(spool) => spool.held(),
            Keeping::Live(live) => live.held(),
            // The handler has the request.
            _ if self.running => self.summary.held,
            _ => self.request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64),
        };
        let socket = self.socket.as_ref().map_or(0, |socket| socket.held());
        request + socket + self.queue.as_ref().map_or(0, |queue| queue.held())
    }

    /// Whether the stream waits only for the rest of its request.
    pub(super) fn waits_for_peer(&self) -> bool {
        let complete = self.queue.as_ref().is_some_and(|queue| queue.received);
        !(self.running || self.answered || complete || self.is_filtering())
    }

    /// Bytes of memory of the head, here or with the handler, and of its copy for a 504.
    pub(super) fn held_by_head(&self) -> u64 {
        let awaited = self.awaited.as_ref().map_or(0, |awaited| awaited.held());
        self.request.head.fields.memory() as u64 + self.summary.head + awaited
    }

    /// Tells the handler that the state of the exchange has changed.
    pub(super) fn tell(&mut self) {
        self.keeping.tell();
        if let Some(observer) = &self.observer {
            observer.changed();
        }
    }

    /// Detaches the stream from its handler, which has ended the response.
    pub(super) fn stop(&mut self) {
        (self.running, self.endless, self.observer, self.awaited) = (false, None, None, None);
        (self.offer, self.socket) = (None, None);
    }

    /// Tells the handler that the server stops.
    pub(super) fn ask_to_end(&mut self) {
        if !self.flags().is_asked_to_end() {
            self.flags().ask_to_end();
            self.tell();
        }
    }

    /// Keeps the memory of `stream` for the next exchange.
    pub(crate) fn give_back(mut stream: Box<Self>) {
        if !clear_request(&mut stream.request) {
            return;
        }
        stream.stop();
        if let Some(queue) = stream.queue.take() {
            Queue::give_back(queue);
        }
        (stream.answered, stream.dead, stream.websocket) = (false, false, false);
        stream.ended_as = None;
        stream.keeping = Keeping::Memory;
        (stream.client, stream.passed) = (None, None);
        (stream.facts, stream.destination) = (None, Destination::Nothing);
        (stream.received, stream.patience) = (0, None);
        stream.summary.head = 0;
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(stream);
            }
        });
    }
}

/// Most bytes of a path that a summary keeps.
const MAX_PATH: usize = 256;

/// A copy of a request's method and path for the control: the handler owns the request.
#[derive(Clone, Debug)]
pub struct RequestSummary {
    /// The method.
    pub method: Method,
    /// Number of the virtual host.
    pub host: u16,
    /// As sent, without the query; cut at a length.
    pub path: Vec<u8>,
    /// Time at which the request was complete, in monotonic nanoseconds.
    pub since: u64,
    /// Number of the pool.
    pub pool: usize,
    /// Bytes of the body in memory.
    pub(super) held: u64,
    /// Bytes of memory of the head, until the exchange is over.
    head: u64,
}

impl Default for RequestSummary {
    fn default() -> Self {
        Self { method: Method::Get, host: 0, path: Vec::new(), since: 0, pool: 0, held: 0, head: 0 }
    }
}

impl RequestSummary {
    /// Returns the summary of a request.
    pub(crate) fn of(head: &RequestHead, since: u64, pool: usize) -> Self {
        let mut summary = Self::default();
        summary.set(head, since, pool);
        summary
    }

    /// Replaces the summary by that of another request.
    fn set(&mut self, head: &RequestHead, since: u64, pool: usize) {
        let path = head.path();
        self.method.clone_from(&head.method);
        self.host = head.host;
        self.path.clear();
        self.path.extend_from_slice(&path[..path.len().min(MAX_PATH)]);
        (self.since, self.pool, self.held, self.head) = (since, pool, 0, 0);
    }

    /// The path as printable ASCII.
    pub fn path(&self) -> String {
        let more = if self.path.len() == MAX_PATH { "..." } else { "" };
        format!("{}{more}", self.path.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_with_a_second_handle_are_not_reused_for_the_next_exchange() {
        let mut stream = Stream::default();
        let first = stream.run();
        first.set_gone();
        let second = stream.run();
        assert!(first.is_gone() && !second.is_gone());
        drop(first);
        second.set_gone();
        drop(second);
        let third = stream.run();
        assert!(!third.is_gone(), "used again, and empty");
    }
}
