//! A message that an application passes to `send`: a dictionary, or anything that can be asked like one.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::report::type_name;

pub(super) enum Message<'a, 'py> {
    Dict(&'a Bound<'py, PyDict>),
    Other(&'a Bound<'py, PyMapping>),
}

impl<'a, 'py> Message<'a, 'py> {
    pub(super) fn new(message: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(dict) = message.cast::<PyDict>() {
            return Ok(Self::Dict(dict));
        }
        message.cast::<PyMapping>().map(Self::Other).map_err(|_| {
            PyTypeError::new_err(format!("send() takes a dict with a 'type', not {}", type_name(message)))
        })
    }

    pub(super) fn py(&self) -> Python<'py> {
        match self {
            Self::Dict(dict) => dict.py(),
            Self::Other(mapping) => mapping.py(),
        }
    }

    pub(super) fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Dict(dict) => dict.get_item(key),
            Self::Other(mapping) => match mapping.get_item(key) {
                Ok(value) => Ok(Some(value)),
                Err(error) if error.is_instance_of::<PyKeyError>(self.py()) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }
}
