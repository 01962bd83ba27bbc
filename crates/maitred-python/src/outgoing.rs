//! The calls of a request to other servers, and the observer of all calls.
//!
//! ```text
//! import of maitred.http: count_calls ──> each request from then on: calls_of, enter ──> a call: begin, note_request, then the client's begin ──> leave
//! ```
//! Promises: a call counts for the request in whose context it is made (PEP 567), on any thread or task. Outside of requests, and without a
//! running server, a call costs a load here. Leaves out: the calls (`client/`), and the counts (`Calls` of maitred-exchange).

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use maitred_client::key::Key;
use maitred_client::{Observer, Phase, Report};
use maitred_http::{FieldSet, Method};
use maitred_io::tasks;
use maitred_runtime::{Begun, CallFacts, Exchange, Outgoing, outgoing};
use maitred_server::{RequestId, span_id};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{ffi, intern};

use crate::child;
use crate::held::Held;
use crate::report::{self, ErrorSink};

static COUNTS: AtomicBool = AtomicBool::new(false);
static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static CALLS: OnceLock<Arc<dyn Observer>> = OnceLock::new();

thread_local! {
    /// The request of the call that this thread is about to begin.
    static NOTED: RefCell<Option<Begun>> = const { RefCell::new(None) };
}

const PARENT: &str = "traceparent";

/// The fields of a request that its calls pass on as they are: the trace (W3C Trace Context). Where the server traces, each call has a
/// parent of its own.
const PASSED: [&str; 2] = [PARENT, "tracestate"];

/// The calls of one request, as the value of the context variable.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct RequestCalls {
    outgoing: Arc<Outgoing>,
    passed: Vec<(&'static str, Box<[u8]>)>,
}

/// Requests have their calls counted from now on. A client may be made within a request, which then counts as well: so the import of
/// `maitred.http` says this.
///
/// # Errors
/// There is no memory.
#[pyfunction]
pub(crate) fn count_calls(py: Python<'_>) -> PyResult<()> {
    CURRENT.get_or_try_init(py, || {
        let variable = py.import("contextvars")?.getattr("ContextVar")?;
        let default = pyo3::types::PyDict::new(py);
        default.set_item(intern!(py, "default"), py.None())?;
        variable.call((intern!(py, "maitred_calls"),), Some(&default)).map(Bound::unbind)
    })?;
    outgoing::set_running(|| NOTED.take());
    COUNTS.store(true, Ordering::Release);
    Ok(())
}

/// The observer for every client of this process.
pub(crate) fn observer() -> Arc<dyn Observer> {
    Arc::new(Spans)
}

/// The server of this process takes the reports from now on.
pub(crate) fn report_to(calls: Arc<dyn Observer>) {
    CALLS.get_or_init(|| calls);
}

/// The call that is about to begin, for the request of the present context. Called with the interpreter, which the client has not.
/// `pass_on` gets the fields that the call passes on: the trace, and the id by which the logs name the request.
pub(crate) fn begin(
    py: Python<'_>,
    method: &Method,
    target: &[u8],
    pass_on: Option<&mut FieldSet>,
) -> Option<Begun> {
    let calls = current(py)?;
    let RequestCalls { outgoing, passed } = calls.get();
    let call = outgoing.trace().map(|place| {
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let facts = CallFacts { span: span_id(), method: method.clone(), path: path.into() };
        (place.parent_field(facts.span), Box::new(facts))
    });
    if let Some(fields) = pass_on {
        if let Some((parent, _)) = &call {
            fields.push_missing(PARENT, parent);
        }
        for (name, value) in passed {
            fields.push_missing(name, value);
        }
        let id = RequestId::named(outgoing.given(), outgoing.request()).to_string();
        fields.push_missing("x-request-id", id.as_bytes());
    }
    self::calls()?;
    Some(Begun { outgoing: Arc::clone(outgoing), call: call.map(|(_, facts)| facts) })
}

/// Has the next call that begins on this thread count for that request.
pub(crate) fn note(begun: Option<Begun>) {
    NOTED.set(begun);
}

fn current(py: Python<'_>) -> Option<Bound<'_, RequestCalls>> {
    let current = CURRENT.get(py)?;
    let mut value = std::ptr::null_mut();
    // SAFETY: `current` is a context variable, and this thread has the interpreter; a value that is found is a new reference.
    let found = unsafe { ffi::PyContextVar_Get(current.as_ptr(), std::ptr::null_mut(), &raw mut value) };
    if found < 0 {
        drop(PyErr::take(py));
        return None;
    }
    // SAFETY: the reference is ours, or there is none.
    let value = unsafe { Bound::from_owned_ptr_or_opt(py, value) }?;
    value.cast_into::<RequestCalls>().ok()
}

/// The counts of the server, if there is one and this process is not its child.
fn calls() -> Option<&'static Arc<dyn Observer>> {
    CALLS.get().filter(|_| !child::is_child())
}

struct Spans;

/// Without a server a call has the number of its thread.
const OF_THREAD: u64 = 1 << 62;

impl Observer for Spans {
    fn begun(&self, key: &Key) -> u64 {
        let thread = || OF_THREAD | u64::from(tasks::own().unsigned_abs());
        calls().map_or_else(thread, |calls| calls.begun(key))
    }

    fn phase(&self, number: u64, phase: Phase) {
        if number & OF_THREAD == 0
            && let Some(calls) = calls()
        {
            calls.phase(number, phase);
        }
    }

    fn ended(&self, number: u64, key: &Key, report: &Report) {
        if number & OF_THREAD == 0
            && let Some(calls) = calls()
        {
            calls.ended(number, key, report);
        }
    }

    fn describe(&self, number: u64) -> Option<String> {
        if number & OF_THREAD == 0 { calls()?.describe(number) } else { Some(tasks::describe(number as i32)) }
    }
}

/// Has the engine read the calls of this exchange's request, and makes the object that [`enter`] takes. Costs one load when there is no
/// client.
pub(crate) fn calls_of(py: Python<'_>, exchange: &mut Exchange) -> PyResult<Option<Held<RequestCalls>>> {
    if !COUNTS.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let request = exchange.request_mut();
    let given = RequestId::of(&request.head.fields, request.number).given();
    let outgoing = Arc::new(Outgoing::of(request.number).with_id(given).traced(request.head.trace));
    request.outgoing = Some(Arc::clone(&outgoing));
    let value = |name: &'static str| Some((name, request.head.fields.first(name)?.into()));
    let passed = PASSED.into_iter().filter_map(value).collect();
    Py::new(py, RequestCalls { outgoing, passed }).map(|calls| Some(Held::new(calls)))
}

/// Calls of the current context count there from now on; returns the value for [`leave`].
pub(crate) fn enter(py: Python<'_>, calls: &Py<RequestCalls>) -> PyResult<Option<Py<PyAny>>> {
    let Some(current) = CURRENT.get(py) else { return Ok(None) };
    // SAFETY: `current` is a context variable, and this thread has the interpreter; the token is a new reference.
    let token =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContextVar_Set(current.as_ptr(), calls.as_ptr())) }?;
    Ok(Some(token.unbind()))
}

/// Calls of this context count as before.
pub(crate) fn leave(py: Python<'_>, token: Py<PyAny>, log: &ErrorSink) {
    let Some(current) = CURRENT.get(py) else { return };
    if let Err(error) = current.call_method1(py, intern!(py, "reset"), (token,)) {
        report::write(py, log, &report::traceback(py, &error));
    }
}
