//! What an application passes to `start_response`, checked and turned into a response head.

use maitred_http::Status;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::declared::Declared;
use crate::report::{found, type_name};
use crate::text::latin1_of;

/// Checks `status` and `headers` as PEP 3333 demands of them.
pub(super) fn parse(status: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> PyResult<Declared> {
    let (status, reason) = parse_status(status)?;
    let mut declared = Declared::new(status, reason);
    let Ok(headers) = headers.cast::<PyList>() else {
        let given = type_name(headers);
        return Err(PyTypeError::new_err(format!("the headers must be a list of tuples, not {given}")));
    };
    for item in headers {
        push(&mut declared, &item)?;
    }
    Ok(declared)
}

/// The same for `wsgi.early_hints`: 103 with these fields (RFC 8297).
pub(super) fn parse_hints(headers: &Bound<'_, PyAny>) -> PyResult<Declared> {
    let mut declared = Declared::new(Status::EARLY_HINTS, None);
    for item in headers.try_iter()? {
        push(&mut declared, &item?)?;
    }
    Ok(declared)
}

fn push(declared: &mut Declared, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        let text = format!("a header must be a tuple (name, value), not {}", found(item));
        return Err(PyTypeError::new_err(text));
    };
    let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
    let name = bytes_of(&name, "a header's name")?;
    let value = bytes_of(&value, "a header's value")?;
    declared.push(name, value)
}

/// `"404 Not Found"`: three digits, a space and the reason. The reason may be missing.
fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<(Status, Option<Box<[u8]>>)> {
    let Ok(text) = status.cast::<PyString>() else {
        let given = type_name(status);
        return Err(PyTypeError::new_err(format!("the status must be a str like '200 OK', not {given}")));
    };
    let invalid = || {
        PyValueError::new_err(format!("the status must be like '200 OK', not {:?}", text.to_string_lossy()))
    };
    let bytes = latin1_of(text)?.ok_or_else(invalid)?;
    let (code, reason) = match bytes {
        [a, b, c] => ([*a, *b, *c], &b""[..]),
        [a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
        _ => return Err(invalid()),
    };
    if !code.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let number = code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    let status = Status::from_code(number).ok_or_else(invalid)?;
    if status.code() < 200 {
        let text =
            format!("{:?} is an interim status; start_response takes the final one", text.to_string_lossy());
        return Err(PyValueError::new_err(text));
    }
    if reason.is_empty() || reason == status.reason().as_bytes() {
        return Ok((status, None));
    }
    if reason.iter().any(u8::is_ascii_control) {
        return Err(invalid());
    }
    Ok((status, Some(reason.into())))
}

/// The bytes of a "bytes-as-unicode" string, the only text PEP 3333 allows in a head.
fn bytes_of<'a>(text: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a [u8]> {
    let Ok(text) = text.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(text))));
    };
    latin1_of(text)?.ok_or_else(|| {
        let text = text.to_string_lossy();
        PyValueError::new_err(format!("{what} has a character outside Latin-1: {text:?}"))
    })
}
