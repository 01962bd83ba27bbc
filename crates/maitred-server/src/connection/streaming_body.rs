//! The handler's side of a body that it reads while the body arrives (`stream/body.rs` of maitred-exchange).

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use maitred_exchange::stream::body::{OVER, PEER_GONE, TOO_LATE};
use maitred_exchange::{Flags, Keeping, Stream};
use maitred_http::BodyLength;
use maitred_runtime::{LiveBody, Observe};

use super::{Context, Group, Key};

/// Bytes received by one call, as for requests that are read ahead.
const RECEIVE: usize = 64 * 1024;

/// Returns the reader of a live body for the handler, and the length of the body if known.
pub(super) fn live_reader(context: &Context<'_>, stream: &mut Stream) -> Option<(LiveReader, Option<u64>)> {
    let flags = stream.shared_flags();
    let key = context.key(stream.number);
    let Keeping::Live(live) = &mut stream.keeping else { return None };
    live.flags = Some(Arc::clone(&flags));
    let length = match live.length {
        BodyLength::Fixed(length) => Some(length),
        _ => None,
    };
    let reader =
        LiveReader { group: Arc::clone(context.group), key, flags, edge: Arc::default(), complete: false };
    Some((reader, length))
}

thread_local! {
    /// Buffer for received parts of live bodies.
    static SPACE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The handler's side of a live body.
pub(crate) struct LiveReader {
    pub(super) group: Arc<Group>,
    pub(super) key: Key,
    flags: Arc<Flags>,
    edge: Arc<Edge>,
    complete: bool,
}

impl LiveReader {
    fn take(&mut self, buffer: &mut [u8], observer: &Arc<dyn Observe>) -> io::Result<Option<usize>> {
        if self.complete {
            return Ok(Some(0));
        }
        // The buffer belongs to the thread: each reader that waits for its peer would hold one otherwise.
        let mut space = SPACE.take();
        space.resize(RECEIVE, 0);
        let read = self
            .group
            .with_stream(self.key, |connection| connection.read_live(self, (&mut space, buffer), observer))
            .unwrap_or_else(|| if self.flags.is_gone() { PEER_GONE } else { OVER }.result().map(Some));
        SPACE.set(space);
        self.complete = matches!(read, Ok(Some(0)));
        read
    }

    fn time_out(&self) -> io::Result<usize> {
        self.group.with_stream(self.key, |connection| {
            if let Some(live) = connection.stream_of(self.key).and_then(Stream::live) {
                live.end.get_or_insert(TOO_LATE);
            }
        });
        TOO_LATE.result()
    }
}

impl LiveBody for LiveReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let until = Instant::now() + self.group.site.timeouts.body;
        let edge = Arc::clone(&self.edge);
        let observer: Arc<dyn Observe> = edge.clone();
        loop {
            edge.clear();
            if let Some(count) = self.take(buffer, &observer)? {
                return Ok(count);
            }
            if !edge.wait(until) {
                return self.time_out();
            }
        }
    }

    fn poll_read(&mut self, buffer: &mut [u8], observer: &Arc<dyn Observe>) -> io::Result<Option<usize>> {
        self.take(buffer, observer)
    }
}

/// Wait of a handler for the next bytes.
#[derive(Default)]
struct Edge {
    told: Mutex<bool>,
    wake: Condvar,
}

impl Edge {
    fn clear(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Waits until told. Returns false when the time is over first.
    pub(super) fn wait(&self, until: Instant) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let (told, _) =
            self.wake.wait_timeout_while(told, left, |told| !*told).unwrap_or_else(PoisonError::into_inner);
        *told
    }
}

impl Observe for Edge {
    fn changed(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }
}
