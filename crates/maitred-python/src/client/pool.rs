//! A pool of connections, and calls by it.

use std::sync::Arc;
use std::time::Instant;

use maitred_client::{Client, Settings, pool};
use maitred_http::Method;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::awaiting::Awaiting;
use super::driven::{Asked, Driven};
use super::event_loop::{Core, expect_forks};
use super::failure::Failure;
use super::loop_call::{Done, LoopCall, Wants};
use super::origin::HttpOrigin;
use super::request::{duration, fields, times};
use super::response::HttpResponse;
use super::source::Source;
use super::thread;
use crate::outgoing;

/// Limits and idle connections. Threads and event loops may share it.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpPool {
    client: Client,
}

#[pymethods]
impl HttpPool {
    #[new]
    #[pyo3(signature = (*, per_host = 100, total = 1000, idle = 4.0, age = 300.0))]
    fn new(py: Python<'_>, per_host: usize, total: usize, idle: f64, age: f64) -> PyResult<Self> {
        if per_host == 0 || total == 0 {
            return Err(PyValueError::new_err("per_host and total have to be at least 1"));
        }
        expect_forks();
        outgoing::count_calls(py)?;
        let pool = pool::Settings {
            per_key: per_host,
            total,
            idle: duration("idle", idle)?,
            age: duration("age", age)?,
            ..pool::Settings::default()
        };
        let observer = Some(outgoing::observer());
        Ok(Self { client: Client::new(Settings { pool, observer, ..Settings::default() }) })
    }

    /// Sends a request and waits for the head of its response.
    #[pyo3(signature = (origin, method, target, headers, body, timeouts, *, repeatable = None, propagate = false))]
    #[expect(clippy::too_many_arguments, reason = "a request in Python's words")]
    fn send(
        &self,
        py: Python<'_>,
        origin: Py<HttpOrigin>,
        method: &str,
        target: &[u8],
        headers: &Bound<'_, PyAny>,
        body: Option<&Bound<'_, PyAny>>,
        timeouts: &Bound<'_, PyTuple>,
        repeatable: Option<bool>,
        propagate: bool,
    ) -> PyResult<HttpResponse> {
        let (times, mut fields, source) = (times(timeouts)?, fields(headers)?, Source::of_thread(body)?);
        let method = Method::from_token(method);
        let begun = outgoing::begin(py, &method, target, propagate.then_some(&mut fields));
        let asked = Asked { method, target, fields, source, times, repeatable };
        let to = origin.get();
        outgoing::note(begun);
        let sent = py.detach(|| {
            let mut driven = Box::new(Driven::begin(&self.client, to, asked, Instant::now())?);
            thread::until_head(&mut driven)?;
            Ok(driven)
        });
        match sent {
            Ok(driven) => Ok(HttpResponse::of_thread(driven, origin)),
            Err(failure) => Err(Failure::raise(failure, py, &to.text)),
        }
    }

    /// The same, awaitable.
    #[pyo3(signature = (origin, method, target, headers, body, timeouts, *, repeatable = None, propagate = false))]
    #[expect(clippy::too_many_arguments, reason = "a request in Python's words")]
    fn send_async(
        &self,
        py: Python<'_>,
        origin: Py<HttpOrigin>,
        method: &str,
        target: &[u8],
        headers: &Bound<'_, PyAny>,
        body: Option<&Bound<'_, PyAny>>,
        timeouts: &Bound<'_, PyTuple>,
        repeatable: Option<bool>,
        propagate: bool,
    ) -> PyResult<Awaiting> {
        let (times, mut fields, source) = (times(timeouts)?, fields(headers)?, Source::of_loop(body)?);
        let core = Core::of_running(py)?;
        let is_fed = source.is_fed();
        let method = Method::from_token(method);
        let begun = outgoing::begin(py, &method, target, propagate.then_some(&mut fields));
        let asked = Asked { method, target, fields, source, times, repeatable };
        let to = origin.get();
        outgoing::note(begun);
        let driven = Driven::begin(&self.client, to, asked, Instant::now())
            .map_err(|error| Failure::from(error).raise(py, &to.text))?;
        let call = LoopCall::new(py, core, Box::new(driven));
        if let Some(parts) = body.filter(|_| is_fed) {
            call.feed(py, parts)?;
        }
        let made = Arc::clone(&call);
        let finish = move |py: Python<'_>, done| match done {
            Ok(Done::Head(head)) => {
                let response = HttpResponse::of_loop(head, made, origin);
                Ok(Py::new(py, response)?.into_any())
            }
            Ok(Done::Bytes(_)) => Err(PyValueError::new_err("the response has no head")),
            Err(failure) => Err(Failure::raise(failure, py, &origin.get().text)),
        };
        Ok(Awaiting::new(call, Wants::Head, Box::new(finish)))
    }

    /// The number of idle connections.
    #[getter]
    fn idle(&self) -> usize {
        self.client.idle()
    }

    /// The number of connections that calls hold.
    #[getter]
    fn used(&self) -> usize {
        self.client.holders().len()
    }

    /// Closes idle connections. Calls that run end as they would.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.client.close_idle());
    }
}
