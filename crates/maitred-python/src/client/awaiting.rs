//! The awaitable of a call: asks at its first step, and yields a future of the loop while there is no answer.
//!
//! Promises: a task that is cancelled while it waits here ends the call at once, and so does the end of an awaitable that was not
//! awaited to its end.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::failure::Failure;
use super::loop_call::{Done, LoopCall, Wants};

/// Makes the result.
type Finish = Box<dyn FnOnce(Python<'_>, Result<Done, Failure>) -> PyResult<Py<PyAny>> + Send>;

#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct Awaiting {
    call: Arc<LoopCall>,
    stage: Mutex<Stage>,
}

enum Stage {
    New(Wants, Finish),
    Waiting(Finish),
    Over,
}

impl Awaiting {
    pub(super) fn new(call: Arc<LoopCall>, wants: Wants, finish: Finish) -> Self {
        Self { call, stage: Mutex::new(Stage::New(wants, finish)) }
    }

    fn take(&self, py: Python<'_>) -> Stage {
        let mut stage = self.stage.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *stage, Stage::Over)
    }

    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (finish, done) = match self.take(py) {
            Stage::New(wants, finish) => (finish, self.call.start(py, wants)?),
            Stage::Waiting(finish) => (finish, None),
            Stage::Over => return Err(PyRuntimeError::new_err("the call was awaited already")),
        };
        let done = match done {
            Some(done) => done,
            None => match self.call.wait(py)? {
                Err(done) => done,
                Ok(future) => {
                    // The task's sign that the future is awaited, and not yielded by mistake.
                    future.setattr(py, intern!(py, "_asyncio_future_blocking"), true)?;
                    let mut stage = self.stage.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
                    *stage = Stage::Waiting(finish);
                    return Ok(future);
                }
            },
        };
        Err(PyStopIteration::new_err((finish(py, done)?,)))
    }
}

#[pymethods]
impl Awaiting {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    #[pyo3(signature = (value, /))]
    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = value;
        self.step(py)
    }

    #[pyo3(signature = (kind, value = None, traceback = None, /))]
    fn throw(
        &self,
        py: Python<'_>,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = traceback;
        self.close(py);
        Err(PyErr::from_value(match value {
            Some(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => value,
            _ if kind.is_instance_of::<pyo3::exceptions::PyBaseException>() => kind,
            Some(value) => kind.call1((value,))?,
            None => kind.call0()?,
        }))
    }

    fn close(&self, py: Python<'_>) {
        if !matches!(self.take(py), Stage::Over) {
            self.call.close(py);
        }
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A read that was never begun leaves the response as it is.
        if matches!(stage, Stage::Waiting(_) | Stage::New(Wants::Head, _)) {
            Python::attach(|py| self.call.close(py));
        }
    }
}
