//! The awaitable of `receive`, and of `send` where there is no room: goes to the exchange when it is awaited, and waits
//! in the loop only if it has to.
//!
//! The future is made at the step that has to wait, and taken out again at the end of the wait, so that a `receive`
//! that is given up a thousand times leaves nothing behind.

use std::ffi::CStr;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{ffi, intern};

use super::channel::Channel;
use super::steps::{self, Step, Steps, thrown};
use crate::held::Held;
use crate::native::Native;

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
