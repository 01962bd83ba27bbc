//! The thread of the event loop: from its start to the end of the application.
//!
//! ```text
//! load: start --> maitred-loop: Runner.run() of maitred._asgi --> lifespan.startup --> ready | failed
//! end:  finish --> requests, lifespan.shutdown, everything else --> the thread ends
//! ```

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use maitred_config::value::LogLevel;
use maitred_process::host::LoadError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::adapter::{Adapter, Served};
use super::coroutine::Coroutine;
use super::current;
use crate::native::value_of;
use crate::report::{self, LeveledSink};
use crate::signals;
use crate::stuck;

pub(super) const THREAD: &str = "maitred-loop";

/// How often a startup that takes its time looks for signals.
const LOOK_FOR_SIGNAL: Duration = Duration::from_millis(100);

/// How long a loop that does not serve may take to end.
const TIME_TO_END: Duration = Duration::from_secs(2);

pub(crate) struct LoopThread {
    runner: Py<PyAny>,
    thread: Py<PyAny>,
}

enum Started {
    /// The application is ready, on this kind of loop.
    Ready(String, Whereabouts),
    Failed {
        error: LoadError,
        text: String,
    },
}

/// The identity of the loop's thread.
#[derive(Clone, Copy)]
pub(super) struct Whereabouts {
    /// Python's number (`threading.get_ident()`).
    pub(super) ident: u64,
    /// The system's number.
    pub(super) tid: i32,
}

pub(super) enum NotStarted {
    Raised(PyErr),
    Failed(LoadError),
}

impl From<PyErr> for NotStarted {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// Starts the thread and waits until the application is ready; the kind of its loop, and its thread. The thread is in
/// `keep` also after an error, so that the process does not end around it.
pub(super) fn start(
    py: Python<'_>,
    adapter: &Py<Adapter>,
    served: &Arc<Served>,
    (choice, lifespan): (&str, &str),
    log: LeveledSink,
    (stage, keep): (Option<&Py<PyAny>>, &OnceLock<LoopThread>),
) -> Result<(String, Whereabouts), NotStarted> {
    let (engine, wait) = Engine::new(py, adapter, served, log);
    let module = py.import("maitred._asgi")?;
    let application = served.application.clone_ref(py);
    let made = stage.map(|stage| stage.getattr(py, "loop")).transpose()?;
    let runner = module.getattr("Runner")?.call1((application, choice, lifespan, engine, made))?;
    let target = LoopTarget { runner: runner.clone().unbind() };
    let thread = match stage {
        Some(stage) => {
            let stage = stage.bind(py);
            stage.call_method1("serve", (target,))?;
            stage.getattr("thread")?
        }
        None => own_thread(py, target)?,
    };
    let running = keep.get_or_init(|| LoopThread { runner: runner.unbind(), thread: thread.unbind() });
    match wait_started(py, wait) {
        Ok(Started::Ready(kind, thread)) => Ok((kind, thread)),
        Ok(Started::Failed { error, text }) => {
            write_text(py, adapter, &text);
            running.join(py, TIME_TO_END);
            Err(NotStarted::Failed(error))
        }
        Err(error) => {
            running.finish(py, Duration::ZERO);
            running.join(py, TIME_TO_END);
            Err(error.into())
        }
    }
}

/// A thread for a loop whose application was imported elsewhere.
fn own_thread(py: Python<'_>, target: LoopTarget) -> Result<Bound<'_, PyAny>, NotStarted> {
    let options = PyDict::new(py);
    options.set_item("target", Py::new(py, target)?)?;
    options.set_item("name", THREAD)?;
    // The interpreter must not wait for one that is stuck in the application.
    options.set_item("daemon", true)?;
    let thread = py.import("threading")?.getattr("Thread")?.call((), Some(&options))?;
    thread.call_method0("start").map_err(|error| {
        let what = format!("no thread can be made for the event loop: {}", report::summary(py, &error));
        let remedy = "see what limits threads and memory (ulimit -u, TasksMax, control group)";
        NotStarted::Failed(LoadError::new(what, remedy))
    })?;
    Ok(thread)
}

/// Runs the startup of a further application on the loop that runs already.
pub(super) fn add(
    py: Python<'_>,
    adapter: &Py<Adapter>,
    served: &Arc<Served>,
    log: LeveledSink,
    running: &LoopThread,
) -> Result<String, NotStarted> {
    let (engine, wait) = Engine::new(py, adapter, served, log);
    let application = served.application.clone_ref(py);
    running.runner.call_method1(py, "add", (application, engine))?;
    match wait_started(py, wait)? {
        Started::Ready(kind, _) => Ok(kind),
        Started::Failed { error, text } => {
            write_text(py, adapter, &text);
            Err(NotStarted::Failed(error))
        }
    }
}

fn write_text(py: Python<'_>, adapter: &Py<Adapter>, text: &str) {
    if !text.is_empty() {
        report::write(py, &adapter.get().log, text.trim_end());
    }
}

fn wait_started(py: Python<'_>, wait: Receiver<Started>) -> PyResult<Started> {
    // The interpreter may be released only around objects that threads can share.
    let wait = Mutex::new(wait);
    loop {
        let next =
            py.detach(|| wait.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_FOR_SIGNAL));
        match next {
            Ok(started) => return Ok(started),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                signals::attend_loop(py)?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let error = LoadError::new("the event loop ended before it served", "see above");
                return Ok(Started::Failed { error, text: String::new() });
            }
        }
    }
}

impl LoopThread {
    /// Has everything ended within `limit`. Returns at once.
    pub(crate) fn finish(&self, py: Python<'_>, limit: Duration) {
        // After any error here, the thread is found not to have ended.
        let _ = self.runner.call_method1(py, "finish", (limit.as_secs_f64(),));
    }

    /// Waits for the end, at most for `limit`; whether it has come.
    pub(crate) fn join(&self, py: Python<'_>, limit: Duration) -> bool {
        // An exception from join leaves the thread alive; the next line sees it.
        let _ = self.thread.call_method1(py, "join", (limit.as_secs_f64(),));
        let alive = self.thread.call_method0(py, "is_alive");
        !alive.and_then(|alive| alive.is_truthy(py)).unwrap_or(false)
    }
}

/// The target of the loop's thread. The interpreter is not released around it, so that entering the engine
/// from the loop's callbacks costs nothing.
#[pyclass(frozen, module = "maitred._engine")]
struct LoopTarget {
    runner: Py<PyAny>,
}

#[pymethods]
impl LoopTarget {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.runner.call_method0(py, "run").map(drop)
    }
}

/// The object that `maitred._asgi` calls. Its methods are described there.
#[pyclass(frozen, module = "maitred._engine")]
struct Engine {
    adapter: Py<Adapter>,
    served: Arc<Served>,
    log: LeveledSink,
    started: Mutex<Option<Sender<Started>>>,
}

impl Engine {
    /// `started` receives the result of the startup.
    fn new(
        py: Python<'_>,
        adapter: &Py<Adapter>,
        served: &Arc<Served>,
        log: LeveledSink,
    ) -> (Self, Receiver<Started>) {
        let (started, wait) = mpsc::channel();
        let (adapter, served) = (adapter.clone_ref(py), Arc::clone(served));
        (Self { adapter, served, log, started: Mutex::new(Some(started)) }, wait)
    }

    fn tell(&self, started: Started) {
        // Only the first answer counts, and the receiver may be gone.
        let sender = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(started);
        }
    }
}

#[pymethods]
impl Engine {
    #[getter]
    fn request_type(&self, py: Python<'_>) -> Py<PyType> {
        self.adapter.get().classes.coroutine.class(py)
    }

    fn use_loop(&self, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let adapter = self.adapter.bind(event_loop.py());
        adapter.get().use_tasks(event_loop)?;
        adapter.get().polling.use_loop(adapter, event_loop)
    }

    fn ready(&self, state: Option<Py<PyDict>>, kind: String) {
        if let Some(state) = state {
            self.served.use_state(state);
        }
        stuck::name_requests_by(current::with_name);
        self.tell(Started::Ready(kind, current::whereabouts()));
    }

    fn failed(&self, what: &str, remedy: &str, text: String) {
        self.tell(Started::Failed { error: LoadError::new(what, remedy), text });
    }

    fn is_abandoned(&self, coroutine: &Bound<'_, PyAny>) -> bool {
        let own = self.adapter.get().classes.coroutine.class(coroutine.py());
        if !coroutine.get_type().is(&own) {
            return false;
        }
        // SAFETY: made by that class, as its type says, and referred to by the caller.
        let coroutine: &Coroutine = unsafe { value_of(coroutine.as_ptr()) };
        coroutine.channel().is_abandoned()
    }

    fn stop_polling(&self, py: Python<'_>) -> PyResult<()> {
        self.adapter.get().polling.end(py)
    }

    fn error(&self, py: Python<'_>, entry: &str) {
        report::write(py, &self.adapter.get().log, entry);
    }

    fn info(&self, py: Python<'_>, entry: &str) {
        py.detach(|| (self.log)(LogLevel::Info, entry));
    }

    fn debug(&self, py: Python<'_>, entry: &str) {
        py.detach(|| (self.log)(LogLevel::Debug, entry));
    }
}
