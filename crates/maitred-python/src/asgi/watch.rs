//! The way of a change of an exchange, told on any thread, to the futures that wait for it in the loop.
//!
//! ```text
//! server: Observe::changed --> inbox, bell (eventfd) --> loop: drain --> set_result of each future
//! ```
//! The thread that tells of a change holds a lock of the server and has no interpreter: it puts a handle into the inbox
//! and rings. Within a turn the bell is not needed: the inbox is looked at when the turn ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use maitred_runtime::Observe;
use pyo3::intern;
use pyo3::prelude::*;

use super::event_loop::{Here, here};
use crate::held::Held;
use crate::values::lock;

/// The exchanges with a change that the loop has not looked at yet.
pub(super) struct Inbox {
    changed: Mutex<Vec<Arc<Watch>>>,
    bell: File,
}

pub(super) struct Watch {
    futures: Mutex<Vec<Held<PyAny>>>,
    /// The watch is in the inbox.
    queued: AtomicBool,
    inbox: Arc<Inbox>,
    this: Weak<Watch>,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: two numbers; the result is a new descriptor of ours or -1.
        let bell = unsafe {
            match libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                descriptor => File::from_raw_fd(descriptor),
            }
        };
        Ok(Self { changed: Mutex::default(), bell })
    }

    /// Can be read when [`drain`](Self::drain) is wanted.
    pub(super) fn descriptor(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    fn put(&self, watch: Arc<Watch>) {
        let mut changed = lock(&self.changed);
        let ring = changed.is_empty() && here() != Here::Turn;
        changed.push(watch);
        drop(changed);
        if ring {
            // Cannot fail but for a counter that is full, and then it has been rung.
            let _ = (&self.bell).write(&1_u64.to_ne_bytes());
        }
    }

    /// Empties the bell. Before `drain`, so that nothing is missed.
    pub(super) fn quiet(&self) {
        // Nothing to read: another callback was here before.
        let _ = (&self.bell).read(&mut [0; 8]);
    }

    pub(super) fn drain(&self, py: Python<'_>) {
        let changed = std::mem::take(&mut *lock(&self.changed));
        for watch in changed {
            // Before the futures are woken: a change from now on is another one.
            watch.queued.store(false, Ordering::Release);
            watch.wake(py);
        }
    }
}

impl Watch {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            futures: Mutex::default(),
            queued: AtomicBool::new(false),
            inbox: Arc::clone(inbox),
            this: this.clone(),
        })
    }

    /// Has `future` done at the next change.
    pub(super) fn add(&self, future: Held<PyAny>) {
        lock(&self.futures).push(future);
    }

    /// Removes `future`, which is not awaited any more.
    pub(super) fn remove(&self, future: &Py<PyAny>) {
        let mut futures = lock(&self.futures);
        let place = futures.iter().position(|other| other.is(future));
        let removed = place.map(|place| futures.swap_remove(place));
        // Before the future, whose end may run application code.
        drop(futures);
        drop(removed);
    }

    /// Completes all futures. Their awaitables then look at the exchange themselves.
    pub(super) fn wake(&self, py: Python<'_>) {
        let futures = std::mem::take(&mut *lock(&self.futures));
        for future in futures {
            let future = future.bind(py);
            let done = future.call_method0(intern!(py, "done")).and_then(|done| done.is_truthy());
            if !done.unwrap_or(true) {
                // The future of a loop that is closed already is not awaited.
                let _ = future.call_method1(intern!(py, "set_result"), (py.None(),));
            }
        }
    }
}

impl Drop for Watch {
    /// The last owner may be the server, under its locks.
    fn drop(&mut self) {
        let futures = self.futures.get_mut().unwrap_or_else(PoisonError::into_inner);
        futures.drain(..).for_each(Held::later);
    }
}

impl Observe for Watch {
    fn changed(&self) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.inbox.put(this);
        }
    }
}
