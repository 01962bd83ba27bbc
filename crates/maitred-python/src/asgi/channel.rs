//! The application's side of one request: an HTTP exchange or a WebSocket ("channel" in ASGI's words). Coroutines and
//! awaitables use it for both.

use std::sync::Arc;

use maitred_runtime::Request;
use maitred_server::TraceLabel;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::adapter::Adapter;
use super::departure::Departure;
use super::http::{Ended, Http};
use super::scope::Scope;
use super::watch::Watch;
use super::websocket::WebSocket;
use crate::held::Held;
use crate::native::Object;

pub(super) enum Channel {
    Http(Object<Http>),
    WebSocket(Object<WebSocket>),
}

macro_rules! each {
    ($channel:expr, $each:ident => $what:expr) => {
        match $channel {
            Self::Http($each) => $what,
            Self::WebSocket($each) => $what,
        }
    };
}

/// `GET /path`, in parts, for people.
pub(super) struct Title {
    pub(super) method: Held<PyString>,
    pub(super) raw_path: Held<PyBytes>,
    pub(super) trace: TraceLabel,
}

impl Title {
    pub(super) fn of(scope: &Scope<'_>, request: &Request) -> Self {
        let (method, raw_path) = (scope.method.clone().into(), scope.raw_path.clone().into());
        Self { method, raw_path, trace: TraceLabel::of_field(request.head.fields.first("traceparent")) }
    }

    pub(super) fn text(&self, py: Python<'_>) -> String {
        format!("{} {}{}", self.method.bind(py), self.raw_path.as_bytes(py).escape_ascii(), self.trace)
    }

    pub(super) fn parts(&self) -> (&Py<PyString>, &Py<PyBytes>) {
        (&self.method, &self.raw_path)
    }
}

impl Channel {
    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Http(http) => Self::Http(http.clone_ref(py)),
            Self::WebSocket(socket) => Self::WebSocket(socket.clone_ref(py)),
        }
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::PyObject {
        each!(self, channel => channel.as_ptr())
    }

    pub(super) fn adapter(&self) -> &Adapter {
        each!(self, channel => channel.adapter())
    }

    pub(super) fn title(&self) -> &Title {
        each!(self, channel => &channel.title)
    }

    pub(super) fn name(&self, py: Python<'_>) -> String {
        self.title().text(py)
    }

    /// The next message of `receive`; `None` while there is none.
    pub(super) fn next_message(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        each!(self, channel => channel.next_message(py))
    }

    /// Whether others come first before the next message is looked for: it is likely there, and a loop of them would keep the event
    /// loop.
    pub(super) fn lets_others_first(&self) -> bool {
        match self {
            Self::Http(http) => http.is_within_body(),
            Self::WebSocket(socket) => socket.has_received_much(),
        }
    }

    pub(super) fn departure(&self) -> &Departure {
        each!(self, channel => &channel.departure)
    }

    /// Whether `send` may go on after it has filled the room.
    pub(super) fn has_room(&self, py: Python<'_>) -> PyResult<bool> {
        each!(self, channel => channel.has_room(py))
    }

    /// Where futures are told of changes. Changes before the first call are not told.
    pub(super) fn watch(&self) -> Arc<Watch> {
        each!(self, channel => channel.watch())
    }

    /// The same, if there is one already.
    pub(super) fn present_watch(&self) -> Option<Arc<Watch>> {
        each!(self, channel => channel.present_watch())
    }

    /// Whether nothing can be sent any more, because its peer is gone or the server has ended it.
    pub(super) fn is_abandoned(&self) -> bool {
        each!(self, channel => channel.is_abandoned())
    }

    /// Whether it counts among the requests that wait: a WebSocket waits nearly always, and is not about to be woken with something
    /// that others want.
    pub(super) fn counts_as_waiting(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// The application has ended, as `failed` says. `reason` is for the log.
    pub(super) fn end(&self, py: Python<'_>, failed: bool, reason: impl FnOnce() -> String) -> Ended {
        match self {
            Self::Http(http) => http.end(py, reason),
            Self::WebSocket(socket) => socket.end(py, failed),
        }
    }
}
