//! The object an application gets as `start_response`.
//!
//! A native type without a dictionary, without weak references and, since it refers to no other
//! object, without tracking by the garbage collector. It is its own `write`: what it returns is
//! itself, and a call with one argument sends a block. It is `wsgi.early_hints` as well: that one argument is a list of
//! fields then.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::response::Response;
use crate::native::{Native, Object, answer, object_at};
use crate::report::type_name;

impl Native for Response {
    const NAME: &'static CStr = c"maitred._engine.StartResponse";
    const DOC: &'static CStr =
        c"start_response(status, headers, exc_info=None), for one request; returns write(data)";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall);
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: the interpreter calls this with an object of our type, with an array of that many
        // positional arguments, and behind them one for each name of the tuple `names`, which may be
        // null. All are borrowed for the duration of the call.
        let (start, args, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, names)
                .map(|names| names.cast_into_unchecked::<PyTuple>());
            let named = names.as_ref().map_or(0, |names| names.len());
            let count = ffi::PyVectorcall_NARGS(nargsf) as usize;
            let args = if count + named == 0 { &[] } else { std::slice::from_raw_parts(args, count + named) };
            (object_at::<Response>(py, callable), Arguments { py, args, count }, names)
        };
        answer(py, || Ok(call(py, start, &args, names.as_ref())?.into_ptr()))
    })
}

/// The arguments of one call, the positional ones first.
struct Arguments<'a, 'py> {
    py: Python<'py>,
    args: &'a [*mut ffi::PyObject],
    count: usize,
}

impl<'py> Arguments<'_, 'py> {
    fn at(&self, index: usize) -> Bound<'py, PyAny> {
        // SAFETY: the array holds valid objects, borrowed for the duration of the call.
        unsafe { Bound::from_borrowed_ptr(self.py, self.args[index]) }
    }
}

fn call<'py>(
    py: Python<'py>,
    start: Object<Response>,
    args: &Arguments<'_, 'py>,
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    if names.is_none() {
        match args.count {
            1 => return write_or_hint(&start, &args.at(0)),
            2 => return declare(py, start, &args.at(0), &args.at(1), None),
            _ => {}
        }
    }
    let mut found: [Option<Bound<'py, PyAny>>; 3] = [None, None, None];
    let usage =
        || PyTypeError::new_err("start_response() takes status, headers and exc_info; write() takes data");
    for (index, place) in (0..args.count).zip(0..) {
        *found.get_mut::<usize>(place).ok_or_else(usage)? = Some(args.at(index));
    }
    for (index, name) in names.into_iter().flat_map(|names| names.iter_borrowed()).enumerate() {
        let place = ["status", "headers", "exc_info"]
            .iter()
            .position(|known| name.cast::<PyString>().is_ok_and(|name| name == *known));
        let place = &mut found[place.ok_or_else(usage)?];
        if place.replace(args.at(args.count + index)).is_some() {
            return Err(usage());
        }
    }
    match found {
        [Some(status), Some(headers), exc_info] => declare(py, start, &status, &headers, exc_info.as_ref()),
        _ => Err(usage()),
    }
}

fn declare<'py>(
    py: Python<'py>,
    start: Object<Response>,
    status: &Bound<'py, PyAny>,
    headers: &Bound<'py, PyAny>,
    exc_info: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    start.declare(status, headers, exc_info)?;
    Ok(start.into_object().into_bound(py))
}

fn write_or_hint<'py>(start: &Response, argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = argument.py();
    if let Ok(data) = argument.cast::<PyBytes>() {
        start.write(py, data)?;
    } else if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        start.hint(argument)?;
    } else {
        let given = type_name(argument);
        let text = format!("write() takes bytes, and wsgi.early_hints a list of tuples, not {given}");
        return Err(PyTypeError::new_err(text));
    }
    Ok(py.None().into_bound(py))
}
