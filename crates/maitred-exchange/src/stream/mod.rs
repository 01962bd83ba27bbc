//! One exchange: a request from its first byte until its response has been handed over.
//!
//! ```text
//! receiving --the request goes to a handler--> running --the handler has ended its response--> over
//!     `-----------------the engine has answered it, or its peer is gone-----------------------> over
//! ```
//! A connection of HTTP/1 has one stream at a time. Handlers name a stream by its key: after the exchange is
//! over, or after the engine has answered in the handler's place, the key finds no stream.

pub mod awaited;
pub mod body;
pub mod data_rate;
pub mod queue;
pub mod websocket;

use crate::memory::{MAX_KEPT, MAX_SPARE, blank_request, clear_request};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use maitred_filters::Passed;
use maitred_h1::{HeadFacts, TargetForm};
use maitred_http::{Method, RequestHead};
use maitred_limits::minimum::RateWatch;
use maitred_log::{End, next_number};
use maitred_runtime::{Handler, Observe, Request};
use maitred_stats::Times;

use crate::NEVER;
use crate::client::Client;
use crate::flags::Flags;
use crate::record::RequestSummary;
use crate::response::Endless;
use crate::routes::Route;
use crate::site::Site;
use crate::stream::awaited::Awaited;
use crate::stream::body::Keeping;
use crate::stream::queue::Queue;
use crate::stream::websocket::{Offer, Socket};

/// One exchange.
#[derive(Default)]
pub struct Stream {
    /// Number of the stream within its connection.
    pub number: u32,
    /// A handler has the request or is about to get it.
    pub running: bool,
    /// The whole response is in the queue.
    pub answered: bool,
    /// The peer has reset the stream, or the engine has answered in the handler's place: bytes of the handler are
    /// dropped, and its reader finds no stream. With the loss of the whole connection a stream is not dead: its reader still
    /// gets the bytes that have come.
    pub dead: bool,
    /// How its response ends, if it was cancelled.
    pub ended_as: Option<End>,
    /// Set where the response needs no end of its own.
    pub endless: Option<Endless>,
    /// The exchange asks for a WebSocket or has become one.
    pub websocket: bool,
    /// Earliest deadline that the connection's own deadline does not cover, in monotonic nanoseconds.
    pub due: u64,
    /// The WebSocket offer of the request, until a handler has it.
    pub offer: Option<Box<Offer>>,
    /// The WebSocket that the exchange has become.
    pub socket: Option<Box<Socket>>,
    /// Framing state and queued bytes, where exchanges are interleaved.
    pub queue: Option<Box<Queue>>,
    /// The request; an empty one while a handler has it.
    pub request: Box<Request>,
    /// The destination of the body.
    pub keeping: Keeping,
    /// The client that sent the request; none until the head has arrived.
    pub client: Option<Client>,
    /// The filters that the request has passed.
    pub passed: Option<Box<Passed>>,
    /// The destination of the request, found from its head.
    pub destination: Destination,
    /// Facts of the head; none until the head is complete.
    pub facts: Option<HeadFacts>,
    /// Time at which the first byte was read, in monotonic nanoseconds.
    pub began: u64,
    /// Times of the exchange; only the first two are set here.
    pub times: Times,
    /// Bytes received since the head.
    pub received: u64,
    /// The time that the peer has left to send the body; none while the body is not awaited.
    pub patience: Option<RateWatch>,
    /// A copy of method and path for the control, while a handler has the request.
    pub summary: RequestSummary,
    /// The time limit of its response; none without one, or when the response has begun.
    pub awaited: Option<Box<Awaited>>,
    /// Observer of changes while a handler answers.
    pub observer: Option<Arc<dyn Observe>>,
    /// Flags that other threads read without the lock.
    flags: Arc<Flags>,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Stream>>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Returns an empty stream, with reused memory if this thread has some.
    pub fn blank() -> Box<Self> {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Begins the stream at its first byte.
    pub fn begin(&mut self, number: u32, began: u64, arrived: u64) {
        (self.number, self.began, self.due) = (number, began, NEVER);
        self.times = Times { arrived, ..Times::default() };
        self.request.number = next_number();
    }

    /// Whether the handler of the exchange with this number still answers this exchange.
    pub fn is_answered_by(&self, number: u32) -> bool {
        self.running && !self.dead && self.number == number
    }

    /// Whether the head waits in the filters.
    pub fn is_filtering(&self) -> bool {
        self.passed.as_ref().is_some_and(|passed| passed.is_checking())
    }

    /// Limit of the request body, in bytes.
    pub fn max_body(&self, site: &Site) -> u64 {
        self.passed.as_ref().and_then(|passed| passed.max_body()).unwrap_or(site.max_body)
    }

    /// Reason given when the body exceeds that limit.
    pub fn too_large(&self) -> &'static str {
        match self.passed.as_ref().filter(|passed| passed.max_body().is_some()) {
            None => "the request body is larger than the limit (--max-body)",
            Some(passed) => {
                passed.note_too_long();
                "the request body is larger than the limit (max-body of a host or a filter)"
            }
        }
    }

    /// Marks the stream as running and returns its flags, all unset.
    pub fn run(&mut self) -> Arc<Flags> {
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
    pub fn summarise(&mut self, request: &Request, since: u64, pool: usize) {
        self.summary.set(&request.head, since, pool);
        self.summary.held = request.body.as_bytes().map_or(0, |bytes| bytes.len() as u64);
        self.summary.head = request.head.fields.memory() as u64;
        self.summary.number = request.number;
    }

    /// Number of the pool whose handler has the request.
    pub fn pool(&self) -> usize {
        self.summary.pool
    }

    /// The flags, for another thread.
    pub fn shared_flags(&self) -> Arc<Flags> {
        Arc::clone(&self.flags)
    }

    /// The flags.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Bytes that the stream holds in memory, beside its head.
    pub fn held(&self) -> u64 {
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
    pub fn waits_for_peer(&self) -> bool {
        let complete = self.queue.as_ref().is_some_and(|queue| queue.received);
        !(self.running || self.answered || complete || self.is_filtering())
    }

    /// Bytes of memory of the head, here or with the handler, and of its copy for a 504.
    pub fn held_by_head(&self) -> u64 {
        let awaited = self.awaited.as_ref().map_or(0, |awaited| awaited.held());
        self.request.head.fields.memory() as u64 + self.summary.head + awaited
    }

    /// Tells the handler that the state of the exchange has changed.
    pub fn tell(&mut self) {
        self.keeping.tell();
        if let Some(observer) = &self.observer {
            observer.changed();
        }
    }

    /// Detaches the stream from its handler, which has ended the response.
    pub fn stop(&mut self) {
        (self.running, self.endless, self.observer, self.awaited) = (false, None, None, None);
        (self.offer, self.socket) = (None, None);
    }

    /// Tells the handler that the server stops.
    pub fn ask_to_end(&mut self) {
        if !self.flags().is_asked_to_end() {
            self.flags().ask_to_end();
            self.tell();
        }
    }

    /// Takes the request out, and keeps the other memory for the next exchange.
    pub fn into_request(mut self: Box<Self>) -> Box<Request> {
        let mut request = std::mem::replace(&mut self.request, blank_request());
        // Its record may wait long for the reader, and the share of the body's memory goes back now.
        request.body.clear(MAX_KEPT);
        Self::give_back(self);
        request
    }

    /// Keeps the memory of `stream` for the next exchange.
    pub fn give_back(mut stream: Box<Self>) {
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

/// The destination of a request.
#[derive(Clone, Default)]
pub enum Destination {
    /// The server as a whole: `OPTIONS *` (RFC 9110 §9.3.7).
    Server,
    /// The engine, at the health path.
    Health,
    /// The engine, at the metrics path.
    Metrics,
    /// The static mount with this number.
    Files(usize),
    /// An application.
    Application(Arc<dyn Handler>),
    /// The folder of a mount, without its slash.
    Slash,
    /// No normal form of the path exists, and only files could answer.
    Bad,
    /// No mount and no application has the path.
    #[default]
    Nothing,
}

impl Destination {
    /// Finds the destination of a request for the host in `head`.
    pub fn find(site: &Site, head: &RequestHead, facts: Option<HeadFacts>) -> Self {
        thread_local! {
            static NORMAL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        if facts.is_some_and(|facts| facts.target_form == TargetForm::Asterisk) {
            return Self::Server;
        }
        if asks_for(site.health_path.as_deref(), head) {
            return Self::Health;
        }
        if asks_for(site.metrics_path.as_deref(), head) {
            return Self::Metrics;
        }
        let routes = site.hosts.of(head.host).routes();
        NORMAL.with_borrow_mut(|normal| match routes.find_sent(head.path(), normal) {
            Route::Static { mount, .. } => Self::Files(mount),
            Route::Application(application) => Self::Application(Arc::clone(&application.handler)),
            Route::Slash => Self::Slash,
            Route::Bad => Self::Bad,
            Route::Nothing => Self::Nothing,
        })
    }

    /// The handler of the application.
    pub fn application(&self) -> Option<&Arc<dyn Handler>> {
        if let Self::Application(handler) = self { Some(handler) } else { None }
    }

    /// Whether a handler takes the body.
    pub fn is_application(&self) -> bool {
        self.application().is_some()
    }

    /// Whether the engine answers this about itself.
    pub fn is_engine(&self) -> bool {
        matches!(self, Self::Health | Self::Metrics)
    }
}

/// Whether the engine answers this request about itself.
pub fn asks_engine(site: &Site, head: &RequestHead) -> bool {
    [&site.health_path, &site.metrics_path].into_iter().any(|path| asks_for(path.as_deref(), head))
}

/// Whether a request asks the engine at `path`. Other methods are the application's.
pub fn asks_for(path: Option<&str>, head: &RequestHead) -> bool {
    path.is_some_and(|path| path.as_bytes() == head.path())
        && matches!(head.method, Method::Get | Method::Head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_no_bytes_of_the_body_whose_share_of_the_budget_went_back() {
        let mut stream = Box::new(Stream::default());
        stream.request.body.memory_mut().expect("a body in memory").resize(2 * MAX_KEPT, 0);
        let mut request = stream.into_request();
        let memory = request.body.memory_mut().expect("a body in memory");
        assert!(memory.is_empty() && memory.capacity() <= MAX_KEPT);
    }

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
