//! A call that is driven by the thread that waits for it.

use std::cell::OnceCell;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use maitred_io::outgoing;

use super::request::Body;
use crate::call::{Call, Step};
use crate::failure::CallError;

/// One read of a body that is a stream.
pub(super) const BLOCK: usize = 16 * 1024;

/// A call with the body that it sends.
pub(super) struct Driven<'a> {
    pub(super) call: Call,
    pub(super) body: Body<'a>,
    /// A part of a stream for which there was no room yet.
    pub(super) held: Vec<u8>,
}

/// Without the bytes of the body.
impl fmt::Debug for Driven<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven")
            .field("call", &self.call)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}

impl Driven<'_> {
    /// The next step that concerns the response. `now`: the time, if the caller has just looked.
    pub(super) fn next(&mut self, mut now: Option<Instant>) -> Result<Step, CallError> {
        loop {
            let present = now.take().unwrap_or_else(Instant::now);
            match with_waker(|waker| self.call.step(present, waker))? {
                Step::Body => self.give()?,
                Step::Wait(until) => wait(&self.call, until.map(|at| at.saturating_duration_since(present)))?,
                step => return Ok(step),
            }
        }
    }

    /// Gives a part of the body. A stream may take its time: all before is sent by now.
    pub(super) fn give(&mut self) -> Result<(), CallError> {
        match &mut self.body {
            Body::Bytes(bytes) => {
                let at = usize::try_from(self.call.body_at()).unwrap_or(usize::MAX);
                self.call.give_body(bytes.get(at..).unwrap_or_default())?;
            }
            Body::Stream(stream) => {
                if self.held.is_empty() {
                    let read = read(&mut self.held, self.call.body_left(), *stream);
                    read.map_err(CallError::Body).inspect_err(|error| self.call.fail(error))?;
                }
                if self.held.is_empty() {
                    return self.call.end_body();
                }
                let taken = self.call.give_body(&self.held)?;
                self.held.drain(..taken);
            }
        }
        Ok(())
    }
}

/// Reads a part of a stream, of which at most `left` bytes are sent.
fn read(held: &mut Vec<u8>, left: Option<u64>, stream: &mut dyn Read) -> io::Result<()> {
    let length = left.and_then(|left| usize::try_from(left).ok()).map_or(BLOCK, |left| left.min(BLOCK));
    held.resize(length, 0);
    let read = loop {
        match stream.read(held) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    held.truncate(*read.as_ref().unwrap_or(&0));
    read.map(|_| ())
}

/// Waits on this thread until `call` has something to do, at most for `limit`. Its last step was made with the waker of this
/// thread.
///
/// # Errors
/// The system refuses.
pub fn wait(call: &Call, limit: Option<Duration>) -> Result<(), CallError> {
    let mut sockets = call.sockets();
    let waited = match (sockets.next(), sockets.next()) {
        (None, _) => {
            limit.map_or_else(thread::park, thread::park_timeout);
            return Ok(());
        }
        (Some(only), None) => outgoing::wait(&[only], limit),
        (Some(first), Some(second)) => {
            let all: Vec<_> = [first, second].into_iter().chain(sockets).collect();
            outgoing::wait(&all, limit)
        }
    };
    waited.map(|_| ()).map_err(|error| CallError::Connect("the system".to_owned(), error))
}

/// Runs `act` with the waker that ends a [`wait`] of this thread.
pub fn with_waker<T>(act: impl FnOnce(&Waker) -> T) -> T {
    thread_local! {
        static WAKER: OnceCell<Waker> = const { OnceCell::new() };
    }
    let own = || Waker::from(Arc::new(Parked(thread::current())));
    WAKER.with(|waker| act(waker.get_or_init(own)))
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
