//! The awaitable protocol of native objects: `send`, `throw`, `close` and the slots behind `await`.
//!
//! `asyncio` drives a Task's coroutine by `am_send`; `await` in Python code calls `tp_iternext` where there
//! is nothing to send. With the three methods such an object is a `collections.abc.Coroutine`, so that
//! `ensure_future`, `wait_for` and `create_task` take it.

use std::ffi::c_void;
use std::ptr;

use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::native::{Native, answer, slot, value_of};

pub(super) enum Step {
    /// The step waits for this object.
    Yield(Py<PyAny>),
    /// The coroutine has ended with this value.
    Return(Py<PyAny>),
}

/// A value that goes on step by step.
pub(super) trait Steps: Native {
    /// Goes on; `value` is the result of the awaited object.
    fn step(&self, value: &Bound<'_, PyAny>) -> PyResult<Step>;

    /// Goes on with an exception; the arguments are those of `throw()`.
    fn throw(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Step>;

    /// Ends it where it stands.
    fn close(&self, py: Python<'_>) -> PyResult<()>;
}

/// The slots and methods of something that can be awaited.
pub(super) fn slots<T: Steps>() -> Vec<ffi::PyType_Slot> {
    let method = |name: &'static std::ffi::CStr, function: ffi::PyCFunction, flags| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: ptr::null(),
    };
    let methods = vec![
        method(c"send", send::<T>, ffi::METH_O),
        method(c"throw", throw::<T>, ffi::METH_VARARGS),
        method(c"close", close::<T>, ffi::METH_NOARGS),
        ffi::PyMethodDef::zeroed(), // Ends the list.
    ];
    // The type points to them for ever, and there are few types.
    let methods = Box::leak(methods.into_boxed_slice()).as_mut_ptr();
    vec![
        slot(ffi::Py_tp_methods, methods.cast()),
        slot(ffi::Py_am_await, ffi::PyObject_SelfIter as *mut c_void),
        slot(ffi::Py_am_send, am_send::<T> as *mut c_void),
        slot(ffi::Py_tp_iter, ffi::PyObject_SelfIter as *mut c_void),
        slot(ffi::Py_tp_iternext, iternext::<T> as *mut c_void),
    ]
}

/// The exception that `throw(type_or_value, value=None, traceback=None)` means.
pub(super) fn thrown(arguments: &Bound<'_, PyTuple>) -> PyErr {
    let given = |index| arguments.get_item(index).ok().filter(|value: &Bound<'_, PyAny>| !value.is_none());
    let Some(first) = given(0) else {
        return PyTypeError::new_err("throw() takes an exception");
    };
    match first.cast_into::<PyType>() {
        Ok(class) => PyErr::from_type(class, given(1).map(Bound::unbind)),
        Err(error) => PyErr::from_value(error.into_inner()),
    }
}

unsafe extern "C" fn am_send<T: Steps>(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    Python::attach(|py| {
        let mut kind = ffi::PySendResult::PYGEN_ERROR;
        let given = answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type and a value, both borrowed.
            let (this, value) = unsafe { (value_of::<T>(object), Bound::from_borrowed_ptr(py, value)) };
            match this.step(&value)? {
                Step::Yield(value) => {
                    kind = ffi::PySendResult::PYGEN_NEXT;
                    Ok(value.into_ptr())
                }
                Step::Return(value) => {
                    kind = ffi::PySendResult::PYGEN_RETURN;
                    Ok(value.into_ptr())
                }
            }
        });
        // SAFETY: a valid place for the result; null in case of an error.
        unsafe { *result = given };
        kind
    })
}

/// The result as an iterator has it: the end is an exception, or none where the value is None.
fn iterated(py: Python<'_>, step: Step) -> PyResult<*mut ffi::PyObject> {
    match step {
        Step::Yield(value) => Ok(value.into_ptr()),
        Step::Return(value) if value.is_none(py) => Ok(ptr::null_mut()),
        Step::Return(value) => Err(stop(py, value)),
    }
}

/// Made by a call, so that a tuple stays one value.
fn stop(py: Python<'_>, value: Py<PyAny>) -> PyErr {
    match py.get_type::<PyStopIteration>().call1((value,)) {
        Ok(stop) => PyErr::from_value(stop),
        Err(error) => error,
    }
}

unsafe extern "C" fn iternext<T: Steps>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type.
            let step = unsafe { value_of::<T>(object) }.step(py.None().bind(py))?;
            iterated(py, step)
        })
    })
}

/// The result of a step in a method: its end is always an exception.
fn called(py: Python<'_>, step: Step) -> PyResult<*mut ffi::PyObject> {
    match step {
        Step::Yield(value) => Ok(value.into_ptr()),
        Step::Return(value) => Err(stop(py, value)),
    }
}

unsafe extern "C" fn send<T: Steps>(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type and a value, both borrowed.
            let (this, value) = unsafe { (value_of::<T>(object), Bound::from_borrowed_ptr(py, value)) };
            called(py, this.step(&value)?)
        })
    })
}

unsafe extern "C" fn throw<T: Steps>(
    object: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: as above; the arguments of a METH_VARARGS method are a tuple.
            let (this, arguments) = unsafe {
                let arguments = Bound::from_borrowed_ptr(py, arguments);
                (value_of::<T>(object), arguments.cast_into_unchecked::<PyTuple>())
            };
            called(py, this.throw(&arguments)?)
        })
    })
}

unsafe extern "C" fn close<T: Steps>(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type.
            unsafe { value_of::<T>(object) }.close(py)?;
            Ok(py.None().into_ptr())
        })
    })
}
