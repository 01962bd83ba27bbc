//! What an application passes to `start_response`, checked and turned into a response head.

use maitred_http::{ResponseHead, Status};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::report::type_name;

/// A head with the length that the application declared for its body. The length is kept apart
/// because framing is the protocol's: it writes `Content-Length` itself.
pub(super) struct Declared {
    pub(super) head: ResponseHead,
    pub(super) length: Option<u64>,
}

/// Checks `status` and `headers` as PEP 3333 demands of them.
pub(super) fn parse(status: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> PyResult<Declared> {
    let mut head = parse_status(status)?;
    let Ok(headers) = headers.cast::<PyList>() else {
        let given = type_name(headers);
        return Err(PyTypeError::new_err(format!("the headers must be a list of tuples, not {given}")));
    };
    let mut length = None;
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for item in headers {
        parse_field(&item, &mut name, &mut value)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let declared = parse_length(&value)?;
            if length.is_some_and(|earlier| earlier != declared) {
                return Err(PyValueError::new_err("two different Content-Length headers"));
            }
            length = Some(declared);
        } else if !head.fields.push(&name, &value) {
            return Err(PyValueError::new_err("the headers are longer than 4 GiB"));
        }
    }
    Ok(Declared { head, length })
}

/// `"404 Not Found"`: three digits, a space and the reason. The reason may be missing.
fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<ResponseHead> {
    let Ok(text) = status.cast::<PyString>() else {
        let given = type_name(status);
        return Err(PyTypeError::new_err(format!("the status must be a str like '200 OK', not {given}")));
    };
    let text = text.to_string_lossy();
    let invalid = || PyValueError::new_err(format!("the status must be like '200 OK', not {text:?}"));
    let (code, reason) = match text.split_once(' ') {
        Some((code, reason)) => (code, reason),
        None => (&*text, ""),
    };
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    if reason.chars().any(|character| character.is_control() || character > '\u{ff}') {
        return Err(invalid());
    }
    let status = code.parse().ok().and_then(Status::from_code).ok_or_else(invalid)?;
    if status.code() < 200 {
        let text = format!("{text:?} is an interim status; start_response takes the final one");
        return Err(PyValueError::new_err(text));
    }
    let mut head = ResponseHead::new(status);
    if !reason.is_empty() && reason != status.reason() {
        head.reason = Some(reason.into());
    }
    Ok(head)
}

fn parse_field(item: &Bound<'_, PyAny>, name: &mut Vec<u8>, value: &mut Vec<u8>) -> PyResult<()> {
    let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        let text = format!("a header must be a tuple (name, value), not {}", type_name(item));
        return Err(PyTypeError::new_err(text));
    };
    latin1(&pair.get_item(0)?, "a header's name", name)?;
    latin1(&pair.get_item(1)?, "a header's value", value)?;
    if name.is_empty() || !name.iter().all(|byte| is_token_byte(*byte)) {
        let text = format!("invalid header name {:?}", String::from_utf8_lossy(name));
        return Err(PyValueError::new_err(text));
    }
    // RFC 9110 §5.5: these three can split or cut a field on the wire.
    if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        let name = String::from_utf8_lossy(name);
        return Err(PyValueError::new_err(format!("the value of header {name:?} has a CR, LF or NUL in it")));
    }
    Ok(())
}

/// The bytes of a "bytes-as-unicode" string, the only text PEP 3333 allows in a head.
fn latin1(text: &Bound<'_, PyAny>, what: &str, out: &mut Vec<u8>) -> PyResult<()> {
    let Ok(text) = text.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(text))));
    };
    out.clear();
    let text = text.to_string_lossy();
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    for character in text.chars() {
        let Ok(byte) = u8::try_from(character) else {
            let text = format!("{what} has a character outside Latin-1: {text:?}");
            return Err(PyValueError::new_err(text));
        };
        out.push(byte);
    }
    Ok(())
}

/// RFC 9110 §8.6: digits only.
fn parse_length(value: &[u8]) -> PyResult<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        PyValueError::new_err(format!("invalid Content-Length {:?}", String::from_utf8_lossy(value)))
    })
}

/// RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
