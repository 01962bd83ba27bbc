//! What the Python package brings to the command: loading, application threads, signals.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use maitred_cli::{Application, ApplicationSpec, ErrorLog, Host, Interface, LoadError, Signals};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::report::{self, ErrorSink};
use crate::signals::{PythonSignals, io_error};
use crate::stuck::{NamedThreads, Watch};
use crate::threads::PythonThreads;
use crate::wsgi::WsgiHandler;

/// The host of the Python package.
pub(crate) struct PythonHost {
    pub(crate) threads: PythonThreads,
    log: ErrorSink,
    // Known only once the command has read its configuration.
    error_log: Arc<OnceLock<ErrorLog>>,
    watch: Mutex<Option<Watch>>,
}

impl PythonHost {
    pub(crate) fn new() -> io::Result<Self> {
        let error_log: Arc<OnceLock<ErrorLog>> = Arc::default();
        let later = error_log.clone();
        let log: ErrorSink = Arc::new(move |entry: &str| match later.get() {
            Some(log) => log(entry),
            None => say_last(entry),
        });
        Ok(Self { threads: PythonThreads::new(log.clone())?, log, error_log, watch: Mutex::default() })
    }

    fn load_attached(&self, py: Python<'_>, spec: &ApplicationSpec) -> PyResult<Application> {
        let interface = match spec.interface {
            Interface::Auto => "auto",
            Interface::Wsgi => "wsgi",
            Interface::Asgi => "asgi",
        };
        let options = PyDict::new(py);
        options.set_item("factory", spec.factory)?;
        options.set_item("app_dir", &spec.app_dir)?;
        options.set_item("environment", &spec.environment)?;
        options.set_item("root_path", &spec.root_path)?;
        let module = py.import("maitred._load")?;
        let loaded = module.call_method("load", (&spec.target, interface), Some(&options))?;
        let (application, description): (Py<PyAny>, String) = loaded.extract()?;
        let handler = WsgiHandler::new(py, application, spec.max_threads, self.log.clone())?;
        if let Some(limit) = spec.stuck_after {
            self.start_watch(py, limit);
        }
        let threads = Arc::new(NamedThreads(self.threads.clone()));
        Ok(Application { handler: Arc::new(handler), threads, description })
    }

    /// Serving goes on without it.
    fn start_watch(&self, py: Python<'_>, limit: Duration) {
        match Watch::start(py, limit, self.log.clone()) {
            Ok(watch) => *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch),
            Err(error) => {
                let text = report::summary(py, &error);
                report::write(py, &self.log, &format!("stuck requests cannot be watched: {text}"));
            }
        }
    }

    /// Ends what uses the interpreter.
    pub(crate) fn stop_watch(&self, py: Python<'_>) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            watch.stop(py);
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

impl Host for PythonHost {
    fn use_error_log(&self, log: ErrorLog) {
        // Called once; a second log would be ignored.
        let _ = self.error_log.set(log);
    }

    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        Python::attach(|py| {
            self.load_attached(py, spec).map_err(|error| self.explain(py, &spec.target, &error))
        })
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Python::attach(|py| match PythonSignals::install(py, self.threads.clone(), self.log.clone()) {
            Ok(signals) => Ok(Box::new(signals) as Box<dyn Signals>),
            Err(error) => Err(io_error(py, &error)),
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

/// Writes to standard error where the error log is not there yet, or not any more. A pipe that
/// nobody reads must not keep the process, so nobody waits long for it.
pub(crate) fn say_last(entry: &str) {
    const LIMIT: Duration = Duration::from_secs(1);
    let text = format!("{entry}\n");
    let (done, written) = mpsc::channel();
    thread::spawn(move || {
        // There is nobody left to tell when standard error is closed.
        let _ = io::stderr().lock().write_all(text.as_bytes());
        let _ = done.send(());
    });
    let _ = written.recv_timeout(LIMIT);
}
