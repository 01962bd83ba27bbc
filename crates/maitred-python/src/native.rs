//! Python objects of native types, each with a Rust value in it.
//!
//! Without a dictionary, weak references and tracking by the garbage collector: where two of them could hold each
//! other, the value lets go when its work is done. References to Python objects in such a value are [`Held`]: the
//! interpreter deallocates on threads of which PyO3 does not know that they have it, and while it ends.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::held::Held;

/// A value that can be in an object.
pub(crate) trait Native: Send + Sync + Sized + 'static {
    /// `maitred._engine.Name`.
    const NAME: &'static CStr;
    /// The text of `help()`.
    const DOC: &'static CStr;
    /// The function behind a call of the object; `None` if it cannot be called.
    const CALL: Option<ffi::vectorcallfunc>;

    /// Slots besides those of every native type.
    fn slots() -> Vec<ffi::PyType_Slot> {
        Vec::new()
    }
}

#[repr(C)]
struct Memory<T> {
    base: ffi::PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    value: T,
}

/// A type, made once for each adapter.
pub(crate) struct Class<T> {
    class: Py<PyType>,
    value: PhantomData<fn() -> T>,
}

/// A strong reference to an object with a `T` in it.
pub(crate) struct Object<T> {
    object: Held<PyAny>,
    value: PhantomData<fn() -> T>,
}

impl<T: Native> Class<T> {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let mut members = [
            ffi::PyMemberDef {
                name: c"__vectorcalloffset__".as_ptr(),
                type_code: ffi::Py_T_PYSSIZET,
                offset: offset_of!(Memory<T>, vectorcall) as ffi::Py_ssize_t,
                flags: ffi::Py_READONLY,
                doc: ptr::null(),
            },
            // Ends the list.
            ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() },
        ];
        let mut slots = T::slots();
        slots.push(slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void));
        slots.push(slot(ffi::Py_tp_doc, T::DOC.as_ptr().cast_mut().cast()));
        let mut flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        if T::CALL.is_some() {
            flags |= ffi::Py_TPFLAGS_HAVE_VECTORCALL;
            slots.push(slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void));
            slots.push(slot(ffi::Py_tp_members, members.as_mut_ptr().cast()));
        }
        slots.push(slot(0, ptr::null_mut())); // Ends the list.
        let mut spec = ffi::PyType_Spec {
            name: T::NAME.as_ptr(),
            basicsize: size_of::<Memory<T>>() as c_int,
            itemsize: 0,
            flags: flags as _,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the specification and everything it points to live until the call has returned. The parts to which
        // the type keeps pointers (name, documentation, methods) are static or were leaked. Members are copied. The
        // slots have the signatures their numbers ask for. The result is a new reference to a type, or null with an
        // exception set.
        let class = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))?.cast_into_unchecked::<PyType>()
        };
        Ok(Self { class: class.unbind(), value: PhantomData })
    }

    pub(crate) fn make(&self, py: Python<'_>, value: T) -> PyResult<Object<T>> {
        // SAFETY: the type has a fixed size and no garbage collection, so that memory of the object allocator with a
        // header written by PyObject_Init is an object of it; `PyObject_New` does both. The rest is written before
        // other code sees the object. Null means an exception.
        let object = unsafe {
            let object = ffi::PyObject_New::<Memory<T>>(self.class.as_ptr().cast());
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            ptr::addr_of_mut!((*object).vectorcall).write(T::CALL);
            ptr::addr_of_mut!((*object).value).write(value);
            Bound::from_owned_ptr(py, object.cast()).into()
        };
        Ok(Object { object, value: PhantomData })
    }

    pub(crate) fn class(&self, py: Python<'_>) -> Py<PyType> {
        self.class.clone_ref(py)
    }

    pub(crate) fn cast<'a>(&self, object: &'a Bound<'_, PyAny>) -> Option<&'a T> {
        // SAFETY: an object of exactly our type was made by `make`; the borrow keeps it alive.
        object.get_type().is(&self.class).then(|| unsafe { value_of(object.as_ptr()) })
    }
}

impl<T> Object<T> {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { object: Held::new(self.object.clone_ref(py)), value: PhantomData }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::PyObject {
        self.object.as_ptr()
    }

    pub(crate) fn as_any(&self) -> &Py<PyAny> {
        &self.object
    }

    pub(crate) fn into_object(self) -> Py<PyAny> {
        self.object.into_inner()
    }
}

impl<T: Native> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: only `make` and `object_at` make values of this kind, with an object of the right type.
        unsafe { value_of(self.object.as_ptr()) }
    }
}

/// The value in an object.
///
/// # Safety
/// The object was made by a `Class<T>`, and a reference to it exists as long as the result is used.
pub(crate) unsafe fn value_of<'a, T>(object: *mut ffi::PyObject) -> &'a T {
    // SAFETY: `make` wrote the value, which is there until the object is deallocated.
    unsafe { &(*object.cast::<Memory<T>>()).value }
}

/// One more reference to the object.
///
/// # Safety
/// The object was made by a `Class<T>`.
pub(crate) unsafe fn object_at<T>(py: Python<'_>, object: *mut ffi::PyObject) -> Object<T> {
    // SAFETY: a valid object, says the caller.
    Object { object: unsafe { Bound::from_borrowed_ptr(py, object).into() }, value: PhantomData }
}

pub(crate) fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// Turns the result of `act` into the interpreter's form: a new reference, or null with an exception set. A panic must
/// not go through the frames of the interpreter.
pub(crate) fn answer(
    py: Python<'_>,
    act: impl FnOnce() -> PyResult<*mut ffi::PyObject>,
) -> *mut ffi::PyObject {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            error.restore(py);
            ptr::null_mut()
        }
        Err(_panic) => {
            PySystemError::new_err("internal error of the server, please report it").restore(py);
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn dealloc<T>(object: *mut ffi::PyObject) {
    // Without attaching: the interpreter has called, and it may be ending.
    // SAFETY: called once by the interpreter for an object of this type without references; `make` wrote the value. An
    // object of a heap type holds a reference to its type. The memory came from `PyObject_New`.
    unsafe {
        let class = ffi::Py_TYPE(object);
        // The unwinding has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            ptr::drop_in_place(ptr::addr_of_mut!((*object.cast::<Memory<T>>()).value));
        }));
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}
