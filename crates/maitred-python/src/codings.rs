//! The codings that a client accepts, for the application (RFC 9110 §12.5.3).

use std::cell::RefCell;

use maitred_http::FieldSet;
use maitred_http::coding::{Accepted, Coding};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The key in the environ of WSGI, and the name of the extension of ASGI.
pub(crate) const KEY: &str = "maitred.accepts_encoding";

/// A longer value is read again for each request.
const MAX_KEPT: usize = 128;

/// A value of the field, and the names in it.
type Known = (Box<[u8]>, Py<PyTuple>);

thread_local! {
    /// The last one: most clients send the same.
    static LAST: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// The names of the codings that the client accepts, in the order it prefers them.
pub(crate) fn accepted<'py>(py: Python<'py>, fields: &FieldSet) -> PyResult<Bound<'py, PyTuple>> {
    let mut values = fields.all("accept-encoding");
    let (only, further) = (values.next().unwrap_or_default(), values.next().is_some());
    let known = LAST.with_borrow(|last| {
        last.as_ref().filter(|(value, _)| !further && **value == *only).map(|(_, names)| names.clone_ref(py))
    });
    if let Some(names) = known {
        return Ok(names.into_bound(py));
    }
    let accepted = Accepted::of(fields.all("accept-encoding"));
    let names = PyTuple::new(py, accepted.in_order().into_iter().map(Coding::name))?;
    if !further && only.len() <= MAX_KEPT {
        let earlier = LAST.replace(Some((only.into(), names.clone().unbind())));
        // Here, where nothing is borrowed.
        drop(earlier);
    }
    Ok(names)
}
