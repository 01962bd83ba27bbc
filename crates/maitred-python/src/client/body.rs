//! The body of a request: bytes that stay where they are, or an iterable whose parts are taken when they can be sent.

use std::io::{self, Read};
use std::ptr::NonNull;

use maitred_client::blocking::Body;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyIterator};

use crate::held::Held;

/// The owner of a body, for as long as a call can read it.
pub(super) enum Source {
    Bytes { start: *const u8, length: usize, _object: Option<Held<PyBytes>> },
    Parts(NonNull<Parts>),
}

// SAFETY: bytes never change and never move; the parts are used by one thread at a time, through the call that owns them.
unsafe impl Send for Source {}

impl Source {
    pub(super) fn of(body: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(body) = body else {
            return Ok(Self::Bytes { start: NonNull::dangling().as_ptr(), length: 0, _object: None });
        };
        if let Ok(bytes) = body.cast::<PyBytes>() {
            let (start, length) = (bytes.as_bytes().as_ptr(), bytes.as_bytes().len());
            return Ok(Self::Bytes { start, length, _object: Some(bytes.clone().into()) });
        }
        let parts = Box::new(Parts { iterator: body.try_iter()?.into(), part: None, given: 0 });
        Ok(Self::Parts(NonNull::from(Box::leak(parts))))
    }

    /// The body as a call takes it.
    ///
    /// # Safety
    /// This value outlives it, and is asked once.
    pub(super) unsafe fn body(&self) -> Body<'static> {
        match *self {
            Self::Bytes { start, length, .. } => {
                // SAFETY: as the caller says; the object is held as long as this value.
                Body::Bytes(unsafe { std::slice::from_raw_parts(start, length) })
            }
            Self::Parts(mut parts) => {
                // SAFETY: as the caller says; no other reference is made before the drop.
                Body::Stream(unsafe { parts.as_mut() })
            }
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Self::Parts(parts) = self {
            // SAFETY: made by Box::leak, and dropped once.
            drop(unsafe { Box::from_raw(parts.as_ptr()) });
        }
    }
}

/// The parts of an iterable.
pub(super) struct Parts {
    iterator: Held<PyIterator>,
    part: Option<PyBackedBytes>,
    given: usize,
}

impl Parts {
    /// The next part that is not empty. An exception of the iterable comes as the inner one of the error.
    fn next(&mut self) -> io::Result<()> {
        self.given = 0;
        self.part = None;
        Python::attach(|py| {
            for part in self.iterator.bind(py).clone() {
                let part = bytes_of(&part?)?;
                if !part.is_empty() {
                    self.part = Some(part);
                    break;
                }
            }
            Ok(())
        })
        .map_err(|error: PyErr| io::Error::other(error))
    }
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.as_ref().is_none_or(|part| self.given >= part.len()) {
            self.next()?;
        }
        let left = self.part.as_deref().and_then(|part| part.get(self.given..)).unwrap_or_default();
        let length = left.len().min(buffer.len());
        buffer[..length].copy_from_slice(&left[..length]);
        self.given += length;
        Ok(length)
    }
}

fn bytes_of(part: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = part.extract::<PyBackedBytes>() {
        return Ok(bytes);
    }
    let name = part.get_type().name()?;
    match part.py().import("builtins")?.getattr("memoryview")?.call1((part,)) {
        Ok(view) => Ok(view.call_method0("tobytes")?.extract::<PyBackedBytes>()?),
        Err(_) => {
            Err(PyTypeError::new_err(format!("a part of the body is of type {name}, and has to be bytes")))
        }
    }
}
