//! The Python adapter: extension module `maitred._engine`.
//!
//! Promises: an application is called under the rules of PEP 3333 or ASGI 3, on threads that Python
//! made, and the interpreter is released wherever the engine could wait. Leaves out: HTTP (no byte of
//! the wire is parsed here), scheduling (the server decides which thread runs what) and the options of
//! the command (`maitred-cli`).

mod asgi;
mod bounded_end;
mod child;
mod client;
mod codings;
mod database;
mod deprecated;
mod held;
mod hooks;
mod host;
mod interpreter_lock;
mod interrupt;
mod logging;
mod native;
mod orphans;
mod outgoing;
mod own_memory;
mod preload;
mod releaser;
mod report;
mod route;
mod signals;
mod standard_streams;
mod stuck;
mod threads;
mod unwanted;
mod values;
mod wsgi;

use std::ffi::OsString;
use std::time::Duration;

use maitred_config::output::{EXIT_SUCCESS, EXIT_USAGE};
use pyo3::prelude::*;

use host::PythonHost;

pub use interrupt::RequestTimeout;
pub use report::ErrorSink;
pub use stuck::{Dump, Dumper};
pub use threads::PythonThreads;
pub use wsgi::WsgiHandler;

/// How long the end of the process waits for application threads after a regular end and after a failed start: all
/// requests are answered, so only code that runs after an answer (`close()`) is left.
const JOIN_LIMIT: Duration = Duration::from_secs(2);

/// The same after an end "at once": the server knows which threads are still in the application.
const JOIN_LIMIT_AT_ONCE: Duration = Duration::from_millis(100);

#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::RequestTimeout;

    #[pymodule_export]
    use super::asgi::ClientDisconnected;

    #[pymodule_export]
    use super::deprecated::deprecated;

    #[pymodule_export]
    use super::bounded_end::bound_end;

    #[pymodule_export]
    use super::database::{DatabaseCounts, count_databases};

    #[pymodule_export]
    use super::outgoing::count_calls;

    #[pymodule_export]
    use super::client::{HttpBody, HttpFailure, HttpOrigin, HttpPool, HttpResponse, http_proxy_for};

    #[pymodule_export]
    use super::main;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command with these arguments, the program's name first, and returns its exit code. `command` is how this program was started,
/// without its arguments: worker processes are started like that. Without it they are `python -m maitred`.
///
/// Must be called on Python's main thread, because only that can take signals.
#[pyfunction]
#[pyo3(signature = (argv, command = None))]
fn main(py: Python<'_>, argv: Vec<OsString>, command: Option<Vec<OsString>>) -> PyResult<u8> {
    maitred_io::standard_streams::fill();
    let command = match command {
        Some(command) => command,
        None => {
            let python: OsString = py.import("sys")?.getattr("executable")?.extract()?;
            vec![python, "-m".into(), "maitred".into()]
        }
    };
    let host = PythonHost::new(command)?;
    let code = py.detach(|| maitred_cli::main(argv, &host));
    let limit = match code {
        EXIT_SUCCESS | EXIT_USAGE => JOIN_LIMIT,
        _ => JOIN_LIMIT_AT_ONCE,
    };
    let mut stuck = host.threads.join(py, limit);
    if !host.join_event_loop(py, limit) {
        stuck.push("maitred-loop".to_owned());
    }
    if !releaser::end(py, limit) {
        stuck.push("maitred-release".to_owned());
    }
    if !stuck.is_empty() {
        let names = stuck.join(", ");
        let text = format!("maitred: ended with threads still in the application: {names}");
        py.detach(|| report::say_last(&text));
    }
    if host.is_template() {
        // Functions registered for the end belong to the workers: they may remove files that the workers still use.
        end_process(py, code)?;
    }
    // The error log has named the hooks.
    if host.close_hooks() || !stuck.is_empty() || host.is_logging_stuck() {
        end_process(py, code)?;
    }
    host.stop_watch(py);
    signals::give_back_interrupt(py)?;
    Ok(code)
}

/// Ends without Python's own shutdown, which would take the interpreter away from threads that come back from the
/// application. The standard streams are flushed before.
fn end_process(py: Python<'_>, code: u8) -> PyResult<()> {
    standard_streams::flush_streams(py);
    py.import("os")?.call_method1("_exit", (code,)).map(drop)
}
