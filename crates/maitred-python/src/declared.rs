//! The head of a response as an application declares it, checked.

use std::cell::Cell;

use maitred_http::fields::InvalidField;
use maitred_http::{FieldSet, ResponseHead, Status};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A head with the length that the application declared for its body. The length is kept apart
/// because framing is the protocol's: it writes `Content-Length` itself.
pub(crate) struct Declared {
    pub(crate) head: ResponseHead,
    pub(crate) length: Option<u64>,
}

/// A set whose memory is kept for the next response of the thread holds at most this much.
const MAX_KEPT: usize = 16 * 1024;

thread_local! {
    static SPARE: Cell<FieldSet> = const { Cell::new(FieldSet::new()) };
}

impl Declared {
    /// Without fields. `reason` is one other than the standard one.
    pub(crate) fn new(status: Status, reason: Option<Box<[u8]>>) -> Self {
        Self { head: ResponseHead { status, reason, fields: SPARE.take() }, length: None }
    }

    /// Keeps the memory for the next response.
    pub(crate) fn recycle(mut head: ResponseHead) {
        if head.fields.memory() <= MAX_KEPT {
            head.fields.clear();
            SPARE.set(head.fields);
        }
    }

    /// Appends a field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> PyResult<()> {
        if name.len() == CONTENT_LENGTH.len() && name.eq_ignore_ascii_case(CONTENT_LENGTH) {
            let declared = parse_length(value)?;
            if self.length.is_some_and(|earlier| earlier != declared) {
                return Err(PyValueError::new_err("two different Content-Length headers"));
            }
            self.length = Some(declared);
            return Ok(());
        }
        self.head.fields.push_checked(name, value).map_err(|invalid| {
            let name = String::from_utf8_lossy(name);
            PyValueError::new_err(match invalid {
                InvalidField::Name => format!("invalid header name {name:?}"),
                InvalidField::Value => {
                    format!(
                        "the value of header {name:?} has a CR, LF, NUL or another control character in it"
                    )
                }
                InvalidField::Size => "the headers are longer than 4 GiB".to_owned(),
            })
        })
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length";

/// RFC 9110 §8.6: digits only.
fn parse_length(value: &[u8]) -> PyResult<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        PyValueError::new_err(format!("invalid Content-Length {:?}", String::from_utf8_lossy(value)))
    })
}
