//! `receive`, as the application calls it.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::channel::Channel;
use super::pending::{Pending, What};
use crate::native::{Native, answer, value_of};

/// The callable of one request.
pub(super) struct Receive(pub(super) Channel);

impl Native for Receive {
    const NAME: &'static CStr = c"maitred._engine.Receive";
    const DOC: &'static CStr = c"await receive(), for one request";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall);
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    _: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type, and with a tuple or null.
            let (Receive(channel), named) = unsafe {
                let named = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
                (value_of::<Receive>(callable), named)
            };
            // SAFETY: as above; only a number is computed.
            if unsafe { ffi::PyVectorcall_NARGS(nargsf) } + named != 0 {
                return Err(PyTypeError::new_err("receive() takes no arguments"));
            }
            let pending = Pending::new(channel.clone_ref(py), What::Message);
            Ok(channel.adapter().classes.pending.make(py, pending)?.into_object().into_ptr())
        })
    })
}
