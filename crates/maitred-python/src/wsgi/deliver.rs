//! From the application's iterable to sent blocks.
//!
//! A list or tuple is known as a whole, so its length is declared and it leaves in one write; a file is
//! given to the engine. Every other iterable is sent block by block, each at once, as PEP 3333 demands.

use maitred_runtime::SendError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyTuple};

use super::file::FileWrapper;
use super::response::{LARGE, Response, Unsent};
use crate::block;
use crate::report::type_name;

/// Blocks of a list are joined up to this size, so that they leave in one write; above it the copy
/// costs more than the writes. As large as a socket's default send buffer takes at once on Linux.
const MAX_JOINED: u64 = 64 * 1024;

/// Why a response did not come to its regular end.
pub(super) enum Trouble {
    /// The application raised an exception.
    Raised(PyErr),
    /// The application did something PEP 3333 forbids.
    Misuse(String),
    /// The body is longer than declared.
    TooLong(SendError),
    /// Nobody reads the response any more.
    PeerGone,
}

impl Trouble {
    /// The application's exception, if that is it.
    pub(super) fn raised(&self) -> Option<&PyErr> {
        match self {
            Self::Raised(error) => Some(error),
            Self::Misuse(_) | Self::TooLong(_) | Self::PeerGone => None,
        }
    }
}

impl From<PyErr> for Trouble {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<Unsent> for Trouble {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::NoHead => Self::Misuse(
                "start_response() must be called before the first block of the body is there".to_owned(),
            ),
            Unsent::NotOpen(text) => Self::Misuse(text.to_owned()),
            Unsent::Refused(SendError::Closed) => Self::PeerGone,
            Unsent::Refused(error @ SendError::TooLong { .. }) => Self::TooLong(error),
            Unsent::Refused(error) => Self::Misuse(error.to_string()),
        }
    }
}

/// Sends everything `result` yields and ends the response. What the application calls it is looked up in the environ where
/// the response may take long to be delivered.
pub(super) fn deliver(
    py: Python<'_>,
    result: &Bound<'_, PyAny>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    if let Ok(list) = result.cast_exact::<PyList>() {
        if let Ok(only) = list.get_item(0)
            && list.len() == 1
        {
            return deliver_one(&only, start, environ);
        }
        // A copy: the list could change while a block is being sent.
        deliver_all(py, &list.to_tuple(), start, environ)
    } else if let Ok(tuple) = result.cast_exact::<PyTuple>() {
        deliver_all(py, tuple, start, environ)
    } else if let Ok(wrapper) = result.cast_exact::<FileWrapper>()
        && let Some(range) = wrapper.get().range(py)
    {
        set_label(environ, start);
        Ok(start.send_file(py, range)?)
    } else {
        set_label(environ, start);
        deliver_each(py, result, start)
    }
}

/// Not of the PEP: what the application calls this response, for whoever looks at deliveries.
fn set_label(environ: &Bound<'_, PyDict>, start: &Response) {
    let label = environ.get_item(intern!(environ.py(), "maitred.label"));
    // Whatever is wrong with it, the response is not.
    if let Ok(Some(label)) = label
        && let Ok(text) = label.str()
    {
        start.set_label(&text.to_string_lossy());
    }
}

fn deliver_one(
    block: &Bound<'_, PyAny>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    let block = bytes_of(block)?;
    if block.as_bytes().len() as u64 >= LARGE {
        set_label(environ, start);
    }
    if block.as_bytes().is_empty() {
        return Ok(start.finish()?);
    }
    Ok(start.send_only(block)?)
}

fn deliver_all(
    py: Python<'_>,
    blocks: &Bound<'_, PyTuple>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    let mut total = 0;
    for block in blocks.iter_borrowed() {
        total += bytes_of(&block)?.as_bytes().len() as u64;
    }
    if total == 0 {
        return Ok(start.finish()?);
    }
    if total <= MAX_JOINED {
        let mut body = Vec::with_capacity(total as usize);
        for block in blocks.iter_borrowed() {
            body.extend_from_slice(bytes_of(&block)?.as_bytes());
        }
        return Ok(start.send_whole(py, body.into())?);
    }
    set_label(environ, start);
    for block in blocks.iter_borrowed() {
        let block = bytes_of(&block)?;
        if !block.as_bytes().is_empty() {
            start.send(py, block::content(block), Some(total))?;
        }
    }
    Ok(start.finish()?)
}

fn deliver_each(py: Python<'_>, result: &Bound<'_, PyAny>, start: &Response) -> Result<(), Trouble> {
    if result.is_instance_of::<PyBytes>() {
        let text = "the application returned bytes; it must return an iterable of bytes, such as [body]";
        return Err(Trouble::Misuse(text.to_owned()));
    }
    let mut first = true;
    for block in iterate(result)? {
        let block = block?;
        let block = bytes_of(&block)?;
        if block.as_bytes().is_empty() {
            continue;
        }
        let whole = if first { sole_block_length(result, block.as_bytes(), start) } else { None };
        first = false;
        start.send(py, block::content(block), whole)?;
    }
    Ok(start.finish()?)
}

fn iterate<'py>(result: &Bound<'py, PyAny>) -> Result<Bound<'py, PyIterator>, Trouble> {
    result.try_iter().map_err(|error| {
        if result.hasattr("__iter__").unwrap_or(false) {
            return Trouble::Raised(error);
        }
        let given = type_name(result);
        Trouble::Misuse(format!("the application returned {given}; it must return an iterable of bytes"))
    })
}

/// PEP 3333, "Handling the Content-Length Header": an iterable whose `len()` is 1 has its first block
/// as its whole body.
fn sole_block_length(result: &Bound<'_, PyAny>, block: &[u8], start: &Response) -> Option<u64> {
    if start.declares_length() || result.is_instance_of::<PyIterator>() {
        return None;
    }
    (result.len().ok()? == 1).then_some(block.len() as u64)
}

fn bytes_of<'a, 'py>(block: &'a Bound<'py, PyAny>) -> Result<&'a Bound<'py, PyBytes>, Trouble> {
    block.cast::<PyBytes>().map_err(|_| {
        Trouble::Misuse(format!("the application's iterable yielded {}, not bytes", type_name(block)))
    })
}
