//! `send`: a message goes to the exchange at once. The awaitable that it returns only waits for room for more.
//!
//! Sections below: a message as it can be asked; its heads and fields, checked; and the file that it names.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maitred_http::{FieldSet, Status};
use maitred_runtime::{Content, FileRange, Last};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyList, PyMapping, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::channel::Channel;
use super::departure::Onward;
use super::http::Http;
use super::receive::{Pending, What};
use super::scope::{EARLY_HINT, LABEL, PATHSEND, TRAILERS};
use crate::child;
use crate::native::{Native, Object, answer, object_at};
use crate::report::{found, type_name};
use crate::values::{self, Declared, Lent, latin1_of};

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
                let (head, trailers) = parse_start(&message)?;
                http.declare(py, head, trailers);
                Onward::Ready
            }
            Kind::Body => {
                let more = is_true(&message, intern!(py, "more_body"))?;
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
                let range = open_path(py, &message)?;
                http.send(py, Last::Given(Content::File(range)), false)?
            }
            Kind::Trailers => {
                let (fields, more) = parse_trailers(&message)?;
                http.send_trailers(py, fields, more)?
            }
            Kind::Hint => http.hint(py, parse_hint(&message)?)?,
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

// ---- A message ----

/// A message that an application passes to `send`: a dictionary, or anything that can be asked like one.
pub(super) enum Message<'a, 'py> {
    Dict(&'a Bound<'py, PyDict>),
    Other(&'a Bound<'py, PyMapping>),
}

impl<'a, 'py> Message<'a, 'py> {
    pub(super) fn new(message: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(dict) = message.cast::<PyDict>() {
            return Ok(Self::Dict(dict));
        }
        message.cast::<PyMapping>().map(Self::Other).map_err(|_| {
            PyTypeError::new_err(format!("send() takes a dict with a 'type', not {}", type_name(message)))
        })
    }

    pub(super) fn py(&self) -> Python<'py> {
        match self {
            Self::Dict(dict) => dict.py(),
            Self::Other(mapping) => mapping.py(),
        }
    }

    pub(super) fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Dict(dict) => dict.get_item(key),
            Self::Other(mapping) => match mapping.get_item(key) {
                Ok(value) => Ok(Some(value)),
                Err(error) if error.is_instance_of::<PyKeyError>(self.py()) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }
}

// ---- Heads and fields ----

/// The head of `http.response.start`, and whether trailers are announced.
pub(super) fn parse_start(message: &Message<'_, '_>) -> PyResult<(Declared, bool)> {
    let py = message.py();
    let Some(status) = message.get(intern!(py, "status"))? else {
        return Err(PyValueError::new_err("http.response.start has no 'status'; it is an int such as 200"));
    };
    let mut declared = Declared::new(parse_status(&status)?, None);
    match message.get(intern!(py, "headers"))? {
        Some(headers) if !headers.is_none() => push_all(&headers, |name, value| declared.push(name, value))?,
        _ => {}
    }
    Ok((declared, is_true(message, intern!(py, "trailers"))?))
}

fn parse_trailers(message: &Message<'_, '_>) -> PyResult<(FieldSet, bool)> {
    let py = message.py();
    let mut fields = FieldSet::new();
    match message.get(intern!(py, "headers"))? {
        Some(headers) if !headers.is_none() => {
            push_all(&headers, |name, value| values::push(&mut fields, name, value))?;
        }
        _ => {}
    }
    Ok((fields, is_true(message, intern!(py, "more_trailers"))?))
}

pub(super) fn is_true<'py>(message: &Message<'_, 'py>, key: &Bound<'py, PyString>) -> PyResult<bool> {
    message.get(key)?.map_or(Ok(false), |value| value.is_truthy())
}

/// The interim response of `http.response.early_hint`: each of its `links` is the value of a field `Link`.
fn parse_hint(message: &Message<'_, '_>) -> PyResult<Declared> {
    let mut declared = Declared::new(Status::EARLY_HINTS, None);
    let Some(links) = message.get(intern!(message.py(), "links"))? else {
        return Err(PyValueError::new_err("http.response.early_hint has no 'links'; it is a list of bytes"));
    };
    let wrong = || {
        PyTypeError::new_err(format!(
            "the links of http.response.early_hint must be an iterable of bytes, not {}",
            found(&links)
        ))
    };
    if links.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    for link in links.try_iter().map_err(|_| wrong())? {
        let link = link?;
        let Ok(value) = link.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err(format!("a link must be bytes, not {}", found(&link))));
        };
        declared.push(b"Link", value.as_bytes())?;
    }
    Ok(declared)
}

fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<Status> {
    let number = status.extract::<i64>().map_err(|_| {
        if status.is_instance_of::<PyInt>() {
            // Python itself refuses to write very long ones.
            return PyValueError::new_err("the status must be from 200 to 999, not an int beyond 64 bits");
        }
        PyTypeError::new_err(format!("the status must be an int such as 200, not {}", type_name(status)))
    })?;
    match u16::try_from(number).ok().filter(|code| *code >= 200).and_then(Status::from_code) {
        Some(status) => Ok(status),
        None if (100..200).contains(&number) => Err(PyValueError::new_err(format!(
            "{number} is an interim status; http.response.start takes the final one"
        ))),
        None => Err(PyValueError::new_err(format!("the status must be from 200 to 999, not {number}"))),
    }
}

/// Takes any iterable of pairs; nearly all applications send lists of tuples or of lists.
pub(super) fn push_all(
    headers: &Bound<'_, PyAny>,
    mut append: impl FnMut(&[u8], &[u8]) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(list) = headers.cast::<PyList>() {
        for item in list {
            push(&item, &mut append)?;
        }
        return Ok(());
    }
    let items = headers.try_iter().map_err(|_| {
        let given = found(headers);
        PyTypeError::new_err(format!("the headers must be an iterable of pairs of bytes, not {given}"))
    })?;
    for item in items {
        push(&item?, &mut append)?;
    }
    Ok(())
}

fn push(item: &Bound<'_, PyAny>, append: &mut impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
    if let Ok(pair) = item.cast::<PyTuple>()
        && pair.len() == 2
    {
        let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        return append(bytes_of(&name, "name")?, bytes_of(&value, "value")?);
    }
    let wrong = || {
        let given = found(item);
        PyTypeError::new_err(format!("a header must be a pair (name, value) of bytes, not {given}"))
    };
    let mut parts = item.try_iter().map_err(|_| wrong())?;
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(value), None) => append(bytes_of(&name?, "name")?, bytes_of(&value?, "value")?),
        _ => Err(wrong()),
    }
}

fn bytes_of<'a>(object: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a [u8]> {
    object.cast::<PyBytes>().map(|bytes| bytes.as_bytes()).map_err(|_| {
        let given = type_name(object);
        PyTypeError::new_err(format!("a header's {what} must be bytes, not {given}; encode it as Latin-1"))
    })
}

// ---- A file that the application names (ASGI extensions, "Path Send") ----

/// The file of the message, all of it. Its path is the application's, as that of a file it opens itself: it is not looked at further.
fn open_path(py: Python<'_>, message: &Message<'_, '_>) -> PyResult<FileRange> {
    let Some(path) = message.get(intern!(py, "path"))? else {
        return Err(PyValueError::new_err("http.response.pathsend has no 'path', which names the file"));
    };
    let path: PathBuf = path
        .extract()
        .map_err(|_| PyTypeError::new_err("the path of http.response.pathsend must be a str"))?;
    if !path.is_absolute() {
        let shown = path.display();
        return Err(PyValueError::new_err(format!(
            "the path of http.response.pathsend must be absolute, not {shown}"
        )));
    }
    py.detach(|| regular(&path)).map_err(|error| match error.raw_os_error() {
        // The subclass that Python has for it, such as FileNotFoundError.
        Some(number) => PyOSError::new_err((number, error.to_string(), path.into_os_string())),
        None => PyOSError::new_err(error.to_string()),
    })
}

/// Opens a regular file. Nothing else is waited for: a FIFO would not open without a writer.
fn regular(path: &Path) -> io::Result<FileRange> {
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(FileRange { file: Arc::new(file), offset: 0, length: facts.len() })
}
