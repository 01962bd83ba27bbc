//! What an application passes to `start_response`, checked and turned into a response head.

use maitred_http::{ResponseHead, Status};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::text::latin1_of;
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
    for item in headers {
        let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let Some(pair) = pair else {
            let text = format!("a header must be a tuple (name, value), not {}", type_name(&item));
            return Err(PyTypeError::new_err(text));
        };
        let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
        let name = bytes_of(&name, "a header's name")?;
        let value = bytes_of(&value, "a header's value")?;
        check_field(name, value)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let declared = parse_length(value)?;
            if length.is_some_and(|earlier| earlier != declared) {
                return Err(PyValueError::new_err("two different Content-Length headers"));
            }
            length = Some(declared);
        } else if !head.fields.push(name, value) {
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
    let mut head = ResponseHead::new(status);
    if !reason.is_empty() && reason != status.reason().as_bytes() {
        if reason.iter().any(u8::is_ascii_control) {
            return Err(invalid());
        }
        head.reason = Some(reason.into());
    }
    Ok(head)
}

/// RFC 9110 §5.1 and §5.5: a name is a token, and three characters in a value could split or cut a
/// field on the wire.
fn check_field(name: &[u8], value: &[u8]) -> PyResult<()> {
    if name.is_empty() || !name.iter().fold(true, |all, byte| all & IS_TOKEN[usize::from(*byte)]) {
        let text = format!("invalid header name {:?}", String::from_utf8_lossy(name));
        return Err(PyValueError::new_err(text));
    }
    let is_bad = |byte: u8| (byte == b'\r') | (byte == b'\n') | (byte == 0);
    // Without a way out in the middle the compiler takes many bytes at a time.
    if value.iter().fold(false, |any, byte| any | is_bad(*byte)) {
        let name = String::from_utf8_lossy(name);
        return Err(PyValueError::new_err(format!("the value of header {name:?} has a CR, LF or NUL in it")));
    }
    Ok(())
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

/// RFC 9110 §8.6: digits only.
fn parse_length(value: &[u8]) -> PyResult<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        PyValueError::new_err(format!("invalid Content-Length {:?}", String::from_utf8_lossy(value)))
    })
}

/// RFC 9110 §5.6.2.
const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};
