//! Handlers, which answer requests.

use crate::exchange::Exchange;

/// Whether a handler may block the thread it runs on (D6). The dispatcher decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvocationType {
    /// The handler never blocks: it may run on the thread that polls, also on the last one.
    NonBlocking,
    /// May block for as long as it likes: it runs only where another thread can poll.
    Blocking,
}

/// Answers requests. One value serves all threads at once.
///
/// The handler owns the exchange it gets: it answers before it returns, or keeps the exchange (or
/// the stream it made of it) and finishes from any other thread later. An exchange dropped without
/// an answer becomes a 500; a panic is caught, logged and becomes a 500 too.
pub trait Handler: Send + Sync + 'static {
    /// The dispatcher's assumption about [`handle`](Self::handle). Blocking unless said otherwise.
    fn invocation_type(&self) -> InvocationType {
        InvocationType::Blocking
    }

    /// Whether a request may come with a [live](crate::Body::live) body, which the handler reads while it comes. Asked
    /// for listeners that do not read ahead; other handlers get their requests complete there too.
    fn takes_live_bodies(&self) -> bool {
        false
    }

    /// Whether a request may ask for a [`WebSocket`](crate::WebSocket). For other handlers it is a request like any other, and
    /// `Upgrade` a field of it.
    fn takes_websockets(&self) -> bool {
        false
    }

    /// Whether it has to be called on the thread of the [event loop](crate::ThreadHost::event_loop). Others run on threads, also
    /// where there is a loop.
    fn runs_on_event_loop(&self) -> bool {
        false
    }

    /// The language of the handler: it has to be called on a thread of the [host](crate::ThreadHost::language) of this
    /// language, where a server has several hosts. Empty: any thread may call it.
    fn language(&self) -> &'static str {
        ""
    }

    /// Answers one request.
    fn handle(&self, exchange: Exchange);
}

impl<F: Fn(Exchange) + Send + Sync + 'static> Handler for F {
    fn handle(&self, exchange: Exchange) {
        self(exchange);
    }
}
