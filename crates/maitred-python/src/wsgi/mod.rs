//! WSGI 1.0.1 (PEP 3333).
//!
//! ```text
//! environ.rs   request → dictionary      fields.rs  its keys
//! callable.rs  start_response and write, as Python sees them
//! head.rs      what the application passed to start_response → response head
//! response.rs  the state of one response
//! deliver.rs   the iterable → blocks sent
//! file.rs      wsgi.file_wrapper
//! errors.rs    wsgi.errors
//! input.rs     wsgi.input
//! ```

mod callable;
mod deliver;
mod environ;
mod errors;
mod fields;
mod file;
mod head;
mod input;
mod response;

use std::sync::Arc;

use maitred_http::Method;
use maitred_runtime::{Exchange, Handler};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::child;
use crate::interrupt::Interrupter;
use crate::native::Class;
use crate::report::{self, ErrorSink};
use crate::threads::is_inside;
use deliver::{Trouble, deliver};
use environ::{EARLY_HINTS, EnvironBuilder};
use errors::ErrorStream;
use response::Response;

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

    /// What uses the interpreter when no request runs any more, to be stopped.
    pub(crate) fn interrupter(&self) -> &Arc<Interrupter> {
        &self.interrupter
    }

    fn answer(&self, py: Python<'_>, mut exchange: Exchange) -> PyResult<()> {
        let is_head = exchange.request().head.method == Method::Head;
        let environ = self.environ.build(py, exchange.request_mut())?;
        let start = self.start_response.make(py, Response::new(exchange, is_head))?;
        environ.set_item(intern!(py, EARLY_HINTS), start.as_any())?;
        let result = self.application.bind(py).call1((&environ, start.as_any()));
        child::end_if_child(py, result.as_ref().err());
        match result {
            Ok(result) => self.deliver(py, &result, &start, &environ),
            Err(error) => self.fail(py, &start, &environ, Trouble::Raised(error)),
        }
        Ok(())
    }

    /// Sends the result and closes it. `close()` is called once, whatever happened before; the end
    /// of the response does not wait for it.
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
            Ok(()) => {}
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
            // The surplus was dropped: what was declared has been sent, so the response is whole.
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
                // The peer does not wait for what is written down.
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
        report::write(py, &self.log, &format!("{method} {target}: {what}\n{details}"));
    }
}

impl Handler for WsgiHandler {
    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn handle(&self, mut exchange: Exchange) {
        let _inside = crate::stuck::enter(&exchange.request().head);
        let interruptible = self.interrupter.enter(&mut exchange);
        if exchange.is_dead() {
            // Answered before it could be interrupted.
            return;
        }
        Python::attach(|py| {
            if !is_inside() {
                exchange.enter_interpreter();
            }
            let _interruptible = interruptible;
            if let Err(error) = self.answer(py, exchange) {
                // The exchange was dropped on the way, so the peer has its 500.
                report::write(py, &self.log, &report::traceback(py, &error));
            }
            self.errors.get().end_line(py);
        });
    }
}
