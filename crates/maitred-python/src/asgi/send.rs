//! `send`: a message goes to the exchange at once. The awaitable that it returns only waits for room for more.

use std::ffi::CStr;

use maitred_runtime::{Content, Last};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use pyo3::{ffi, intern};

use super::channel::Channel;
use super::departure::Onward;
use super::http::Http;
use super::message::Message;
use super::pending::{Pending, What};
use super::scope::{EARLY_HINT, LABEL, PATHSEND, TRAILERS};
use super::{head, path_send};
use crate::child;
use crate::native::{Native, Object, answer, object_at};
use crate::report::type_name;
use crate::values::{Lent, latin1_of};

impl Native for Http {
    const NAME: &'static CStr = c"maitred._engine.Send";
    const DOC: &'static CStr = c"await send(message), for one request";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall::<Self>);
}

/// A channel, as the callable `send`.
pub(super) trait Sends: Native + Sized {
    fn send(py: Python<'_>, own: &Object<Self>, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>;
}

pub(super) unsafe extern "C" fn vectorcall<S: Sends>(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        answer(py, || {
            // SAFETY: the interpreter calls this with an object of our type, and with arguments as `argument` wants them.
            let (own, message) = unsafe { (object_at::<S>(py, callable), argument(py, args, nargsf, names)) };
            child::refuse_in_child()?;
            let message =
                message.ok_or_else(|| PyTypeError::new_err("send() takes one argument, the message"))?;
            S::send(py, &own, &message).map(Py::into_ptr)
        })
    })
}

/// The only argument of a call.
///
/// # Safety
/// `args` has as many positional arguments as `nargsf` says, and behind them one for each name of the tuple `names`, which may be
/// null. All are borrowed for the duration of the call.
unsafe fn argument<'py>(
    py: Python<'py>,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: as the caller says. The name is the application's choice as long as there is one argument.
    unsafe {
        let named = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) };
        let only = ffi::PyVectorcall_NARGS(nargsf) + named == 1;
        only.then(|| Bound::from_borrowed_ptr(py, *args))
    }
}

impl Sends for Http {
    fn send(py: Python<'_>, http: &Object<Http>, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let message = Message::new(message)?;
        let adapter = http.adapter();
        let mut turns = false;
        let onward = match kind(&message)? {
            Kind::Start => {
                http.check_start(py)?;
                let (head, trailers) = head::parse(&message)?;
                http.declare(py, head, trailers);
                Onward::Ready
            }
            Kind::Body => {
                let more = head::is_true(&message, intern!(py, "more_body"))?;
                let body = message.get(intern!(py, "body"))?;
                let lent = body.as_ref().and_then(|body| body.cast::<PyBytes>().ok()).map(Lent);
                let last = match (&lent, &body) {
                    (Some(lent), _) => Last::Lent(lent),
                    (None, Some(body)) => Last::Given(copied(body)?),
                    (None, None) => Last::NOTHING,
                };
                let onward = http.send(py, last, more)?;
                turns = onward == Onward::Ready && more && http.has_sent_much();
                onward
            }
            Kind::Path => {
                let range = path_send::open(py, &message)?;
                http.send(py, Last::Given(Content::File(range)), false)?
            }
            Kind::Trailers => {
                let (fields, more) = head::parse_trailers(&message)?;
                http.send_trailers(py, fields, more)?
            }
            Kind::Hint => http.hint(py, head::parse_hint(&message)?)?,
            Kind::Label => {
                if let Some(label) = message.get(intern!(py, "label"))? {
                    http.set_label(&label.str()?.to_string_lossy());
                }
                Onward::Ready
            }
        };
        let what = match onward {
            Onward::Left => What::Turn,
            Onward::Ready if turns => What::Turn,
            Onward::Ready => return Ok(adapter.done.clone_ref(py).into_object()),
            Onward::Full => What::Room,
        };
        let pending = Pending::new(Channel::Http(http.clone_ref(py)), what);
        Ok(adapter.classes.pending.make(py, pending)?.into_object())
    }
}

enum Kind {
    Start,
    Body,
    Path,
    Trailers,
    Hint,
    Label,
}

fn kind(message: &Message<'_, '_>) -> PyResult<Kind> {
    const REMEDY: &str = "it is http.response.start or http.response.body";
    let Some(kind) = message.get(intern!(message.py(), "type"))? else {
        return Err(PyValueError::new_err(format!("the message has no 'type'; {REMEDY}")));
    };
    let Ok(text) = kind.cast::<PyString>() else {
        let given = type_name(&kind);
        return Err(PyTypeError::new_err(format!(
            "the type of a message must be a str, not {given}; {REMEDY}"
        )));
    };
    match latin1_of(text)? {
        Some(b"http.response.start") => Ok(Kind::Start),
        Some(b"http.response.body") => Ok(Kind::Body),
        Some(name) if name == PATHSEND.as_bytes() => Ok(Kind::Path),
        Some(name) if name == TRAILERS.as_bytes() => Ok(Kind::Trailers),
        Some(name) if name == EARLY_HINT.as_bytes() => Ok(Kind::Hint),
        Some(name) if name == LABEL.as_bytes() => Ok(Kind::Label),
        _ => Err(PyRuntimeError::new_err(format!(
            "a message of type {:?} cannot be sent for an HTTP request; {REMEDY}",
            text.to_string_lossy()
        ))),
    }
}

pub(super) fn copied(body: &Bound<'_, PyAny>) -> PyResult<Content> {
    if let Ok(bytes) = body.cast::<PyByteArray>() {
        return Ok(Content::Bytes(bytes.to_vec()));
    }
    let copied = PyBuffer::<u8>::get(body).and_then(|buffer| buffer.to_vec(body.py()));
    copied.map(Content::Bytes).map_err(|_| {
        let given = type_name(body);
        let remedy = if body.is_instance_of::<PyString>() { "; encode it" } else { "" };
        PyTypeError::new_err(format!("the body must be bytes, not {given}{remedy}"))
    })
}
