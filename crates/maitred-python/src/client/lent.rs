//! The call of a response, lent to the thread that reads.
//!
//! ```text
//! Here --take--> Lent --put_back--> Here     close, from everywhere: Closed; a read that waits ends at once
//! ```
//! Promises: no lock is held while a thread reads or Python code runs, so a signal's handler, the body's generator and other threads
//! can close the response or ask for its account. Account and trailers stay behind the end.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use maitred_client::Report;
use maitred_http::FieldSet;
use pyo3::exceptions::PyRuntimeError;

use super::driven::{Driven, Kept};
use super::failure::Failure;
use crate::values::lock;

pub(super) struct Lent {
    place: Mutex<Place>,
    stop: Stop,
}

enum Place {
    Here(Box<Driven>),
    /// A thread reads; the account is that of the read's begin.
    Lent(Report),
    Closed(Kept),
}

/// The sign for a thread that reads.
#[derive(Default)]
pub(super) struct Stop {
    is_stopped: AtomicBool,
    /// The socket for which the thread waits. While it stands here it is open.
    socket: Mutex<Option<RawFd>>,
}

impl Lent {
    pub(super) fn new(driven: Box<Driven>) -> Self {
        Self { place: Mutex::new(Place::Here(driven)), stop: Stop::default() }
    }

    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Takes the call for a read. [`put_back`](Self::put_back) comes behind.
    ///
    /// # Errors
    /// The response is closed, or another thread reads.
    pub(super) fn take(&self) -> Result<Box<Driven>, Failure> {
        let mut place = lock(&self.place);
        let report = match &*place {
            Place::Here(driven) => *driven.call.report(),
            Place::Lent(_) => {
                return Err(PyRuntimeError::new_err("another thread reads this response").into());
            }
            Place::Closed(_) => return Err(Failure::Closed),
        };
        match std::mem::replace(&mut *place, Place::Lent(report)) {
            Place::Here(driven) => Ok(driven),
            _ => Err(Failure::Closed),
        }
    }

    pub(super) fn put_back(&self, driven: Box<Driven>) {
        *lock(&self.place) = Place::Here(driven);
        if self.stop.is_stopped() {
            self.close();
        }
    }

    /// Ends the call, or has the thread that reads do so.
    pub(super) fn close(&self) {
        self.stop.stop();
        let mut place = lock(&self.place);
        if let Place::Here(driven) = &mut *place {
            driven.call.abandon(Instant::now());
            let kept = driven.kept();
            let closed = std::mem::replace(&mut *place, Place::Closed(kept));
            drop(place);
            // Its source may be an object that runs code at its end.
            drop(closed);
        }
    }

    /// The account so far.
    pub(super) fn report(&self) -> Report {
        match &*lock(&self.place) {
            Place::Here(driven) => *driven.call.report(),
            Place::Lent(report) => *report,
            Place::Closed(kept) => kept.report,
        }
    }

    pub(super) fn trailers(&self) -> Option<FieldSet> {
        match &*lock(&self.place) {
            Place::Here(driven) => driven.call.trailers().cloned(),
            Place::Lent(_) => None,
            Place::Closed(kept) => kept.trailers.clone(),
        }
    }
}

impl Stop {
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Runs `wait`, which [`stop`](Self::stop) ends: the socket has its end then.
    pub(super) fn stoppable(
        &self,
        socket: BorrowedFd<'_>,
        wait: impl FnOnce() -> std::io::Result<bool>,
    ) -> std::io::Result<bool> {
        {
            let mut place = lock(&self.socket);
            if self.is_stopped() {
                return Ok(false);
            }
            *place = Some(socket.as_raw_fd());
        }
        let waited = wait();
        *lock(&self.socket) = None;
        waited
    }

    fn stop(&self) {
        let socket = lock(&self.socket);
        self.is_stopped.store(true, Ordering::Release);
        if let Some(socket) = *socket {
            // SAFETY: the thread that waits has the socket open as long as its number stands there, and the lock keeps the number.
            // The connection is not used again: its response is not read to the end.
            unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
        }
    }
}
