//! The arguments of a call.

use std::time::Duration;

use maitred_client::Times;
use maitred_client::exchange::Timeouts;
use maitred_http::FieldSet;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::values;

/// Of `(slot, connect, tls, first_byte, progress, total)`, seconds or None. A seventh is for writing, in place of `progress`.
pub(super) fn times(timeouts: &Bound<'_, PyTuple>) -> PyResult<Times> {
    type Six = (Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>);
    let (six, write) = match timeouts.len() {
        7 => (timeouts.get_slice(0, 6), Some(timeouts.get_item(6)?.extract::<Option<f64>>()?)),
        _ => (timeouts.clone(), None),
    };
    let (slot, connect, tls, first_byte, progress, total): Six = six.extract()?;
    let limit = |name, seconds: Option<f64>| seconds.map(|seconds| duration(name, seconds)).transpose();
    let exchange = Timeouts {
        first_byte: limit("first_byte", first_byte)?,
        progress: limit("progress", progress)?,
        // Without a limit, not even `progress` is one.
        write: write.map(|write| duration("write", write.unwrap_or(f64::INFINITY))).transpose()?,
        total: limit("total", total)?,
        ..Timeouts::default()
    };
    Ok(Times {
        slot: limit("slot", slot)?,
        connect: limit("connect", connect)?,
        tls: limit("tls", tls)?,
        exchange,
    })
}

pub(super) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    if seconds == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} is {seconds}, and has to be seconds from 0 on")))
}

pub(super) fn fields(headers: &Bound<'_, PyAny>) -> PyResult<FieldSet> {
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

/// Pairs of bytes in their order.
pub(super) fn pairs<'py>(py: Python<'py>, fields: &FieldSet) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, fields.iter().map(|(name, value)| (PyBytes::new(py, name), PyBytes::new(py, value))))
}
