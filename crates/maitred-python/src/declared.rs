//! The head of a response as an application declares it, checked.

use maitred_http::ResponseHead;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A head with the length that the application declared for its body. The length is kept apart
/// because framing is the protocol's: it writes `Content-Length` itself.
pub(crate) struct Declared {
    pub(crate) head: ResponseHead,
    pub(crate) length: Option<u64>,
}

impl Declared {
    /// Without fields.
    pub(crate) fn new(head: ResponseHead) -> Self {
        Self { head, length: None }
    }

    /// Appends a field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> PyResult<()> {
        check_field(name, value)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let declared = parse_length(value)?;
            if self.length.is_some_and(|earlier| earlier != declared) {
                return Err(PyValueError::new_err("two different Content-Length headers"));
            }
            self.length = Some(declared);
        } else if !self.head.fields.push(name, value) {
            return Err(PyValueError::new_err("the headers are longer than 4 GiB"));
        }
        Ok(())
    }
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
