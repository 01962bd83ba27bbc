//! The thread that gives up references which the engine has dropped without the interpreter.
//!
//! Promises: no other thread is delayed by the end of such an object, however long its `__del__` takes, and its memory
//! does not
//! wait for the next request. The thread asks for the interpreter only when there is something to give up, and then for
//! all that came within [`PAUSE`]: while an application computes, each time costs a switch of threads.

use std::io;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::held::is_attached;

/// The time for which references are gathered: 50 switches a second at most, unless they hold [`MUCH`].
const PAUSE: Duration = Duration::from_millis(20);

/// A queue of so many bytes does not wait for the end of the pause: they count for no budget any more.
const MUCH: usize = 1 << 20;

/// Fewer bytes are not counted: those that come within the pause add up to little.
const COUNTED: usize = 4 << 10;

/// How long references are given up before the interpreter is offered to others: memory is given back to the system
/// without a line of Python code, between two of which it would be taken from us.
const SLICE: Duration = Duration::from_micros(500);

/// The system keeps 15 bytes of a name.
const THREAD: &str = "maitred-release";

static QUEUE: Mutex<Queue> = Mutex::new(Queue { dropped: Vec::new(), bytes: 0, open: false, alive: false });
static CHANGED: Condvar = Condvar::new();

struct Queue {
    dropped: Vec<Py<PyAny>>,
    /// Bytes that the objects hold, as far as it is known.
    bytes: usize,
    open: bool,
    alive: bool,
}

/// Starts the thread. Once in a process.
/// Errors: the process has no thread left.
pub(crate) fn start() -> io::Result<()> {
    let serving = Serving::begin();
    // If the thread cannot be made, dropping `serving` closes the queue.
    thread::Builder::new().name(THREAD.to_owned()).spawn(move || serving.serve()).map(drop)
}

/// Ends the thread after it has released everything in the queue. Called before the interpreter ends, which the thread
/// may be using. Waits at most for `limit`, for application code at the end of an object. Returns whether the thread
/// has ended.
pub(crate) fn end(py: Python<'_>, limit: Duration) -> bool {
    py.detach(|| {
        lock().open = false;
        CHANGED.notify_all();
        let ended = CHANGED.wait_timeout_while(lock(), limit, |queue| queue.alive);
        !ended.unwrap_or_else(PoisonError::into_inner).0.alive
    })
}

/// Queues the reference for the releaser's thread. Does not block, and runs no Python code.
pub(crate) fn release(object: Py<PyAny>) {
    let mut queue = lock();
    if !queue.open {
        drop(queue);
        if is_attached() {
            // It would end here, where a lock may be held. There is no thread before the first request and after the last.
            mem::forget(object);
        }
        // Else PyO3 gives it up when some thread attaches.
        return;
    }
    queue.dropped.push(object);
    let first = queue.dropped.len() == 1;
    drop(queue);
    if first {
        CHANGED.notify_all();
    }
}

/// A reference to so many bytes is given up next, by this thread where it has the interpreter.
pub(crate) fn expect(bytes: usize) {
    if bytes < COUNTED || is_attached() {
        return;
    }
    let mut queue = lock();
    queue.bytes += bytes;
    let is_much = queue.bytes >= MUCH;
    drop(queue);
    if is_much {
        CHANGED.notify_all();
    }
}

struct Serving;

impl Serving {
    fn begin() -> Self {
        let mut queue = lock();
        (queue.open, queue.alive) = (true, true);
        Self
    }

    fn serve(self) {
        loop {
            let queue = CHANGED.wait_while(lock(), |queue| queue.open && queue.dropped.is_empty());
            let queue = queue.unwrap_or_else(PoisonError::into_inner);
            let waited = CHANGED.wait_timeout_while(queue, PAUSE, |queue| queue.open && queue.bytes < MUCH);
            let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let dropped = mem::take(&mut queue.dropped);
            queue.bytes = 0;
            drop(queue);
            if dropped.is_empty() {
                return;
            }
            Python::attach(|py| give_up(py, dropped));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let mut queue = lock();
        (queue.open, queue.alive) = (false, false);
        drop(queue);
        CHANGED.notify_all();
    }
}

fn give_up(py: Python<'_>, dropped: Vec<Py<PyAny>>) {
    let mut since = Instant::now();
    for object in dropped {
        object.drop_ref(py);
        if since.elapsed() > SLICE {
            py.detach(|| ());
            since = Instant::now();
        }
    }
}

/// A panic elsewhere cannot leave the queue half-changed.
fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_blocks_are_much_together() {
        const BLOCK: usize = 64 << 10;
        (0..MUCH / BLOCK).for_each(|_| expect(BLOCK));
        assert!(lock().bytes >= MUCH);
    }
}
