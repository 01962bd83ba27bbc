//! `http.response.start`, checked and turned into a response head; other fields of responses likewise.

use maitred_http::{FieldSet, Status};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};

use super::message::Message;
use crate::report::{found, type_name};
use crate::values::{self, Declared};

pub(super) fn parse(message: &Message<'_, '_>) -> PyResult<(Declared, bool)> {
    let py = message.py();
    let Some(status) = message.get(intern!(py, "status"))? else {
        return Err(PyValueError::new_err("http.response.start has no 'status'; it is an int such as 200"));
    };
    let mut declared = Declared::new(parse_status(&status)?, None);
    match message.get(intern!(py, "headers"))? {
        Some(headers) if !headers.is_none() => push_all(&headers, |name, value| declared.push(name, value))?,
        _ => {}
    }
    Ok((declared, is_true(message, intern!(py, "trailers"))?))
}

pub(super) fn parse_trailers(message: &Message<'_, '_>) -> PyResult<(FieldSet, bool)> {
    let py = message.py();
    let mut fields = FieldSet::new();
    match message.get(intern!(py, "headers"))? {
        Some(headers) if !headers.is_none() => {
            push_all(&headers, |name, value| values::push(&mut fields, name, value))?;
        }
        _ => {}
    }
    Ok((fields, is_true(message, intern!(py, "more_trailers"))?))
}

pub(super) fn is_true<'py>(message: &Message<'_, 'py>, key: &Bound<'py, PyString>) -> PyResult<bool> {
    message.get(key)?.map_or(Ok(false), |value| value.is_truthy())
}

/// The interim response of `http.response.early_hint`: each of its `links` is the value of a field `Link`.
pub(super) fn parse_hint(message: &Message<'_, '_>) -> PyResult<Declared> {
    let mut declared = Declared::new(Status::EARLY_HINTS, None);
    let Some(links) = message.get(intern!(message.py(), "links"))? else {
        return Err(PyValueError::new_err("http.response.early_hint has no 'links'; it is a list of bytes"));
    };
    let wrong = || {
        PyTypeError::new_err(format!(
            "the links of http.response.early_hint must be an iterable of bytes, not {}",
            found(&links)
        ))
    };
    if links.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    for link in links.try_iter().map_err(|_| wrong())? {
        let link = link?;
        let Ok(value) = link.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err(format!("a link must be bytes, not {}", found(&link))));
        };
        declared.push(b"Link", value.as_bytes())?;
    }
    Ok(declared)
}

fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<Status> {
    let number = status.extract::<i64>().map_err(|_| {
        if status.is_instance_of::<PyInt>() {
            // Python itself refuses to write very long ones.
            return PyValueError::new_err("the status must be from 200 to 999, not an int beyond 64 bits");
        }
        PyTypeError::new_err(format!("the status must be an int such as 200, not {}", type_name(status)))
    })?;
    match u16::try_from(number).ok().filter(|code| *code >= 200).and_then(Status::from_code) {
        Some(status) => Ok(status),
        None if (100..200).contains(&number) => Err(PyValueError::new_err(format!(
            "{number} is an interim status; http.response.start takes the final one"
        ))),
        None => Err(PyValueError::new_err(format!("the status must be from 200 to 999, not {number}"))),
    }
}

/// Takes any iterable of pairs; nearly all applications send lists of tuples or of lists.
pub(super) fn push_all(
    headers: &Bound<'_, PyAny>,
    mut append: impl FnMut(&[u8], &[u8]) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(list) = headers.cast::<PyList>() {
        for item in list {
            push(&item, &mut append)?;
        }
        return Ok(());
    }
    let items = headers.try_iter().map_err(|_| {
        let given = found(headers);
        PyTypeError::new_err(format!("the headers must be an iterable of pairs of bytes, not {given}"))
    })?;
    for item in items {
        push(&item?, &mut append)?;
    }
    Ok(())
}

fn push(item: &Bound<'_, PyAny>, append: &mut impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
    if let Ok(pair) = item.cast::<PyTuple>()
        && pair.len() == 2
    {
        let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        return append(bytes_of(&name, "name")?, bytes_of(&value, "value")?);
    }
    let wrong = || {
        let given = found(item);
        PyTypeError::new_err(format!("a header must be a pair (name, value) of bytes, not {given}"))
    };
    let mut parts = item.try_iter().map_err(|_| wrong())?;
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(value), None) => append(bytes_of(&name?, "name")?, bytes_of(&value?, "value")?),
        _ => Err(wrong()),
    }
}

fn bytes_of<'a>(object: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a [u8]> {
    object.cast::<PyBytes>().map(|bytes| bytes.as_bytes()).map_err(|_| {
        let given = type_name(object);
        PyTypeError::new_err(format!("a header's {what} must be bytes, not {given}; encode it as Latin-1"))
    })
}
