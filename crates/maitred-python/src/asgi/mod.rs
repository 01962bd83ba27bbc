//! ASGI 3.0: HTTP and WebSocket (specification 2.4), and lifespan.
//!
//! ```text
//! runner.rs     the loop's thread, from startup to the end (with maitred/_asgi.py)
//! event_loop.rs callbacks of the loop: turns of the server       watch.rs  changes of exchanges → futures
//! adapter.rs    state of all requests; the beginning of each      waiting.rs  how many have begun and wait
//! scope.rs      request → dictionary      names.rs  its fields      tls.rs  its TLS
//! coroutine.rs  the coroutine that the Task of a request runs      current.rs  which one is running
//! channel.rs    the application's side of a request: one of the next two
//! http.rs       the state of one exchange: response.rs sends parts of its body
//! websocket.rs  the state of one WebSocket, websocket_send.rs its callable
//! send.rs       the callable and its messages
//! receive.rs    the callable and its messages; the awaitables of both
//! departure.rs  which part learns first that the peer has left
//! steps.rs      the awaitable protocol
//! still.rs      a loop that stands still
//! ```

mod adapter;
mod channel;
mod coroutine;
mod current;
mod departure;
mod event_loop;
mod http;
mod names;
mod receive;
mod response;
mod runner;
mod scope;
mod send;
mod steps;
mod still;
mod tls;
mod waiting;
mod watch;
mod websocket;
mod websocket_send;

use std::io;
use std::sync::{Arc, OnceLock};

use maitred_config::value::LogLevel;
use maitred_process::host::LoadError;
use maitred_runtime::{EventLoop, Exchange, Handler, InterpreterLock, ThreadBody, ThreadHost, ThreadStack};
use pyo3::prelude::*;

use crate::report::{self, ErrorSink, LeveledSink};
use crate::stuck::NamedThreads;
use crate::threads::LANGUAGE;
use adapter::{Adapter, Served};
use event_loop::PythonLoop;
use runner::NotStarted;
use still::StillWatch;

pub(crate) use adapter::ClientDisconnected;
pub(crate) use runner::LoopThread;
pub(crate) use still::StillThread;

pub(crate) struct AsgiSettings<'a> {
    pub(crate) application: Py<PyAny>,
    /// `/`, or the URL path of the application.
    pub(crate) root_path: &'a str,
    /// `auto`, `asyncio`, `uvloop` or `module:factory`.
    pub(crate) event_loop: &'a str,
    /// `auto`, `on` or `off`.
    pub(crate) lifespan: &'a str,
    /// Whether the server offers to send files by their paths.
    pub(crate) pathsend: bool,
    pub(crate) watch: bool,
    /// Threads for applications that do not run on the loop.
    pub(crate) threads: NamedThreads,
    pub(crate) log: LeveledSink,
    /// The loop's thread, if the application was imported there.
    pub(crate) stage: Option<&'a Py<PyAny>>,
    /// Where the loop's thread goes, also if the application cannot be served.
    pub(crate) thread: &'a OnceLock<LoopThread>,
}

pub(crate) struct AsgiApplication {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) running: RunningLoop,
    /// The thread that watches the loop, to be stopped before the interpreter ends.
    pub(crate) still: Option<StillThread>,
}

pub(crate) struct RunningLoop {
    adapter: Py<Adapter>,
    pub(crate) threads: Arc<dyn ThreadHost>,
    /// The kind of loop in words.
    pub(crate) kind: String,
}

pub(crate) enum StartError {
    Raised(PyErr),
    /// The application, or the loop that was asked for.
    Failed(LoadError),
}

impl From<NotStarted> for StartError {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::Raised(error) => Self::Raised(error),
            NotStarted::Failed(error) => Self::Failed(error),
        }
    }
}

impl From<PyErr> for StartError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

pub(crate) fn start(py: Python<'_>, settings: AsgiSettings<'_>) -> Result<AsgiApplication, StartError> {
    let AsgiSettings {
        application,
        root_path,
        event_loop,
        lifespan,
        pathsend,
        watch,
        threads,
        log,
        stage,
        thread,
    } = settings;
    let leveled = Arc::clone(&log);
    let errors: ErrorSink = Arc::new(move |entry: &str| leveled(LogLevel::Error, entry));
    let adapter = Py::new(py, Adapter::new(py, errors)?)?;
    let served = Arc::new(Served::new(py, application, root_path, pathsend)?);
    let (kind, whereabouts) =
        runner::start(py, &adapter, &served, (event_loop, lifespan), Arc::clone(&log), (stage, thread))?;
    let (mut still, mut still_thread) = (StillWatch::off(), None);
    if watch {
        match StillWatch::start(py, &adapter, whereabouts, Arc::clone(&log)) {
            Ok((watch, thread)) => (still, still_thread) = (watch, Some(thread)),
            Err(error) => {
                let text = report::summary(py, &error);
                let text = format!("a loop that stands still cannot be told of: {text}");
                report::write(py, &adapter.get().log, &text);
            }
        }
    }
    let python_loop = PythonLoop { adapter: adapter.clone_ref(py), still };
    let running = RunningLoop {
        adapter: adapter.clone_ref(py),
        threads: Arc::new(LoopHost { event_loop: Arc::new(python_loop), threads }),
        kind,
    };
    let handler = Arc::new(AsgiHandler { adapter, served });
    Ok(AsgiApplication { handler, running, still: still_thread })
}

pub(crate) fn add(
    py: Python<'_>,
    (application, root_path): (Py<PyAny>, &str),
    pathsend: bool,
    running: &RunningLoop,
    log: LeveledSink,
    thread: &LoopThread,
) -> Result<Arc<dyn Handler>, StartError> {
    let served = Arc::new(Served::new(py, application, root_path, pathsend)?);
    runner::add(py, &running.adapter, &served, log, thread)?;
    Ok(Arc::new(AsgiHandler { adapter: running.adapter.clone_ref(py), served }))
}

/// Answers requests by tasks of an event loop, on whose thread it is called.
struct AsgiHandler {
    adapter: Py<Adapter>,
    served: Arc<Served>,
}

impl Handler for AsgiHandler {
    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn runs_on_event_loop(&self) -> bool {
        true
    }

    fn language(&self) -> &'static str {
        LANGUAGE
    }

    fn takes_websockets(&self) -> bool {
        true
    }

    fn handle(&self, exchange: Exchange) {
        Python::attach(|py| {
            if let Err(error) = Adapter::begin(py, &self.adapter, &self.served, exchange) {
                // The exchange was dropped on the way, so the peer has its 500.
                report::write(py, &self.adapter.get().log, &report::traceback(py, &error));
            }
        });
    }
}

struct LoopHost {
    event_loop: Arc<PythonLoop>,
    threads: NamedThreads,
}

impl ThreadHost for LoopHost {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.threads.spawn(name, body)
    }

    fn language(&self) -> &'static str {
        self.threads.language()
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        self.threads.interpreter_lock()
    }

    fn without_interpreter(&self, act: &mut dyn FnMut()) {
        self.threads.without_interpreter(act);
    }

    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        self.threads.with_interpreter(act);
    }

    fn stacks(&self, only: Option<i32>, serving: &[i32]) -> Option<Vec<ThreadStack>> {
        self.threads.stacks(only, serving)
    }

    fn event_loop(&self) -> Option<Arc<dyn EventLoop>> {
        Some(Arc::clone(&self.event_loop) as Arc<dyn EventLoop>)
    }
}
