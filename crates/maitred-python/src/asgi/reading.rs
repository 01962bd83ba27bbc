//! The messages of `receive`: parts of a body in a file, and of a body that is still arriving.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use maitred_http::Status;
use maitred_runtime::{Body, Observe};
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

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
