//! The exception of a call that has failed.

use maitred_client::{CallError, Phase};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// A call has no response, or its response has no end.
#[pyclass(frozen, extends = PyException, module = "maitred._engine")]
pub(crate) struct HttpFailure {
    message: String,
    #[pyo3(get)]
    kind: String,
    #[pyo3(get)]
    phase: Option<String>,
    #[pyo3(get)]
    origin: String,
}

#[pymethods]
impl HttpFailure {
    #[new]
    fn new(message: String, kind: String, phase: Option<String>, origin: String) -> Self {
        Self { message, kind, phase, origin }
    }

    fn __str__(&self) -> &str {
        &self.message
    }
}

/// The failure of a call, or the exception of Python code that the call has run: its body, the handler of a signal.
#[derive(Debug)]
pub(super) enum Failure {
    Call(CallError),
    Python(PyErr),
    /// The response, or the event loop, is closed.
    Closed,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Failure {
    pub(super) fn raise(self, py: Python<'_>, origin: &str) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Closed => raised(py, format!("{origin}: the response is closed"), "closed", None, origin),
            Self::Call(error) => {
                raised(py, format!("{origin}: {error}"), error.kind(), phase(&error), origin)
            }
        }
    }
}

fn raised(py: Python<'_>, message: String, kind: &str, phase: Option<&str>, origin: &str) -> PyErr {
    match py.get_type::<HttpFailure>().call1((message, kind, phase, origin)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The phase of the limit that has passed, or else the one in which such a failure occurs.
fn phase(error: &CallError) -> Option<&'static str> {
    match error.phase() {
        Some(phase) => Some(name(phase)),
        None => match error.kind() {
            "request" => Some("write"),
            "protocol" => Some("read"),
            "allow" => Some("connect"),
            "closed" => None,
            kind => Some(kind),
        },
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Slot => "slot",
        Phase::Resolve => "resolve",
        Phase::Connect => "connect",
        Phase::Proxy => "proxy",
        Phase::Tls => "tls",
        Phase::Write => "write",
        Phase::FirstByte => "first_byte",
        Phase::Read => "read",
        Phase::Total => "total",
    }
}
