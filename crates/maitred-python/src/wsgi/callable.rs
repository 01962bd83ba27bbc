//! The object an application gets as `start_response`.
//!
//! A native type without a dictionary, without weak references and, since it refers to no other
//! object, without tracking by the garbage collector. It is its own `write`: what it returns is
//! itself, and a call with one argument sends a block. It is `wsgi.early_hints` as well: that one argument is a list of
//! fields then.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::{PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

use super::response::Response;
use crate::report::type_name;

/// The memory of one object.
#[repr(C)]
struct Object {
    base: ffi::PyObject,
    vectorcall: ffi::vectorcallfunc,
    response: Response,
}

/// The type, made once for each interpreter.
pub(super) struct StartResponseType {
    class: Py<PyType>,
}

/// A reference to one object; shows the response inside.
pub(super) struct StartResponse<'py> {
    object: Bound<'py, PyAny>,
}

impl StartResponseType {
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        let mut members = [
            ffi::PyMemberDef {
                name: c"__vectorcalloffset__".as_ptr(),
                type_code: ffi::Py_T_PYSSIZET,
                offset: offset_of!(Object, vectorcall) as ffi::Py_ssize_t,
                flags: ffi::Py_READONLY,
                doc: ptr::null(),
            },
            // Ends the list.
            ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() },
        ];
        let doc: *const c_char =
            c"start_response(status, headers, exc_info=None), for one request; returns write(data)".as_ptr();
        let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [
            slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
            slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
            slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
            slot(ffi::Py_tp_doc, doc as *mut c_void),
            // Ends the list.
            slot(0, ptr::null_mut()),
        ];
        let flags = ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_HAVE_VECTORCALL
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        let mut spec = ffi::PyType_Spec {
            name: c"maitred._engine.StartResponse".as_ptr(),
            basicsize: size_of::<Object>() as c_int,
            itemsize: 0,
            flags: flags as _,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the specification and all it points to live until the call has returned; the name
        // and the documentation, which the type may go on pointing to, are static. Members are copied.
        // The slots have the signatures their numbers ask for. The result is a new reference to a
        // type, or null with an exception set.
        let class = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))?.cast_into_unchecked::<PyType>()
        };
        Ok(Self { class: class.unbind() })
    }

    /// The object for one response.
    pub(super) fn make<'py>(&self, py: Python<'py>, response: Response) -> PyResult<StartResponse<'py>> {
        // SAFETY: the type has a fixed size and no garbage collection, so that memory of the object
        // allocator with a header written by PyObject_Init is an object of it; `PyObject_New` does
        // both. The rest is written before anybody else sees the object. Null means an exception.
        let object = unsafe {
            let object = ffi::PyObject_New::<Object>(self.class.as_ptr().cast());
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            ptr::addr_of_mut!((*object).vectorcall).write(vectorcall);
            ptr::addr_of_mut!((*object).response).write(response);
            Bound::from_owned_ptr(py, object.cast())
        };
        Ok(StartResponse { object })
    }
}

impl<'py> StartResponse<'py> {
    pub(super) fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }
}

impl Deref for StartResponse<'_> {
    type Target = Response;

    fn deref(&self) -> &Response {
        // SAFETY: only `make` makes values of this kind, with an object of our type; its response is
        // there until the object is deallocated, which this reference prevents.
        unsafe { &(*self.object.as_ptr().cast::<Object>()).response }
    }
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: called once by the interpreter for an object of our type that nobody refers to any more;
    // `make` wrote the response. An object of a heap type holds a reference to its type. The memory
    // came from `PyObject_New`.
    unsafe {
        let class = ffi::Py_TYPE(object);
        // A panic must not go through the interpreter's frames; whoever unwinds has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            ptr::drop_in_place(ptr::addr_of_mut!((*object.cast::<Object>()).response));
        }));
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
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
        let (object, args, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, names)
                .map(|names| names.cast_into_unchecked::<PyTuple>());
            let named = names.as_ref().map_or(0, |names| names.len());
            let count = ffi::PyVectorcall_NARGS(nargsf) as usize;
            let args = if count + named == 0 { &[] } else { std::slice::from_raw_parts(args, count + named) };
            (Bound::from_borrowed_ptr(py, callable), Arguments { py, args, count }, names)
        };
        let called = catch_unwind(AssertUnwindSafe(|| call(StartResponse { object }, &args, names.as_ref())));
        match called {
            Ok(Ok(result)) => result.into_ptr(),
            Ok(Err(error)) => {
                error.restore(py);
                ptr::null_mut()
            }
            Err(_panic) => {
                PySystemError::new_err("internal error of the server, please report it").restore(py);
                ptr::null_mut()
            }
        }
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
    start: StartResponse<'py>,
    args: &Arguments<'_, 'py>,
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    if names.is_none() {
        match args.count {
            1 => return write_or_hint(&start, &args.at(0)),
            2 => return declare(start, &args.at(0), &args.at(1), None),
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
        [Some(status), Some(headers), exc_info] => declare(start, &status, &headers, exc_info.as_ref()),
        _ => Err(usage()),
    }
}

fn declare<'py>(
    start: StartResponse<'py>,
    status: &Bound<'py, PyAny>,
    headers: &Bound<'py, PyAny>,
    exc_info: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    start.declare(status, headers, exc_info)?;
    Ok(start.object)
}

fn write_or_hint<'py>(
    start: &StartResponse<'py>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
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
