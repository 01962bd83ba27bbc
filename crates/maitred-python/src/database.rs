//! An application's use of databases, reported by `maitred.instrument`.
//!
//! Promises: statements are counted for the request in whose context they run (PEP 567), on any thread or task; nothing
//! is made for a request of an application that has not imported one of those modules. Leaves out: the definition of a
//! statement (`python/maitred/instrument/`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maitred_runtime::{Database, Exchange};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::report::{self, ErrorSink};

static COUNTS: AtomicBool = AtomicBool::new(false);
static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the context variable that has the counts of each request from now on.
#[pyfunction]
pub(crate) fn count_databases(py: Python<'_>, current: Py<PyAny>) {
    CURRENT.get_or_init(py, || current);
    COUNTS.store(true, Ordering::Release);
}

#[pyclass(frozen, module = "maitred._engine")]
#[derive(Default)]
pub(crate) struct DatabaseCounts(Arc<Database>);

#[pymethods]
impl DatabaseCounts {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(&self, nanos: u64, statements: u64, failed: bool) {
        self.0.add(nanos, statements, failed);
    }

    fn wait(&self, nanos: u64, connections: u64) {
        self.0.wait(nanos, connections);
    }

    #[getter]
    fn statements(&self) -> u64 {
        self.0.counts().statements
    }

    #[getter]
    fn failed(&self) -> u64 {
        self.0.counts().failed
    }

    #[getter]
    fn nanos(&self) -> u64 {
        self.0.counts().nanos
    }

    #[getter]
    fn wait_nanos(&self) -> u64 {
        self.0.counts().wait_nanos
    }

    #[getter]
    fn connections(&self) -> u64 {
        self.0.counts().connections
    }
}

/// Has the engine read the counts of this exchange's request, and makes the object that [`enter`] takes. Costs one load
/// when no module counts statements.
pub(crate) fn counts_of(py: Python<'_>, exchange: &mut Exchange) -> PyResult<Option<Py<DatabaseCounts>>> {
    if !COUNTS.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let database = Arc::<Database>::default();
    exchange.request_mut().database = Some(Arc::clone(&database));
    Py::new(py, DatabaseCounts(database)).map(Some)
}

/// Counts statements of the current context there from now on; returns the value for [`leave`].
pub(crate) fn enter(py: Python<'_>, counts: &Py<DatabaseCounts>) -> PyResult<Option<Py<PyAny>>> {
    let Some(current) = CURRENT.get(py) else { return Ok(None) };
    current.call_method1(py, intern!(py, "set"), (counts,)).map(Some)
}

/// Statements of this context count as before.
pub(crate) fn leave(py: Python<'_>, token: Py<PyAny>, log: &ErrorSink) {
    let Some(current) = CURRENT.get(py) else { return };
    if let Err(error) = current.call_method1(py, intern!(py, "reset"), (token,)) {
        report::write(py, log, &report::traceback(py, &error));
    }
}
