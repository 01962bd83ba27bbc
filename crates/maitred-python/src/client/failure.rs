//! The exception of a call that has failed.

use maitred_client::blocking::CallError;
use maitred_client::{Error, Phase};
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

/// The exception for `error` of a call to `origin`; the application's own one, if the body of its request has raised it.
pub(super) fn failure(py: Python<'_>, error: CallError, origin: &str) -> PyErr {
    let message = format!("{origin}: {error}");
    let (kind, phase) = match error {
        CallError::Body(error) => match error.downcast::<PyErr>() {
            Ok(raised) => return raised,
            Err(_) => ("request", Some("write")),
        },
        CallError::Exchange(error) => of_exchange(&error),
        CallError::Resolve(_) => ("resolve", Some("resolve")),
        CallError::Connect(..) => ("connect", Some("connect")),
        CallError::TooLong(_) => ("protocol", Some("read")),
        CallError::Unsupported => ("request", None),
    };
    raised(py, message, kind, phase, origin)
}

/// The exception for a response that was closed.
pub(super) fn closed(py: Python<'_>, what: &str, origin: &str) -> PyErr {
    raised(py, format!("{origin}: {what} is closed"), "closed", None, origin)
}

fn raised(py: Python<'_>, message: String, kind: &str, phase: Option<&str>, origin: &str) -> PyErr {
    match py.get_type::<HttpFailure>().call1((message, kind, phase, origin)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn of_exchange(error: &Error) -> (&'static str, Option<&'static str>) {
    match error {
        Error::Request(_) | Error::BodyTooLong | Error::BodyTooShort(_) => ("request", Some("write")),
        Error::Response(_)
        | Error::TooManyInterim
        | Error::IdleTimeout
        | Error::Unasked
        | Error::NotClosed => ("protocol", Some("read")),
        Error::Broken => ("read", Some("read")),
        Error::Timeout(phase) => ("timeout", Some(name(*phase))),
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Slot => "slot",
        Phase::Connect => "connect",
        Phase::Write => "write",
        Phase::FirstByte => "first_byte",
        Phase::Read => "read",
        Phase::Total => "total",
    }
}
