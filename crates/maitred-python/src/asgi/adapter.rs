//! State shared by all requests of the event loop, state of one application, and the beginning of each request.

use std::sync::{Arc, OnceLock};

use maitred_runtime::Exchange;
use pyo3::exceptions::{PyBrokenPipeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{create_exception, intern};

use super::channel::Channel;
use super::coroutine::Coroutine;
use super::event_loop::{Here, Polling, here};
use super::http::Http;
use super::pending::{Done, Pending};
use super::receive::Receive;
use super::scope::ScopeBuilder;
use super::waiting::Waiting;
use super::watch::Inbox;
use super::websocket::WebSocket;
use crate::database;
use crate::held::Held;
use crate::native::{Class, Object};
use crate::outgoing;
use crate::report::{self, ErrorSink};

create_exception!(
    maitred,
    ClientDisconnected,
    PyBrokenPipeError,
    "The client closed the connection before the response was complete.\n\nRaised by `send` of an ASGI application."
);

/// How far the causes of an exception are followed.
const MAX_CAUSES: usize = 100;

/// State shared by all requests. As a Python object it holds no other that could lead back to it, except through its
/// loop, which ends with the process.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct Adapter {
    pub(super) log: ErrorSink,
    pub(super) classes: Classes,
    pub(super) done: Object<Done>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) polling: Polling,
    pub(super) waiting: Waiting,
    disconnected: Py<PyType>,
    tasks: OnceLock<Tasks>,
}

pub(super) struct Served {
    pub(super) application: Py<PyAny>,
    scope: ScopeBuilder,
    /// The server offers it to send files by their paths.
    pub(super) pathsend: bool,
}

impl Served {
    pub(super) fn new(
        py: Python<'_>,
        application: Py<PyAny>,
        root_path: &str,
        pathsend: bool,
    ) -> PyResult<Self> {
        Ok(Self { application, scope: ScopeBuilder::new(py, root_path, pathsend)?, pathsend })
    }

    pub(super) fn use_state(&self, state: Py<PyDict>) {
        self.scope.use_state(state);
    }
}

pub(super) struct Classes {
    pub(super) pending: Class<Pending>,
    pub(super) coroutine: Class<Coroutine>,
    http: Class<Http>,
    websocket: Class<WebSocket>,
    receive: Class<Receive>,
}

struct Tasks {
    task: Py<PyAny>,
    options: Py<PyDict>,
    /// `loop`, and `eager_start` where Python has it (3.12).
    eager: Py<PyDict>,
    create_future: Py<PyAny>,
    event_loop: Py<PyAny>,
    factory: Option<Py<PyAny>>,
}

impl Adapter {
    pub(super) fn new(py: Python<'_>, log: ErrorSink) -> PyResult<Self> {
        let disconnected = py.get_type::<ClientDisconnected>().unbind();
        let classes = Classes {
            pending: Class::new(py)?,
            coroutine: Class::new(py)?,
            http: Class::new(py)?,
            websocket: Class::new(py)?,
            receive: Class::new(py)?,
        };
        Ok(Self {
            log,
            classes,
            done: Class::new(py)?.make(py, Done)?,
            inbox: Arc::new(Inbox::new()?),
            polling: Polling::default(),
            waiting: Waiting::default(),
            disconnected,
            tasks: OnceLock::new(),
        })
    }

    /// Makes tasks for this loop from now on.
    pub(super) fn use_tasks(&self, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = event_loop.py();
        let options = PyDict::new(py);
        options.set_item("loop", event_loop)?;
        let eager = options.copy()?;
        let version = py.version_info();
        if (version.major, version.minor) >= (3, 12) {
            eager.set_item("eager_start", true)?;
        }
        let factory = event_loop.getattr("get_task_factory").and_then(|get| get.call0().map(|_| get));
        let tasks = Tasks {
            task: py.import("asyncio")?.getattr("Task")?.unbind(),
            options: options.unbind(),
            eager: eager.unbind(),
            create_future: event_loop.getattr("create_future")?.unbind(),
            event_loop: event_loop.clone().unbind(),
            factory: factory.ok().map(Bound::unbind),
        };
        // Called once; a second loop would be ignored.
        let _ = self.tasks.set(tasks);
        Ok(())
    }

    fn tasks(&self) -> PyResult<&Tasks> {
        self.tasks.get().ok_or_else(|| PyRuntimeError::new_err("there is no event loop"))
    }

    pub(super) fn future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.tasks()?.create_future.call0(py)
    }

    /// A response has been completed: outside of a turn it is sent with others of the same iteration.
    pub(super) fn answered(&self, py: Python<'_>) {
        if here() != Here::Turn
            && let Err(error) = self.polling.flush_soon(py)
        {
            report::write(py, &self.log, &report::traceback(py, &error));
        }
    }

    /// The exception that `send` raises when the peer has gone (ASGI HTTP specification 2.4).
    pub(super) fn disconnected(&self, py: Python<'_>) -> PyErr {
        PyErr::from_type(self.disconnected.bind(py).clone(), "the client closed the connection")
    }

    /// Whether `error` is only that exception, passed through by the application: itself, or as the cause of another
    /// one.
    pub(super) fn is_disconnect(&self, py: Python<'_>, error: &PyErr) -> bool {
        let mut wanted = vec![error.value(py).clone().into_any()];
        for _ in 0..MAX_CAUSES {
            let Some(error) = wanted.pop() else { return false };
            if error.is_instance(self.disconnected.bind(py)).unwrap_or(false) {
                return true;
            }
            for name in [intern!(py, "__cause__"), intern!(py, "__context__")] {
                wanted.extend(error.getattr(name).ok().filter(|other| !other.is_none()));
            }
            // An exception group.
            if let Ok(inner) =
                error.getattr(intern!(py, "exceptions")).and_then(|all| all.extract::<Vec<_>>())
            {
                wanted.extend(inner);
            }
        }
        false
    }

    /// Begins a request: while none waits, its task runs until it has to wait, where tasks can start eagerly.
    pub(super) fn begin(
        py: Python<'_>,
        adapter: &Py<Self>,
        served: &Arc<Served>,
        mut exchange: Exchange,
    ) -> PyResult<()> {
        let this = adapter.get();
        let tasks = this.tasks()?;
        let scope = served.scope.build(py, exchange.request())?;
        let counts = database::counts_of(py, &mut exchange)?.map(Held::new);
        let counts = (counts, outgoing::calls_of(py, &mut exchange)?);
        let channel = if exchange.request().websocket {
            let socket = WebSocket::new(adapter.clone_ref(py), &scope, exchange);
            Channel::WebSocket(this.classes.websocket.make(py, socket)?)
        } else {
            let http = Http::new(adapter.clone_ref(py), &scope, exchange);
            Channel::Http(this.classes.http.make(py, http)?)
        };
        let receive = this.classes.receive.make(py, Receive(channel.clone_ref(py)))?;
        let coroutine = Coroutine::new(channel, Arc::clone(served), scope.dict.unbind(), receive, counts);
        let coroutine = this.classes.coroutine.make(py, coroutine)?;
        let object = coroutine.clone_ref(py).into_object();
        let (task, begins) = match tasks.own_factory(py)? {
            None => {
                let begins = this.waiting.is_none();
                let options = if begins { &tasks.eager } else { &tasks.options };
                (tasks.task.call(py, (object,), Some(options.bind(py)))?, begins)
            }
            Some(factory) => (factory.call1(py, (&tasks.event_loop, object))?, coroutine.has_begun()),
        };
        coroutine.hold(task);
        if !begins {
            this.polling.note_later();
        }
        Ok(())
    }
}

impl Tasks {
    /// The factory that the application has set with `loop.set_task_factory()`; it decides the type of a Task, and when
    /// it begins.
    fn own_factory(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(get) = &self.factory else { return Ok(None) };
        let factory = get.call0(py)?;
        Ok((!factory.is_none(py)).then_some(factory))
    }
}
