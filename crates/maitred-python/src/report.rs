//! Text for the error log: where it goes and how a Python exception is written.

mod traceback;

use std::io::{self, Write};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use maitred_config::value::LogLevel;
use maitred_server::printable;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

pub(crate) use traceback::traceback;

/// Takes one entry for the error log; an entry may have several lines and ends without a line feed.
/// It is called with the interpreter released, because writing may wait.
pub type ErrorSink = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) type LeveledSink = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// Writes `entry` to the sink with the interpreter released.
pub(crate) fn write(py: Python<'_>, sink: &ErrorSink, entry: &str) {
    py.detach(|| sink(entry));
}

/// The exception in one line: `ValueError: text`.
pub(crate) fn summary(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    match value.str().map(|text| text.to_string_lossy().into_owned()) {
        Ok(text) if !text.is_empty() => format!("{}: {}", type_name(value), text.escape_debug()),
        _ => type_name(value),
    }
}

/// Describes a wrong value for an error message. Where its type may well be the right one, its content is shown.
pub(crate) fn found(value: &Bound<'_, PyAny>) -> String {
    let name = type_name(value);
    let has_length = value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyBytes>();
    match value.len() {
        Ok(length) if has_length => format!("{name} of length {length}"),
        _ => name,
    }
}

pub(crate) fn type_name(value: &Bound<'_, impl Sized>) -> String {
    let value = value.as_any();
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Writes to standard error where the error log is not there yet, or not any more. A pipe without a reader must not
/// keep the process, so the wait is limited.
pub(crate) fn say_last(entry: &str) {
    const LIMIT: Duration = Duration::from_secs(1);
    let text = format!("{}\n", printable(entry));
    let (done, written) = mpsc::channel();
    // When standard error is closed, the entry is lost: there is no other place for it.
    let write = |text: &str| _ = io::stderr().lock().write_all(text.as_bytes());
    let own = text.clone();
    let writes = thread::Builder::new().spawn(move || {
        write(&own);
        let _ = done.send(());
    });
    match writes {
        Ok(_) => _ = written.recv_timeout(LIMIT),
        Err(_) => write(&text),
    }
}
