//! The coroutine that the Task of a request runs.
//!
//! ```text
//! Fresh --first step: app(scope, receive, send)--> Suspended --steps--> Over: the exchange has its end
//! ```
//! Values that the application's coroutine yields pass through, and so do values and exceptions that are sent to it.
//! Its return or exception is the only end of the exchange.
//!
//! A Task that is suspended is held by its own coroutine until that is over: asyncio itself keeps weak
//! references only.

use std::ffi::{CStr, c_void};
use std::mem;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::asyncio::CancelledError;
use pyo3::exceptions::{PyGeneratorExit, PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};

use super::adapter::Served;
use super::channel::Channel;
use super::current;
use super::http::Ended;
use super::receive::Receive;
use super::steps::{self, Step, Steps, thrown};
use super::waiting::Waits;
use crate::child;
use crate::database::{self, DatabaseCounts};
use crate::held::Held;
use crate::native::{Native, Object, answer, slot, value_of};
use crate::outgoing::{self, RequestCalls};
use crate::report::{self, type_name};

pub(super) struct Coroutine {
    channel: Channel,
    served: Arc<Served>,
    state: Mutex<State>,
}

struct State {
    life: Life,
    /// The Task, while it is suspended or has not taken its first step.
    task: Option<(Held<PyAny>, Option<Waits>)>,
}

enum Life {
    Fresh { scope: Held<PyDict>, receive: Object<Receive>, counts: Counts },
    Running,
    Suspended { inner: Held<PyAny> },
    Over,
}

/// The counts of a request in its context: of databases, and of calls to other servers.
type Counts = (Option<Held<DatabaseCounts>>, Option<Held<RequestCalls>>);

fn enter(py: Python<'_>, (databases, calls): &Counts) -> PyResult<()> {
    if let Some(counts) = databases {
        database::enter(py, counts)?;
    }
    if let Some(calls) = calls {
        outgoing::enter(py, calls)?;
    }
    Ok(())
}

impl Coroutine {
    pub(super) fn new(
        channel: Channel,
        served: Arc<Served>,
        scope: Py<PyDict>,
        receive: Object<Receive>,
        counts: Counts,
    ) -> Self {
        let life = Life::Fresh { scope: Held::new(scope), receive, counts };
        Self { channel, served, state: Mutex::new(State { life, task: None }) }
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state().life, Life::Fresh { .. })
    }

    /// Holds its Task until it is over.
    pub(super) fn hold(&self, task: Py<PyAny>) {
        let mut state = self.state();
        if !matches!(state.life, Life::Over) {
            let waits = self.channel.counts_as_waiting().then(|| self.channel.adapter().waiting.one());
            state.task = Some((Held::new(task), waits));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.state().life {
            Life::Suspended { inner } => Some(inner.clone_ref(py)),
            _ => None,
        }
    }

    fn start(&self, py: Python<'_>, scope: &Py<PyDict>, receive: &Object<Receive>) -> PyResult<Held<PyAny>> {
        let application = self.served.application.as_ptr();
        let args = [ptr::null_mut(), scope.as_ptr(), receive.as_ptr(), self.channel.as_ptr()];
        // SAFETY: all are valid objects of this interpreter. The place in front of the arguments is the
        // callee's to use, as the flag says. The result is a new reference, or null with an exception set.
        let result = unsafe {
            let count = 3 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
            let result = ffi::PyObject_Vectorcall(application, args[1..].as_ptr(), count, ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, result)?
        };
        awaited(result).map(Held::from)
    }

    fn after(&self, py: Python<'_>, inner: Option<Held<PyAny>>, stepped: PyResult<Step>) -> PyResult<Step> {
        if child::is_child() {
            end_child(py, &stepped);
        }
        match stepped {
            Ok(Step::Yield(value)) => {
                // Without one it cannot be suspended.
                if let Some(inner) = inner {
                    self.state().life = Life::Suspended { inner };
                }
                Ok(Step::Yield(value))
            }
            Ok(Step::Return(_)) => {
                drop(inner);
                self.end(py, Finish::Returned)
            }
            Err(error) => {
                drop(inner);
                self.end(py, Finish::Raised(error))
            }
        }
    }

    /// Ends the exchange. Only errors that asyncio has to know of go on.
    fn end(&self, py: Python<'_>, finish: Finish) -> PyResult<Step> {
        let (life, task) = {
            let mut state = self.state();
            (mem::replace(&mut state.life, Life::Over), state.task.take())
        };
        drop((life, task));
        let reason = || match &finish {
            Finish::Returned => "the application returned before the end of the response".to_owned(),
            Finish::Raised(error) => format!("the application raised {}", report::summary(py, error)),
            Finish::Closed => CLOSED.to_owned(),
        };
        let failed = !matches!(finish, Finish::Returned);
        let ended = self.channel.end(py, failed, reason);
        let error = match finish {
            Finish::Raised(error) => error,
            Finish::Returned => {
                match ended {
                    Ended::Complete | Ended::PeerGone => {}
                    Ended::Unanswered => {
                        self.report(py, "the application returned without a response", self.dropped());
                    }
                    Ended::Unfinished => {
                        let details =
                            format!("the last http.response.body is the one without more_body\n{}", self.dropped());
                        self.report(py, "the application returned before the end of its response", &details);
                    }
                    Ended::Untrailed => self.report(
                        py,
                        "the application returned without the trailers that it had announced",
                        "http.response.start had \"trailers\": True, so that http.response.trailers comes after the last \
                         http.response.body, the last one without more_trailers",
                    ),
                }
                return Ok(Step::Return(py.None()));
            }
            Finish::Closed => {
                if matches!(ended, Ended::Unanswered | Ended::Unfinished | Ended::Untrailed) {
                    self.report(py, CLOSED, "");
                }
                return Ok(Step::Return(py.None()));
            }
        };
        if !self.is_told(py, &error, ended) {
            let text = report::traceback(py, &error);
            self.report(py, "the application raised an exception", &text);
        }
        // asyncio has to know that its Task was cancelled. Every other exception would be reported a second time, and
        // SystemExit would stop the loop and so all other requests: like any other exception of a request it is that
        // request's own affair.
        match error.is_instance_of::<CancelledError>(py) {
            true => Err(error),
            false => Ok(Step::Return(py.None())),
        }
    }

    /// Whether the log has this end already: the peer has left, or the server has ended and cancelled the requests that
    /// were still running.
    fn is_told(&self, py: Python<'_>, error: &PyErr, ended: Ended) -> bool {
        let adapter = self.channel.adapter();
        if error.is_instance_of::<CancelledError>(py) {
            return ended == Ended::PeerGone || adapter.polling.has_ended();
        }
        ended == Ended::PeerGone && adapter.is_disconnect(py, error)
    }

    fn dropped(&self) -> &'static str {
        if self.served.pathsend {
            "--pathsend offers http.response.pathsend: a middleware that does not know this message drops it; then leave \
             --pathsend out"
        } else {
            ""
        }
    }

    /// One entry: `GET /path: what` and the details below.
    fn report(&self, py: Python<'_>, what: &str, details: &str) {
        let name = self.channel.name(py);
        let entry = format!("{name}: {what}\n{details}");
        report::write(py, &self.channel.adapter().log, entry.trim_end());
    }
}

enum Finish {
    Returned,
    Raised(PyErr),
    /// `close()` was called while it was suspended, and it has let itself be closed.
    Closed,
}

const CLOSED: &str = "the request's coroutine was closed before the end of the response";

/// Ends a child process that the application has forked within this step.
fn end_child(py: Python<'_>, stepped: &PyResult<Step>) {
    let error = match stepped {
        Ok(Step::Return(_)) => None,
        // The loop's descriptors are the parent's.
        Ok(Step::Yield(_)) => {
            Some(&PyRuntimeError::new_err("a child process of the server cannot wait in its event loop"))
        }
        Err(error) => Some(error),
    };
    child::end_if_child(py, error);
}

fn awaited(object: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = object.py();
    // SAFETY: both read the type of a valid object. The slot has the signature its place says; its result
    // is a new reference, or null with an exception set.
    unsafe {
        if ffi::PyCoro_CheckExact(object.as_ptr()) == 1 {
            return Ok(object);
        }
        let methods = (*ffi::Py_TYPE(object.as_ptr())).tp_as_async;
        if let Some(awaits) = methods.as_ref().and_then(|methods| methods.am_await) {
            return Bound::from_owned_ptr_or_err(py, awaits(object.as_ptr()));
        }
    }
    let given = type_name(&object);
    Err(PyTypeError::new_err(format!(
        "the application returned {given}, which cannot be awaited; an ASGI application is an async \
         callable, a WSGI one is served with --interface wsgi"
    )))
}

fn send(inner: &Py<PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Step> {
    let py = value.py();
    let mut result = ptr::null_mut();
    // SAFETY: two valid objects and a place for the result, which is a new reference unless it is an error.
    unsafe {
        match ffi::PyIter_Send(inner.as_ptr(), value.as_ptr(), &mut result) {
            ffi::PySendResult::PYGEN_NEXT => Ok(Step::Yield(Bound::from_owned_ptr(py, result).unbind())),
            ffi::PySendResult::PYGEN_RETURN => Ok(Step::Return(Bound::from_owned_ptr(py, result).unbind())),
            ffi::PySendResult::PYGEN_ERROR => Err(PyErr::fetch(py)),
        }
    }
}

/// `inner.throw(...)`. An iterator that cannot be thrown into ends there.
fn throw(inner: &Bound<'_, PyAny>, arguments: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let py = inner.py();
    let Some(method) = inner.getattr_opt(intern!(py, "throw"))? else { return Err(thrown(arguments)) };
    match method.call1(arguments) {
        Ok(value) => Ok(Step::Yield(value.unbind())),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            Ok(Step::Return(error.value(py).getattr(intern!(py, "value"))?.unbind()))
        }
        Err(error) => Err(error),
    }
}

impl Steps for Coroutine {
    fn step(&self, value: &Bound<'_, PyAny>) -> PyResult<Step> {
        let py = value.py();
        let before = mem::replace(&mut self.state().life, Life::Running);
        let inside = current::enter(self.channel.title());
        let (inner, stepped) = match before {
            Life::Suspended { inner } => {
                let stepped = send(&inner, value);
                (Some(inner), stepped)
            }
            Life::Fresh { scope, receive, counts } => {
                // The context is the Task's own, and ends with it.
                let entered = enter(py, &counts);
                let start = || entered.and_then(|()| self.start(py, &scope, &receive));
                self.channel.adapter().polling.first_step(|| match start() {
                    Ok(inner) => {
                        let stepped = send(&inner, value);
                        (Some(inner), stepped)
                    }
                    Err(error) => (None, Err(error)),
                })
            }
            Life::Running => return Err(PyValueError::new_err("the coroutine is already running")),
            Life::Over => {
                self.state().life = Life::Over;
                return Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine"));
            }
        };
        drop(inside);
        self.after(py, inner, stepped)
    }

    fn throw(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Step> {
        let py = arguments.py();
        let before = mem::replace(&mut self.state().life, Life::Running);
        let inside = current::enter(self.channel.title());
        let (inner, stepped) = match before {
            Life::Suspended { inner } => {
                let stepped = throw(inner.bind(py), arguments);
                (Some(inner), stepped)
            }
            Life::Fresh { .. } => (None, Err(thrown(arguments))),
            Life::Running => return Err(PyValueError::new_err("the coroutine is already running")),
            Life::Over => {
                self.state().life = Life::Over;
                return Err(thrown(arguments));
            }
        };
        drop(inside);
        self.after(py, inner, stepped)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if matches!(self.state().life, Life::Running) {
            return Err(PyValueError::new_err("the coroutine is already running"));
        }
        let closed = match self.inner(py) {
            Some(inner) => inner.call_method0(py, intern!(py, "close")).map(drop),
            None => Ok(()),
        };
        let finish = match closed {
            Err(error) if !error.is_instance_of::<PyGeneratorExit>(py) => Finish::Raised(error),
            _ => Finish::Closed,
        };
        self.end(py, finish).map(drop)
    }
}

impl Native for Coroutine {
    const NAME: &'static CStr = c"maitred._engine.Request";
    const DOC: &'static CStr = c"The coroutine of one request";
    const CALL: Option<ffi::vectorcallfunc> = None;

    fn slots() -> Vec<ffi::PyType_Slot> {
        let property = |name: &'static CStr, get: ffi::getter| ffi::PyGetSetDef {
            name: name.as_ptr(),
            get: Some(get),
            ..Default::default()
        };
        // The attributes of coroutines that debuggers, asyncio's own texts and Task.get_stack() read.
        let properties = vec![
            property(c"__qualname__", name),
            property(c"__name__", name),
            property(c"cr_await", cr_await),
            property(c"cr_frame", cr_frame),
            property(c"cr_code", cr_code),
            property(c"cr_running", cr_running),
            ffi::PyGetSetDef::default(), // Ends the list.
        ];
        let properties = Box::leak(properties.into_boxed_slice()).as_mut_ptr();
        let mut slots = steps::slots::<Self>();
        slots.push(slot(ffi::Py_tp_getset, properties.cast()));
        slots.push(slot(ffi::Py_tp_repr, repr as *mut c_void));
        slots
    }
}

unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type.
            let this = unsafe { value_of::<Coroutine>(object) };
            let text = format!("<request {}>", this.channel.name(py));
            Ok(text.into_pyobject(py)?.into_any().unbind().into_ptr())
        })
    })
}

unsafe extern "C" fn name(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: as above.
            let this = unsafe { value_of::<Coroutine>(object) };
            Ok(this.channel.name(py).into_pyobject(py)?.into_any().unbind().into_ptr())
        })
    })
}

/// The attribute of the application's coroutine; None without one.
unsafe fn of_inner(object: *mut ffi::PyObject, attribute: &CStr) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls the functions below with an object of our type.
            let this = unsafe { value_of::<Coroutine>(object) };
            let attribute = attribute.to_string_lossy();
            let value = match this.inner(py) {
                Some(inner) => inner.bind(py).getattr_opt(&*attribute)?.map(Bound::unbind),
                None => None,
            };
            Ok(value.unwrap_or_else(|| py.None()).into_ptr())
        })
    })
}

unsafe extern "C" fn cr_frame(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: an object of our type.
    unsafe { of_inner(object, c"cr_frame") }
}

unsafe extern "C" fn cr_code(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: an object of our type.
    unsafe { of_inner(object, c"cr_code") }
}

unsafe extern "C" fn cr_await(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: an object of our type.
            let this = unsafe { value_of::<Coroutine>(object) };
            Ok(this.inner(py).unwrap_or_else(|| py.None()).into_ptr())
        })
    })
}

unsafe extern "C" fn cr_running(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: an object of our type.
            let this = unsafe { value_of::<Coroutine>(object) };
            let running = matches!(this.state().life, Life::Running);
            Ok(running.into_pyobject(py)?.to_owned().into_any().unbind().into_ptr())
        })
    })
}
