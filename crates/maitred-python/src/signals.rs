//! Signals in a process that Python owns.
//!
//! Python's own C handler writes the signal's number to the wake-up descriptor, which is the bell the main thread waits
//! for; the main thread then lets Python run its handlers. So nothing is done in a signal handler, handlers that the
//! application installed during its import are called too, and no signal mask leaks into processes the application
//! starts.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use maitred_process::host::{Signal, Signals, StopSignal};
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bounded_end;
use crate::orphans::Orphans;
use crate::report::{self, ErrorSink};
use crate::threads::PythonThreads;
use crate::values::lock;

type Received = Arc<Mutex<VecDeque<Signal>>>;

pub(crate) struct PythonSignals {
    received: Received,
    threads: PythonThreads,
    log: ErrorSink,
    earlier: Earlier,
    earlier_descriptor: RawFd,
    /// The orphans that process 1 adopts.
    orphans: Option<Orphans>,
}

/// The handlers that were there before, by the numbers of their signals.
type Earlier = Arc<Mutex<Vec<(u8, Py<PyAny>)>>>;

impl PythonSignals {
    /// Installs handlers for the signals that [`Signal::answered`] names. Only the main thread of Python may do that.
    pub(crate) fn install(py: Python<'_>, threads: PythonThreads, log: ErrorSink) -> PyResult<Self> {
        let module = py.import("signal")?;
        let no_warning = PyDict::new(py);
        no_warning.set_item("warn_on_full_buffer", false)?;
        let descriptor = threads.bell().descriptor();
        let earlier_descriptor =
            module.call_method("set_wakeup_fd", (descriptor,), Some(&no_warning))?.extract()?;
        let this = Self {
            received: Arc::default(),
            threads,
            log,
            earlier: Arc::default(),
            earlier_descriptor,
            orphans: Orphans::of_first_process(),
        };
        if let Some(stage) = stage(py)? {
            stage.setattr("bell", descriptor)?;
        }
        for signal in Signal::answered() {
            let previous = module.call_method1("getsignal", (signal.number(),))?;
            if matches!(signal, Signal::ForSupervisor(_)) && !previous.is(&module.getattr("SIG_DFL")?) {
                // The application handles or ignores it.
                continue;
            }
            let previous = previous.unbind();
            let handler =
                SignalHandler { signal, previous: previous.clone_ref(py), received: this.received.clone() };
            module.call_method1("signal", (signal.number(), Py::new(py, handler)?))?;
            lock(&this.earlier).push((signal.number(), previous));
        }
        let restored = PyDict::new(py);
        restored.set_item("after_in_child", Py::new(py, InChild { earlier: Arc::clone(&this.earlier) })?)?;
        py.import("os")?.call_method("register_at_fork", (), Some(&restored))?;
        Ok(this)
    }

    /// Does Python's work between two waits: runs the handlers of signals that came, and makes requested threads.
    /// Returns the time until a thread that could not be made is tried again.
    fn attend(&self, py: Python<'_>) -> Option<Duration> {
        if let Err(error) = py.check_signals() {
            // A handler of the application that ends with KeyboardInterrupt or SystemExit wants the
            // process to stop, and that is what a stop signal already does.
            let is_stop =
                error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PySystemExit>(py);
            if !is_stop {
                let text = report::traceback(py, &error);
                report::write(py, &self.log, &format!("a signal handler raised an exception\n{text}"));
            }
        }
        if let Err(error) = attend_loop(py) {
            report::write(py, &self.log, &report::traceback(py, &error));
        }
        self.threads.start_wanted(py)
    }

    fn next(&self) -> Option<Signal> {
        lock(&self.received).pop_front()
    }

    fn restore(&mut self, py: Python<'_>) -> PyResult<()> {
        put_back(py, &self.earlier, true)?;
        py.import("signal")?.call_method1("set_wakeup_fd", (self.earlier_descriptor,)).map(drop)
    }
}

/// SIGINT ends the process until the command has ended, and is an exception again then.
static RAISES_LATER: AtomicBool = AtomicBool::new(false);

/// The command has ended: gives Ctrl-C its former handler back.
pub(crate) fn give_back_interrupt(py: Python<'_>) -> PyResult<()> {
    if !RAISES_LATER.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    let module = py.import("signal")?;
    let raises = module.getattr("default_int_handler")?;
    module.call_method1("signal", (module.getattr("SIGINT")?, raises)).map(drop)
}

impl Signals for PythonSignals {
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let pause = Python::attach(|py| self.attend(py));
            if let Some(signal) = self.next() {
                return Some(signal);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let look = self.orphans.as_mut().map(|orphans| {
                orphans.look();
                orphans.pause()
            });
            if let Err(error) = self.threads.bell().wait([left, pause, look].into_iter().flatten().min()) {
                // Without the bell no signal would ever be seen: better to stop in order.
                (self.log)(&format!("cannot wait for signals ({error}); stopping"));
                return Some(Signal::Stop(StopSignal::Terminate));
            }
        }
    }
}

impl Drop for PythonSignals {
    fn drop(&mut self) {
        Python::attach(|py| {
            if let Err(error) = self.restore(py) {
                let text = report::summary(py, &error);
                report::write(py, &self.log, &format!("cannot restore the signal handlers: {text}"));
            }
            self.attend(py);
            if matches!(self.next(), Some(Signal::Stop(_))) {
                bounded_end::hurry();
            }
        });
    }
}

/// Python calls this in a child process that it has forked: our handlers have no reader there.
#[pyclass(frozen, module = "maitred._engine")]
struct InChild {
    earlier: Earlier,
}

#[pymethods]
impl InChild {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        if lock(&self.earlier).is_empty() {
            return Ok(());
        }
        put_back(py, &self.earlier, false)?;
        py.import("signal")?.call_method1("set_wakeup_fd", (-1,)).map(drop)
    }
}

/// Sets the handlers of signals that the loop's thread has asked the main thread for, if that is this one.
pub(crate) fn attend_loop(py: Python<'_>) -> PyResult<()> {
    stage(py)?.map_or(Ok(()), |stage| stage.call_method0("attend").map(drop))
}

/// The module with a loop whose application was imported on its thread, if there is one.
fn stage(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let stage = py.import("sys")?.getattr("modules")?.call_method1("get", ("maitred._stage",))?;
    Ok((!stage.is_none()).then_some(stage))
}

/// Installs the handlers that were there before, once. `ends`: the command ends, and SIGINT ends the process until it has.
fn put_back(py: Python<'_>, earlier: &Earlier, ends: bool) -> PyResult<()> {
    let module = py.import("signal")?;
    let raises = module.getattr("default_int_handler")?;
    let earlier = mem::take(&mut *lock(earlier));
    for (number, handler) in earlier {
        // None stands for a handler that Python did not install and cannot put back.
        if handler.is_none(py) {
            continue;
        }
        if ends && handler.is(&raises) {
            // An exception would end the call of ours that it meets, and be lost there.
            RAISES_LATER.store(true, Ordering::Relaxed);
            module.call_method1("signal", (number, module.getattr("SIG_DFL")?))?;
        } else {
            module.call_method1("signal", (number, handler))?;
        }
    }
    Ok(())
}

#[pyclass(frozen, module = "maitred._engine")]
struct SignalHandler {
    signal: Signal,
    previous: Py<PyAny>,
    received: Received,
}

#[pymethods]
impl SignalHandler {
    fn __call__(&self, number: &Bound<'_, PyAny>, frame: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = number.py();
        lock(&self.received).push_back(self.signal);
        let previous = self.previous.bind(py);
        // Python's own handler of SIGINT only raises KeyboardInterrupt; SIG_DFL, SIG_IGN and None
        // are not callable.
        let default = py.import("signal")?.getattr("default_int_handler")?;
        if previous.is_callable() && !previous.is(&default) {
            previous.call1((number, frame))?;
        }
        Ok(())
    }
}

/// An exception of Python as the error of an operation of the system.
pub(crate) fn io_error(py: Python<'_>, error: &PyErr) -> io::Error {
    io::Error::other(report::summary(py, error))
}
