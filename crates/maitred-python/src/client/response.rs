//! A response, whose body is read by the thread that asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use maitred_client::blocking::{CallError, Response};
use maitred_http::{FieldSet, Version};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList};

use super::body::Source;
use super::failure;
use super::origin::HttpOrigin;

/// A response. Its connection is free again behind the last byte of the body, and closed if the response is dropped before.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpResponse {
    #[pyo3(get)]
    status: u16,
    reason: Box<[u8]>,
    #[pyo3(get)]
    version: (u8, u8),
    fields: FieldSet,
    origin: Py<HttpOrigin>,
    state: Mutex<State>,
}

enum State {
    Open(Box<Open>),
    Ended { trailers: Option<Box<FieldSet>> },
    Closed,
}

/// The order is that of the drop: the response reads the source.
struct Open {
    response: Response<'static>,
    _source: Source,
}

impl HttpResponse {
    pub(super) fn new(response: Response<'static>, source: Source, origin: Py<HttpOrigin>) -> Self {
        let head = response.head();
        let reason = head.reason.clone().unwrap_or_else(|| head.status.reason().as_bytes().into());
        let version = if response.version() == Version::Http10 { (1, 0) } else { (1, 1) };
        let (status, fields) = (head.status.code(), head.fields.clone());
        let state = Mutex::new(State::Open(Box::new(Open { response, _source: source })));
        Self { status, reason, version, fields, origin, state }
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, State> {
        // Waits without the interpreter: another thread may be reading.
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl HttpResponse {
    /// The reason phrase.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.reason)
    }

    /// The fields in their order and spelling.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        pairs(py, &self.fields)
    }

    /// Reads at most `most` bytes of the body, the rest if it is negative; none at its end.
    #[pyo3(signature = (most = -1, /), text_signature = "($self, most=-1, /)")]
    fn read<'py>(&self, py: Python<'py>, most: isize) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.lock(py);
        let open = match &mut *state {
            State::Open(open) => open,
            State::Ended { .. } => return Ok(PyBytes::new(py, b"")),
            State::Closed => return Err(failure::closed(py, "the response", &self.origin.get().text)),
        };
        let response = &mut open.response;
        let (result, is_end) = py.detach(|| match usize::try_from(most) {
            Ok(most) => {
                let result = read(response, most);
                let is_end = most > 0 && result.as_ref().is_ok_and(Vec::is_empty);
                (result, is_end)
            }
            Err(_) => (response.read_all(usize::MAX), true),
        });
        let bytes = result.map_err(|error| failure::failure(py, error, &self.origin.get().text))?;
        let bytes = PyBytes::new(py, &bytes);
        if is_end {
            let trailers = response.trailers().cloned().map(Box::new);
            *state = State::Ended { trailers };
        }
        Ok(bytes)
    }

    /// The trailers, behind the last byte of the body.
    #[getter]
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &*self.lock(py) {
            State::Ended { trailers: Some(trailers) } => pairs(py, trailers),
            _ => Ok(PyList::empty(py)),
        }
    }

    /// Ends the call. A body that is not read to its end closes the connection.
    fn close(&self, py: Python<'_>) {
        let mut state = self.lock(py);
        if let State::Open(_) = &*state {
            let open = std::mem::replace(&mut *state, State::Closed);
            drop(state);
            drop(open);
        }
    }
}

fn read(response: &mut Response<'_>, most: usize) -> Result<Vec<u8>, CallError> {
    let mut bytes = vec![0; most.min(64 * 1024)];
    let length = response.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn pairs<'py>(py: Python<'py>, fields: &FieldSet) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, fields.iter().map(|(name, value)| (PyBytes::new(py, name), PyBytes::new(py, value))))
}
