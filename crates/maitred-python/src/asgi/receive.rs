//! `receive`: the callable, its awaitable, and the messages: parts of a body in a file, and of a body that is still arriving.
//!
//! The awaitable, which `send` returns, too, where there is no room, goes to the exchange when it is awaited, and waits in the loop only if
//! it has to. The future is made at the step that has to wait, and taken out again at the end of the wait, so that a `receive` that is
//! given up a thousand times leaves nothing behind.

use std::cell::Cell;
use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_http::Status;
use maitred_runtime::{Body, Observe};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::{ffi, intern};

use super::channel::Channel;
use super::steps::{self, Step, Steps, thrown};
use crate::held::Held;
use crate::native::{Native, answer, value_of};

/// The callable of one request.
pub(super) struct Receive(pub(super) Channel);

impl Native for Receive {
    const NAME: &'static CStr = c"maitred._engine.Receive";
    const DOC: &'static CStr = c"await receive(), for one request";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall);
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    _: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type, and with a tuple or null.
            let (Receive(channel), named) = unsafe {
                let named = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
                (value_of::<Receive>(callable), named)
            };
            // SAFETY: as above; only a number is computed.
            if unsafe { ffi::PyVectorcall_NARGS(nargsf) } + named != 0 {
                return Err(PyTypeError::new_err("receive() takes no arguments"));
            }
            let pending = Pending::new(channel.clone_ref(py), What::Message);
            Ok(channel.adapter().classes.pending.make(py, pending)?.into_object().into_ptr())
        })
    })
}

// ---- The awaitable ----

/// An awaitable of an exchange.
pub(super) struct Pending {
    channel: Channel,
    what: What,
    life: Mutex<Life>,
}

#[derive(Clone, Copy)]
pub(super) enum What {
    /// The next message.
    Message,
    Room,
    Turn,
}

enum Life {
    Fresh,
    Paused,
    Waiting(Held<PyAny>),
    Over,
}

impl Pending {
    pub(super) fn new(channel: Channel, what: What) -> Self {
        Self { channel, what, life: Mutex::new(Life::Fresh) }
    }

    /// Whether other tasks run first: parts of a file are always there, those of a fast peer's body nearly so, and a
    /// task that reads a large one shall not keep the loop until its end.
    fn is_to_pause(&self) -> bool {
        match self.what {
            What::Message => self.channel.lets_others_first(),
            What::Room => false,
            What::Turn => true,
        }
    }

    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.what {
            What::Message => Ok(self.channel.next_message(py)?.map(Py::into_any)),
            What::Room => Ok(self.channel.has_room(py)?.then(|| py.None())),
            What::Turn => Ok(Some(py.None())),
        }
    }

    fn wait(&self, py: Python<'_>) -> PyResult<Step> {
        let future = self.channel.adapter().future(py)?;
        // Before the second look: changes from now on wake the future.
        self.channel.watch().add(Held::new(future.clone_ref(py)));
        let before = mem::replace(&mut *self.life(), Life::Waiting(Held::new(future.clone_ref(py))));
        drop(before);
        if let What::Message = self.what {
            self.channel.departure().listen();
        }
        if let Some(value) = self.poll(py)? {
            self.leave();
            return Ok(Step::Return(value));
        }
        // The protocol between a Task and its awaited future (asyncio's Future.__await__).
        future.setattr(py, intern!(py, "_asyncio_future_blocking"), true)?;
        Ok(Step::Yield(future))
    }

    fn leave(&self) {
        let before = mem::replace(&mut *self.life(), Life::Over);
        if let Life::Waiting(future) = before {
            self.forget(&future);
        }
    }

    fn forget(&self, future: &Py<PyAny>) {
        if let What::Message = self.what {
            self.channel.departure().unlisten();
        }
        if let Some(watch) = self.channel.present_watch() {
            watch.remove(future);
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps for Pending {
    fn step(&self, value: &Bound<'_, PyAny>) -> PyResult<Step> {
        let py = value.py();
        let before = mem::replace(&mut *self.life(), Life::Over);
        match before {
            Life::Over => return Err(PyRuntimeError::new_err("cannot reuse what was already awaited")),
            Life::Waiting(future) => self.forget(&future),
            Life::Fresh if self.is_to_pause() => {
                let over = mem::replace(&mut *self.life(), Life::Paused);
                drop(over);
                // A Task goes on in the loop's next iteration.
                return Ok(Step::Yield(py.None()));
            }
            Life::Fresh | Life::Paused => {}
        }
        match self.poll(py)? {
            Some(value) => Ok(Step::Return(value)),
            None => self.wait(py).inspect_err(|_| self.leave()),
        }
    }

    fn throw(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Step> {
        self.leave();
        Err(thrown(arguments))
    }

    fn close(&self, _: Python<'_>) -> PyResult<()> {
        self.leave();
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Native for Pending {
    const NAME: &'static CStr = c"maitred._engine.Pending";
    const DOC: &'static CStr = c"What receive() and send() return, to be awaited once";
    const CALL: Option<ffi::vectorcallfunc> = None;

    fn slots() -> Vec<ffi::PyType_Slot> {
        steps::slots::<Self>()
    }
}

/// The awaitable of a `send` without a wait: one object for all.
pub(super) struct Done;

impl Steps for Done {
    fn step(&self, value: &Bound<'_, PyAny>) -> PyResult<Step> {
        Ok(Step::Return(value.py().None()))
    }

    fn throw(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Step> {
        Err(thrown(arguments))
    }

    fn close(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }
}

impl Native for Done {
    const NAME: &'static CStr = c"maitred._engine.Done";
    const DOC: &'static CStr = c"Has nothing to wait for";
    const CALL: Option<ffi::vectorcallfunc> = None;

    fn slots() -> Vec<ffi::PyType_Slot> {
        steps::slots::<Self>()
    }
}

// ---- The messages ----

/// A body that is in a file is received in parts of this size: large enough that the messages cost nothing
/// beside reading, small enough that many uploads at a time need little memory.
const PART: u64 = 256 * 1024;

/// Bytes of a live body that are received at once.
const LIVE_PART: usize = 64 * 1024;

thread_local! {
    /// Where they are received.
    static LIVE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How much of the request body the application has had.
pub(super) enum Reading {
    /// Nothing, and it is in memory.
    Memory(Body),
    /// So much of a file. None while a thread reads.
    File { body: Option<Body>, position: u64 },
    /// So many bytes of a body that is still arriving. None while a thread reads.
    Live { body: Option<Body>, position: u64 },
    /// Everything.
    Ended,
}

/// Reads a part of a file, and returns what follows; none behind the last part.
pub(super) fn file_part(
    py: Python<'_>,
    body: Body,
    position: u64,
) -> (PyResult<Bound<'_, PyBytes>>, Option<Reading>) {
    let count = (body.len() - position).min(PART);
    let part =
        PyBytes::new_with(py, count as usize, |part| match py.detach(|| body.read_at(part, position))? {
            read if read as u64 == count => Ok(()),
            _ => Err(PyOSError::new_err("the request body has lost its end")),
        });
    let position = position + count;
    let more = position < body.len();
    (part, more.then_some(Reading::File { body: Some(body), position }))
}

/// Takes the bytes that have arrived of a live body, `None` while there are none, and returns what follows; none behind the last part.
pub(super) fn live_part<'py>(
    py: Python<'py>,
    mut body: Body,
    position: u64,
    observer: &Arc<dyn Observe>,
) -> (io::Result<Option<Bound<'py, PyBytes>>>, Option<Reading>) {
    let mut buffer = LIVE.take();
    buffer.resize(LIVE_PART, 0);
    let read = match body.live_mut() {
        Some(live) => py.detach(|| live.poll_read(&mut buffer, observer)),
        None => Ok(Some(0)),
    };
    let count = match &read {
        Ok(Some(count)) => *count,
        Ok(None) | Err(_) => 0,
    };
    let position = position + count as u64;
    let is_end = match &read {
        Ok(Some(0)) | Err(_) => true,
        Ok(Some(_)) => body.length() == Some(position),
        Ok(None) => false,
    };
    let read = read.map(|read| read.map(|count| PyBytes::new(py, buffer.get(..count).unwrap_or_default())));
    LIVE.set(buffer);
    (read, (!is_end).then_some(Reading::Live { body: Some(body), position }))
}

/// The status for a peer whose body ended with this error; none if the peer has gone.
pub(super) fn refusal(error: &io::Error) -> Option<Status> {
    match error.kind() {
        ErrorKind::TimedOut => Some(Status::REQUEST_TIMEOUT),
        ErrorKind::FileTooLarge => Some(Status::CONTENT_TOO_LARGE),
        ErrorKind::InvalidData => Some(Status::BAD_REQUEST),
        _ => None,
    }
}

pub(super) fn disconnect(py: Python<'_>) -> PyResult<Py<PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(message.unbind())
}

pub(super) fn request_part(py: Python<'_>, body: &Bound<'_, PyBytes>, more: bool) -> PyResult<Py<PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
    message.set_item(intern!(py, "body"), body)?;
    message.set_item(intern!(py, "more_body"), more)?;
    Ok(message.unbind())
}
