//! WSGI 1.0.1 (PEP 3333).
//!
//! ```text
//! mod.rs          the handler; the iterable → blocks sent
//! environ.rs      request → dictionary
//! field_names.rs  names of fields → keys of the dictionary
//! input.rs        wsgi.input
//! response.rs     start_response and write, and the state of one response
//! file.rs         wsgi.file_wrapper
//! errors.rs       wsgi.errors
//! tls.rs          the entries for TLS
//! ```
//!
//! Sections below: the iterable.

mod environ;
mod errors;
mod field_names;
mod file;
mod input;
mod response;
mod tls;

use std::sync::Arc;

use maitred_http::Method;
use maitred_runtime::{Exchange, Handler, SendError};
use maitred_server::TraceLabel;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyTuple};

use crate::interrupt::Interrupter;
use crate::native::Class;
use crate::report::{ErrorSink, type_name};
use crate::threads::{LANGUAGE, enter_request, is_inside};
use crate::{child, database, outgoing, report, values};
use environ::{EARLY_HINTS, EnvironBuilder};
use errors::ErrorStream;
use file::FileWrapper;
use response::{LARGE, Response, Unsent};

/// Answers requests by calling a WSGI application. Its invocation type is blocking.
pub struct WsgiHandler {
    application: Py<PyAny>,
    environ: EnvironBuilder,
    start_response: Class<Response>,
    errors: Py<ErrorStream>,
    interrupter: Arc<Interrupter>,
    log: ErrorSink,
}

impl WsgiHandler {
    /// A handler for `application`, which is called by up to `max_threads` threads at once
    /// (`wsgi.multithread` is true from 2 on). Tracebacks go to `log`, the lines of `wsgi.errors` to `lines`.
    ///
    /// # Errors
    /// The interpreter has no memory or its standard library is incomplete.
    pub fn new(
        py: Python<'_>,
        application: Py<PyAny>,
        max_threads: usize,
        log: ErrorSink,
        lines: ErrorSink,
    ) -> PyResult<Self> {
        let errors = Py::new(py, ErrorStream::new(lines))?;
        let environ = EnvironBuilder::new(py, errors.clone_ref(py), max_threads > 1)?;
        let start_response = Class::new(py)?;
        Ok(Self { application, environ, start_response, errors, interrupter: Arc::default(), log })
    }

    /// The thread that uses the interpreter when no request runs any more, to be stopped.
    pub(crate) fn interrupter(&self) -> &Arc<Interrupter> {
        &self.interrupter
    }

    fn answer(&self, py: Python<'_>, mut exchange: Exchange) -> PyResult<()> {
        let is_head = exchange.request().head.method == Method::Head;
        let environ = self.environ.build(py, exchange.request_mut())?;
        let counts = database::counts_of(py, &mut exchange)?;
        let calls = outgoing::calls_of(py, &mut exchange)?;
        let start = self.start_response.make(py, Response::new(exchange, is_head, &environ))?;
        environ.set_item(intern!(py, EARLY_HINTS), start.as_any())?;
        let counting = counts.map(|counts| database::enter(py, &counts)).transpose()?.flatten();
        let calling = calls.map(|calls| outgoing::enter(py, &calls)).transpose()?.flatten();
        let result = self.application.bind(py).call1((&environ, start.as_any()));
        child::end_if_child(py, result.as_ref().err());
        match result {
            Ok(result) => self.deliver(py, &result, &start, &environ),
            Err(error) => {
                start.name_route(py);
                self.fail(py, &start, &environ, Trouble::Raised(error));
            }
        }
        start.forget_environ();
        if let Some(token) = counting {
            database::leave(py, token, &self.log);
        }
        if let Some(token) = calling {
            outgoing::leave(py, token, &self.log);
        }
        Ok(())
    }

    /// Sends the result and closes it. `close()` is called once, also after an error; the end of the response does not
    /// wait for it.
    fn deliver(
        &self,
        py: Python<'_>,
        result: &Bound<'_, PyAny>,
        start: &Response,
        environ: &Bound<'_, PyDict>,
    ) {
        let delivered = deliver(py, result, start, environ);
        child::end_if_child(py, delivered.as_ref().err().and_then(Trouble::raised));
        match delivered {
            Ok(()) | Err(Trouble::Unwanted) => {}
            Err(trouble) => self.fail(py, start, environ, trouble),
        }
        if result.is_exact_instance_of::<PyList>() || result.is_exact_instance_of::<PyTuple>() {
            return;
        }
        let closed = match result.getattr_opt(intern!(py, "close")) {
            Ok(Some(close)) => close.call0().map(drop),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        child::end_if_child(py, closed.as_ref().err());
        if let Err(error) = closed {
            self.report(py, environ, "close() of the response failed", &report::traceback(py, &error));
        }
    }

    fn fail(&self, py: Python<'_>, start: &Response, environ: &Bound<'_, PyDict>, trouble: Trouble) {
        match trouble {
            // The application cannot do anything about it and need not hear of it.
            Trouble::PeerGone => start.end_for_lost_peer(),
            Trouble::Unwanted => {}
            // The surplus was dropped: the declared bytes have been sent, so the response is whole.
            Trouble::TooLong(error) => {
                self.report(py, environ, "the response was cut", &error.to_string());
                start.end_cut();
            }
            Trouble::Misuse(text) => {
                start.fail(|| text.clone());
                self.report(py, environ, "the application broke the rules of WSGI", &text);
            }
            Trouble::Raised(error) => {
                let was_told = start.was_told_of_lost_peer(py, &error);
                // Before the report: the peer does not wait for it.
                start.fail(|| format!("the application raised {}", report::summary(py, &error)));
                if !was_told {
                    let text = report::traceback(py, &error);
                    self.report(py, environ, "the application raised an exception", &text);
                }
            }
        }
    }

    /// One entry: `GET /path: what` and the details below.
    fn report(&self, py: Python<'_>, environ: &Bound<'_, PyDict>, what: &str, details: &str) {
        let value = |key: &str| match environ.get_item(key) {
            Ok(Some(value)) => value.to_string().escape_debug().to_string(),
            _ => "?".to_owned(),
        };
        let (method, target) = (value("REQUEST_METHOD"), value("REQUEST_URI"));
        let trace = TraceLabel::of_field(Some(value("HTTP_TRACEPARENT").as_bytes()));
        report::write(py, &self.log, &format!("{method} {target}{trace}: {what}\n{details}"));
    }
}

impl Handler for WsgiHandler {
    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn language(&self) -> &'static str {
        LANGUAGE
    }

    fn handle(&self, mut exchange: Exchange) {
        let _inside = enter_request(&exchange.request().head);
        let interruptible = self.interrupter.enter(&mut exchange);
        if exchange.is_dead() {
            // Answered before it could be interrupted.
            return;
        }
        Python::attach(|py| {
            exchange.enter_interpreter(!is_inside());
            let _interruptible = interruptible;
            if let Err(error) = self.answer(py, exchange) {
                // The exchange was dropped on the way, so the peer has its 500.
                report::write(py, &self.log, &report::traceback(py, &error));
            }
            self.errors.get().end_line(py);
        });
    }
}

// ---- The iterable ----
//
// From the application's iterable to sent blocks.
//
// A list or tuple is known as a whole, so its length is declared and it leaves in one write; a file is
// given to the engine. Every other iterable is sent block by block, each at once, as PEP 3333 demands.

/// Blocks of a list are joined up to this size, so that they leave in one write; above it the copy
/// costs more than the writes. As large as a socket's default send buffer takes at once on Linux.
const MAX_JOINED: u64 = 64 * 1024;

/// Why a response did not come to its regular end.
enum Trouble {
    Raised(PyErr),
    /// The application did something PEP 3333 forbids.
    Misuse(String),
    /// The body is longer than declared.
    TooLong(SendError),
    PeerGone,
    /// The response is complete without the rest of the body: no trouble.
    Unwanted,
}

impl Trouble {
    fn raised(&self) -> Option<&PyErr> {
        match self {
            Self::Raised(error) => Some(error),
            Self::Misuse(_) | Self::TooLong(_) | Self::PeerGone | Self::Unwanted => None,
        }
    }
}

impl From<PyErr> for Trouble {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<Unsent> for Trouble {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::NoHead => Self::Misuse(
                "start_response() must be called before the first block of the body is there".to_owned(),
            ),
            Unsent::NotOpen(text) => Self::Misuse(text.to_owned()),
            Unsent::Unwanted => Self::Unwanted,
            Unsent::Refused(SendError::Closed) => Self::PeerGone,
            Unsent::Refused(error @ SendError::TooLong { .. }) => Self::TooLong(error),
            Unsent::Refused(error) => Self::Misuse(error.to_string()),
        }
    }
}

/// Sends everything `result` yields and ends the response. The application's label is looked up in the environ where
/// the response may take long to be delivered.
fn deliver(
    py: Python<'_>,
    result: &Bound<'_, PyAny>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    if let Ok(list) = result.cast_exact::<PyList>() {
        if let Ok(only) = list.get_item(0)
            && list.len() == 1
        {
            return deliver_one(&only, start, environ);
        }
        // A copy: the list could change while a block is being sent.
        deliver_all(py, &list.to_tuple(), start, environ)
    } else if let Ok(tuple) = result.cast_exact::<PyTuple>() {
        deliver_all(py, tuple, start, environ)
    } else if let Ok(wrapper) = result.cast_exact::<FileWrapper>()
        && let Some(range) = wrapper.get().range(py)
    {
        set_label(environ, start);
        Ok(start.send_file(py, range)?)
    } else {
        set_label(environ, start);
        deliver_each(py, result, start)
    }
}

/// Sets the application's label of this response, for the list of deliveries. The PEP has no such thing.
fn set_label(environ: &Bound<'_, PyDict>, start: &Response) {
    let label = environ.get_item(intern!(environ.py(), "maitred.label"));
    // An error in the label never spoils the response.
    if let Ok(Some(label)) = label
        && let Ok(text) = label.str()
    {
        start.set_label(&text.to_string_lossy());
    }
}

fn deliver_one(
    block: &Bound<'_, PyAny>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    let block = bytes_of(block)?;
    if block.as_bytes().len() as u64 >= LARGE {
        set_label(environ, start);
    }
    if block.as_bytes().is_empty() {
        return Ok(start.finish()?);
    }
    Ok(start.send_only(block)?)
}

fn deliver_all(
    py: Python<'_>,
    blocks: &Bound<'_, PyTuple>,
    start: &Response,
    environ: &Bound<'_, PyDict>,
) -> Result<(), Trouble> {
    let mut total = 0;
    for block in blocks.iter_borrowed() {
        total += bytes_of(&block)?.as_bytes().len() as u64;
    }
    if total == 0 {
        return Ok(start.finish()?);
    }
    if total <= MAX_JOINED {
        let mut body = Vec::with_capacity(total as usize);
        for block in blocks.iter_borrowed() {
            body.extend_from_slice(bytes_of(&block)?.as_bytes());
        }
        return Ok(start.send_whole(py, body.into())?);
    }
    set_label(environ, start);
    for block in blocks.iter_borrowed() {
        let block = bytes_of(&block)?;
        if !block.as_bytes().is_empty() {
            start.send(py, values::content(block), Some(total))?;
        }
    }
    Ok(start.finish()?)
}

fn deliver_each(py: Python<'_>, result: &Bound<'_, PyAny>, start: &Response) -> Result<(), Trouble> {
    if result.is_instance_of::<PyBytes>() {
        let text = "the application returned bytes; it must return an iterable of bytes, such as [body]";
        return Err(Trouble::Misuse(text.to_owned()));
    }
    let mut first = true;
    for block in iterate(result)? {
        let block = block?;
        let block = bytes_of(&block)?;
        if block.as_bytes().is_empty() {
            continue;
        }
        let whole = if first { sole_block_length(result, block.as_bytes(), start) } else { None };
        first = false;
        start.send(py, values::content(block), whole)?;
    }
    Ok(start.finish()?)
}

fn iterate<'py>(result: &Bound<'py, PyAny>) -> Result<Bound<'py, PyIterator>, Trouble> {
    result.try_iter().map_err(|error| {
        if result.hasattr("__iter__").unwrap_or(false) {
            return Trouble::Raised(error);
        }
        let given = type_name(result);
        Trouble::Misuse(format!("the application returned {given}; it must return an iterable of bytes"))
    })
}

/// PEP 3333, "Handling the Content-Length Header": an iterable whose `len()` is 1 has its first block
/// as its whole body.
fn sole_block_length(result: &Bound<'_, PyAny>, block: &[u8], start: &Response) -> Option<u64> {
    if start.declares_length() || result.is_instance_of::<PyIterator>() {
        return None;
    }
    (result.len().ok()? == 1).then_some(block.len() as u64)
}

fn bytes_of<'a, 'py>(block: &'a Bound<'py, PyAny>) -> Result<&'a Bound<'py, PyBytes>, Trouble> {
    block.cast::<PyBytes>().map_err(|_| {
        Trouble::Misuse(format!("the application's iterable yielded {}, not bytes", type_name(block)))
    })
}
