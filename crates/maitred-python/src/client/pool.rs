//! A pool of connections, and calls by it.

use std::time::Duration;

use maitred_client::blocking::{Client, Request, Settings};
use maitred_client::exchange::Timeouts;
use maitred_client::pool;
use maitred_http::{FieldSet, Method};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::body::Source;
use super::failure;
use super::origin::HttpOrigin;
use super::response::HttpResponse;
use crate::values;

/// Limits and idle connections. Threads may share it.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpPool {
    client: Client,
}

#[pymethods]
impl HttpPool {
    #[new]
    #[pyo3(signature = (*, per_host = 100, total = 1000, idle = 4.0, age = 300.0))]
    fn new(per_host: usize, total: usize, idle: f64, age: f64) -> PyResult<Self> {
        if per_host == 0 || total == 0 {
            return Err(PyValueError::new_err("per_host and total have to be at least 1"));
        }
        let pool = pool::Settings {
            per_key: per_host,
            total,
            idle: duration("idle", idle)?,
            age: duration("age", age)?,
            ..pool::Settings::default()
        };
        Ok(Self { client: Client::new(Settings { pool, ..Settings::default() }) })
    }

    /// Sends a request and waits for the head of its response.
    #[pyo3(signature = (origin, method, target, headers, body, timeouts, *, repeatable = None))]
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
    ) -> PyResult<HttpResponse> {
        let limits = Limits::of(timeouts)?;
        let fields = fields(headers)?;
        let source = Source::of(body)?;
        let to = origin.get();
        let target = str::from_utf8(target).map_err(|_| {
            PyValueError::new_err("the target has bytes outside of ASCII: percent-encode them")
        })?;
        let request = Request {
            method: Method::from_token(method),
            // SAFETY: as above, and the head of the request is written before `send` returns.
            target: unsafe { outlive(target) },
            // SAFETY: as above.
            authority: unsafe { outlive(&to.authority) },
            fields,
            // SAFETY: the response, which alone can read it later, owns the source.
            body: unsafe { source.body() },
            repeatable,
        };
        let client = self.client.within(limits.slot, limits.connect, limits.timeouts);
        let sent = py.detach(|| client.send(&to.key, request));
        match sent {
            Ok(response) => Ok(HttpResponse::new(response, source, origin.clone_ref(py))),
            Err(error) => Err(failure::failure(py, error, &to.text)),
        }
    }

    /// The number of idle connections.
    #[getter]
    fn idle(&self) -> usize {
        self.client.idle()
    }

    /// Closes idle connections. Calls that run end as they would.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.client.clear());
    }
}

/// The time limits of one call.
struct Limits {
    slot: Option<Duration>,
    connect: Option<Duration>,
    timeouts: Timeouts,
}

impl Limits {
    /// Of (slot, connect, tls, first_byte, progress, total).
    fn of(timeouts: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let [slot, connect, tls, first_byte, progress, total]: [Option<f64>; 6] =
            timeouts.extract::<Vec<_>>()?.try_into().map_err(|_| {
                PyValueError::new_err("timeouts are (slot, connect, tls, first_byte, progress, total)")
            })?;
        let limit = |name, seconds: Option<f64>| seconds.map(|seconds| duration(name, seconds)).transpose();
        limit("tls", tls)?;
        let timeouts = Timeouts {
            first_byte: limit("first_byte", first_byte)?,
            progress: limit("progress", progress)?,
            total: limit("total", total)?,
            ..Timeouts::default()
        };
        Ok(Self { slot: limit("slot", slot)?, connect: limit("connect", connect)?, timeouts })
    }
}

/// # Safety
/// The result is not used when `text` is gone.
unsafe fn outlive(text: &str) -> &'static str {
    // SAFETY: as the caller says.
    unsafe { &*std::ptr::from_ref(text) }
}

fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    if seconds == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} is {seconds}, and has to be seconds from 0 on")))
}

fn fields(headers: &Bound<'_, PyAny>) -> PyResult<FieldSet> {
    let mut fields = FieldSet::new();
    let mut push = |pair: Bound<'_, PyAny>| {
        let (name, value): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = pair.extract()?;
        values::push(&mut fields, name.as_bytes(), value.as_bytes())
    };
    match headers.cast::<PyList>() {
        Ok(list) => list.iter().try_for_each(&mut push)?,
        Err(_) => headers.try_iter()?.try_for_each(|pair| push(pair?))?,
    }
    Ok(fields)
}
