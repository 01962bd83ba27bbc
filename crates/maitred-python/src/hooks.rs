//! Hooks in Python: functions of a module that the user has named.
//!
//! Promises: an exception of one is written with its traceback and ends nothing, but for that of `before_start`. Leaves out: the thread on
//! which they are called and their order (`maitred-process`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_process::host::{Hooks, HooksSpec, LoadError};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::child;
use crate::report::{self, ErrorSink};

pub(crate) struct PythonHooks {
    target: String,
    before_start: Option<Py<PyAny>>,
    worker_ready: Option<Py<PyAny>>,
    worker_exit: Option<Py<PyAny>>,
    log: ErrorSink,
    gate: Arc<Gate>,
}

impl PythonHooks {
    /// Imports the module.
    /// Errors: those of `maitred._hooks.load`.
    pub(crate) fn load(py: Python<'_>, spec: &HooksSpec, log: ErrorSink, gate: Arc<Gate>) -> PyResult<Self> {
        let options = PyDict::new(py);
        options.set_item("app_dir", spec.values.path("app-dir"))?;
        options.set_item("environment", &spec.environment)?;
        options.set_item("identity", &spec.identity)?;
        child::this_is_the_server()?;
        let module = py.import("maitred._hooks")?;
        let hooks = module.call_method("load", (&spec.target,), Some(&options))?.cast_into::<PyDict>()?;
        let hook = |name: &str| hooks.get_item(name).map(|hook| hook.map(Bound::unbind));
        Ok(Self {
            target: spec.target.clone(),
            before_start: hook("before_start")?,
            worker_ready: hook("worker_ready")?,
            worker_exit: hook("worker_exit")?,
            log,
            gate,
        })
    }

    /// Calls one, if the module has it; its exception in one line.
    fn call<A>(&self, name: &str, hook: Option<&Py<PyAny>>, arguments: A) -> Result<(), String>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let (Some(hook), Some(_inside)) = (hook, self.gate.enter()) else { return Ok(()) };
        Python::attach(|py| {
            let called = hook.call1(py, arguments);
            child::end_if_child(py, called.as_ref().err());
            let Err(error) = called else { return Ok(()) };
            let text = report::traceback(py, &error);
            report::write(py, &self.log, &format!("{} in {} raised an exception\n{text}", name, self.target));
            Err(report::summary(py, &error))
        })
    }
}

impl Hooks for PythonHooks {
    fn before_start(&self) -> Result<(), LoadError> {
        let called = self.call("before_start", self.before_start.as_ref(), ());
        called.map_err(|summary| LoadError::new(format!("it raised {summary}"), "see the traceback above"))
    }

    fn worker_ready(&self, worker: usize, pid: u32) {
        // Written already; nothing else changes.
        let _ = self.call("worker_ready", self.worker_ready.as_ref(), (worker, pid));
    }

    fn worker_exit(&self, worker: usize, pid: u32, code: i32) {
        let _ = self.call("worker_exit", self.worker_exit.as_ref(), (worker, pid, code));
    }
}

/// Keeps hooks out of an interpreter that ends.
#[derive(Default)]
pub(crate) struct Gate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    closed: bool,
    /// A thread is inside; the hooks have one thread.
    is_inside: bool,
}

struct Inside<'a>(&'a Gate);

impl Gate {
    fn enter(&self) -> Option<Inside<'_>> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.is_inside = true;
        Some(Inside(self))
    }

    /// Whether one is inside.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.lock();
        state.closed = true;
        state.is_inside
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.lock().is_inside = false;
    }
}
