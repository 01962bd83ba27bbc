//! Text for the error log: where it goes and how a Python exception is written.

use std::sync::Arc;

use maitred_cli::LogLevel;
use pyo3::prelude::*;

/// Takes one entry for the error log; an entry may have several lines and ends without a line feed.
/// It is called with the interpreter released, because writing may wait.
pub type ErrorSink = Arc<dyn Fn(&str) + Send + Sync>;

/// The same with a level.
pub(crate) type LeveledSink = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// Writes `entry` to the sink with the interpreter released.
pub(crate) fn write(py: Python<'_>, sink: &ErrorSink, entry: &str) {
    py.detach(|| sink(entry));
}

/// The exception as Python itself would print it, with its traceback and causes.
pub(crate) fn traceback(py: Python<'_>, error: &PyErr) -> String {
    // Before Python 3.12 the value does not carry the traceback by itself.
    let parts = (error.get_type(py), error.value(py), error.traceback(py));
    let formatted = py
        .import("traceback")
        .and_then(|module| module.call_method1("format_exception", parts))
        .and_then(|lines| lines.extract::<Vec<String>>());
    match formatted {
        Ok(lines) => lines.concat().trim_end().to_owned(),
        // An exception whose own text fails must not hide that it happened.
        Err(_) => format!("{} (its traceback cannot be formatted)", type_name(error.value(py))),
    }
}

/// The exception in one line: `ValueError: text`.
pub(crate) fn summary(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    match value.str().map(|text| text.to_string_lossy().into_owned()) {
        Ok(text) if !text.is_empty() => format!("{}: {}", type_name(value), text.escape_debug()),
        _ => type_name(value),
    }
}

/// The name of an object's type, for messages.
pub(crate) fn type_name(value: &Bound<'_, impl Sized>) -> String {
    let value = value.as_any();
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string_lossy().into_owned())
}
