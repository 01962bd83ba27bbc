//! A service: a handler that never blocks. It keeps exchanges, and answers them from the events of other connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Handler, InvocationType, Observe, Stream};

/// Requests for `/listen` wait here. Each request for `/say?N` sends a block of N bytes to those whose peers have room,
/// and forgets those whose peers have left. `/end` ends the responses of all.
#[derive(Default)]
pub struct Wall {
    listeners: Mutex<Vec<Stream>>,
    changes: Arc<Changes>,
}

/// Counts how often the state of an exchange has changed: its peer has taken bytes, or has left.
#[derive(Default)]
struct Changes(AtomicUsize);

impl Observe for Changes {
    fn changed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wall {
    /// How often an exchange that waits here has changed.
    pub fn changes(&self) -> usize {
        self.changes.0.load(Ordering::SeqCst)
    }

    /// Sends a block to all that have room; returns how many have got it, and how many wait here.
    fn say(&self, listeners: &mut Vec<Stream>, length: usize) -> (usize, usize) {
        listeners.retain(|listener| !listener.is_closed());
        let room = listeners.iter_mut().filter(|listener| !listener.is_full());
        let sent = room.filter_map(|listener| listener.send(vec![b'w'; length]).ok()).count();
        (sent, listeners.len())
    }
}

impl Handler for Wall {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn handle(&self, mut exchange: Exchange) {
        let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if exchange.request().head.path().ends_with(b"/listen") {
            exchange.observe(self.changes.clone());
            // The peer may have left already.
            return listeners.extend(exchange.start(&head, None).ok());
        }
        let query = exchange.request().head.query().map(String::from_utf8_lossy);
        let (told, all) = match query.and_then(|query| query.parse().ok()) {
            Some(length) => self.say(&mut listeners, length),
            None => (0, std::mem::take(&mut *listeners).into_iter().map(Stream::finish).count()),
        };
        drop(listeners);
        // The peer may have left meanwhile.
        let _ = exchange.respond(head, format!("{told} of {all}"));
    }
}
