//! A response, whose body is read by the thread or the task that asks.

use std::sync::Arc;
use std::time::Instant;

use maitred_client::Report;
use maitred_client::blocking::with_waker;
use maitred_client::call::Step;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::awaiting::Awaiting;
use super::driven::{Driven, Head};
use super::failure::Failure;
use super::lent::{Lent, Stop};
use super::loop_call::{Done, LoopCall, Wants};
use super::origin::HttpOrigin;
use super::request::pairs;
use super::thread;

/// A body of known length up to here is read into its Python object directly. Beyond, memory grows with the bytes that come.
const DIRECT: u64 = 4 * 1024 * 1024;

/// A response. Its connection is free again behind the last byte of the body, and closed if the response is dropped before.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpResponse {
    head: Head,
    origin: Py<HttpOrigin>,
    rest: Rest,
}

enum Rest {
    OfThread(Box<Lent>),
    OfLoop(Arc<LoopCall>),
}

impl HttpResponse {
    pub(super) fn of_thread(mut driven: Box<Driven>, origin: Py<HttpOrigin>) -> Self {
        Self { head: driven.take_head(), origin, rest: Rest::OfThread(Box::new(Lent::new(driven))) }
    }

    pub(super) fn of_loop(head: Head, call: Arc<LoopCall>, origin: Py<HttpOrigin>) -> Self {
        Self { head, origin, rest: Rest::OfLoop(call) }
    }

    fn origin(&self) -> &str {
        &self.origin.get().text
    }
}

#[pymethods]
impl HttpResponse {
    #[getter]
    fn status(&self) -> u16 {
        self.head.status
    }

    #[getter]
    fn version(&self) -> (u8, u8) {
        self.head.version
    }

    /// The reason phrase.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.head.reason)
    }

    /// The fields in their order and spelling.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        pairs(py, &self.head.fields)
    }

    /// The first value of a field; no other field is made into an object.
    #[pyo3(signature = (name, /))]
    fn first<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
        self.head.fields.first(name).map(|value| PyBytes::new(py, value))
    }

    /// The trailers, behind the last byte of the body.
    #[getter]
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let trailers = match &self.rest {
            Rest::OfThread(lent) => lent.trailers(),
            Rest::OfLoop(call) => call.trailers(py),
        };
        trailers.map_or_else(|| Ok(PyList::empty(py)), |trailers| pairs(py, &trailers))
    }

    /// The account of the call so far: times in seconds, bytes, and whether the connection was reused. While a thread reads it is that
    /// of the read's begin.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.rest {
            Rest::OfThread(lent) => account(py, &lent.report()),
            Rest::OfLoop(call) => account(py, &call.report(py)),
        }
    }

    /// Reads at most `most` bytes of the body, the rest if it is negative; none at its end. One thread reads at a time.
    #[pyo3(signature = (most = -1, /), text_signature = "($self, most=-1, /)")]
    fn read<'py>(&self, py: Python<'py>, most: isize) -> PyResult<Bound<'py, PyBytes>> {
        let lent = match &self.rest {
            Rest::OfThread(lent) => lent,
            Rest::OfLoop(_) => {
                return Err(PyRuntimeError::new_err(
                    "the response of an awaitable call is read by read_async",
                ));
            }
        };
        let mut driven = lent.take().map_err(|failure| failure.raise(py, self.origin()))?;
        let read = match usize::try_from(most) {
            Ok(most) => some(py, &mut driven, lent.stop(), most, self.origin()),
            Err(_) => all(py, &mut driven, lent.stop(), self.origin()),
        };
        lent.put_back(driven);
        read
    }

    /// The same for a response that was awaited.
    #[pyo3(signature = (most = -1, /), text_signature = "($self, most=-1, /)")]
    fn read_async(slf: Bound<'_, Self>, most: isize) -> PyResult<Awaiting> {
        match &slf.get().rest {
            Rest::OfLoop(call) => {
                let wants = usize::try_from(most).map_or(Wants::All(Vec::new()), Wants::Some);
                // The response lives as long as it is read.
                let response = slf.clone().unbind();
                let finish = move |py: Python<'_>, done| match done {
                    Ok(Done::Bytes(bytes)) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
                    Ok(Done::Head(_)) => Err(PyRuntimeError::new_err("a second head")),
                    Err(failure) => Err(Failure::raise(failure, py, response.get().origin())),
                };
                Ok(Awaiting::new(Arc::clone(call), wants, Box::new(finish)))
            }
            Rest::OfThread(_) => {
                Err(PyRuntimeError::new_err("the response of a blocking call is read by read"))
            }
        }
    }

    /// Ends the call, and the read of another thread with it. A body that is not read to its end closes the connection.
    fn close(&self, py: Python<'_>) {
        match &self.rest {
            Rest::OfThread(lent) => lent.close(),
            Rest::OfLoop(call) => call.close(py),
        }
    }
}

impl Drop for HttpResponse {
    fn drop(&mut self) {
        if let Rest::OfLoop(call) = &self.rest {
            Python::attach(|py| call.close(py));
        }
    }
}

fn some<'py>(
    py: Python<'py>,
    driven: &mut Driven,
    stop: &Stop,
    most: usize,
    origin: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    if most == 0 || driven.has_early() {
        return Ok(PyBytes::new(py, driven.early(most)));
    }
    let step = if driven.call.is_ended() {
        // Nothing is waited for.
        with_waker(|waker| driven.step(Instant::now(), waker)).map_err(Into::into)
    } else {
        py.detach(|| thread::next(driven, stop))
    };
    match step.map_err(|failure: Failure| failure.raise(py, origin))? {
        Step::Data(length) => {
            let data = driven.data(most);
            let bytes = PyBytes::new(py, data);
            driven.consume(length.min(most));
            Ok(bytes)
        }
        _ => Ok(PyBytes::new(py, b"")),
    }
}

fn all<'py>(
    py: Python<'py>,
    driven: &mut Driven,
    stop: &Stop,
    origin: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    if driven.call.is_ended() {
        let step = with_waker(|waker| driven.step(Instant::now(), waker));
        step.map_err(|error| Failure::from(error).raise(py, origin))?;
        return Ok(PyBytes::new(py, driven.early(usize::MAX)));
    }
    match driven.left() {
        Some(left) if left <= DIRECT => PyBytes::new_with(py, left as usize, |bytes| {
            let early = driven.early(usize::MAX);
            let mut at = early.len();
            bytes[..at].copy_from_slice(early);
            let read = py.detach(|| {
                thread::read_all(driven, stop, |part| {
                    bytes[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                })
            });
            read.map_err(|failure| failure.raise(py, origin))
        }),
        _ => {
            let mut bytes = driven.early(usize::MAX).to_vec();
            py.detach(|| thread::read_all(driven, stop, |part| bytes.extend_from_slice(part)))
                .map_err(|failure| failure.raise(py, origin))?;
            Ok(PyBytes::new(py, &bytes))
        }
    }
}

fn account<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let account = PyDict::new(py);
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64());
    for (name, time) in [
        ("slot", report.slot),
        ("resolve", report.resolve),
        ("connect", report.connect),
        ("tls", report.tls),
        ("first_byte", report.first_byte),
        ("total", Some(report.total)),
    ] {
        account.set_item(name, seconds(time))?;
    }
    account.set_item("reused", report.reused)?;
    account.set_item("retried", report.retried)?;
    account.set_item("sent", report.sent)?;
    account.set_item("received", report.received)?;
    Ok(account)
}
