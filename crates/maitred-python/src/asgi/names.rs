//! Request fields as ASGI has them: `(name, value)`, the name in lower case.
//!
//! The name's bytes object is made once for each spelling. The pair with the last value is kept, too: most fields of
//! most requests have the value that they had the last time, and a pair never changes. Names that find no place (a peer
//! can send any) cost the same as without a table.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::values::{MAX_KEPT_NAME, NAME_PLACES, name_places};

/// Longer values are not kept. The usual `user-agent` has 120 bytes, the usual `accept` of a browser 140.
const MAX_KEPT_VALUE: usize = 256;

/// The meaning of a field for the maker of a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    /// Is not kept: it belongs to one user.
    Private,
    Host,
    TransferEncoding,
}

struct Known {
    name: Box<[u8]>,
    lower: Py<PyBytes>,
    meaning: Meaning,
    last: Option<Last>,
}

struct Last {
    value: Py<PyBytes>,
    pair: Py<PyTuple>,
}

pub(super) struct Names {
    places: Box<[Option<Known>]>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { places: (0..NAME_PLACES).map(|_| None).collect() }
    }

    /// The pair for this field. `replace` gives another value for some of them.
    pub(super) fn pair<'a, 'py>(
        &mut self,
        py: Python<'py>,
        name: &[u8],
        value: &'a [u8],
        replace: impl FnOnce(Meaning, &'a [u8]) -> &'a [u8],
    ) -> PyResult<(Meaning, Bound<'py, PyTuple>)> {
        match self.find(py, name) {
            Some(known) => known.pair(py, value, replace),
            None => {
                let mut known = Known::new(py, name);
                known.pair(py, value, replace)
            }
        }
    }

    /// The place of the name; takes one if there is one.
    fn find(&mut self, py: Python<'_>, name: &[u8]) -> Option<&mut Known> {
        let is = |place: &Option<Known>| place.as_ref().is_none_or(|known| *known.name == *name);
        let place = name_places(name).find(|at| is(&self.places[*at]))?;
        let place = &mut self.places[place];
        if place.is_none() {
            if name.len() > MAX_KEPT_NAME {
                return None;
            }
            *place = Some(Known::new(py, name));
        }
        place.as_mut()
    }
}

impl Known {
    fn new(py: Python<'_>, name: &[u8]) -> Self {
        let lower = name.to_ascii_lowercase();
        let meaning = match &lower[..] {
            b"host" => Meaning::Host,
            b"transfer-encoding" => Meaning::TransferEncoding,
            b"authorization" | b"proxy-authorization" | b"cookie" => Meaning::Private,
            _ => Meaning::Plain,
        };
        Self { name: name.into(), lower: PyBytes::new(py, &lower).unbind(), meaning, last: None }
    }

    fn pair<'a, 'py>(
        &mut self,
        py: Python<'py>,
        value: &'a [u8],
        replace: impl FnOnce(Meaning, &'a [u8]) -> &'a [u8],
    ) -> PyResult<(Meaning, Bound<'py, PyTuple>)> {
        let value = replace(self.meaning, value);
        if let Some(last) = &self.last
            && last.value.as_bytes(py) == value
        {
            return Ok((self.meaning, last.pair.bind(py).clone()));
        }
        let bytes = PyBytes::new(py, value);
        let pair = PyTuple::new(py, [self.lower.bind(py), &bytes])?;
        if value.len() <= MAX_KEPT_VALUE && self.meaning != Meaning::Private {
            self.last = Some(Last { value: bytes.unbind(), pair: pair.clone().unbind() });
        }
        Ok((self.meaning, pair))
    }
}
