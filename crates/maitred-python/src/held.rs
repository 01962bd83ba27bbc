//! References to Python objects that the engine holds. An owner may drop one on any thread, with the interpreter or
//! without.
//!
//! The end of an object can run application code (`__del__`, weak references), which takes its time and may come back
//! here. So a reference that is dropped without the interpreter goes to the [releaser](crate::releaser), and where the
//! engine drops one under a lock, the object is one whose end runs nothing, or it goes there, too
//! ([`later`](Held::later)).
//!
//! Leaves out: objects that threads keep for the next request (`text`, `codings`, `wsgi/environ.rs`). These are
//! strings, whose end runs nothing, and PyO3 gives them up at the next occasion.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::releaser;

pub(crate) struct Held<T>(ManuallyDrop<Py<T>>);

impl<T> Held<T> {
    pub(crate) fn new(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }

    pub(crate) fn into_inner(self) -> Py<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once: `this` is neither used nor dropped any more.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Gives the reference up on another thread, because the caller may hold a lock.
    pub(crate) fn later(self) {
        releaser::release(self.into_inner().into_any());
    }
}

impl<T> Deref for Held<T> {
    type Target = Py<T>;

    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> From<Bound<'_, T>> for Held<T> {
    fn from(object: Bound<'_, T>) -> Self {
        Self::new(object.unbind())
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // SAFETY: taken once: the value is not used any more.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        if is_attached() {
            // SAFETY: this thread has the interpreter, and the reference is ours.
            unsafe { ffi::Py_DECREF(object.into_ptr()) };
        } else {
            releaser::release(object.into_any());
        }
    }
}

/// Whether the calling thread has the interpreter. Right also where PyO3 does not know it, because the interpreter itself
/// has called, and where `PyGILState_Check` gives up: from the first subinterpreter on that says yes to everybody.
pub(crate) fn is_attached() -> bool {
    // SAFETY: no arguments; both only read, at any time and on any thread.
    unsafe {
        let current = ffi::compat::PyThreadState_GetUnchecked();
        // Before Python 3.12 `current` may be that of another thread.
        !current.is_null() && current == ffi::PyGILState_GetThisThreadState()
    }
}
