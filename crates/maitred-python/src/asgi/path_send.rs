//! `http.response.pathsend`: a file that the application names, sent by the engine (ASGI extensions, "Path Send").
//!
//! The path is the application's, as that of a file it opens itself: it is not looked at further.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use maitred_runtime::FileRange;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::message::Message;

/// The file of the message, all of it.
pub(super) fn open(py: Python<'_>, message: &Message<'_, '_>) -> PyResult<FileRange> {
    let Some(path) = message.get(intern!(py, "path"))? else {
        return Err(PyValueError::new_err("http.response.pathsend has no 'path', which names the file"));
    };
    let path: PathBuf = path
        .extract()
        .map_err(|_| PyTypeError::new_err("the path of http.response.pathsend must be a str"))?;
    if !path.is_absolute() {
        let shown = path.display();
        return Err(PyValueError::new_err(format!(
            "the path of http.response.pathsend must be absolute, not {shown}"
        )));
    }
    py.detach(|| regular(&path)).map_err(|error| match error.raw_os_error() {
        // The subclass that Python has for it, such as FileNotFoundError.
        Some(number) => PyOSError::new_err((number, error.to_string(), path.into_os_string())),
        None => PyOSError::new_err(error.to_string()),
    })
}

/// Opens a regular file. Nothing else is waited for: a FIFO would not open without a writer.
fn regular(path: &std::path::Path) -> io::Result<FileRange> {
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(FileRange { file: Arc::new(file), offset: 0, length: facts.len() })
}
