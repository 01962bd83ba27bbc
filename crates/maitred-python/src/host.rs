//! The Python package's part in the command: loading, application threads, signals.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use maitred_client::Observer;
use maitred_config::output::EXIT_FAILURE;
use maitred_config::value::LogLevel;
use maitred_process::host::{
    Application, ApplicationSpec, ErrorLog, Hooks, HooksSpec, Host, LoadError, LogName, Signals, Voice,
};
use maitred_runtime::Handler;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::asgi::{self, AsgiSettings, LoopThread, RunningLoop, StartError, StillThread};
use crate::bounded_end;
use crate::child;
use crate::deprecated;
use crate::hooks::{Gate, PythonHooks};
use crate::interrupt::Interrupter;
use crate::logging::Logging;
use crate::outgoing;
use crate::preload::{self, LoadedApplication, Preloaded};
use crate::releaser;
use crate::report::{self, ErrorSink, LeveledSink, say_last};
use crate::signals::{PythonSignals, io_error};
use crate::stuck::{NamedThreads, Watch, asked};
use crate::threads::PythonThreads;
use crate::values::lock;
use crate::wsgi::WsgiHandler;

pub(crate) struct PythonHost {
    command: Vec<OsString>,
    pub(crate) threads: PythonThreads,
    log: ErrorSink,
    lines: ErrorSink,
    leveled: LeveledSink,
    // Known only once the command has read its configuration.
    error_log: Arc<RwLock<Option<ErrorLog>>>,
    watch: Mutex<Option<Watch>>,
    interrupters: Mutex<Vec<Arc<Interrupter>>>,
    event_loop: OnceLock<LoopThread>,
    stage: OnceLock<Py<PyAny>>,
    running: OnceLock<RunningLoop>,
    /// Set when the steps that an interpreter needs once are done.
    prepared: OnceLock<()>,
    still: Mutex<Option<StillThread>>,
    hooks: Arc<Gate>,
    preloaded: Mutex<Preloaded>,
    logging: Logging,
}

impl PythonHost {
    pub(crate) fn new(command: Vec<OsString>) -> io::Result<Self> {
        let error_log: Arc<RwLock<Option<ErrorLog>>> = Arc::default();
        let later = error_log.clone();
        let leveled: LeveledSink = Arc::new(move |level, entry: &str| match of(&later) {
            Some(log) => log(Voice::Server(level), entry),
            None => say_last(entry),
        });
        deprecated::use_log(Arc::clone(&leveled));
        let errors = Arc::clone(&leveled);
        let log: ErrorSink = Arc::new(move |entry: &str| errors(LogLevel::Error, entry));
        let later = error_log.clone();
        let lines: ErrorSink = Arc::new(move |line: &str| match of(&later) {
            Some(log) => log(Voice::Application, line),
            None => say_last(line),
        });
        Ok(Self {
            command,
            threads: PythonThreads::new(log.clone())?,
            log,
            lines,
            leveled,
            error_log,
            watch: Mutex::default(),
            interrupters: Mutex::default(),
            event_loop: OnceLock::new(),
            stage: OnceLock::new(),
            running: OnceLock::new(),
            prepared: OnceLock::new(),
            still: Mutex::default(),
            hooks: Arc::default(),
            preloaded: Mutex::default(),
            logging: Logging::new(),
        })
    }

    /// Imports the application, and nothing else; on the thread of the loop if that is there.
    fn find(
        py: Python<'_>,
        spec: &ApplicationSpec,
        stage: Option<&Py<PyAny>>,
    ) -> PyResult<LoadedApplication> {
        let interface = spec.values.text("interface");
        let options = PyDict::new(py);
        options.set_item("factory", spec.values.is_on("factory"))?;
        options.set_item("app_dir", spec.values.path("app-dir"))?;
        options.set_item("environment", &spec.environment)?;
        options.set_item("identity", &spec.identity)?;
        options.set_item("root_path", &spec.root_path)?;
        let (module, arguments) = match &spec.development {
            None => ("maitred._load", (&spec.target, interface).into_pyobject(py)?.into_any()),
            Some(token) => ("maitred._dev", (token, &spec.target, interface).into_pyobject(py)?.into_any()),
        };
        let (load, arguments) = (py.import(module)?.getattr("load")?, arguments.cast_into::<PyTuple>()?);
        let loaded = match stage {
            None => load.call(arguments, Some(&options))?,
            Some(stage) => {
                let arguments = PyTuple::new(py, [load])?.add(arguments)?.cast_into::<PyTuple>()?;
                stage.bind(py).call_method("do", arguments, Some(&options))?
            }
        };
        let (application, description, interface) = loaded.extract()?;
        Ok(LoadedApplication { application, description, interface })
    }

    fn load_attached(&self, py: Python<'_>, spec: &ApplicationSpec) -> Result<Application, StartError> {
        // Processes that the application forks during its import have no use for our sockets.
        let forks_told = child::this_is_the_server();
        let preloaded = lock(&self.preloaded).take(py, &spec.target)?;
        let stage = if preloaded.is_none() { self.stage(py, spec)? } else { None };
        let found = preloaded.map_or_else(|| Self::find(py, spec, stage.as_ref()), Ok)?;
        let LoadedApplication { application, description, interface } = found;
        if let Some(stage) = &stage
            && self.running.get().is_none()
            && interface != "asgi"
        {
            stage.call_method0(py, "end")?;
        }
        shorten_switch_interval(py)?;
        if let Err(error) = forks_told.and_then(|()| child::this_is_the_server()) {
            report::write(py, &self.log, &format!("forked children cannot be told from the server: {error}"));
        }
        if self.prepared.set(()).is_ok() {
            if let Err(error) = asked::start(py, spec.stuck_after.is_some()) {
                let text = report::summary(py, &error);
                report::write(py, &self.log, &format!("stacks cannot be asked for: {text}"));
            }
            self.start_releaser(py);
        }
        if interface == "asgi" {
            return self.start_asgi(py, (application, description), spec, stage);
        }
        let handler =
            WsgiHandler::new(py, application, spec.max_threads, self.log.clone(), self.lines.clone())?;
        lock(&self.interrupters).push(Arc::clone(handler.interrupter()));
        if let Some(limit) = spec.stuck_after
            && lock(&self.watch).is_none()
        {
            self.start_watch(py, limit);
        }
        let threads = Arc::new(NamedThreads(self.threads.clone()));
        Ok(Application { handler: Arc::new(handler), threads, description, runs_on: None })
    }

    /// The thread of the loop for an application that looks like one of ASGI, before the loop runs and afterwards.
    fn stage(&self, py: Python<'_>, spec: &ApplicationSpec) -> PyResult<Option<Py<PyAny>>> {
        let interface = spec.values.text("interface");
        if interface == "wsgi" || self.running.get().is_some() && self.stage.get().is_none() {
            return Ok(None);
        }
        let looks = interface == "asgi"
            || py
                .import("maitred._load")?
                .call_method1("looks_like_asgi", (&spec.target, spec.values.path("app-dir")))?
                .extract()?;
        match self.stage.get() {
            _ if !looks => Ok(None),
            Some(stage) => Ok(Some(stage.clone_ref(py))),
            None => Ok(Some(
                py.import("maitred._stage")?
                    .getattr("Stage")?
                    .call1((spec.values.text("event-loop"),))?
                    .unbind(),
            )),
        }
    }

    fn start_asgi(
        &self,
        py: Python<'_>,
        (application, description): (Py<PyAny>, String),
        spec: &ApplicationSpec,
        stage: Option<Py<PyAny>>,
    ) -> Result<Application, StartError> {
        let application = (application, spec.root_path.as_str());
        let pathsend = spec.values.is_on("pathsend");
        if let (Some(running), Some(thread)) = (self.running.get(), self.event_loop.get()) {
            let handler = asgi::add(py, application, pathsend, running, Arc::clone(&self.leveled), thread)?;
            return Ok(self.on_loop(handler, description, running));
        }
        let (application, root_path) = application;
        let settings = AsgiSettings {
            application,
            root_path,
            event_loop: spec.values.text("event-loop"),
            lifespan: spec.values.text("lifespan"),
            pathsend,
            watch: spec.stuck_after.is_some(),
            threads: NamedThreads(self.threads.clone()),
            log: Arc::clone(&self.leveled),
            stage: stage.as_ref(),
            thread: &self.event_loop,
        };
        let started = asgi::start(py, settings)?;
        *lock(&self.still) = started.still;
        if let Some(stage) = stage {
            let _ = self.stage.set(stage);
        }
        let running = self.running.get_or_init(|| started.running);
        Ok(self.on_loop(started.handler, description, running))
    }

    fn on_loop(&self, handler: Arc<dyn Handler>, description: String, running: &RunningLoop) -> Application {
        let threads = Arc::clone(&running.threads);
        let runs_on = Some(format!("one event loop ({})", running.kind));
        Application { handler, threads, description, runs_on }
    }

    /// Waits for the thread of the event loop, if there is one; whether it has ended.
    pub(crate) fn join_event_loop(&self, py: Python<'_>, limit: Duration) -> bool {
        self.event_loop.get().is_none_or(|event_loop| event_loop.join(py, limit))
    }

    /// Serving goes on without it.
    fn start_releaser(&self, py: Python<'_>) {
        if let Err(error) = releaser::start() {
            report::write(py, &self.log, &format!("memory of responses is given back late: {error}"));
        }
    }

    /// Serving goes on without it.
    fn start_watch(&self, py: Python<'_>, limit: Duration) {
        match Watch::start(py, limit, self.log.clone()) {
            Ok(watch) => *lock(&self.watch) = Some(watch),
            Err(error) => {
                let text = report::summary(py, &error);
                report::write(py, &self.log, &format!("stuck requests cannot be watched: {text}"));
            }
        }
    }

    /// Has no further hook called; whether one is running still.
    pub(crate) fn close_hooks(&self) -> bool {
        self.hooks.close()
    }

    /// Whether a handler of `logging` has not come back.
    pub(crate) fn is_logging_stuck(&self) -> bool {
        self.logging.is_stuck()
    }

    /// Workers are forked from this process, and it is none itself.
    pub(crate) fn is_template(&self) -> bool {
        lock(&self.preloaded).is_template
    }

    /// Ends the threads that use the interpreter.
    pub(crate) fn stop_watch(&self, py: Python<'_>) {
        asked::stop(py);
        let watch = lock(&self.watch).take();
        if let Some(watch) = watch {
            watch.stop(py);
        }
        let interrupters = std::mem::take(&mut *lock(&self.interrupters));
        interrupters.iter().for_each(|interrupter| interrupter.stop(py));
        let still = lock(&self.still).take();
        if let Some(still) = still {
            still.stop(py);
        }
    }

    /// The error in one line; a traceback of the application's own code goes before it.
    fn explain(&self, py: Python<'_>, target: &str, error: &PyErr) -> LoadError {
        let value = error.value(py);
        let text = |name: &str| value.getattr(name).and_then(|text| text.extract::<String>());
        match (text("what"), text("remedy"), text("traceback")) {
            (Ok(what), Ok(remedy), Ok(traceback)) => {
                if !traceback.is_empty() {
                    let text = format!("{target} raised an exception\n{}", traceback.trim_end());
                    report::write(py, &self.log, &text);
                }
                LoadError::new(what, remedy)
            }
            // Not one of the loader's own errors: Ctrl-C during the import, or a fault of ours.
            _ => LoadError::new(
                format!("cannot load {target}: {}", report::summary(py, error)),
                "the import must run to its end",
            ),
        }
    }
}

fn of(log: &RwLock<Option<ErrorLog>>) -> Option<ErrorLog> {
    if child::is_child() {
        // The thread that writes is the parent's.
        return None;
    }
    log.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Host for PythonHost {
    fn use_error_log(&self, log: ErrorLog) {
        *self.error_log.write().unwrap_or_else(PoisonError::into_inner) = Some(log);
    }

    fn use_calls(&self, calls: Arc<dyn Observer>) {
        outgoing::report_to(calls);
    }

    fn has_logging(&self) -> bool {
        true
    }

    fn logging_place(&self, name: LogName) -> io::Result<PathBuf> {
        let name = match name {
            LogName::Error => "error",
            LogName::Access => "access",
        };
        Python::attach(|py| self.logging.place(py, name).map_err(|error| io_error(py, &error)))
    }

    fn end_logging(&self, limit: Duration) {
        let ended =
            Python::attach(|py| self.logging.end(py, limit).map_err(|error| report::summary(py, &error)));
        if let Err(text) = ended {
            say_last(&format!("maitred: logging did not end well: {text}"));
        }
    }

    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        Python::attach(|py| {
            self.load_attached(py, spec).map_err(|error| match error {
                StartError::Raised(error) => self.explain(py, &spec.target, &error),
                StartError::Failed(error) => error,
            })
        })
    }

    fn look(&self, spec: &ApplicationSpec) -> Result<(), LoadError> {
        Python::attach(|py| {
            let looked = py.import("maitred._load").and_then(|module| {
                module.call_method1("look", (&spec.target, spec.values.path("app-dir"))).map(drop)
            });
            looked.map_err(|error| self.explain(py, &spec.target, &error))
        })
    }

    fn preload(&self, spec: &ApplicationSpec) -> Result<(), LoadError> {
        Python::attach(|py| {
            let begun = py.import("maitred._preload").and_then(|module| module.call_method0("begin"));
            let found = begun.and_then(|_| Self::find(py, spec, None));
            let found = found.map_err(|error| self.explain(py, &spec.target, &error))?;
            lock(&self.preloaded).add(&spec.target, found);
            Ok(())
        })
    }

    fn prepare_fork(&self) -> Result<(), LoadError> {
        Python::attach(|py| {
            let prepared = py.import("maitred._preload").and_then(|module| module.call_method0("prepare"));
            let warning = prepared.and_then(|warning| {
                lock(&self.preloaded).note_folder(py)?;
                warning.extract::<String>()
            });
            let warning = warning.map_err(|error| self.explain(py, "the application", &error))?;
            if !warning.is_empty() {
                py.detach(|| (self.leveled)(LogLevel::Warn, &format!("maitred: warning: {warning}")));
            }
            Ok(())
        })
    }

    fn fork(&self) -> io::Result<Option<u32>> {
        let forked = Python::attach(|py| preload::fork(py).map_err(|error| io_error(py, &error)))?;
        if forked.is_none() {
            lock(&self.preloaded).is_template = false;
            self.threads.bell().renew()?;
        }
        Ok(forked)
    }

    fn hooks(&self, spec: Option<&HooksSpec>) -> Result<Option<Box<dyn Hooks>>, LoadError> {
        let Some(spec) = spec else { return Ok(None) };
        Python::attach(|py| match PythonHooks::load(py, spec, self.log.clone(), Arc::clone(&self.hooks)) {
            Ok(hooks) => Ok(Some(Box::new(hooks) as Box<dyn Hooks>)),
            Err(error) => Err(self.explain(py, &spec.target, &error)),
        })
    }

    fn is_interrupted(&self) -> bool {
        Python::attach(|py| py.check_signals().is_err())
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        // By now the applications are imported, and their logging is configured.
        Python::attach(|py| self.logging.start(py).map_err(|error| io_error(py, &error)))?;
        Python::attach(|py| match PythonSignals::install(py, self.threads.clone(), self.log.clone()) {
            Ok(signals) => Ok(Box::new(signals) as Box<dyn Signals>),
            Err(error) => Err(io_error(py, &error)),
        })
    }

    fn end_application(&self, limit: Duration) {
        bounded_end::application_ends_within(limit);
        Python::attach(|py| {
            if let Some(event_loop) = self.event_loop.get() {
                event_loop.finish(py, limit);
            }
        });
    }

    fn wait_application_ended(&self, limit: Duration) -> bool {
        Python::attach(|py| self.join_event_loop(py, limit))
    }

    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        let folder_of = |py: Python<'_>, module: &str| -> Option<PathBuf> {
            let file: PathBuf = py.import(module).ok()?.getattr("__file__").ok()?.extract().ok()?;
            Some(file.parent()?.to_owned())
        };
        let modules = [("Python's library", "os"), ("maitred", "maitred")];
        Python::attach(|py| {
            modules.into_iter().filter_map(|(what, module)| Some((what, folder_of(py, module)?))).collect()
        })
    }

    fn command(&self) -> Vec<OsString> {
        self.command.clone()
    }

    fn supervises(&self) {
        Python::attach(|py| {
            let tell =
                |what: &str, error: PyErr| (self.log)(&format!("{what}: {}", report::summary(py, &error)));
            let kept = py.import("maitred._load").and_then(|module| module.call_method0("keep_agent"));
            kept.map(drop).unwrap_or_else(|error| tell("workers may lack the agent of PYTHONPATH", error));
            // Python would raise KeyboardInterrupt when the command has ended.
            let released = py
                .import("signal")
                .and_then(|module| module.call_method1("signal", (2, module.getattr("SIG_DFL")?)).map(drop));
            released.unwrap_or_else(|error| tell("SIGINT stays with Python", error));
        });
    }

    fn tool(&self, name: &str, arguments: &[String]) -> Option<u8> {
        Python::attach(|py| {
            let ran =
                py.import("maitred._tools").and_then(|module| module.call_method1("run", (name, arguments)));
            match ran.and_then(|code| code.extract::<Option<u8>>()) {
                Ok(code) => code,
                Err(error) => {
                    error.print(py);
                    Some(EXIT_FAILURE)
                }
            }
        })
    }

    fn languages(&self) -> &'static str {
        static TEXT: OnceLock<String> = OnceLock::new();
        TEXT.get_or_init(|| {
            let version = Python::attach(|py| {
                let info = py.version_info();
                format!("{}.{}.{}", info.major, info.minor, info.patch)
            });
            format!("Python {version}")
        })
    }
}

/// The interval at which Python takes the interpreter from a thread that computes. With 5 ms, its
/// default, each such thread delays all others by that much; with 0.5 ms the switches themselves cost
/// nothing that can be measured. An application that has set another one while it was imported keeps it.
fn shorten_switch_interval(py: Python<'_>) -> PyResult<()> {
    const DEFAULT: f64 = 0.005;
    const SHORTER: f64 = 0.0005;
    let system = py.import("sys")?;
    let present: f64 = system.call_method0("getswitchinterval")?.extract()?;
    // Python counts in microseconds.
    if (present - DEFAULT).abs() < 1e-7 {
        system.call_method1("setswitchinterval", (SHORTER,))?;
    }
    Ok(())
}
