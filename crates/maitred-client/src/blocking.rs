//! The driver for a thread that may wait: the thread polls and reads by itself, without another one.
//!
//! Promises: a call ends within its time limits in every state of the server, and an unread response closes its connection.
//!
//! Leaves out: all that [`call`](crate::call) decides.

mod response;

use std::cell::OnceCell;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use maitred_h1::OutgoingRequest;
use maitred_http::{FieldSet, Method};
use maitred_io::outgoing;

use crate::call::{Call, Options, Step};
use crate::key::Key;

pub use crate::client::{Client, Settings, Times};
pub use crate::failure::CallError;
pub use response::Response;

/// One read of a body that is a stream.
const BLOCK: usize = 16 * 1024;

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The target, percent-encoded.
    pub target: &'a str,
    /// The value of `Host` unless it is among the fields.
    pub authority: &'a str,
    /// The fields.
    pub fields: FieldSet,
    /// The body.
    pub body: Body<'a>,
    /// Whether it may be sent twice; `None`: by its method.
    pub repeatable: Option<bool>,
}

/// The body of a request.
pub enum Body<'a> {
    /// All of it.
    Bytes(&'a [u8]),
    /// A stream. Its length stands in `Content-Length`, or the body is chunked.
    Stream(&'a mut dyn Read),
}

impl Client {
    /// Sends `request` to the server of `key` and waits for the head of its response.
    ///
    /// # Errors
    /// There is no response. Nothing of the call is left in the pool.
    pub fn send<'a>(&self, key: &Arc<Key>, request: Request<'a>) -> Result<Response<'a>, CallError> {
        let (length, body_again) = match request.body {
            Body::Bytes(bytes) => (Some(bytes.len() as u64), true),
            Body::Stream(_) => (None, false),
        };
        let outgoing = OutgoingRequest {
            method: &request.method,
            target: request.target.as_bytes(),
            authority: request.authority.as_bytes(),
            fields: &request.fields,
            length,
            upgrade: false,
        };
        let times = self.settings().times;
        let options = Options { times, repeatable: request.repeatable, body_again, caller: 0 };
        let now = Instant::now();
        let mut driven = Driven {
            call: Call::begin(self, key, &outgoing, &options, now)?,
            body: request.body,
            held: Vec::new(),
        };
        if matches!(driven.body, Body::Bytes(_)) {
            driven.give()?;
        }
        driven.next(Some(now))?;
        Ok(Response::new(driven))
    }
}

/// A call with the body that it sends.
#[derive(Debug)]
struct Driven<'a> {
    call: Call,
    body: Body<'a>,
    /// A part of a stream for which there was no room yet.
    held: Vec<u8>,
}

impl Driven<'_> {
    /// The next step that concerns the response. `now`: the time, if the caller has just looked.
    fn next(&mut self, mut now: Option<Instant>) -> Result<Step, CallError> {
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
    fn give(&mut self) -> Result<(), CallError> {
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

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}
