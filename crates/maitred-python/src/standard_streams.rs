//! Python's standard streams at the end of a process.

use pyo3::prelude::*;

pub(crate) fn flush_streams(py: Python<'_>) {
    let Ok(system) = py.import("sys") else { return };
    for stream in ["stdout", "stderr"] {
        // A stream that is closed or without a reader must not keep the process.
        let _ = system.getattr(stream).and_then(|stream| stream.call_method0("flush"));
    }
}
