//! The driver of a thread that may wait: the thread polls and reads by itself.
//!
//! Promises: a signal's handler runs while the main thread waits (Python runs handlers there only), and its exception ends the
//! call. A call that another thread, or such a handler, closes ends at once.

use std::thread;
use std::time::{Duration, Instant};

use maitred_client::CallError;
use maitred_client::blocking::with_waker;
use maitred_client::call::{Call, Step};
use maitred_io::outgoing;
use pyo3::prelude::*;

use super::driven::Driven;
use super::failure::Failure;
use super::lent::Stop;

/// How long the main thread waits at most without a look for signals: one that came to another thread ends no wait here.
const LOOK: Duration = Duration::from_millis(500);

/// The same while it waits for something that no signal interrupts.
const LOOK_PARKED: Duration = Duration::from_millis(50);

/// The next step that concerns the response, waited for without the interpreter.
pub(super) fn next(driven: &mut Driven, stop: &Stop) -> Result<Step, Failure> {
    loop {
        if stop.is_stopped() {
            return Err(Failure::Closed);
        }
        let now = Instant::now();
        match with_waker(|waker| driven.step(now, waker))? {
            Step::Body => pull(driven)?,
            Step::Wait(until) => {
                let limit = until.map(|until| until.saturating_duration_since(now));
                wait(&driven.call, limit, stop).inspect_err(|_| driven.call.abandon(now))?;
            }
            step => return Ok(step),
        }
    }
}

/// Sends the request and waits for the head.
pub(super) fn until_head(driven: &mut Driven) -> Result<(), Failure> {
    next(driven, &Stop::default())?;
    with_waker(|waker| driven.take_early(Instant::now(), waker));
    Ok(())
}

/// Reads up to the end.
pub(super) fn read_all(driven: &mut Driven, stop: &Stop, mut take: impl FnMut(&[u8])) -> Result<(), Failure> {
    while let Step::Data(length) = next(driven, stop)? {
        take(driven.data(length));
        driven.consume(length);
    }
    Ok(())
}

/// Has the iterable make a part.
fn pull(driven: &mut Driven) -> Result<(), Failure> {
    match Python::attach(|py| driven.source.pull(py)) {
        Ok(true) => Ok(()),
        Ok(false) => Ok(driven.call.end_body()?),
        Err(error) => {
            driven.call.fail(&CallError::Body(std::io::Error::other("its iterable has raised an exception")));
            Err(error.into())
        }
    }
}

fn wait(call: &Call, limit: Option<Duration>, stop: &Stop) -> Result<(), Failure> {
    let is_main = is_main_thread();
    let within =
        |most: Duration| if is_main { Some(limit.map_or(most, |limit| limit.min(most))) } else { limit };
    let mut sockets = call.sockets();
    let is_ready = match (sockets.next(), sockets.next()) {
        (None, _) => {
            within(LOOK_PARKED).map_or_else(thread::park, thread::park_timeout);
            Ok(false)
        }
        // The case of a response: behind its head a call waits for its connection.
        (Some(only), None) => stop.stoppable(only.0, || outgoing::wait(&[only], within(LOOK))),
        (Some(first), Some(second)) => {
            let all: Vec<_> = [first, second].into_iter().chain(sockets).collect();
            outgoing::wait(&all, within(LOOK))
        }
    };
    let is_ready = is_ready.map_err(|error| CallError::Connect("the system".to_owned(), error))?;
    if is_main && !is_ready {
        Python::attach(|py| py.check_signals())?;
    }
    Ok(())
}

fn is_main_thread() -> bool {
    // SAFETY: neither call has an argument or can fail.
    unsafe { libc::gettid() == libc::getpid() }
}
