//! The body of a request: bytes, an iterable whose parts are taken when they can be sent, or parts that a task brings.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMemoryView};

use crate::held::Held;

pub(super) enum Source {
    Whole(Option<PyBackedBytes>),
    /// Parts that are asked for.
    Parts(Held<PyIterator>, Part),
    /// Parts that come by themselves.
    Fed(Part, Fed),
}

/// The state of parts that come by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    Open,
    Ended,
}

/// The rest of a part.
#[derive(Default)]
pub(super) struct Part {
    bytes: Option<PyBackedBytes>,
    given: usize,
}

impl Source {
    pub(super) fn of_thread(body: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        match body {
            None => Ok(Self::Whole(None)),
            Some(body) => match whole(body)? {
                Some(bytes) => Ok(Self::Whole(Some(bytes))),
                None => Ok(Self::Parts(body.try_iter()?.into(), Part::default())),
            },
        }
    }

    /// Of a call in an event loop; any iterable is one whose parts a task brings.
    pub(super) fn of_loop(body: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        match body {
            None => Ok(Self::Whole(None)),
            Some(body) => Ok(match whole(body)? {
                Some(bytes) => Self::Whole(Some(bytes)),
                None => Self::Fed(Part::default(), Fed::Open),
            }),
        }
    }

    pub(super) fn is_fed(&self) -> bool {
        matches!(self, Self::Fed(..))
    }

    /// The length, where the whole is there.
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Parts(..) | Self::Fed(..) => None,
        }
    }

    /// The bytes to give next, if the whole body has had `at` of them.
    pub(super) fn rest(&self, at: u64) -> &[u8] {
        match self {
            Self::Whole(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                bytes.as_deref().and_then(|bytes| bytes.get(at..)).unwrap_or_default()
            }
            Self::Parts(_, part) | Self::Fed(part, _) => part.rest(),
        }
    }

    /// So many of these bytes were taken.
    pub(super) fn taken(&mut self, bytes: usize) {
        match self {
            Self::Whole(_) => {}
            Self::Parts(_, part) | Self::Fed(part, _) => part.given += bytes,
        }
    }

    /// Has the next part that is not empty ready. False at the end.
    pub(super) fn pull(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Self::Parts(iterator, part) = self else { return Ok(false) };
        for next in iterator.bind(py).clone() {
            let next = Part::of(&next?)?;
            if !next.rest().is_empty() {
                *part = next;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Part {
    pub(super) fn of(part: &Bound<'_, PyAny>) -> PyResult<Self> {
        match whole(part)? {
            Some(bytes) => Ok(Self { bytes: Some(bytes), given: 0 }),
            None => {
                let name = part.get_type().name()?;
                Err(PyTypeError::new_err(format!(
                    "a part of the body is of type {name}, and has to be bytes"
                )))
            }
        }
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.as_deref().and_then(|bytes| bytes.get(self.given..)).unwrap_or_default()
    }
}

/// The bytes of an object that is bytes; those that can change are copied.
fn whole(object: &Bound<'_, PyAny>) -> PyResult<Option<PyBackedBytes>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.clone().into()));
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
        return Ok(Some(bytes.cast_into::<PyBytes>()?.into()));
    }
    Ok(None)
}
