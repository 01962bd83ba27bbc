//! Interrupting application code whose request the server has answered in its place, because it took too long.
//!
//! ```text
//! server: Observe::timed_out --> queue --> maitred-interrupt: takes the interpreter, then under the request's lock:
//!                                          still running? an exception for its thread
//! thread of the request, at its end:       under the same lock: over; an exception not raised yet is taken back
//! ```
//! Promises: the exception is raised in its request and in nothing that comes after it on that thread. The caller of
//! `timed_out` holds a lock of the server and has no interpreter, so it only puts an entry into a queue.
//!
//! Leaves out: calls of C that wait or compute. Python raises the exception at the next line of Python code, so a
//! blocking call (a query, `time.sleep`, a socket without a timeout) is not interrupted, but the code behind it is.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{self, JoinHandle};

use crate::values::lock;
use maitred_runtime::{Exchange, Observe};
use pyo3::exceptions::PyException;
use pyo3::{create_exception, ffi, prelude::*};

create_exception!(
    maitred,
    RequestTimeout,
    PyException,
    "The request took longer than the server waits for a response, and the client has been told so.\n\n\
     Raised in the middle of application code with the option interrupt."
);

/// Interrupts requests. The thread that does is made when the first request comes that can be interrupted.
#[derive(Default)]
pub(crate) struct Interrupter {
    started: OnceLock<Started>,
}

struct Started {
    queue: Sender<Option<Arc<Running>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Running {
    /// Python's number of the thread.
    thread: libc::c_long,
    state: Mutex<State>,
    queue: Sender<Option<Arc<Running>>>,
    this: Weak<Running>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Inside,
    /// The request's thread has an exception that may not have been raised.
    Interrupted,
    Over,
}

impl Interrupter {
    /// The current thread takes this request into the application, until the result is dropped. None where it is not
    /// to be interrupted, or cannot be: the process has no thread left.
    pub(crate) fn enter(&self, exchange: &mut Exchange) -> Option<Inside> {
        if !exchange.interrupts() {
            return None;
        }
        let queue = &self.started()?.queue;
        let running = Arc::new_cyclic(|this| Running {
            // SAFETY: the call has no argument and cannot fail.
            thread: unsafe { libc::pthread_self() } as libc::c_long,
            state: Mutex::new(State::Inside),
            queue: queue.clone(),
            this: this.clone(),
        });
        exchange.observe(Arc::clone(&running) as _);
        Some(Inside(running))
    }

    /// Tried again by the next request where there is no thread.
    fn started(&self) -> Option<&Started> {
        if self.started.get().is_none()
            && let Some(started) = Started::new()
        {
            // Another request may have been first: the thread of this one ends with its queue.
            let _ = self.started.set(started);
        }
        self.started.get()
    }

    /// Ends the thread. Called before the interpreter ends: it may be using it.
    pub(crate) fn stop(&self, py: Python<'_>) {
        let Some(started) = self.started.get() else { return };
        let thread = lock(&started.thread).take();
        py.detach(|| {
            // A thread that has panicked does not receive; the panic hook has reported that.
            let _ = started.queue.send(None);
            let _ = thread.map(JoinHandle::join);
        });
    }
}

impl Started {
    fn new() -> Option<Self> {
        let (queue, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("maitred-interrupt".to_owned()).spawn(move || serve(&asked));
        Some(Self { queue, thread: Mutex::new(Some(thread.ok()?)) })
    }
}

fn serve(asked: &Receiver<Option<Arc<Running>>>) {
    while let Ok(Some(running)) = asked.recv() {
        Python::attach(|py| running.interrupt(py));
    }
}

impl Running {
    /// Neither this nor [`end`](Self::end) runs Python code, so a thread that holds the lock never waits for the
    /// interpreter.
    fn interrupt(&self, py: Python<'_>) {
        let exception = py.get_type::<RequestTimeout>();
        let mut state = lock(&self.state);
        if *state == State::Inside {
            *state = State::Interrupted;
            // SAFETY: attached, and a class that is an exception. The thread is alive: it is inside.
            unsafe { ffi::PyThreadState_SetAsyncExc(self.thread, exception.as_ptr()) };
        }
    }

    fn end(&self) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Over);
        if before == State::Interrupted {
            // SAFETY: the caller is attached; null takes an exception back that has not been raised.
            unsafe { ffi::PyThreadState_SetAsyncExc(self.thread, std::ptr::null_mut()) };
        }
    }
}

impl Observe for Running {
    fn changed(&self) {}

    fn timed_out(&self) {
        if let Some(this) = self.this.upgrade() {
            // After the end the queue has no receiver.
            let _ = self.queue.send(Some(this));
        }
    }
}

/// The current thread runs a request that can be interrupted. To be dropped there.
pub(crate) struct Inside(Arc<Running>);

impl Drop for Inside {
    fn drop(&mut self) {
        Python::attach(|_| self.0.end());
    }
}
