//! Deprecated functions of the application: the engine logs the first call of one, with the name of its replacement.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock, PoisonError};

use maitred_config::value::LogLevel;
use pyo3::exceptions::PyDeprecationWarning;
use pyo3::prelude::*;

use crate::report::LeveledSink;

/// The most functions that are reported: names that are made at run time must not fill the memory.
const MAX_TOLD: usize = 1000;

static SINK: OnceLock<LeveledSink> = OnceLock::new();
static TOLD: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

pub(crate) fn use_log(log: LeveledSink) {
    // Called once; a second log would be ignored.
    let _ = SINK.set(log);
}

/// Reports that `old` was called, in whose place there is `new`; once each.
#[pyfunction]
pub(crate) fn deprecated(py: Python<'_>, old: String, new: String) -> PyResult<()> {
    let text = format!("{} is deprecated: use {}", old.escape_debug(), new.escape_debug());
    let Some(log) = SINK.get() else {
        let category = py.get_type::<PyDeprecationWarning>();
        // Of the caller of the function that calls this.
        return PyErr::warn(py, &category, &CString::new(text)?, 2);
    };
    {
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MAX_TOLD || !told.insert((old, new)) {
            return Ok(());
        }
    }
    let entry = match caller(py) {
        Ok(place) => format!("{text} (called at {place})"),
        // Called at the top of a program, or by native code.
        Err(_) => text,
    };
    py.detach(|| log(LogLevel::Warn, &entry));
    Ok(())
}

/// Where the function was called that calls [`deprecated`].
fn caller(py: Python<'_>) -> PyResult<String> {
    let frame = py.import("sys")?.call_method1("_getframe", (1,))?;
    let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
    let line: u32 = frame.getattr("f_lineno")?.extract()?;
    Ok(format!("{}:{line}", file.escape_debug()))
}
