//! Logs that go to Python's `logging`: `maitred._logging` has the thread that reads them.
//!
//! Promises: a handler that writes to `wsgi.errors` makes no line for itself. Leaves out: the lines, which the server's log writes.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;

thread_local! {
    static IS_HANDLING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread calls handlers of `logging` with lines of the server.
pub(crate) fn is_handling() -> bool {
    IS_HANDLING.get()
}

/// The logs of a process that go there.
pub(crate) struct Logging {
    forwarder: PyOnceLock<Py<PyAny>>,
    is_stuck: AtomicBool,
}

impl Logging {
    pub(crate) fn new() -> Self {
        Self { forwarder: PyOnceLock::new(), is_stuck: AtomicBool::new(false) }
    }

    /// The path of a file for a log of this name.
    pub(crate) fn place(&self, py: Python<'_>, name: &str) -> PyResult<PathBuf> {
        let made = || py.import("maitred._logging")?.call_method0("Forwarder").map(Bound::unbind);
        self.forwarder.get_or_try_init(py, made)?.call_method1(py, "place", (name,))?.extract(py)
    }

    /// The application has been loaded.
    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        let Some(forwarder) = self.forwarder.get(py) else { return Ok(()) };
        let mark = PyCFunction::new_closure(py, None, None, |_, _| IS_HANDLING.set(true))?;
        forwarder.call_method1(py, "start", (mark,)).map(drop)
    }

    pub(crate) fn end(&self, py: Python<'_>, limit: Duration) -> PyResult<()> {
        let Some(forwarder) = self.forwarder.get(py) else { return Ok(()) };
        let ended: bool = forwarder.call_method1(py, "end", (limit.as_secs_f64(),))?.extract(py)?;
        self.is_stuck.store(!ended, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a handler has not come back. It has its lock, for which Python's own end of `logging` would wait.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }
}
