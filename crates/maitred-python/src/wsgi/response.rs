//! `start_response` and `write`: the state of one response.
//!
//! ```text
//! Waiting(no head) --start_response--> Waiting(head) --first block--> Streaming --end--> Over
//!        |                              ^  |  start_response(exc_info)
//!        |                              `--'
//!        `--failure--> Over (500)                    Streaming --failure--> Over (cut)
//!                                                    Streaming --nothing of the body is sent--> Unwanted
//! ```
//! `Busy` stands in for the part that one thread has taken out for a call of the engine. While the phase is locked
//! values are moved and questions are asked, and nothing else: no Python code runs and the interpreter is not released,
//! because a thread that waits for the lock while attached would stop the other from coming back.
//!
//! In a child process nothing is sent (`child`).
//!
//! Sections below: start_response and write, as Python sees them; the arguments of start_response.

use std::ffi::CStr;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Content, Exchange, FileRange, Flow, Last, SendError, Stream};
use pyo3::exceptions::{
    PyAssertionError, PyBrokenPipeError, PyConnectionResetError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::native::{Native, Object, answer, object_at};
use crate::report::{found, type_name};
use crate::route::{Dictionary, Interface};
use crate::unwanted::Unwanted;
use crate::values::{Declared, Lent, latin1_of};
use crate::{child, values};

/// How long one wait for a slow reader lasts before it is entered again. The engine's own time
/// limits end the wait for a reader that stands still; this is only a granularity.
const WAIT_SLICE: Duration = Duration::from_secs(10);

/// A body from this size on is given to the engine as a block before the end of the response, so that this thread can
/// write bytes that the reader does not take to a file, if there are too many. Below, the engine's own thread does it.
pub(super) const LARGE: u64 = 128 * 1024;

const FAILURE_TEXT: &str = "The application failed to answer this request.\n";

enum Phase {
    Waiting {
        exchange: Exchange,
        declared: Option<Declared>,
    },
    Streaming {
        stream: Stream,
        full: bool,
    },
    Busy,
    /// The response is complete; the rest of the application's body is dropped.
    Unwanted(Unwanted),
    Over {
        peer_gone: bool,
    },
}

pub(super) enum Unsent {
    /// `start_response` was not called yet.
    NoHead,
    /// Another thread is sending, or the response has ended.
    NotOpen(&'static str),
    Refused(SendError),
    /// The response is complete without it.
    Unwanted,
}

impl Unsent {
    fn into_error(self) -> PyErr {
        match self {
            Self::NoHead => PyAssertionError::new_err("write() before start_response()"),
            Self::NotOpen(text) => PyRuntimeError::new_err(text),
            Self::Unwanted => PyRuntimeError::new_err("no part of the response body is sent"),
            Self::Refused(SendError::Closed) => {
                PyBrokenPipeError::new_err("the client closed the connection")
            }
            Self::Refused(error) => PyValueError::new_err(error.to_string()),
        }
    }
}

pub(super) struct Response {
    phase: Mutex<Phase>,
    is_head: bool,
    environ: Dictionary,
}

impl Response {
    pub(super) fn new(exchange: Exchange, is_head: bool, environ: &Bound<'_, PyDict>) -> Self {
        let environ = Dictionary::new(Interface::Wsgi, environ);
        Self { phase: Mutex::new(Phase::Waiting { exchange, declared: None }), is_head, environ }
    }

    /// Sets the route's name by the application, if it has not been asked for before.
    pub(super) fn name_route(&self, py: Python<'_>) {
        if let Some(route) = self.environ.route(py)
            && let Phase::Waiting { exchange, .. } = &mut *self.phase()
        {
            exchange.name_route(&route);
        }
    }

    /// The application has had its time to name the route.
    pub(super) fn forget_environ(&self) {
        self.environ.forget();
    }

    // A panic cannot leave a half-made phase behind: phases are replaced whole.
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn declare(
        &self,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let exc_info = exc_info.filter(|value| !value.is_none());
        let parsed = match exc_info {
            // Once the head is sent the exception goes on; the new head is not looked at.
            Some(exc_info) if !matches!(*self.phase(), Phase::Waiting { .. }) => {
                return Err(exception_of(exc_info)?);
            }
            _ => parse(status, headers)?,
        };
        // Now, since Flask drops the object with the route when its call ends.
        self.name_route(status.py());
        match &mut *self.phase() {
            Phase::Waiting { declared, .. } if declared.is_none() || exc_info.is_some() => {
                *declared = Some(parsed);
                Ok(())
            }
            Phase::Over { .. } => {
                Err(PyAssertionError::new_err("start_response() after the end of the response"))
            }
            _ => Err(PyAssertionError::new_err("start_response() called a second time without exc_info")),
        }
    }

    pub(super) fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        if data.as_bytes().is_empty() {
            return Ok(());
        }
        match self.send(py, values::content(data), None) {
            Err(Unsent::Unwanted) => Ok(()),
            sent => sent.map_err(Unsent::into_error),
        }
    }

    /// Sends one block at once; `whole` is the length of the whole body if that is known.
    ///
    /// While the engine holds as much as it may of this response in memory, a block of a body that is still being made
    /// waits first, with the interpreter released, until that is in a file. So the last block does not wait, and
    /// neither does any block of a body that is complete, unless all responses together hold too much.
    pub(super) fn send(&self, py: Python<'_>, block: Content, whole: Option<u64>) -> Result<(), Unsent> {
        let (mut stream, full) = self.open_stream(whole, block.len())?;
        let room = match full && whole.is_none() {
            true => py.detach(|| wait_for_room(&mut stream)),
            false => Ok(()),
        };
        let length = block.len();
        let sent = room.and_then(|()| stream.send(block)).and_then(|flow| {
            if stream.is_tight(length) {
                py.detach(|| stream.relieve())?;
            }
            Ok(flow)
        });
        if sent == Err(SendError::Closed) {
            *self.phase() = Phase::Over { peer_gone: true };
            stream.abort("the peer closed the connection");
        } else if sent == Err(SendError::Unwanted) {
            *self.phase() = Phase::Unwanted(Unwanted::now());
            stream.finish();
            return Err(Unsent::Unwanted);
        } else {
            *self.phase() = Phase::Streaming { stream, full: sent == Ok(Flow::Full) };
        }
        sent.map(drop).map_err(Unsent::Refused)
    }

    /// Takes the stream out for a block of `next` bytes, starting it if need be, and whether it is full. The phase is busy
    /// until it is put back.
    fn open_stream(&self, whole: Option<u64>, next: u64) -> Result<(Stream, bool), Unsent> {
        not_in_child()?;
        let mut phase = self.phase();
        let (exchange, Declared { head, length }) = match mem::replace(&mut *phase, Phase::Busy) {
            Phase::Streaming { stream, full } => return Ok((stream, full)),
            Phase::Waiting { exchange, declared: Some(declared) } => (exchange, declared),
            unchanged @ Phase::Waiting { .. } => {
                *phase = unchanged;
                return Err(Unsent::NoHead);
            }
            Phase::Busy => return Err(Unsent::NotOpen("two threads write to one response at the same time")),
            Phase::Unwanted(mut unwanted) => {
                let ends = unwanted.has_to_end(next);
                *phase = if ends { Phase::Over { peer_gone: true } } else { Phase::Unwanted(unwanted) };
                return Err(if ends { Unsent::Refused(SendError::Closed) } else { Unsent::Unwanted });
            }
            Phase::Over { peer_gone } => {
                *phase = Phase::Over { peer_gone };
                return Err(match peer_gone {
                    true => Unsent::Refused(SendError::Closed),
                    false => Unsent::NotOpen("the response has ended"),
                });
            }
        };
        drop(phase);
        let started = exchange.start(&head, length.or(whole)).map_err(|error| {
            *self.phase() = Phase::Over { peer_gone: error == SendError::Closed };
            Unsent::Refused(error)
        });
        Declared::recycle(head);
        Ok((started?, false))
    }

    /// Sends early hints for `wsgi.early_hints`. Hints that come late, or for a peer that has gone, are of no use and
    /// no error.
    pub(super) fn hint(&self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let Declared { head, .. } = parse_hints(headers)?;
        let sent = match &mut *self.phase() {
            Phase::Waiting { exchange, .. } => exchange.send_interim(&head),
            Phase::Streaming { .. } | Phase::Busy | Phase::Unwanted(_) | Phase::Over { .. } => Ok(()),
        };
        Declared::recycle(head);
        match sent {
            Ok(()) | Err(SendError::Closed) => Ok(()),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    pub(super) fn set_label(&self, label: &str) {
        match &mut *self.phase() {
            Phase::Waiting { exchange, .. } => exchange.set_label(label),
            Phase::Streaming { stream, .. } => stream.set_label(label),
            Phase::Busy | Phase::Unwanted(_) | Phase::Over { .. } => {}
        }
    }

    /// Sends the only block of a body and ends the response: one write where nothing was sent before.
    pub(super) fn send_only(&self, block: &Bound<'_, PyBytes>) -> Result<(), Unsent> {
        self.send_last(block.py(), Last::Lent(&Lent(block)))
    }

    pub(super) fn send_whole(&self, py: Python<'_>, body: Content) -> Result<(), Unsent> {
        self.send_last(py, Last::Given(body))
    }

    fn send_last(&self, py: Python<'_>, body: Last<'_>) -> Result<(), Unsent> {
        not_in_child()?;
        let mut phase = self.phase();
        match mem::replace(&mut *phase, Phase::Busy) {
            Phase::Waiting { exchange, declared: Some(Declared { head, length }) }
                if length.is_none_or(|length| length == body.len())
                    && body.len() < LARGE
                    && !exchange.is_tight(body.len()) =>
            {
                // A body that is compressed is compressed with the interpreter released.
                drop(phase);
                let answered = exchange.respond_with(&head, body);
                Declared::recycle(head);
                *self.phase() = Phase::Over { peer_gone: answered == Err(SendError::Closed) };
                answered.map_err(Unsent::Refused)
            }
            unchanged => {
                *phase = unchanged;
                drop(phase);
                let length = body.len();
                match self.send(py, body.keep(), Some(length)) {
                    Ok(()) => self.finish(),
                    Err(Unsent::Unwanted) => Ok(()),
                    Err(unsent) => Err(unsent),
                }
            }
        }
    }

    /// Sends a part of a file and ends the response. A smaller length that the application declared
    /// is how much of it is sent.
    pub(super) fn send_file(&self, py: Python<'_>, mut range: FileRange) -> Result<(), Unsent> {
        if let Phase::Waiting { declared: Some(Declared { length: Some(length), .. }), .. } = &*self.phase() {
            range.length = range.length.min(*length);
        }
        if range.length == 0 {
            return self.finish();
        }
        self.send_whole(py, Content::File(range))
    }

    /// Ends the response after its last block. Without any block it has an empty body.
    pub(super) fn finish(&self) -> Result<(), Unsent> {
        not_in_child()?;
        let mut phase = self.phase();
        match mem::replace(&mut *phase, Phase::Over { peer_gone: false }) {
            Phase::Streaming { stream, .. } => {
                drop(phase);
                stream.finish();
            }
            Phase::Waiting { exchange, declared: Some(Declared { head, length }) } => {
                drop(phase);
                // Without a body by nature, "no block" says nothing about the length a GET would have.
                let bodyless = self.is_head || head.status.forbids_body();
                let length = length.or((!bodyless).then_some(0));
                exchange.start(head, length).map_err(Unsent::Refused)?.finish();
            }
            unchanged @ Phase::Waiting { .. } => {
                *phase = unchanged;
                return Err(Unsent::NoHead);
            }
            unchanged @ (Phase::Busy | Phase::Unwanted(_) | Phase::Over { .. }) => *phase = unchanged,
        }
        Ok(())
    }

    /// Ends the response after a failure of the application: a 500 when nothing was sent, otherwise
    /// the response is cut so that the peer can see that it is not whole.
    pub(super) fn fail(&self, reason: impl FnOnce() -> String) {
        let before = mem::replace(&mut *self.phase(), Phase::Over { peer_gone: false });
        match before {
            Phase::Waiting { exchange, .. } => {
                let head = ResponseHead::new(Status::INTERNAL_SERVER_ERROR)
                    .with("Content-Type", "text/plain; charset=utf-8");
                // A peer that is gone needs no answer.
                let _ = exchange.respond_error(head, FAILURE_TEXT);
            }
            Phase::Streaming { stream, .. } => stream.abort(&reason()),
            Phase::Busy | Phase::Unwanted(_) | Phase::Over { .. } => {}
        }
    }

    /// Ends a response whose declared length has been sent and whose surplus was dropped.
    pub(super) fn end_cut(&self) {
        let before = mem::replace(&mut *self.phase(), Phase::Over { peer_gone: false });
        if let Phase::Streaming { stream, .. } = before {
            stream.finish();
        }
    }

    pub(super) fn end_for_lost_peer(&self) {
        let before = mem::replace(&mut *self.phase(), Phase::Over { peer_gone: true });
        if let Phase::Streaming { stream, .. } = before {
            stream.abort("the peer closed the connection");
        }
    }

    /// Whether `error` is only our own message, passed through by the application, that the peer is
    /// gone: from `write()`, or from `wsgi.input` while the body was on its way.
    pub(super) fn was_told_of_lost_peer(&self, py: Python<'_>, error: &PyErr) -> bool {
        // Before Python 3.12 the exception may only be made here, by application code.
        let (pipe, reset) = (
            error.is_instance_of::<PyBrokenPipeError>(py),
            error.is_instance_of::<PyConnectionResetError>(py),
        );
        match &*self.phase() {
            Phase::Over { peer_gone: true } => pipe,
            Phase::Waiting { exchange, .. } => reset && exchange.has_peer_ended(),
            _ => false,
        }
    }

    /// Whether the application declared the body's length itself.
    pub(super) fn declares_length(&self) -> bool {
        match &*self.phase() {
            Phase::Waiting { declared, .. } => declared.as_ref().is_some_and(|head| head.length.is_some()),
            _ => true,
        }
    }
}

/// Refuses to send in a child: its bytes would go into the connection on which its parent answers.
fn not_in_child() -> Result<(), Unsent> {
    if child::is_child() { Err(Unsent::NotOpen(child::REFUSED)) } else { Ok(()) }
}

fn wait_for_room(stream: &mut Stream) -> Result<(), SendError> {
    while stream.wait(WAIT_SLICE)? == Flow::Full {}
    Ok(())
}

/// The exception of an `exc_info` tuple, with its traceback.
fn exception_of(exc_info: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let tuple = exc_info.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == 3);
    let Some(tuple) = tuple else {
        let given = found(exc_info);
        return Err(PyTypeError::new_err(format!("exc_info must be a tuple of three, not {given}")));
    };
    let value = tuple.get_item(1)?.call_method1("with_traceback", (tuple.get_item(2)?,))?;
    Ok(PyErr::from_value(value))
}

// ---- start_response and write, as Python sees them ----
//
// The object an application gets as `start_response`.
//
// A native type without a dictionary, without weak references and, since it refers to no other object, without tracking
// by the garbage collector. It is its own `write`: it returns itself, and a call with one argument sends a block. It is
// `wsgi.early_hints` as well: that one argument is a list of fields then.

impl Native for Response {
    const NAME: &'static CStr = c"maitred._engine.StartResponse";
    const DOC: &'static CStr =
        c"start_response(status, headers, exc_info=None), for one request; returns write(data)";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall);
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: the interpreter calls this with an object of our type, with an array of that many
        // positional arguments, and behind them one for each name of the tuple `names`, which may be
        // null. All are borrowed for the duration of the call.
        let (start, args, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, names)
                .map(|names| names.cast_into_unchecked::<PyTuple>());
            let named = names.as_ref().map_or(0, |names| names.len());
            let count = ffi::PyVectorcall_NARGS(nargsf) as usize;
            let args = if count + named == 0 { &[] } else { std::slice::from_raw_parts(args, count + named) };
            (object_at::<Response>(py, callable), Arguments { py, args, count }, names)
        };
        answer(py, || Ok(call(py, start, &args, names.as_ref())?.into_ptr()))
    })
}

struct Arguments<'a, 'py> {
    py: Python<'py>,
    args: &'a [*mut ffi::PyObject],
    count: usize,
}

impl<'py> Arguments<'_, 'py> {
    fn at(&self, index: usize) -> Bound<'py, PyAny> {
        // SAFETY: the array holds valid objects, borrowed for the duration of the call.
        unsafe { Bound::from_borrowed_ptr(self.py, self.args[index]) }
    }
}

fn call<'py>(
    py: Python<'py>,
    start: Object<Response>,
    args: &Arguments<'_, 'py>,
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    if names.is_none() {
        match args.count {
            1 => return write_or_hint(&start, &args.at(0)),
            2 => return declare(py, start, &args.at(0), &args.at(1), None),
            _ => {}
        }
    }
    let mut found: [Option<Bound<'py, PyAny>>; 3] = [None, None, None];
    let usage =
        || PyTypeError::new_err("start_response() takes status, headers and exc_info; write() takes data");
    for (index, place) in (0..args.count).zip(0..) {
        *found.get_mut::<usize>(place).ok_or_else(usage)? = Some(args.at(index));
    }
    for (index, name) in names.into_iter().flat_map(|names| names.iter_borrowed()).enumerate() {
        let place = ["status", "headers", "exc_info"]
            .iter()
            .position(|known| name.cast::<PyString>().is_ok_and(|name| name == *known));
        let place = &mut found[place.ok_or_else(usage)?];
        if place.replace(args.at(args.count + index)).is_some() {
            return Err(usage());
        }
    }
    match found {
        [Some(status), Some(headers), exc_info] => declare(py, start, &status, &headers, exc_info.as_ref()),
        _ => Err(usage()),
    }
}

fn declare<'py>(
    py: Python<'py>,
    start: Object<Response>,
    status: &Bound<'py, PyAny>,
    headers: &Bound<'py, PyAny>,
    exc_info: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    start.declare(status, headers, exc_info)?;
    Ok(start.into_object().into_bound(py))
}

fn write_or_hint<'py>(start: &Response, argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = argument.py();
    if let Ok(data) = argument.cast::<PyBytes>() {
        start.write(py, data)?;
    } else if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        start.hint(argument)?;
    } else {
        let given = type_name(argument);
        let text = format!("write() takes bytes, and wsgi.early_hints a list of tuples, not {given}");
        return Err(PyTypeError::new_err(text));
    }
    Ok(py.None().into_bound(py))
}

// ---- The arguments of start_response ----
//
// Checked and turned into a response head.

/// Checks `status` and `headers` as PEP 3333 demands of them.
pub(super) fn parse(status: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> PyResult<Declared> {
    let (status, reason) = parse_status(status)?;
    let mut declared = Declared::new(status, reason);
    let Ok(headers) = headers.cast::<PyList>() else {
        let given = type_name(headers);
        return Err(PyTypeError::new_err(format!("the headers must be a list of tuples, not {given}")));
    };
    for item in headers {
        push(&mut declared, &item)?;
    }
    Ok(declared)
}

/// Reads the arguments of `wsgi.early_hints`: 103 with these fields (RFC 8297).
pub(super) fn parse_hints(headers: &Bound<'_, PyAny>) -> PyResult<Declared> {
    let mut declared = Declared::new(Status::EARLY_HINTS, None);
    for item in headers.try_iter()? {
        push(&mut declared, &item?)?;
    }
    Ok(declared)
}

fn push(declared: &mut Declared, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else {
        let text = format!("a header must be a tuple (name, value), not {}", found(item));
        return Err(PyTypeError::new_err(text));
    };
    let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
    let name = bytes_of(&name, "a header's name")?;
    let value = bytes_of(&value, "a header's value")?;
    declared.push(name, value)
}

/// `"404 Not Found"`: three digits, a space and the reason. The reason may be missing.
fn parse_status(status: &Bound<'_, PyAny>) -> PyResult<(Status, Option<Box<[u8]>>)> {
    let Ok(text) = status.cast::<PyString>() else {
        let given = type_name(status);
        return Err(PyTypeError::new_err(format!("the status must be a str like '200 OK', not {given}")));
    };
    let invalid = || {
        PyValueError::new_err(format!("the status must be like '200 OK', not {:?}", text.to_string_lossy()))
    };
    let bytes = latin1_of(text)?.ok_or_else(invalid)?;
    let (code, reason) = match bytes {
        [a, b, c] => ([*a, *b, *c], &b""[..]),
        [a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
        _ => return Err(invalid()),
    };
    if !code.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let number = code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    let status = Status::from_code(number).ok_or_else(invalid)?;
    if status.code() < 200 {
        let text =
            format!("{:?} is an interim status; start_response takes the final one", text.to_string_lossy());
        return Err(PyValueError::new_err(text));
    }
    if reason.is_empty() || reason == status.reason().as_bytes() {
        return Ok((status, None));
    }
    if reason.iter().any(u8::is_ascii_control) {
        return Err(invalid());
    }
    Ok((status, Some(reason.into())))
}

/// The bytes of a "bytes-as-unicode" string, the only text PEP 3333 allows in a head.
fn bytes_of<'a>(text: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a [u8]> {
    let Ok(text) = text.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(text))));
    };
    latin1_of(text)?.ok_or_else(|| {
        let text = text.to_string_lossy();
        PyValueError::new_err(format!("{what} has a character outside Latin-1: {text:?}"))
    })
}
