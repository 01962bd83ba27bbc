//! The application's name for the route of a request: in its scope or environ, or where its framework leaves it there
//! (`python/maitred/_route.py`).
//!
//! Promises: a request to whose dictionary the application has added nothing costs a comparison. An error in a name
//! never spoils the response.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::held::Held;

/// The interface of a dictionary.
#[derive(Clone, Copy)]
pub(crate) enum Interface {
    Asgi,
    Wsgi,
}

/// The scope or environ of a request, until its response begins.
///
/// Objects that the application holds refer to it, too. So the code that ends the request gives it [up](Self::forget).
pub(crate) struct Dictionary {
    interface: Interface,
    /// The dictionary, and the number of its entries at first.
    held: Mutex<Option<(Held<PyDict>, usize)>>,
}

impl Dictionary {
    pub(crate) fn new(interface: Interface, dictionary: &Bound<'_, PyDict>) -> Self {
        let held = (Held::new(dictionary.clone().unbind()), dictionary.len());
        Self { interface, held: Mutex::new(Some(held)) }
    }

    /// The name of the route, asked for once, when a response begins.
    pub(crate) fn route(&self, py: Python<'_>) -> Option<String> {
        let (dictionary, before) = self.take()?;
        let dictionary = dictionary.bind(py);
        if dictionary.len() == before {
            return None;
        }
        let name = self.interface.ask(py).and_then(|ask| ask.call1((dictionary,))).ok()?;
        let name = name.cast::<PyString>().ok()?;
        // A surrogate that has no UTF-8 is replaced.
        Some(name.to_string_lossy().into_owned())
    }

    /// Drops the dictionary: the name of the route is not asked for any more.
    pub(crate) fn forget(&self) {
        let taken = self.take();
        // Not under the lock: its end may run application code.
        drop(taken);
    }

    fn take(&self) -> Option<(Held<PyDict>, usize)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Interface {
    fn ask(self, py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
        static ASGI: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static WSGI: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (known, name) = match self {
            Self::Asgi => (&ASGI, "of_scope"),
            Self::Wsgi => (&WSGI, "of_environ"),
        };
        let ask =
            known.get_or_try_init(py, || py.import("maitred._route")?.getattr(name).map(Bound::unbind))?;
        Ok(ask.bind(py))
    }
}
